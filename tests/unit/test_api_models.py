"""The resources as models: what is read, what is written, what is filled in."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from reassign.api.common import Condition, ConditionStatus, Model, byte_limit_of, bytes_of, bytes_per_second
from reassign.api.goal import Awareness, By
from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterSpec, KafkaClusterStatus, ThrottleStatus
from reassign.api.partition_reassignment import (
    DeletionPolicy,
    Mode,
    PartitionDetail,
    PartitionReassignment,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
    PartitionState,
    RecordState,
)
from reassign.api.reassignment_plan import Approval, ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.api.reassignment_record import ReassignmentRecord
from reassign.planning.problem import model

SPEC = {"clusterRef": {"name": "main"}, "partitions": [{"topic": "orders", "partition": 0, "replicas": [3, 1, 2]}]}


def test_an_object_without_a_status_reads_as_one_with_an_empty_status() -> None:
    metadata = {"name": "move", "namespace": "kafka", "uid": "u", "resourceVersion": "7", "managedFields": []}
    bare = PartitionReassignment.parse({"metadata": metadata, "spec": SPEC})
    empty = PartitionReassignment.parse({"metadata": metadata, "spec": SPEC, "status": {}})
    assert bare == empty
    assert bare.metadata.resource_version == "7"


def test_fields_that_earlier_versions_stored_are_left_out() -> None:
    metadata = {"name": "main", "namespace": "kafka", "uid": "u", "resourceVersion": "7"}
    entry = {"partition": 0, "originalReplicas": [1], "targetReplicas": [2], "state": "InFlight"}
    record = [{"topic": "orders", "topicId": "id", "partitions": [entry]}]
    status = {"observedGeneration": 1, "record": record}
    move = PartitionReassignment.parse({"metadata": metadata, "spec": SPEC, "status": status})
    assert move.status == PartitionReassignmentStatus(observed_generation=1)
    rate = {"name": "follower.replication.throttled.rate", "value": "1024"}
    throttle = {"interBroker": 1024, "brokers": [{"broker": 1, "configs": [rate]}], "topics": []}
    spec = {"bootstrapServers": "b0:9092"}
    cluster = KafkaCluster.parse({"metadata": metadata, "spec": spec, "status": {"throttle": throttle}})
    assert cluster.status.throttle == ThrottleStatus(inter_broker=1024)
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0, "leftInStatuses": ["u"], "topics": record}
    [topic] = ReassignmentRecord.parse({"metadata": metadata, "spec": spec}).spec.topics
    assert topic.partitions[0].state is RecordState.IN_FLIGHT


def test_a_minimal_spec_gets_the_defaults_of_the_contract() -> None:
    spec = PartitionReassignmentSpec.parse(SPEC)
    assert spec.mode is Mode.EXECUTE
    assert spec.deletion_policy is DeletionPolicy.CANCEL
    assert spec.stall_timeout_seconds == 600
    assert spec.deadline_seconds is None
    cluster = KafkaClusterSpec.parse({"bootstrapServers": "b0:9092"})
    assert (cluster.limits.partitions_in_flight, cluster.limits.moves_per_broker) == (200, 5)
    assert cluster.tls is None


def test_empty_tls_is_not_the_same_as_no_tls() -> None:
    assert KafkaClusterSpec.parse({"bootstrapServers": "b0:9092", "tls": {}}).tls is not None


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("https://id.example.org", True),
        ("https://id.example.org:8443/realms/kafka/token?tenant=a", True),
        ("http://localhost:8080/token", True),
        ("http://127.0.0.1/token", True),
        ("http://[::1]:8080/token", True),
        ("http://id.example.org/token", False),
        ("http://localhost.example.org/token", False),
        ("http://localhost@example.org/token", False),
        ("http://127.0.0.1:80@example.org/token", False),
        ("https://user:password@id.example.org/token", False),
        ("https:///token", False),
        ("ftp://id.example.org/token", False),
        ("https://id.example.org/token#here", False),
        ("https://id.example.org/a token", False),
    ],
)
def test_a_clients_secret_goes_over_https_or_to_localhost(url: str, accepted: bool) -> None:
    oauth = {"tokenEndpointUrl": url, "clientId": "mover", "clientSecretRef": {"name": "oauth", "key": "secret"}}
    spec = {"bootstrapServers": "b0:9092", "sasl": {"mechanism": "OAUTHBEARER", "oauth": oauth}}
    if accepted:
        assert KafkaClusterSpec.parse(spec).wire()["sasl"] == {**spec["sasl"], "allowPlaintext": False}
    else:
        with pytest.raises(ValidationError):
            KafkaClusterSpec.parse(spec)


def test_fields_of_a_newer_version_are_ignored() -> None:
    cluster = KafkaCluster.parse(
        {"metadata": {"name": "a", "namespace": "b"}, "spec": {"bootstrapServers": "b0:9092", "novelty": 1}}
    )
    assert "novelty" not in cluster.wire()["spec"]


@pytest.mark.parametrize("status", [{}, {"observedGeneration": -1}])
@pytest.mark.parametrize("kind", [KafkaClusterStatus, PartitionReassignmentStatus, ReassignmentPlanStatus])
def test_a_status_never_written_has_no_observed_generation(kind: type[Model], status: dict[str, int]) -> None:
    assert kind.parse(status) == kind()
    assert kind.parse(status).wire().get("observedGeneration") is None
    assert kind.parse(status).model_dump()["observed_generation"] is None


def test_a_status_that_was_written_has_its_generation() -> None:
    assert KafkaClusterStatus.parse({"observedGeneration": 2}).observed_generation == 2


def test_a_stored_cluster_that_the_rules_now_refuse_is_still_read() -> None:
    spec = KafkaClusterSpec.parse(
        {
            "bootstrapServers": "b:1",
            "sasl": {"mechanism": "PLAIN", "username": "u", "passwordSecretRef": {"name": "s", "key": "k"}},
            "limits": {"maxThrottle": "1Mi"},
            "throttle": {"interBroker": "2Mi"},
        }
    )
    assert spec.sasl is not None
    assert not spec.sasl.allow_plaintext


def test_a_message_too_long_for_the_schema_is_cut() -> None:
    blocked = PartitionDetail(topic="orders", partition=0, state=PartitionState.BLOCKED, message="why " * 500)
    assert blocked.message is not None
    assert len(blocked.message) == 1024
    assert blocked.message.endswith("why…")


def test_a_status_is_written_in_camel_case_and_reads_back_the_same() -> None:
    status = PartitionReassignmentStatus(
        observed_generation=3,
        conditions=(
            Condition(
                type="Ready",
                status=ConditionStatus.FALSE,
                observed_generation=3,
                last_transition_time=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
                reason="Moving",
                message="1 of 2 partitions",
            ),
        ),
        partitions=(
            PartitionDetail(topic="orders", partition=0, state=PartitionState.PENDING, target_replicas=(3, 1)),
        ),
    )
    wire = status.wire()
    assert wire["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert wire["partitions"] == [{"topic": "orders", "partition": 0, "state": "Pending", "targetReplicas": [3, 1]}]
    assert "progress" not in wire
    assert PartitionReassignmentStatus.parse(wire) == status


def test_times_are_kept_in_utc_whatever_zone_they_come_from() -> None:
    east = timezone(timedelta(hours=2))
    status = PartitionReassignmentStatus(start_time=datetime(2026, 1, 2, 3, 0, tzinfo=east))
    assert status.wire()["startTime"] == "2026-01-02T01:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        PartitionReassignmentStatus(start_time=datetime(2026, 1, 2, 3, 0))


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        (1024, 1024),
        ("1048576", 1048576),
        ("1Ki", 1024),
        ("50Mi", 50 * 2**20),
        ("1Ti", 2**40),
        ("2k", 2000),
        ("50M", 50_000_000),
        ("1.5Gi", 3 * 2**29),
        ("1e6", 1_000_000),
        ("2E6", 2_000_000),
        ("5000000m", 5000),
        ("1500000500m", 1_500_001),
        ("1e0005", 100_000),
        ("1.e+00000000000000000000000005", 100_000),
        ("0.00000000000000000001E+0025", 100_000),
        ("1023.9999999999", 1024),
    ],
)
def test_a_quantity_is_so_many_bytes_per_second(quantity: int | str, number: int) -> None:
    assert bytes_per_second(quantity) == number


OUT_OF_BOUNDS = [0, "0", "50m", 1023, "1023.999999999", "2Ti", "1Ei", "-1Mi", "1e99", f"1e{'9' * 30}", f"1e-{'9' * 29}"]
NO_QUANTITY = ["", "Mi", "1 Mi", "50MB", "1e", "1e5Ki", "\u0665\u0660Mi"]


@pytest.mark.parametrize("quantity", OUT_OF_BOUNDS + NO_QUANTITY)
def test_what_is_no_quantity_or_out_of_bounds_is_refused(quantity: int | str) -> None:
    with pytest.raises(ValueError, match=r"is not (a quantity|between)"):
        bytes_per_second(quantity)


def test_a_minimal_plan_gets_the_defaults_of_the_contract() -> None:
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "main"}, "goal": {"balance": {}}})
    assert (spec.topics.include, spec.topics.exclude, spec.topics.excluded) == (("*",), None, ("__*",))
    assert spec.goal.balance is not None
    assert spec.goal.balance.tolerance_percent == 10
    assert [by.value for by in spec.goal.balance.by] == [by.value for by in By]
    assert spec.racks.awareness.value == Awareness.TREE.value
    assert (spec.waves.max_partitions, spec.waves.max_bytes) == (200, None)
    assert spec.approval is Approval.REQUIRED
    assert spec.template.wire() == {}


@pytest.mark.parametrize(("quantity", "number"), [(0, 0), ("0", 0), ("1Mi", 2**20), (1, 1), ("1Pi", 2**50)])
def test_a_limit_of_bytes_may_be_zero(quantity: int | str, number: int) -> None:
    assert byte_limit_of(quantity) == number


@pytest.mark.parametrize("quantity", [-1, "-1", "1.1Pi", "500GB", "many"])
def test_a_limit_of_bytes_that_is_none_or_out_of_bounds_is_refused(quantity: int | str) -> None:
    with pytest.raises(ValueError, match=r"quantity such as 50Mi|between 0 and 1Pi bytes"):
        byte_limit_of(quantity)


def test_the_resource_and_the_planner_have_the_same_words() -> None:
    assert model.Awareness is Awareness
    assert model.By is By


@pytest.mark.parametrize(("quantity", "number"), [(1024, 1024), ("1Ki", 1024), ("500Gi", 500 * 2**30), ("1Pi", 2**50)])
def test_a_quantity_of_bytes_is_a_number(quantity: int | str, number: int) -> None:
    assert bytes_of(quantity) == number


@pytest.mark.parametrize("quantity", [1023, "1.1Pi", "500GB", "many"])
def test_a_quantity_of_bytes_that_is_none_or_out_of_bounds_is_refused(quantity: int | str) -> None:
    with pytest.raises(ValueError, match=r"quantity such as 50Mi|between 1Ki and 1Pi bytes"):
        bytes_of(quantity)
