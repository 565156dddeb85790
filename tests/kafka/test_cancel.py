"""Going back, in each way in which replicas can move: what is cancelled, and what the stock tool finds afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Cancel, Result
from reassign.errors import Reason
from reassign.kafka import requests
from tests.kafka.harness import Kafka, eventually


@contextmanager
def down(kafka: Kafka, *brokers: int) -> Iterator[None]:
    """Brokers that the controller has fenced, and that are back afterwards."""
    with ExitStack() as frozen:
        for broker in brokers:
            frozen.enter_context(kafka.brokers.frozen(broker))
        eventually(lambda: all(kafka.observe().brokers[broker].fenced for broker in brokers))
        yield
    eventually(lambda: not any(kafka.observe().brokers[broker].fenced for broker in brokers))


def goes_back(kafka: Kafka, tp: TopicPartition, original: Sequence[int], target: tuple[int, ...]) -> None:
    """Cancel, confirm, restore the order, as the operator does."""
    assert kafka.perform(Cancel(tp, target)) == [APPLIED]
    assert not kafka.in_flight(tp)
    assert kafka.perform(Alter(tp, tuple(original))) == [APPLIED]
    assert not kafka.in_flight(tp)


@pytest.mark.parametrize(
    ("original", "target"), [((1, 0), (2, 1, 0)), ((1, 2, 0), (3, 2, 0)), ((0, 1), (2, 3))], ids=["add", "mix", "all"]
)
def test_a_cancelled_move_goes_back_to_the_original_order(
    kafka: Kafka, original: tuple[int, ...], target: tuple[int, ...]
) -> None:
    name = kafka.topic(original, megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        assert kafka.perform(Alter(tp, target, allow_replication_factor_change=True)) == [APPLIED]
        assert kafka.observe().reassignments[tp].adding
        goes_back(kafka, tp, original, target)
        eventually(lambda: kafka.stock_tool_says(tp) == original)


def test_a_move_that_only_removes_waits_for_the_others_and_goes_back(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([2, 0, 3]), 0)
    with down(kafka, 3):
        eventually(lambda: kafka.partition(tp).isr == {2, 0})
        assert kafka.perform(Alter(tp, (0, 3), allow_replication_factor_change=True)) == [APPLIED]
        move = kafka.observe().reassignments[tp]
        assert (move.adding, move.removing, set(move.original)) == ((), (2,), {0, 2, 3})
        goes_back(kafka, tp, (2, 0, 3), (0, 3))
    eventually(lambda: kafka.stock_tool_says(tp) == (2, 0, 3))


def test_the_brokers_refuse_a_cancel_to_replicas_that_are_not_in_sync(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=1)
    tp = TopicPartition(name, 0)
    with down(kafka, 3):
        assert kafka.perform(Alter(tp, (2, 3))) == [APPLIED]
        eventually(lambda: 2 in kafka.partition(tp).isr)
        with down(kafka, 0, 1):
            eventually(lambda: kafka.partition(tp).isr == {2} and kafka.partition(tp).leader == 2)
            [outcome] = kafka.perform(Cancel(tp, (2, 3)))
            assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.CANCEL_UNSAFE)
            assert "unclean leader election" in outcome.message
            assert kafka.in_flight(tp)
        eventually(lambda: kafka.partition(tp).isr >= {0, 1})
        goes_back(kafka, tp, (0, 1), (2, 3))
    eventually(lambda: kafka.stock_tool_says(tp) == (0, 1))


def test_the_brokers_compare_the_factor_with_the_target_in_flight(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        for replicas in ((2, 1, 0), (2,)):
            answers = requests.alter(
                kafka.client._wire, {tp: replicas}, allow_replication_factor_change=False, before_write=lambda: None
            )
            code, message = answers[tp]
            assert (code, message) == (38, f"The replication factor is changed from 2 to {len(replicas)}")
    eventually(lambda: kafka.settled(tp, [2, 1]))


def test_the_emulated_guard_holds_the_factor_and_the_others_go_on(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka.client._wire, "newest_version", lambda key: 0)
    name = kafka.topic(*([[0, 1]] * 3), megabytes=5)
    moving, bad, good = (TopicPartition(name, number) for number in range(3))
    with kafka.held(name):
        kafka.perform(Alter(moving, (2, 1)))
        refused, changed, applied = kafka.perform(Alter(bad, (0, 1, 2)), Alter(moving, (2, 1, 3)), Alter(good, (1, 0)))
        assert kafka.observe().guard == "Emulated"
        assert (refused.reason, changed.reason) == (Reason.REPLICATION_FACTOR_CHANGE, Reason.IN_FLIGHT_ELSEWHERE)
        assert applied == APPLIED
        assert kafka.observe().reassignments[moving].target == {2, 1}
    eventually(lambda: kafka.settled(moving, [2, 1]))
    assert kafka.settled(bad, [0, 1])
