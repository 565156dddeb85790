"""What becomes of a ReassignmentPolicy: sentences."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime
from typing import Any

import pytest

from reassign.api.common import ConditionStatus
from reassign.api.kafka_cluster import Execution
from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.reassignment_plan import ReassignmentPlanSpec
from reassign.api.reassignment_record import RecordedPolicy
from reassign.core.automation import triggers
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from tests.unit.automation_sim import FENCED, GONE, UNREACHABLE, UP, SimOwnedWave, orders, said
from tests.unit.policy_sim import Policies, SimPolicy

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
ADDED = {"name": "out", "brokersAdded": {"afterSeconds": 600}, "approval": "NotRequired"}
NIGHTLY = {"name": "nightly", "schedule": {"cron": "0 4 * * *"}, "approval": "NotRequired"}
LANDED, OTHER = TopicPartition("orders", 90), TopicPartition("other", 0)
CLOSED = [{"cron": "0 0 1 7 *", "durationSeconds": 300}]
DAY = 24 * 3600


def world(*triggers: dict[str, Any], **fields: Any) -> tuple[Policies, SimPolicy]:
    run = Policies(ROWS)
    it = run.policy(*triggers, **fields)
    run.rest(900)
    return run, it


def uneven(run: Policies) -> None:
    """Bring a new broker, and few replicas to it."""
    run.brokers[6] = UP


# --- brokerLost ---


def test_a_lost_broker_is_replaced_after_its_time() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.rest(1770)
    assert (it.says("lost"), run.created) == (("Waiting", None), [])
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert (it.outcomes, it.reason, it.true) == ([("main-lost-1", "Succeeded")], "Idle", {"Ready"})
    assert run.cordons == {}


def test_a_broker_that_is_gone_is_replaced_too() -> None:
    run, it = world(LOST)
    run.brokers[5] = GONE
    run.wait(lambda: run.on(5) == [])
    assert it.status.plans


def test_an_idle_policy_says_which_broker_is_down() -> None:
    run, it = world(LOST)
    run.rest(60)
    assert it.status.summary == "no plan is needed"
    run.brokers[5] = FENCED
    run.rest(60)
    assert (it.reason, it.status.summary) == ("Idle", "lost: broker 5 is down, for less than 1800 s")


def test_a_broker_back_after_forty_minutes_has_its_plan_retired() -> None:
    run, it = world({**LOST, "windows": CLOSED})
    run.brokers[5] = FENCED
    run.rest(2400)
    assert it.says("lost")[0] == "Active"
    run.brokers[5] = UP
    run.rest(285)
    assert it.outcomes == [("main-lost-1", "Running")]
    run.rest(120)
    assert (it.outcomes, run.begun, run.on(5)) == ([("main-lost-1", "Retired")], [], run.on(5))
    assert it.reason == "Idle"


def test_a_broker_back_while_it_is_replaced_cancels_nothing() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.brokers[5] = UP
    run.rest(1200)
    assert run.begun == ["main-lost-1-w1"]
    assert len(run.on(5)) == 1, "what was in flight has come to its end, and nothing else has begun"
    assert (it.outcomes, it.reason) == ([("main-lost-1", "Retired")], "Idle")


def test_a_broker_that_is_fenced_again_is_replaced_further() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.brokers[5] = UP
    run.rest(120)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert it.outcomes == [("main-lost-1", "Succeeded")]


def test_a_broker_that_flaps_every_five_minutes_is_never_replaced() -> None:
    run, it = world(LOST)
    for _ in range(30):
        run.brokers[5] = FENCED
        run.rest(300)
        run.brokers[5] = UP
        run.rest(300)
    assert (run.created, it.reason) == ([], "Idle")


def test_three_lost_brokers_are_a_users_matter() -> None:
    run, it = world(LOST)
    for broker in (3, 4, 5):
        run.brokers[broker] = FENCED
    run.rest(630)
    assert (it.reason, it.true) == ("TooManyBrokersLost", {"Stalled"})
    run.rest(1500)
    assert (it.says("lost"), run.created) == (("Held", "TooManyBrokersLost"), [])
    run.brokers[3] = run.brokers[4] = UP
    run.wait(lambda: run.on(5) == [])


def test_a_whole_rack_is_a_users_matter_but_not_a_rack_of_one() -> None:
    run, it = world({**LOST, "brokerLost": {"afterSeconds": 1800, "maxBrokers": 5}})
    run.racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    run.brokers[3] = run.brokers[4] = FENCED
    run.rest(2000)
    assert (it.reason, it.says("lost"), run.created) == ("RackLost", ("Held", "RackLost"), [])
    run.brokers[3] = run.brokers[4] = UP
    run.rest(60)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])


@pytest.mark.parametrize(("racks", "reason"), [({}, "TooManyBrokersLost"), ({4: "b", 5: "b"}, "RackLost")])
def test_a_replacement_begins_no_wave_while_too_much_is_down(racks: dict[int, str], reason: str) -> None:
    run, it = world({**LOST, "brokerLost": {"afterSeconds": 1800, "maxBrokers": 2 if racks else 1}})
    run.racks = racks
    run.replicas.update({TopicPartition("big", n): (5, n % 3) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.brokers[4] = FENCED
    run.rest(660)
    assert (run.begun, it.reason, it.outcomes) == (["main-lost-1-w1"], reason, [("main-lost-1", "Running")])
    assert (it.trigger("lost").message or "").startswith("main-lost-1 starts nothing: brokers 4 and 5 are down")
    run.brokers[4] = UP
    run.wait(lambda: run.on(5) == [])
    assert run.created == ["main-lost-1"]


def test_a_replaced_broker_that_stays_registered_holds_nothing_up() -> None:
    run, it = world(LOST, NIGHTLY)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    run.replicas.update(orders(*[(0, 1)] * 8))
    run.wait(lambda: "nightly" in {plan.trigger for plan in it.status.plans}, most=8000)
    run.rest(600)
    assert next(name for name, _ in it.outcomes) == "main-lost-1"
    assert len([name for name, _ in it.outcomes if "lost" in name]) == 1


def test_what_lands_on_a_lost_broker_later_is_planned_again() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    run.replicas[LANDED] = (5, 1)
    run.wait(lambda: run.on(5) == [])
    assert [name for name, _ in it.outcomes] == ["main-lost-1", "main-lost-2"]


def test_replicas_without_a_source_are_left_and_nothing_starts_for_them() -> None:
    run, it = world({**LOST, "brokerLost": {"afterSeconds": 1800, "maxBrokers": 2}})
    run.replicas = orders((5, 4), (0, 1))
    run.brokers[5] = run.brokers[4] = FENCED
    run.rest(4000)
    assert (run.created, it.says("lost")[0]) == ([], "Held")
    run.replicas[LANDED] = (5, 1)
    run.wait(lambda: run.created)


def test_before_kafka_4_no_broker_is_seen_to_be_lost() -> None:
    run, it = world(LOST)
    run.lists_fenced = False
    run.brokers[5] = FENCED
    run.rest(4000)
    assert (run.created, it.says("lost"), it.reason) == ([], ("Idle", "NotSupported"), "Idle")


def test_before_kafka_4_a_broker_that_is_down_holds_a_balance() -> None:
    run, it = world(NIGHTLY)
    run.lists_fenced = False
    uneven(run)
    run.brokers[5] = FENCED
    run.wait(lambda: it.says("nightly") == ("Held", "ClusterUnsettled"))
    run.rest(600)
    assert (run.created, it.says("nightly")) == ([], ("Held", "ClusterUnsettled"))
    run.brokers[5] = UP
    run.wait(lambda: it.outcomes == [("main-nightly-1", "Succeeded")])


def test_a_broker_that_was_lost_before_the_operator_began_is_replaced() -> None:
    run = Policies(ROWS)
    run.brokers[5] = GONE
    it = run.policy(LOST)
    run.rest(1770)
    assert (it.says("lost"), run.created) == (("Waiting", None), [])
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    assert run.on(5) == []


def test_of_two_lost_brokers_one_that_returns_ends_the_plan_of_both() -> None:
    run, it = world({**LOST, "brokerLost": {"afterSeconds": 1800, "maxBrokers": 2}})
    run.replicas.update({TopicPartition("big", n): (5, 4) for n in range(20)})
    run.brokers[4] = run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.brokers[4] = UP
    run.rest(285)
    assert run.begun == ["main-lost-1-w1"]
    left = run.on(4)
    run.wait(lambda: run.on(5) == [])
    assert it.outcomes[0] == ("main-lost-1", "Retired")
    assert {*left} <= {*run.on(4)}, "no replica leaves the broker that is back"


# --- brokersCordoned ---


def test_brokers_that_others_have_cordoned_are_emptied() -> None:
    run, it = world(CORDONED)
    run.others = {5}
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert (it.outcomes, it.says("in")) == ([("main-in-1", "Succeeded")], ("Idle", None))


def emptied(run: Policies, *brokers: int) -> None:
    """Let another client cordon brokers with many replicas, and wait until a wave of the plan is in flight."""
    run.replicas.update({TopicPartition("big", n): (brokers[n % len(brokers)], 1) for n in range(20)})
    run.others = {*brokers}
    run.wait(lambda: run.begun)


def test_a_cordon_that_is_lifted_before_a_wave_begins_ends_the_plan() -> None:
    run, it = world({**CORDONED, "windows": CLOSED})
    run.others = {5}
    run.wait(lambda: it.outcomes)
    run.others = set()
    run.rest(285)
    assert it.outcomes == [("main-in-1", "Running")]
    run.rest(120)
    assert (it.outcomes, run.begun, it.reason) == ([("main-in-1", "Retired")], [], "Idle")


def test_a_cordon_that_is_lifted_while_waves_run_cancels_nothing() -> None:
    run, it = world(CORDONED)
    emptied(run, 5)
    left = len(run.on(5))
    run.others = set()
    run.tick()
    assert it.trigger("in").message == "broker 5 is not cordoned any more, so main-in-1 starts nothing more"
    run.rest(1200)
    assert run.begun == ["main-in-1-w1"]
    assert len(run.on(5)) == left - 2, "what was in flight has come to its end, and nothing else has begun"
    assert (it.outcomes, it.reason) == ([("main-in-1", "Retired")], "Idle")
    run.others = {5}
    run.rest(420)
    assert run.created == ["main-in-1", "main-in-2"], "it was no failure, and no cooldown follows"


def test_a_broker_that_is_cordoned_again_is_emptied_further() -> None:
    run, it = world(CORDONED)
    emptied(run, 5)
    run.others = set()
    run.rest(240)
    assert run.begun == ["main-in-1-w1"]
    run.others = {5}
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert it.outcomes == [("main-in-1", "Succeeded")]


def test_of_two_brokers_one_that_is_not_cordoned_ends_the_plan_of_both() -> None:
    run, it = world(CORDONED)
    emptied(run, 4, 5)
    run.others = {5}
    run.rest(30)
    left = run.on(4)
    run.wait(lambda: run.on(5) == [])
    assert it.outcomes[0] == ("main-in-1", "Retired")
    assert {*left} <= {*run.on(4)}, "no replica leaves the broker that is not cordoned any more"


@pytest.mark.parametrize("how", ["down", "untold", "read long ago"])
def test_an_unknown_cordon_neither_stops_a_plan_nor_lets_it_go_on(how: str) -> None:
    run, it = world(CORDONED)
    emptied(run, 5)

    def hide(hidden: bool) -> None:
        run.brokers[5] = FENCED if hidden and how == "down" else UP
        run.untold = {5} if hidden and how == "untold" else set()
        run.cordons_at = run.now.monotonic - 121 if hidden and how == "read long ago" else None

    run.others = set()
    for _ in range(4):
        hide(True)
        run.tick()
    assert len(run.begun) > 1, "nothing is known of the cordon, so the plan goes on"
    hide(False)
    run.tick(2)
    begun = len(run.begun)
    for _ in range(20):
        hide(True)
        run.tick()
    assert (len(run.begun), it.outcomes) == (begun, [("main-in-1", "Running")])
    hide(False)
    run.wait(lambda: it.outcomes == [("main-in-1", "Retired")])
    assert len(run.begun) == begun


def test_of_many_cordoned_brokers_as_many_as_a_plan_may_name_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "MAX_PLAN_BROKERS", 2)
    run, it = world(CORDONED)
    run.others = {1, 2, 5}
    run.wait(lambda: run.created)
    assert run.plans["main-in-1"].spec.goal.drain_brokers == (1, 2)
    assert it.trigger("in").brokers == (1, 2)
    run.wait(lambda: not (run.on(1) or run.on(2) or run.on(5)))
    run.rest(60)
    assert it.outcomes == [("main-in-1", "Succeeded"), ("main-in-2", "Succeeded")]


def test_301_cordoned_brokers_get_a_plan_for_the_first_300() -> None:
    many = range(MAX_PLAN_BROKERS + 1)
    run = Policies(orders(*((broker, 1000) for broker in many)), [*many, 1000, 1001])
    it = run.policy(CORDONED)
    run.rest(900)
    run.others = {*many}
    run.rest(330)
    assert run.plans["main-in-1"].spec.goal.drain_brokers == tuple(many)[:-1]
    assert len(it.trigger("in").brokers) == MAX_PLAN_BROKERS


def test_a_decommission_and_a_cordon_never_act_on_one_broker() -> None:
    run, it = world(CORDONED)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.others = {5}
    run.wait(lambda: run.begun)
    run.apply(approval="NotRequired", cordon="Never")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    assert it.outcomes == [("main-in-1", "Retired")]
    assert run.created == ["main-in-1", "old-1"]
    run.rest(1800)
    assert run.created == ["main-in-1", "old-1"]


def test_a_cordon_of_a_decommission_is_not_one_of_others() -> None:
    run, _ = world(CORDONED)
    run.apply(approval="NotRequired")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    run.rest(1800)
    assert run.created == ["old-1"]


# --- brokersAdded ---


def test_new_brokers_get_replicas_once_the_cluster_is_settled() -> None:
    run, it = world(ADDED)
    uneven(run)
    run.rest(585)
    assert run.created == []
    run.wait(lambda: run.on(6))
    run.rest(300)
    assert it.outcomes == [("main-out-1", "Succeeded")]
    run.tick(DAY // 120, 120)
    assert run.created == ["main-out-1"]


def test_a_broker_that_is_bare_once_more_is_planned_for_again() -> None:
    run, it = world(ADDED)
    uneven(run)
    run.wait(lambda: ("main-out-1", "Succeeded") in it.outcomes)
    run.rest(600)
    for tp in run.on(6):
        run.replicas[tp] = tuple(
            5 if broker == 6 and 5 not in run.replicas[tp] else broker for broker in run.replicas[tp]
        )
        run.replicas[tp] = tuple(4 if broker == 6 else broker for broker in run.replicas[tp])
    run.wait(lambda: run.on(6), most=1000)
    assert run.created == ["main-out-1", "main-out-2"]


def test_a_broker_that_stays_bare_is_not_planned_for_again() -> None:
    run, it = world(ADDED, planTemplate={"goal": {"balance": {}}, "topics": {"include": ["other"]}})
    run._balance = lambda *_: []  # type: ignore[method-assign]
    uneven(run)
    run.tick(DAY // 60, 60)
    assert (run.created, it.says("out")) == ([], ("Held", "GainTooSmall"))


def test_an_edited_template_has_a_broker_that_stays_bare_planned_for() -> None:
    run, it = world(ADDED)
    balance, run._balance = run._balance, lambda *_: []  # type: ignore[method-assign]
    uneven(run)
    run.wait(lambda: it.says("out") == ("Held", "GainTooSmall"))
    run._balance = balance  # type: ignore[method-assign]
    it.edit(suspend=False)
    run.rest(600)
    assert (run.created, it.says("out")) == ([], ("Held", "GainTooSmall"))
    it.edit(planTemplate={"goal": {"balance": {"by": ["Leaders"]}}})
    run.wait(lambda: run.on(6), most=60)


def test_a_broker_that_is_being_emptied_is_not_new() -> None:
    run, it = world(ADDED)
    run.apply(brokers=(5,), approval="NotRequired")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    run.rest(7200)
    assert (run.created, it.outcomes) == (["old-1"], [])


# --- schedule ---


def test_a_schedule_with_nothing_to_do_makes_no_plan() -> None:
    run = Policies(orders((0, 1), (2, 3), (4, 5)))
    it = run.policy(NIGHTLY)
    for day in range(1, 5):
        run.tick(DAY // 120, 120)
        assert (run.created, it.reason, it.says("nightly")) == ([], "Idle", ("Idle", "NothingToDo"))
        assert it.status.last_schedule_time == datetime(2026, 1, day, 4, tzinfo=UTC)


def test_a_schedule_balances_at_its_time_and_not_before() -> None:
    run, it = world(NIGHTLY)
    run.replicas.update(orders(*[(0, 1)] * 8))
    run.rest(1800)
    assert run.created == []
    run.wait(lambda: run.created)
    run.rest(600)
    assert it.outcomes == [("main-nightly-1", "Succeeded")]
    assert it.status.last_schedule_time
    assert f"{it.status.last_schedule_time:%H:%M}" == "04:00"
    assert it.status.next_schedule_time
    run.tick(DAY // 240, 120)
    assert run.created == ["main-nightly-1"]


@pytest.mark.parametrize(
    "bad", [{"cron": "0 0 30 2 *"}, {"cron": "61 * * * *"}, {"cron": "0 4 * * *", "timeZone": "Europe/Berlino"}]
)
def test_a_schedule_that_cannot_be_read_stalls_and_others_go_on(bad: dict[str, str]) -> None:
    run, it = world({"name": "bad", "schedule": bad}, LOST)
    assert (it.reason, it.true, it.says("bad")) == ("InvalidSchedule", {"Stalled"}, ("Idle", "InvalidSchedule"))
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])


def test_a_window_that_never_opens_holds_only_its_trigger() -> None:
    run, it = world({**NIGHTLY, "windows": [{"cron": "0 0 30 2 *", "durationSeconds": 300}]}, LOST)
    run.replicas.update(orders((0, 1), *[(0, 5)] * 8))
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    assert (it.reason, it.true) == ("InvalidSchedule", {"Stalled"})


def test_two_policies_are_one_too_many() -> None:
    run, it = world(LOST)
    other = run.policy(LOST, name="other")
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    assert (other.reason, other.true, it.reason) == ("DuplicatePolicy", {"Stalled"}, "PlanInProgress")
    assert all(name.startswith("main-") for name in run.created)


# --- Approval ---


def test_a_plan_waits_for_its_approval_and_the_policy_is_ready() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    assert it.true == {"Ready", "ApprovalNeeded"}
    assert it.status.plan
    assert (it.status.plan.name, it.status.plan.trigger) == ("main-lost-1", "lost")
    run.rest(3600)
    assert run.begun == []
    it.approve()
    run.wait(lambda: run.on(5) == [])


def test_an_approval_of_an_older_digest_approves_nothing() -> None:
    run, it = world({**LOST, "approval": "Required"}, approvedDigest=f"sha256:{'f' * 64}")
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    run.rest(1800)
    assert run.begun == []
    assert "read it" in (it.status.summary or "")


def test_a_plan_that_copies_more_than_allowed_needs_approval() -> None:
    run, it = world(LOST, maxBytes=1024)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    assert run.begun == []
    assert "and maxBytes is 1024" in (it.status.summary or "")


class DoesMore(Policies):
    """Plans that evacuate a broker move another partition, too."""

    def _evacuation(
        self, prefix: str, spec: ReassignmentPlanSpec, refused: Set[int]
    ) -> tuple[list[SimOwnedWave], list[str], list[str]]:
        waves, incomplete, left_out = super()._evacuation(prefix, spec, refused)
        waves[0].entries[OTHER] = ((1, 2), (1, 3))
        return waves, incomplete, left_out


def test_a_plan_that_does_more_than_evacuate_says_why_it_waits() -> None:
    run = DoesMore({**ROWS, OTHER: (1, 2)})
    it = run.policy(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    assert "no approval covers it: other-0 has no replica on broker 5; copy" in (it.status.summary or "")
    it.approve()
    run.wait(lambda: run.on(5) == [])


@pytest.mark.parametrize(
    ("approval", "users", "said"),
    [
        ("NotRequired", [], {"is being made", "has not begun", "is under way"}),
        ("NotRequired", ["theirs"], {"is being made", "has not begun"}),
        ("Required", [], {"is being made", "waits for its approval"}),
    ],
)
def test_what_waits_for_a_plan_says_how_far_that_is(approval: str, users: list[str], said: set[str]) -> None:
    run, it = world({**NIGHTLY, "approval": approval}, {**NIGHTLY, "name": "too"})
    uneven(run)
    run.wait(lambda: it.record.waiting)
    run.users, found = users, set[str]()
    for _ in range(3):
        run.tick()
        found |= {it.trigger("too").message.rpartition("main-nightly-1 ")[2]}
    assert (found, it.says("too")) == (said, ("Held", "PlanInProgress"))


def test_an_approval_covers_what_lands_later_on_the_same_broker() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.on(5) == [])
    run.replicas[LANDED] = (5, 1)
    run.wait(lambda: run.on(5) == [])


def test_no_approval_covers_more_than_a_tenth_beyond_its_bytes() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.on(5) == [])
    run.replicas[LANDED] = (5, 1)
    run.wait(lambda: it.reason == "AwaitingApproval")
    assert "more than 110 %" in (it.status.summary or "")
    it.approve()
    run.wait(lambda: run.on(5) == [])


def test_no_approval_covers_another_broker() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(40)})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.on(5) == [])
    run.brokers[3] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    assert "it empties broker 3, too" in (it.status.summary or "")
    run.rest(600)
    assert run.on(3)


def test_an_approval_that_is_withdrawn_holds_further_waves() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.begun)
    it.edit(approvedDigest=None)
    run.rest(600)
    assert (run.begun, it.reason, it.true) == (["main-lost-1-w1"], "AwaitingApproval", {"Ready", "ApprovalNeeded"})
    it.approve()
    run.wait(lambda: run.on(5) == [])


def test_a_plan_whose_trigger_is_over_is_deleted() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    run.brokers[5] = UP
    run.rest(60)
    assert (run.plans, it.reason, it.status.plan) == ({}, "Idle", None)


def test_a_plan_that_the_cluster_outgrows_is_made_anew_once_an_hour() -> None:
    run, it = world({**ADDED, "approval": "Required"})
    uneven(run)
    run.wait(lambda: it.reason == "AwaitingApproval")
    made = len(run.created)
    for _ in range(3 * 240):
        for plan in run.plans.values():
            plan.stale = True
        run.tick()
    assert 2 <= len(run.created) - made + 1 <= 4


def test_an_edited_policy_has_its_waiting_plan_made_anew() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.edit(planTemplate={"goal": {"balance": {}}, "waves": {"maxPartitions": 3}})
    run.rest(120)
    assert (run.created, it.reason) == (["main-lost-1", "main-lost-2"], "AwaitingApproval")


# --- What holds, and what goes first ---


@pytest.mark.parametrize("kind", ["suspend", "brake"])
def test_nothing_starts_while_a_user_wants_that(kind: str) -> None:
    run, it = world(LOST, suspend=kind == "suspend")
    run.execution = Execution.PAUSE if kind == "brake" else Execution.RUN
    run.brokers[5] = FENCED
    run.rest(4000)
    assert (run.created, it.reason, it.true) == ([], "Suspended", set())
    run.execution = Execution.RUN
    it.edit(suspend=False)
    run.wait(lambda: run.on(5) == [])


def test_an_outage_of_an_hour_is_followed_by_one_plan_the_first() -> None:
    run, it = world(LOST, CORDONED, ADDED, NIGHTLY)
    run.problem = UNREACHABLE
    run.rest(300)
    assert it.reason == "ClusterUnreachable"
    run.brokers[5] = FENCED
    uneven(run)
    run.rest(3600)
    run.problem = None
    run.rest(1785)
    assert run.created == []
    run.wait(lambda: run.on(5) == [])
    assert run.created == ["main-lost-1"]


@pytest.mark.parametrize("trigger", [LOST, CORDONED, ADDED, NIGHTLY], ids=lambda trigger: trigger["name"])
def test_a_rolling_restart_starts_nothing(trigger: dict[str, Any]) -> None:
    run, it = world(trigger)
    for broker in range(6):
        run.brokers[broker] = FENCED
        run.rest(90)
        run.brokers[broker] = UP
        run.rest(90)
    assert (run.created, it.reason) == ([], "Idle")


@pytest.mark.parametrize("trigger", [LOST, CORDONED, ADDED, NIGHTLY], ids=lambda trigger: trigger["name"])
def test_a_rolling_restart_in_the_middle_of_a_plan_makes_no_other(trigger: dict[str, Any]) -> None:
    run, it = world(LOST, trigger) if trigger is not LOST else world(LOST)
    run.replicas.update({TopicPartition("big", n): (0, 1) for n in range(12)})
    if trigger is LOST:
        run.brokers[5] = FENCED
    run.others = {5} if trigger is CORDONED else set()
    if trigger is ADDED:
        uneven(run)
    run.wait(lambda: run.begun)
    for broker in (broker for broker, state in run.brokers.items() if state == UP):
        run.brokers[broker] = FENCED
        run.rest(45)
        run.brokers[broker] = UP
        run.rest(45)
    run.wait(lambda: not run.working and it.reason == "Idle")
    assert it.outcomes == [(f"main-{trigger['name']}-1", "Succeeded")]


def test_a_lost_broker_goes_before_a_balance_and_retires_it() -> None:
    run, it = world(LOST, {**NIGHTLY, "windows": [{"cron": "0 5 * * *", "durationSeconds": 300}]})
    run.replicas.update(orders((5, 1), *[(0, 1)] * 8))
    run.wait(lambda: it.outcomes)
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    run.rest(120)
    assert it.outcomes[:2] == [("main-nightly-1", "Retired"), ("main-lost-2", "Succeeded")]


def test_a_lost_broker_goes_before_a_decommission_which_goes_on_later() -> None:
    run, it = world(LOST)
    run.apply(brokers=(4,), approval="NotRequired", windows=[{"cron": "0 7 * * *", "durationSeconds": 3600}])
    run.wait(lambda: run.objects["old"].reason == "OutsideWindow")
    run.brokers[5] = FENCED
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert it.outcomes == [("main-lost-1", "Succeeded")]
    run.wait(lambda: run.objects["old"].reason == "Empty", most=4000)
    assert run.created == ["old-1", "main-lost-1", "old-2"]


def test_a_decommission_goes_before_a_balance_and_retires_it() -> None:
    run, it = world({**NIGHTLY, "windows": [{"cron": "0 5 * * *", "durationSeconds": 300}]})
    run.replicas.update(orders((5, 1), *[(0, 1)] * 8))
    run.wait(lambda: it.outcomes)
    run.apply(approval="NotRequired")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    assert it.outcomes == [("main-nightly-1", "Retired")]
    assert run.created == ["main-nightly-1", "old-1"]


def test_of_two_that_could_begin_the_decommission_goes_first() -> None:
    run, it = world({**ADDED, "approval": "Required"})
    uneven(run)
    old = run.apply()
    run.wait(lambda: it.reason == "AwaitingApproval")
    run.wait(lambda: old.reason == "AwaitingApproval")
    it.approve()
    old.approve()
    run.tick()
    assert not (it.record.plan and it.record.plan.approved)
    assert old.record.plan
    assert old.record.plan.approved
    run.wait(lambda: old.reason == "Empty")


def test_a_moment_that_nothing_began_in_time_is_missed() -> None:
    run, it = world(NIGHTLY)
    run.users = ["rebalance"]
    run.wait(lambda: it.says("nightly")[0] == "Held")
    assert it.says("nightly") == ("Held", "PlanInProgress")
    run.rest(3700)
    assert (it.says("nightly"), run.created) == (("Idle", "ScheduleMissed"), [])


def test_a_plan_of_a_schedule_that_was_not_approved_in_time_says_so() -> None:
    run, it = world({**NIGHTLY, "approval": "Required"})
    uneven(run)
    run.wait(lambda: it.reason == "AwaitingApproval")
    run.rest(3700)
    assert (it.says("nightly"), it.reason) == (("Idle", "ScheduleMissed"), "Idle")
    assert run.created == ["main-nightly-1"]


def test_a_balance_waits_for_a_decommission_and_for_the_cooldown() -> None:
    run, it = world(ADDED, cooldownSeconds=7200)
    run.apply(approval="NotRequired", windows=[{"cron": "0 7 * * *", "durationSeconds": 3600}])
    run.wait(lambda: run.objects["old"].reason == "OutsideWindow")
    uneven(run)
    run.rest(1800)
    assert it.says("out") == ("Held", "PlanInProgress")
    run.wait(lambda: run.objects["old"].reason == "Empty", most=4000)
    run.wait(lambda: ("main-out-1", "Succeeded") in it.outcomes)
    run.brokers[7] = UP
    run.rest(1800)
    assert it.says("out") == ("Held", "Cooldown")
    run.wait(lambda: run.on(7))


def test_the_cooldown_begins_with_the_end_of_a_plan() -> None:
    often = {"name": "often", "schedule": {"cron": "* * * * *"}, "approval": "NotRequired"}
    run, it = world(ADDED, often)
    run.rest(3600)
    uneven(run)
    run.wait(lambda: "Running" in dict(it.outcomes).values())
    run.wait(lambda: "Running" not in dict(it.outcomes).values())
    assert it.says("often") == ("Held", "Cooldown")


def test_plans_of_users_and_moves_of_others_hold_a_balance() -> None:
    run, it = world(ADDED)
    uneven(run)
    run.users = ["rebalance"]
    run.rest(1800)
    assert it.says("out") == ("Held", "PlanInProgress")
    run.users, run.foreign = [], frozenset({1})
    run.rest(60)
    assert it.says("out") == ("Held", "ForeignInFlight")
    run.foreign = frozenset()
    run.wait(lambda: run.on(6))


def test_a_plan_of_a_user_holds_a_decommission_of_a_broker_that_is_up() -> None:
    run, _ = world(LOST)
    run.users = ["rebalance"]
    it = run.apply(approval="NotRequired")
    run.rest(600)
    assert (it.reason, run.created) == ("PlanInProgress", [])
    run.brokers[5] = FENCED
    run.wait(lambda: run.created)


@pytest.mark.parametrize("other", ["decommission", "policy"])
def test_a_plan_that_waits_for_its_window_retires_no_other(other: str) -> None:
    lost = {**LOST, "brokerLost": {"afterSeconds": 60}, "windows": CLOSED}
    run, it = world(lost, CORDONED)
    run.replicas.update({TopicPartition("big", n): (4, 1) for n in range(40)})
    if other == "policy":
        run.others = {4}
    else:
        run.apply(brokers=(4,), approval="NotRequired")
    run.wait(lambda: run.begun)
    run.brokers[5] = FENCED
    run.wait(lambda: "waits: no window is open" in (it.trigger("lost").message or ""))
    assert run.on(4) != []
    run.wait(lambda: run.on(4) == [])
    assert len([name for name in run.created if "lost" not in name]) == 1
    assert "Retired" not in [outcome for _, outcome in it.outcomes]


@pytest.mark.parametrize("more", [True, False], ids=["beside another decommission", "alone"])
def test_a_decommission_that_waits_for_its_window_retires_no_plan(more: bool) -> None:
    run, it = world(ADDED)
    run.replicas.update({TopicPartition("big", n): (0, 1) for n in range(12)})
    uneven(run)
    run.wait(lambda: run.begun)
    old = run.apply(approval="NotRequired", windows=CLOSED)
    run.wait(lambda: old.reason == "OutsideWindow", most=40)
    assert it.outcomes == [("main-out-1", "Running")]
    if more:
        run.apply("next", [4], approval="NotRequired")
    run.wait(lambda: it.outcomes[0][1] != "Running", most=200)
    assert it.outcomes[0] == ("main-out-1", "Retired" if more else "Succeeded")
    if more:
        run.wait(lambda: "next-1-w1" in run.begun, most=40)
    assert "old-1-w1" not in run.begun


@pytest.mark.parametrize("begun", [True, False])
def test_a_decommission_that_a_user_holds_up_holds_nothing_itself(begun: bool) -> None:
    run, it = world(CORDONED)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.others = {5}
    if begun:
        run.wait(lambda: run.begun)
    run.users = ["rebalance"]
    run.apply(brokers=(4,), approval="NotRequired")
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert it.outcomes == [("main-in-1", "Succeeded")]
    assert (run.on(4) != [], "rebalance" in (run.objects["old"].message or "")) == (True, True)
    run.users = []
    run.wait(lambda: run.on(4) == [])


def test_a_decommission_of_a_broker_that_is_being_replaced_comes_after() -> None:
    run, it = world(LOST)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.apply(brokers=(5,), approval="NotRequired")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    run.rest(7200)
    assert (it.outcomes, run.created) == ([("main-lost-1", "Succeeded")], ["main-lost-1"])


def test_a_plan_that_waits_for_approval_goes_with_a_decommission() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    run.apply(brokers=(5,), approval="NotRequired")
    run.wait(lambda: run.objects["old"].reason == "Empty")
    run.rest(60)
    assert (it.outcomes, it.says("lost"), it.reason) == ([], ("Idle", None), "Idle")


def test_a_record_that_is_deleted_takes_up_the_plan_that_is_there() -> None:
    run, it = world(LOST)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    it.record = RecordedPolicy()
    run.restart()
    run.wait(lambda: run.on(5) == [])
    run.rest(7200)
    assert (it.outcomes, run.created) == ([("main-lost-1", "Succeeded")], ["main-lost-1"])


def cordoned(*rows: tuple[int, ...], **trigger: Any) -> tuple[Policies, SimPolicy]:
    """Broker 5 is lost while a decommission empties broker 4, which has our cordon; these rows are on them."""
    run = Policies(orders(*rows))
    it = run.policy({**LOST, **trigger})
    run.apply(brokers=(4,), approval="NotRequired", windows=CLOSED)
    run.wait(lambda: run.cordons)
    run.brokers[5] = FENCED
    return run, it


CLOSED = [{"cron": "0 0 1 7 *", "durationSeconds": 300}]


@pytest.mark.parametrize("waits", [{"approval": "Required"}, {"windows": CLOSED}])
def test_our_cordons_stay_while_a_plan_for_a_lost_broker_waits(waits: dict[str, Any]) -> None:
    run, it = cordoned((5, 4), (1, 5), (4, 2), **waits)
    run.wait(lambda: it.status.plan)
    run.rest(1200)
    assert (set(run.cordons), it.record.lifts_cordons, run.begun) == ({4}, False, [])
    [plan] = it.record.plans
    assert {tp.partition for wave in run.plans[plan.name].waves for tp in wave.entries} == {0, 1}


def test_our_cordons_are_lifted_from_the_first_wave_to_the_end() -> None:
    run, it = cordoned((5, 4), (1, 5), (4, 2), approval="Required")
    run.lifts_cordons = False
    run.wait(lambda: it.status.digest)
    it.approve()
    run.rest(60)
    assert it.trigger("lost").message == "main-lost-1 starts nothing: the cordon of broker 4 is being lifted"
    assert run.begun == []
    run.lifts_cordons = True
    run.wait(lambda: run.begun)
    assert run.cordons == {}
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    run.tick()
    assert (run.on(5), set(run.cordons), it.record.lifts_cordons) == ([], {4}, False)


def test_what_a_wave_waits_for_is_told() -> None:
    run = Policies(orders((5, 1), (1, 5)))
    it = run.policy(LOST)
    run.of_waves = [said("Ready", False, "ClusterUnderMinIsr", "2 partitions are under min ISR")]
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.tick()
    assert it.trigger("lost").message == "main-lost-1: 0/1 waves, 0/2 partitions; 2 partitions are under min ISR"


@pytest.mark.parametrize(("reason", "stalls"), [(Reason.NOT_AUTHORIZED, True), (Reason.REQUEST_FAILED, False)])
def test_a_cordon_that_cannot_be_lifted_stalls_a_replacement(reason: Reason, stalls: bool) -> None:
    run, it = cordoned((5, 4), (1, 5), (4, 2))
    run.lifts_cordons, run.refusal = False, Problem(reason, "broker 4 says no")
    run.wait(lambda: it.record.lifts_cordons)
    run.tick()
    why = "main-lost-1 starts nothing: the cordon of broker 4 cannot be lifted: broker 4 says no"
    assert it.trigger("lost").message == why
    true = {(c.type, c.reason) for c in it.status.conditions if c.status is ConditionStatus.TRUE}
    assert true == ({("Stalled", reason)} if stalls else {("Ready", "PlanInProgress")})
    assert run.begun == []
    run.lifts_cordons, run.refusal = True, None
    run.wait(lambda: it.outcomes == [("main-lost-1", "Succeeded")])
    assert not any(c.type == "Stalled" for c in it.status.conditions)


def test_our_cordons_stay_where_no_move_of_a_lost_broker_needs_it() -> None:
    run, it = cordoned((5, 1), (1, 5), (4, 2))
    run.wait(lambda: run.cordons == {} or run.on(5) == [])
    assert (run.on(5), set(run.cordons), it.record.lifts_cordons) == ([], {4}, False)


def test_a_broker_to_be_emptied_gets_nothing_of_a_lost_one() -> None:
    run, _ = cordoned((5, 4), (1, 5), (4, 2))
    run.brokers[0] = run.brokers[3] = GONE
    before = run.on(4)
    run.wait(lambda: run.on(5) == [])
    assert {*run.on(4)} <= {*before}


def renamed(trigger: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [{**trigger, "name": "renamed", **fields}]


CORDONED_INSTEAD = {**CORDONED, "name": "out", "windows": CLOSED}


@pytest.mark.parametrize(
    "triggers",
    [
        [NIGHTLY],
        renamed(ADDED),
        renamed({**ADDED, "windows": CLOSED}),
        renamed({**ADDED, "windows": CLOSED}, approval="Required"),
        [CORDONED_INSTEAD],
    ],
    ids=["removed", "renamed", "renamed with its windows", "renamed and to be approved", "of another kind"],
)
def test_an_approved_plan_whose_trigger_is_removed_never_begins(triggers: list[dict[str, Any]]) -> None:
    run, it = world({**ADDED, "windows": CLOSED})
    uneven(run)
    run.wait(lambda: it.record.plan and it.record.plan.approved)
    it.edit(triggers=triggers)
    run.rest(60)
    assert (run.begun, it.outcomes) == ([], [("main-out-1", "Retired")])


def test_a_plan_whose_trigger_is_removed_while_it_runs_cancels_nothing() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.begun)
    left = len(run.on(5))
    it.edit(triggers=[NIGHTLY])
    run.rest(300)
    assert (run.begun, len(run.on(5))) == (["main-lost-1-w1"], left - 2), "what was in flight has come to its end"
    assert (it.outcomes, it.reason) == ([("main-lost-1", "Retired")], "Idle")


def test_cordons_are_set_again_while_a_replacement_is_suspended() -> None:
    run, it = cordoned((5, 4), (1, 5), (2, 5), (5, 4), (4, 2))
    run.wait(lambda: run.begun)
    it.edit(suspend=True)
    run.rest(120)
    assert (run.begun, it.record.lifts_cordons, set(run.cordons)) == (["main-lost-1-w1"], False, {4})
    it.edit(suspend=False)
    run.wait(lambda: run.on(5) == [])
    run.tick(2)
    assert (it.outcomes, set(run.cordons)) == ([("main-lost-1", "Succeeded")], {4})


# --- Plans that cannot go on ---


def test_a_plan_that_cannot_go_on_is_made_again_later_each_time() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    gaps, last = list[float](), 0.0
    for number in range(1, 11):
        run.wait(lambda number=number: it.record.plan and it.record.plan.number == number, most=6000)  # type: ignore[misc]
        gaps, last = [*gaps, run.seconds - last], run.seconds
        run.plans[f"main-lost-{number}"].deleted = True
        run.rest(60)
        failed = ("PlanFailed", {"Stalled"}) if number >= 3 else ("Idle", {"Ready"})
        assert (it.reason, it.true) == failed
    assert all(600 <= gap <= 23_000 for gap in gaps[1:])
    assert gaps[1:] == sorted(gaps[1:])
    assert it.says("lost")[1] == "Backoff"


def test_a_plan_that_is_deleted_is_not_created_again_under_its_approval() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.plans["main-lost-1"].deleted = True
    run.rest(60)
    assert run.created == ["main-lost-1"]
    assert it.says("lost") == ("Held", "Backoff")
    run.wait(lambda: run.on(5) == [])


def test_no_approval_of_a_plan_that_is_deleted_covers_the_next_one() -> None:
    run, it = world({**LOST, "approval": "Required"})
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.brokers[5] = FENCED
    run.wait(lambda: it.reason == "AwaitingApproval")
    it.approve()
    run.wait(lambda: run.begun)
    run.plans["main-lost-1"].deleted = True
    run.rest(1800)
    assert (run.created, run.begun) == (["main-lost-1", "main-lost-2"], ["main-lost-1-w1"])
    assert it.reason == "AwaitingApproval"
    it.approve()
    run.wait(lambda: run.on(5) == [])


def test_a_plan_that_cannot_be_read_is_waited_for() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun)
    run.unreadable = {"main-lost-1"}
    run.rest(3600)
    assert (run.created, it.says("lost")[0]) == (["main-lost-1"], "Active")
    run.unreadable = set()
    run.wait(lambda: run.on(5) == [])
    assert run.created == ["main-lost-1"]


def test_brokers_that_reach_no_controller_are_not_believed() -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.rest(900)
    run.deaf = True
    run.rest(3600)
    assert (it.reason, run.created) == ("NotObserved", [])
    run.deaf = False
    run.rest(1770)
    assert run.created == []
    run.wait(lambda: run.created)


@pytest.mark.parametrize("after", range(8))
def test_a_crash_after_any_step_creates_nothing_twice(after: int) -> None:
    run, it = world(LOST)
    run.brokers[5] = FENCED
    run.rest(1770)
    for _ in range(10):
        run.crash_after = after
        run.tick()
    run.wait(lambda: run.on(5) == [])
    run.rest(60)
    assert it.outcomes[-1][1] == "Succeeded"
    assert len(run.created) == 1


def test_a_clock_that_jumps_makes_no_plan_too_early() -> None:
    run, _ = world(LOST, ADDED)
    run.brokers[5] = FENCED
    for jump in (7200, -7200, 86400, -86400):
        run.clock += jump
        run.rest(300)
    assert run.created == []


def test_a_clock_that_was_a_year_ahead_makes_no_wait_longer() -> None:
    run, it = world(LOST, ADDED)
    run.clock = 365 * DAY
    uneven(run)
    run.wait(lambda: ("main-out-1", "Succeeded") in it.outcomes)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun and "main-lost-2" in run.plans)
    run.plans["main-lost-2"].deleted = True
    run.rest(60)
    run.clock = 0
    run.wait(lambda: run.on(5) == [], most=60)
    run.brokers[7] = UP
    run.wait(lambda: run.on(7), most=400)


def test_a_record_is_not_written_while_nothing_happens() -> None:
    run, it = world(LOST, ADDED, NIGHTLY)
    run.rest(600)
    before = it.writes
    run.rest(600)
    assert it.writes == before
