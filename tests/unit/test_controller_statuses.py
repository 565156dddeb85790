"""Statuses that were lost: what was ours is rebuilt, and what was never ours is not taken for it."""

from __future__ import annotations

import pytest

from reassign.api.common import FINALIZER
from reassign.kube.managed import field_manager
from tests.unit.test_controller_loop import FINALIZER_FIELDS, OURS, THEIRS, Object, World


@pytest.fixture
def world() -> World:
    return World()


def record(world: World, name: str = "move") -> list[Object]:
    """The record that the API server has."""
    found: list[Object] = world.kube.objects[f"uid-{name}"]["status"].get("record", [])
    return found


def test_a_status_wiped_while_no_process_runs_is_rebuilt_and_that_is_told_once(world: World) -> None:
    world.change_status("move", Object.clear)
    world.restart()
    world.tick(3)
    (topic,) = record(world)
    assert topic["partitions"][0]["reason"] == "OrderUnknown"
    assert world.kube.events.count("StatusRebuilt") == 1
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_a_status_wiped_where_nothing_says_any_more_that_the_finalizer_is_ours_takes_nothing_over(world: World) -> None:
    world.change_status("move", Object.clear)
    world.kube.objects["uid-move"]["metadata"]["managedFields"] = []
    world.restart()
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def copied(world: World) -> None:
    """A manifest made from another object, of a resource that moved THEIRS to where somebody else moves it now."""
    entry = {"topic": THEIRS.topic, "partition": 0, "replicas": [5, 2, 3]}
    manager = field_manager("uid-before")
    world.add("copy", THEIRS, (5, 2, 3))
    obj = world.kube.objects["uid-copy"]
    obj["spec"] = {"clusterRef": {"name": "main"}, "partitions": [entry]}
    obj["metadata"] |= {
        "finalizers": [FINALIZER],
        "managedFields": [{"manager": manager, "fieldsV1": FINALIZER_FIELDS}],
        "resourceVersion": "2",
    }
    world.restart()


def test_a_copied_manifest_with_our_finalizer_takes_over_nothing_of_others(world: World) -> None:
    copied(world)
    world.tick(3)
    assert world.conditions("copy") == {"Stalled": "InFlightElsewhere"}
    world.delete("copy")
    world.tick(until=lambda: world.store.get("uid-copy") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_a_copied_manifest_is_carried_out_as_any_other(world: World) -> None:
    copied(world)
    world.kafka.perform_as_another(THEIRS)
    world.tick(until=lambda: THEIRS in world.kafka.reassignments)
    world.delete("copy")
    world.tick(until=lambda: world.store.get("uid-copy") is None)
    assert set(world.kafka.reassignments) == {OURS}
