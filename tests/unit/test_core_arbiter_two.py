"""Two approved plans at once, a decommission's and a policy's: which one goes on, in each order of rank."""

from __future__ import annotations

from typing import Any

import pytest

from reassign.core.automation.model import RetirePlan, RunPlan
from tests.unit.automation_sim import FENCED, UP, SimDecommission
from tests.unit.policy_histories import ArbitratedPolicies
from tests.unit.policy_sim import SimPolicy

ROWS = ((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (1, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 300}}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 60}}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 60}}
OFTEN = {"name": "often", "schedule": {"cron": "*/5 * * * *"}}


def cluster() -> ArbitratedPolicies:
    return ArbitratedPolicies(ROWS, [UP] * 5)


def with_both(trigger: dict[str, Any]) -> tuple[ArbitratedPolicies, SimDecommission, SimPolicy]:
    """One cluster with both objects, each of which has come to an approved plan alone; no wave has begun."""
    run, alone = cluster(), cluster()
    for each in (run, alone):
        each.brokers[4], each.others = FENCED if trigger is LOST else UP, {3} if trigger is CORDONED else set()
    run.policy(trigger, name="main", approval="NotRequired", settleSeconds=60)
    run.wait(lambda: run.policies["main"].record.plan)
    alone.apply("old", [5], approval="NotRequired")
    while not (alone.objects["old"].record.plan and alone.objects["old"].record.plan.approved):
        alone.tick()
    run.adopt(alone)
    assert run.begun == alone.begun == []
    return run, run.objects["old"], run.policies["main"]


def step_of(run: ArbitratedPolicies) -> dict[str, str]:
    """What is decided about each plan."""
    run._observe()
    steps = [step for step in run.decide().steps if isinstance(step, RunPlan | RetirePlan)]
    return {step.plan.name: type(step).__name__ for step in steps}


def test_a_lost_broker_has_the_plan_of_a_decommission_retired() -> None:
    run, it, _ = with_both(LOST)
    assert step_of(run) == {"main-lost-1": "RunPlan", "old-1": "RetirePlan"}
    run.tick()
    assert (run.begun, it.record.plan and it.record.plan.retired) == (["main-lost-1-w1"], True)
    assert it.message == "old-1 starts nothing more: main-lost-1 goes first"
    run.until("Empty", most=200)
    assert [plan.split("-w")[0] for plan in run.begun] == sorted(plan.split("-w")[0] for plan in run.begun)


@pytest.mark.parametrize("trigger", [CORDONED, ADDED, OFTEN], ids=lambda trigger: str(trigger["name"]))
def test_a_decommission_goes_on_before_plans_of_lower_precedence(trigger: dict[str, Any]) -> None:
    run, _, policy = with_both(trigger)
    name = f"main-{trigger['name']}-1"
    while not run.begun:
        assert name not in step_of(run)
        run.tick()
    assert run.begun == ["old-1-w1"]
    assert policy.trigger(trigger["name"]).message == f"{name} starts nothing: old-1 goes first"
    run.until("Empty")
    assert not any(wave.startswith(name) for wave in run.begun)


@pytest.mark.parametrize("held", ["suspend", "approval"])
def test_one_that_is_resumed_waits_for_what_another_has_in_flight(held: str) -> None:
    run = cluster()
    it = run.apply("old", [5], approval="NotRequired")
    run.wait(lambda: run.begun)
    it.edit(**({"suspend": True} if held == "suspend" else {"approval": "Required"}))
    policy = run.policy(ADDED, name="main", approval="NotRequired", settleSeconds=60)
    run.wait(lambda: "main-out-1-w1" in run.begun)
    it.edit(suspend=False, approval="NotRequired")
    run.tick()
    assert it.message == "what is in flight of the plan main-out-1 goes first"
    assert policy.trigger("out").message == "main-out-1 starts nothing: old-1 goes first"
    run.wait(lambda: it.reason == "Empty", most=100)
    run.wait(lambda: policy.reason == "Idle", most=200)
    assert run.begun[:3] == ["old-1-w1", "main-out-1-w1", "old-1-w2"]


HELD = ["suspend", "approval", "too many"]


def hold(run: ArbitratedPolicies, policy: SimPolicy, how: str) -> None:
    """Keep the plan of a policy from going on, as a user does, or since more is down than it may replace."""
    match how:
        case "suspend":
            policy.edit(suspend=True)
        case "approval":
            policy.edit(approvedDigest=None)
        case _:
            run.brokers[6] = FENCED


def let_go(run: ArbitratedPolicies, policy: SimPolicy, digest: str | None) -> None:
    policy.edit(suspend=False, approvedDigest=digest)
    run.brokers[6] = UP


def with_a_replacement_that_is_held(how: str) -> tuple[ArbitratedPolicies, SimDecommission, SimPolicy]:
    """A replacement of broker 5 with one wave of two in flight, held, and a decommission of broker 4 beside it."""
    run = ArbitratedPolicies((*ROWS, (4, 1), (4, 2), (6, 1)), [UP] * 5)
    policy = run.policy(LOST, name="main", settleSeconds=60)
    run.brokers[5] = FENCED
    run.wait(lambda: policy.status.digest)
    policy.approve()
    run.wait(lambda: run.begun)
    hold(run, policy, how)
    it = run.apply("old", [4], approval="NotRequired")
    while run._moving():
        run.tick()
        assert run.begun == ["main-lost-1-w1"]
    run.wait(lambda: len(run.begun) > 1, most=100)
    assert run.begun == ["main-lost-1-w1", "old-1-w1"]
    return run, it, policy


@pytest.mark.parametrize("how", HELD)
def test_a_replacement_that_is_held_gives_way_to_a_decommission(how: str) -> None:
    run, _, policy = with_a_replacement_that_is_held(how)
    digest = policy.record.approval and policy.record.approval.digest
    run.until("Empty", most=100)
    assert {plan.split("-w")[0] for plan in run.begun[1:]} == {"old-1"}
    let_go(run, policy, digest)
    run.wait(lambda: run.on(5) == [], most=400)


@pytest.mark.parametrize("how", HELD)
def test_a_replacement_that_is_let_go_waits_for_what_is_in_flight(how: str) -> None:
    run, it, policy = with_a_replacement_that_is_held(how)
    let_go(run, policy, policy.record.approval and policy.record.approval.digest)
    run.tick()
    assert it.record.plan
    assert (it.record.plan.retired, run.begun) == (True, ["main-lost-1-w1", "old-1-w1"])
    assert policy.trigger("lost").message == "main-lost-1 starts nothing: old-1 goes first"
    run.wait(lambda: len(run.begun) > 2, most=100)
    assert run.begun == ["main-lost-1-w1", "old-1-w1", "main-lost-1-w2"]
    run.wait(lambda: run.on(5) == [] and it.reason == "Empty", most=400)


def test_a_balance_that_was_suspended_waits_for_the_decommission() -> None:
    run = cluster()
    policy = run.policy(ADDED, name="main", approval="NotRequired", settleSeconds=60)
    run.wait(lambda: run.begun)
    policy.edit(suspend=True)
    run.tick(5)
    it = run.apply("old", [5], approval="NotRequired")
    run.wait(lambda: "old-1-w1" in run.begun, most=100)
    policy.edit(suspend=False)
    run.tick()
    assert policy.trigger("out").message == "main-out-1 starts nothing: old-1 goes first"
    run.wait(lambda: it.reason == "Empty", most=100)
    run.wait(lambda: policy.reason == "Idle", most=400)
    assert [wave.split("-w")[0] for wave in run.begun[:3]] == ["main-out-1", "old-1", "main-out-1"]
