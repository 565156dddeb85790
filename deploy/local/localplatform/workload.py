"""Topics with records, and moves that take their time: what the demo, the tests and the benchmarks work on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kafka.admin import KafkaAdminClient

__all__ = ["Move", "Workload"]

SECONDS = 20.0
RECORD_BYTES = 16 * 1024
HELD = 1000
"""Bytes per second that hold a move: brokers then copy about 1 MB every ten seconds."""
RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Move(NamedTuple):
    """A reassignment in flight, as the brokers list it."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class Workload:
    """Works on the brokers directly, as somebody beside the operator would."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def ask(self, call: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> dict[Any, Any]:
        """Call an admin client and wait for all that it answers.

        Each time a new one: an older one would wait for the broker that it knows as controller, dead or alive.
        """
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        return {key: future.result(SECONDS) for key, future in call(admin).items()}

    def metadata(self) -> ClusterMetadata:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0}).list_topics(timeout=SECONDS)

    def create(
        self,
        topic: str,
        replicas: Sequence[Sequence[int]],
        bytes_per_partition: int = 0,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic with these replicas for each partition, in order, and fill it; returns when all are in sync."""
        new = NewTopic(topic, len(replicas), replica_assignment=[list(r) for r in replicas], config=dict(config or {}))
        try:
            self.ask(lambda admin: admin.create_topics([new], operation_timeout=SECONDS))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # the answer to an earlier request was lost
                raise
        _wait(f"topic {topic} is there", lambda: self.replicas(topic) == {i: list(r) for i, r in enumerate(replicas)})
        if bytes_per_partition:
            self._fill(topic, range(len(replicas)), bytes_per_partition)
        _wait(f"{topic} is in sync", lambda: all(map(set.__eq__, *self._sets(topic))))

    def _fill(self, topic: str, partitions: Iterable[int], bytes_per_partition: int) -> None:
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_servers, "acks": "all", "linger.ms": 20, "batch.size": 262144}
        )
        for number in range(bytes_per_partition // RECORD_BYTES):
            for partition in partitions:
                while True:
                    try:
                        producer.produce(topic, os.urandom(RECORD_BYTES), partition=partition)
                        break
                    except BufferError:
                        producer.poll(0.1)
            if number % 16 == 0:
                producer.poll(0)
        if left := producer.flush(120):
            raise TimeoutError(f"{left} records were not taken by the brokers")

    def delete(self, topics: Iterable[str]) -> None:
        """Delete the topics that there are; returns when they are gone."""
        found = sorted(set(topics) & set(self.metadata().topics))
        if found:
            self.ask(lambda admin: admin.delete_topics(found, operation_timeout=SECONDS))
            _wait("the topics are gone", lambda: not set(found) & set(self.metadata().topics))

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """The replicas of each partition, in order."""
        return {number: [node.id for node in p.replicas] for number, p in self._partitions(topic).items()}

    def leaders(self, topic: str) -> dict[int, int]:
        return {number: p.leader.id for number, p in self._partitions(topic).items() if p.leader}

    def _sets(self, topic: str) -> tuple[list[set[int]], list[set[int]]]:
        partitions = self._partitions(topic).values()
        return [{n.id for n in p.replicas} for p in partitions], [{n.id for n in p.isr} for p in partitions]

    def in_sync(self, topic: str, targets: Mapping[int, Iterable[int]]) -> bool:
        """Whether these replicas of each partition are all in sync."""
        found = self._partitions(topic)
        return all(set(target) <= {node.id for node in found[number].isr} for number, target in targets.items())

    def _partitions(self, topic: str) -> dict[int, Any]:
        try:
            wanted = TopicCollection([topic])
            described = self.ask(lambda admin: admin.describe_topics(wanted, request_timeout=SECONDS))
            return {p.id: p for p in described[topic].partitions}
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return {}
            raise

    def in_flight(self, topics: Iterable[str] | None = None) -> dict[tuple[str, int], Move]:
        """What is being reassigned now, of these topics or of all."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        try:
            listed = admin.list_partition_reassignments()
        finally:
            admin.close()
        wanted = None if topics is None else set(topics)
        return {
            (tp.topic, tp.partition): Move(m["replicas"], m["adding_replicas"], m["removing_replicas"])
            for tp, m in listed.items()
            if wanted is None or tp.topic in wanted
        }

    def throttle(self, topics: Iterable[str], rate: int = HELD) -> None:
        """Let moves of these topics use no more than `rate` bytes per second on each broker."""
        self._set_rates(str(rate))
        self._alter(
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[_set(name, "*") for name in REPLICAS])
            for topic in topics
        )

    def unthrottle(self, topics: Iterable[str]) -> None:
        """Let moves of these topics go at full speed; whoever waits for the old rate is woken by the new one."""
        self._set_rates(str(10**12))
        self._alter(
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[_delete(name) for name in REPLICAS])
            for topic in topics
        )
        self._set_rates(None)

    def _set_rates(self, value: str | None) -> None:
        change = [_delete(name) if value is None else _set(name, value) for name in RATES]
        places = [
            ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=change)
            for broker in self.metadata().brokers
        ]

        def alter(admin: AdminClient) -> dict[Any, Future[Any]]:
            answers = (admin.incremental_alter_configs([place], request_timeout=SECONDS) for place in places)
            return {place: future for answer in answers for place, future in answer.items()}

        self.ask(alter)  # a request for each broker: the client takes one at a time

    def _alter(self, resources: Iterable[ConfigResource]) -> None:
        listed = list(resources)
        if listed:
            self.ask(lambda admin: admin.incremental_alter_configs(listed, request_timeout=SECONDS))


def _set(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)


def _delete(name: str) -> ConfigEntry:
    return ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)


def _wait(what: str, condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.1)
