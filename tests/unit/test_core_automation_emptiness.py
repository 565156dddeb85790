"""When a broker is called empty, by its cordon or by two answers 10 s apart, and whether it was unregistered by us."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reassign.api.reassignment_record import RecordedBroker, RecordedDecommission
from reassign.core.automation.emptiness import judge_brokers
from reassign.core.automation.model import BrokerSeen, BrokersSeen, LogsRead
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from tests.unit.automation_sim import Decommissions, orders
from tests.unit.sim import START


def read(at: float, *topics: str) -> LogsRead:
    return LogsRead(at, frozenset(topics))


@pytest.mark.parametrize(
    ("reads", "cordoned_at", "empty"),
    [
        ((read(100),), None, False),
        ((read(91), read(100)), None, False),
        ((read(90), read(100)), None, True),
        ((read(80), read(90), read(100)), 91, False),
        ((read(80, "orders"), read(91), read(100)), None, False),
        ((read(80), read(90, "orders"), read(100)), None, False),
        ((read(100),), 91, False),
        ((read(100),), 90, True),
        ((read(100, "orders"),), 0, False),
        ((), 0, False),
        ((read(-510), read(-500.1)), None, False),
        ((read(-510), read(-500)), None, True),
        ((read(-520), read(-500.1)), None, False),
    ],
)
def test_a_broker_is_empty_by_what_it_has_shown(reads: tuple[LogsRead, ...], cordoned_at: float, empty: bool) -> None:
    it = Decommissions(orders((5, 1))).apply().resource
    seen = BrokersSeen({5: BrokerSeen(logs=reads, cordoned_at=cordoned_at)}, frozenset({"orders"}))
    judged = judge_brokers(it, seen, {}, Clock(100, START))[5]
    assert judged.emptiness.empty is empty
    assert judged.record
    assert judged.record.seen_empty is empty


def test_a_plan_avoids_the_brokers_of_others_that_were_approved() -> None:
    run = Decommissions(orders((5, 1), (4, 2)))
    run.apply("first", [4], approval="NotRequired")
    run.until("Empty", "first")
    run.apply("second", [5])
    run.until("AwaitingApproval", "second")
    goal = run.plans["second-1"].spec.goal
    assert (goal.drain_brokers, goal.avoid_brokers, goal.scope) == ((5,), (4,), "Drained")


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({0: BrokerSeen(logs=(read(100, "orders"),)), 1: BrokerSeen(logs=(read(90),))}, None),
        ({0: BrokerSeen(logs=(read(100, "orders"),)), 1: BrokerSeen()}, "NotObserved"),
        ({0: BrokerSeen(logs=(read(100, "secret"),))}, "NotAuthorized"),
        ({0: BrokerSeen(logs=(read(100),)), 1: BrokerSeen(fenced=True, logs=(read(100, "secret"),))}, None),
        ({1: BrokerSeen(fenced=True)}, "NotObserved"),
    ],
)
def test_a_broker_never_seen_up_is_empty_by_all_that_are(others: dict[int, BrokerSeen], reason: str | None) -> None:
    it = Decommissions(orders((5, 1))).apply().resource
    seen = BrokersSeen({5: BrokerSeen(fenced=True), **others}, frozenset({"orders"}))
    found = judge_brokers(it, seen, {}, Clock(100, START))[5]
    assert (found.emptiness.reason, found.emptiness.seen_up) == (reason, False)
    assert found.record
    assert not found.record.seen_empty


@pytest.mark.parametrize(
    ("age", "found", "read_ago", "refused", "ours"),
    [
        (74, BrokerSeen(fenced=True), None, False, True),
        (75, BrokerSeen(fenced=True), None, False, False),
        (90, BrokerSeen(fenced=True), 16, False, True),  # the last reading is from before
        (90, BrokerSeen(fenced=True), 15, False, False),
        (10, BrokerSeen(fenced=True), None, True, True),  # it is sent again once the first cannot land any more
        (10, None, None, False, True),
        (10, None, None, True, False),
        (9000, None, None, False, True),
    ],
)
def test_what_was_sent_is_forgotten_once_it_is_refused_or_lost(
    age: float, found: BrokerSeen | None, read_ago: float | None, refused: bool, ours: bool
) -> None:
    it = Decommissions(orders((5, 1))).apply()
    known = RecordedBroker(id=5, seen_empty=True, unregister_sent_at=START, unregister_via=0)
    it.record = RecordedDecommission(brokers=(known,))
    refusals = {5: Problem(Reason.NOT_AUTHORIZED, "grant ALTER on Cluster")} if refused else {}
    now = Clock(100, START + timedelta(seconds=age))
    counted_at = None if read_ago is None else now.monotonic - read_ago
    seen = BrokersSeen({5: found} if found else {}, frozenset(), counted_at=counted_at, refusals=refusals)
    judged = judge_brokers(it.resource, seen, {}, now)[5]
    assert judged.record
    assert (judged.record.unregister_sent_at == START) is ours
