"""Pacing in the loop: when all partitions are looked at for it, and what its status, events and metrics say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reassign.controller.cluster.observer import SURVEY_SECONDS
from reassign.core.admission.pacing import Pacer
from reassign.core.model.snapshot import Partition, Topic
from reassign.errors import ConflictError
from tests.unit.world import LATER, OURS, THEIRS, World

SHORT = {"other": Topic("id", 1, {0: Partition((1, 2, 3), frozenset({1, 2}), 1)})}


def limit(world: World, **limits: Any) -> None:
    world.change("main", lambda obj: obj["spec"].update(limits=limits))


def pacing(world: World) -> dict[str, Any]:
    return dict((world.store.get("uid-main") or {})["status"].get("pacing", {}))


def look(world: World) -> None:
    """The next tick looks at all partitions."""
    world.loop.observer._survey._at -= SURVEY_SECONDS
    world.tick()


@pytest.fixture
def adaptive() -> World:
    """Two partitions are in flight, which is all that may be, and one waits; everything has been looked at once."""
    world = World()
    limit(world, partitionsInFlight=2, pacing="Adaptive")
    world.add("later", LATER, (4, 2, 3))
    world.tick(2)
    look(world)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert pacing(world) == {"partitionsInFlight": 2}
    return world


@pytest.fixture
def halved(adaptive: World) -> World:
    """Halve the budget: a partition that is not being moved loses a replica."""
    adaptive.brokers.short = SHORT
    look(adaptive)
    assert pacing(adaptive)["partitionsInFlight"] == 1
    return adaptive


def test_a_halving_is_reported_and_bounds_what_starts(halved: World) -> None:
    world, found = halved, pacing(halved)
    assert "other-0" in found["message"]
    assert found["lastHalvedTime"]
    assert world.kube.events.count("BudgetHalved") == 1
    gauge = 'kafka_reassign_partitions_in_flight_limit{kafka_cluster="kafka/main"} 1.0'
    assert gauge in world.metrics.text().decode().splitlines()
    world.kafka.copy(THEIRS)
    world.tick(3)
    assert set(world.kafka.reassignments) == {OURS}
    assert world.conditions("later") == {"Reconciling": "WaitingForBudget"}
    world.kafka.copy(OURS)
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_while_nothing_changes_nothing_is_written(halved: World) -> None:
    def written() -> list[str]:
        counted = (line for line in halved.metrics.text().decode().splitlines() if "status_patches_total " in line)
        return [*counted, *halved.kube.events]

    before = written()
    for _ in range(3):
        look(halved)
    assert written() == before


def test_a_halving_that_could_not_be_written_is_written_at_the_next_tick(
    adaptive: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = adaptive
    world.brokers.short = SHORT

    async def conflict(*_: object) -> None:
        raise ConflictError("another version")

    with monkeypatch.context() as patch:
        patch.setattr(world.kube, "write_status", conflict)
        look(world)
    assert pacing(world)["partitionsInFlight"] == 2
    world.tick()
    assert pacing(world)["partitionsInFlight"] == 1
    assert world.kube.events.count("BudgetHalved") == 1


def test_a_new_process_resumes_the_budget_from_the_status_or_the_limit(halved: World) -> None:
    world, found = halved, pacing(halved)
    world.loop.memory = replace(world.loop.memory, pacer=Pacer())  # as a new process has it
    look(world)
    assert pacing(world) == found
    world.loop.memory = replace(world.loop.memory, pacer=Pacer())
    world.change("main", lambda obj: obj["status"].pop("pacing"))
    world.tick()
    assert pacing(world) == {"partitionsInFlight": 2}


def test_the_budget_stays_as_it_was_left_while_the_brake_is_pulled(halved: World) -> None:
    world, found = halved, pacing(halved)
    world.pull("Pause")
    look(world)
    assert pacing(world) == found


def test_pause_when_never_surveys_partitions_and_pauses_nothing(adaptive: World) -> None:
    world = adaptive
    world.change("main", lambda obj: obj["spec"].update(pauseWhen="Never"))
    look(world)
    world.brokers.short = {"other": Topic("id", 2, {0: Partition((1, 2, 3), frozenset({1}), 1)})}
    look(world)
    assert pacing(world)["partitionsInFlight"] == 1
    assert "Paused" not in world.conditions("main")


def test_with_fixed_pacing_the_limit_holds_whatever_is_short(adaptive: World) -> None:
    world = adaptive
    limit(world, partitionsInFlight=2)
    look(world)
    world.brokers.short = SHORT
    look(world)
    assert pacing(world) == {}
    assert "BudgetHalved" not in world.kube.events
    world.kafka.copy(THEIRS)
    world.tick(until=lambda: set(world.kafka.reassignments) == {OURS, LATER})
