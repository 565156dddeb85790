"""An object that the schema takes and the operator cannot read says so, and may be deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_record import BrokerConfigs, RecordedConfig, RecordedConfigs
from reassign.controller.supervisor import Supervisor
from tests.unit.world import LATER, OURS, THEIRS, Object, World, connect

RATE = "1e4294967302"
"""For Kubernetes 1e6: of an exponent the lowest 32 bits count."""


pytestmark = pytest.mark.usefixtures("logged")


@pytest.fixture
def world() -> World:
    return World()


def spoil(obj: Object) -> None:
    obj["spec"]["throttle"] = {"interBroker": RATE}


def fix(obj: Object) -> None:
    del obj["spec"]["throttle"]


def message(world: World, name: str) -> str:
    said: str = (world.store.get(f"uid-{name}") or {})["status"]["conditions"][0]["message"]
    return said


def test_an_unreadable_resource_names_the_field_and_is_logged_once(world: World, logged: list[Any]) -> None:
    world.add("bad", LATER, (4, 2, 3))
    world.change("bad", spoil)
    world.tick(5)
    assert world.conditions("bad") == {"Stalled": "CannotBeRead"}
    assert "spec.throttle.interBroker" in message(world, "bad")
    assert RATE in message(world, "bad")
    assert world.kube.events.count("CannotBeRead") == 1
    versions = {"spoiled", "with its status"}
    assert len([line for line in logged if line["event"] == "cannot be read"]) == len(versions)
    world.change("bad", fix)
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_the_record_of_an_unreadable_resource_stays_and_is_resumed(world: World) -> None:
    before = (world.store.get("uid-move") or {})["status"]
    world.change("move", spoil)
    world.tick(2)
    after = (world.store.get("uid-move") or {})["status"]
    assert {**before, "conditions": None} == {**after, "conditions": None}
    world.change("move", fix)
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_an_unreadable_deletion_reports_its_wait_and_orphan_ends_it(world: World) -> None:
    world.change("move", spoil)
    world.delete("move")
    world.tick(2)
    assert "the deletion waits" in message(world, "move")
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    world.change("move", lambda obj: obj["spec"].update(deletionPolicy="Orphan"))
    world.tick()
    assert world.store.get("uid-move") is None


@pytest.mark.parametrize("deleted", ["2026-01-02T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_an_unreadable_deletion_waits_until_its_deadline(world: World, deleted: str) -> None:
    world.change("move", spoil)
    world.change("move", lambda obj: obj["spec"].update(deletionDeadlineSeconds=60))
    world.change("move", lambda obj: obj["metadata"].update(deletionTimestamp=deleted))
    world.tick(2)
    over = deleted < "2999"
    assert (world.store.get("uid-move") is None) == over
    assert ("CancelAbandoned" in world.kube.events) == over
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_an_unreadable_resource_does_not_delay_the_brake(world: World) -> None:
    world.add("bad", LATER, (4, 2, 3))
    world.change("bad", spoil)
    world.kube.unwritable = {"uid-bad"}
    world.pull("CancelOurs")
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.kube.unwritable.clear()
    world.tick()
    assert world.conditions("bad") == {"Stalled": "CannotBeRead"}


def test_conditions_that_cannot_be_read_are_written_anew(world: World) -> None:
    world.add("bad", LATER, (4, 2, 3))
    time = "0000-01-01T00:00:00Z"  # a year that the schema takes
    ready = {"type": "Ready", "status": "True", "reason": "Any", "message": "", "lastTransitionTime": time}
    world.change("bad", spoil)
    world.change_status("bad", lambda status: status.update(conditions=[ready], observedGeneration=1))
    world.tick(2)
    assert world.conditions("bad") == {"Stalled": "CannotBeRead"}
    world.change("bad", fix)
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_what_cannot_be_read_and_holds_nothing_is_deleted_at_once(world: World) -> None:
    world.pull("CancelOurs")
    world.tick(3)
    assert set(world.kafka.reassignments) == {THEIRS}
    world.change("move", spoil)
    world.delete("move")
    world.tick()
    assert world.store.get("uid-move") is None


def test_an_unreadable_cluster_is_reported_on_it_and_on_its_resources(world: World) -> None:
    world.add("late", LATER, (4, 2, 3))
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": RATE}))
    world.tick(2)
    assert world.conditions("main") == {"Stalled": "CannotBeRead"}
    assert "spec.limits.maxThrottle" in message(world, "main")
    assert world.conditions("late") == {"Stalled": "CannotBeRead"}
    assert RATE not in message(world, "late")
    world.change("main", lambda obj: obj["spec"].update(limits={}))
    connect(world.loop, world.brokers, world.store.parse_cluster(world.store.get("uid-main") or {}))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.conditions("main") == {"Ready": "Connected"}


def drop_move(world: World) -> None:
    """The resource is gone, and its record too."""
    for part in world.store.parts("uid-move"):
        world.store.drop(part.obj["metadata"]["uid"])
    world.store.drop("uid-move")


def test_an_unreadable_cluster_waits_for_the_record_of_a_lost_resource(world: World) -> None:
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": RATE}))
    world.delete("main")
    del world.kube.objects["uid-move"]
    world.store.drop("uid-move")
    world.tick(2)
    assert world.store.get("uid-main")
    world.change("main", lambda obj: obj["spec"].update(limits={}))
    connect(world.loop, world.brokers, world.store.parse_cluster(world.store.get("uid-main") or {}))
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


def test_a_cluster_that_cannot_be_read_goes_when_nothing_refers_to_it(world: World) -> None:
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": RATE}))
    world.delete("main")
    world.tick(2)
    assert world.store.get("uid-main")
    drop_move(world)
    world.tick()
    assert world.store.get("uid-main") is None


def test_an_unreadable_cluster_with_throttles_goes_when_orphaned(world: World) -> None:
    rate = RecordedConfig(name="leader.replication.throttled.rate", value="1000")
    throttle = RecordedConfigs(brokers=(BrokerConfigs(broker=3, configs=(rate,)),))
    cluster = KafkaCluster.parse(world.store.get("uid-main") or {})
    asyncio.run(world.loop.writer.records.write_throttle(cluster, throttle))
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": RATE}))
    world.delete("main")
    drop_move(world)
    world.tick(2)
    assert world.store.get("uid-main")
    world.change("main", lambda obj: obj["spec"].update(deletionPolicy="Orphan"))
    world.tick()
    assert world.store.get("uid-main") is None
    assert "ThrottlesOrphaned" in world.kube.events
    assert [part for part in world.store.parts("uid-main") if part.held] == []


def test_a_cluster_waits_for_a_resource_that_cannot_be_read(world: World) -> None:
    world.change("move", spoil)
    world.delete("main")
    world.tick(2)
    assert world.conditions("main") == {"Stalled": "ClusterDeleted"}
    assert "kafka/move" in message(world, "main")


def test_an_unreadable_resource_without_a_cluster_reports_itself(world: World) -> None:
    world.change("move", spoil)
    world.store.drop("uid-main")
    del world.kube.objects["uid-main"]
    kube: Any = world.kube
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), lambda _: world.loop)
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert world.conditions("move") == {"Stalled": "CannotBeRead"}
