"""What docs/fleets/manifests.md and docs/reference/conditions.md say of a ReassignmentPolicy, against the real Argo CD
and helm.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from localplatform.argocd import Object
from localplatform.console import PlatformError
from localplatform.machine import CHECKOUT
from localplatform.processes import run
from reassign.fleet.emit import SYNC_WAVE
from tests.api.helm import Helm
from tests.argocd.application import act, approve_is_offered, operation
from tests.argocd.conftest import Site
from tests.benchmarks.apart import API, CLUSTER, NAMESPACE

PARTITIONS = 4
ON = (0, 1)
"""The brokers of the topic, of which the plan empties the first."""
EACH_MINUTE = {"name": "minutely", "schedule": {"cron": "* * * * *"}}


def test_a_plan_of_a_policy_is_approved_by_a_commit_of_approve(site: Site) -> None:
    site.topic(PARTITIONS, on=ON)
    wish = policy(site)
    wish["metadata"]["annotations"] = {SYNC_WAVE: "0"}
    site.commit(wish)
    site.application()
    site.eventually("a plan waits for approval", lambda: is_true(site, "ApprovalNeeded"))
    site.eventually("the sync has ended", lambda: operation(site).get("phase") == "Succeeded")
    digest, plan = status(site)["digest"], status(site)["plan"]["name"]
    site.eventually("it says so, and is Healthy", lambda: asks_for(site, digest))
    site.eventually("so is the Application", lambda: site.state() == ("Synced", "Healthy"))
    site.eventually("its plan is below it", lambda: site.argocd.health_of(site.name, plan)[0] == "Suspended")
    leaves_its_plan_to_the_policy(site, plan)
    lets_the_next_sync_wave_begin(site, wish)
    can_be_suspended_and_resumed(site)

    assert site.replicas() == [[*ON]] * PARTITIONS
    assert status(site)["digest"] == digest
    assert f"none → {digest}" in approve(site)
    assert "approvedDigest" not in found(site)["spec"]
    site.commit()
    site.eventually("the plan is carried out", lambda: outcomes(site) == [(plan, "Succeeded")])
    site.eventually("it is Healthy as before", lambda: site.state() == ("Synced", "Healthy"))
    assert not is_true(site, "ApprovalNeeded")
    site.eventually("broker 0 is empty", lambda: not any(ON[0] in replicas for replicas in site.replicas()))
    site.commit(remove=(site.name, later(site)["metadata"]["name"]))
    leaves_nothing(site, plan)


def test_a_policy_that_stalls_is_degraded_until_it_is_corrected(site: Site) -> None:
    site.commit(policy(site, {"name": "nightly", "schedule": {"cron": "0 0 30 2 *"}}))
    site.application()
    never = "schedule of the trigger nightly: the cron '0 0 30 2 *' has no time within four years"
    degraded = ("Degraded", f"InvalidSchedule: {never}")
    site.eventually("it says why", lambda: site.argocd.health_of(site.name, site.name) == degraded)
    site.eventually("so does the Application", lambda: site.state() == ("Synced", "Degraded"))
    site.commit(policy(site, {"name": "nightly", "schedule": {"cron": "0 0 1 1 *"}}))
    site.eventually("it is corrected", lambda: site.state() == ("Synced", "Healthy"))
    idle = ("Healthy", "Idle: no plan is needed")
    site.eventually("it has nothing to do", lambda: site.argocd.health_of(site.name, site.name) == idle)
    site.commit(remove=(site.name,))
    site.eventually("it is gone", lambda: not found(site))


def test_helm_waits_for_no_approval_of_a_policys_plan(site: Site, tmp_path: Path) -> None:
    site.topic(PARTITIONS, on=ON)
    helm, chart = Helm(tmp_path, site.bench.api.kubeconfig), tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: policies\nversion: 0.1.0\n")
    manifest = chart / "templates" / "policy.yaml"
    install = ("upgrade", "--install", site.name, str(chart), f"--namespace={NAMESPACE}", "--wait", "--timeout=2m")
    manifest.write_text(json.dumps(policy(site)))
    helm(*install)
    assert is_true(site, "Ready")
    site.eventually("a plan waits for approval", lambda: is_true(site, "ApprovalNeeded"))
    before, plan = found(site), status(site)["plan"]["name"]

    manifest.write_text(json.dumps(policy(site, maxBytes="1Ti")))
    helm(*install)
    after = found(site)
    assert after["status"]["observedGeneration"] == after["metadata"]["generation"] > before["metadata"]["generation"]
    assert is_true(site, "ApprovalNeeded")
    assert after["status"]["digest"] == before["status"]["digest"]
    assert site.replicas() == [[*ON]] * PARTITIONS
    helm("uninstall", site.name, f"--namespace={NAMESPACE}", "--wait")
    leaves_nothing(site, plan)


def leaves_its_plan_to_the_policy(site: Site, plan: str) -> None:
    site.eventually("it can be approved", lambda: approve_is_offered(site, "ReassignmentPolicy", site.name))
    assert not approve_is_offered(site, "ReassignmentPlan", plan)
    with pytest.raises(PlatformError, match=f"approve the ReassignmentPolicy {site.name}"):
        act(site, "approve", "ReassignmentPlan", plan)


def lets_the_next_sync_wave_begin(site: Site, wish: Object) -> None:
    """A commit changes the policy, and what is in the next wave is applied while its plan waits for approval."""
    wish["spec"]["maxBytes"] = "1Ti"
    site.commit(wish, later(site))
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{later(site)['metadata']['name']}"
    site.eventually("the next wave is applied", lambda: site.bench.api.get(path) is not None)
    after = found(site)
    assert after["spec"]["maxBytes"] == "1Ti"
    assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
    assert is_true(site, "ApprovalNeeded")
    site.eventually("the sync has ended", lambda: site.state() == ("Synced", "Healthy"))


def can_be_suspended_and_resumed(site: Site) -> None:
    act(site, "suspend", "ReassignmentPolicy", site.name)
    assert found(site)["spec"]["suspend"] is True
    site.eventually("it is suspended", lambda: site.argocd.health_of(site.name, site.name)[0] == "Suspended")
    act(site, "resume", "ReassignmentPolicy", site.name)
    assert found(site)["spec"]["suspend"] is False
    site.eventually("it is in force", lambda: site.argocd.health_of(site.name, site.name)[0] == "Healthy")


def policy(site: Site, trigger: Object = EACH_MINUTE, **spec: Any) -> Object:
    """A ReassignmentPolicy whose plan moves the topic away from its first broker."""
    template = {"topics": {"include": [site.name]}, "goal": {"brokers": [1, 2, 3]}}
    wanted = {"clusterRef": {"name": CLUSTER}, "triggers": [trigger], "settleSeconds": 60, "planTemplate": template}
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "ReassignmentPolicy",
        "metadata": {"name": site.name, "namespace": NAMESPACE},
        "spec": wanted | spec,
    }


def later(site: Site) -> Object:
    """What is in the sync wave after the policy."""
    metadata = {"name": f"{site.name}-later", "namespace": NAMESPACE, "annotations": {SYNC_WAVE: "1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def found(site: Site) -> Object:
    return site.bench.api.get(f"{API}/reassignmentpolicies/{site.name}") or {}


def status(site: Site) -> Object:
    return dict(found(site).get("status", {}))


def is_true(site: Site, condition: str) -> bool:
    known = status(site).get("conditions", ())
    return any(c["type"] == condition and c["status"] == "True" for c in known)


def outcomes(site: Site) -> list[tuple[str, str]]:
    return [(plan["name"], plan["outcome"]) for plan in status(site).get("plans", ())]


def asks_for(site: Site, digest: str) -> bool:
    """Whether Argo CD says that the policy is Healthy, and asks for this approval."""
    health, message = site.argocd.health_of(site.name, site.name)
    return health == "Healthy" and message.startswith("AwaitingApproval: ") and f"status.digest, {digest}," in message


def approve(site: Site) -> str:
    """Approve in the file, as a user does before a commit."""
    command = ["-m", "reassign.cli", "approve", f"krpol/{site.name}", f"--namespace={NAMESPACE}", "--yes"]
    env = {"KUBECONFIG": str(site.bench.api.kubeconfig), "PYTHONPATH": str(CHECKOUT / "operator")}
    return run([sys.executable, *command, "--file", site.path(site.name)], env=env)


def leaves_nothing(site: Site, plan: str) -> None:
    """Neither the policy nor its plan, and nothing in flight."""
    site.eventually("it is gone", lambda: not found(site))
    site.eventually("so is its plan", lambda: site.bench.api.get(f"{API}/reassignmentplans/{plan}") is None)
    assert not site.bench.admin.list_partition_reassignments()
