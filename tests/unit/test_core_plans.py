"""What is done about a ReassignmentPlan: sentences, and what holds whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from reassign.api.common import ConditionStatus
from reassign.api.goal import GoalPart
from reassign.api.limits import MAX_WAVES
from reassign.api.partition_reassignment import WhenInFlight
from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus, Unmet
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.plans.decide import decide_plan, refused
from reassign.core.plans.model import GoalUnseen, PlanResource
from reassign.core.plans.progress import WRITES
from reassign.errors import Reason
from tests.unit.examples import examples
from tests.unit.plan_sim import NEW, Stage, approved, condition, stage
from tests.unit.sim import START

NEW_TOPIC = TopicPartition("new", 0)

ORDERS = [TopicPartition("orders", number) for number in range(4)]
OTHER = f"sha256:{'f' * 64}"


# --- Making it ---


def test_all_waves_are_made_at_once_and_suspended_and_wait_for_approval() -> None:
    plan = stage(3)
    plan.tick(10)
    assert len(plan.waves) == 3
    assert all(wave.spec.suspend for wave in plan.waves.values())
    assert plan.states == ["Pending"] * 3
    assert plan.reason == "AwaitingApproval"
    assert plan.true == set()
    assert plan.status.digest is not None
    assert plan.status.digest in plan.message
    assert plan.message.startswith("3 waves: 3 partitions, 3 new replicas, 1.0 GiB; ")
    assert plan.plans_made == 1


def test_nothing_is_made_before_its_deletion_would_wait_for_us() -> None:
    plan = stage()
    plan.tick()
    assert plan.has_finalizer
    assert plan.plans_made == 0


def test_a_goal_that_is_met_already_has_succeeded_without_approval() -> None:
    plan = stage(0)
    plan.tick(4)
    assert plan.true == {"Ready", "Succeeded"}
    assert plan.message == "nothing has to move"


def test_goals_that_are_not_met_are_reported() -> None:
    plan = stage(1, approval="NotRequired")
    plan.unmet = (Unmet(what="broker 1 keeps 3 replicas", nearest="all but these are drained"),)
    plan.uneven = (Unmet(what="Disk is not balanced", nearest="80 %", part=GoalPart.BALANCE),)
    plan.run()
    assert (plan.reason, plan.goal) == ("Completed", ("False", "GoalPartlyMet"))
    assert plan.goal_message == "as observed; not met (status.unmet): Disk is not balanced (nearest: 80 %)"


def test_a_drain_is_met_only_as_far_as_its_broker_is_seen_to_be_empty() -> None:
    plan = approved(1)
    plan.begin()
    plan.kafka.add(TopicPartition("orders", 7), (1, 2, 3))  # after the digest
    plan.kafka.add(NEW_TOPIC, (3, 1, 2))
    plan.run()
    assert (plan.reason, plan.goal) == ("Completed", ("False", "DrainIncomplete"))
    assert "2 replicas on broker 1, to be emptied (topics: new, orders)" in plan.goal_message
    assert plan.status.goal_observed_time is not None


def test_until_the_last_wave_has_ended_the_goal_is_a_forecast() -> None:
    plan = approved(2)
    plan.tick(2)
    assert plan.status.goal_observed_time is None
    assert plan.goal_message == "all that the goal asks for is reached, by the plan, once it is carried out"
    plan.run()
    assert plan.goal_message == "all that the goal asks for is reached, as observed"


def test_what_lands_on_a_drained_broker_later_is_seen() -> None:
    plan = approved(1)
    plan.run()
    looks, since = plan.looks, plan.status.goal_observed_time
    plan.watch()
    assert (plan.goal, plan.status.goal_observed_time) == (("True", "GoalMet"), since)
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.watch()
    assert plan.goal == ("False", "DrainIncomplete")
    assert plan.status.goal_observed_time != since
    plan.kafka.add(NEW_TOPIC, (3, 2))
    plan.watch()
    assert (plan.goal, plan.true) == (("True", "GoalMet"), {"Ready", "Succeeded"})
    assert plan.looks == looks


def test_balance_is_observed_once_and_a_drain_again_and_again() -> None:
    plan = approved(1)
    plan.uneven = (Unmet(what="Disk is not balanced", nearest="80 %", part=GoalPart.BALANCE),)
    plan.run()
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.watch()
    assert [part.part for part in plan.status.unmet] == [GoalPart.DRAIN, GoalPart.BALANCE]


def test_the_id_of_an_empty_broker_that_was_unregistered_is_free() -> None:
    plan = approved(1)
    plan.run()
    gone = plan.kafka.brokers.pop(1)
    plan.watch()
    assert (plan.status.unregistered_brokers, plan.goal) == ((1,), ("True", "GoalMet"))
    plan.kafka.brokers[1] = gone
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.watch()
    assert plan.goal == ("True", "GoalMet")


def test_a_broker_that_is_unregistered_with_replicas_is_not_drained() -> None:
    plan = approved(1)
    plan.run()
    del plan.kafka.brokers[1]
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.watch()
    assert (plan.status.unregistered_brokers, plan.goal) == ((), ("False", "DrainIncomplete"))


def test_a_replication_factor_is_watched_as_a_drain_is() -> None:
    plan = approved(1, goal={"replicationFactor": 3})
    plan.run()
    assert plan.goal == ("True", "GoalMet")
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.kafka.add(TopicPartition("__internal", 0), (1,))
    plan.watch()
    assert plan.goal == ("False", "GoalPartlyMet")
    assert "1 partition without the replication factor 3 (topics: new) (nearest: they have 2" in plan.goal_message


LATE = GoalUnseen(Problem(Reason.PLANNING_FAILED, "it took longer than 300 s"), 120)


def test_an_observation_that_fails_is_said_with_its_next_try() -> None:
    plan = approved(1)
    plan.blind = LATE
    plan.run()
    assert plan.goal == ("Unknown", "PlanningFailed")
    assert plan.goal_message.startswith(
        "not observed after the last wave: it took longer than 300 s; the next try follows 2 min later; all that"
    )
    assert (plan.true, plan.status.goal_observed_time) == ({"Ready", "Succeeded"}, None)
    plan.blind = None
    plan.run(2)
    assert plan.goal_message == "all that the goal asks for is reached, as observed"


def test_a_forecast_that_is_not_met_stays_so_while_it_is_not_observed() -> None:
    plan = stage(1, approval="NotRequired")
    plan.unmet = (Unmet(what="3 replicas of excluded topics", nearest="they stay", part=GoalPart.DRAIN),)
    plan.blind = LATE
    plan.run()
    assert plan.goal == ("False", "DrainIncomplete")
    assert "it took longer than 300 s" in plan.goal_message


def test_a_watch_that_fails_leaves_what_was_observed_and_says_so() -> None:
    plan = approved(1)
    plan.run()
    before, plan.blind = plan.status, LATE
    plan.watch()
    assert (plan.goal, plan.status.goal_observed_time) == (("True", "GoalMet"), before.goal_observed_time)
    assert plan.goal_message.endswith(
        "as observed; it could not be observed again: it took longer than 300 s; the next try follows 2 min later"
    )
    plan.blind = None
    plan.watch()
    assert plan.status == before


def test_while_a_wave_is_under_way_again_the_goal_is_a_forecast() -> None:
    plan = approved(1)
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.run()
    before, looks = plan.status, plan.looks
    plan.begin_again()
    plan.tick(2)
    assert (plan.reason, plan.goal) == ("WaveInFlight", ("False", "DrainIncomplete"))
    assert plan.goal_message.startswith("by the plan, once it is carried out; not met")
    assert (plan.status.unmet, plan.status.goal_observed_time) == (before.unmet, None)
    plan.run()
    assert (plan.reason, plan.looks) == ("Completed", looks + 1)
    assert plan.goal_message.startswith("as observed; not met")
    assert before.goal_observed_time
    assert plan.status.goal_observed_time
    assert plan.status.goal_observed_time > before.goal_observed_time


def test_after_another_wave_a_goal_is_not_met_by_what_was_seen_before() -> None:
    plan = approved(1)
    plan.run()
    assert plan.goal == ("True", "GoalMet")
    plan.begin_again()
    plan.tick(2)
    plan.finish()
    plan.kafka.add(NEW_TOPIC, (1, 2))
    plan.blind = LATE
    plan.run(3)
    assert (plan.reason, plan.goal) == ("Completed", ("Unknown", "PlanningFailed"))
    assert plan.status.goal_observed_time is None
    plan.blind = None
    plan.run(2)
    assert plan.goal == ("False", "DrainIncomplete")


def test_nothing_is_looked_at_while_the_cluster_cannot_be_seen() -> None:
    plan = approved(1)
    plan.tick(2)
    plan.begin()
    plan.finish()
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.run()
    assert (plan.reason, plan.looks) == ("Completed", 0)
    assert plan.goal == ("Unknown", "ClusterUnreachable")
    assert plan.goal_message.startswith("not observed after the last wave: no broker answers; all that")


def test_what_is_not_met_is_named_before_approval() -> None:
    plan = stage()
    plan.unmet = (Unmet(what="broker 1 keeps 3 replicas", nearest="all but these are drained"),)
    plan.tick(4)
    assert (plan.reason, plan.goal) == ("AwaitingApproval", ("False", "GoalPartlyMet"))
    assert "broker 1 keeps 3 replicas" in plan.message


def test_a_drain_of_excluded_topics_is_incomplete_before_approval() -> None:
    plan = stage()
    left = Unmet(what="3 replicas of excluded topics", nearest="they stay", part=GoalPart.DRAIN)
    plan.unmet = (Unmet(what="Disk is not balanced", nearest="80 %", part=GoalPart.BALANCE), left)
    plan.tick(4)
    assert plan.goal == ("False", "DrainIncomplete")
    assert plan.goal_message.startswith("by the plan, once it is carried out; not met (status.unmet): 3 replicas of")


def test_a_goal_that_will_be_met_is_reported_from_planning_on() -> None:
    plan = stage()
    plan.tick()
    assert plan.goal is None
    plan.tick(3)
    assert plan.goal == ("True", "GoalMet")


def test_a_goal_that_cannot_be_planned_is_stalled_without_waves() -> None:
    plan = stage()
    plan.fails = Problem(Reason.NOT_ENOUGH_BROKERS, "2 brokers cannot hold 3 replicas")
    plan.tick(5)
    assert plan.reason == "NotEnoughBrokers"
    assert plan.true == {"Stalled"}
    assert plan.waves == {}
    plan.fails = None
    plan.tick(3)
    assert plan.reason == "AwaitingApproval"


def test_more_waves_than_a_status_can_list_are_refused() -> None:
    plan = stage(MAX_WAVES + 1)
    plan.tick(5)
    assert plan.reason == "PlanTooLarge"
    assert plan.waves == {}


def test_waves_are_made_and_deleted_some_at_a_time() -> None:
    plan = stage(2 * WRITES + 1)
    plan.tick(2)
    counts = []
    for _ in range(3):
        plan.tick()
        counts.append(len(plan.waves))
    assert counts == [WRITES, 2 * WRITES, 2 * WRITES + 1]
    assert plan.reason == "Planning"
    plan.tick()
    assert plan.reason == "AwaitingApproval"
    plan.deleted = True
    for _ in range(3):
        assert not plan.gone
        plan.tick()
        counts.append(len(plan.waves))
    assert counts[3:] == [WRITES + 1, 1, 0]
    plan.tick()
    assert plan.gone


def test_nothing_is_planned_for_a_cluster_that_cannot_be_seen() -> None:
    plan = stage()
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.tick(5)
    assert plan.reason == "ClusterUnreachable"
    assert plan.plans_made == 0


def test_waves_left_by_a_crash_are_deleted_before_planning_again() -> None:
    plan = stage(3)
    plan.tick(2)
    plan.tick(die_after=2)
    assert len(plan.waves) == 2
    plan.tick()
    assert plan.waves == {}
    plan.tick(4)
    assert plan.states == ["Pending"] * 3
    assert plan.plans_made == 2


# --- Approval ---


def test_without_approval_no_wave_starts() -> None:
    plan = stage()
    plan.run()
    assert plan.released == []


def test_an_approval_of_another_plan_lets_nothing_go_and_names_both() -> None:
    plan = stage(approvedDigest=OTHER)
    plan.run()
    assert plan.released == []
    assert plan.reason == "ApprovedDigestMismatch"
    assert OTHER in plan.message
    assert str(plan.status.digest) in plan.message


def test_a_digest_that_others_write_into_the_status_approves_nothing() -> None:
    plan = stage(approvedDigest=OTHER)
    plan.tick(5)
    made = plan.status.digest
    plan.status = plan.status.model_copy(update={"digest": OTHER})
    plan.run()
    assert plan.released == []
    assert plan.reason == "ApprovedDigestMismatch"
    assert plan.status.digest == made


def test_waves_that_others_write_into_the_status_are_not_approved() -> None:
    plan = approved(2)
    plan.status = plan.status.model_copy(update={"waves": plan.status.waves[::-1]})
    plan.run()
    assert plan.released == []
    assert plan.reason == "ApprovedDigestMismatch"


def test_approved_the_waves_run_one_after_the_other() -> None:
    plan = approved(3)
    plan.tick(5)
    assert plan.released == [plan.name(1)]
    plan.begin()
    plan.tick(5)
    assert plan.states == ["Running", "Pending", "Pending"]
    assert plan.reason == "WaveInFlight"
    assert plan.status.summary == "0/3 waves, 0/3 partitions"
    plan.finish()
    plan.tick()
    assert plan.released == [plan.name(1), plan.name(2)]
    plan.run()
    assert plan.released == [plan.name(number) for number in (1, 2, 3)]
    assert plan.true == {"Ready", "Succeeded"}
    assert plan.states == ["Succeeded"] * 3


def test_without_approval_the_first_wave_begins_once_status_has_the_plan() -> None:
    plan = stage(approval="NotRequired")
    plan.tick(3)
    assert plan.status.digest is None
    plan.tick()
    assert plan.status.digest is not None
    assert plan.released == []
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_an_approval_that_is_taken_back_holds_back_what_has_not_begun() -> None:
    plan = approved()
    plan.tick()
    plan.edit(approvedDigest=None)
    plan.tick()
    assert plan.waves[plan.name(1)].spec.suspend
    plan.approve()
    plan.tick()
    plan.begin()
    plan.edit(approvedDigest=None)
    plan.tick(2)
    assert not plan.waves[plan.name(1)].spec.suspend
    assert f"what has begun goes on: {plan.name(1)}" in plan.message
    plan.finish()
    plan.tick(3)
    assert plan.states == ["Succeeded", "Pending"]
    assert plan.reason == "AwaitingApproval"


def test_a_finished_plan_needs_nothing_of_us_when_it_is_deleted() -> None:
    plan = approved(1)
    plan.run()
    assert not plan.has_finalizer


# --- Waves that a user edits ---


def test_a_failed_wave_stalls_the_plan_until_it_succeeds() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    plan.finish("Failed")
    plan.tick(3)
    assert plan.states == ["Failed", "Pending"]
    assert (plan.reason, plan.true) == ("WaveFailed", {"Stalled"})
    assert plan.name(1) in plan.message
    plan.waves[plan.name(1)].outcome = "Succeeded"
    plan.tick()
    assert plan.released == [plan.name(1), plan.name(2)]


def test_a_deleted_wave_stalls_the_plan() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    name = plan.name(2)
    plan.delete_wave(name)
    plan.finish()
    plan.tick(3)
    assert plan.states == ["Succeeded", "Missing"]
    assert plan.reason == "WaveFailed"
    assert f"a user deleted the PartitionReassignment {name}" in plan.message


def test_a_wave_that_is_done_may_be_cleared_away() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    plan.finish()
    plan.tick()
    plan.delete_wave(plan.name(1))
    plan.run()
    assert plan.states == ["Succeeded"] * 2
    assert plan.true == {"Ready", "Succeeded"}


@pytest.mark.parametrize("reason", [Reason.NOT_AUTHORIZED, Reason.API_SERVER_UNAVAILABLE])
def test_a_refused_step_hides_no_move_in_flight(reason: Reason) -> None:
    plan = approved(2)
    plan.tick()
    plan.begin()
    plan.edit_wave(plan.name(2), suspend=False)
    decision = plan.tick(die_after=0)
    (step,) = decision.steps
    now = START + timedelta(seconds=plan.now)
    said = refused(plan.plan, decision, step, Problem(reason, "denied"), now).conditions
    reconciling = [c.status for c in said if c.type == "Reconciling"]
    assert reconciling == [ConditionStatus.TRUE]


def test_a_refused_start_with_nothing_in_flight_is_stalled_alone() -> None:
    plan = approved(2)
    decision = plan.tick(die_after=0)
    (step,) = decision.steps
    now = START + timedelta(seconds=plan.now)
    said = refused(plan.plan, decision, step, Problem(Reason.NOT_AUTHORIZED, "denied"), now).conditions
    assert {c.type for c in said if c.status is ConditionStatus.TRUE} == {"Stalled", "GoalMet"}


def test_an_edited_wave_is_not_started_until_it_is_as_planned() -> None:
    plan = approved()
    name = plan.name(1)
    before = plan.waves[name].spec
    plan.edit_wave(name, partitions=(before.partitions[0].model_copy(update={"replicas": (5, 2, 3)}),))
    plan.tick(3)
    assert plan.released == []
    assert (plan.reason, plan.true) == ("WaveEdited", {"Stalled"})
    assert name in plan.message
    plan.edit_wave(name, partitions=before.partitions)
    plan.tick()
    assert plan.released == [name]


def test_a_plan_with_an_edited_wave_names_the_one_in_flight() -> None:
    plan = approved(3)
    plan.tick()
    plan.begin()
    plan.edit_wave(plan.name(3), when_in_flight=WhenInFlight.SUPERSEDE)
    plan.tick()
    assert plan.reason == "WaveEdited"
    assert f"what has begun goes on: {plan.name(1)}" in plan.message


def test_an_edit_of_a_later_or_completed_wave_holds_back_the_next() -> None:
    plan = approved(3)
    plan.tick()
    plan.begin()
    plan.edit_wave(plan.name(3), when_in_flight=WhenInFlight.SUPERSEDE)
    plan.finish()
    plan.tick(3)
    assert plan.released == [plan.name(1)]
    assert plan.reason == "WaveEdited"


def test_a_wave_resumed_by_hand_is_suspended_again_before_it_moves() -> None:
    plan = stage()
    plan.tick(4)
    plan.edit_wave(plan.name(1), suspend=False)
    plan.tick()
    assert plan.waves[plan.name(1)].spec.suspend
    plan.approve()
    plan.edit_wave(plan.name(2), suspend=False)
    plan.tick()
    assert plan.waves[plan.name(2)].spec.suspend
    assert plan.released == []
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_a_wave_resumed_by_hand_in_flight_continues_alone_and_is_named() -> None:
    plan = stage()
    plan.tick(4)
    plan.edit_wave(plan.name(2), suspend=False)
    plan.begin()
    plan.tick()
    assert not plan.waves[plan.name(2)].spec.suspend
    assert plan.reason == "AwaitingApproval"
    assert f"what has begun goes on: {plan.name(2)}" in plan.message
    plan.approve()
    plan.tick(3)
    assert plan.released == []
    plan.finish()
    plan.run()
    assert plan.released == [plan.name(1)]
    assert plan.states == ["Succeeded"] * 2


def test_waves_resumed_and_completed_by_hand_are_reported_as_unapproved() -> None:
    plan = stage()
    plan.tick(4)
    for number in (1, 2):
        plan.edit_wave(plan.name(number), suspend=False)
        plan.begin()
        plan.finish()
    plan.tick()
    assert (plan.reason, plan.released) == ("Completed", [])
    assert plan.message.endswith("it was not approved: its waves were started by hand, or others made its moves")
    plan.approve()
    plan.tick()
    assert plan.message.endswith("it was not approved: its waves were started by hand, or others made its moves")


def test_a_wave_suspended_by_a_user_is_resumed() -> None:
    plan = approved()
    plan.tick()
    plan.edit_wave(plan.name(1), suspend=True)
    plan.tick()
    plan.begin()
    plan.edit_wave(plan.name(1), suspend=True)
    plan.tick()
    assert plan.released == [plan.name(1)] * 3


def test_the_plan_reports_what_its_wave_waits_for() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    resource = plan.waves[plan.name(1)].resource()
    status = resource.status.model_copy(update={"conditions": (condition("Stalled", "BrokerFenced"),)})
    waves = [replace(resource, status=status), plan.waves[plan.name(2)].resource()]
    decision = decide_plan(plan.plan, waves, plan.kafka.snapshot(), None, START)
    assert {c.type: c.reason for c in decision.status.conditions} == {
        "Ready": "BrokerFenced",
        "Succeeded": "BrokerFenced",
        "Stalled": "BrokerFenced",
        "GoalMet": "GoalMet",
    }


def test_a_plan_goes_on_while_its_wave_waits_and_says_for_what() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    resource = plan.waves[plan.name(1)].resource()
    waits = condition("Ready", "ClusterUnderMinIsr").model_copy(update={"status": ConditionStatus.FALSE})
    waits = waits.model_copy(update={"message": "2 partitions are under min ISR"})
    status = resource.status.model_copy(update={"conditions": (waits,)})
    waves = [replace(resource, status=status), plan.waves[plan.name(2)].resource()]
    [ready] = [
        c
        for c in decide_plan(plan.plan, waves, plan.kafka.snapshot(), None, START).status.conditions
        if c.type == "Ready"
    ]
    assert ready.reason == "WaveInFlight"
    assert ready.message.endswith(f"{plan.name(1)} is under way; 2 partitions are under min ISR")


def test_a_wave_that_the_brake_suspends_suspends_its_plan() -> None:
    plan = approved()
    plan.tick()
    resource = plan.waves[plan.name(1)].resource()
    braked = condition("Ready", "Suspended").model_copy(update={"status": ConditionStatus.FALSE})
    status = resource.status.model_copy(update={"conditions": (braked,)})
    waves = [replace(resource, status=status), plan.waves[plan.name(2)].resource()]
    said = {
        c.type: c.reason for c in decide_plan(plan.plan, waves, plan.kafka.snapshot(), None, START).status.conditions
    }
    assert (said["Ready"], said.keys() & {"Reconciling", "Stalled"}) == ("Suspended", set())


def test_a_plan_of_an_unreachable_cluster_is_stalled_after_a_time() -> None:
    plan = approved(template={"stallTimeoutSeconds": 60})
    plan.tick()
    plan.begin()
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.tick()
    assert (plan.reason, plan.true) == ("ClusterUnreachable", {"Reconciling"})
    plan.now += 60
    plan.tick()
    assert plan.true == {"Reconciling", "Stalled"}


def test_what_waits_for_approval_or_is_suspended_waits_for_no_cluster() -> None:
    for spec in ({}, {"suspend": True}):
        plan = stage(**spec)
        plan.tick(4)
        plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
        plan.now += 9999
        plan.tick()
        assert (plan.reason, plan.true) == ("Suspended" if spec else "AwaitingApproval", set())


# --- Suspend ---


def test_suspended_no_wave_begins_and_the_running_one_starts_nothing_new() -> None:
    plan = approved(suspend=True)
    plan.tick(3)
    assert plan.released == []
    assert plan.reason == "Suspended"
    plan.edit(suspend=False)
    plan.tick()
    plan.begin()
    plan.edit(suspend=True)
    plan.tick()
    assert plan.waves[plan.name(1)].spec.suspend
    plan.edit(suspend=False)
    plan.tick()
    assert plan.released == [plan.name(1)] * 2


@pytest.mark.parametrize("suspended", [True, False])
def test_a_broker_unregistered_at_a_waves_end_makes_an_active_plan_stale(suspended: bool) -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    plan.edit(suspend=suspended)
    unregister(plan)
    plan.finish()
    plan.tick()
    register(plan)
    plan.edit(suspend=False)
    plan.run()
    assert plan.true == ({"Ready", "Succeeded"} if suspended else {"Stalled", "PlanStale"})


# --- Windows ---

NOON_TO_TWO = [{"cron": "0 12 * * *", "durationSeconds": 7200, "timeZone": "Etc/UTC"}]
HOUR = 3600


def test_outside_its_windows_no_wave_begins_and_the_plan_says_when() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.tick(3)
    assert (plan.released, plan.reason, plan.true) == ([], "OutsideWindow", set())
    assert plan.message.startswith("no window is open until 2026-01-01 12:00 UTC: no wave begins, and the one that")
    assert (plan.status.window_open, plan.status.next_window_time) == (False, START + timedelta(hours=12))
    plan.now = 12 * HOUR
    decision = plan.tick()
    assert (plan.released, plan.reason, plan.status.window_open) == ([plan.name(1)], "WaveInFlight", True)
    assert decision.changes == START + timedelta(hours=14)
    assert plan.status.next_window_time == START + timedelta(hours=36)


def test_a_window_that_opens_each_minute_changes_no_status() -> None:
    plan = approved(windows=[{"cron": "* * * * *", "durationSeconds": 300}])
    plan.tick(3)
    before = plan.status
    for _ in range(5):
        plan.now += 60
        plan.tick()
        assert plan.status == before


def test_a_window_that_closes_suspends_the_wave_and_ends_no_move() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.now = 12 * HOUR
    plan.tick()
    plan.begin()
    plan.now = 14 * HOUR
    plan.tick()
    wave = plan.waves[plan.name(1)]
    assert (wave.spec.suspend, wave.moving, wave.deleted) == (True, True, False)
    assert (plan.reason, plan.true) == ("OutsideWindow", {"Reconciling"})
    plan.finish()
    plan.tick()
    assert (plan.states, plan.reason, plan.true) == (["Succeeded", "Pending"], "OutsideWindow", set())
    plan.now = 36 * HOUR
    plan.run()
    assert plan.released == [plan.name(1), plan.name(2)]
    assert plan.reason == "Completed"


def test_a_wave_that_is_cut_off_by_the_window_goes_on_in_the_next_one() -> None:
    plan = approved(1, windows=NOON_TO_TWO)
    for day in range(2):
        plan.now = (24 * day + 12) * HOUR
        plan.tick()
        plan.begin()
        plan.now += 2 * HOUR
        plan.tick(2)
    assert plan.released == [plan.name(1)] * 2


def test_a_wave_that_is_let_go_by_hand_outside_the_windows_is_suspended() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.edit_wave(plan.name(1), suspend=False)
    plan.begin()
    plan.tick()
    assert plan.waves[plan.name(1)].spec.suspend


def test_a_clock_that_jumps_over_a_window_or_back_into_it_is_followed() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.now = 20 * HOUR
    plan.tick(2)
    assert plan.released == []
    plan.now = 13 * HOUR
    plan.tick()
    assert plan.released == [plan.name(1)]
    plan.now = 0
    plan.tick()
    assert plan.waves[plan.name(1)].spec.suspend


def test_what_a_user_has_to_do_is_said_before_the_window() -> None:
    plan = stage(windows=NOON_TO_TWO)
    plan.tick(4)
    assert (plan.reason, plan.status.window_open) == ("AwaitingApproval", False)
    plan.edit(approvedDigest=OTHER)
    plan.tick()
    assert plan.reason == "ApprovedDigestMismatch"
    plan.approve()
    plan.tick()
    assert plan.reason == "OutsideWindow"
    plan.edit(suspend=True)
    plan.tick()
    assert plan.reason == "Suspended"


def test_outside_its_windows_a_plan_waits_for_no_cluster() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.tick()
    plan.now += 9999
    plan.tick()
    assert (plan.reason, plan.true) == ("OutsideWindow", set())


def test_what_differs_only_outside_the_windows_makes_no_plan_stale() -> None:
    plan = approved(windows=NOON_TO_TWO)
    del plan.kafka.brokers[4]
    plan.tick(2)
    register(plan)
    plan.now = 12 * HOUR
    plan.run()
    assert plan.true == {"Ready", "Succeeded"}


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({"cron": "0 25 * * *"}, "spec.windows[1]: the cron '0 25 * * *' cannot be read: its hour has '25'"),
        ({"timeZone": "Europe/Atlantis"}, "spec.windows[1]: there is no time zone 'Europe/Atlantis'"),
        ({"cron": "0 0 29 2 */7"}, "spec.windows[1]: the cron '0 0 29 2 */7' has no time within four years"),
    ],
)
def test_a_window_that_cannot_be_read_is_closed_and_stalled(window: dict[str, str], words: str) -> None:
    plan = approved(windows=[{"cron": "* * * * *", "durationSeconds": 300}, NOON_TO_TWO[0] | window])
    plan.tick(3)
    assert (plan.released, plan.reason, plan.true) == ([], "InvalidSchedule", {"Stalled"})
    assert plan.message.startswith(words)
    assert (plan.status.window_open, plan.status.next_window_time) == (False, None)
    plan.edit(windows=None)
    plan.run()
    assert plan.reason == "Completed"


def test_moves_in_flight_go_on_where_a_window_cannot_be_read() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    plan.edit(windows=[{"cron": "0 25 * * *", "durationSeconds": 300}])
    plan.tick()
    assert (plan.waves[plan.name(1)].moving, plan.waves[plan.name(1)].spec.suspend) == (True, True)
    assert plan.message.endswith(f"; what has begun goes on: {plan.name(1)}")


def test_without_windows_and_at_the_end_status_says_nothing_of_them() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.now = 12 * HOUR
    plan.run()
    assert (plan.reason, plan.status.window_open, plan.status.next_window_time) == ("Completed", None, None)
    assert plan.tick().changes is None
    plan = approved()
    plan.tick()
    assert (plan.status.window_open, plan.status.next_window_time) == (None, None)


def test_a_plan_that_is_being_deleted_says_nothing_of_its_windows() -> None:
    plan = approved(windows=NOON_TO_TWO)
    plan.tick(3)
    assert plan.status.window_open is False
    plan.deleted = True
    plan.tick()
    assert plan.reason == "Deleting"
    assert (plan.status.window_open, plan.status.next_window_time) == (None, None)


def test_windows_are_no_part_of_the_digest_nor_of_the_input() -> None:
    plan = approved()
    digest, planned = plan.status.digest, plan.status.planned_input_hash
    plan.edit(windows=NOON_TO_TWO)
    plan.tick(3)
    assert (plan.status.digest, plan.status.planned_input_hash, plan.plans_made) == (digest, planned, 1)
    assert plan.reason == "OutsideWindow"


# --- Planned anew ---


def test_neither_approval_nor_suspend_has_it_planned_anew() -> None:
    plan = approved()
    plan.edit(suspend=True)
    plan.tick(3)
    plan.edit(suspend=False, approval="NotRequired")
    plan.tick(3)
    assert plan.plans_made == 1


@pytest.mark.parametrize(
    "change",
    [
        {"goal": {"drainBrokers": [2]}},
        {"goal": {"drainBrokers": [1], "scope": "Drained"}},
        {"goal": {"drainBrokers": [1], "avoidBrokers": [2]}},
        {"goal": {"drainBrokers": [1], "fencedBrokers": "Replace"}},
        {"topics": {"include": ["orders"]}},
        {"racks": {"awareness": "Flat"}},
        {"waves": {"maxPartitions": 10}},
        {"template": {"throttle": {"interBroker": "1Mi"}}},
    ],
)
def test_what_the_waves_are_made_from_has_it_planned_anew(change: dict[str, object]) -> None:
    plan = approved()
    names, digest = set(plan.waves), plan.status.digest
    plan.edit(**change)
    plan.tick(4)
    assert plan.plans_made == 2
    assert len(plan.waves) == 2
    assert names.isdisjoint(plan.waves)
    assert plan.status.digest != digest
    assert plan.reason == "ApprovedDigestMismatch"


def test_a_default_that_is_written_out_changes_nothing() -> None:
    plan = approved()
    plan.edit(racks={"awareness": "Tree"}, topics={"include": ["*"], "exclude": ["__*"]})
    plan.tick()
    assert plan.plans_made == 1


PLANNED_INPUT_HASHES = [
    ({}, "2db348d7bd25e199643ffaeaffa947437d7faaa6684704b05366db730d3108b6"),
    ({"exclude": ["__*"]}, "2db348d7bd25e199643ffaeaffa947437d7faaa6684704b05366db730d3108b6"),
    ({"include": ["*"], "exclude": ["__*"]}, "2db348d7bd25e199643ffaeaffa947437d7faaa6684704b05366db730d3108b6"),
    ({"include": ["orders-*"]}, "8842ceffad62682655bb5c54a67509377f2043784ed509c41af6bbf854daed96"),
    (
        {"include": ["orders-*"], "exclude": ["__*"]},
        "8842ceffad62682655bb5c54a67509377f2043784ed509c41af6bbf854daed96",
    ),
    ({"exclude": []}, "0baaa53224c2c0fb7cae5391f5d3ed03816a08bd0adc667ded03cc6f514f2a71"),
    ({"exclude": ["a"]}, "1014aa8deda4fca706362d29c475c8efd2d30cfb35e3e68d3b6a2e3b81cf8f26"),
]
"""As the version computed them whose schema wrote the default of exclude into each plan."""
GOAL_HASHES = [
    ({"drainBrokers": [5], "replicationFactor": 3}, "2cec3e0e1378e8881a5420ed1b4242bbded5b17fc6b05ff25bbbe928663555a4"),
    (
        {"brokers": [1, 2], "balance": {"by": ["Disk"]}},
        "d04465ce31446aa839ccb499f313a83ab45d6b395ca3a68cdc74f05cde8fa0b8",
    ),
]
"""As the versions computed them whose goals had no other fields than these."""


@pytest.mark.parametrize(
    ("topics", "goal", "digest"),
    [
        *((topics, {"drainBrokers": [5]}, digest) for topics, digest in PLANNED_INPUT_HASHES),
        *(({}, goal, digest) for goal, digest in GOAL_HASHES),
        *(({}, {**goal, "fencedBrokers": "Keep", "scope": "All"}, digest) for goal, digest in GOAL_HASHES),
    ],
)
def test_input_hashes_of_stored_plans_stay_as_they_are(
    topics: dict[str, list[str]], goal: dict[str, Any], digest: str
) -> None:
    spec = {"clusterRef": {"name": "main"}, "goal": goal, "topics": topics}
    plan = PlanResource(
        uid="u",
        version=1,
        namespace="kafka",
        name="drain",
        generation=1,
        spec=ReassignmentPlanSpec.parse(spec),
        status=ReassignmentPlanStatus(),
        has_finalizer=False,
    )
    assert plan.input_hash == f"sha256:{digest}"


def test_planning_again_in_flight_cancels_first_and_keeps_completed_waves() -> None:
    plan = approved(3)
    plan.tick()
    plan.begin()
    plan.finish()
    plan.tick()
    plan.begin()
    done, running, left = (plan.name(number) for number in (1, 2, 3))
    plan.edit(goal={"drainBrokers": [2]})
    plan.tick(3)
    assert plan.waves[running].spec.suspend
    assert plan.waves[running].moving
    assert set(plan.waves) == {done, running, left}
    assert running in plan.message
    assert plan.plans_made == 1
    plan.targets = []
    plan.finish()
    plan.tick(4)
    assert set(plan.waves) == {done, running}
    assert plan.plans_made == 2
    assert plan.true == {"Ready", "Succeeded"}


def test_a_wave_suspended_in_the_middle_is_deleted_by_planning_again() -> None:
    plan = approved(1)
    plan.tick()
    name = plan.name(1)
    plan.edit(goal={"drainBrokers": [2]})
    plan.tick(2)
    assert name not in plan.waves


# --- A cluster that has changed ---


def fence(plan: Stage, broker: int = 4) -> None:
    plan.kafka.brokers[broker] = Broker(broker, "r", fenced=True)


def register(plan: Stage, broker: int = 4) -> None:
    """Register a broker, or end its fence."""
    plan.kafka.brokers[broker] = Broker(broker, "r")


def unregister(plan: Stage, broker: int = 4) -> None:
    plan.kafka.brokers.pop(broker, None)


def test_a_wave_to_a_fenced_broker_waits_and_the_plan_is_not_stale() -> None:
    plan = approved(2, template={"stallTimeoutSeconds": 60})
    plan.tick()
    plan.begin()
    fence(plan)
    plan.finish()
    plan.tick(2)
    assert (plan.reason, plan.true) == ("BrokerFenced", {"Reconciling"})
    assert f"{plan.name(2)} waits, since broker 4 is fenced" in plan.message
    assert plan.status.stale_digest is None
    plan.now += 60
    plan.tick()
    assert plan.true == {"Reconciling", "Stalled"}
    register(plan)
    plan.tick()
    assert plan.released == [plan.name(1), plan.name(2)]


def test_a_wave_waits_for_its_destinations_and_not_for_brokers_that_stay() -> None:
    plan = approved()
    fence(plan, 2)
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_an_approval_counts_that_is_given_while_a_broker_is_fenced() -> None:
    plan = stage()
    plan.tick(4)
    fence(plan)
    plan.tick()
    assert (plan.reason, plan.true) == ("AwaitingApproval", set())
    plan.approve()
    plan.tick()
    assert plan.released == []
    register(plan)
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_a_fenced_broker_hides_no_difference() -> None:
    plan = approved()
    fence(plan)
    plan.kafka.replicas[ORDERS[0]] = (0, 2, 3)
    plan.tick()
    assert plan.true == {"Stalled", "PlanStale"}
    register(plan)
    plan.tick()
    assert plan.true == {"Stalled", "PlanStale"}


def test_a_stale_plan_waits_for_another_approval() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    unregister(plan)
    plan.tick()
    assert plan.reason == "WaveInFlight"
    plan.finish()
    plan.tick()
    assert plan.true == {"Stalled", "PlanStale"}
    assert "broker 4 is not registered" in plan.message
    register(plan)
    plan.tick(3)
    assert plan.true == {"Stalled", "PlanStale"}
    assert "remove spec.approvedDigest" in plan.message
    plan.edit(approvedDigest=None)
    plan.tick()
    assert plan.reason == "AwaitingApproval"
    assert plan.true == set()
    plan.approve()
    plan.tick()
    assert plan.released == [plan.name(1), plan.name(2)]


def test_an_approval_given_while_the_cluster_does_not_fit_is_not_enough() -> None:
    plan = stage()
    plan.tick(4)
    unregister(plan)
    plan.tick()
    assert plan.true == {"Stalled", "PlanStale"}
    plan.approve()
    plan.tick()
    register(plan)
    plan.tick(3)
    assert plan.released == []
    assert plan.true == {"Stalled", "PlanStale"}


def test_an_unapproved_plan_is_stale_only_while_the_cluster_differs() -> None:
    plan = stage()
    plan.tick(4)
    plan.kafka.replicas[ORDERS[0]] = (0, 2, 3)
    plan.tick()
    assert "orders-0 is on brokers 0, 2 and 3, not on brokers 1, 2 and 3" in plan.message
    plan.kafka.replicas[ORDERS[0]] = (3, 2, 1)
    plan.tick()
    assert plan.true == set()


def test_a_plan_is_not_stale_by_metadata_that_may_show_the_past() -> None:
    plan = stage()
    plan.tick(4)
    plan.kafka.replicas[ORDERS[0]] = (4, 1, 2, 3)  # as it was in flight, before another client cancelled that
    plan.unsettled = {ORDERS[0]}
    plan.approve()
    plan.tick(3)
    assert (plan.released, plan.true) == ([], {"Reconciling"})
    plan.kafka.replicas[ORDERS[0]] = (1, 2, 3)
    plan.unsettled = set()
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_a_wave_starts_by_no_metadata_that_may_show_the_past() -> None:
    plan = stage()
    plan.tick(4)
    plan.unsettled = {ORDERS[0]}
    plan.approve()
    plan.tick(3)
    assert plan.released == []
    assert plan.message.endswith(f"{plan.name(1)} waits until metadata shows what became of orders-0")
    plan.kafka.replicas[ORDERS[0]] = (0, 2, 3)
    plan.unsettled = set()
    plan.tick()
    assert (plan.released, plan.true) == ([], {"Stalled", "PlanStale"})


def test_a_stale_plan_stays_stale_while_metadata_may_show_the_past() -> None:
    plan = stage()
    plan.tick(4)
    plan.kafka.replicas[ORDERS[0]] = (0, 2, 3)
    plan.approve()
    plan.tick()
    said = plan.status.conditions
    plan.unsettled = {ORDERS[0]}
    plan.tick(2)
    assert plan.status.conditions == said
    plan.unsettled = set()
    plan.kafka.replicas[ORDERS[0]] = (1, 2, 3)
    plan.tick()
    assert "the cluster is as the plan expects it again" in plan.message


def test_a_withdrawn_approval_is_said_though_metadata_may_show_the_past() -> None:
    plan = stage()
    plan.tick(4)
    plan.kafka.replicas[ORDERS[0]] = (0, 2, 3)
    plan.approve()
    plan.tick()
    assert plan.reason == "PlanStale"
    plan.unsettled = {ORDERS[0]}
    plan.edit(approvedDigest=None)
    plan.tick()
    assert plan.reason == "AwaitingApproval"


def test_what_is_in_flight_is_compared_though_metadata_has_not_settled() -> None:
    plan = stage()
    plan.tick(4)
    plan.kafka.move_as_another(ORDERS[0], (5, 2, 3))
    plan.unsettled = {ORDERS[0]}
    plan.approve()
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_a_plan_without_approval_continues_once_the_cluster_fits() -> None:
    plan = stage(approval="NotRequired")
    unregister(plan)
    plan.tick(6)
    assert plan.released == []
    assert "PlanStale" in plan.true
    register(plan)
    plan.tick()
    assert plan.released == [plan.name(1)]


def test_a_stale_plan_reports_how_the_cluster_differs() -> None:
    plan = Stage([{ORDERS[0]: (4, 2, 3), ORDERS[1]: (5, 2, 3), TopicPartition("gone", 0): NEW, ORDERS[2]: NEW}])
    plan.tick(4)
    for tp in (TopicPartition("gone", 0), ORDERS[2]):
        del plan.kafka.replicas[tp]
    del plan.kafka.brokers[5]
    plan.tick()
    for said in ("the topic gone is not there", "broker 5 is not registered", "orders-2 is not there"):
        assert said in plan.message


def test_a_partition_that_is_where_it_is_to_go_is_no_difference() -> None:
    plan = stage(1)
    plan.tick(4)
    plan.kafka.replicas[ORDERS[0]] = NEW
    plan.tick()
    assert plan.reason == "AwaitingApproval"


def test_another_plan_ends_what_was_stale() -> None:
    plan = approved()
    unregister(plan)
    plan.tick(2)
    assert "PlanStale" in plan.true
    register(plan)
    plan.edit(goal={"drainBrokers": [2]}, approval="NotRequired")
    plan.run()
    assert plan.true == {"Ready", "Succeeded"}


# --- Deletion ---


def test_a_deletion_cancels_the_wave_in_flight_and_keeps_completed_ones() -> None:
    plan = approved(3)
    plan.tick()
    plan.begin()
    plan.finish()
    plan.tick()
    plan.begin()
    done, running = plan.name(1), plan.name(2)
    plan.deleted = True
    plan.tick()
    assert set(plan.waves) == {done, running}
    assert plan.waves[running].deleted
    plan.tick(3)
    assert not plan.gone
    assert running in plan.message
    plan.finish()
    plan.tick()
    assert plan.gone
    assert set(plan.waves) == {done}


def test_being_deleted_it_names_the_waves_that_are_still_there() -> None:
    plan = approved()
    plan.tick()
    plan.begin()
    plan.deleted = True
    plan.tick(2)
    assert plan.reason == "Deleting"
    assert plan.name(1) in plan.message
    assert plan.name(2) not in plan.message


def test_deletion_needs_no_cluster() -> None:
    plan = approved()
    plan.tick(2)
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.deleted = True
    plan.tick(2)
    assert plan.gone
    assert plan.waves == {}


# --- What holds whatever happens ---


class Plans(RuleBasedStateMachine):
    """One plan of up to four waves, which people, crashes and other movers get at. At the end it is deleted."""

    stage: Stage

    @initialize(waves=st.integers(0, 4), required=st.booleans())
    def begin(self, waves: int, required: bool) -> None:
        self.stage = stage(waves, approval="Required" if required else "NotRequired")
        self.ever_approved: set[str | None] = set()
        self.by_hand: set[str] = set()
        self.listed: tuple[str | None, list[str]] = (None, [])

    @rule(times=st.integers(1, 5))
    def ticks(self, times: int) -> None:
        for _ in range(times):
            before = len(self.stage.released)
            self.stage.tick()
            waves = self.stage.waves.values()
            if self.stage.status.window_open is False:
                assert len(self.stage.released) == before
                assert all(wave.spec.suspend or wave.outcome or wave.deleted for wave in waves)

    @rule(after=st.integers(0, 3))
    def is_killed(self, after: int) -> None:
        self.stage.tick(die_after=after)

    @rule()
    def begins(self) -> None:
        self.stage.begin()

    @rule(outcome=st.sampled_from(["Succeeded", "Succeeded", "Succeeded", "Failed"]))
    def finishes(self, outcome: str) -> None:
        self.stage.finish(outcome)

    @rule()
    def is_approved(self) -> None:
        self.stage.approve()

    @rule()
    def loses_its_approval(self) -> None:
        self.stage.edit(approvedDigest=None)

    @rule(suspend=st.booleans())
    def is_suspended(self, suspend: bool) -> None:
        self.stage.edit(suspend=suspend)

    @rule(cron=st.sampled_from([None, "0 12 * * *", "0 */6 * * *", "0 25 * * *"]))
    def has_windows(self, cron: str | None) -> None:
        self.stage.edit(windows=cron and [{"cron": cron, "durationSeconds": 7200}])

    @rule(hours=st.integers(-3, 12))
    def time_passes_or_is_set_back(self, hours: int) -> None:
        self.stage.now += hours * HOUR

    @rule(broker=st.sampled_from([2, 3]))
    def gets_another_goal(self, broker: int) -> None:
        self.stage.edit(goal={"drainBrokers": [broker]})

    @rule(change=st.sampled_from([fence, register, unregister]))
    def a_broker_comes_or_goes(self, change: Callable[[Stage], None]) -> None:
        change(self.stage)

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3))
    def a_wave_is_let_go_by_hand(self, choice: int) -> None:
        name = sorted(self.stage.waves)[choice % len(self.stage.waves)]
        self.by_hand.add(name)
        self.stage.edit_wave(name, suspend=False)

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3))
    def a_wave_is_deleted_by_hand(self, choice: int) -> None:
        self.stage.delete_wave(sorted(self.stage.waves)[choice % len(self.stage.waves)])

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3), broker=st.sampled_from([4, 5]))
    def a_wave_is_edited_or_put_back(self, choice: int, broker: int) -> None:
        name = sorted(self.stage.waves)[choice % len(self.stage.waves)]
        entry = self.stage.waves[name].spec.partitions[0].model_copy(update={"replicas": (broker, 2, 3)})
        self.stage.edit_wave(name, partitions=(entry,))

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3))
    def a_wave_is_suspended_by_hand(self, choice: int) -> None:
        self.stage.edit_wave(sorted(self.stage.waves)[choice % len(self.stage.waves)], suspend=True)

    @rule()
    def what_failed_succeeds_after_all(self) -> None:
        for wave in self.stage.waves.values():
            wave.outcome = wave.outcome and "Succeeded"

    @rule(seen=st.booleans())
    def the_cluster_comes_or_goes(self, seen: bool) -> None:
        self.stage.unseen = None if seen else Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    @invariant()
    def status_has_all_waves_of_its_plan_as_long_as_it_has_the_plan(self) -> None:
        now = self.stage.status.digest, [wave.name for wave in self.stage.status.waves]
        assert now[0] != self.listed[0] or now[1] == self.listed[1]
        self.listed = now

    @invariant()
    def of_the_waves_that_it_let_go_one_runs_at_most(self) -> None:
        running = [
            wave.name
            for wave in self.stage.waves.values()
            if not wave.spec.suspend and wave.outcome is None and wave.name not in self.by_hand and not wave.deleted
        ]
        assert len(running) <= 1

    @invariant()
    def nothing_is_let_go_without_approval(self) -> None:
        plan = self.stage.plan
        if plan.planned and plan.approved:
            self.ever_approved.update(wave.name for wave in self.stage.status.waves)
        assert set(self.stage.released) <= self.ever_approved

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        done = {name for name, wave in self.stage.waves.items() if wave.outcome and not wave.deleted}
        had_finalizer = self.stage.has_finalizer
        self.stage.deleted = True
        for _ in range(10):
            self.stage.tick()
            self.stage.finish("Succeeded")
        if had_finalizer:
            assert self.stage.gone
            assert {name for name, wave in self.stage.waves.items() if wave.outcome is None} == set()
            assert done <= set(self.stage.waves)


Plans.TestCase.settings = examples(200, stateful_step_count=30, suppress_health_check=list(HealthCheck))
test_whatever_happens = Plans.TestCase
