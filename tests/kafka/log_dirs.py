"""The log directories of real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from reassign.core.model.snapshot import Snapshot, TopicPartition
from tests.kafka.harness import Kafka, eventually

TAKES_NO_NOTICE = "4.1.2"
"""A version that takes a cordon as it takes any configuration, and does nothing."""


def observe(kafka: Kafka, tp: TopicPartition, *brokers: int) -> Snapshot:
    """With the directories of these brokers: one that does not answer in time is asked again."""
    found: list[Snapshot] = []

    def answered() -> bool:
        found.append(kafka.observe(tp.topic, sizes_of=[tp], destinations=brokers))
        return found[-1].log_dirs.keys() >= set(brokers)

    eventually(answered)
    return found[-1]


def directory(kafka: Kafka, tp: TopicPartition, broker: int) -> str:
    """Where a broker has its log; empty when it has none."""
    directories = observe(kafka, tp, broker).log_dirs[broker]
    return next((path for path, found in directories.items() if tp in found.logs), "")


def copied(kafka: Kafka, tp: TopicPartition, broker: int) -> dict[str, int]:
    """The bytes of its future log, by the directory that it is in."""
    directories = observe(kafka, tp, broker).log_dirs[broker]
    return {path: found.futures[tp] for path, found in directories.items() if tp in found.futures}


def other_directory(kafka: Kafka, tp: TopicPartition, broker: int) -> str:
    return next(str(p) for p in kafka.brokers.log_dirs(broker) if str(p) != directory(kafka, tp, broker))


@contextmanager
def cordoned(kafka: Kafka, broker: int, directories: str) -> Iterator[None]:
    """Within the block no new replica gets into these directories of a broker (KIP-1066); `*` stands for all."""

    def send(operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry("cordoned.log.dirs", value, incremental_operation=operation)
        change = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
        kafka.workload.ask(lambda admin: admin.incremental_alter_configs([change]))

    send(AlterConfigOpType.SET, directories)
    try:
        yield
    finally:
        send(AlterConfigOpType.DELETE, None)


@contextmanager
def full_cordon(kafka: Kafka, tp: TopicPartition, broker: int) -> Iterator[None]:
    """Within the block, the broker says that all its directories are cordoned, and the controller knows."""
    with cordoned(kafka, broker, "*"):
        eventually(lambda: kafka.brokers.version == TAKES_NO_NOTICE or in_force(kafka, tp, broker))
        yield
    eventually(lambda: not in_force(kafka, tp, broker))


def in_force(kafka: Kafka, tp: TopicPartition, broker: int) -> bool:
    return all(directory.cordoned for directory in observe(kafka, tp, broker).log_dirs[broker].values())
