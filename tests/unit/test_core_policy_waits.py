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
