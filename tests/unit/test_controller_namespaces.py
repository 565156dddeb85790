"""Resources that refer to a KafkaCluster of another namespace: what they are told, be it there or not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.supervisor import Supervisor
from reassign.kube.client import ClusterKey
from tests.unit.world import LATER, OURS, Object, World, connect

MAIN, MISSING = ("kafka", "main"), ("kafka", "missing")


class Kube:
    """An API server that has no KafkaCluster, and takes down which ones it was asked for."""

    def __init__(self) -> None:
        self.asked: list[ClusterKey] = []

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def get(self, kind: object, namespace: str, name: str) -> None:
        self.asked.append((namespace, name))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def kube() -> Kube:
    return Kube()


def answer_for_missing(world: World, kube: Any, key: ClusterKey = MISSING, namespaces: tuple[str, ...] = ()) -> None:
    unused: Any = None
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, namespaces, unused)
    asyncio.run(supervisor._answer_for_missing(*key))


def refer(world: World, name: str, to: ClusterKey, namespace: str = "team-a") -> None:
    """A resource that wants to move LATER."""
    world.add(name, LATER, (4, 2, 3))
    world.change(name, lambda obj: obj["metadata"].update(namespace=namespace))
    world.change(name, lambda obj: obj["spec"].update(clusterRef={"namespace": to[0], "name": to[1]}))


def status(world: World, name: str) -> Object:
    """The status, but for times."""
    found: Object = (world.store.get(f"uid-{name}") or {})["status"]
    conditions = [{key: c[key] for key in c if key != "lastTransitionTime"} for c in found["conditions"]]
    return found | {"conditions": conditions}


def test_a_missing_cluster_reads_as_not_allowed_to_another_namespace(world: World, kube: Kube) -> None:
    refer(world, "refused", MAIN)
    refer(world, "lost", MISSING)
    world.tick()
    answer_for_missing(world, kube)
    assert world.conditions("refused") == {"Stalled": "NamespaceNotAllowed"}
    assert status(world, "refused") == status(world, "lost")


def test_to_another_namespace_its_deletion_reads_the_same_too(world: World, kube: Kube) -> None:
    for name, key in (("refused", MAIN), ("lost", MISSING)):
        refer(world, name, key)
        world.change(name, lambda obj: obj["metadata"].update(finalizers=[FINALIZER]))
        world.delete(name)
    world.tick()
    answer_for_missing(world, kube)
    assert world.store.get("uid-refused") is None
    assert world.store.get("uid-lost") is None


def test_a_missing_cluster_in_the_same_namespace_is_named(world: World, kube: Kube) -> None:
    refer(world, "move-2", MISSING, "kafka")
    answer_for_missing(world, kube)
    assert world.conditions("move-2") == {"Stalled": "ClusterNotFound"}
    assert "kafka/missing" in status(world, "move-2")["conditions"][0]["message"]


def test_a_cluster_that_appears_and_allows_the_namespace_is_used(world: World, kube: Kube) -> None:
    main = world.store.get("uid-main") or {}
    world.store.drop("uid-main")
    refer(world, "early", MAIN)
    answer_for_missing(world, kube, MAIN)
    assert world.conditions("early") == {"Stalled": "NamespaceNotAllowed"}
    world.store.put(main)
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=[{"name": "team-a", "topics": ["*"]}]))
    connect(world.loop, world.brokers, world.store.parse_cluster(world.store.get("uid-main") or {}))
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_a_cancel_in_flight_waits_for_a_missing_cluster(world: World, kube: Kube) -> None:
    world.change("move", lambda obj: obj["metadata"].update(namespace="team-a"))
    world.change("move", lambda obj: obj["spec"]["clusterRef"].update(namespace="kafka"))
    world.store.drop("uid-main")
    world.delete("move")
    answer_for_missing(world, kube, MAIN)
    assert world.conditions("move") == {"Reconciling": "Cancelling", "Stalled": "NamespaceNotAllowed"}
    assert OURS in world.kafka.reassignments


def test_a_cluster_in_a_namespace_that_is_not_watched_is_not_asked_for(world: World, kube: Kube) -> None:
    refer(world, "lost", MISSING)
    answer_for_missing(world, kube, namespaces=("team-a",))
    assert kube.asked == []
    assert world.conditions("lost") == {"Stalled": "NamespaceNotAllowed"}
