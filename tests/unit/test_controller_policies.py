"""ReassignmentPolicies in the loop of their KafkaCluster: each trigger makes its plan, which runs or waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.decommission_world import A, B, C
from tests.unit.metrics import series
from tests.unit.policy_world import ADDED, CORDONED, LOST, NIGHTLY, Policing


def policing(monkeypatch: pytest.MonkeyPatch, *triggers: Any, **spec: Any) -> Policing:
    """A world whose policy needs no approval, if nothing else is said."""
    return Policing(monkeypatch, triggers=[*triggers], **{"approval": "NotRequired", **spec})


def test_a_lost_broker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.tick(3)
    assert (world.ready_of(), world.trigger("lost")) == ("Idle", ("Idle", None))
    world.down(1)
    world.tick(until=lambda: world.trigger("lost")[0] == "Waiting")
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.on(1) == []
    assert set(world.brokers.begun) == {A, B}
    world.tick(60)
    assert (world.plans(), world.ready_of()) == (["main-lost-1"], "Idle")
    world.assert_nothing_left()


def test_a_broker_that_others_cordon_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, CORDONED)
    world.tick(20)
    world.cordon(3)
    world.tick(until=lambda: world.trigger("in")[0] == "Waiting")
    world.tick(until=lambda: world.outcomes() == [("main-in-1", "Succeeded")])
    assert (world.on(3), set(world.brokers.begun)) == ([], {B, C})
    world.tick(60)
    assert world.plans() == ["main-in-1"]


def test_a_broker_that_is_added_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED)
    world.tick(until=lambda: world.trigger("out")[0] == "Waiting")
    world.tick(until=lambda: world.outcomes() == [("main-out-1", "Succeeded")])
    assert [len(world.on(number)) for number in range(6)] == [1] * 6
    world.tick(100)
    assert (world.plans(), world.trigger("out")[0]) == (["main-out-1"], "Idle")


def test_a_schedule_makes_a_plan_when_its_time_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, NIGHTLY, cooldownSeconds=0)
    world.tick(20)
    assert world.policy()["nextScheduleTime"] == "2026-01-01T02:00:00Z"
    world.clock.seconds = 2 * 3600 - 120
    world.tick(until=lambda: world.outcomes() == [("main-nightly-1", "Succeeded")])
    assert world.policy()["lastScheduleTime"] == "2026-01-01T02:00:00Z"
    world.tick(50)
    assert world.plans() == ["main-nightly-1"]


def test_a_schedule_with_nothing_to_do_makes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, NIGHTLY)
    world.work.balanced = True
    world.clock.seconds = 2 * 3600 - 120
    world.tick(until=lambda: world.trigger("nightly") == ("Idle", "NothingToDo"))
    world.tick(50)
    assert (world.plans(), world.ready_of(), world.outcomes()) == ([], "Idle", [])


# --- Approval ---


def test_a_plan_waits_for_the_approval_of_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.tick(20)
    assert (world.ready_of(), world.kube.started, world.plans()) == ("AwaitingApproval", [], ["main-lost-1"])
    world.edit_policy(approvedDigest=f"sha256:{'f' * 64}")
    world.tick(10)
    assert world.kube.started == []
    world.approve_policy()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.on(1) == []


def test_a_plan_that_copies_more_than_max_bytes_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.decommission_world.BYTES", 2048)
    world = policing(monkeypatch, LOST, maxBytes="1Ki")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.approve_policy()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


def test_the_approval_of_the_plan_itself_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.change("main-lost-1", lambda plan: plan["spec"].update(approvedDigest=plan["status"]["digest"]))
    world.tick(20)
    assert world.kube.started == []


def test_a_trigger_that_is_not_true_any_more_deletes_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.up(1)
    world.tick(until=lambda: world.plans() == [])
    world.tick(5)
    assert (world.ready_of(), world.waves()) == ("Idle", [])
    world.assert_nothing_left()


# --- Held ---


def test_a_policy_that_is_suspended_starts_no_further_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    world.edit_policy(suspend=True)
    world.tick(20)
    assert (world.ready_of(), len(world.kube.started)) == ("Suspended", 1)
    world.edit_policy(suspend=False)
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


@pytest.mark.parametrize("execution", ["Pause", "CancelOurs"])
def test_the_brake_holds_plans_of_policies(monkeypatch: pytest.MonkeyPatch, execution: str) -> None:
    world = policing(monkeypatch, LOST)
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.pull(execution)
    world.copies = execution == "Pause"
    world.tick(until=lambda: not world.kafka.reassignments)
    world.tick(10)
    assert (world.ready_of(), len(world.kube.started)) == ("Suspended", 1)
    world.copies = True
    world.pull("Run")
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


def test_a_lost_broker_that_returns_ends_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.up(1)
    world.tick(10)
    assert (len(world.kube.started), world.outcomes()) == (1, [("main-lost-1", "Running")])
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Retired")])
    assert len(world.on(1)) == 1
    world.tick(60)
    assert world.plans() == ["main-lost-1"]
    world.assert_nothing_left()


def test_a_cordon_that_is_lifted_ends_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, CORDONED)
    world.tick(20)
    world.copies = False
    world.cordon(3)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    moving = {*world.kafka.reassignments}
    world.cordon(3, None)
    world.tick(10)
    assert (len(world.kube.started), world.outcomes()) == (1, [("main-in-1", "Running")])
    world.tick(until=lambda: world.trigger("in")[0] == "Active" and "comes to its end" in world.said())
    assert {*world.kafka.reassignments} == moving
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-in-1", "Retired")])
    assert len(world.on(3)) == 1
    world.tick(60)
    assert (world.plans(), world.ready_of()) == (["main-in-1"], "Idle")
    world.assert_nothing_left()


def test_a_lost_broker_that_returns_has_one_event_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    for times in (1, 2):
        world.down(1)
        world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
        world.restart()
        world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
        assert world.kube.events.count("BrokerReturned") == times - 1
        world.up(1)
        world.tick(3)
        world.restart()
        world.tick(until=lambda: world.ready_of() == "Idle")
        assert [world.kube.events.count(reason) for reason in ("BrokerLost", "BrokerReturned")] == [times, times]


def test_a_plan_that_has_ended_says_so_until_replicas_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    world, said = policing(monkeypatch, LOST), set[tuple[str | None, str | None]]()
    world.down(1)
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert "main-lost-1 has succeeded" in world.policy()["summary"]
    while world.trigger("lost")[0] != "Idle":
        said |= {world.trigger("lost")}
        world.tick()
    assert said == {("Active", None)}


def test_a_broker_that_was_replaced_is_not_one_that_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(10)
    world.up(1)
    world.tick(10)
    assert "BrokerReturned" not in world.kube.events


def test_nothing_starts_while_the_cluster_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.tick(3)
    world.brokers.reachable = False
    world.tick(30, safely=True)
    assert world.ready_of() == "ClusterUnreachable"
    world.brokers.reachable = True
    world.tick(until=lambda: world.ready_of() == "Idle")


def test_a_cluster_that_cannot_be_read_holds_its_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    world.change("main", lambda obj: obj["spec"].update(limits="none"))
    world.tick(20)
    assert (world.ready_of(), len(world.kube.started)) == ("CannotBeRead", 1)
    world.change("main", lambda obj: obj["spec"].pop("limits"))
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


def test_lost_brokers_are_excused_while_their_plan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    assert world.loop.automation.lost == {"uid-main-lost-1": {1}}
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(2)
    assert world.loop.automation.lost == {}


@pytest.mark.parametrize("edit", [{"suspend": True}, {"approval": "Required"}])
def test_no_wave_starts_after_an_edit_that_a_watch_lags_behind(monkeypatch: pytest.MonkeyPatch, edit: Any) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: world.policy_record().get("plan", {}).get("approved"))
    held = world.store.get("uid-policy-main")

    def change(obj: Any) -> None:
        obj["spec"].update(edit)
        obj["metadata"]["generation"] += 1

    world.kube.write("uid-policy-main", change)
    assert world.store.get("uid-policy-main") is held
    world.tick(20)
    assert world.kube.started == []


def test_a_policy_without_its_cluster_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.store.drop("uid-main")
    del world.kube.objects["uid-main"]
    world.sweep()
    assert world.ready_of() == "ClusterNotFound"


def test_of_two_policies_the_younger_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, NIGHTLY)
    world.clock.seconds += 10
    world.apply_policy("second", triggers=[LOST], approval="NotRequired")
    world.down(1)
    world.tick(40)
    assert (world.ready_of("second"), world.plans()) == ("DuplicatePolicy", [])
    world.delete("main", "ReassignmentPolicy")
    world.tick(until=lambda: world.outcomes("second") == [("second-lost-1", "Succeeded")])


def test_a_policy_that_cannot_be_read_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    world.clock.seconds += 10
    world.apply_policy("second", triggers=[LOST], approval="NotRequired")
    world.change("policy-main", lambda obj: obj["spec"].update(triggers=[{"name": "lost", "unknown": {}}]))
    world.tick(40)
    assert world.ready_of() == "CannotBeRead"
    assert (world.ready_of("second"), len(world.kube.started)) == ("DuplicatePolicy", 1)
    world.change("policy-main", lambda obj: obj["spec"].update(triggers=[LOST]))
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(days=-365)])
def test_a_clock_that_jumps_ends_no_wait_early_or_late(monkeypatch: pytest.MonkeyPatch, jump: timedelta) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: bool(world.kube.started))
    world.delete("main-lost-1", "ReassignmentPlan")
    world.tick(until=lambda: world.trigger("lost") == ("Held", "Backoff"))
    world.kube.clock = lambda: world.clock.now() + jump
    world.tick(50, seconds=11)
    assert world.plans() == []
    world.tick(10, seconds=11)
    assert world.plans() == ["main-lost-2"]


def test_what_a_user_moves_holds_all_but_lost_and_cordoned_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED)
    world.kafka.move_as_another(C, (2, 1))
    world.copies = False
    world.tick(until=lambda: world.trigger("out") == ("Held", "ForeignInFlight"))
    world.kafka.copy(C)
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-out-1", "Succeeded")])


def test_a_rolling_restart_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, {"name": "lost", "brokerLost": {"afterSeconds": 120}}, ADDED, NIGHTLY)
    world.clock.seconds = 2 * 3600 - 120
    world.tick(2)
    for number in (1, 2, 3, 1, 2, 3):
        world.down(number)
        world.tick(10)
        world.up(number)
        world.tick(5)
    assert (world.plans(), world.trigger("nightly")) == ([], ("Held", "ClusterUnsettled"))
    world.tick(until=lambda: ("main-out-1", "Succeeded") in world.outcomes())


def test_a_plan_of_a_schedule_that_begins_too_late_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    late = {"name": "nightly", "schedule": {"cron": "0 2 * * *", "startingDeadlineSeconds": 600}}
    world = policing(monkeypatch, late, approval="Required")
    world.tick(20)
    world.clock.seconds = 2 * 3600 - 60
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.clock.seconds += 600
    world.tick(until=lambda: world.plans() == [])
    world.tick(20)
    assert (world.plans(), world.ready_of(), world.kube.started) == ([], "Idle", [])


def test_a_waiting_plan_that_does_not_fit_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED)
    world.tick(until=lambda: world.plans() == ["main-out-1"])
    world.copies = False
    world.kafka.move_as_another(A, (3, 2))
    world.tick(5)
    assert (world.kube.started, world.trigger("out")) == ([], ("Active", None))
    world.kafka.copy(A)
    world.copies = True
    world.tick(until=lambda: "main-out-2" in world.plans())
    [known] = world.policy_record()["triggers"]
    assert (known["nextAttempt"]["seconds"], known.get("failures", 0)) == (60, 0)
    world.tick(until=lambda: world.outcomes() == [("main-out-1", "Retired"), ("main-out-2", "Succeeded")])


def test_a_cluster_that_is_deleted_goes_whatever_its_policy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, approval="Required")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.delete("main", "KafkaCluster")
    world.tick(until=lambda: not world.obj("KafkaCluster", "main"))
    world.sweep(3)
    assert (world.ready_of(), world.kube.started) == ("ClusterNotFound", [])


# --- Edited, deleted, wiped, restarted ---


def test_an_edit_makes_a_waiting_plan_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED, approval="Required")
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    digest = world.policy()["digest"]
    template = {"goal": {"balance": {"by": ["Replicas"]}, "avoidBrokers": [5]}}
    world.edit_policy(planTemplate=template)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval" and world.plans() == ["main-out-2"])
    assert world.policy()["digest"] != digest
    world.approve_policy()
    world.tick(until=lambda: world.outcomes() == [("main-out-2", "Succeeded")])
    assert world.on(5) == []


def test_deleting_a_policy_cancels_what_its_plan_has_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED)
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    before = dict(world.kafka.replicas)
    world.delete("main", "ReassignmentPolicy")
    world.tick(20)
    assert (world.plans(), world.kafka.reassignments) == ([], {})
    assert all(set(world.kafka.replicas[tp]) <= set(row) for tp, row in before.items())
    world.assert_nothing_left()


def test_a_status_that_is_wiped_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    world.store.put(world.kube.write("uid-policy-main", lambda obj: obj.update(status={})))
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(30)
    assert world.plans() == ["main-lost-1"]


@pytest.mark.parametrize("waves", [0, 1, 2])
def test_a_restart_loses_nothing(monkeypatch: pytest.MonkeyPatch, waves: int) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: bool(world.plans()) and len(world.kube.started) == waves)
    world.restart()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.on(1) == []
    assert sorted(world.brokers.begun) == [A, B]


def test_a_restart_keeps_the_time_that_a_broker_was_down(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, {"name": "lost", "brokerLost": {"afterSeconds": 300}})
    world.tick(3)
    world.down(1)
    world.tick(50)
    world.restart()
    world.tick(20)
    assert world.plans() == ["main-lost-1"]


# --- What it costs, and metrics ---


def test_metrics_count_plans_bytes_triggers_and_lost_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.down(1)
    world.tick(until=lambda: len(world.kube.started) == 1)
    assert series(world)["brokers_lost"] == 1
    assert series(world)["policy_trigger{kind=brokerLost,state=Active}"] == 1
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert series(world)["policy_plans_total{kind=brokerLost,outcome=Succeeded}"] == 1
    assert series(world)["policy_bytes_total{kind=brokerLost}"] == 200
    world.tick(30)
    assert series(world)["brokers_lost"] == 0
    assert series(world)["policy_trigger{kind=brokerLost,state=Idle}"] == 1
    assert series(world)["policy_plans_total{kind=brokerLost,outcome=Succeeded}"] == 1
    world.delete("main", "ReassignmentPolicy")
    world.tick()
    assert not [name for name in series(world) if name.startswith("policy_trigger")]


def test_metrics_tell_a_suspended_trigger_from_one_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, suspend=True)
    world.down(1)
    world.tick(until=lambda: world.trigger("lost") == ("Held", "Suspended"))
    held, suspended = (f"policy_trigger{{kind=brokerLost,state={state}}}" for state in ("Held", "Suspended"))
    assert (series(world)[held], series(world)[suspended]) == (0, 1)
    world.down(2)
    world.edit_policy(suspend=False)
    world.tick(until=lambda: world.trigger("lost") == ("Held", "TooManyBrokersLost"))
    assert (series(world)[held], series(world)[suspended]) == (1, 0)


def test_an_idle_policy_reads_seldom_and_writes_at_most_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST, CORDONED)
    world.tick(20)
    readings, cordons, writes = world.brokers.readings, world.brokers.cordon_readings, len(world.kube.writes)
    world.tick(240)
    assert world.brokers.readings - readings == 4
    assert 15 <= world.brokers.cordon_readings - cordons <= 20
    assert len(world.kube.writes) - writes <= 20
    assert {what.split()[0] for what in world.kube.writes[writes:]} <= {"record"}


def test_replicas_are_counted_every_15_seconds_while_a_broker_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    readings = world.brokers.readings
    world.tick(24)
    assert 7 <= world.brokers.readings - readings <= 9


def test_the_loop_observes_often_enough_for_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    world.tick(5)
    assert max(world.pauses(30)) <= 15


def test_a_name_that_is_taken_gives_the_next_number(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, LOST)
    for number in (1, 2):
        world.apply_plan(f"main-lost-{number}", drainBrokers=[5])
    world.down(1)
    world.tick(until=lambda: world.outcomes() == [("main-lost-3", "Succeeded")])
    assert (world.on(1), world.plans()) == ([], ["main-lost-1", "main-lost-2", "main-lost-3"])


def test_a_policy_deleted_with_orphan_leaves_its_plan_to_users(monkeypatch: pytest.MonkeyPatch) -> None:
    world = policing(monkeypatch, ADDED)
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    deleted = {"deletionTimestamp": f"{world.clock.now():%Y-%m-%dT%H:%M:%SZ}", "finalizers": ["orphan"]}
    world.change("policy-main", lambda obj: obj["metadata"].update(deleted))
    world.tick(3)
    world.kube.write(world.plan("main-out-1")["metadata"]["uid"], lambda obj: obj["metadata"].pop("ownerReferences"))
    del world.kube.objects["uid-policy-main"]
    world.watch()
    world.tick(3)
    assert [*world.kafka.reassignments] == [A]
    world.copies = True
    world.tick(30)
    ready = world.plan("main-out-1")["status"]["conditions"][0]
    assert (world.brokers.begun, ready["reason"]) == ([A], "AwaitingApproval")
