"""A plan of a policy that is approved, and whose first wave has not begun: much may change until its window opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.policy_sim import Policies, SimPolicy

Rows = Mapping[TopicPartition, tuple[int, ...]]
ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 60}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 600}, "approval": "NotRequired"}
LATE = [{"cron": "0 22 * * *", "durationSeconds": 3600}]
OPENS = 22 * 3600
BALANCE: dict[str, Any] = {"balance": {"by": ["Replicas"]}}


def approved(trigger: dict[str, Any], rows: Rows = ROWS) -> tuple[Policies, SimPolicy]:
    """Its plan is approved, and waits for a window at ten in the evening."""
    run = Policies(rows)
    it = run.policy(trigger, windows=LATE, planTemplate={"goal": BALANCE})
    run.rest(900)
    if trigger is ADDED:
        run.brokers[6] = UP
    else:
        run.others = {5}
    run.wait(lambda: it.record.plan is not None and it.record.plan.approved)
    return run, it


def until(run: Policies, seconds: float) -> None:
    while run.seconds < seconds:
        run.tick(seconds=60)


def _user(run: Policies) -> None:
    run.users = ["tenant"]


def _foreign(run: Policies) -> None:
    run.foreign = run.foreign_from = frozenset({5})


def _fenced(run: Policies) -> None:
    run.brokers[4] = FENCED


@pytest.mark.parametrize(
    ("trigger", "change", "words"),
    [
        (ADDED, _user, "plans of users are under way: tenant"),
        (ADDED, _foreign, "other clients move partitions of broker 5"),
        (ADDED, _fenced, "broker 4 is fenced, and may come back"),
        (CORDONED, _foreign, "other clients move replicas away from broker 5"),
        (CORDONED, _fenced, "broker 4 is fenced, and may come back"),
    ],
    ids=["a user's plan", "foreign moves", "unsettled", "foreign moves away", "unsettled beside a cordon"],
)
def test_what_holds_a_trigger_holds_an_approved_plan_too(
    trigger: dict[str, Any], change: Callable[[Policies], None], words: str
) -> None:
    run, it = approved(trigger)
    until(run, OPENS - 120)
    change(run)
    until(run, OPENS + 120)
    assert run.begun == []
    assert it.trigger(trigger["name"]).message == f"{run.created[-1]} starts nothing: {words}"
    run.users, run.foreign, run.foreign_from, run.brokers[4] = [], frozenset(), frozenset(), UP
    run.wait(lambda: run.begun)
    assert run.seconds < OPENS + 3600


def test_once_a_wave_has_begun_no_hold_stops_the_others() -> None:
    run, _ = approved(CORDONED)
    until(run, OPENS - 60)
    run.wait(lambda: run.begun)
    _user(run)
    run.wait(lambda: run.on(5) == [])


@pytest.mark.parametrize(
    "template",
    [
        {"goal": {**BALANCE, "avoidBrokers": [6]}},
        {"goal": BALANCE, "template": {"throttle": {"interBroker": "1Mi"}}},
        {"goal": BALANCE, "topics": {"exclude": ["orders"]}},
    ],
    ids=["avoids the broker", "is throttled", "excludes the topic"],
)
def test_an_edit_of_the_template_has_an_approved_plan_made_anew(template: dict[str, Any]) -> None:
    run, it = approved(ADDED)
    it.edit(planTemplate=template)
    run.rest(60)
    assert it.outcomes == [("main-out-1", "Retired")]
    until(run, OPENS + 600)
    assert not [wave for wave in run.begun if wave.startswith("main-out-1")]


def test_a_decommission_beside_it_makes_no_approved_plan_anew() -> None:
    run = Policies(ROWS)
    old = run.apply(brokers=(4,), approval="NotRequired", unregister="WhenDown")
    run.until("Empty")
    it = run.policy({**LOST, "windows": LATE})
    run.rest(300)
    run.brokers[5] = FENCED
    run.wait(lambda: it.record.plan is not None and it.record.plan.approved)
    assert run.plans["main-lost-1"].spec.goal.avoid_brokers == (4,)
    run.brokers[4] = FENCED
    run.wait(lambda: old.reason == "Unregistered")
    until(run, OPENS - 60)
    assert it.outcomes == [("main-lost-1", "Running")]
    run.wait(lambda: run.on(5) == [])


@pytest.mark.parametrize("more", [(), (4,)], ids=["one broker", "two brokers"])
def test_an_approved_plan_and_a_decommission_of_its_brokers_both_end(more: tuple[int, ...]) -> None:
    run = Policies(ROWS)
    it = run.policy({**LOST, "windows": LATE})
    run.rest(300)
    run.brokers[5] = FENCED
    run.wait(lambda: it.record.plan is not None and it.record.plan.approved)
    run.brokers.update(dict.fromkeys(more, FENCED))
    run.apply(brokers=(*more, 5), approval="NotRequired")
    run.rest(3600)
    until(run, OPENS + 1800)
    assert run.on(5) == []
    run.until("Empty")


@pytest.mark.parametrize("cordoned", [{5}, {4, 5}])
def test_an_approved_plan_begins_though_its_cordoned_broker_has_died(cordoned: set[int]) -> None:
    run = Policies(ROWS)
    it = run.policy(CORDONED, windows=LATE)
    run.rest(900)
    run.others = cordoned
    run.wait(lambda: it.record.plan is not None and it.record.plan.approved)
    run.brokers[max(cordoned - {5} or {5})] = FENCED
    until(run, OPENS + 1800)
    assert [broker for broker in cordoned if run.on(broker)] == []


def test_an_approved_plan_that_nothing_asks_for_any_more_is_retired() -> None:
    run, it = approved(ADDED)
    run.replicas.update({TopicPartition("new", number): (6, number % 5) for number in range(12)})
    run.rest(1200)
    assert it.says("out") == ("Idle", None)
    until(run, OPENS + 600)
    assert (it.outcomes, run.begun) == ([("main-out-1", "Retired")], [])


def test_a_restart_of_the_new_broker_retires_no_approved_plan() -> None:
    run, it = approved(ADDED)
    run.brokers[6] = FENCED
    run.rest(60)
    run.brokers[6] = UP
    until(run, OPENS + 600)
    assert run.begun[0].startswith("main-out-1")
    assert ("main-out-1", "Retired") not in it.outcomes


def test_a_bound_that_is_lowered_asks_for_an_approval() -> None:
    run, it = approved(ADDED, orders(*((number % 5, (number + 1) % 5) for number in range(60))))
    it.edit(maxBytes="1Ki")
    until(run, OPENS + 120)
    assert (run.begun, it.reason, it.true) == ([], "AwaitingApproval", {"Ready", "ApprovalNeeded"})
    it.approve()
    run.wait(lambda: run.begun)


def test_a_bound_that_is_lowered_later_stops_no_waves() -> None:
    run, it = approved(ADDED, orders(*((number % 5, (number + 1) % 5) for number in range(60))))
    until(run, OPENS - 60)
    run.wait(lambda: run.begun)
    it.edit(maxBytes="1Ki")
    run.wait(lambda: it.outcomes == [("main-out-1", "Succeeded")])


def test_a_users_plan_holds_a_decommission_until_its_first_wave() -> None:
    run = Policies(ROWS)
    it = run.apply(approval="NotRequired", windows=LATE)
    run.rest(600)
    assert it.record.plan
    assert it.record.plan.approved
    until(run, OPENS - 60)
    _user(run)
    until(run, OPENS + 300)
    assert (run.begun, it.reason) == ([], "PlanInProgress")
    assert it.message == "the plan of a user, tenant, goes first"
    run.users = []
    run.wait(lambda: run.begun)
    _user(run)
    run.until("Empty")


def test_no_plan_begins_while_a_cordon_is_not_known() -> None:
    run = Policies(ROWS)
    it = run.policy(CORDONED, suspend=True)
    run.rest(900)
    run.others = {5}
    run.rest(900)
    assert it.says("in") == ("Held", "Suspended")
    run.untold = {5}
    run.rest(300)
    it.edit(suspend=False)
    run.rest(600)
    assert (run.begun, it.trigger("in").message) == (
        [],
        "main-in-1 waits: it is not known whether broker 5 is cordoned",
    )
    run.untold = set()
    run.wait(lambda: run.on(5) == [])


def test_a_plan_approved_by_its_digest_goes_on_when_it_needs_none() -> None:
    run = Policies(orders(*[(5, 1)] * 10))
    it = run.policy({**LOST, "approval": "Required"})
    run.rest(300)
    run.brokers[5] = FENCED
    run.wait(lambda: it.status.digest)
    it.approve()
    run.wait(lambda: run.begun)
    it.edit(triggers=[LOST], approvedDigest=None)
    run.wait(lambda: run.on(5) == [])


def test_a_plan_that_hangs_in_its_deletion_keeps_no_lost_broker_waiting() -> None:
    run = Policies(ROWS)
    it = run.policy({**ADDED, "approval": "Required"}, LOST)
    run.rest(900)
    run.brokers[6] = UP
    run.wait(lambda: it.status.digest)
    run.plans["main-out-1"].kept = True
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [], most=100)
    assert "main-out-1" in run.plans


def test_a_plan_that_cannot_be_created_keeps_no_lost_broker_waiting() -> None:
    run = Policies(ROWS)
    it = run.policy(ADDED, LOST)
    run.rest(900)
    run.brokers[6] = UP
    run.refused = {"main-out-1"}
    run.wait(lambda: it.record.waiting is not None)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [], most=100)
