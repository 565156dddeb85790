"""The command `verify`: the operator's checks on manifests, with nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reassign.core.model.snapshot import Broker
from tests.unit.cli import API, GIB, P0, P1, Live, Object, entry, error_of, kafka_cluster, manifest, run, sim
from tests.unit.sim import SimKafka


@pytest.fixture
def kafka() -> SimKafka:
    return sim()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "move.yaml"


def verify(file: Path, *manifests: Object, output: str = "table", where: tuple[str, ...] = ()) -> Any:
    file.write_text(yaml.safe_dump_all(manifests))
    return run("verify", "-f", file, "-n", "kafka", "-o", output, *where)


def test_each_entry_is_a_line_with_what_would_be_copied(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    assert verify(file, manifest(entry(0, 2, 3), entry(1, 1, 0))) == (
        0,
        "kafka/move orders-0: would copy 1.0 GiB to each of brokers 2 and 3\nkafka/move orders-1: is at its target\n",
        "",
    )
    assert kafka.writes == []


def test_what_would_be_blocked_makes_the_answer_no(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    kafka.brokers[3] = Broker(3, fenced=True)
    ran = verify(file, manifest(entry(0, 2, 4), entry(1, 1, 3)))
    assert ran.code == 1
    assert ran.out.splitlines()[1].startswith("kafka/move orders-1: blocked, BrokerFenced: broker 3 is fenced")


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (entry(0, 2, 99), "UnknownBroker"),
        (entry(0, 2), "ReplicationFactorChange"),
        (entry(0, 2, 3, expectedReplicas=[4, 5]), "ExpectedReplicasMismatch"),
        (entry(7, 2, 3), "UnknownTopicOrPartition"),
        (entry(0, 2, 3, logDirs=["/c", "any"]), "UnknownLogDir"),
    ],
)
def test_the_checks_are_the_operators(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch, entries: Object, reason: str
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    ran = verify(file, manifest(entries), output="json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert not found["passed"]
    assert [(one["state"], one["reason"]) for one in found["entries"]] == [("Blocked", reason)]


def test_what_another_resource_holds_is_claimed(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.move_as_another(P0, (2, 3))
    other = manifest(entry(0, 2, 3), name="other", namespace="kafka")
    given = {"uid": "o", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    other["metadata"] |= given | {"finalizers": ["kafka.reassign.dev/cancel"]}
    other["status"] = {"observedGeneration": 1}
    Live(kafka, kafka_cluster(), other).serve(monkeypatch)
    assert (
        "PartitionClaimed: the PartitionReassignment kafka/other has it" in verify(file, manifest(entry(0, 4, 5))).out
    )
    # the manifest itself, applied already, is not in its own way
    ran = verify(file, manifest(entry(0, 2, 3), name="other"))
    assert "PartitionClaimed" not in ran.out


def applied(*entries: Object, state: str, target: list[int], whole: bool = True) -> Object:
    """The manifest as it is applied: its first entry is in this state, said by its status, or else by its record."""
    obj = manifest(*entries, namespace="kafka")
    given = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    obj["metadata"] |= given | {"finalizers": ["kafka.reassign.dev/cancel"]}
    detail = {"partition": 0, "originalReplicas": [0, 1], "targetReplicas": target, "state": state}
    obj["status"] = {"observedGeneration": 1, "progress": {"partitionsTotal": 1, "partitionsInFlight": 1}}
    if whole:
        obj["status"]["partitions"] = [{"topic": "orders", **detail}]
    return obj


def record(state: str, target: list[int]) -> Object:
    moves = {"partition": 0, "originalReplicas": [0, 1], "targetReplicas": target, "state": state}
    owner = {"kind": "PartitionReassignment", "name": "move", "uid": "u"}
    return {
        "kind": "ReassignmentRecord",
        "metadata": {"name": "move-1", "namespace": "kafka", "ownerReferences": [owner]},
        "spec": {
            "clusterRef": {"name": "main", "namespace": "kafka"},
            "part": 0,
            "topics": [{"topic": "orders", "topicId": "t", "partitions": [moves]}],
        },
    }


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("state", ["InFlight", "Cancelling"])
def test_what_the_manifest_itself_has_in_flight_is_not_anothers(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch, state: str, whole: bool
) -> None:
    kafka.move_as_another(P0, (2, 3))
    live = applied(entry(0, 2, 3), state=state, target=[2, 3], whole=whole)
    Live(kafka, kafka_cluster(), live, record(state, [2, 3])).serve(monkeypatch)
    assert verify(file, manifest(entry(0, 2, 3))) == (0, "kafka/move orders-0: is in flight already\n", "")
    edited = verify(file, manifest(entry(0, 4, 5)))
    assert (edited.code, edited.err) == (0, "")
    assert edited.out.startswith("kafka/move orders-0: is in flight already, to 2 3 as it is applied now: that move")
    assert (
        "PartitionClaimed: the PartitionReassignment kafka/move has it"
        in verify(file, manifest(entry(0, 2, 3), name="other")).out
    )


def test_what_has_ended_is_moved_by_another(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.move_as_another(P0, (2, 3))
    Live(kafka, kafka_cluster(), applied(entry(0, 2, 3), state="Cancelled", target=[2, 3])).serve(monkeypatch)
    assert "blocked, InFlightElsewhere: another client" in verify(file, manifest(entry(0, 2, 3))).out


def test_two_manifests_of_a_file_cannot_have_one_partition(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    first, second = manifest(entry(0, 2, 3), entry(1, 2, 3)), manifest(entry(0, 4, 5), entry(1, 2, 3), name="second")
    ran = verify(file, first, second)
    blocked = [line for line in ran.out.splitlines() if "blocked" in line]
    assert (ran.code, len(blocked)) == (1, 1)
    assert blocked[0].startswith("kafka/second orders-0: blocked, PartitionClaimed: kafka/move beside it moves this")
    back = manifest(entry(0, 0, 1), name="back")
    assert "kafka/back orders-0: blocked, PartitionClaimed" in verify(file, first, back).out


@pytest.mark.parametrize("fields", [{"suspend": True}, {"mode": "DryRun"}])
@pytest.mark.parametrize("order", [1, -1])
def test_a_manifest_that_does_not_begin_claims_nothing(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch, fields: Object, order: int
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    both = [manifest(entry(0, 2, 3)), manifest(entry(0, 4, 5), name="second", **fields)]
    assert verify(file, *both[::order]).code == 0


def test_what_is_settled_holds_nothing(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = manifest(entry(0, 2, 3), name="other", namespace="kafka")
    given = {"uid": "o", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    other["metadata"] |= given
    other["status"] = {"observedGeneration": 1, "completionTime": "2026-01-01T00:00:00Z"}
    Live(kafka, kafka_cluster(), other).serve(monkeypatch)
    ran = verify(file, manifest(entry(0, 4, 5)))
    assert (ran.code, "PartitionClaimed" in ran.out) == (0, False)


def test_the_clusters_limits_count(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Live(kafka, kafka_cluster(limits={"maxThrottle": "10Mi"})).serve(monkeypatch)
    ran = verify(file, manifest(entry(0, 2, 3), throttle={"interBroker": "50Mi"}))
    assert ran.code == 1
    assert ran.out.startswith("kafka/move: blocked, ThrottleAboveMaximum: ")


def test_a_namespace_that_the_cluster_does_not_allow_is_refused(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    assert "NamespaceNotAllowed" in error_of(verify(file, manifest(entry(0, 2, 3), namespace="team-a")), 2)
    allowed = kafka_cluster(allowedNamespaces=[{"name": "team-a", "topics": ["other-*"]}])
    Live(kafka, allowed).serve(monkeypatch)
    ran = verify(file, manifest(entry(0, 2, 3), namespace="team-a"))
    assert (ran.code, "blocked, NamespaceNotAllowed" in ran.out) == (1, True)


def test_brokers_of_another_cluster_than_the_kafka_clusters_are_refused(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster() | {"status": {"clusterId": "another"}}).serve(monkeypatch)
    assert "ClusterIdChanged" in error_of(verify(file, manifest(entry(0, 2, 3))), 3)
    ran = run("snapshot", file.parent / "s", "--cluster", "main", "-n", "kafka")
    assert "ClusterIdChanged" in error_of(ran, 3)


def test_bootstrap_servers_need_no_kafka_cluster(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Live(kafka).serve(monkeypatch)
    assert verify(file, manifest(entry(0, 2, 3)), where=("--bootstrap-server", "b:9092")).code == 0
    assert "there is no KafkaCluster main in namespace kafka" in error_of(verify(file, manifest(entry(0, 2, 3))), 2)


def test_a_name_of_any_length_is_verified(kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    assert verify(file, manifest(entry(0, 2, 3), name="a" * 253)).code == 0


def test_several_manifests_are_judged_together_if_they_are_of_one_cluster(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    ran = verify(file, manifest(entry(0, 2, 3)), manifest(entry(1, 2, 3), name="second"))
    assert [line.partition(":")[0] for line in ran.out.splitlines()] == ["kafka/move orders-0", "kafka/second orders-1"]
    other = manifest(entry(1, 2, 3), name="second", clusterRef={"name": "other"})
    assert "the manifests are for kafka/main and kafka/other" in error_of(
        verify(file, manifest(entry(0, 2, 3)), other), 2
    )


def test_a_manifest_can_come_from_stdin(kafka: SimKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    text = json.dumps(manifest(entry(0, 2, 3)))
    assert run("verify", "-f", "-", "-n", "kafka", stdin=text).code == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no PartitionReassignment"),
        ("{", "is neither JSON nor YAML at line"),
        ("kind: a\nkind: b", "kind is repeated at line 2"),
        ("a: [1\n b: ]", "is neither JSON nor YAML at line"),
        ("5", "has a number, not only PartitionReassignments"),
        ("- [a]", "has a list, not only"),
        ("just words", "has a text, not only"),
        ("true", "has a boolean, not only"),
        (
            '{"version": 1, "partitions": []}',
            "is the stock tool's JSON; convert it first: kubectl kafka-reassign convert",
        ),
        ("a: 5", "has a map without a kind, not only PartitionReassignments"),
        ("kind: ConfigMap", "has a ConfigMap, not only PartitionReassignments"),
        ("kind: PartitionReassignment\napiVersion: kafka.reassign.dev/v9", "is of kafka.reassign.dev/v9"),
        (f"kind: PartitionReassignment\napiVersion: {API}", "has no metadata.name"),
        (yaml.safe_dump(manifest(entry(0, 1), name="A/b")), "no object can have the name 'A/b'"),
        (yaml.safe_dump(manifest(entry(0, 1), namespace="../x")), "no object can have the namespace '../x'"),
        (yaml.safe_dump(manifest(entry(0, 1), frob=1)), "spec.frob: there is no such field"),
        (yaml.safe_dump(manifest(entry(0, 1, log_dirs=["/a"]))), "spec.partitions.0.log_dirs: there is no such field"),
        (yaml.safe_dump(manifest(entry(0, True))), "spec.partitions.0.replicas.0: it is no whole number"),
        (yaml.safe_dump(manifest(entry(0, "1"))), "spec.partitions.0.replicas.0: it is no whole number"),
        (yaml.safe_dump(manifest(entry(0, 1), suspend="no")), "spec.suspend: it is neither true nor false"),
        (yaml.safe_dump(manifest(entry(0, 1), frob={(1, 2): 3})), "is neither JSON nor YAML"),
        (yaml.safe_dump(manifest(entry(0, 1))) + "  frob: &a [*a]\n", "is nothing that JSON can hold"),
        (yaml.safe_dump(manifest()), "spec.partitions: "),
        (yaml.safe_dump(manifest(entry(0, -1))), "spec.partitions.0.replicas.0: "),
        (yaml.safe_dump(manifest(entry(0, 1, 1))), "partition 0 of orders names a broker more than once"),
        (yaml.safe_dump(manifest(entry(0, 1), entry(0, 2))), "partition 0 of orders is there twice"),
        (yaml.safe_dump(manifest(entry(0, 1, 2, logDirs=["any"]))), "has 1 logDirs for 2 replicas"),
    ],
)
def test_a_file_that_is_not_good_is_refused_with_what_is_wrong(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    assert why in error_of(run("verify", "-f", file), 2)


@pytest.mark.parametrize("command", [("convert",), ("verify",), ("rollback",)])
@pytest.mark.parametrize(
    ("text", "why"),
    [("", "has no PartitionReassignment"), ("a: [", "cannot be read"), ("kind: Pod", "has a Pod")],
)
def test_standard_input_is_named_as_such(command: tuple[str, ...], text: str, why: str) -> None:
    said = error_of(run(*command, "-f", "-", "-n", "kafka", stdin=text), 2)
    assert said.startswith("error: standard input")
    assert why in said or (command == ("convert",) and "it is not JSON" in said)


def test_a_file_that_is_not_there_or_not_text(file: Path) -> None:
    assert "No such file" in error_of(run("verify", "-f", file), 2)
    file.write_bytes(b"\xff\xfe\x00")
    assert "it is not text" in error_of(run("verify", "-f", file), 2)


def test_a_size_is_known_of_every_partition_that_is_verified(
    kafka: SimKafka, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Live(kafka, kafka_cluster()).serve(monkeypatch)
    assert kafka.sizes is not None
    assert kafka.sizes[P1] == {1: 2 * GIB, 0: 2 * GIB}
    assert "would copy 2.0 GiB to broker 2" in verify(file, manifest(entry(1, 2, 0))).out
