"""A record in several parts: one that was lost is missed, and a process killed while it writes loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from reassign.api.limits import MAX_PART_PARTITIONS
from reassign.core.model.record import Entry
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from tests.unit.records import parts
from tests.unit.world import OURS, THEIRS, KilledError, Object, World, api_object, forget

BIG = [TopicPartition("big", number) for number in range(150)]
HERE, THERE = (1, 2, 3), (4, 2, 3)


@pytest.fixture
def world() -> World:
    """A resource of 150 partitions is about to move them."""
    world = World()
    kafka = world.kafka
    kafka.sizes = {tp: dict.fromkeys(range(6), 0) for tp in (*kafka.replicas, *BIG)}  # such moves are not limited
    kafka.topic_ids["big"] = "id-big"
    for tp in BIG:
        kafka.replicas[tp], kafka.isr[tp], kafka.leader[tp] = HERE, frozenset(HERE), HERE[0]
    entries = [{"topic": tp.topic, "partition": tp.partition, "replicas": list(THERE)} for tp in BIG]
    world.put(api_object("PartitionReassignment", "big", {"clusterRef": {"name": "main"}, "partitions": entries}))
    return world


def in_flight(world: World) -> set[TopicPartition]:
    return world.kafka.reassignments.keys() - {OURS, THEIRS}


def finish(world: World) -> None:
    world.tick(until=lambda: in_flight(world) == set(BIG))
    for tp in BIG:
        world.kafka.copy(tp)
    world.tick(until=lambda: "Succeeded" in world.conditions("big"))
    world.tick(2)


def lose(world: World, part: Object) -> None:
    """A cluster administrator removes it, finalizer and all."""
    del world.kube.objects[part["metadata"]["uid"]]
    world.store.drop(part["metadata"]["uid"])


def judge_all(world: World) -> None:
    """Judge the finished resource for drift, and whatever it leads to, as long after the last move."""
    for _ in range(4):
        world.loop._drift._due = float("-inf")
        forget(world.loop, busy={})
        world.tick()


@pytest.mark.parametrize("which", ["first", "last", "all"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_finished_resource_moves_nothing_again_whichever_part_is_lost(
    world: World, which: str, restarted: bool
) -> None:
    finish(world)
    for tp in (BIG[0], BIG[-1]):
        world.kafka.move_as_another(tp, (5, 2, 3))
        world.kafka.copy(tp)
    for part in {"first": parts(world, "big")[:1], "last": parts(world, "big")[1:], "all": parts(world, "big")}[which]:
        lose(world, part)
    if restarted:
        world.restart()
    judge_all(world)
    assert not in_flight(world)
    assert [part["spec"].get("parts") for part in parts(world, "big")] == [2, None]


def test_moves_whose_part_is_lost_are_still_undone(world: World) -> None:
    world.tick(until=lambda: in_flight(world) == set(BIG))
    world.tick()
    lose(world, parts(world, "big")[1])
    world.tick()
    assert world.kube.events.count("RecordRebuilt") == 1
    world.delete("big")
    world.tick(until=lambda: not in_flight(world))


def test_a_record_without_the_number_of_its_parts_is_believed_as_it_is(world: World) -> None:
    """Earlier versions wrote none."""
    finish(world)
    first = parts(world, "big")[0]["metadata"]["uid"]
    world.store.put(world.kube.write(first, lambda obj: obj["spec"].pop("parts")))
    world.restart()
    judge_all(world)
    assert "RecordRebuilt" not in world.kube.events
    assert "Succeeded" in world.conditions("big")


ENTRIES = {
    TopicPartition("big", number): Entry("id-big", HERE, THERE, State.COMPLETED)
    for number in range(2 * MAX_PART_PARTITIONS + 1)
}
"""Those of three parts."""


def written(world: World, monkeypatch: pytest.MonkeyPatch, writes: int | None = None) -> bool:
    """Write ENTRIES as the record, in a process that is killed after so many writes; return whether all is written."""
    resource, left = world.store.resource("uid-big"), iter(range(100 if writes is None else writes))
    assert resource

    def counted(write: Callable[..., Awaitable[Object]]) -> Callable[..., Awaitable[Object]]:
        async def count(*given: Any, **named: Any) -> Object:
            if next(left, None) is None:
                raise KilledError
            return await write(*given, **named)

        return count

    with monkeypatch.context() as patch:
        for name in ("create", "write_record"):
            patch.setattr(world.kube, name, counted(getattr(world.kube, name)))
        try:
            asyncio.run(world.loop.writer.records.write(resource, ENTRIES, held=True))
        except KilledError:
            return False
        finally:
            world.restart()
    return True


def test_a_count_that_was_not_written_is_written_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not written(world, monkeypatch, 3)
    assert [part["spec"].get("parts") for part in parts(world, "big")] == [1, None, None]
    resource = world.store.resource("uid-big")
    assert resource
    asyncio.run(world.loop.writer.record(resource, resource.record, held=True))
    assert [part["spec"].get("parts") for part in parts(world, "big")] == [3, None, None]


def record_lost(world: World) -> bool:
    resource = world.store.resource("uid-big")
    assert resource
    return resource.record_lost


@pytest.mark.parametrize("writes", range(1, 5))
def test_a_record_that_is_half_written_is_not_taken_for_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    assert written(world, monkeypatch, writes) is (writes == 4)
    assert not record_lost(world)
    assert written(world, monkeypatch)
    assert [part["spec"].get("parts") for part in parts(world, "big")] == [3, None, None]


@pytest.mark.parametrize("lost", [{0}, {1}, {2}, {0, 1}, {1, 2}])
def test_a_record_counts_as_lost_until_all_of_it_is_there_again(
    world: World, monkeypatch: pytest.MonkeyPatch, lost: set[int]
) -> None:
    assert written(world, monkeypatch)
    for number, part in enumerate(parts(world, "big")):
        if number in lost:
            lose(world, part)
    for _ in lost:
        assert record_lost(world)
        written(world, monkeypatch, 1)
    assert not record_lost(world)
    assert (big := world.store.resource("uid-big"))
    assert big.record == ENTRIES
