"""What a person sees of the resources: columns, names, explanations; and what programs wait for."""

from datetime import UTC, datetime
from typing import Any

import pytest

from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.common import Condition, ConditionStatus
from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterStatus
from reassign.api.partition_reassignment import PartitionReassignment, PartitionReassignmentStatus
from reassign.api.reassignment_plan import ReassignmentPlan, ReassignmentPlanStatus
from reassign.api.reassignment_policy import ReassignmentPolicy
from reassign.api.reassignment_record import ReassignmentRecordSpec, RecordedConfigs
from tests.api.kubectl import Kubectl, cluster, decommission, plan, policy, reassignment
from tests.api.statuses import (
    CLUSTER_STATUS,
    DECOMMISSION_STATUS,
    DIGEST,
    NOW,
    PLAN_STATUS,
    POLICY_STATUS,
    REASSIGNMENT_STATUS,
    THROTTLES,
)


def columns(kubectl: Kubectl, kind: str, *flags: str) -> dict[str, str]:
    """The table of one object: what is under each heading."""
    heading, row = kubectl("get", kind, *flags).splitlines()
    starts = [index for index, c in enumerate(heading) if c != " " and (index == 0 or heading[index - 1] == " ")]
    ends = [*starts[1:], None]
    return {heading[a:b].strip(): row[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def test_a_status_with_every_field_is_stored_whole_and_read_by_the_models(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.apply(cluster())
    stored = sandbox.write_status("kpr", "move", REASSIGNMENT_STATUS)
    assert stored["status"] == REASSIGNMENT_STATUS
    assert PartitionReassignment.parse(stored).status.wire() == REASSIGNMENT_STATUS
    stored = sandbox.write_status("kcl", "main", CLUSTER_STATUS)
    assert stored["status"] == CLUSTER_STATUS
    assert KafkaCluster.parse(stored).status.wire() == CLUSTER_STATUS
    sandbox.apply(plan())
    stored = sandbox.write_status("krp", "drain", PLAN_STATUS)
    assert stored["status"] == PLAN_STATUS
    assert ReassignmentPlan.parse(stored).status.wire() == PLAN_STATUS
    sandbox.apply(decommission())
    stored = sandbox.write_status("kbd", "retire-5", DECOMMISSION_STATUS)
    assert stored["status"] == DECOMMISSION_STATUS
    assert BrokerDecommission.parse(stored).status.wire() == DECOMMISSION_STATUS
    sandbox.apply(policy())
    stored = sandbox.write_status("krpol", "standing", POLICY_STATUS)
    assert stored["status"] == POLICY_STATUS
    assert ReassignmentPolicy.parse(stored).status.wire() == POLICY_STATUS


def test_a_record_of_throttles_is_stored_whole_and_read_by_the_models(sandbox: Kubectl) -> None:
    spec = {"clusterRef": {"name": "main", "namespace": sandbox.namespace}, "part": 0, "throttle": THROTTLES}
    version = cluster()["apiVersion"]
    sandbox.apply({"apiVersion": version, "kind": "ReassignmentRecord", "metadata": {"name": "main-0"}, "spec": spec})
    [stored] = sandbox.json("get", "reassignmentrecords")["items"]
    assert stored["spec"]["throttle"] == THROTTLES
    assert ReassignmentRecordSpec.parse(stored["spec"]).throttle == RecordedConfigs.parse(THROTTLES)


def test_the_columns_of_a_reassignment(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.write_status("kpr", "move", REASSIGNMENT_STATUS)
    seen = columns(sandbox, "kpr")
    assert seen.pop("AGE")
    assert seen == {"NAME": "move", "READY": "False", "REASON": "Moving", "PROGRESS": "0/1 partitions, 31 %"}
    wide = columns(sandbox, "kpr", "-o", "wide")
    assert (wide["CLUSTER"], wide["INFLIGHT"], wide["BLOCKED"], wide["ADDING"], wide["REMOVING"]) == (
        "main",
        "1",
        "0",
        "7",
        "8",
    )
    assert wide["MESSAGE"] == "1 partition in flight"


def test_the_columns_of_a_cluster(sandbox: Kubectl) -> None:
    sandbox.apply(cluster())
    sandbox.write_status("kcl", "main", CLUSTER_STATUS)
    seen = columns(sandbox, "kcl")
    assert seen.pop("AGE")
    assert seen == {"NAME": "main", "READY": "True", "REASON": "Connected", "EXECUTION": "Run", "INFLIGHT": "4"}
    wide = columns(sandbox, "kcl", "-o", "wide")
    assert (wide["FOREIGN"], wide["CLUSTER-ID"]) == ("9", "XbsmHWQ7T7aJbTZGRA8vGw")


def test_the_columns_of_a_plan(sandbox: Kubectl) -> None:
    sandbox.apply(plan())
    sandbox.write_status("krp", "drain", PLAN_STATUS)
    seen = columns(sandbox, "krp")
    assert seen.pop("AGE")
    told = {"READY": "False", "REASON": "AwaitingApproval", "PROGRESS": "0/1 waves, 0/200 partitions"}
    assert seen == {"NAME": "drain", **told}
    wide = columns(sandbox, "krp", "-o", "wide")
    assert (wide["REPLICAS"], wide["BYTES"], wide["LEAST-BYTES"], wide["DIGEST"]) == (
        "210",
        str(2**50),
        str(2**49),
        DIGEST,
    )


def test_the_columns_of_a_decommission(sandbox: Kubectl) -> None:
    sandbox.apply(decommission())
    sandbox.write_status("kbd", "retire-5", DECOMMISSION_STATUS)
    seen = columns(sandbox, "kbd")
    assert seen.pop("AGE")
    told = {"READY": "False", "REASON": "WaveInFlight", "BROKERS": "[5]", "LEFT": "312", "EMPTY": "False"}
    assert seen == {"NAME": "retire-5", **told}
    wide = columns(sandbox, "kbd", "-o", "wide")
    assert (wide["CORDONED"], wide["CLUSTER"], wide["MESSAGE"]) == ("True", "main", "retire-5-1: 1/4 waves")


def test_the_columns_of_a_policy(sandbox: Kubectl) -> None:
    sandbox.apply(policy())
    sandbox.write_status("krpol", "standing", POLICY_STATUS)
    seen = columns(sandbox, "krpol")
    assert seen.pop("AGE")
    told = {"READY": "True", "REASON": "AwaitingApproval", "PLAN": "standing-lost-1", "NEXT": NOW}
    assert seen == {"NAME": "standing", **told}
    wide = columns(sandbox, "krpol", "-o", "wide")
    assert (wide["CLUSTER"], wide["TRIGGER"], wide["MESSAGE"]) == ("main", "lost", POLICY_STATUS["summary"])


def test_all_kinds_are_in_one_category(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.apply(cluster())
    sandbox.apply(plan())
    sandbox.apply(decommission())
    sandbox.apply(policy())
    assert sandbox("get", "kafka-reassign", "-o", "name").split() == [
        "brokerdecommission.kafka.reassign.dev/retire-5",
        "kafkacluster.kafka.reassign.dev/main",
        "partitionreassignment.kafka.reassign.dev/move",
        "reassignmentplan.kafka.reassign.dev/drain",
        "reassignmentpolicy.kafka.reassign.dev/standing",
    ]


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("kpr", "what is still in flight goes back to its original replicas"),
        ("kpr.spec.partitions.replicas", "The first is the preferred leader."),
        ("kpr.spec.deletionPolicy", "Orphan leaves them moving"),
        ("kpr.status.partitions.addingReplicas", "Brokers whose replica is being added now."),
        ("krp.spec.approvedDigest", "a copy of status.digest"),
        ("krp.spec.goal.balance.tolerancePercent", "Default: 10."),
        ("kcl.spec.limits.movesPerBroker", "Default: 5."),
        ("kcl.spec.execution", "ENUM: Run Pause CancelOurs CancelAll"),
    ],
)
def test_kubectl_explains_a_field(kubectl: Kubectl, field: str, told: str) -> None:
    assert told in " ".join(kubectl("explain", field).split())


def test_kubectl_wait_sees_a_condition_only_for_the_current_generation(sandbox: Kubectl) -> None:
    def status(generation: int) -> dict[str, Any]:
        condition = Condition(
            type="Succeeded",
            status=ConditionStatus.TRUE,
            observed_generation=generation,
            last_transition_time=datetime.now(UTC),
            reason="Succeeded",
            message="all partitions are on their target replicas",
        )
        return PartitionReassignmentStatus(observed_generation=generation, conditions=(condition,)).wire()

    sandbox.apply(reassignment())
    sandbox.write_status("kpr", "move", status(1))
    assert "condition met" in sandbox("wait", "kpr/move", "--for=condition=Succeeded", "--timeout=5s")
    sandbox.apply(reassignment(suspend=True))
    with pytest.raises(AssertionError, match="timed out"):
        sandbox("wait", "kpr/move", "--for=condition=Succeeded", "--timeout=1s")
    sandbox.write_status("kpr", "move", status(2))
    assert "condition met" in sandbox("wait", "kpr/move", "--for=condition=Succeeded", "--timeout=5s")


def test_an_empty_status_of_the_models_is_accepted(sandbox: Kubectl) -> None:
    sandbox.apply(reassignment())
    sandbox.apply(cluster())
    sandbox.write_status("kpr", "move", PartitionReassignmentStatus().wire())
    sandbox.write_status("kcl", "main", KafkaClusterStatus().wire())
    sandbox.apply(plan())
    sandbox.write_status("krp", "drain", ReassignmentPlanStatus().wire())
    assert PartitionReassignment.parse(sandbox.read("kpr", "move")).status == PartitionReassignmentStatus()
