"""What an approval of a BrokerDecommission gives, and for how long: sentences."""

from __future__ import annotations

from typing import Any

import pytest

from reassign.api.reassignment_plan import ReassignmentPlanSpec
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import Decommissions, SimDecommission, SimOwnedPlan, orders

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2))
NEVER = {"cron": "0 0 30 2 *", "durationSeconds": 3600}


def approved(**fields: Any) -> tuple[Decommissions, SimDecommission]:
    run = Decommissions(ROWS)
    it = run.apply(**fields)
    run.until("AwaitingApproval").approve()
    run.tick()
    return run, it


def with_a_further_plan() -> tuple[Decommissions, SimDecommission]:
    """Return one whose further plan is under way under the first approval."""
    run, it = approved(cordon="Never")
    run.until("Empty")
    approval = it.record.approval
    assert approval
    it.record = it.record.model_copy(update={"approval": approval.model_copy(update={"bytes": 2 * approval.bytes})})
    run.replicas |= {TopicPartition("late", number): (5, 1) for number in range(3)}
    while "old-2-w1" not in run.begun:
        run.tick()
    return run, it


def test_a_further_plan_whose_approval_was_withdrawn_takes_its_own() -> None:
    run, it = with_a_further_plan()
    it.edit(approvedDigest=None)
    run.tick(5)
    assert (it.reason, run.begun[-1]) == ("AwaitingApproval", "old-2-w1")
    it.approve()
    run.until("Empty")
    assert run.created == ["old-1", "old-2"]
    assert (approval := it.record.approval)
    assert (approval.digest, approval.bytes, approval.begun_bytes) == (it.spec.approved_digest, 300, 300)


def test_a_plan_under_way_can_be_approved_once_that_is_required() -> None:
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired")
    while not run.begun:
        run.tick()
    it.edit(approval="Required")
    run.tick(5)
    assert (it.reason, run.begun) == ("AwaitingApproval", ["old-1-w1"])
    it.approve()
    run.until("Empty")


def test_approving_what_landed_does_not_lift_the_cordon() -> None:
    run, _ = approved()
    run.until("Empty")
    since = run.cordons[5]
    run.replicas[TopicPartition("late", 0)] = (5, 1)
    run.until("AwaitingApproval").approve()
    run.until("Empty")
    assert run.cordons[5] == since


@pytest.mark.parametrize("given", [False, True])
def test_a_window_that_never_opens_is_said_before_the_approval(given: bool) -> None:
    run = Decommissions(ROWS)
    it = run.apply()
    run.until("AwaitingApproval")
    it.edit(windows=[NEVER])
    if given:
        it.approve()
    run.tick()
    assert (it.reason, it.record.approval, run.cordons) == ("InvalidSchedule", None, {})
    run.apply("next", [4], approval="NotRequired")
    run.until("Empty", "next")
    it.edit(windows=[])
    if not given:
        run.until("AwaitingApproval", most=400).approve()
    run.until("Empty", most=400)


def recorded() -> tuple[Decommissions, SimDecommission]:
    """Return one whose process has ended between the record of its plan and the plan."""
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired")
    run.tick(2)  # the finalizer, and working out
    run.crash_after = 1
    run.tick()
    return run, it


@pytest.mark.parametrize(("edits", "created"), [({}, "old-1"), ({"waves": {"maxPartitions": 7}}, "old-2")])
def test_a_recorded_plan_is_created_for_the_spec_that_it_was_recorded_for(edits: dict[str, Any], created: str) -> None:
    run, it = recorded()
    assert run.created == []
    it.edit(**edits)
    run.until("Empty")
    assert run.created == [created]


@pytest.mark.parametrize("owned", [False, True])
def test_a_plan_of_the_recorded_name_by_another_is_not_adopted(owned: bool) -> None:
    run, it = recorded()
    assert it.record.plan
    assert (it.record.plan.name, run.created) == ("old-1", [])
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "main"}, "goal": {"drainBrokers": [1]}})
    run.plans["old-1"] = SimOwnedPlan("uid-of-another", "old-1", spec, it.uid if owned else None)
    run.until("Empty")
    assert run.created == ["old-2"]
    assert it.record.plan.uid == "uid-old-2"
    assert not run.plans["old-1"].retired


def test_without_an_approval_only_an_evacuation_begins() -> None:
    run = Decommissions(ROWS)
    it = run.apply()
    run.until("AwaitingApproval")
    run.plans["old-1"].waves[1].entries |= {TopicPartition("orders", 3): ((1, 2), (0, 2))}
    it.edit(approval="NotRequired")
    run.tick(5)
    assert (it.reason, run.begun, run.cordons) == ("AwaitingApproval", [], {})
    assert "orders-3 has no replica on broker 5" in it.message
    it.approve()
    run.until("Empty")


def test_an_approval_that_is_given_back_counts() -> None:
    run, it = approved()
    run.until("Empty")
    given = it.spec.approved_digest
    run.replicas[TopicPartition("late", 0)] = (5, 1)
    run.until("AwaitingApproval")
    it.edit(approvedDigest=None)
    run.tick(3)
    assert run.cordons == {}
    it.edit(approvedDigest=given)
    run.tick(3)
    assert (it.reason, run.cordons.keys()) == ("AwaitingApproval", {5})
