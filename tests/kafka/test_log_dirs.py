"""Replicas in the log directories of their brokers (KIP-113), and directories that can take none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError

from reassign.api.kafka_cluster import Limits
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Result
from reassign.core.tick import Memory, decide
from reassign.errors import Reason
from tests.kafka.harness import MEGABYTE, Kafka, eventually
from tests.kafka.log_dirs import TAKES_NO_NOTICE, copied, cordoned, directory, observe, other_directory
from tests.unit.sim import START, resource


def blocked(kafka: Kafka, tp: TopicPartition, replicas: Sequence[int], *log_dirs: str) -> str:
    """Why an entry may not start, judged on what the brokers show now; empty when it may."""
    entry = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
    asked = resource({}, partitions=[entry | ({"logDirs": list(log_dirs)} if log_dirs else {})])
    rules = ClusterRules(Limits(min_free_disk_percent=0))
    snapshot, memory = observe(kafka, tp, *replicas), Memory.begin(0.0)
    recent = memory.recent.observe(100.0, 100.0, snapshot.reassignments.keys(), snapshot.log_dirs)
    [verdict] = decide([asked], snapshot, ConfigRead(), replace(memory, recent=recent), rules, START).verdicts
    problem = verdict.rows[tp].said(SayingKind.PROBLEM)
    assert (problem is None) == bool(verdict.steps)
    return str(problem.reason) if problem else ""


@contextmanager
def failed(directory: Path) -> Iterator[None]:
    """A file stands where the directory was, so that its broker can write nothing there any more."""
    aside = directory.rename(directory.with_name("aside"))
    directory.touch()
    try:
        yield
    finally:
        directory.unlink()
        aside.rename(directory)


def test_a_replica_is_copied_to_the_other_directory_of_its_broker(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1], megabytes=2), 0)
    other = other_directory(kafka, tp, 0)
    assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]
    eventually(lambda: directory(kafka, tp, 0) == other and copied(kafka, tp, 0) == {})
    assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]  # safe to repeat
    assert copied(kafka, tp, 0) == {}


def test_a_replica_that_is_not_there_yet_gets_into_its_directory(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [0, 1], megabytes=1)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    a, b = map(str, kafka.brokers.log_dirs(2))
    steps = AlterLogDirs(first, ((2, b),)), Alter(first, (2, 1)), AlterLogDirs(second, ((2, a),)), Alter(second, (2, 1))
    assert kafka.perform(*steps) == [APPLIED] * 4
    eventually(lambda: kafka.settled(first, [2, 1]) and kafka.settled(second, [2, 1]))
    assert (directory(kafka, first, 2), directory(kafka, second, 2)) == (b, a)


def test_a_copy_shows_its_bytes_and_ends_when_it_is_sent_back(
    kafka: Kafka,
) -> None:
    name = kafka.topic([0, 1], megabytes=8)
    tp = TopicPartition(name, 0)
    here, other = directory(kafka, tp, 0), other_directory(kafka, tp, 0)
    with kafka.held(name):
        assert kafka.perform(AlterLogDirs(tp, ((0, other),))) == [APPLIED]
        eventually(lambda: 0 < copied(kafka, tp, 0).get(other, 0) < 8 * MEGABYTE)
        assert directory(kafka, tp, 0) == here
        assert kafka.perform(AlterLogDirs(tp, ((0, here),))) == [APPLIED]
        eventually(lambda: copied(kafka, tp, 0) == {})
    assert directory(kafka, tp, 0) == here


def test_a_directory_that_a_broker_does_not_have_is_refused(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    [outcome] = kafka.perform(AlterLogDirs(tp, ((0, "/nowhere"),)))
    assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.UNKNOWN_LOG_DIR)


def test_an_offline_directory_blocks_its_entry_until_it_is_fixed(kafka: Kafka) -> None:
    a, b = kafka.brokers.log_dirs(2)
    there, tp = TopicPartition(kafka.topic([2]), 0), TopicPartition(kafka.topic([0, 1], megabytes=1), 0)
    kafka.perform(AlterLogDirs(there, ((2, str(b)),)))
    eventually(lambda: directory(kafka, there, 2) == str(b))  # what it writes down of this one fails
    with failed(b):
        eventually(lambda: blocked(kafka, tp, (2, 1), str(b), "any") == "LogDirOffline")
        assert blocked(kafka, tp, (2, 1), str(a), "any") == ""
        assert blocked(kafka, tp, (2, 1)) == ""
    kafka.brokers.shut_down(2)
    kafka.brokers.restart(2)
    eventually(lambda: blocked(kafka, tp, (2, 1), str(b), "any") == "")
    eventually(lambda: kafka.settled(there, [2]))


def test_cordoned_directories_block_the_entries_that_would_get_into_them(kafka: Kafka) -> None:
    if kafka.brokers.version == "4.1.2":
        pytest.skip("the brokers from 4.3 have them (KIP-1066)")
    a, b = map(str, kafka.brokers.log_dirs(2))
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    with cordoned(kafka, 2, b):
        eventually(lambda: blocked(kafka, tp, (2, 1), b, "any") == "LogDirCordoned")
        assert blocked(kafka, tp, (2, 1), a, "any") == ""
        assert blocked(kafka, tp, (2, 1)) == ""
    with cordoned(kafka, 2, "*"):
        eventually(lambda: blocked(kafka, tp, (2, 1)) == "LogDirCordoned")
        assert blocked(kafka, tp, (1, 0)) == ""
    eventually(lambda: blocked(kafka, tp, (2, 1)) == "")


def test_brokers_say_which_of_them_are_cordoned_as_a_whole(kafka: Kafka) -> None:
    tp, b = TopicPartition(kafka.topic([2]), 0), str(kafka.brokers.log_dirs(2)[1])
    none_says = kafka.brokers.version == TAKES_NO_NOTICE

    def said(*brokers: int) -> bool:
        cluster_id, found = asyncio.run(kafka.client.observe_cordons())
        assert cluster_id == kafka.observe().cluster_id
        return found == {broker: None if none_says else broker in brokers for broker in range(4)}

    with cordoned(kafka, 2, "*"):
        eventually(lambda: said(2))
    eventually(said)
    with cordoned(kafka, 2, b):
        eventually(lambda: none_says or observe(kafka, tp, 2).log_dirs[2][b].cordoned is True)
        assert said()


def test_a_broker_refuses_to_confirm_the_id_of_another(kafka: Kafka) -> None:
    wire = kafka.client._wire

    async def confirm(broker: int) -> None:
        await wire._identify(await wire._connect(0, 2.0), broker, 2.0)

    wire._manager.run(confirm, 0)
    with pytest.raises(KafkaConnectionError, match="the address of another broker"):
        wire._manager.run(confirm, 1)
