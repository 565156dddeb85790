"""The brake: what it brings back of ours and of others, and what it keeps of that."""

from __future__ import annotations

import json
from dataclasses import replace

from reassign.api.kafka_cluster import Execution
from reassign.core.brake import documents, foreign, met_by, partitions_held_by, undo_foreign, undone_by
from reassign.core.model.memory import RETRY_SECONDS, Recent
from reassign.core.model.snapshot import Broker, Reassignment, TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Cancel, Elect
from reassign.errors import Reason
from tests.unit.sim import SimKafka, drive, partitions, pull, ready_reason, refused, resource, states, true_conditions

P0, P1, P2 = partitions(3)


def test_pause_starts_nothing_and_in_flight_moves_complete() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    pull(driver, Execution.PAUSE)
    driver.edit("a", {P0: (4, 2, 3), P1: (4, 2, 3)})
    driver.ticks(3)
    assert states(driver) == {P0: "InFlight", P1: "Pending"}
    driver.kafka.copy(P0)
    driver.ticks(3)
    assert states(driver) == {P0: "Completed", P1: "Pending"}
    assert (true_conditions(driver), ready_reason(driver)) == ({}, "Suspended")
    driver.now += 3600  # a wish to wait never times out
    driver.tick()
    assert true_conditions(driver) == {}
    pull(driver, Execution.RUN)
    driver.finish()
    assert driver.kafka.replicas == {P0: (4, 2, 3), P1: (4, 2, 3)}


def test_cancel_ours_cancels_at_the_next_tick_and_run_starts_again() -> None:
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)})
    driver = drive(kafka, resource({P0: (4, 2, 3)}, "a"), resource({P1: (2, 3, 5)}, "b"))
    driver.ticks(3)
    assert set(kafka.reassignments) == {P0, P1}
    pull(driver, Execution.CANCEL_OURS)
    driver.tick()
    assert kafka.reassignments == {}
    driver.ticks(10)
    assert kafka.replicas == {P0: (1, 2, 3), P1: (1, 2, 3)}
    assert states(driver, "a") | states(driver, "b") == {P0: "Pending", P1: "Pending"}
    assert (true_conditions(driver, "a"), ready_reason(driver, "a")) == ({}, "Suspended")
    pull(driver, Execution.RUN)
    driver.finish()
    assert kafka.replicas == {P0: (4, 2, 3), P1: (2, 3, 5)}
    assert true_conditions(driver, "a") == {"Ready": "Completed", "Succeeded": "Completed"}


def test_cancel_ours_leaves_what_is_complete_and_what_others_move() -> None:
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)})
    theirs = Reassignment((4, 2, 3, 1), (4,), (1,))
    driver = drive(kafka, resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    kafka.copy(P0)
    kafka.isr[P0] = frozenset({2, 3})
    kafka.replicas[P1], kafka.reassignments[P1] = theirs.replicas, theirs
    pull(driver, Execution.CANCEL_OURS)
    driver.tick()
    assert states(driver) == {P0: "InFlight"}
    driver.ticks(10)
    assert states(driver) == {P0: "InFlight"}
    assert kafka.replicas[P0] == (4, 2, 3)
    assert kafka.reassignments == {P1: theirs}
    assert not any(isinstance(step, Cancel) for step in kafka.writes)


def test_a_brake_released_during_a_cancel_cancels_and_then_starts_again() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    pull(driver, Execution.CANCEL_OURS)
    driver.tick(die_after=1)
    pull(driver, Execution.RUN)
    driver.ticks(16)
    assert driver.kafka.writes == [
        Alter(P0, (4, 2, 3)),
        Cancel(P0, (2, 3, 4)),
        Alter(P0, (1, 2, 3)),
        Alter(P0, (4, 2, 3)),
    ]


def test_the_brake_holds_back_a_cancel_of_ours_that_is_unsafe() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=3), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.isr[P0] = frozenset({2, 3})
    pull(driver, Execution.CANCEL_OURS)
    driver.ticks(5)
    assert P0 in driver.kafka.reassignments
    assert ready_reason(driver) == "CancelUnsafe"


def theirs_in_flight(*tps: TopicPartition, min_insync: int = 1) -> SimKafka:
    """Another client moves these partitions from 1, 2, 3 to 4, 2, 3."""
    kafka = SimKafka(dict.fromkeys(tps, (1, 2, 3)), min_insync=min_insync)
    for tp in tps:
        kafka.perform(Alter(tp, (4, 2, 3)))
    return kafka


def test_moves_of_others_are_those_that_no_resource_holds() -> None:
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3), P2: (1, 2, 3)})
    driver = drive(kafka, resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    kafka.perform(Alter(P2, (4, 2, 3)))
    assert foreign(partitions_held_by(driver.resources.values()), kafka.snapshot()) == [P2]


def test_a_move_of_others_that_may_go_back_is_cancelled_as_it_was_seen() -> None:
    undo = undo_foreign([P0], theirs_in_flight(P0).snapshot(), Recent())
    assert undo.cancels == (Cancel(P0, (2, 3, 4)),)
    assert undo.problem is None


def test_a_move_of_others_that_may_not_go_back_is_held_and_named() -> None:
    kafka = theirs_in_flight(P0, P1, min_insync=3)
    kafka.brokers |= {1: Broker(1, fenced=True)}
    kafka.isr[P1] = frozenset({1, 2, 3, 4})
    undo = undo_foreign([P0, P1], kafka.snapshot(), Recent())
    assert undo.cancels == ()
    assert undo.problem is not None
    assert undo.problem.reason is Reason.CANCEL_UNSAFE
    assert "moves of others not cancelled yet: 2" in undo.problem.message
    assert "orders-0" in undo.problem.message
    assert "broker 1" in undo.problem.message


def test_a_foreign_move_of_an_undescribed_topic_waits_for_metadata() -> None:
    snapshot = replace(theirs_in_flight(P0).snapshot(), topics={})
    undo = undo_foreign([P0], snapshot, Recent())
    assert (undo.cancels, undo.held) == ((), {})


def test_a_refused_cancel_is_reported_and_sent_again_later() -> None:
    kafka, recent = theirs_in_flight(P0), Recent(now=100.0)
    undo = undo_foreign([P0], kafka.snapshot(), recent)
    facts = met_by(undo, {undo.cancels[0]: refused(Reason.INVALID_REPLICA_ASSIGNMENT)})
    recent = recent.remember(facts, at=100.0)
    held = undo_foreign([P0], kafka.snapshot(), recent)
    assert (held.cancels, held.held[P0].reason) == ((), Reason.INVALID_REPLICA_ASSIGNMENT)
    recent = replace(recent, now=100.0 + RETRY_SECONDS + 1)
    assert undo_foreign([P0], kafka.snapshot(), recent).cancels == undo.cancels


def test_a_cancel_that_came_too_late_or_went_well_is_no_refusal() -> None:
    kafka, recent = theirs_in_flight(P0), Recent(now=100.0)
    undo = undo_foreign([P0], kafka.snapshot(), recent)
    for outcome in (APPLIED, refused(Reason.NO_REASSIGNMENT_IN_PROGRESS)):
        recent = recent.remember(met_by(undo, {undo.cancels[0]: outcome}), at=100.0)
    assert undo_foreign([P0], kafka.snapshot(), recent).cancels == undo.cancels


def test_kept_is_what_the_cancels_undo_with_the_preferred_leader_first() -> None:
    snapshot = theirs_in_flight(P0, P1).snapshot()
    steps = [Cancel(P0, (2, 3, 4)), Alter(P1, (1, 2, 3)), Elect(P2)]
    assert undone_by(steps, snapshot) == {P0: (4, 2, 3)}


def test_what_is_kept_is_the_stock_tools_json() -> None:
    (document,) = documents({P1: (2, 3), P0: (4, 2, 3)})
    assert json.loads(document) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [4, 2, 3]},
            {"topic": "orders", "partition": 1, "replicas": [2, 3]},
        ],
    }
    assert documents({}) == []


def test_what_is_kept_is_split_below_the_limit_and_complete() -> None:
    moves = {TopicPartition("t" * 249, number): (1, 2, 3) for number in range(12_000)}
    parts = documents(moves)
    assert len(parts) == 4
    assert max(map(len, parts)) <= 1_000_000
    found = [entry for part in parts for entry in json.loads(part)["partitions"]]
    assert [entry["partition"] for entry in found] == list(range(12_000))
