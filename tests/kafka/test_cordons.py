"""What brokers answer about a broker whose log directories are all cordoned (KIP-1066): versions differ."""

from __future__ import annotations

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Cancel, Outcome, Result
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually
from tests.kafka.log_dirs import TAKES_NO_NOTICE, full_cordon

BINDS_NEW_TOPICS = "4.3.1"
"""A version whose reassignments pay no heed to a cordon."""


def refused(kafka: Kafka, outcome: Outcome) -> bool:
    """Whether a target was refused because of the cordon; a version that does not refuse it has applied it."""
    if kafka.brokers.version in (TAKES_NO_NOTICE, BINDS_NEW_TOPICS):
        assert outcome == APPLIED
        return False
    return (outcome.result, outcome.problem.reason) == (Result.REFUSED, Reason.INVALID_REPLICA_ASSIGNMENT)


def test_a_target_that_names_a_cordoned_broker_is_refused_from_4_3_2_on(kafka: Kafka) -> None:
    name = kafka.topic([3, 1], [3, 1], [0, 1], [3, 1])
    stays, reordered, new, leaves = (TopicPartition(name, number) for number in range(4))
    with full_cordon(kafka, stays, 3):
        eventually(lambda: kafka.perform(Alter(leaves, (2, 1))) == [APPLIED])
        binds = kafka.brokers.version not in (TAKES_NO_NOTICE, BINDS_NEW_TOPICS)
        eventually(lambda: refused(kafka, kafka.perform(Alter(new, (3, 0)))[0]) == binds)
        assert refused(kafka, kafka.perform(Alter(stays, (3, 2)))[0]) == binds
        assert refused(kafka, kafka.perform(Alter(reordered, (1, 3)))[0]) == binds
        eventually(lambda: kafka.settled(leaves, (2, 1)))


def test_a_cancel_passes_a_cordon_and_the_order_comes_back_without_it(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([3, 1, 0], megabytes=3), 0)
    with kafka.held(tp.topic):
        assert kafka.perform(Alter(tp, (1, 2, 0))) == [APPLIED]
        eventually(lambda: kafka.in_flight(tp))
        with full_cordon(kafka, tp, 3):
            assert kafka.perform(Cancel.of(tp, kafka.observe(tp.topic).reassignments[tp])) == [APPLIED]
            eventually(lambda: not kafka.in_flight(tp))
            eventually(lambda: sorted(kafka.partition(tp).replicas) == [0, 1, 3])
    eventually(lambda: kafka.perform(Alter(tp, (3, 1, 0))) == [APPLIED])
    eventually(lambda: kafka.settled(tp, (3, 1, 0)))
