"""ReassignmentPolicies beside BrokerDecommissions and plans of users: precedence, holds and cordons."""

from __future__ import annotations

import pytest

from tests.unit.decommission_world import A, B, C
from tests.unit.policy_world import ADDED, CORDONED, LOST, NIGHTLY, Policing


def begun(world: Policing) -> None:
    """Tick until a move is in flight, which does not end by itself."""
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))


def test_a_decommission_and_a_cordon_never_act_on_one_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[CORDONED], approval="NotRequired")
    world.apply(approval="NotRequired")
    world.tick(until=lambda: world.reason() == "Empty")
    world.tick(60)
    assert (world.plans(), world.trigger("in")[0], world.cordons()) == (["old-1"], "Idle", {1})


def test_a_decommission_of_a_broker_that_others_cordoned_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[CORDONED], approval="NotRequired")
    world.cordon(1)
    world.apply(approval="NotRequired")
    world.tick(until=lambda: world.reason() == "Empty")
    world.tick(60)
    assert world.plans() == ["old-1"]


def test_no_broker_of_a_decommission_that_cannot_be_read_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[ADDED, LOST], approval="NotRequired")
    world.apply(brokers=(0, 4), cordon="Sometimes")
    world.tick(until=lambda: world.trigger("out") == ("Held", "PlanInProgress"))
    said = next(trigger for trigger in world.policy()["triggers"] if trigger["name"] == "out")
    assert (said["brokers"], "the BrokerDecommission old cannot be read" in said["message"]) == ([5], True)
    world.down(1)
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.up(1)
    world.tick(30)
    assert (world.plans(), world.on(0), world.on(4)) == (["main-lost-1"], [], [])
    world.edit(cordon="Never")
    world.tick(until=lambda: "main-out-2" in world.plans())


def test_a_lost_broker_of_a_decommission_that_cannot_be_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired")
    world.apply(brokers=(1,), cordon="Sometimes")
    world.down(1)
    world.tick(30)
    assert (world.plans(), world.trigger("lost")) == ([], ("Idle", None))


def test_a_decommission_retires_a_plan_that_balances(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[ADDED], approval="NotRequired")
    begun(world)
    world.apply(approval="NotRequired")
    world.tick(20)
    assert len(world.kube.started) == 1
    world.copies = True
    world.tick(until=lambda: world.reason() == "Empty")
    assert world.outcomes()[0] == ("main-out-1", "Retired")
    assert world.on(1) == []


def test_a_lost_broker_goes_before_a_decommission(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired")
    world.apply(approval="NotRequired", brokers=(3,))
    begun(world)
    world.down(2)
    world.tick(until=lambda: "main-lost-1" in world.plans())
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    world.tick(until=lambda: world.reason() == "Empty")
    assert (world.on(2), world.on(3)) == ([], [])


def test_our_cordons_are_lifted_once_a_plan_for_a_lost_broker_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="Required")
    world.apply(approval="NotRequired", brokers=(3,))
    begun(world)
    assert world.cordons() == {3}
    world.down(2)
    world.copies = True
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    world.restart()
    world.tick(10)
    assert (world.cordons(), world.plans()) == ({3}, ["main-lost-1", "old-1"])
    world.approve_policy()
    world.tick(until=lambda: not world.cordons())
    started = len(world.kube.started)
    world.tick(until=lambda: len(world.kube.started) > started)
    world.tick(until=lambda: ("main-lost-1", "Succeeded") in world.outcomes())
    assert world.on(2) == []
    world.tick(until=lambda: world.reason() == "Empty")
    assert world.cordons() == {3}


def test_a_plan_with_an_object_is_made_as_though_our_cordons_were_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="Required")
    world.apply(approval="NotRequired", brokers=(3,))
    begun(world)
    monkeypatch.setattr(world.planner, "hand_over", lambda *_: None)
    world.down(2)
    world.copies = True
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    assert [(job.owned, job.lifted) for job in world.work.jobs if job.plan.name == "main-lost-1"] == [(True, {3})]


@pytest.mark.parametrize("restarts", [False, True])
def test_moves_to_a_lost_broker_are_cancelled_before_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch, restarts: bool
) -> None:
    lost = {"name": "lost", "brokerLost": {"afterSeconds": 300}}
    world = Policing(monkeypatch, triggers=[lost, CORDONED], approval="NotRequired")
    world.cordon(3)
    world.tick(until=lambda: world.on(0) == [B])
    begun(world)
    assert set(world.kafka.reassignments) == {C}
    world.down(0)
    world.tick(62)
    if restarts:
        world.restart()
    world.tick(10)
    assert C not in world.kafka.reassignments
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-in-1", "Retired"), ("main-lost-2", "Succeeded")])
    world.tick(until=lambda: world.on(3) == [])
    assert world.on(0) == []


def test_what_a_users_plan_moves_holds_a_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[NIGHTLY], approval="NotRequired")
    world.apply_plan("rebalance", drainBrokers=[3])
    begun(world)
    world.clock.seconds = 2 * 3600 - 60
    world.tick(until=lambda: world.trigger("nightly") == ("Held", "PlanInProgress"))
    world.copies = True
    world.tick(until=lambda: world.outcomes() == [("main-nightly-1", "Succeeded")])


def test_a_users_plan_does_not_hold_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired")
    world.apply_plan("rebalance", drainBrokers=[3])
    begun(world)
    world.down(2)
    world.tick(until=lambda: "main-lost-1" in world.plans() and len(world.kube.started) > 1)


def test_two_plans_of_owners_never_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST, CORDONED, ADDED, NIGHTLY], approval="NotRequired", cooldownSeconds=0)
    world.apply(approval="NotRequired", brokers=(3,))
    world.cordon(4)
    running, world.copies = [], False
    for number in range(240):
        if number == 30:
            world.down(1)
        world.tick()
        running.append({wave["metadata"]["labels"]["kafka.reassign.dev/plan"] for wave in world.active_waves()})
        for tp in [*world.kafka.reassignments] if number % 3 == 0 else ():
            world.kafka.copy(tp)
    assert max(map(len, running)) == 1
    assert {"old-1", "main-lost-2"} <= set().union(*running)
    assert (world.on(1), world.on(3), world.on(4), world.reason()) == ([], [], [], "Empty")


def test_a_plan_of_a_policy_out_of_force_ends_before_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[ADDED], approval="NotRequired")
    begun(world)
    world.apply_policy("unreadable", triggers="all")
    world.apply(approval="NotRequired")
    world.tick(20)
    assert world.ready_of() == "DuplicatePolicy"
    assert ([*world.kafka.reassignments], world.reason()) == ([A], "PlanInProgress")
    world.copies = True
    world.tick(until=lambda: world.reason() == "Empty")
    assert set(world.plans()) == {"main-out-1", "old-1"}


def test_a_plan_that_no_record_knows_holds_a_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[ADDED], approval="NotRequired", cooldownSeconds=0)
    begun(world)
    world.edit_policy(triggers=[{"name": "often", "schedule": {"cron": "* * * * *"}}])
    record = world.obj("ReassignmentRecord", "uid-policy-main-0")
    assert record
    del world.kube.objects[record["metadata"]["uid"]]
    world.watch()
    world.restart()
    world.tick(20)
    assert world.trigger("often") == ("Held", "PlanInProgress")
    assert world.plans() == ["main-out-1"]
