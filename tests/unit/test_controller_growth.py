"""What a process remembers does not grow with what it has served: objects come, are served and go, again and again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import pytest

from reassign.controller.supervisor import Supervisor
from reassign.controller.writing import writer
from reassign.core.model.log_dir_reports import FORGET_SECONDS, LogDirReports
from reassign.core.model.memory import Doubted, Recent
from reassign.core.model.problem import Problem
from reassign.core.model.steps import AlterLogDirs
from reassign.errors import Reason
from reassign.kube import events
from tests.unit.sim import SimKafka, drive, partitions, resource
from tests.unit.world import LATER, World, forget

ROUNDS = 4
PLAIN = (str, bytes, int, float, type, ModuleType, FunctionType, asyncio.Event)


def sizes(root: object) -> dict[str, int]:
    """The number of elements in every container that can be reached, by its path, where that is not empty."""
    seen: set[int] = set()
    found: dict[str, int] = {}
    left: list[tuple[str, object]] = [("", root)]
    while left:
        path, value = left.pop()
        if id(value) in seen or value is None or isinstance(value, PLAIN):
            continue
        seen.add(id(value))
        if isinstance(value, (Mapping, list, tuple, set, frozenset, deque)):
            found[path] = len(value)
            left += [(f"{path}[]", each) for each in (value.values() if isinstance(value, Mapping) else value)]
        elif type(value).__module__.startswith("reassign"):
            left += [(f"{path}.{name}", field) for name, field in fields_of(value)]
    return {path: size for path, size in found.items() if "[]" not in path}


def fields_of(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for name in getattr(type(value), "__slots__", ()):
        if hasattr(value, name):
            yield name, getattr(value, name)


def serve_one(world: World, number: int) -> None:
    """A resource moves LATER to where it is not, and goes when it has."""
    name = f"visitor-{number}"
    here = world.kafka.replicas[LATER]
    world.add(name, LATER, (4, 2, 3) if 1 in here else (1, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick()
    world.kafka.copy(LATER)

    def ended() -> bool:
        forget(world.loop, busy={})
        return "Succeeded" in world.conditions(name)

    world.tick(until=ended)
    gone(world, name)


def refuse_one(world: World, number: int) -> None:
    """A resource that may not refer to the KafkaCluster comes and goes: it never has our finalizer."""
    name = f"stranger-{number}"
    world.add(name, LATER, (4, 2, 3))
    world.change(name, lambda obj: obj["metadata"].update(namespace="elsewhere"))
    world.change(name, lambda obj: obj["spec"].update(clusterRef={"name": "main", "namespace": "kafka"}))
    world.tick(2)
    gone(world, name)


def gone(world: World, name: str) -> None:
    uid = f"uid-{name}"
    assert (world.store.get(uid) or {})["status"]["conditions"]
    records = [part.obj["metadata"]["uid"] for part in world.store.parts(uid)]
    for each in (uid, *records):
        world.kube.objects.pop(each)
        world.store.drop(each)


def test_a_loop_remembers_nothing_of_what_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "REMEMBERED", 5)
    monkeypatch.setattr(writer, "PROGRESS_SECONDS", 0.0)
    world = World()

    def after_a_round(number: int) -> dict[str, int]:
        serve_one(world, 2 * number)
        serve_one(world, 2 * number + 1)
        refuse_one(world, number)
        world.tick(3)
        return sizes(world.loop)

    after_a_round(0)
    first = after_a_round(1)
    assert [size for path, size in first.items() if path.endswith("store._objects")] == [4]
    for number in range(2, ROUNDS):
        last = after_a_round(number)
    grown = {path: (first.get(path, 0), size) for path, size in last.items() if size > first.get(path, 0)}
    assert grown == {}


def test_the_loop_of_a_cluster_that_has_gone_is_forgotten() -> None:
    world = World()
    kube: Any = world.kube

    class Loop:
        def __init__(self, key: object) -> None:
            self.wake = asyncio.Event()

        async def run(self) -> None:
            pass

    make: Any = Loop
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), make)

    async def serve() -> None:
        supervisor._serving = True
        supervisor._wake(("kafka", "main"))
        assert len(supervisor._loops) == 1
        world.store.drop("uid-main")
        await asyncio.sleep(0.01)

    asyncio.run(serve())
    assert supervisor._loops == {}


def test_a_doubt_about_a_partition_that_nobody_wants_is_forgotten() -> None:
    tp, other = partitions(2)
    driver = drive(SimKafka({tp: (1, 2, 3)}), resource({tp: (4, 2, 3)}))
    problem = Problem(Reason.REQUEST_FAILED, "the answer was lost")
    driver.recent = driver.recent.remember([Doubted(other, (4, 2, 3), problem)], 0.0)
    driver.tick()
    assert driver.recent.doubts == {}


def test_what_a_broker_that_is_gone_was_told_is_forgotten() -> None:
    (tp,) = partitions(1)
    told = LogDirReports().observe(0.0, [1, 2]).instruct([(AlterLogDirs(tp, ((2, "/b"),)), 1.0)], 1.0)
    later = told.observe(FORGET_SECONDS + 2.0, [1])
    assert later.read.keys() == {1}
    assert later.instructions == {}
    assert not later.is_sure(tp, 2, since=float("-inf"))


def test_recent_memory_of_a_partition_ends() -> None:
    (tp,) = partitions(1)
    recent = Recent().observe(0.0, 0.0, [tp])
    assert recent.observe(100.0, 100.0, []).busy == {}
