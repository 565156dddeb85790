"""The log directories of real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from reassign.core.model.snapshot import Snapshot, TopicPartition
from tests.kafka.harness import Kafka, eventually


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
