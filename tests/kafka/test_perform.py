"""What steps do to a cluster, and what each of them meets."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Cancel, Elect, Judged, Outcome, Result
from reassign.errors import Reason
from tests.kafka.harness import Kafka, eventually


def refused(reason: Reason, message: str) -> Outcome:
    return Outcome(Result.REFUSED, reason, message)


def test_a_partition_gets_other_replicas_in_the_order_asked_for(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1, 2], megabytes=1), 0)
    assert kafka.perform(Alter(tp, (3, 2, 0))) == [APPLIED]
    eventually(lambda: kafka.settled(tp, [3, 2, 0]))


def test_a_reorder_is_done_at_once(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1, 2]), 0)
    assert kafka.perform(Alter(tp, (2, 0, 1))) == [APPLIED]
    assert not kafka.in_flight(tp)
    eventually(lambda: kafka.settled(tp, [2, 0, 1]))


def test_what_is_there_already_is_applied(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    assert kafka.perform(Alter(tp, (0, 1))) == [APPLIED]
    assert kafka.settled(tp, [0, 1])


def test_the_same_target_again_changes_nothing(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        before = kafka.observe().reassignments[tp]
        assert kafka.perform(Alter(tp, (2, 1))) == [APPLIED]
        assert kafka.observe().reassignments[tp] == before
    eventually(lambda: kafka.settled(tp, [2, 1]))


@pytest.mark.parametrize(
    ("replicas", "reason", "message"),
    [
        pytest.param((), Reason.INVALID_REPLICA_ASSIGNMENT, "includes an empty replica list.", id="no replicas"),
        pytest.param(
            (99, 1),
            Reason.INVALID_REPLICA_ASSIGNMENT,
            "includes broker 99, but no such broker is registered.",
            id="an unknown broker",
        ),
        pytest.param(
            (1, 1), Reason.INVALID_REPLICA_ASSIGNMENT, "includes the broker 1 more than once.", id="a broker twice"
        ),
        pytest.param(
            (0, 1, 2), Reason.REPLICATION_FACTOR_CHANGE, "replication factor is changed from 2 to 3", id="more replicas"
        ),
        pytest.param(
            (0,), Reason.REPLICATION_FACTOR_CHANGE, "replication factor is changed from 2 to 1", id="fewer replicas"
        ),
    ],
)
def test_a_bad_target_is_refused_and_the_others_go_on(
    kafka: Kafka, replicas: tuple[int, ...], reason: Reason, message: str
) -> None:
    name = kafka.topic([0, 1], [0, 1])
    bad, good = TopicPartition(name, 0), TopicPartition(name, 1)

    outcome, applied = kafka.perform(Alter(bad, replicas), Alter(good, (1, 2)))

    assert (outcome.result, outcome.reason) == (Result.REFUSED, reason)
    assert message in outcome.message
    assert applied == APPLIED
    eventually(lambda: kafka.settled(good, [1, 2]))
    assert kafka.settled(bad, [0, 1])


def test_an_unknown_topic_and_an_unknown_partition(kafka: Kafka) -> None:
    name = kafka.topic([0, 1])
    steps = Alter(TopicPartition("no-such-topic", 0), (0, 1)), Alter(TopicPartition(name, 7), (0, 1))
    assert [outcome.reason for outcome in kafka.perform(*steps)] == [Reason.UNKNOWN_TOPIC_OR_PARTITION] * 2


def test_the_replication_factor_changes_when_it_may(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    assert kafka.perform(Alter(tp, (2, 1, 0), allow_replication_factor_change=True)) == [APPLIED]
    eventually(lambda: kafka.settled(tp, [2, 1, 0]))


def test_a_move_in_flight_is_neither_overridden_nor_cancelled_for_another(kafka: Kafka) -> None:
    name = kafka.topic([0, 1, 2], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (3, 1, 2)))
        before = kafka.observe().reassignments[tp]
        [override] = kafka.perform(Alter(tp, (0, 1, 3)))
        [cancel] = kafka.perform(Cancel(tp, (0, 1, 3)))
        assert {override.reason, cancel.reason} == {Reason.IN_FLIGHT_ELSEWHERE}
        assert kafka.perform(Alter(tp, (3, 1, 2))) == [APPLIED]
        assert kafka.observe().reassignments[tp] == before
    eventually(lambda: kafka.settled(tp, [3, 1, 2]))


def test_what_is_not_as_it_was_judged_is_left_as_it_is(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [0, 1], [0, 1])
    moved, recreated, same = (TopicPartition(name, number) for number in range(3))
    topic_id = kafka.observe(name).topics[name].id
    outcomes = kafka.perform(
        Alter(moved, (2, 1), judged=Judged(topic_id, frozenset({0, 3}))),
        Alter(recreated, (2, 1), judged=Judged("another", frozenset({0, 1}))),
        Alter(same, (2, 1), judged=Judged(topic_id, frozenset({1, 0}))),
    )
    assert [outcome.reason for outcome in outcomes] == [Reason.IN_FLIGHT_ELSEWHERE, Reason.TOPIC_RECREATED, None]
    eventually(lambda: kafka.settled(same, [2, 1]))
    assert kafka.settled(moved, [0, 1])
    assert kafka.settled(recreated, [0, 1])


def test_guarded_and_free_alters_in_one_go_keep_their_own_guard(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], [0, 1], [0, 1])
    first, second, third = (TopicPartition(name, number) for number in range(3))
    outcomes = kafka.perform(
        Alter(first, (0, 1, 2)),
        Alter(second, (0, 1, 2), allow_replication_factor_change=True),
        Alter(third, (0, 1, 2)),
    )
    assert [outcome.result for outcome in outcomes] == [Result.REFUSED, Result.APPLIED, Result.REFUSED]


def test_a_cancel_with_nothing_in_flight(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    outcome = refused(Reason.NO_REASSIGNMENT_IN_PROGRESS, "nothing is in flight for the partition")
    assert kafka.perform(Cancel(tp, (0, 1))) == [outcome]


def test_a_cancel_restores_the_replicas_and_an_alter_their_order(kafka: Kafka) -> None:
    name = kafka.topic([0, 1, 2], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (3, 1, 2)))
        assert kafka.perform(Cancel(tp, (1, 2, 3))) == [APPLIED]
        assert not kafka.in_flight(tp)
        eventually(lambda: kafka.partition(tp).replicas == (1, 2, 0))

        assert kafka.perform(Alter(tp, (0, 1, 2))) == [APPLIED]
        assert not kafka.in_flight(tp)
        eventually(lambda: kafka.settled(tp, [0, 1, 2]))


def test_an_override_that_undoes_a_move_is_stuck_until_it_is_cancelled(kafka: Kafka, tmp_path: Path) -> None:
    if kafka.brokers.version == "4.1.2":
        pytest.skip("the brokers from 4.3 do so")
    name = kafka.topic([0, 1, 2], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (3, 1, 2)))
        override_with_the_stock_tool(kafka, tp, (0, 1, 2), tmp_path / "override.json")
        stuck = kafka.observe().reassignments[tp]
        assert stuck.adding == stuck.removing == (3,)
        override_with_the_stock_tool(kafka, tp, (0, 1, 2), tmp_path / "override.json")
        assert kafka.observe().reassignments[tp] == stuck
        assert kafka.perform(Cancel(tp, (0, 1, 2))) == [APPLIED]
        assert not kafka.in_flight(tp)


def override_with_the_stock_tool(kafka: Kafka, tp: TopicPartition, replicas: Sequence[int], file: Path) -> None:
    wanted = {"version": 1, "partitions": [{"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}]}
    file.write_text(json.dumps(wanted))
    options = ["--execute", "--additional", "--reassignment-json-file", str(file)]
    kafka.brokers.tool("reassign-partitions", *options)


def test_a_move_is_changed_in_flight_by_cancel_and_submit(kafka: Kafka) -> None:
    name = kafka.topic([0, 1, 2], megabytes=5)
    tp = TopicPartition(name, 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (3, 1, 2)))
        assert kafka.perform(Cancel(tp, (1, 2, 3))) == [APPLIED]
        assert not kafka.in_flight(tp)
        assert kafka.perform(Alter(tp, (0, 3, 2))) == [APPLIED]
        assert kafka.observe().reassignments[tp].target == {0, 3, 2}
    eventually(lambda: kafka.settled(tp, [0, 3, 2]))


def test_hundreds_of_partitions_go_in_several_requests(kafka: Kafka) -> None:
    requests: list[None] = []
    name = kafka.topic(*([[0, 1]] * 450))
    counting = Kafka(kafka.brokers, before_write=lambda: requests.append(None))
    partitions = [TopicPartition(name, number) for number in range(450)]

    outcomes = counting.perform(*(Alter(tp, (1, 0)) for tp in partitions))

    counting.close()
    assert outcomes == [APPLIED] * 450
    assert len(requests) == 3
    eventually(lambda: all(p.replicas == (1, 0) for p in kafka.observe(name).topics[name].partitions.values()))


def test_what_the_check_before_a_write_forbids_is_not_sent(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    name = kafka.topic([0, 1], megabytes=5)
    moving = TopicPartition(name, 0)

    def lease_is_lost() -> None:
        raise RuntimeError("the lease is lost")

    forbidden = Kafka(kafka.brokers, before_write=lease_is_lost)
    with kafka.held(name):
        kafka.perform(Alter(moving, (2, 1)))
        for step in (Alter(tp, (1, 0)), Cancel(moving, (1, 2)), Elect(tp)):
            with pytest.raises(RuntimeError, match="the lease is lost"):
                forbidden.perform(step)
        assert kafka.in_flight(moving)
    forbidden.close()
    assert kafka.settled(tp, [0, 1])


def test_the_preferred_leader_is_elected(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    kafka.perform(Alter(tp, (1, 0)))
    assert kafka.partition(tp).leader == 0  # a reorder alone moves no leader

    assert kafka.perform(Elect(tp)) == [APPLIED]

    eventually(lambda: kafka.partition(tp).leader == 1)


def test_an_election_that_is_not_needed_has_been_applied(kafka: Kafka) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    assert kafka.perform(Elect(tp)) == [APPLIED]


def test_a_preferred_leader_that_is_not_in_sync_cannot_be_elected(kafka: Kafka) -> None:
    name = kafka.topic([0, 1], megabytes=5)
    tp, unknown = TopicPartition(name, 0), TopicPartition("no-such-topic", 0)
    with kafka.held(name):
        kafka.perform(Alter(tp, (2, 1)))
        outcome, other = kafka.perform(Elect(tp), Elect(unknown))
    assert (outcome.result, outcome.reason) == (Result.REFUSED, Reason.ELECTION_FAILED)
    assert outcome.message
    assert (other.result, other.reason) == (Result.REFUSED, Reason.UNKNOWN_TOPIC_OR_PARTITION)
    eventually(lambda: kafka.settled(tp, [2, 1]))
