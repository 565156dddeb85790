"""Clients that go on while brokers come and go: topics are made, records are written, and none may be lost."""

from __future__ import annotations

import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from localplatform.console import PlatformError
from localplatform.workload import SECONDS

__all__ = ["Made", "Reader", "Traffic"]

Place = tuple[str, int]
"""A partition."""

PARTITIONS, REPLICAS = 6, 3
"""Of each topic: with six brokers it has replicas on all of them."""
TOPIC_SECONDS, RECORD_SECONDS, RECORD_BYTES = 10.0, 0.01, 1000
READ_SECONDS = 60.0
"""How long the brokers may take until all records are acknowledged, or read."""


class Made(NamedTuple):
    """A topic that was made."""

    topic: str
    began: float
    """When it was asked for, by the monotonic clock."""


@dataclass
class Traffic:
    """Makes a topic again and again, placed by Kafka, and writes 100 records a second to its topics in turn.

    Every broker in sync has a record before it is acknowledged (acks=all), and at least two are (min.insync.replicas).
    """

    bootstrap_servers: str
    prefix: str
    made: list[Made] = field(default_factory=list)
    topic_seconds: float | None = TOPIC_SECONDS
    """None: no topic is made, and the records go to those that are there from the start."""
    acknowledged: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The numbers of the records that the brokers have acknowledged, by partition."""
    _failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Write while the block runs; afterwards all is acknowledged, or a PlatformError says what is not."""
        targets = [self._write, *([self._make_topics] if self.topic_seconds else [])]
        threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        if self._failed:
            raise PlatformError(f"{len(self._failed)} requests of clients failed, first of all: {self._failed[0]}")

    @property
    def count(self) -> int:
        """Records that are acknowledged."""
        return sum(map(len, list(self.acknowledged.values())))

    def lost(self) -> dict[Place, set[int]]:
        """Read everything back; return the acknowledged records that are not there any more, by partition."""
        missing = {place: set(numbers) for place, numbers in self.acknowledged.items()}
        settings = {"bootstrap.servers": self.bootstrap_servers, "group.id": self.prefix, "enable.auto.commit": False}
        consumer = Consumer({**settings, "log_level": 0})
        try:
            ends = {place: consumer.get_watermark_offsets(TopicPartition(*place), SECONDS)[1] for place in missing}
            consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in missing])
            left, deadline = {place for place, end in ends.items() if end}, time.monotonic() + READ_SECONDS
            while left and time.monotonic() < deadline:
                for message in consumer.consume(1000, 1.0):
                    if not message.error():
                        place = _place(message)
                        missing[place].discard(_number(message))
                        if (message.offset() or 0) + 1 >= ends[place]:
                            left.discard(place)
        finally:
            consumer.close()
        return {place: numbers for place, numbers in missing.items() if numbers}

    def _make_topics(self) -> None:
        assert self.topic_seconds
        while True:
            began, topic = time.monotonic(), f"{self.prefix}-{len(self.made) + 1}"
            try:
                new = NewTopic(topic, PARTITIONS, REPLICAS, config={"min.insync.replicas": "2"})
                admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
                admin.create_topics([new], operation_timeout=SECONDS)[topic].result(SECONDS)
                self.made.append(Made(topic, began))
            except (KafkaException, TimeoutError) as error:
                self._failed.append(f"{topic} was not made: {error}")
            if self._stop.wait(self.topic_seconds - (time.monotonic() - began)):
                return

    def _write(self) -> None:
        settings = {"bootstrap.servers": self.bootstrap_servers, "acks": "all", "partitioner": "random"}
        producer, number = Producer({**settings, "log_level": 0}), 0
        while not self._stop.wait(RECORD_SECONDS):
            if self.made:
                number += 1
                topic = self.made[number % len(self.made)].topic
                producer.produce(topic, str(number).encode().ljust(RECORD_BYTES), on_delivery=self._delivered)
            producer.poll(0)
        if left := producer.flush(READ_SECONDS):
            self._failed.append(f"{left} records were neither taken nor refused by the brokers")

    def _delivered(self, error: object, message: Message) -> None:
        if error:
            self._failed.append(f"a record of {message.topic()} was refused: {error}")
        else:
            self.acknowledged[_place(message)].add(_number(message))


@dataclass
class Reader:
    """Reads what is written, as a consumer group of its own, while brokers come and go."""

    traffic: Traffic
    _read: dict[Place, set[int]] = field(default_factory=lambda: defaultdict(set))
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Read while the block runs, and then what is left of the acknowledged records."""
        thread = threading.Thread(target=self._go_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def unread(self) -> dict[Place, set[int]]:
        """Return the acknowledged records that were not read, by partition."""
        written = list(self.traffic.acknowledged.items())
        return {place: missing for place, numbers in written if (missing := set(numbers) - self._read[place])}

    def _go_on(self) -> None:
        group = f"{self.traffic.prefix}-{uuid.uuid4()}"
        servers = self.traffic.bootstrap_servers
        settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "log_level": 0})
        consumer.subscribe([made.topic for made in self.traffic.made])
        deadline = None
        while True:
            for message in consumer.consume(1000, 0.5):
                if not message.error():
                    self._read[_place(message)].add(_number(message))
            if self._ended.is_set():
                deadline = deadline or time.monotonic() + READ_SECONDS
                if time.monotonic() > deadline or not self.unread():
                    break
        consumer.close()
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        admin.delete_consumer_groups([group])[group].exception(SECONDS)


def _place(message: Message) -> Place:
    return str(message.topic()), int(message.partition() or 0)


def _number(message: Message) -> int:
    """Return the number of a record of ours, -1 of any other."""
    value = bytes(message.value() or b"").strip()
    return int(value) if value.isdigit() else -1
