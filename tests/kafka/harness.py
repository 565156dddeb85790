"""What a test does to a real cluster besides what it tests: topics, records, throttles; and the adapter, awaited."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from localplatform.brokers import Brokers
from localplatform.processes import TIMEOUT, wait_until
from localplatform.workload import Workload
from reassign.core.model.configs import Change, ConfigResource
from reassign.core.model.forwarding import NO_DOUBTS, Doubts
from reassign.core.model.snapshot import Partition, Snapshot, TopicPartition
from reassign.core.model.steps import Outcome, Step
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kafka.throttles import Read

MEGABYTE = 1_000_000

_numbers = itertools.count()


class Kafka:
    """The adapter under test, each call awaited in a loop of its own; `workload` is the test's own way in."""

    def __init__(self, brokers: Brokers, connection: Connection | None = None, **options: Callable[[], None]) -> None:
        self.brokers = brokers
        self.workload = Workload(brokers.bootstrap_servers)
        connection = connection or Connection(brokers.bootstrap_servers)
        self.client = asyncio.run(KafkaClient.connect(connection, **options))  # type: ignore[arg-type]

    def close(self) -> None:
        asyncio.run(self.client.close())

    def observe(
        self,
        *topics: str,
        sizes_of: Collection[TopicPartition] | None = None,
        destinations: Collection[int] = (),
        doubts: Doubts = NO_DOUBTS,
    ) -> Snapshot:
        return asyncio.run(self.client.observe(topics, sizes_of, destinations, doubts))

    def perform(self, *steps: Step) -> list[Outcome]:
        """The outcomes in the order of the steps."""
        outcomes = asyncio.run(self.client.perform(steps))
        return [outcomes[step] for step in steps]

    def configs(self, *places: ConfigResource) -> Read:
        """The throttle configurations of these brokers and topics."""
        return asyncio.run(self.client.configs(places))

    def change(self, change: Change) -> Outcome:
        return asyncio.run(self.client.change([change]))[change]

    def partition(self, tp: TopicPartition) -> Partition:
        found = self.observe(tp.topic).partition(tp)
        assert found, f"there is no {tp}"
        return found

    def in_flight(self, tp: TopicPartition) -> bool:
        return tp in self.observe().reassignments

    def settled(self, tp: TopicPartition, replicas: Sequence[int]) -> bool:
        """Whether a move is over: not in flight, these replicas in this order, all in sync."""
        return is_settled(self.observe(tp.topic), tp, replicas)

    def topic(self, *assignment: Sequence[int], megabytes: int = 0, **config: str) -> str:
        """A new topic with these replicas of each partition, all in sync; records go to its first partition."""
        test = re.sub(r"\W+", "-", os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split("[")[0])
        name = f"{test[:60]}-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        wanted = [list(replicas) for replicas in assignment]
        new = NewTopic(name, num_partitions=len(wanted), replica_assignment=wanted, config=settings)
        self.workload.ask(lambda admin: admin.create_topics([new]))

        def there() -> bool:
            snapshot = self.observe(name)
            return all(is_settled(snapshot, TopicPartition(name, n), replicas) for n, replicas in enumerate(wanted))

        eventually(there)
        self.produce(TopicPartition(name, 0), megabytes)
        return name

    def delete(self, topic: str) -> None:
        self.workload.ask(lambda admin: admin.delete_topics([topic]))
        eventually(lambda: topic not in self.observe(topic).topics)

    def produce(self, tp: TopicPartition, megabytes: int) -> None:
        """Write records that do not compress, to all replicas."""
        producer = Producer({"bootstrap.servers": self.brokers.bootstrap_servers, "acks": "all", "log_level": 0})
        for _ in range(megabytes * 10):
            producer.produce(tp.topic, os.urandom(MEGABYTE // 10), partition=tp.partition)
        assert producer.flush(TIMEOUT) == 0

    def stock_tool_says(self, tp: TopicPartition) -> tuple[int, ...] | None:
        """The replicas as the stock tool describes them; None while it finds the partition in flight."""
        for line in self.brokers.tool("topics", "--describe", "--topic", tp.topic).splitlines():
            fields = {key.strip(): value.strip() for key, _, value in (f.partition(":") for f in line.split("\t"))}
            if fields.get("Partition") == str(tp.partition):
                moving = fields.get("Adding Replicas") or fields.get("Removing Replicas")
                return None if moving else tuple(int(broker) for broker in fields["Replicas"].split(","))
        raise AssertionError(f"the stock tool does not find {tp}")

    @contextmanager
    def held(self, topic: str) -> Iterator[None]:
        """Within the block, what the topic's moves copy crawls; after it, it runs."""
        self.workload.throttle([topic])
        try:
            yield
        finally:
            self.workload.unthrottle([topic])


def is_settled(snapshot: Snapshot, tp: TopicPartition, replicas: Sequence[int]) -> bool:
    found = snapshot.partition(tp)
    return (
        tp not in snapshot.reassignments
        and found is not None
        and found.replicas == tuple(replicas)
        and found.isr == set(replicas)
    )


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    assert wait_until(condition), "it did not come true"
