"""A plan that automation made: its owner lets its waves go, and ends it before it is carried out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from reassign.api.common import ConditionStatus
from reassign.core.automation.model import PlanSeen
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.decide import decide_plan
from reassign.core.plans.expiry import plan_expired
from reassign.core.plans.model import AddFinalizer, DeleteWave, PlanOrder, Unread
from reassign.core.report.events import Happened, plan_transitions
from reassign.errors import Reason
from tests.unit import kstatus
from tests.unit.examples import examples
from tests.unit.plan_sim import NEW, Stage, stage
from tests.unit.sim import START

A, B, C = (TopicPartition(topic, 0) for topic in ("alpha", "beta", "gamma"))
RETIRED = PlanOrder(retired=True)


def owned(*waves: Collection[TopicPartition], order: PlanOrder | None = None) -> Stage:
    """A plan that automation made, worked out, with these waves."""
    plan = Stage([dict.fromkeys(partitions, NEW) for partitions in waves or [[A], [B]]])
    plan.order = PlanOrder()
    plan.tick(4)
    plan.order = order or PlanOrder()
    return plan


def under_way(*waves: Collection[TopicPartition]) -> Stage:
    """The same, with its first wave in flight."""
    plan = owned(*waves, order=PlanOrder(1))
    plan.tick()
    plan.begin()
    plan.tick()
    return plan


def delete_topic(plan: Stage, *partitions: TopicPartition) -> None:
    for tp in partitions:
        del plan.kafka.replicas[tp]


def seen(plan: Stage) -> PlanSeen:
    return PlanSeen(plan.plan, "uid-owner", [wave.resource() for wave in plan.waves.values()])


# --- What may run ---


def test_without_an_order_to_run_a_plan_waits_for_its_owner() -> None:
    plan = owned()
    plan.run(3)
    assert (plan.released, plan.reason, plan.true) == ([], "AwaitingApproval", set())
    assert plan.message.startswith("the object that owns the plan decides when it runs")


def test_what_the_plan_itself_says_of_its_approval_does_not_count() -> None:
    plan = owned()
    plan.approve()
    plan.edit(approval="NotRequired")
    plan.run(3)
    assert (plan.released, plan.reason) == ([], "AwaitingApproval")
    plan.edit(suspend=True, approval="Required", approvedDigest=f"sha256:{'f' * 64}")
    plan.edit(windows=[{"cron": "0 0 29 2 *", "durationSeconds": 300}])
    plan.order = PlanOrder(2)
    plan.run()
    assert (plan.released, plan.reason) == ([plan.name(1), plan.name(2)], "Completed")
    assert plan.status.window_open is None


def test_a_wave_starts_only_when_the_order_reaches_it() -> None:
    plan = owned(order=PlanOrder(1))
    plan.run()
    assert (plan.released, plan.states) == ([plan.name(1)], ["Succeeded", "Pending"])
    assert plan.true == {"Reconciling"}
    plan.order = PlanOrder(2)
    plan.run()
    assert (plan.released, plan.true) == ([plan.name(1), plan.name(2)], {"Ready", "Succeeded"})


def test_an_order_that_is_taken_back_suspends_and_ends_no_move() -> None:
    plan = under_way()
    plan.order = PlanOrder()
    plan.tick()
    wave = plan.waves[plan.name(1)]
    assert (wave.spec.suspend, wave.moving, wave.deleted) == (True, True, False)
    assert (plan.reason, plan.true) == ("AwaitingApproval", {"Reconciling"})
    plan.finish()
    plan.tick()
    assert (plan.reason, plan.true) == ("AwaitingApproval", set())
    plan.order = PlanOrder(2)
    plan.run()
    assert plan.reason == "Completed"


def test_a_wave_beyond_the_order_that_runs_is_suspended_in_flight() -> None:
    plan = under_way()
    plan.edit_wave(plan.name(2), suspend=False)
    plan.begin()
    plan.tick()
    assert [wave.spec.suspend for wave in plan.waves.values()] == [False, True]
    assert all(wave.moving for wave in plan.waves.values())


def test_a_plan_that_ran_by_order_is_not_said_to_be_unapproved() -> None:
    plan = owned([A], order=PlanOrder(1))
    plan.tick()
    plan.begin()
    plan.finish()
    plan.order = PlanOrder()
    plan.tick(2)
    assert (plan.reason, "approved" in plan.message) == ("Completed", False)


def test_a_plan_that_waits_for_its_owner_is_compared_with_the_cluster() -> None:
    plan = owned()
    plan.kafka.replicas[A] = (5, 2, 3)
    plan.tick()
    assert (plan.reason, plan.true) == ("PlanStale", {"Stalled", "PlanStale"})
    assert plan.message.endswith("the object that owns the plan has another plan made")


def test_what_waits_for_its_owner_waits_for_no_cluster() -> None:
    plan = owned()
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.now += 9999
    plan.tick()
    assert (plan.reason, plan.true) == ("AwaitingApproval", set())


# --- Topics that are gone ---


def test_a_topic_that_is_gone_makes_no_owned_plan_stale() -> None:
    plan = owned([A, B], [C], order=PlanOrder(2))
    delete_topic(plan, A)
    plan.tick()
    assert (plan.released, plan.reason) == ([plan.name(1)], "WaveInFlight")


def test_a_topic_that_may_merely_be_unseen_is_not_gone() -> None:
    plan = owned([A, B], order=PlanOrder(1))
    snapshot = plan.kafka.snapshot()
    hidden = {A.topic: Problem(Reason.NOT_AUTHORIZED, "DESCRIBE is not allowed")}
    snapshot = replace(snapshot, topics={B.topic: snapshot.topics[B.topic]}, unread_topics=hidden)
    waves = [wave.resource() for wave in plan.waves.values()]
    decision = decide_plan(plan.plan, waves, snapshot, None, START, order=plan.order)
    ready = next(c for c in decision.status.conditions if c.type == "Ready")
    assert ([*decision.steps], ready.reason) == ([], "PlanStale")


def test_a_waiting_wave_of_gone_topics_alone_is_done_and_deleted() -> None:
    plan = owned([A], [B], order=PlanOrder(2))
    name = plan.name(1)
    delete_topic(plan, A)
    plan.tick()
    assert (plan.states, [*plan.waves], plan.released) == (["Succeeded", "Pending"], [name, plan.name(2)], [])
    plan.tick()
    assert name not in plan.waves
    plan.run()
    assert (plan.states, plan.released, plan.reason) == (["Succeeded"] * 2, [plan.name(2)], "Completed")


def test_a_wave_that_runs_is_done_when_its_other_topics_are() -> None:
    plan = under_way([A, B], [C])
    wave = plan.waves[plan.name(1)]
    wave.still = {A}
    delete_topic(plan, A)
    plan.tick()
    assert plan.states == ["Running", "Pending"]
    plan.finish()
    wave.stuck = {A: "UnknownTopicOrPartition"}
    plan.tick()
    assert (plan.states, plan.true) == (["Succeeded", "Pending"], {"Reconciling"})
    plan.order = PlanOrder(2)
    plan.run()
    assert (plan.states, plan.reason) == (["Succeeded"] * 2, "Completed")


def test_a_topic_deleted_in_flight_does_not_keep_its_wave() -> None:
    plan = under_way([A])
    delete_topic(plan, A)
    plan.tick(2)
    assert plan.waves[plan.name(1)].deleted
    plan.finish()
    plan.run()
    assert (plan.states, plan.reason) == (["Succeeded"], "Completed")


def test_a_topic_made_again_in_flight_does_not_keep_its_wave() -> None:
    plan = under_way([A])
    plan.kafka.topic_ids[A.topic] = "another"
    plan.tick(2)
    assert plan.waves[plan.name(1)].deleted


def test_until_metadata_is_settled_a_gone_topic_is_waited_for() -> None:
    plan = under_way([A])
    plan.waves[plan.name(1)].stuck = {A: "UnknownTopicOrPartition"}
    delete_topic(plan, A)
    plan.unsettled = {A}
    plan.tick(3)
    assert (plan.states, plan.true, plan.waves[plan.name(1)].deleted) == (["Running"], {"Reconciling"}, False)
    assert f"{plan.name(1)} waits until metadata shows what became of alpha-0" in plan.message


def test_a_plan_of_a_user_is_stale_when_a_topic_is_gone() -> None:
    plan = owned([A])
    plan.order = None
    plan.approve()
    delete_topic(plan, A)
    plan.tick()
    assert plan.reason == "PlanStale"


def test_the_next_wave_is_not_judged_before_it_was_observed() -> None:
    plan = owned([A], [B], order=PlanOrder(2))
    delete_topic(plan, A, B)
    plan.tick()
    assert plan.states == ["Succeeded", "Pending"]


# --- Retirement ---


def test_a_retired_plan_starts_nothing_and_lets_moves_end() -> None:
    plan = under_way([A, C], [B])
    wave = plan.waves[plan.name(1)]
    wave.still = {C}
    plan.order = RETIRED
    plan.tick(3)
    assert (wave.spec.suspend, wave.moving, wave.deleted, [*plan.waves]) == (True, True, False, [wave.name])
    assert (plan.reason, plan.true) == ("Retiring", {"Reconciling"})
    assert (seen(plan).ends, seen(plan).moving) == (True, True)
    plan.finish()
    plan.tick(2)
    assert (plan.waves, plan.reason, plan.kafka.replicas[A]) == ({}, "Retired", NEW)


def test_a_retired_plan_is_over_and_keeps_no_finalizer() -> None:
    plan = under_way([A], [B])
    plan.order = RETIRED
    plan.tick(2)
    assert plan.has_finalizer
    plan.finish()
    plan.tick()
    before = plan.status
    assert (plan.reason, plan.true, plan.states) == ("Retired", set(), ["Succeeded", "Missing"])
    assert plan.goal == ("Unknown", "Retired")
    plan.tick()
    assert (plan.has_finalizer, plan.status) == (False, before)
    assert (seen(plan).ends, seen(plan).moving, seen(plan).done, plan.plan.under_way) == (False, False, False, False)


@pytest.mark.parametrize("order", [RETIRED, PlanOrder(), PlanOrder(2), None])
def test_a_retired_plan_stays_retired_whatever_is_ordered_later(order: PlanOrder | None) -> None:
    plan = under_way()
    plan.order = RETIRED
    plan.run()
    before = plan.status
    plan.order = order
    plan.edit(suspend=True)
    plan.run()
    assert (plan.reason, plan.message) == ("Retired", next(c.message for c in before.conditions if c.type == "Ready"))
    assert plan.states == [wave.state.value for wave in before.waves]


def test_a_status_that_says_retired_hides_no_wave() -> None:
    plan = under_way()
    forged = stage(1)
    forged.order = RETIRED
    forged.tick(3)
    assert forged.reason == "Retired"
    plan.status = plan.status.model_copy(update={"conditions": forged.status.conditions})
    plan.tick()
    assert (plan.reason, plan.has_finalizer) == ("WaveInFlight", True)


def test_a_plan_may_be_retired_before_it_is_made() -> None:
    plan = stage()
    plan.order = RETIRED
    plan.tick(3)
    assert (plan.reason, plan.plans_made, plan.has_finalizer) == ("Retired", 0, False)
    plan.order = PlanOrder()
    plan.tick(3)
    assert (plan.reason, plan.plans_made) == ("Retired", 0)


def test_a_plan_that_is_done_is_not_retired_any_more() -> None:
    plan = owned([A], order=PlanOrder(1))
    plan.run()
    plan.order = RETIRED
    plan.run(3)
    assert plan.true == {"Ready", "Succeeded"}


def test_moves_to_lost_brokers_alone_are_cancelled() -> None:
    plan = under_way([A, B])
    wave = plan.waves[plan.name(1)]
    entries = [e.model_copy(update={"replicas": (5, 2, 3)}) if e.topic == B.topic else e for e in wave.spec.partitions]
    plan.edit_wave(wave.name, partitions=tuple(entries))
    plan.order = PlanOrder(retired=True, lost=frozenset({5}))
    plan.tick(3)
    assert (wave.going_back, wave.deleted, [*wave.targets]) == ({B}, False, [A])
    plan.finish()
    plan.tick(2)
    assert (plan.reason, plan.kafka.replicas[A]) == ("Retired", NEW)


def test_a_wave_of_which_no_move_can_end_is_deleted() -> None:
    plan = under_way([A, B])
    plan.order = PlanOrder(retired=True, lost=frozenset({NEW[0]}))
    plan.tick()
    assert plan.waves[plan.name(1)].deleted
    assert seen(plan).ends
    assert plan.tick().steps == []
    plan.finish()
    plan.tick()
    assert plan.reason == "Retired"


def test_moves_that_are_stalled_are_cancelled_and_others_end() -> None:
    plan = under_way([A, B, C])
    wave = plan.waves[plan.name(1)]
    wave.stuck = {B: "MoveStalled", C: "NoLeader"}
    plan.order = RETIRED
    plan.tick(2)
    assert wave.going_back == {B}
    plan.tick()
    assert wave.going_back == {B, C}
    assert wave.moving
    plan.finish()
    plan.tick(2)
    assert plan.reason == "Retired"


def test_a_cancel_that_cannot_end_is_waited_for() -> None:
    plan = under_way([A, B])
    wave = plan.waves[plan.name(1)]
    wave.stuck = {B: "MoveStalled"}
    plan.order = RETIRED
    plan.tick(2)
    wave.moving, wave.done, wave.still, wave.stuck = False, {A}, set(), {B: "MoveStalled"}
    plan.tick(3)
    assert (plan.waves[wave.name].deleted, plan.reason, seen(plan).ends) == (False, "Retiring", True)


def test_no_wave_goes_before_a_deletion_of_the_plan_would_wait() -> None:
    plan = owned()
    plan.has_finalizer, plan.order = False, RETIRED
    assert plan.tick().steps == [AddFinalizer()]
    plan.tick(3)
    assert (plan.waves, plan.reason, plan.has_finalizer) == ({}, "Retired", False)


def test_a_retired_plan_is_ended_without_a_cluster() -> None:
    plan = owned()
    plan.unseen = Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    plan.order = RETIRED
    plan.tick(2)
    assert (plan.waves, plan.reason) == ({}, "Retired")


def test_a_wave_that_cannot_be_read_is_left_alone_and_waited_for() -> None:
    plan = owned([A])
    (wave,) = plan.waves.values()
    problem = Problem(Reason.CANNOT_BE_READ, "a newer version wrote it")
    unread = [Unread(wave.uid, 1, "kafka", wave.name, False, False, problem)]
    decision = decide_plan(plan.plan, [], plan.kafka.snapshot(), None, START, unread, order=RETIRED)
    ready = next(c for c in decision.status.conditions if c.type == "Ready")
    assert ([*decision.steps], ready.reason) == ([], "CannotBeRead")
    assert PlanSeen(plan.plan, "uid-owner", [], unread).ends


def test_a_failed_wave_stays_with_its_retired_plan() -> None:
    plan = under_way()
    plan.finish("Failed")
    plan.order = RETIRED
    plan.tick(2)
    assert ([*plan.waves], plan.states, plan.reason) == ([plan.name(1)], ["Failed", "Missing"], "Retired")


def test_a_retired_plan_that_is_deleted_is_taken_down() -> None:
    plan = under_way()
    plan.order, plan.deleted = RETIRED, True
    plan.tick()
    assert all(wave.deleted for wave in plan.waves.values())
    plan.finish()
    plan.tick()
    assert plan.gone


def test_the_time_to_live_counts_from_the_retirement() -> None:
    plan = under_way()
    plan.edit(ttlSecondsAfterFinished=100)
    plan.now += 1000
    plan.order = RETIRED
    plan.run(3)
    ended = next(c.last_transition_time for c in plan.status.conditions if c.type == "Succeeded")
    assert ended > START + timedelta(seconds=1000)
    assert not plan_expired(plan.plan, ended + timedelta(seconds=99))
    assert plan_expired(plan.plan, ended + timedelta(seconds=100))


def test_a_plan_that_waits_does_not_expire() -> None:
    plan = owned()
    plan.edit(ttlSecondsAfterFinished=0)
    plan.tick()
    plan.has_finalizer = False
    assert not plan_expired(plan.plan, START + timedelta(days=1))


def test_a_retirement_is_one_event() -> None:
    plan, events = under_way(), list[str]()
    plan.order = RETIRED
    for _ in range(4):
        before = plan.status
        plan.tick()
        events += [event.reason for event in plan_transitions(before, plan.status)]
        plan.finish()
    assert events.count(Happened.PLAN_RETIRED) == 1


def test_no_client_takes_a_retired_plan_for_one_that_failed() -> None:
    plan = under_way()
    plan.order = RETIRED
    plan.run(3)
    succeeded = next(c for c in plan.status.conditions if c.type == "Succeeded")
    assert (succeeded.status, succeeded.reason) == (ConditionStatus.FALSE, "Retired")
    assert kstatus.kstatus(kstatus.seen(plan.status, plan.generation)) == "InProgress"


def test_waves_of_a_retired_plan_are_deleted_some_at_a_time() -> None:
    plan = owned(*[[TopicPartition("many", number)] for number in range(60)])
    plan.order = RETIRED
    decision = plan.tick()
    assert len([step for step in decision.steps if isinstance(step, DeleteWave)]) == 50
    plan.tick(2)
    assert plan.reason == "Retired"


# --- Whatever happens ---

TOPICS = [TopicPartition(name, 0) for name in "abcdef"]
LOST = frozenset({NEW[0]})


class OwnedPlans(RuleBasedStateMachine):
    """A plan of up to three waves that its owner lets go, holds and retires, while users and crashes get at it."""

    stage: Stage

    @initialize(waves=st.integers(0, 3), ticks=st.sampled_from([1, 5]))
    def begin(self, waves: int, ticks: int) -> None:
        self.stage = Stage([dict.fromkeys(TOPICS[2 * n : 2 * n + 2], NEW) for n in range(waves)])
        self.stage.order = PlanOrder()
        self.misses_none = True
        """Whether no wave was deleted but by what is decided of a plan that goes on."""
        self.stage.tick(ticks)

    def tick(self, die_after: int | None = None) -> None:
        """Check what is let go and what is taken back."""
        plan = self.stage
        order, released = plan.order, len(plan.released)
        assert order
        in_flight = {name: wave.moving and not wave.deleted for name, wave in plan.waves.items()}
        stuck = {name: not wave.targets.keys() - wave.still - wave.stuck.keys() for name, wave in plan.waves.items()}
        plan.tick(die_after=die_after)
        names = [wave.name for wave in plan.status.waves]
        assert not (self.misses_none and "Missing" in plan.states)
        for name in plan.released[released:]:
            assert names.index(name) < order.waves
            assert not order.retired
        for name, moved in in_flight.items():
            wave = plan.waves.get(name)
            gone = not wave or (wave.outcome is None and not set(wave.targets) & set(plan.kafka.replicas))
            may_go = order.retired and (order.lost == LOST or stuck[name])
            assert not (moved and (wave is None or wave.deleted)) or may_go or gone

    @rule(times=st.integers(1, 4))
    def ticks(self, times: int) -> None:
        for _ in range(times):
            self.tick()

    @rule(after=st.integers(0, 2))
    def is_killed(self, after: int) -> None:
        self.tick(after)

    @rule()
    def begins(self) -> None:
        self.stage.begin()

    @rule(outcome=st.sampled_from(["Succeeded", "Succeeded", "Failed"]))
    def finishes(self, outcome: str) -> None:
        self.stage.finish(outcome)

    @rule(waves=st.integers(0, 3))
    def is_ordered(self, waves: int) -> None:
        self.stage.order = PlanOrder(waves)

    @rule(lost=st.sampled_from([frozenset[int](), frozenset[int](), LOST]))
    def is_retired(self, lost: frozenset[int]) -> None:
        self.stage.order, self.misses_none = PlanOrder(retired=True, lost=lost), False

    @rule(fields=st.sampled_from([{"approval": "NotRequired"}, {"suspend": True}, {"goal": {"drainBrokers": [2]}}]))
    def is_edited_by_a_user(self, fields: dict[str, Any]) -> None:
        self.stage.edit(**fields)

    @rule(topics=st.sampled_from([TOPICS[:1], TOPICS[:2], TOPICS[2:4], TOPICS[4:]]))
    def topics_are_deleted(self, topics: Collection[TopicPartition]) -> None:
        for tp in topics:
            self.stage.kafka.replicas.pop(tp, None)

    @rule(unsettled=st.sets(st.sampled_from(TOPICS)))
    def metadata_may_show_the_past(self, unsettled: set[TopicPartition]) -> None:
        self.stage.unsettled = unsettled

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3), stuck=st.sets(st.sampled_from([0, 1])))
    def moves_stall(self, choice: int, stuck: set[int]) -> None:
        wave = self.stage.waves[sorted(self.stage.waves)[choice % len(self.stage.waves)]]
        if wave.moving:
            wave.stuck = {tp: "MoveStalled" for n, tp in enumerate(sorted(wave.targets)) if n in stuck}

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3), suspend=st.booleans())
    def a_wave_is_let_go_or_held_by_hand(self, choice: int, suspend: bool) -> None:
        self.stage.edit_wave(sorted(self.stage.waves)[choice % len(self.stage.waves)], suspend=suspend)

    @precondition(lambda self: self.stage.waves)
    @rule(choice=st.integers(0, 3))
    def a_wave_is_deleted_by_hand(self, choice: int) -> None:
        self.misses_none = False
        self.stage.delete_wave(sorted(self.stage.waves)[choice % len(self.stage.waves)])

    @rule(seen=st.booleans())
    def the_cluster_comes_or_goes(self, seen: bool) -> None:
        self.stage.unseen = None if seen else Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        plan = self.stage
        plan.order = PlanOrder(retired=True)
        for _ in range(8):
            plan.tick()
            plan.finish()
        assert not seen(plan).ends
        assert all(wave.outcome for wave in plan.waves.values())
        assert plan.reason in ("Retired", "Completed")
        plan.unseen = None
        for order in (PlanOrder(), RETIRED):
            before, plan.order = plan.reason, order
            plan.run(3)
            assert plan.reason == before
        assert not plan.has_finalizer


OwnedPlans.TestCase.settings = examples(200, stateful_step_count=30, suppress_health_check=list(HealthCheck))
test_whatever_happens = OwnedPlans.TestCase
