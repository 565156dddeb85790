"""What kstatus, kubectl wait and helm --wait say of an object, by their own rules for custom resources.

kstatus: sigs.k8s.io/cli-utils, pkg/kstatus/status, generic.go and status.go. Helm: 4.3, pkg/kube/statuswait.go, which
asks kstatus. kubectl: 1.36, pkg/cmd/wait/condition.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.kafka_cluster import KafkaClusterStatus
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import ReassignmentPlanStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.core.model.waits import BRAKE, WISHED

Object = Mapping[str, Any]
NEW: Object = {"metadata": {"generation": 1}, "spec": {}, "status": {"observedGeneration": -1}}
"""An object that the operator has not seen yet."""
Status = (
    BrokerDecommissionStatus
    | KafkaClusterStatus
    | PartitionReassignmentStatus
    | ReassignmentPlanStatus
    | ReassignmentPolicyStatus
)

WISHES = {str(reason) for reason in WISHED - BRAKE}


def kstatus(obj: Object) -> str:
    """Terminating, InProgress, Failed or Current."""
    metadata, status = obj["metadata"], obj.get("status", {})
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    conditions = status.get("conditions", ())
    for condition in conditions:  # the first of them decides
        if condition["status"] == "True" and condition["type"] == "Reconciling":
            return "InProgress"
        if condition["status"] == "True" and condition["type"] == "Stalled":
            return "Failed"
    ready = [c["status"] for c in conditions if c["type"] == "Ready"]
    return "InProgress" if ready and ready[0] in ("False", "Unknown") else "Current"


def kubectl_wait(obj: Object, kind: str = "Ready") -> str:
    """What `kubectl wait --for=condition=KIND` does."""
    generation, status = obj["metadata"]["generation"], obj.get("status", {})
    for condition in status.get("conditions", ()):
        observed = condition.get("observedGeneration", status.get("observedGeneration", generation))
        if condition["type"] == kind and observed >= generation:
            return "returns" if condition["status"] == "True" else "waits"
    return "waits"


def helm_wait(obj: Object) -> str:
    """What `helm --wait` does: one that is Failed ends the wait as soon as it waits for no other."""
    return {"Current": "returns", "Failed": "fails"}.get(kstatus(obj), "waits")


def seen(status: Status, generation: int, deleted: object = None) -> Object:
    """An object with a status, as a client gets it."""
    metadata = {"generation": generation} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    return {"metadata": metadata, "status": status.wire()}


def check(obj: Object) -> None:
    """Assert that a status misleads no client that waits for it."""
    verdict, status = kstatus(obj), obj["status"]
    if verdict == "Terminating" or status.get("observedGeneration") != obj["metadata"]["generation"]:
        return
    true = {c["type"] for c in status["conditions"] if c["status"] == "True"}
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    wish = ready["reason"] in WISHES or _asks_for_approval(obj, ready)
    assert verdict != "Current" or "Ready" in true, f"Current, and not Ready: {ready}"
    assert (verdict == "Failed") == ("Stalled" in true), f"{verdict}, and True are {true}"
    assert "Failed" not in true or "Stalled" in true, "what has failed needs a user"
    assert "Succeeded" not in true or "Ready" in true, f"succeeded, and not Ready: {ready}"
    assert not wish or "Stalled" not in true, f"a wish to wait does not time out: {ready}"
    assert {"Ready", "Reconciling", "Stalled"} & true or wish, f"it does not say what it waits for: {ready}"
    assert ready["reason"] not in BRAKE, f"of the brake a condition says Suspended: {ready}"
    assert not {"Reconciling", "Ready"} <= true, f"Ready, and reconciling: {true}"


def _asks_for_approval(obj: Object, ready: Object) -> bool:
    """Whether a BrokerDecommission waits for an approval though it names another plan: a wish of its own."""
    return obj.get("kind") == "BrokerDecommission" and ready["reason"] == "ApprovedDigestMismatch"
