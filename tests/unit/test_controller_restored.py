"""etcd restored from a backup: the API server tells of older versions than those that were seen, and they count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

import pytest

from reassign.controller.objects.store import Store
from tests.unit.world import OURS, Object, World

Edit = Callable[[Object], None]


def made(version: int, *edits: Edit) -> Object:
    """A PartitionReassignment at this version."""
    obj: Object = {
        "kind": "PartitionReassignment",
        "metadata": {"name": "move", "namespace": "kafka", "uid": "uid", "generation": 1},
        "spec": {"clusterRef": {"name": "main"}, "partitions": []},
        "status": {},
    }
    obj["metadata"]["resourceVersion"] = str(version)
    for edit in edits:
        edit(obj)
    return obj


def suspend(obj: Object) -> None:
    obj["spec"]["suspend"] = True


def listed(known: Object, answer: Object, seen_meanwhile: Object | None = None) -> Object | None:
    """What is known after a list that began when `known` was."""
    store = Store()
    store.put(known)
    versions = store.versions()
    if seen_meanwhile:
        store.put(seen_meanwhile)
    store.take_over([answer], versions)
    return store.get("uid")


def test_an_older_version_that_is_listed_is_taken_over() -> None:
    assert listed(made(105), made(100, suspend)) == made(100, suspend)


def test_the_same_version_of_another_history_is_taken_over() -> None:
    assert listed(made(105), made(105, suspend)) == made(105, suspend)


def test_a_list_that_is_older_than_what_came_meanwhile_is_not() -> None:
    assert listed(made(100), made(100), seen_meanwhile=made(101, suspend)) == made(101, suspend)


def test_after_that_newer_versions_count_again() -> None:
    store = Store()
    store.put(made(105))
    store.take_over([made(100)], store.versions())
    assert store.put(made(101, suspend))
    assert store.get("uid") == made(101, suspend)


@pytest.mark.parametrize("edited", [False, True])
def test_a_conflict_with_a_restored_object_ends_at_the_next_reconcile(edited: bool) -> None:
    world = World()
    backup = deepcopy(world.kube.objects["uid-move"])
    backup["metadata"]["resourceVersion"] = "0"
    for number in range(3):
        world.change("move", lambda obj, n=number: obj["spec"].update(stallTimeoutSeconds=700 + n))  # type: ignore[misc]
        world.tick()
    world.kube.objects["uid-move"] = backup
    if edited:
        backup["metadata"]["generation"] += 1
        backup["spec"]["stallTimeoutSeconds"] = 60
    resource = world.store.resource("uid-move")
    assert resource is not None
    asyncio.run(world.loop.writer.refresh(resource))
    restored = world.store.resource("uid-move")
    assert restored is not None
    assert restored.version == 0
    assert restored.spec.stall_timeout_seconds == (60 if edited else 600)
    assert OURS in restored.record
