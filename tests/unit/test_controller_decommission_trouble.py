"""What keeps a BrokerDecommission from going on: brokers, plans that fail, a KafkaCluster that is not served."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reassign.core.automation import decide
from reassign.core.automation.case import DecommissionCase
from reassign.core.model.forwarding import Forwarded
from reassign.core.model.snapshot import Broker
from reassign.core.model.steps import Outcome, Result
from reassign.errors import PlanningError, Reason, ReassignError
from tests.unit.decommission_world import A, B, C, Decommissioning
from tests.unit.world import Object, api_object, cluster_record


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Decommissioning:
    """One that needs no approval."""
    return Decommissioning(monkeypatch, approval="NotRequired")


def in_flight(world: Decommissioning) -> None:
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.tick()


# --- Planning ---


def test_a_plan_that_cannot_be_made_is_tried_once_a_minute(world: Decommissioning) -> None:
    world.work.fails = PlanningError(Reason.NOTHING_SELECTED, "no topic matches")
    world.tick(27)
    assert 2 <= len(world.work.jobs) <= 3
    world.work.fails = None
    world.until("Empty", seconds=10)


def test_an_incomplete_plan_is_shown_and_not_made(world: Decommissioning) -> None:
    world.work.incomplete = ("b-0 on broker 1",)
    world.until("DrainIncomplete")
    world.tick(30)
    assert (world.plans(), len(world.work.jobs)) == ([], 1)
    assert "b-0" in (world.message() or "")
    world.work.incomplete = ()
    world.kafka.brokers[6] = Broker(6, "r6")
    world.until("Empty", seconds=10)


def test_partitions_without_a_source_are_left_and_named(world: Decommissioning) -> None:
    world.work.left_out = ("c-0",)
    world.until("Empty")
    assert world.on(1) == []


def test_an_approval_covers_no_other_broker(world: Decommissioning) -> None:
    world.until("Empty")
    world.apply("second", [2, 3], approval="NotRequired")
    world.until("Empty", "second", seconds=10)
    assert world.kafka.replicas == {A: (0, 4), B: (4, 0), C: (0, 4)}


# --- Brokers ---


def test_a_broker_that_is_not_known_is_no_wish(world: Decommissioning) -> None:
    world.apply("typo", [42], approval="NotRequired")
    world.until("UnknownBroker", "typo")
    assert world.condition("Stalled", "typo")["status"] == "True"
    world.until("Empty")


def test_too_few_brokers_are_said(world: Decommissioning) -> None:
    world.brokers.factor = 6
    world.until("NotEnoughBrokers")
    world.tick(10)
    assert not world.plans()


def test_a_silent_broker_is_not_called_empty(world: Decommissioning) -> None:
    world.edit(cordon="Never")
    world.brokers.silent = {1}
    world.until("NotObserved", seconds=20)
    assert world.on(1) == []
    world.brokers.silent = set()
    world.until("Empty")
    world.brokers.silent = {1}
    world.until("NotObserved", seconds=60)


def test_a_destination_that_dies_gets_another_plan(world: Decommissioning) -> None:
    in_flight(world)
    assert [move.adding for move in world.kafka.reassignments.values()] == [(0,)]
    world.down(0)
    world.tick(200, seconds=10)
    world.copies = True
    world.until("Empty", seconds=30)
    assert 0 not in {broker for row in world.kafka.replicas.values() for broker in row}


def test_an_observation_that_no_controller_confirms_suspends_nothing(
    world: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight(world)
    snapshot = world.kafka.snapshot

    def cut_off(*given: Any) -> Any:
        return replace(snapshot(*given), forwarded=Forwarded(None, frozenset()))

    monkeypatch.setattr(world.kafka, "snapshot", cut_off)
    world.until("NotObserved")
    world.tick(5)
    assert not world.kube.suspended
    monkeypatch.undo()


def test_a_broker_that_comes_back_is_not_unregistered(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.until("Empty")
    for _ in range(5):
        world.down(1)
        world.tick(8)
        world.kafka.brokers[1] = Broker(1, "r1")
        world.tick(2)
    assert not world.brokers.unregistered
    world.until("Empty")


def test_an_unregistration_that_is_lost_is_sent_again_later(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.until("Empty")
    world.down(1)
    world.brokers.loses_unregister = True
    world.tick(until=lambda: len(world.brokers.unregistered) == 1)
    first = world.clock.seconds
    world.tick(until=lambda: len(world.brokers.unregistered) == 2)
    assert world.clock.seconds - first >= 75
    world.brokers.loses_unregister = False
    world.until("Unregistered")


def test_a_deletion_waits_for_an_unregistration_that_may_land(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.until("Empty")
    world.down(1)
    world.brokers.loses_unregister = True
    world.tick(until=lambda: bool(world.brokers.unregistered))
    first = world.clock.seconds
    world.delete()
    world.tick(until=lambda: not world.obj("BrokerDecommission", "old"))
    assert world.clock.seconds - first >= 75
    world.kafka.brokers[1] = Broker(1, "r1")
    world.tick(10)
    world.assert_nothing_left()


@pytest.mark.parametrize("voters", [None, frozenset({1})])
def test_a_voter_is_not_unregistered(world: Decommissioning, voters: frozenset[int] | None) -> None:
    world.edit(unregister="WhenDown")
    world.brokers.voters = voters
    world.until("Empty")
    world.down(1)
    world.tick(40)
    assert (world.reason(), world.brokers.unregistered) == ("QuorumVoter" if voters else "NotObserved", [])
    assert world.condition("Empty")["status"] == "True"


def test_a_refused_unregistering_is_said(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.brokers.refuses_unregister = Outcome(Result.REFUSED, Reason.NOT_AUTHORIZED, "grant ALTER on Cluster")
    world.until("Empty")
    world.down(1)
    world.until("NotAuthorized", seconds=10)
    assert "broker 1 could not be unregistered: grant ALTER on Cluster" in str(world.message())
    assert world.condition("Empty")["status"] == "True"
    world.brokers.refuses_unregister = None
    world.until("Unregistered", seconds=10)


def test_after_a_refusal_another_client_has_unregistered_a_broker(world: Decommissioning) -> None:
    world.edit(unregister="WhenDown")
    world.brokers.refuses_unregister = Outcome(Result.REFUSED, Reason.NOT_AUTHORIZED, "grant ALTER on Cluster")
    world.until("Empty")
    world.down(1)
    world.until("NotAuthorized", seconds=10)
    del world.kafka.brokers[1]
    world.until("Gone", seconds=10)
    assert "by the operator" not in str(world.message())
    assert world.status()["brokers"][0]["state"] == "Gone"


# --- Waves ---


def test_a_wave_that_failed_gets_another_plan(world: Decommissioning) -> None:
    world.edit(template={"deadlineSeconds": 60})
    world.tick(until=lambda: len(world.waves()) == 2)
    world.kafka.denied = {A}
    world.tick(until=lambda: len(world.plans()) == 2)
    world.kafka.denied = set()
    world.until("Empty", seconds=10)
    assert world.record()["failures"] == 0
    assert world.on(1) == []


def test_three_plans_that_fail_are_followed_by_one_an_hour_later(world: Decommissioning) -> None:
    world.edit(template={"deadlineSeconds": 60})
    world.kafka.denied = {A, B}
    world.until("PlanFailed", seconds=10)
    assert world.plans() == ["old-1", "old-2", "old-3"]
    world.kafka.denied = set()
    world.tick(50, seconds=60)
    assert world.reason() == "PlanFailed"
    world.until("Empty", seconds=60)
    assert world.plans() == ["old-1", "old-2", "old-3", "old-4"]


def test_a_throttle_is_restored_at_the_end(world: Decommissioning) -> None:
    world.edit(template={"throttle": {"interBroker": "1Mi"}})
    world.until("Empty")
    world.delete()
    world.tick(20)
    world.assert_nothing_left()


def test_what_has_expired_is_deleted_and_nothing_is_done_again(world: Decommissioning) -> None:
    world.until("Empty")
    for obj in world.waves():
        world.delete(obj["metadata"]["name"], "PartitionReassignment")
    world.delete("old-1", "ReassignmentPlan")
    world.tick(20)
    assert (world.reason(), world.plans(), world.status()["plans"][0]["outcome"]) == ("Empty", [], "Succeeded")


# --- Several ---


def test_two_for_the_same_broker_keep_its_cordon_until_both_are_gone(world: Decommissioning) -> None:
    world.apply("second", [1], approval="NotRequired")
    world.until("Empty")
    world.until("Empty", "second")
    world.delete()
    world.tick(15)
    assert world.cordons() == {1}
    world.delete("second")
    world.tick(15)
    world.assert_nothing_left()


def test_one_that_is_suspended_midway_gives_its_turn_away(world: Decommissioning) -> None:
    world.apply("second", [2], approval="NotRequired")
    in_flight(world)
    world.edit(suspend=True)
    world.tick(10)
    assert world.reason("second") == "PlanInProgress"
    world.copies = True
    world.until("Empty", "second", seconds=10)
    assert world.on(1) == [B]
    world.edit(suspend=False)
    world.until("Empty", seconds=20)
    world.tick(10)
    assert world.on(2) == world.on(1) == []


# --- The KafkaCluster ---


def without_cluster(world: Decommissioning) -> None:
    del world.kube.objects["uid-main"]
    world.watch()
    world.kube.collect_garbage()
    world.watch()


def test_a_missing_cluster_is_said_and_a_deletion_goes_on(world: Decommissioning) -> None:
    world.until("Empty")
    without_cluster(world)
    world.sweep(2)
    assert world.reason() == "ClusterNotFound"
    world.delete()
    world.sweep(20)
    assert not world.obj("BrokerDecommission", "old")
    assert not [name for name in world.held() if "old" in name]


def test_one_that_comes_before_its_cluster_begins_when_that_is_there(world: Decommissioning) -> None:
    cluster, record = world.kube.objects["uid-main"], world.kube.objects["uid-uid-main-0"]
    without_cluster(world)
    world.sweep(3)
    assert world.reason() == "ClusterNotFound"
    for obj in (cluster, record):
        world.put(obj)
    world.until("Empty")


def test_a_cluster_made_again_goes_on_and_lifts_what_was_left(world: Decommissioning) -> None:
    in_flight(world)
    without_cluster(world)
    world.sweep(3)
    again = api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"})
    again["metadata"] |= {"uid": "uid-main-again"}
    world.put(again)
    world.loop = world.new_loop()
    world.copies = True
    world.until("Empty", seconds=20)
    world.delete()
    world.tick(40)
    world.assert_nothing_left()


def test_a_duplicate_starts_nothing_and_lifts_its_cordon(world: Decommissioning) -> None:
    world.until("Empty")
    older = api_object("KafkaCluster", "older", {"bootstrapServers": "b:9092"})
    older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    world.put(older)
    world.put(cluster_record("older"))
    world.store.note_served("uid-older", None)
    world.until("DuplicateCluster", seconds=10)
    world.tick(20)
    assert not world.cordons()
    world.delete("older", "KafkaCluster")
    world.tick(until=lambda: world.cordons() == {1}, seconds=10)
    world.until("Empty")


def test_other_brokers_behind_the_address_are_not_touched(world: Decommissioning) -> None:
    world.tick(until=lambda: world.cordons() == {1})
    world.change("main", lambda obj: obj)
    snapshot = world.kafka.snapshot

    def another(*given: Any) -> Any:
        return replace(snapshot(*given), cluster_id="another")

    world.kafka.snapshot = another  # type: ignore[method-assign]
    world.until("ClusterIdChanged")
    changes = len([w for w in world.kube.writes if w.startswith("config")])
    world.delete()
    world.tick(until=lambda: not world.obj("BrokerDecommission", "old"))
    assert len([w for w in world.kube.writes if w.startswith("config")]) == changes
    world.kafka.snapshot = snapshot  # type: ignore[method-assign]
    world.tick(15)
    world.assert_nothing_left()


# --- The API server, and bugs ---


def test_a_plan_whose_creation_is_refused_is_not_created_at_once_again(
    world: Decommissioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = world.kube.create

    async def refuse(obj: Object) -> Object:
        if obj["kind"] == "ReassignmentPlan":
            raise ReassignError(Reason.NOT_AUTHORIZED, "a webhook denied the request")
        return await create(obj)

    monkeypatch.setattr(world.kube, "create", refuse)
    world.until("NotAuthorized")
    assert min(world.pauses(3)) >= 1
    assert "a webhook denied the request; it is tried again" in (world.message() or "")
    monkeypatch.undo()


def test_a_bug_with_one_holds_its_plan_and_no_other(world: Decommissioning, monkeypatch: pytest.MonkeyPatch) -> None:
    in_flight(world)
    world.copies = True
    judge = decide.decide_decommission

    def judges(case: DecommissionCase) -> Any:
        if case.it.name == "old":
            raise ZeroDivisionError
        return judge(case)

    monkeypatch.setattr(decide, "decide_decommission", judges)
    world.apply("second", [2], approval="NotRequired")
    world.until("InternalError")
    world.tick(10)
    assert (len(world.kube.started), world.cordons()) == (1, {1})
    assert world.reason("second") == "PlanInProgress"
    monkeypatch.setattr(decide, "decide_decommission", judge)
    world.until("Empty")


def test_a_bug_with_all_of_them_holds_nothing_else(world: Decommissioning, monkeypatch: pytest.MonkeyPatch) -> None:
    in_flight(world)
    world.copies = True
    automation = world.loop.automation.automation
    decides = automation.decide

    def fails(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(automation, "decide", fails)
    entry = {"topic": "c", "partition": 0, "replicas": [5, 3]}
    world.put(api_object("PartitionReassignment", "users", {"clusterRef": {"name": "main"}, "partitions": [entry]}))
    world.tick(10, safely=True, bugs=True)
    assert (world.reason(), len(world.kube.started), world.cordons()) == ("InternalError", 1, {1})
    assert world.kafka.replicas[C] == (5, 3)
    monkeypatch.setattr(automation, "decide", decides)
    world.until("Empty", safely=True)


@pytest.mark.parametrize("by", ["its spec", "its record"])
def test_a_plan_whose_owner_cannot_be_read_is_not_the_users_to_approve(world: Decommissioning, by: str) -> None:
    world.tick(until=lambda: world.cordons() == {1})
    if by == "its spec":
        world.change("old", lambda obj: obj["spec"].update(cordon="Sometimes"))
    else:
        world.kube.write("uid-uid-old-0", lambda obj: obj["spec"]["decommission"]["plan"].update(number="one"))
        world.watch()
    world.until("CannotBeRead")
    world.change("old-1", lambda obj: obj["spec"].update(approvedDigest=obj["status"]["digest"]))
    world.tick(10)
    assert not world.kube.started
    world.change("old-1", lambda obj: obj["spec"].update(approvedDigest=None, approval="NotRequired"))
    world.tick(10)
    assert not world.kube.started
