"""Adaptive pacing: the budget of a KafkaCluster follows what its brokers can take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.world import HELD_BYTES, MB, World, eventually

LIMIT = 4


@pytest.fixture
def adaptive(world: World) -> Iterator[World]:
    """A test with adaptive pacing; afterwards the limits are the defaults again."""
    world.patch("local", {"limits": {"partitionsInFlight": LIMIT, "pacing": "Adaptive"}}, kind="kafkacluster")
    yield world
    world.patch("local", {"limits": None}, kind="kafkacluster")


def status(world: World) -> dict[str, Any]:
    return dict((world.read("local", "kafkacluster") or {})["status"])


def wait_budget(world: World, budget: int) -> dict[str, Any]:
    """Wait until the budget is this; returns what the status says of it."""

    def look() -> dict[str, Any] | None:
        found = status(world).get("pacing", {})
        return found if found.get("partitionsInFlight") == budget else None

    return eventually(f"a budget of {budget}", look, state=lambda: json.dumps(status(world), indent=1))


def test_a_broker_down_halves_the_budget_which_grows_when_it_is_back(adaptive: World) -> None:
    world = adaptive
    orders = world.topic("orders", *[[0, 1]] * 8, size=HELD_BYTES // 2)
    world.topic("others", [0, 3], [1, 3], size=MB)
    world.hold(orders)
    targets = {(orders, number): [2, 1] for number in range(8)}
    name = world.move("paced", targets)
    eventually(f"{LIMIT} in flight", lambda: len(world.kafka.in_flight([orders])) == LIMIT)
    wait_budget(world, LIMIT)
    world.brokers.kill(3)
    try:
        halved = wait_budget(world, LIMIT // 2)
        assert "lost replicas in sync" in halved["message"]
        began = world.kafka.in_flight([orders])
        assert len(began) == LIMIT
    finally:
        world.brokers.restart(3)
    assert ("Warning", "BudgetHalved") in world.events("local")
    back = sorted(began)[: LIMIT // 2]
    targets = {tp: replicas for tp, replicas in targets.items() if tp not in back}
    world.move("paced", targets)
    grown = LIMIT // 2 + 1
    wait_budget(world, grown)
    eventually(f"{grown} in flight", lambda: len(world.kafka.in_flight([orders])) == grown)
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets | {tp: [0, 1] for tp in back})
