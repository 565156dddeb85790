"""Controllers and brokers that stop while writes are on their way: what lands late is undone, nothing is orphaned."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Result
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually
from tests.kafka.live import Stopping
from tests.unit.sim import resource

pytestmark = pytest.mark.any_version

HELD_SECONDS = 14
"""Longer than an operator waits that knows nothing of the broker which holds a request."""


@pytest.fixture
def stopping(kafka: Kafka) -> Iterator[Stopping]:
    found = Stopping(kafka.brokers)
    yield found
    found.go_on()
    eventually(lambda: not any(broker.fenced for broker in kafka.observe().brokers.values()))
    found.kafka.close()


def test_a_write_without_an_answer_is_unknown(stopping: Stopping) -> None:
    kafka = stopping.kafka
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    stopping.at("", *kafka.brokers.controllers)
    [outcome] = kafka.perform(Alter(tp, (1, 0)))
    assert (outcome.result, outcome.reason) == (Result.UNKNOWN, Reason.REQUEST_FAILED)
    stopping.go_on()
    eventually(lambda: not any(broker.fenced for broker in kafka.observe().brokers.values()))
    assert kafka.perform(Alter(tp, (1, 0))) == [APPLIED]  # safe to repeat
    eventually(lambda: kafka.settled(tp, [1, 0]))


@pytest.mark.parametrize("stage", ["steps", "changes"])
def test_what_is_held_without_a_controller_is_undone(stopping: Stopping, stage: str) -> None:
    tp = TopicPartition(stopping.kafka.topic([0, 1], megabytes=4), 0)
    operator = stopping.operator
    stopping.at(stage, *stopping.kafka.brokers.controllers)
    operator.add(resource({tp: (0, 2)}, throttle={"interBroker": "1Ki"}))
    operator.run(lambda: operator.unanswered > 0, 60)
    operator.delete("a")
    operator.kill()
    stopping.go_on()
    stopping.leaves_nothing(tp)


def test_an_alter_that_one_broker_holds_for_long_is_undone(stopping: Stopping) -> None:
    tp = TopicPartition(stopping.kafka.topic([0, 1], megabytes=4), 0)
    operator = stopping.operator
    stopping.at("steps")
    operator.add(resource({tp: (0, 2)}, throttle={"interBroker": "1Ki"}))
    operator.run(lambda: operator.unanswered > 0, 60)
    operator.delete("a")
    operator.kill()
    began = time.monotonic()
    operator.run(lambda: time.monotonic() - began > HELD_SECONDS, 60)
    assert operator.resources
    stopping.go_on()
    stopping.leaves_nothing(tp)
