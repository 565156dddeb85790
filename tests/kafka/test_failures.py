"""Brokers that die, hang and come back, with moves under way."""

from collections.abc import Iterator

import pytest

from localplatform.brokers import rack
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Cancel, Result
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually
from tests.kafka.log_dirs import directory, other_directory


@pytest.fixture(scope="module")
def broker_3_is_down(kafka: Kafka) -> Iterator[TopicPartition]:
    """A partition that is on it, and on broker 0."""
    tp = TopicPartition(kafka.topic([0, 3], megabytes=1), 0)
    assert kafka.partition(tp).offline == frozenset()
    kafka.brokers.shut_down(3)
    eventually(lambda: kafka.observe().brokers[3].fenced)
    yield tp
    kafka.brokers.restart(3)
    eventually(lambda: kafka.settled(tp, [0, 3]))


def test_observing_goes_on_while_a_broker_dies_and_comes_back(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([2, 0]), 0)
    kafka.brokers.kill(2)
    assert kafka.partition(tp).replicas == (2, 0)
    eventually(lambda: kafka.partition(tp).leader == 0)
    kafka.brokers.restart(2)
    eventually(lambda: kafka.settled(tp, [2, 0]))


def test_a_broker_that_hangs_hides_no_more_than_its_own_sizes(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1], megabytes=1), 0)
    with kafka.brokers.frozen(1):
        sizes = kafka.observe(tp.topic, sizes_of=[tp]).sizes
    assert sizes is not None
    assert set(sizes[tp]) == {0}
    eventually(lambda: kafka.settled(tp, [0, 1]))


def test_a_write_is_not_sent_when_nobody_lists_what_is_in_flight(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    with kafka.brokers.frozen(*kafka.brokers.controllers):
        [outcome] = kafka.perform(Alter(tp, (1, 0)))
    assert (outcome.result, outcome.reason) == (Result.NOT_SENT, Reason.REQUEST_FAILED)
    eventually(lambda: not any(broker.fenced for broker in kafka.observe().brokers.values()))
    assert kafka.perform(Alter(tp, (1, 0))) == [APPLIED]  # safe to repeat
    eventually(lambda: kafka.settled(tp, [1, 0]))


def test_a_broker_that_is_down_is_fenced_and_its_replicas_are_offline(
    kafka: Kafka, broker_3_is_down: TopicPartition
) -> None:
    assert kafka.observe().brokers[3] == Broker(3, rack=rack(3), fenced=True)
    eventually(lambda: kafka.partition(broker_3_is_down).offline == {3})


def test_a_broker_that_is_down_does_not_stop_the_others_copies(kafka: Kafka, broker_3_is_down: TopicPartition) -> None:
    there, other = str(kafka.brokers.log_dirs(3)[0]), other_directory(kafka, broker_3_is_down, 0)
    [outcome] = kafka.perform(AlterLogDirs(broker_3_is_down, ((3, there), (0, other))))
    assert outcome.result is Result.UNKNOWN
    eventually(lambda: directory(kafka, broker_3_is_down, 0) == other)


@pytest.mark.usefixtures("broker_3_is_down")
def test_a_move_to_a_fenced_broker_waits_until_it_is_cancelled(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    assert kafka.perform(Alter(tp, (3, 1))) == [APPLIED]
    assert kafka.observe().reassignments[tp] == Reassignment((3, 1, 0), adding=(3,), removing=(0,))
    assert kafka.observe(tp.topic, sizes_of=[tp]).sizes == {tp: {0: 0, 1: 0}}
    assert kafka.perform(Cancel(tp, (1, 3))) == [APPLIED]
    assert not kafka.in_flight(tp)


@pytest.mark.usefixtures("broker_3_is_down")
def test_a_cancel_that_would_leave_no_replica_in_sync_is_unsafe(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0]), 0)
    kafka.perform(Alter(tp, (1, 3), allow_replication_factor_change=True))  # it waits for 3
    eventually(lambda: kafka.partition(tp).isr == {0, 1})
    kafka.brokers.shut_down(0)
    try:
        eventually(lambda: kafka.partition(tp).isr == {1})
        [outcome] = kafka.perform(Cancel(tp, (1, 3)))
    finally:
        kafka.brokers.restart(0)
    assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.CANCEL_UNSAFE)
    assert "unclean leader election" in outcome.message
    eventually(lambda: kafka.partition(tp).isr == {0, 1})
    assert kafka.perform(Cancel(tp, (1, 3))) == [APPLIED]
