"""Which plan of a policy is made beside one that waits, and what becomes of triggers that can have none: sentences."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest

from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.reassignment_plan import ReassignmentPlanSpec
from reassign.core.automation.case import first_avoided
from reassign.core.automation.model import BrokerSeen, BrokersSeen, WorkedOut
from reassign.core.automation.policy_case import spec_of
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.policy_sim import Policies, SimPolicy

LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 600}, "approval": "Required"}
NIGHTLY: dict[str, Any] = {"name": "nightly", "schedule": {"cron": "0 4 * * *"}, "approval": "NotRequired"}
LATE = {**NIGHTLY, "schedule": {"cron": "0 4 * * *", "startingDeadlineSeconds": 86_400}, "approval": "Required"}
CLOSED = [{"cron": "0 0 1 1 *", "durationSeconds": 300}]
SINGLE, LANDED = TopicPartition("single", 0), TopicPartition("landed", 0)
WIDE = {TopicPartition("wide", 0): (0, 1, 2, 3, 4, 5)}
TOO_LARGE = Problem(Reason.PLAN_TOO_LARGE, "50000 partitions would move")


class Planned(Policies):
    """The model, which can make no plan for some triggers."""

    def __init__(self) -> None:
        super().__init__({TopicPartition("big", n): (0, 1) for n in range(20)})
        self.unmade: dict[bool, Problem] = {}
        """Why no plan is made that evacuates brokers, or none that does not."""
        self.slow = False
        """Whether a plan that evacuates brokers is not there yet."""

    def _work_out(self, spec: ReassignmentPlanSpec, refused: Set[int] = frozenset()) -> WorkedOut | Problem:
        evacuates = bool(spec.goal.drain_brokers)
        found = self.unmade.get(evacuates) or super()._work_out(spec, refused)
        slow = self.slow and evacuates and isinstance(found, WorkedOut)
        return replace(found, spec_digest="that of another one") if slow else found


def world(*triggers: dict[str, Any], **fields: Any) -> tuple[Planned, SimPolicy]:
    run = Planned()
    it = run.policy(*triggers, **fields)
    run.rest(900)
    return run, it


def waits(trigger: dict[str, Any]) -> tuple[Planned, SimPolicy]:
    """One whose plan for a new broker waits for its approval, while a broker without replicas is down."""
    run = Planned()
    run.replicas = {TopicPartition("big", n): (n % 5, (n + 1) % 5) for n in range(20)}
    run.brokers |= {5: FENCED, 6: UP}
    it = run.policy(trigger, ADDED)
    run.wait(lambda: it.status.digest)
    assert run.created == ["main-out-1"]
    return run, it


# --- A plan that waits, and a trigger that goes first ---


def test_a_lost_broker_with_nothing_to_move_deletes_no_waiting_plan() -> None:
    run, it = waits(LOST)
    run.replicas[SINGLE] = (5,)
    run.rest(4 * 3600)
    assert run.created == ["main-out-1"]
    assert (it.says("lost"), it.says("out")) == (("Held", "GainTooSmall"), ("Active", None))
    it.approve()
    run.wait(lambda: ("main-out-1", "Succeeded") in it.outcomes)


@pytest.mark.parametrize("approval", ["Required", "NotRequired"])
def test_a_waiting_plan_is_deleted_once_a_lost_broker_has_one(approval: str) -> None:
    run, it = waits({**LOST, "approval": approval})
    run.replicas[LANDED] = (5, 1)
    run.rest(1700)
    assert list(run.plans) == ["main-out-1"]
    run.wait(lambda: "main-lost-2" in run.created)
    assert "main-out-1" not in run.plans
    assert it.status.plan
    assert it.status.plan.name == "main-lost-2"


def test_a_waiting_plan_stays_while_a_lost_broker_waits_for_its_window() -> None:
    run, it = waits({**LOST, "windows": CLOSED})
    run.replicas[LANDED] = (5, 1)
    run.rest(3600)
    assert (list(run.plans), it.says("lost")) == (["main-out-1"], ("Held", "OutsideWindow"))
    it.approve()
    run.wait(lambda: ("main-out-1", "Succeeded") in it.outcomes)


def test_a_plan_does_not_begin_while_that_of_a_lost_broker_is_worked_out() -> None:
    run, it = waits(LOST)
    run.replicas[LANDED], run.slow = (5, 1), True
    run.wait(lambda: it.says("lost")[0] == "Active")
    assert it.reason == "AwaitingApproval"
    it.approve()
    run.rest(300)
    assert (run.begun, list(run.plans)) == ([], ["main-out-1"])
    run.slow = False
    run.wait(lambda: run.on(5) == [])
    assert run.begun == ["main-lost-2-w1"]


# --- A trigger that can have no plan ---


def test_a_broker_that_cannot_be_emptied_holds_up_no_schedule() -> None:
    run, it = world(CORDONED, NIGHTLY)
    run.replicas.update(WIDE)
    run.others = {5}
    run.wait(lambda: ("main-nightly-1", "Succeeded") in it.outcomes)
    assert (it.says("in"), it.reason) == (("Held", "DrainIncomplete"), "Idle")
    run.replicas[TopicPartition("wide", 0)] = (0, 1, 2, 3, 5)
    run.wait(lambda: run.on(5) == [], most=60)


def test_a_lost_broker_that_can_have_no_plan_stalls_the_policy_alone() -> None:
    run, it = world(LOST, NIGHTLY)
    run.replicas[LANDED], run.unmade = (5, 1), {True: TOO_LARGE}
    run.brokers[5] = FENCED
    run.wait(lambda: ("main-nightly-1", "Succeeded") in it.outcomes)
    assert (it.says("lost"), it.reason, it.true) == (("Held", "PlanTooLarge"), "PlanTooLarge", {"Stalled"})
    run.unmade = {}
    run.wait(lambda: run.on(5) == [], most=60)
    run.rest(60)
    assert (it.reason, it.true) == ("Idle", {"Ready"})


def test_a_lost_broker_goes_first_while_its_cluster_cannot_be_read() -> None:
    run, it = world(LOST, NIGHTLY)
    run.replicas[LANDED], run.unmade = (5, 1), {True: Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")}
    run.brokers[5] = FENCED
    run.wait(lambda: it.says("nightly")[0] == "Held")
    assert (it.says("lost"), it.says("nightly")) == (("Held", "ClusterUnreachable"), ("Held", "PlanInProgress"))
    assert (it.reason, it.true) == ("Idle", {"Ready"})


def test_each_trigger_that_can_have_no_plan_has_its_own_reason() -> None:
    run, it = world(CORDONED, LATE)
    run.replicas.update(WIDE)
    run.others, run.unmade = {5}, {False: TOO_LARGE}
    run.wait(lambda: it.says("nightly") == ("Held", "PlanTooLarge"))
    for _ in range(100):
        run.tick()
        assert it.says("in") == ("Held", "DrainIncomplete")
    assert it.says("nightly") == ("Held", "PlanTooLarge")


# --- A schedule's plan that is made anew ---


@pytest.mark.parametrize("why", ["edited", "stale", "deleted", "a decommission was approved"])
def test_a_waiting_plan_of_a_schedule_is_made_anew(why: str) -> None:
    run, it = world(LATE)
    run.wait(lambda: it.status.digest)
    if why == "edited":
        it.edit(planTemplate={"goal": {"balance": {"by": ["Leaders"]}}})
    elif why == "a decommission was approved":
        run.apply(brokers=(5,), approval="NotRequired")
    else:
        setattr(run.plans["main-nightly-1"], why, True)
    run.wait(lambda: it.status.digest and "main-nightly-1" not in run.plans)
    assert run.created[-1] == "main-nightly-2"
    it.approve()
    run.wait(lambda: ("main-nightly-2", "Succeeded") in it.outcomes)
    run.rest(3600)
    assert run.created[-1] == "main-nightly-2"


def test_a_plan_of_a_schedule_that_is_not_made_anew_in_time_is_missed() -> None:
    run, it = world({**NIGHTLY, "approval": "Required"})
    run.wait(lambda: it.status.digest)
    run.plans["main-nightly-1"].stale = True
    run.rest(3700)
    assert (run.created, it.says("nightly"), it.reason) == (["main-nightly-1"], ("Idle", "ScheduleMissed"), "Idle")


def test_an_approved_plan_of_a_schedule_that_has_not_begun_is_made_anew() -> None:
    run, it = world({**NIGHTLY, "windows": [{"cron": "30 4 * * *", "durationSeconds": 3600}]})
    run.wait(lambda: it.outcomes == [("main-nightly-1", "Running")])
    run.plans["main-nightly-1"].stale = True
    run.wait(lambda: ("main-nightly-2", "Succeeded") in it.outcomes)
    run.rest(3600)
    assert run.created == ["main-nightly-1", "main-nightly-2"]


def test_a_plan_of_a_schedule_that_gave_way_is_made_anew() -> None:
    run, it = world(CORDONED, LATE)
    run.wait(lambda: it.status.digest)
    run.replicas.update(orders((5, 1)))
    run.others = {5}
    run.wait(lambda: it.outcomes == [("main-in-2", "Succeeded")])
    run.wait(lambda: it.status.digest)
    assert run.created == ["main-nightly-1", "main-in-2", "main-nightly-3"]


def test_a_plan_avoids_as_many_brokers_as_a_goal_takes() -> None:
    emptied, asked = frozenset(range(100, 500)), {*range(1000, 1290)}
    it = Policies({}).policy(ADDED, planTemplate={"goal": {"balance": {}, "avoidBrokers": [*asked]}})
    found = spec_of(it.resource, it.spec.triggers[0], frozenset(), emptied)
    avoided = ReassignmentPlanSpec.parse(found.wire()).goal.avoid_brokers
    assert avoided
    assert (len(avoided), asked <= {*avoided} <= asked | emptied) == (MAX_PLAN_BROKERS, True)


def test_brokers_that_are_up_are_avoided_first() -> None:
    brokers = frozenset(range(400))
    up = {broker: BrokerSeen(fenced=broker < 380) for broker in brokers}
    avoided = first_avoided(brokers, BrokersSeen(up, frozenset()))
    assert avoided == (*range(280), *range(380, 400))
