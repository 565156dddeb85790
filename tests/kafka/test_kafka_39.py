"""Kafka 3.9, the oldest served: no guard of the replication factor, so that we hold it; a whole outage; ZooKeeper."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from localplatform.brokers import Brokers, libs, running
from localplatform.java import JVM
from localplatform.ports import free_base_port
from localplatform.processes import Processes
from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Outcome, Result
from reassign.errors import ClusterError, Reason
from reassign.kafka import wire
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from tests.kafka.harness import Kafka, eventually


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("kafka-39"), "3.9.2", brokers=2, controllers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kafka(brokers: Brokers) -> Iterator[Kafka]:
    found = Kafka(brokers)
    yield found
    found.close()


@pytest.fixture
def zookeeper_mode(tmp_path: Path) -> Iterator[str]:
    """The address of a broker that starts in ZooKeeper mode, which 3.9 is the last to have."""
    port = free_base_port()
    processes = Processes(tmp_path / "processes", tmp_path / "logs", end_with_us=True)
    (tmp_path / "zookeeper.properties").write_text(
        f"dataDir={tmp_path / 'zookeeper'}\nclientPort={port + 1}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n"
    )
    (tmp_path / "kafka.properties").write_text(
        f"broker.id=0\nzookeeper.connect=127.0.0.1:{port + 1}\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
        f"log.dirs={tmp_path / 'data'}\nlog.cleaner.dedupe.buffer.size=2097152\n"
    )
    mains = {"zookeeper": "org.apache.zookeeper.server.quorum.QuorumPeerMain", "kafka": "kafka.Kafka"}
    try:
        for name, main in mains.items():
            processes.start(name, ["java", *JVM, "-cp", f"{libs('3.9.2')}/*", main, tmp_path / f"{name}.properties"])
        yield f"127.0.0.1:{port}"
    finally:
        processes.stop()


def refused(message: str) -> Outcome:
    return Outcome(Result.REFUSED, Reason.REPLICATION_FACTOR_CHANGE, message)


def test_the_guard_is_emulated(kafka: Kafka) -> None:
    assert kafka.observe().guard is ReplicationFactorGuard.EMULATED


def test_a_replication_factor_change_is_refused_and_others_go_on(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [0, 1])
    bad, good = TopicPartition(name, 0), TopicPartition(name, 1)
    outcomes = kafka.perform(Alter(bad, (0,)), Alter(good, (1, 0)))
    assert outcomes == [refused("The replication factor is changed from 2 to 1"), APPLIED]
    eventually(lambda: kafka.settled(good, [1, 0]))
    assert kafka.settled(bad, [0, 1])


def test_what_the_brokers_refuse_is_refused_in_their_words(kafka: Kafka) -> None:
    known = TopicPartition(kafka.topic([0, 1]), 0)
    outcomes = kafka.perform(Alter(known, (0, 99)), Alter(TopicPartition("no-such-topic", 0), (0, 1)))
    assert [outcome.reason for outcome in outcomes] == [
        Reason.INVALID_REPLICA_ASSIGNMENT,
        Reason.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert "no such broker is registered" in outcomes[0].message


def test_without_brokers_steps_are_not_sent_until_they_are_back(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    for broker in kafka.brokers.ids:
        kafka.brokers.kill(broker)

    with pytest.raises(ClusterError) as caught:
        kafka.observe(tp.topic)
    [outcome] = kafka.perform(Alter(tp, (1, 0)))

    assert caught.value.reason is Reason.CLUSTER_UNREACHABLE
    assert outcome.result is Result.NOT_SENT

    for broker in kafka.brokers.ids:
        kafka.brokers.restart(broker)
    eventually(lambda: kafka.settled(tp, [0, 1]))
    assert kafka.perform(Alter(tp, (1, 0))) == [APPLIED]
    eventually(lambda: kafka.settled(tp, [1, 0]))


def refusal(servers: str) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        asyncio.run(KafkaClient.connect(Connection(servers), timeout=5))
    return caught.value


def test_an_older_kafka_is_not_served(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "OLDEST", (4, 0))
    error = refusal(brokers.bootstrap_servers)
    assert error.reason is Reason.CLUSTER_NOT_SUPPORTED
    assert error.message == "Kafka 4.0 or later is needed, this is 3.9"


def test_zookeeper_mode_is_refused_by_name(zookeeper_mode: str) -> None:
    eventually(lambda: refusal(zookeeper_mode).reason is not Reason.CLUSTER_UNREACHABLE)  # it takes a while to start
    error = refusal(zookeeper_mode)
    assert error.reason is Reason.CLUSTER_NOT_SUPPORTED
    assert "ZooKeeper mode" in error.message
