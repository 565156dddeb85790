"""A bug of the operator with one resource is reported on that one alone; the others continue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reassign.controller.cluster import actor
from reassign.core import tick
from reassign.kafka.client import KafkaClient
from tests.unit.world import LATER, OURS, THEIRS, World, fails_for

pytestmark = pytest.mark.usefixtures("logged")


@pytest.fixture
def world() -> World:
    return World()


WHERE = [(actor, "report"), (tick, "follow")]
"""Where its status is made, and where it is judged."""


@pytest.mark.parametrize(("where", "function"), WHERE)
def test_a_bug_with_one_resource_leaves_the_undo_of_others_running(
    world: World, monkeypatch: pytest.MonkeyPatch, logged: list[Any], where: Any, function: str
) -> None:
    fails_for(monkeypatch, where, function, "bad")
    world.add("bad", LATER, (4, 2, 3))
    world.tick(2)
    assert isinstance(logged[-1]["exc_info"], ZeroDivisionError)
    assert world.conditions("bad") == {"Stalled": "InternalError"}
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}
    counted = 'reconciliations_failed_total{kafka_cluster="kafka/main",reason="InternalError"}'
    assert counted in world.metrics.text().decode()


@pytest.mark.parametrize(("where", "function"), WHERE)
def test_others_start_beside_a_bug_with_a_resource_not_in_flight(
    world: World, monkeypatch: pytest.MonkeyPatch, where: Any, function: str
) -> None:
    fails_for(monkeypatch, where, function, "bad")
    world.add("bad", OURS, (5, 2, 3))
    world.tick(2)
    world.add("good", LATER, (5, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_nothing_starts_while_in_flight_moves_cannot_be_judged(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_for(monkeypatch, tick, "follow", "move")
    world.add("good", OURS, (5, 2, 3))
    world.add("other", LATER, (5, 2, 3))
    world.tick(5)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert world.conditions("move") == {"Stalled": "InternalError"}
    monkeypatch.undo()
    world.tick(until=lambda: LATER in world.kafka.reassignments)


@pytest.mark.parametrize(("where", "function"), WHERE)
def test_cancel_all_cancels_moves_of_a_resource_with_a_bug(
    world: World, monkeypatch: pytest.MonkeyPatch, where: Any, function: str
) -> None:
    fails_for(monkeypatch, where, function, "move")
    world.pull("CancelAll")
    world.tick(2)
    assert world.kafka.reassignments == {}
    assert sorted(topic for kept in world.kept() for topic in kept) == ["ours", "theirs"]


def test_a_resource_with_a_bug_is_deleted_when_nothing_is_in_flight(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_for(monkeypatch, tick, "follow", "bad")
    world.add("bad", LATER, (4, 2, 3))
    world.tick(2)
    world.delete("bad")
    world.tick(2)
    assert world.store.get("uid-bad") is None


def test_a_bug_in_observing_is_reported_on_the_cluster_and_its_resources(
    world: World, monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    monkeypatch.setattr(world.brokers, "observe", lambda *_: 1 / 0)
    world.delete("move")
    world.add("late", LATER, (4, 2, 3))
    world.tick()
    assert world.conditions("main") == {"Stalled": "InternalError"}
    assert world.conditions("late") == {"Stalled": "InternalError"}
    assert world.conditions("move") == {"Reconciling": "Cancelling", "Stalled": "InternalError"}
    assert any(isinstance(line.get("exc_info"), ZeroDivisionError) for line in logged)
    counted = 'reconciliations_failed_total{kafka_cluster="kafka/main",reason="InternalError"} 1.0'
    assert counted in world.metrics.text().decode()
    monkeypatch.undo()

    async def connect(*_: object, **__: object) -> Any:
        return world.brokers

    monkeypatch.setattr(KafkaClient, "connect", connect)
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.conditions("main") == {"Ready": "Connected"}


def test_a_bug_with_no_single_resource_is_the_clusters(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick, "admit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        world.tick()
    assert world.conditions("move") == {"Reconciling": "PartitionsInFlight"}


def test_a_bug_in_serving_the_cluster_is_reported_while_it_lasts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tick, "admit", lambda *_: 1 / 0)
    for _ in range(4):
        asyncio.run(world.loop._safe_tick())  # type: ignore[arg-type]
    assert world.conditions("main") == {"Ready": "Connected", "Stalled": "InternalError"}
    assert world.kube.events.count("InternalError") == 1
    monkeypatch.undo()
    for _ in range(2):
        asyncio.run(world.loop._safe_tick())  # type: ignore[arg-type]
    assert world.conditions("main") == {"Ready": "Connected"}
