"""allowedNamespaces: other namespaces move the topics that they may, and learn nothing of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.e2e.world import HELD_BYTES, Object, World


def elsewhere(world: World) -> Object:
    """clusterRef from another namespace."""
    return {"name": world.cluster, "namespace": world.namespace}


def allow(world: World, team: World, *topics: str) -> None:
    allowed = [{"name": team.namespace, "topics": list(topics)}] if topics else []
    world.patch(world.cluster, {"allowedNamespaces": allowed}, kind="kafkacluster")


@pytest.fixture
def team(world: World) -> Iterator[World]:
    """The view from another namespace; afterwards that is gone, and not allowed any more."""
    team = replace(world, namespace=f"{world.prefix}-team", resources=[], topics=[])
    world.kubectl("create", "namespace", team.namespace)
    yield team
    team.clean_up()
    allow(world, team)
    world.kubectl("delete", "namespace", team.namespace, "--wait=false")


def test_a_namespace_moves_the_topics_that_it_is_allowed(world: World, team: World) -> None:
    own, other = team.topic("own", [0, 1], size=HELD_BYTES), team.topic("other", [0, 1])
    team.hold(own)
    name = team.move("move", {(own, 0): [2, 3], (other, 0): [2, 3]}, clusterRef=elsewhere(world))
    refused = team.wait_for(name, "Stalled", reason="NamespaceNotAllowed")
    assert team.namespace in refused["message"]
    status = (team.read(name) or {})["status"]
    assert {key for key, value in status.items() if value} == {"observedGeneration", "conditions"}
    nowhere = team.move(
        "nowhere", {(own, 0): [2, 3]}, clusterRef=elsewhere(world) | {"name": f"{world.prefix}-unknown"}
    )
    assert team.wait_for(nowhere, "Stalled", reason="NamespaceNotAllowed")["message"] == refused["message"]

    allow(world, team, own)
    team.wait_in_flight((own, 0))
    team.wait_partition(name, other, state="Blocked", reason="NamespaceNotAllowed")

    allow(world, team)
    world.wait_for(world.cluster, "Ready", kind="kafkacluster")
    assert (own, 0) in team.kafka.in_flight([own])
    team.delete(name)
    team.wait_gone(name)
    team.brokers_say({(own, 0): [0, 1], (other, 0): [0, 1]})
