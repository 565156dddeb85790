"""The record of a BrokerDecommission: whose it is, and what becomes of it when it, or its owner, is lost."""

from __future__ import annotations

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.objects.part import Owner, owner_of
from reassign.kube.client import Kind
from tests.unit.decommission_world import A, B, Decommissioning
from tests.unit.world import Object

RECORD = "uid-uid-old-0"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Decommissioning:
    return Decommissioning(monkeypatch, approval="NotRequired")


def in_flight(world: Decommissioning) -> None:
    world.copies = False
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.tick()


def disowned(record: Object) -> Object:
    return {**record, "metadata": {**record["metadata"], "ownerReferences": []}}


def lose(world: Decommissioning, uid: str = RECORD) -> None:
    """Another client strips its finalizer and deletes it, while no operator runs."""
    del world.kube.objects[uid]
    world.restart()


def test_a_record_belongs_to_its_decommission_and_is_held_until_that_goes(world: Decommissioning) -> None:
    world.until("Empty")
    record = world.kube.objects[RECORD]
    [owner] = record["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("BrokerDecommission", "old", "uid-old")
    assert record["spec"]["ownerKind"] == "BrokerDecommission"
    assert record["spec"]["clusterRef"] == {"namespace": "kafka", "name": "main"}
    assert FINALIZER in record["metadata"]["finalizers"]
    del world.kafka.brokers[1]
    world.until("Gone")
    world.tick(3)
    assert FINALIZER not in world.kube.objects[RECORD]["metadata"]["finalizers"]


def test_the_owner_of_a_record_is_known_without_its_reference(world: Decommissioning) -> None:
    world.tick(3)
    record = world.kube.objects[RECORD]
    assert owner_of(record) == Owner(Kind.BROKER_DECOMMISSION, "kafka", "old", "uid-old")
    assert owner_of(disowned(record)) == Owner(Kind.BROKER_DECOMMISSION, "kafka", "uid-old", "uid-old")
    del record["spec"]["ownerKind"]
    assert owner_of(record).kind is Kind.BROKER_DECOMMISSION


def test_a_record_without_its_reference_is_believed(world: Decommissioning) -> None:
    in_flight(world)
    world.kube.write(RECORD, lambda obj: obj["metadata"].update(ownerReferences=[]))
    world.restart()
    world.copies = True
    world.until("Empty")
    assert world.plans() == ["old-1"]
    world.delete()
    world.tick(20)
    world.assert_nothing_left()


def test_a_record_that_is_lost_midway_moves_nothing_twice(world: Decommissioning) -> None:
    in_flight(world)
    lose(world)
    world.copies = True
    world.until("Empty", seconds=20)
    assert world.on(1) == []
    assert world.brokers.begun.count(B) == 1
    world.delete()
    world.tick(40)
    world.assert_nothing_left()


def test_what_was_approved_goes_on_when_its_record_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it copies is known no more: so what lands later needs an approval of its own."""
    world = Decommissioning(monkeypatch)
    world.until("AwaitingApproval")
    world.approve()
    in_flight(world)
    lose(world)
    world.copies = True
    world.until("Empty")
    assert world.plans() == ["old-1"]
    world.kafka.replicas[A] = (1, 2)
    world.until("AwaitingApproval", seconds=20)
    world.approve()
    world.until("Empty", seconds=20)


def test_a_record_that_cannot_be_read_keeps_all_as_it_is(world: Decommissioning) -> None:
    in_flight(world)
    record = world.kube.objects[RECORD]["spec"]["decommission"]
    number = record["plan"]["number"]
    world.kube.write(RECORD, lambda obj: obj["spec"]["decommission"]["plan"].update(number="one"))
    world.restart()
    world.copies = True
    world.until("CannotBeRead")
    world.tick(15)
    assert (len(world.kube.started), world.cordons(), world.plans()) == (1, {1}, ["old-1"])
    world.kube.write(RECORD, lambda obj: obj["spec"]["decommission"]["plan"].update(number=number))
    world.until("Empty")


def test_a_record_whose_owner_went_without_its_finalizer_is_released(world: Decommissioning) -> None:
    in_flight(world)
    world.kube.write(RECORD, lambda obj: obj["metadata"].update(ownerReferences=[]))
    del world.kube.objects["uid-old"]
    world.restart()
    world.tick(40)
    assert FINALIZER not in world.kube.objects[RECORD]["metadata"]["finalizers"]
    assert not world.cordons()
    assert not world.kafka.reassignments


def test_one_that_is_made_again_begins_anew(world: Decommissioning) -> None:
    in_flight(world)
    world.delete()
    world.copies = True
    world.tick(until=lambda: not world.obj("BrokerDecommission", "old"))
    world.apply("old")
    obj = world.kube.objects.pop("uid-old")
    world.store.drop("uid-old")
    obj["metadata"]["uid"] = "uid-new"
    obj["spec"]["approval"] = "NotRequired"
    world.put(obj)
    world.until("Empty", seconds=10)
    assert world.on(1) == []


def test_a_record_of_another_kind_under_its_name_is_not_believed(world: Decommissioning) -> None:
    world.tick(3)
    spec = world.kube.objects[RECORD]["spec"]
    forged = {**spec, "decommission": {"approval": {"bytes": 10**9}, "brokers": [{"id": 1, "seenUnregistered": True}]}}
    world.kube.objects["uid-forged"] = {
        **world.kube.objects[RECORD],
        "metadata": {**world.kube.objects[RECORD]["metadata"], "uid": "uid-forged", "name": "forged"},
        "spec": forged,
    }
    world.restart()
    world.tick(3)
    assert world.reason() not in ("Gone", "Unregistered")


@pytest.mark.parametrize("namespace", [True, False], ids=["a deleted namespace", "a deletion in the foreground"])
def test_a_record_that_is_deleted_first_is_written_to_the_end(world: Decommissioning, namespace: bool) -> None:
    in_flight(world)
    kinds = {"ReassignmentRecord", "ReassignmentPlan", "PartitionReassignment", "BrokerDecommission"}
    if namespace:
        for obj in [o for o in world.kube.objects.values() if o["kind"] in kinds]:
            world.kube._delete(obj)
    else:
        world.delete(foreground=True)
    world.watch()
    world.tick(until=lambda: not world.obj("BrokerDecommission", "old"))
    world.tick(20)
    world.assert_nothing_left()
    assert RECORD not in world.kube.objects
