"""What others write into statuses neither starts a plan of automation nor has one copied without its approval."""

from __future__ import annotations

import pytest

from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import BYTES, FENCED, Decommissions, SimDecommission, orders
from tests.unit.policy_sim import Policies, SimPolicy

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 5), (3, 5), (4, 5), (5, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 600}}


def lost(approval: str = "NotRequired", **fields: object) -> tuple[Policies, SimPolicy]:
    """Return a policy whose broker 5 was lost just now."""
    run = Policies(ROWS)
    it = run.policy({**LOST, "approval": approval}, **fields)
    run.rest(900)
    run.brokers[5] = FENCED
    return run, it


# --- Generations ---


def failed(run: Policies, it: SimPolicy) -> None:
    """Have its first plan deleted by a user."""
    run.wait(lambda: run.begun)
    run.plans["main-lost-1"].deleted = True
    run.rest(60)
    assert it.says("lost") == ("Held", "Backoff")


@pytest.mark.parametrize("generation", [0, 1, 99])
def test_a_forged_generation_of_a_policy_ends_no_wait(generation: int) -> None:
    run, it = lost()
    failed(run, it)
    for _ in range(20):
        it.status = it.status.model_copy(update={"observed_generation": generation})
        run.tick()
    assert (run.created, it.says("lost")) == (["main-lost-1"], ("Held", "Backoff"))


def test_an_edit_of_a_policy_ends_the_wait_once() -> None:
    run, it = lost()
    failed(run, it)
    it.edit(settleSeconds=60)
    run.tick()
    assert it.record.triggers == ()
    run.wait(lambda: "main-lost-2-w1" in run.begun, most=20)
    run.plans["main-lost-2"].deleted = True
    run.rest(300)
    assert (run.created[2:], it.says("lost")) == ([], ("Held", "Backoff"))


def test_an_edit_that_is_seen_first_by_another_process_ends_the_wait() -> None:
    run, it = lost()
    failed(run, it)
    it.edit(settleSeconds=60)
    it.status = it.status.model_copy(update={"observed_generation": it.generation})
    run.restart()
    run.wait(lambda: "main-lost-2" in run.created, most=20)


def test_a_forged_generation_of_a_decommission_ends_no_wait() -> None:
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired")
    for number in range(1, 4):
        while f"old-{number}-w1" not in run.begun:
            run.tick()
        run.plans[f"old-{number}"].deleted = True
        run.tick()
    for _ in range(30):
        it.status = it.status.model_copy(update={"observed_generation": 0})
        run.tick()
    assert (it.reason, run.created) == ("PlanFailed", ["old-1", "old-2", "old-3"])
    it.edit(suspend=False)
    run.until("Empty")


# --- Bytes ---

GREATEST = 10**12
COPIED = 7 * BYTES
"""What the first plan of broker 5 copies."""


def forge(run: Decommissions, copied: int) -> None:
    """Have the statuses of all plans say that each wave copies so many bytes."""
    for plan in run.plans.values():
        for wave in plan.waves:
            wave.forged = copied


def watched(run: Decommissions, ticks: int, copied: int) -> None:
    """Let time pass while others write statuses."""
    for _ in range(ticks):
        forge(run, copied)
        run.tick()


def land(run: Decommissions, replicas: int = 3) -> None:
    run.replicas |= {TopicPartition("late", number): (5, 1) for number in range(replicas)}


def carried_out(run: Decommissions, it: SimPolicy | SimDecommission, copied: int) -> None:
    """Forge the bytes, approve the plan, and let it be carried out: what was approved is what it really copies."""
    forge(run, copied)
    it.approve()
    while run.on(5):
        watched(run, 1, copied)
    assert (approval := it.record.approval)
    assert (approval.bytes, approval.begun_bytes) == (COPIED, COPIED)


def test_forged_bytes_do_not_get_a_plan_below_max_bytes() -> None:
    run, it = lost(maxBytes=1024)
    land(run, 4)
    run.wait(lambda: it.reason == "AwaitingApproval")
    watched(run, 40, copied=0)
    assert (it.reason, run.begun) == ("AwaitingApproval", [])
    assert "and maxBytes is 1024" in (it.status.summary or "")
    it.approve()
    run.wait(lambda: run.on(5) == [])


@pytest.mark.parametrize("copied", [0, GREATEST])
def test_forged_bytes_get_no_further_plan_under_an_approval_of_a_policy(copied: int) -> None:
    run, it = lost("Required")
    run.wait(lambda: it.reason == "AwaitingApproval")
    carried_out(run, it, copied)
    land(run)
    run.wait(lambda: it.reason == "AwaitingApproval")
    watched(run, 40, copied=0)
    assert (it.reason, len(run.on(5))) == ("AwaitingApproval", 3)


def decommission(**fields: object) -> tuple[Decommissions, SimDecommission]:
    run = Decommissions(ROWS)
    return run, run.apply(cordon="Never", **fields)


@pytest.mark.parametrize("copied", [0, GREATEST])
def test_forged_bytes_get_no_further_plan_under_an_approval(copied: int) -> None:
    run, it = decommission()
    run.until("AwaitingApproval")
    carried_out(run, it, copied)
    run.until("Empty")
    land(run)
    run.until("AwaitingApproval")
    watched(run, 40, copied=0)
    assert (it.reason, len(run.on(5))) == ("AwaitingApproval", 3)


def test_an_approval_taken_back_and_given_again_counts_true_bytes() -> None:
    run, it = decommission()
    run.until("AwaitingApproval").approve()
    while not run.begun:
        run.tick()
    it.edit(approvedDigest=None)
    watched(run, 5, GREATEST)
    it.approve()
    watched(run, 2, GREATEST)
    assert it.record.approval
    assert it.record.approval.bytes == COPIED


# --- Waves that are not those that were worked out ---


def test_a_plan_that_is_not_as_worked_out_is_made_anew_under_max_bytes() -> None:
    run, it = lost(maxBytes="1Mi")
    run.wait(lambda: "main-lost-1" in run.plans)
    run.plans["main-lost-1"].waves[0].entries.popitem()
    run.wait(lambda: run.on(5) == [])
    assert run.created == ["main-lost-1", "main-lost-2"]
    assert all(wave.startswith("main-lost-2-") for wave in run.begun)
    assert it.outcomes == [("main-lost-2", "Running")]


def test_a_plan_that_is_not_as_worked_out_runs_without_max_bytes() -> None:
    run, _ = lost()
    run.wait(lambda: "main-lost-1" in run.plans)
    run.plans["main-lost-1"].waves[0].entries.popitem()
    run.wait(lambda: "main-lost-1-w1" in run.begun, most=20)


def test_an_approval_of_a_plan_that_is_not_as_worked_out_covers_no_other() -> None:
    run, it = decommission()
    run.until("AwaitingApproval")
    run.plans["old-1"].waves[0].entries.popitem()
    run.tick()
    it.approve()
    run.until("WaveInFlight")
    run.until("AwaitingApproval")
    assert (run.created, len(run.on(5))) == (["old-1", "old-2"], 1)
    it.approve()
    run.until("Empty")
