"""What passes by itself is Reconciling until it has lasted too long, what needs a user is Stalled, a wish neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reassign.api.common import Condition
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.model.waits import BRAKE, GOES_ON, NEEDS_USER, PASSES, QUEUES, WISHED
from reassign.core.report.conditions import ConditionState, conditions, unready
from reassign.core.report.events import transitions
from reassign.core.report.statuses import blind
from reassign.errors import Reason
from tests.unit import kstatus
from tests.unit.sim import START, Driver, SimKafka, drive, partitions, ready_reason, resource, states, true_conditions

P0, P1 = partitions(2)


def test_every_reason_has_who_ends_it() -> None:
    sets = (GOES_ON, PASSES, WISHED, NEEDS_USER)
    assert sorted(reason for each in sets for reason in each) == sorted(Reason)
    assert BRAKE < WISHED
    assert QUEUES < PASSES


def at(
    seconds: float, states: Sequence[ConditionState], before: Sequence[Condition] = (), generation: int = 1
) -> tuple[Condition, ...]:
    return conditions(before, states, generation, START + timedelta(seconds=seconds), 60)


def true(said: Sequence[Condition]) -> list[str]:
    return [c.type for c in said if c.status == "True"]


def since(said: Sequence[Condition]) -> datetime:
    return next(c.last_transition_time for c in said if c.type == "Reconciling")


WAITS = unready(Reason.IN_FLIGHT_ELSEWHERE, "another client is moving it")
MOVES = unready("PartitionsInFlight", "1 of 2")


def test_a_wait_is_stalled_once_it_has_lasted() -> None:
    said = at(59, WAITS, at(0, WAITS))
    assert true(said) == ["Reconciling"]
    said = at(60, WAITS, said)
    assert true(said) == ["Stalled", "Reconciling"]  # kstatus takes the first
    assert true(at(61, WAITS, said)) == ["Stalled", "Reconciling"]
    assert true(at(62, MOVES, said)) == ["Reconciling"]


def test_a_wait_counts_from_its_own_beginning() -> None:
    said = at(5000, WAITS, at(0, MOVES))
    assert (true(said), since(said)) == (["Reconciling"], START + timedelta(seconds=5000))
    assert true(at(5059, WAITS, said)) == ["Reconciling"]


def test_another_wait_does_not_begin_the_count_anew() -> None:
    said = at(30, unready(Reason.CLUSTER_UNREACHABLE, "no answer"), at(0, WAITS))
    assert true(at(60, WAITS, said)) == ["Stalled", "Reconciling"]


def test_a_wait_that_began_by_a_clock_ahead_is_stalled_all_the_same() -> None:
    said = at(0, WAITS, at(31_536_000, WAITS))
    assert (true(said), since(said)) == (["Reconciling"], START)
    assert true(at(60, WAITS, said)) == ["Stalled", "Reconciling"]


def test_an_edit_begins_the_count_of_a_wait_anew() -> None:
    stalled = at(90, WAITS, at(0, WAITS))
    assert true(at(91, WAITS, stalled, generation=2)) == ["Reconciling"]


def test_what_goes_on_is_never_overdue() -> None:
    assert true(at(9999, MOVES, at(0, MOVES))) == ["Reconciling"]


def test_a_wish_to_wait_never_times_out() -> None:
    for reason in WISHED:
        said = at(9999, unready(reason, "as asked"), at(0, unready(reason, "as asked")))
        assert true(said) == []
        assert said[0].reason == ("Suspended" if reason in BRAKE else reason)


def moved_by_another(**fields: object) -> Driver:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.move_as_another(P0, (4, 1, 2))
    return drive(kafka, resource({P0: (3, 1, 2)}, stallTimeoutSeconds=60, **fields))


def test_since_when_a_resource_waits_outlives_the_process() -> None:
    driver = moved_by_another()
    driver.ticks(40)
    driver.restart()
    driver.ticks(15)
    assert true_conditions(driver) == {"Reconciling": "InFlightElsewhere"}
    driver.ticks(10)
    assert true_conditions(driver) == dict.fromkeys(("Reconciling", "Stalled"), "InFlightElsewhere")
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_waiting_partition_is_not_stalled_while_another_needs_a_user() -> None:
    driver = moved_by_another()
    driver.edit("a", {P0: (3, 1, 2), TopicPartition("nowhere", 0): (1, 2)}, stallTimeoutSeconds=60)
    driver.ticks(3)
    assert states(driver) == {P0: "Blocked", TopicPartition("nowhere", 0): "Blocked"}
    assert true_conditions(driver) == {"Reconciling": "InFlightElsewhere"}
    driver.kafka.copy(P0)
    driver.ticks(5)
    driver.finish()
    assert true_conditions(driver) == {"Stalled": "UnknownTopicOrPartition"}


def test_a_suspended_resource_that_is_blocked_is_suspended() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (99, 1, 2)}, suspend=True, stallTimeoutSeconds=60))
    driver.ticks(90)
    assert (states(driver), true_conditions(driver)) == ({P0: "Blocked"}, {})
    assert ready_reason(driver) == "Suspended"


def test_a_cancel_that_is_unsafe_is_stalled_once_it_has_lasted() -> None:
    kafka = SimKafka({P0: (1, 2, 3)}, min_insync=2)
    driver = drive(kafka, resource({P0: (4, 5, 3)}, stallTimeoutSeconds=30))
    driver.ticks(3)
    kafka.isr[P0] = frozenset({3, 4, 5})
    kafka.brokers |= {1: Broker(1, fenced=True), 2: Broker(2, fenced=True)}
    driver.delete("a")
    driver.ticks(20)
    assert true_conditions(driver) == {"Reconciling": "Cancelling"}
    driver.ticks(15)
    assert true_conditions(driver) == {"Reconciling": "Cancelling", "Stalled": "CancelUnsafe"}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ((4, 1, 2), {"Reconciling": "BrokerFenced", "Stalled": "BrokerFenced"}),
        ((99, 1, 2), {"Stalled": "UnknownBroker"}),
    ],
)
def test_a_dry_run_that_fails_is_stalled_by_the_same_rule(target: tuple[int, ...], said: dict[str, str]) -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.brokers[4] = Broker(4, fenced=True)
    driver = drive(kafka, resource({P0: (4, 1, 2), P1: target}, mode="DryRun", stallTimeoutSeconds=60))
    driver.ticks(90)
    assert true_conditions(driver) == said


def test_a_cluster_that_cannot_be_seen_stalls_its_resources_in_the_end() -> None:
    waits = resource({P0: (3, 1, 2)}, stallTimeoutSeconds=60)
    unreachable = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    for seconds, kinds in ((0, ["Reconciling"]), (59, ["Reconciling"]), (60, ["Stalled", "Reconciling"])):
        status = blind(waits, unreachable, START + timedelta(seconds=seconds))
        waits = replace(waits, status=status)
        assert true(status.conditions) == kinds
        kstatus.check(kstatus.seen(status, 1))


def test_a_suspended_resource_stays_so_while_its_cluster_cannot_be_seen() -> None:
    suspended = resource({P0: (3, 1, 2)}, suspend=True)
    status = blind(suspended, Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers"), START)
    assert (true(status.conditions), status.conditions[0].reason) == ([], "Suspended")
    status = blind(suspended, Problem(Reason.AUTHENTICATION_FAILED, "refused"), START)
    assert true(status.conditions) == ["Stalled"]


def test_a_wait_is_an_event_at_its_begin_and_a_failure_once() -> None:
    waits = at(0, WAITS)
    assert [(event.warning, event.reason) for event in transitions((), waits)] == [(True, "InFlightElsewhere")]
    assert transitions(waits, at(60, WAITS, waits)) == []
    assert transitions((), at(0, unready(Reason.WAITING_FOR_BUDGET, "room for 0"))) == []
    failed = [ConditionState(kind, True, "DeadlineExceeded", "too late") for kind in ("Failed", "Stalled")]
    assert [event.reason for event in transitions((), at(0, failed))] == ["ReassignmentFailed"]
