"""Controllers and brokers that stop while writes are on their way: what lands late is undone, nothing is orphaned."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import APPLIED, Alter, Result
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually
from tests.kafka.live import LiveOperator, Stopping
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


def test_a_move_that_ends_while_its_reader_is_stopped_is_not_lost(stopping: Stopping) -> None:
    """A broker that goes on passes the list on before it has fetched what came meanwhile: each is read in its turn."""
    watcher = Kafka(stopping.kafka.brokers)
    for turn in range(2 * len(watcher.brokers.ids)):
        _ends_while_its_reader_is_stopped(stopping.operator, watcher, f"turn-{turn}")
    watcher.close()


def _ends_while_its_reader_is_stopped(operator: LiveOperator, watcher: Kafka, uid: str) -> None:
    brokers = watcher.brokers

    def reader() -> int | None:
        return operator.memory.recent.forwarding.via

    def state() -> State | None:
        entry = operator.resources[uid].record.get(tp)
        return entry.state if entry else None

    operator.run(operator.tick, 60)
    behind = reader()
    assert behind is not None
    first, second, new = (broker for broker in brokers.ids if broker != behind)
    tp = TopicPartition(watcher.topic([first, second], megabytes=1), 0)
    operator.add(resource({tp: (new, second)}, uid))
    with ExitStack() as stopped:
        with brokers.frozen(new):
            operator.run(lambda: state() is State.IN_FLIGHT, 60)
            stopped.enter_context(brokers.frozen(behind))
        eventually(lambda: watcher.settled(tp, [new, second]))
    deadline = time.monotonic() + 60
    while state() is not State.COMPLETED:
        assert time.monotonic() < deadline
        operator.tick()
        assert state() in (State.IN_FLIGHT, State.COMPLETED)
    with brokers.frozen(behind):
        operator.run(lambda: reader() != behind, 60)
    eventually(lambda: not any(broker.fenced for broker in watcher.observe().brokers.values()))
