"""What real brokers show of a move that does not come nearer to its end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from confluent_kafka import Producer

from localplatform.processes import TIMEOUT
from reassign.api.kafka_cluster import Limits
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.record import Entry
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.tick import Memory, decide
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually
from tests.kafka.throttles import begin, tick
from tests.unit.sim import resource
from tests.unit.throttling import Operator

PIECE, PAUSE_SECONDS = 100_000, 0.2


@contextmanager
def written_to(kafka: Kafka, tp: TopicPartition) -> Iterator[None]:
    """Within the block records are written all the time, half a megabyte per second."""
    over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": kafka.brokers.bootstrap_servers, "log_level": 0})
        while not over.wait(PAUSE_SECONDS):
            producer.produce(tp.topic, os.urandom(PIECE), partition=tp.partition)
            producer.poll(0)
        producer.flush(TIMEOUT)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def test_a_throttle_below_the_produce_rate_is_reported_until_removed(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=24)
    tp, memory = TopicPartition(name, 0), Memory.begin(time.monotonic())
    entry = Entry(kafka.observe(name).topics[name].id, (0, 1), (2, 1), State.IN_FLIGHT)
    moving = resource({tp: (2, 1)}, stallTimeoutSeconds=5, throttle={"interBroker": "200Ki"})
    moving = replace(moving, record={tp: entry})

    def reconcile() -> Row:
        nonlocal memory
        began = time.monotonic()
        snapshot = kafka.observe(name, sizes_of=[tp])
        in_flight = snapshot.reassignments.keys()
        recent = memory.recent.observe(began, time.monotonic(), in_flight, snapshot.log_dirs)
        memory = replace(memory, recent=recent)
        decision = decide([moving], snapshot, ConfigRead(), memory, ClusterRules(Limits()), datetime.now(UTC))
        memory = decision.memory
        return decision.verdicts[0].rows[tp]

    def below_the_produce_rate() -> bool:
        overdue = reconcile().said(SayingKind.OVERDUE)
        return overdue is not None and overdue.reason is Reason.THROTTLE_BELOW_PRODUCE_RATE

    operator = Operator(kafka.client)
    with written_to(kafka, tp):
        begin(operator, kafka, name, [0, 1], [2, 1], "200Ki")
        try:
            eventually(below_the_produce_rate)
        finally:
            unthrottled = operator.verdict("any", {tp: ([0, 1], [2, 1])}, None, begun=True)
            eventually(lambda: not tick(operator, kafka, unthrottled))
        eventually(lambda: reconcile().said(SayingKind.STALL, SayingKind.OVERDUE) is None)
        eventually(lambda: kafka.settled(tp, [2, 1]))
