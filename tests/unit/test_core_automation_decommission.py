"""What becomes of a BrokerDecommission: sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from reassign.api.common import Condition
from reassign.api.kafka_cluster import Execution
from reassign.core.automation import decide
from reassign.core.automation.case import DecommissionCase
from reassign.core.automation.model import DecommissionDecision
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import (
    FENCED,
    GONE,
    UNREACHABLE,
    UP,
    Decommissions,
    SimDecommission,
    orders,
    said,
)

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2))
OTHER = f"sha256:{'f' * 64}"
LANDED = TopicPartition("orders", 9)


def world(**fields: object) -> Decommissions:
    found = Decommissions(ROWS)
    found.apply(**fields)  # type: ignore[arg-type]
    return found


def approved(**fields: object) -> Decommissions:
    found = world(**fields)
    found.until("AwaitingApproval").approve()
    found.tick()
    return found


def test_nothing_is_cordoned_and_nothing_moves_before_it_is_approved() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    run.tick(100)
    assert (run.begun, run.cordons, run.created) == ([], {}, ["old-1"])
    assert it.status.digest
    assert it.status.digest in it.message


def test_from_the_approval_to_empty_and_gone() -> None:
    run = approved()
    it = run.until("Empty")
    assert run.begun == ["old-1-w1", "old-1-w2"]
    assert run.on(5) == []
    assert it.true == {"Ready", "Empty", "Cordoned"}
    assert set(run.cordons) == {5}
    run.brokers[5] = FENCED
    run.tick(10)
    assert (it.reason, it.status.brokers[0].state) == ("Empty", "Down")
    run.brokers[5] = GONE
    run.until("Gone")
    run.tick(3)
    assert it.true >= {"Ready", "Empty", "Succeeded"}
    assert (run.cordons, it.finalizer) == ({}, False)


def test_succeeded_is_final_when_a_broker_comes_back() -> None:
    run = approved()
    it = run.until("Empty")
    run.brokers[5] = GONE
    run.until("Gone")
    before = it.status.conditions
    run.brokers[5] = UP
    run.replicas[LANDED] = (5, 1)
    run.tick(10)
    assert it.status.conditions == before
    assert run.cordons == {}


def test_the_first_wave_waits_for_the_cordon() -> None:
    run = approved()
    run.tick()
    assert (set(run.cordons), run.begun) == ({5}, [])
    run.tick(2)
    assert run.begun == ["old-1-w1"]


def test_without_cordons_two_answers_show_that_a_broker_is_empty() -> None:
    run = approved(cordon="Never")
    it = run.until("Empty")
    assert run.cordons == {}
    assert (found := it.condition("Cordoned"))
    assert (found.status, found.reason) == ("False", "CordonNever")


@pytest.mark.parametrize(("fields", "state"), [({"cordon": "Never"}, "CordonNever"), ({}, "NotSupported")])
def test_waves_begin_without_a_cordon_that_cannot_be(fields: dict[str, str], state: str) -> None:
    run = world(**fields)
    run.supports_cordons = False
    run.until("AwaitingApproval").approve()
    it = run.until("Empty")
    assert (found := it.condition("Cordoned"))
    assert found.reason == state


def test_another_digest_is_a_mismatch() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    it.edit(approvedDigest=OTHER)
    run.until("ApprovedDigestMismatch")
    assert it.true == set()


def test_an_approval_taken_away_holds_waves_and_lifts_the_cordon() -> None:
    run = approved()
    run.tick(3)
    it = run.objects["old"]
    it.edit(approvedDigest=None)
    run.tick(10)
    assert (run.begun, run.cordons, it.reason) == (["old-1-w1"], {}, "AwaitingApproval")
    it.approve()
    run.until("Empty")


def test_applying_it_is_the_approval_where_none_is_required() -> None:
    run = world(approval="NotRequired")
    run.until("Empty")
    assert run.objects["old"].record.approval is not None


def test_a_broker_with_nothing_still_waits_for_an_approval() -> None:
    run = Decommissions(orders((1, 2)))
    run.apply()
    it = run.until("AwaitingApproval")
    assert run.cordons == {}
    it.approve()
    run.until("Empty")
    assert run.created == []
    assert set(run.cordons) == {5}


@pytest.mark.parametrize("brake", [Execution.PAUSE, Execution.CANCEL_OURS, Execution.CANCEL_ALL])
def test_the_brake_starts_nothing(brake: Execution) -> None:
    run = approved()
    run.execution = brake
    run.tick(10)
    it = run.objects["old"]
    assert (run.begun, it.reason, it.true - {"Cordoned"}) == ([], "Suspended", set())
    assert set(run.cordons) == ({5} if brake is Execution.PAUSE else set())
    run.execution = Execution.RUN
    run.until("Empty")


def test_suspend_starts_no_wave_and_keeps_the_cordon() -> None:
    run = approved()
    run.tick(3)
    it = run.objects["old"]
    it.edit(suspend=True)
    run.tick(10)
    assert (run.begun, set(run.cordons), it.reason) == (["old-1-w1"], {5}, "Suspended")
    it.edit(suspend=False)
    run.until("Empty")


def test_outside_its_window_it_is_cordoned_and_no_wave_starts() -> None:
    run = approved(windows=[{"cron": "0 22 * * *", "durationSeconds": 3600}])
    it = run.until("OutsideWindow")
    run.tick(5)
    assert (run.begun, set(run.cordons)) == ([], {5})
    it.edit(windows=[])
    run.until("Empty")


def test_deleting_it_cancels_what_is_in_flight_and_lifts_the_cordon() -> None:
    run = approved()
    while not run.moves:
        run.tick()
    run.delete()
    run.tick(5)
    assert (run.objects, run.plans, run.moves, run.cordons) == ({}, {}, {}, {})


def test_a_deletion_does_not_wait_for_a_cordon_that_another_one_wants() -> None:
    run = world(approval="NotRequired")
    run.until("Empty")
    run.apply("other", [5, 3], approval="NotRequired")
    run.until("Empty", of="other")
    run.delete()
    run.tick(2)
    assert ([*run.objects], set(run.cordons)) == (["other"], {3, 5})


def test_a_deletion_waits_a_minute_for_a_cordon_that_cannot_be_lifted() -> None:
    run = approved()
    run.until("Empty")
    run.brokers[5] = FENCED
    run.delete()
    run.tick(3)
    assert run.objects["old"].reason == "Deleting"
    run.tick(3)
    assert run.objects == {}


def test_what_lands_later_gets_a_further_plan_under_the_same_approval() -> None:
    run = approved(cordon="Never")
    it = run.until("Empty")
    approval = it.record.approval
    assert approval
    assert approval.begun_bytes == approval.bytes
    it.record = it.record.model_copy(update={"approval": approval.model_copy(update={"bytes": 2 * approval.bytes})})
    run.replicas[LANDED] = (5, 1)
    run.tick()
    assert it.reason == "BrokerNotEmpty"
    run.until("Empty")
    assert run.created == ["old-1", "old-2"]
    assert [(plan.name, plan.outcome) for plan in it.status.plans] == [("old-1", "Succeeded"), ("old-2", "Succeeded")]


def test_more_bytes_than_were_approved_wait_for_another_approval() -> None:
    run = approved(cordon="Never")
    it = run.until("Empty")
    run.replicas[LANDED] = (5, 1)
    run.until("AwaitingApproval")
    assert "110 % of the 300 B that were approved" in it.message
    first = it.spec.approved_digest
    it.approve()
    run.until("Empty")
    assert run.created == ["old-1", "old-2"]
    assert [plan.digest for plan in it.status.plans] == [first, it.spec.approved_digest]


def test_the_wait_for_a_further_plan_grows() -> None:
    run = world(approval="NotRequired", cordon="Never")
    it = run.until("Empty")
    waits = list[int]()
    for number in range(8):
        assert it.record.next_plan
        waits.append(it.record.next_plan.seconds)
        run.replicas[TopicPartition("late", number)] = (5, 1)
        run.tick()
        run.until("Empty", most=500)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_plan_that_is_stale_is_retired_and_what_is_left_gets_another() -> None:
    run = approved()
    run.replicas[TopicPartition("orders", 0)] = (5, 2)
    it = run.until("Empty")
    assert run.created == ["old-1", "old-2"]
    assert it.record.failures == 0


STALLED_WAVE = said("Stalled", True, "ThrottleBelowProduceRate", "raise the throttle")
WAITING_WAVE = said("Ready", False, "ClusterUnderMinIsr", "2 partitions are under min ISR")
MOVING_WAVE = said("Ready", False, "InFlight", "3 of 4 partitions")
PLAN_THAT_WAITS = said("Ready", False, "BrokerFenced", "old-1-w1 waits, since broker 3 is fenced")


@pytest.mark.parametrize(
    ("of_wave", "of_plan", "message"),
    [
        (STALLED_WAVE, None, "0/2 waves, 0/3 partitions; raise the throttle"),
        (WAITING_WAVE, None, "0/2 waves, 0/3 partitions; 2 partitions are under min ISR"),
        (MOVING_WAVE, None, "0/2 waves, 0/3 partitions"),
        (MOVING_WAVE, PLAN_THAT_WAITS, "old-1-w1 waits, since broker 3 is fenced"),
        (MOVING_WAVE, PLAN_THAT_WAITS.model_copy(update={"observed_generation": 0}), "0/2 waves, 0/3 partitions"),
    ],
    ids=["stalled", "waits", "moves", "its broker is fenced", "said of another generation"],
)
def test_what_a_wave_waits_for_is_told(of_wave: Condition, of_plan: Condition | None, message: str) -> None:
    run = world(approval="NotRequired", cordon="Never")
    run.of_waves, run.of_plans = [of_wave], [of_plan] if of_plan else []
    it = run.until("WaveInFlight")
    run.tick(2)
    assert (it.reason, it.message) == ("WaveInFlight", f"old-1: {message}")


def test_after_three_failures_it_waits_an_hour_or_for_a_generation() -> None:
    run = world(approval="NotRequired")
    it = run.objects["old"]
    for _ in range(3):
        while not (it.record.plan and it.record.plan.uid and it.record.plan.approved and not it.record.plan.retired):
            run.tick()
        run.plans[it.record.plan.name].deleted = True
        run.tick()
    run.tick(2)
    assert (it.reason, it.true - {"Cordoned"}) == ("PlanFailed", {"Stalled"})
    run.tick(20)
    assert it.reason == "PlanFailed"
    it.edit(suspend=False)
    run.until("Empty")


def test_an_unapproved_plan_that_is_stale_is_made_anew_after_an_hour() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    run.replicas[TopicPartition("orders", 0)] = (5, 2)
    run.tick(3)
    assert (it.reason, it.record.failures) == ("Planning", 0)
    run.tick(100)
    assert run.created == ["old-1"]
    run.until("AwaitingApproval", most=300).approve()
    assert run.created == ["old-1", "old-2"]
    run.until("Empty")
    assert it.record.next_plan
    assert it.record.next_plan.seconds == 60


def test_an_edit_has_a_plan_that_was_never_approved_made_at_once() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    run.replicas[TopicPartition("orders", 0)] = (5, 2)
    run.tick(3)
    assert it.reason == "Planning"
    it.edit(suspend=False)
    run.until("AwaitingApproval", most=10)
    assert run.created == ["old-1", "old-2"]


def test_an_unapproved_plan_is_made_anew_when_the_spec_changes() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    digest = it.status.digest
    it.edit(waves={"maxPartitions": 5})
    run.tick(2)
    assert it.reason == "Planning"
    run.until("AwaitingApproval")
    assert run.created == ["old-1", "old-2"]
    assert it.status.digest == digest  # its waves do the same


def test_a_name_that_is_taken_gives_the_next_number() -> None:
    other = Decommissions(ROWS)
    other.apply("other")
    other.until("AwaitingApproval", "other")
    run = world()
    taken = other.plans["other-1"]
    taken.name = "old-1"
    run.plans["old-1"] = taken
    run.until("AwaitingApproval").approve()
    run.until("Empty")
    assert (run.created, run.begun) == (["old-2"], ["old-2-w1", "old-2-w2"])


def test_two_of_them_take_turns() -> None:
    run = Decommissions(orders((5, 1), (2, 4), (5, 4), (4, 3), (1, 5)))
    run.apply("first", [5], approval="NotRequired")
    run.tick()
    run.apply("second", [4], approval="NotRequired")
    waited = False
    for _ in range(80):
        run.tick()
        assert len(run.working) <= 1
        waited |= run.objects["second"].reason == "PlanInProgress"
    assert waited
    assert [run.objects[name].reason for name in ("first", "second")] == ["Empty", "Empty"]
    assert all(not {4, 5} & set(row) for row in run.replicas.values())
    firsts = [number for number, name in enumerate(run.begun) if name.startswith("first")]
    assert firsts == [*range(len(firsts))]


# --- What cannot be ---


@dataclass
class Bad:
    change: Callable[[Decommissions], object]
    reason: str
    true: frozenset[str]
    says: str
    brokers: tuple[int, ...] = (5,)


def fence(*brokers: int) -> Callable[[Decommissions], object]:
    return lambda run: run.brokers.update(dict.fromkeys(brokers, FENCED))


STALLED, RECONCILING = frozenset({"Stalled"}), frozenset({"Reconciling"})


@pytest.mark.parametrize(
    "bad",
    [
        Bad(lambda run: None, "UnknownBroker", STALLED, "broker 99 is not registered", (99,)),
        Bad(lambda run: setattr(run, "factor", 6), "NotEnoughBrokers", STALLED, "5 brokers would remain"),
        Bad(fence(0, 1, 2, 3), "NotEnoughBrokers", STALLED, "1 broker would remain"),
        Bad(fence(1), "DrainIncomplete", RECONCILING, "would stay: orders-0"),
        Bad(lambda run: setattr(run, "problem", UNREACHABLE), "ClusterUnreachable", RECONCILING, "no broker answers"),
        Bad(
            lambda run: run.objects["old"].edit(windows=[{"cron": "0 0 30 2 *", "durationSeconds": 3600}]),
            "InvalidSchedule",
            STALLED,
            "the cron '0 0 30 2 *' has no time",
        ),
    ],
    ids=lambda bad: bad.reason,
)
def test_what_cannot_be_planned_is_said_and_nothing_is_made(bad: Bad) -> None:
    run = Decommissions(ROWS)
    it = run.apply(brokers=bad.brokers)
    bad.change(run)
    run.tick(5)
    assert (it.reason, it.true - {"Cordoned"}) == (bad.reason, bad.true)
    assert bad.says in it.message
    assert (run.created, run.cordons) == ([], {})
    assert (empty := it.condition("Empty"))
    assert empty.status == "False"


def test_a_drain_that_is_incomplete_is_stalled_after_a_while() -> None:
    run = world()
    run.brokers[1] = FENCED
    it = run.until("DrainIncomplete")
    run.tick(50)
    assert it.true == {"Reconciling", "Stalled"}
    run.brokers[1] = UP
    run.until("AwaitingApproval")


def test_topics_that_are_hidden_keep_it_from_being_empty() -> None:
    run = approved()
    run.replicas[TopicPartition("secret", 0)] = (5, 1)
    run.withheld.add("secret")
    it = run.until("NotAuthorized")
    assert it.true == {"Stalled", "Cordoned"}
    assert "grant it DESCRIBE on secret" in it.message


def test_a_broker_that_is_silent_is_not_called_empty() -> None:
    run = approved()
    run.silent.add(5)
    it = run.until("NotObserved")
    assert it.true >= {"Reconciling"}
    run.silent.clear()
    run.until("Empty")


def test_a_broker_down_from_the_start_is_emptied_and_not_unregistered() -> None:
    run = Decommissions(ROWS)
    run.brokers[5] = FENCED
    run.apply(unregister="WhenDown")
    run.until("AwaitingApproval").approve()
    for _ in range(40):
        run.tick()
    it = run.objects["old"]
    assert (it.reason, it.true) == ("NotObserved", {"Ready", "Empty"})
    assert run.unregistered == []
    assert (cordoned := it.condition("Cordoned"))
    assert cordoned.reason == "BrokerFenced"


def test_a_sole_replica_on_a_broker_that_is_down_ends_with_what_stays() -> None:
    run = Decommissions({**ROWS, TopicPartition("single", 0): (5,)})
    run.brokers[5] = FENCED
    run.apply()
    run.until("AwaitingApproval").approve()
    it = run.until("DrainIncomplete")
    assert it.true == {"Stalled"}
    assert "single-0" in it.message
    assert run.on(5) == [TopicPartition("single", 0)]
    run.brokers[5] = UP
    run.until("AwaitingApproval", most=100)  # its bytes were not approved
    it.approve()
    run.until("Empty")


def test_where_only_sole_replicas_are_left_nothing_is_approved() -> None:
    run = Decommissions({TopicPartition("single", 0): (5,), TopicPartition("other", 0): (1, 2)})
    run.brokers[5] = FENCED
    run.apply()
    it = run.until("AwaitingApproval")
    for _ in range(10):
        run.tick()
        assert it.reason == "AwaitingApproval"
    it.approve()
    run.until("DrainIncomplete")
    run.tick(5)
    assert (it.reason, it.true, run.created) == ("DrainIncomplete", {"Stalled"}, [])


# --- Unregistering ---


def down(**fields: object) -> tuple[Decommissions, SimDecommission]:
    run = approved(unregister="WhenDown", **fields)
    it = run.until("Empty")
    run.brokers[5] = FENCED
    return run, it


def test_a_broker_that_is_empty_and_down_for_a_minute_is_unregistered() -> None:
    run, it = down()
    run.tick(4)
    assert (run.unregistered, it.message) == (
        [],
        "broker 5 is empty; broker 5 is down, and unregistered once it has been so for 60 s",
    )
    run.until("Unregistered")
    assert run.unregistered == [5]
    assert it.status.brokers[0].state == "Unregistered"
    run.tick(3)
    assert (run.cordons, it.finalizer) == ({}, False)


def test_a_voter_of_the_quorum_is_not_unregistered() -> None:
    run, it = down()
    run.voters = frozenset({5})
    run.until("QuorumVoter")
    run.tick(20)
    assert run.unregistered == []
    assert it.true >= {"Ready", "Empty"}


def test_before_kafka_4_gone_takes_ten_minutes() -> None:
    run, it = down()
    run.lists_fenced = False
    run.until("NotSupported")
    run.tick(38)
    assert it.reason == "NotSupported"
    run.until("Gone")
    assert run.unregistered == []


def test_after_a_lost_answer_it_is_sent_again_after_75_seconds() -> None:
    run, _ = down()
    run.loses_unregister = True
    run.tick(9)
    assert run.unregistered == [5]
    run.tick(1)
    assert run.unregistered == [5, 5]
    run.loses_unregister = False
    run.until("Unregistered", most=10)


def test_what_was_sent_and_lost_has_not_unregistered_a_broker() -> None:
    run, it = down()
    run.loses_unregister = True
    while not run.unregistered:
        run.tick()
    it.edit(suspend=True)
    run.tick(6)
    run.brokers[5] = GONE
    run.until("Gone")
    assert run.unregistered == [5]
    assert it.message == "broker 5 is empty and not registered any more"
    assert it.status.brokers[0].state == "Gone"


def test_a_deletion_waits_for_what_was_sent() -> None:
    run, it = down()
    run.loses_unregister = True
    while not run.unregistered:
        run.tick()
    run.delete()
    run.tick(3)
    assert (it.reason, set(run.cordons)) == ("Deleting", {5})
    run.tick(3)
    assert run.objects == {}


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ("suspend", "while spec.suspend is true"),
        ("brake", "while execution of the KafkaCluster is Pause"),
        ("approval", "without an approval"),
    ],
)
def test_nothing_is_unregistered_while_it_is_held(held: str, why: str) -> None:
    run, it = down()
    match held:
        case "suspend":
            it.edit(suspend=True)
        case "brake":
            run.execution = Execution.PAUSE
        case _:
            it.edit(approvedDigest=None)
    run.tick(20)
    assert (run.unregistered, it.reason) == ([], "Empty")
    assert it.message == f"broker 5 is empty; broker 5 is down, and not unregistered {why}"


def test_each_broker_is_unregistered_by_its_own_state() -> None:
    run = Decommissions({**ROWS, TopicPartition("single", 0): (4,)})
    run.apply(brokers=[4, 5], unregister="WhenDown", approval="NotRequired")
    run.tick(3)
    run.brokers[4] = FENCED
    it = run.objects["old"]
    while it.status.brokers[1].state != "Empty":
        run.tick()
    run.brokers[5] = FENCED
    run.tick(20)
    assert run.unregistered == [5]
    assert [broker.state for broker in it.status.brokers] == ["Draining", "Unregistered"]


def test_what_was_empty_and_got_hidden_replicas_is_not_unregistered() -> None:
    run, it = down()
    run.brokers[5] = UP
    run.replicas[TopicPartition("secret", 0)] = (5, 1)
    run.withheld.add("secret")
    run.until("NotAuthorized")
    run.brokers[5] = FENCED
    run.tick(20)
    assert (it.reason, run.unregistered) == ("NotAuthorized", [])  # broker 1 has a log of it


def test_what_was_empty_but_for_excluded_topics_is_not_unregistered() -> None:
    run = Decommissions({**ROWS, TopicPartition("canary", 0): (5,)})
    run.withheld.add("canary")
    it = run.apply(approval="NotRequired", excludeTopics=["canary"])
    run.until("Empty")
    run.brokers[5] = FENCED
    run.tick()
    it.edit(excludeTopics=[], unregister="WhenDown")
    run.tick(20)
    assert (it.reason, run.unregistered) == ("NotObserved", [])
    assert "broker 5 was never seen empty while up" in it.message


def test_what_was_empty_when_all_topics_counted_stays_so_when_fewer_do() -> None:
    run, it = down()
    run.silent.add(1)  # no other broker can show it
    it.edit(excludeTopics=["canary"], unregister="Never")
    run.tick(3)
    assert (it.reason, it.record.brokers[0].seen_empty) == ("Empty", True)


# --- What others do to a plan ---


def test_a_plan_whose_waves_are_not_those_that_were_approved_is_retired() -> None:
    run = approved()
    plan = run.plans["old-1"]
    plan.waves = plan.waves[::-1]
    run.tick()
    it = run.objects["old"]
    assert (it.record.failures, run.begun) == (1, [])
    assert "old-1 is not as it was approved" in it.message
    run.until("Empty")
    assert run.created == ["old-1", "old-2"]


def test_a_plan_whose_spec_was_edited_is_not_approved() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    plan = run.plans["old-1"]
    plan.spec = plan.spec.model_copy(update={"suspend": True})
    it.approve()
    run.tick(3)
    assert (run.begun, it.record.approval) == ([], None)
    assert "old-1" not in run.plans


def test_a_plan_that_was_deleted_is_not_created_again() -> None:
    run = approved()
    it = run.objects["old"]
    run.tick()
    run.plans["old-1"].deleted = True
    run.until("Empty")
    assert run.created == ["old-1", "old-2"]
    assert [(plan.name, plan.outcome) for plan in it.status.plans] == [("old-1", "Deleted"), ("old-2", "Succeeded")]


def test_brokers_that_are_gone_before_the_approval_need_none() -> None:
    run = world()
    it = run.until("AwaitingApproval")
    run.replicas = {tp: tuple(4 if b == 5 else b for b in row) for tp, row in run.replicas.items()}
    run.brokers[5] = GONE
    run.until("Gone")
    run.tick(3)
    assert (it.finalizer, run.plans) == (False, {})


# --- A bug ---


def test_a_bug_in_one_keeps_its_cordons_and_no_other_from_being_served(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Decommissions(ROWS)
    run.apply("old", approval="NotRequired")
    run.until("WaveInFlight")
    run.tick(2)
    assert set(run.cordons) == {5}
    run.apply("next", [4])
    decided = decide.decide_decommission

    def broken(case: DecommissionCase) -> DecommissionDecision:
        if case.it.name == "old":
            raise ZeroDivisionError
        return decided(case)

    monkeypatch.setattr(decide, "decide_decommission", broken)
    found = run.decide()
    assert [type(error) for error in found.errors.values()] == [ZeroDivisionError]
    assert found.cordons == {5}
    conditions = found.decommissions["uid-old"].status.conditions
    assert {c.reason for c in conditions if c.type == "Ready"} == {"InternalError"}
    assert found.decommissions["uid-old"].steps == []
    assert found.decommissions["uid-next"].steps != []


def test_a_plan_that_has_not_ended_when_its_brokers_are_gone_is_retired() -> None:
    run = approved()
    while not run.moves:
        run.tick()
    run.replicas = {tp: tuple(4 if b == 5 else b for b in row) for tp, row in run.replicas.items()}
    run.moves.clear()
    run.brokers[5] = GONE
    run.until("Gone")
    run.tick(4)
    it = run.objects["old"]
    assert it.record.plan
    assert (it.finalizer, run.cordons, run.moves, it.record.plan.retired) == (False, {}, {}, True)
    assert run.begun == ["old-1-w1"]


def test_what_a_retired_plan_moves_ends_before_another_begins() -> None:
    run = approved()
    run.replicas |= {TopicPartition("many", number): (4, 1) for number in range(4)}
    while not run.moves:
        run.tick()
    for move in run.moves.values():
        move.left = 20
    plan = run.plans["old-1"]
    plan.spec = plan.spec.model_copy(update={"suspend": True})
    run.apply("another", [4], approval="NotRequired")
    run.tick(15)
    assert run.objects["old"].record.failures == 1
    assert (run.created, run.working, len(run.moves)) == (["old-1"], {"uid-old"}, 2)
    assert run.objects["another"].reason == "PlanInProgress"
    run.until("Empty", "another")
    run.until("Empty")


def test_a_broker_that_left_with_its_replicas_is_not_gone() -> None:
    run = approved()
    run.brokers[5] = GONE
    while run.on(5):
        run.tick()
        assert not run.objects["old"].record.brokers[0].seen_unregistered
    run.until("Gone")
