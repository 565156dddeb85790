"""Waits of policies and decommissions: as long as they are, whatever the API server's clock is set to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest

from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.policy_sim import Policies

ROWS = orders((5, 1), (2, 5), (5, 3), (4, 5), (5, 0), (1, 5), (5, 2), (3, 5), (0, 1), (3, 4))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 60}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 60}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
LANDED = TopicPartition("orders", 90)
YEAR = 365 * 86_400


def _backoff() -> Policies:
    """The plan of a lost broker has just been deleted."""
    run = Policies(ROWS)
    run.policy(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.plans["main-lost-1"].deleted = True
    run.tick(2)
    return run


def _landed() -> Policies:
    """A lost broker was just replaced, and gets another replica."""
    run = Policies(ROWS)
    it = run.policy(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    run.replicas[LANDED] = (5, 1)
    return run


def _cooldown() -> Policies:
    """A new broker was just filled, and another one comes."""
    run = Policies(ROWS)
    it = run.policy(ADDED, settleSeconds=60, cooldownSeconds=1200)
    run.brokers[6] = UP
    run.wait(lambda: it.outcomes == [("main-out-1", "Succeeded")])
    run.brokers[7] = UP
    return run


def _decommission() -> Policies:
    """The plan of a decommission has just ended, and its broker has another replica."""
    run = Policies(ROWS)
    it = run.apply(approval="NotRequired")
    run.wait(lambda: run.begun)
    run.replicas[LANDED] = (5, 1)
    run.wait(lambda: it.record.plan and it.record.plan.retired)
    return run


def _failing() -> Policies:
    """The third plan of a decommission has just been deleted."""
    run = Policies(ROWS)
    it = run.apply(approval="NotRequired")
    for number in range(1, 4):
        run.wait(lambda number=number: f"old-{number}-w1" in run.begun)  # type: ignore[misc]
        run.plans[f"old-{number}"].deleted = True
        run.wait(lambda number=number: it.record.failures == number)  # type: ignore[misc]
    return run


WAITS: Mapping[str, tuple[Callable[[], Policies], int, float]] = {
    "a back-off": (_backoff, 600, 15),
    "what has landed": (_landed, 60, 5),
    "a cooldown": (_cooldown, 1200, 15),
    "a further plan": (_decommission, 60, 5),
    "plans that failed": (_failing, 3600, 60),
}


def next_plan(name: str, jump: float) -> float:
    """Let the clock jump in the middle of a wait; return the seconds until the next plan is created."""
    begin, length, tick = WAITS[name]
    run = begin()
    began, plans = run.seconds, len(run.created)
    run.tick(int(length / tick / 2), tick)
    run.clock += jump
    run.wait(lambda: len(run.created) > plans, most=120, seconds=tick)
    return run.seconds - began


@cache
def undisturbed(name: str) -> float:
    """The same while no clock jumps."""
    _, length, tick = WAITS[name]
    seconds = next_plan(name, 0)
    assert length - tick <= seconds <= length + 5 * tick
    return seconds


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("jump", [60, -60, 3600, -3600, YEAR, -YEAR])
def test_a_clock_that_jumps_in_a_wait_makes_no_plan_early_or_late(name: str, jump: int) -> None:
    assert next_plan(name, jump) == undisturbed(name)


def test_what_is_said_of_the_end_of_a_wait_follows_the_clock() -> None:
    run = _backoff()
    [it] = run.policies.values()
    before = it.record.triggers[0].next_attempt
    run.clock += 3600
    run.tick()
    after = it.record.triggers[0].next_attempt
    assert before
    assert after
    assert it.says("lost") == ("Held", "Backoff")
    assert (after.until - before.until).total_seconds() == 3600
    assert f"made at {after.until:%H:%M} UTC" in it.trigger("lost").message


def test_a_broker_lost_later_does_not_wait_for_what_the_first_one_left() -> None:
    run = Policies(orders((5, 1), (2, 5), (5,), (1, 2), (3, 4), (4, 0), (0, 1)))
    it = run.policy({**LOST, "brokerLost": {"afterSeconds": 60, "maxBrokers": 2}}, settleSeconds=60)
    run.rest(120)
    run.brokers[5] = FENCED
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    run.rest(4 * 3600)
    assert it.says("lost") == ("Held", "GainTooSmall")
    run.brokers[4] = FENCED
    run.rest(150)
    assert run.created == ["main-lost-1", "main-lost-2"]


def test_a_broker_that_replaces_a_lost_one_gets_its_replicas_at_once() -> None:
    run = Policies(orders(*[(0, 1, 2)] * 8), brokers=range(3), factor=3)
    it = run.policy(LOST, settleSeconds=60)
    run.rest(300)
    run.brokers[2] = FENCED
    run.rest(4 * 3600)
    assert (it.says("lost"), run.created) == (("Held", "GainTooSmall"), [])
    run.brokers[3] = UP
    run.rest(60)
    assert run.created == ["main-lost-1"]


def test_a_new_broker_is_filled_once_there_is_something_to_move() -> None:
    run = Policies(orders(*((5, number % 5) for number in range(10))))
    it = run.policy(ADDED)
    run.rest(900)
    run.brokers[5] = FENCED
    run.rest(2400)
    run.brokers[6] = UP
    run.rest(3000)
    assert (it.says("out"), run.created) == (("Held", "GainTooSmall"), [])
    run.replicas.update({TopicPartition("new", number): (number % 5, (number + 1) % 5) for number in range(40)})
    run.wait(lambda: run.on(6), most=100)


def test_a_plan_that_never_fits_comes_no_sooner_than_after_failures() -> None:
    run = Policies(orders(*((5, number % 5) for number in range(40))))
    it = run.policy(LOST)
    run.brokers[5] = FENCED
    waits = list[tuple[int, int]]()
    for _ in range(3000):
        run.tick()
        plan = it.record.plan
        found = run.plans.get(plan.name) if plan and not plan.retired else None
        if found and plan and plan.number % 2 == 0:
            found.stale = True
        elif found and plan and plan.begun_waves:
            found.deleted = True
        for known in it.record.triggers:
            wait = known.next_attempt.seconds if known.next_attempt else 0
            if (known.failures, wait) not in waits:
                waits.append((known.failures, wait))
    assert [each for each in waits if each[0]] == [(n, 600 * 2 ** (n - 1)) for n in range(1, 7)]


def test_a_policy_is_not_stalled_for_a_broker_that_is_back() -> None:
    run = Policies(ROWS)
    it = run.policy(LOST)
    run.brokers[5] = FENCED
    for number in (1, 2, 3):
        run.wait(lambda: len(run.begun) == number)  # noqa: B023
        run.plans[f"main-lost-{number}"].deleted = True
        run.rest(60)
    assert (it.reason, it.true) == ("PlanFailed", {"Stalled"})
    run.brokers[5] = UP
    run.rest(600)
    assert it.reason == "PlanFailed", "its wait lasts"
    run.rest(2400)
    assert (it.reason, it.true) == ("Idle", {"Ready"})


def test_a_plan_that_waits_for_days_outlives_a_restart() -> None:
    run = Policies(ROWS)
    it = run.policy({**LOST, "approval": "Required"})
    run.rest(300)
    run.brokers[5] = FENCED
    run.wait(lambda: it.status.digest)
    digest = it.status.digest
    run.tick(30 * 60, 60)
    run.restart()
    run.rest(3600)
    assert (it.status.digest, run.created) == (digest, ["main-lost-1"])


def test_a_schedule_of_a_clock_that_was_a_year_ahead_is_missed() -> None:
    run = Policies(ROWS)
    it = run.policy({"name": "nightly", "schedule": {"cron": "0 4 * * *"}})
    run.rest(300)
    run.clock = YEAR
    run.wait(lambda: it.status.digest, most=6000)
    run.clock = 0
    run.rest(300)
    assert (it.says("nightly"), run.plans) == (("Idle", "ScheduleMissed"), {})


@pytest.mark.parametrize("trigger", [ADDED, CORDONED], ids=["added", "cordoned"])
def test_a_restart_of_brokers_deletes_no_plan_that_waits(trigger: dict[str, object]) -> None:
    run = Policies(ROWS)
    it = run.policy({**trigger, "approval": "Required"}, settleSeconds=60)
    run.rest(300)
    if trigger is ADDED:
        run.brokers[6] = UP
    else:
        run.others = {5}
    run.wait(lambda: it.status.digest)
    digest = it.status.digest
    for broker in [*run.brokers]:
        run.brokers[broker] = FENCED
        run.rest(60)
        assert it.status.digest == digest
        run.brokers[broker] = UP
        run.rest(120)
    run.rest(1200)
    assert (it.status.digest, len(run.created)) == (digest, 1)


def test_a_plan_that_waits_is_made_anew_for_another_new_broker() -> None:
    run = Policies(orders(*((number % 5, (number + 1) % 5) for number in range(60))))
    it = run.policy({**ADDED, "approval": "Required"}, settleSeconds=60)
    run.rest(300)
    run.brokers[6] = UP
    run.wait(lambda: it.status.digest)
    run.brokers[7] = UP
    run.rest(600)
    it.approve()
    run.wait(lambda: len(run.on(6)) > 0 and len(run.on(7)) > 0, most=100)


def test_a_plan_that_waits_is_deleted_some_minutes_after_its_trigger() -> None:
    run = Policies(ROWS)
    it = run.policy({**CORDONED, "approval": "Required"})
    run.rest(900)
    run.others = {5}
    run.wait(lambda: it.status.digest)
    run.others = set()
    run.rest(240)
    it.approve()
    run.rest(30)
    assert (run.begun, [*run.plans]) == ([], ["main-in-1"])
    run.rest(90)
    assert (run.begun, run.plans) == ([], {})


def test_the_end_of_a_decommission_deletes_no_plan_that_waits() -> None:
    run = Policies(orders((5, 1), (2, 5), (1, 2), (3, 4), (0, 1), (0, 2), (1, 3), (4, 0)), brokers=range(7))
    it = run.policy({**ADDED, "approval": "Required"})
    old = run.apply(brokers=[4, 5], approval="NotRequired", unregister="WhenDown")
    run.until("Empty")
    run.wait(lambda: it.status.digest)
    digest = it.status.digest
    run.brokers[5] = FENCED
    run.rest(600)
    run.brokers[4] = FENCED
    run.wait(lambda: old.reason == "Unregistered")
    run.rest(600)
    assert (it.status.digest, run.created) == (digest, ["old-1", it.record.waiting.name])
