"""A whole cluster as real brokers show it: surveyed, kept in a snapshot; assigned and verified from outside."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from localplatform.brokers import rack
from localplatform.workload import HELD
from reassign.api.config_keys import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from reassign.api.kafka_cluster import KafkaCluster
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from reassign.core.model.steps import Alter
from reassign.core.survey import survey
from reassign.files import snapshots
from reassign.files.tables import Config
from reassign.inspect import cluster
from reassign.inspect.cluster import read_only
from reassign.inspect.snapshot import snapshot
from reassign.kafka.connection import Connection
from reassign.planning.problem.model import Cluster
from tests.kafka.harness import MEGABYTE, Kafka, eventually
from tests.unit.cli import kafka_cluster, run


def surveyed(kafka: Kafka) -> Cluster:
    return survey(asyncio.run(kafka.client.observe_everything()))


def row_of(cluster: Cluster, tp: TopicPartition) -> int:
    topic = cluster.topics.index(tp.topic)
    return next(
        i for i in range(len(cluster.topic)) if (cluster.topic[i], cluster.partition[i]) == (topic, tp.partition)
    )


def replicas_of(cluster: Cluster, tp: TopicPartition) -> list[int]:
    return [int(cluster.brokers[i]) for i in cluster.replicas[row_of(cluster, tp)] if i >= 0]


def test_a_survey_has_every_topic_with_its_replicas_sizes_and_directories(kafka: Kafka) -> None:
    name = kafka.topic([2, 0, 1], [3, 1, 0], megabytes=2)
    full, empty = TopicPartition(name, 0), TopicPartition(name, 1)

    found = surveyed(kafka)

    assert found.id == kafka.workload.metadata().cluster_id
    assert set(found.topics) == set(kafka.workload.metadata().topics)
    assert (found.brokers.tolist(), found.racks) == ([0, 1, 2, 3], tuple(map(rack, range(4))))
    assert found.alive.all()
    assert (replicas_of(found, full), replicas_of(found, empty)) == ([2, 0, 1], [3, 1, 0])
    assert 2 * MEGABYTE < found.sizes[row_of(found, full)] < 3 * MEGABYTE
    assert found.sizes[row_of(found, empty)] == 0
    log_dirs = kafka.observe(name, sizes_of=[full]).log_dirs
    for broker, directory in zip([2, 0, 1], found.directory[row_of(found, full)], strict=True):
        assert found.directories.broker[directory] == broker
        assert full in log_dirs[broker][found.directories.path[directory]].logs
    assert not found.in_flight.any()


def test_what_is_in_flight_is_where_it_goes(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        eventually(lambda: kafka.partition(tp).replicas == (2, 1, 0))
        found = surveyed(kafka)
        assert found.in_flight[row_of(found, tp)]
        assert replicas_of(found, tp) == [2, 1]
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_a_snapshot_is_the_cluster_that_was_observed(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([0, 1], megabytes=1)
    before = surveyed(kafka)

    ran = run("snapshot", tmp_path / "s", "--bootstrap-server", kafka.brokers.bootstrap_servers)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{tmp_path / 's'}: 4 brokers, {len(before.topics)} topics, ")
    kept = snapshots.read(tmp_path / "s").cluster
    tp = TopicPartition(name, 0)
    assert (kept.id, kept.topics, kept.racks) == (before.id, before.topics, before.racks)
    assert replicas_of(kept, tp) == [0, 1]
    assert kept.sizes[row_of(kept, tp)] == before.sizes[row_of(before, tp)] > MEGABYTE


def test_a_snapshot_has_leaders_isr_and_live_configurations(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([0, 1], [2, 3], megabytes=5, min_insync_replicas="2")
    unset = kafka.topic([0])
    tp, led = TopicPartition(name, 0), TopicPartition(name, 1)
    kafka.perform(Alter(led, (3, 2)))  # another preferred leader, but no election
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        eventually(lambda: kafka.partition(tp).replicas == (2, 1, 0) and kafka.partition(led).replicas == (3, 2))
        assert run("snapshot", tmp_path / "s", "--bootstrap-server", kafka.brokers.bootstrap_servers).code == 0
    found = snapshots.read(tmp_path / "s")
    lead = {p: int(found.cluster.brokers[found.leader[row_of(found.cluster, p)]]) for p in (tp, led)}
    in_sync = {p: [int(found.cluster.brokers[i]) for i in found.isr[row_of(found.cluster, p)] if i >= 0] for p in lead}
    assert (replicas_of(found.cluster, tp), lead[tp], in_sync[tp]) == ([2, 1], 0, [0, 1])
    assert (replicas_of(found.cluster, led), lead[led], in_sync[led]) == ([3, 2], 2, [2, 3])
    ours = [c for c in found.configs if c.name in (name, unset)]
    assert ours == [
        Config("topic", name, FOLLOWER_REPLICAS, "*"),
        Config("topic", name, LEADER_REPLICAS, "*"),
        Config("topic", name, "min.insync.replicas", "2"),
    ]
    rates = {c.name: c.value for c in found.configs if c.key == LEADER_RATE}
    assert rates == dict.fromkeys(("0", "1", "2", "3"), str(HELD))
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_a_topic_or_broker_removed_while_observing_does_no_harm(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    name = kafka.topic([0, 1], min_insync_replicas="2")
    observe = kafka.client.observe_everything

    async def observe_and_lose() -> Snapshot:
        seen = await observe()
        await asyncio.to_thread(kafka.delete, name)
        return replace(seen, brokers={**seen.brokers, 99: Broker(99)})

    monkeypatch.setattr(kafka.client, "observe_everything", observe_and_lose)
    taken, notes = asyncio.run(snapshot(kafka.client, None))
    assert name in taken.cluster.topics
    assert [c for c in taken.configs if c.name in (name, "99")] == []
    (note,) = notes
    assert note.startswith("the configurations of brokers are left out (99): ")


def test_a_topic_is_made_with_the_assignment_for_it(kafka: Kafka, tmp_path: Path) -> None:
    servers = ("--bootstrap-server", kafka.brokers.bootstrap_servers)
    name = f"assigned-{kafka.brokers.version.replace('.', '-')}"
    new = ("--topic", name, "--partitions", 2, "--replication-factor", 3)

    ran = run("assign", *servers, *new, "-o", "kafka-topics")

    kafka.brokers.tool("topics", "--create", "--topic", name, "--replica-assignment", ran.out.strip())
    rows = [tuple(map(int, row.split(":"))) for row in ran.out.strip().split(",")]
    eventually(lambda: [kafka.partition(TopicPartition(name, n)).replicas for n in range(2)] == rows)


def test_a_manifest_is_verified_against_the_brokers_and_nothing_moves(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([0, 1], [1, 2], megabytes=1)
    moves = {0: [2, 1], 1: [1, 9]}
    manifest = {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": "m", "namespace": "n"},
        "spec": {
            "clusterRef": {"name": "c"},
            "partitions": [{"topic": name, "partition": p, "replicas": moves[p]} for p in moves],
        },
    }
    (tmp_path / "m.yaml").write_text(json.dumps(manifest))

    ran = run("verify", "-f", tmp_path / "m.yaml", "--bootstrap-server", kafka.brokers.bootstrap_servers)

    first, second = ran.out.splitlines()
    assert (ran.code, ran.err) == (1, "")
    assert first.startswith(f"n/m {name}-0: would copy ")
    assert first.endswith("B to broker 2")
    assert second.startswith(f"n/m {name}-1: blocked, UnknownBroker: ")
    assert kafka.settled(TopicPartition(name, 0), [0, 1])


def test_list_has_moves_that_no_resource_owns_in_the_stock_tools_form(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(*_: object) -> tuple[Connection, KafkaCluster]:
        return Connection(kafka.brokers.bootstrap_servers), KafkaCluster.parse(kafka_cluster())

    monkeypatch.setattr(cluster, "resolve", resolve)
    tp = TopicPartition(kafka.topic([0, 1], megabytes=1), 0)
    with kafka.held(tp.topic):
        kafka.perform(Alter(tp, (2, 1)))
        ran = run("list", "--cluster", "main", "-n", "kafka", "-o", "reassignment-json")
        (entry,) = [e for e in json.loads(ran.out)["partitions"] if e["topic"] == tp.topic]
        assert entry == {"topic": tp.topic, "partition": 0, "replicas": [2, 1]}
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_the_command_lines_client_writes_nothing_whatever_it_is_asked(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)

    async def write() -> None:
        async with read_only(Connection(kafka.brokers.bootstrap_servers)) as client:
            await client.perform([Alter(tp, (1, 0))])

    with pytest.raises(AssertionError, match="a read-only client cannot write"):
        asyncio.run(write())
    assert kafka.settled(tp, [0, 1])


def test_a_plan_from_a_snapshot_passes_every_check_on_its_brokers(kafka: Kafka, tmp_path: Path) -> None:
    name = kafka.topic([3, 0], [2, 3], [0, 1], megabytes=2)
    servers = ("--bootstrap-server", kafka.brokers.bootstrap_servers)
    assert run("snapshot", tmp_path / "s", *servers).code == 0

    drain = ("--snapshot", tmp_path / "s", "--include", name, "--drain-broker", 3)
    planned = run("plan", *drain, "-o", "manifests", "--cluster", "c", "-n", "n")
    (tmp_path / "m.yaml").write_text(planned.out)
    verified = run("verify", "-f", tmp_path / "m.yaml", *servers)

    assert (planned.code, planned.err) == (0, "")
    (manifest,) = yaml.safe_load_all(planned.out)
    targets = {entry["partition"]: entry["replicas"] for entry in manifest["spec"]["partitions"]}
    assert targets == {0: [1, 0], 1: [2, 1]}  # broker 1 is the other one of broker 3's site
    assert (verified.code, verified.err) == (0, "")
    assert [line.partition(": ")[2].endswith("B to broker 1") for line in verified.out.splitlines()] == [True, True]
