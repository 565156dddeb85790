"""What was changed at the API server while a watch is behind, or while records are written: nothing begins by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from reassign.controller.objects.packing import whole
from reassign.core.model.forwarding import LANDING_SECONDS, SETTLE_SECONDS, Forwarding
from reassign.core.model.steps import Alter, Cancel, Outcome, Result, Step
from reassign.errors import ApiServerError, Reason, ReassignError
from tests.unit.records import record
from tests.unit.world import LATER, OURS, THEIRS, Object, World, api_object, forget

Edit = Callable[[Object], None]
MOVE_LATER = Alter(LATER, (4, 2, 3))


@pytest.fixture
def world() -> World:
    """OURS is in flight, and LATER begins when it has ended."""
    world = World()
    later = {"topic": "later", "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(later))
    world.change("move", lambda obj: obj["spec"].update(concurrency={"partitions": 1}))
    world.tick(2)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    return world


def suspended(obj: Object) -> None:
    obj["spec"]["suspend"] = True
    obj["metadata"]["generation"] += 1


def edited(obj: Object) -> None:
    obj["spec"]["partitions"].pop()
    obj["metadata"]["generation"] += 1


def deleted(obj: Object) -> None:
    obj["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"


def made_again(obj: Object) -> None:
    obj["metadata"]["uid"] = "uid-another"


changes = pytest.mark.parametrize("change", [suspended, edited, deleted, made_again])


def a_batch(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Have this many partitions in one batch."""
    monkeypatch.setattr("reassign.kafka.steps.BATCH", size)


def while_recorded(world: World, monkeypatch: pytest.MonkeyPatch, name: str, change: Edit) -> list[Object]:
    """Have another client change an object while the record of LATER is written; the watch is behind."""
    write_record, changed = world.kube.write_record, []

    async def meanwhile(obj: Object, spec: Object, *, held: bool) -> Object:
        if any(topic["topic"] == "later" for topic in spec.get("topics", ())) and not changed:
            changed.append(world.kube.write(f"uid-{name}", change))
        return await write_record(obj, spec, held=held)

    monkeypatch.setattr(world.kube, "write_record", meanwhile)
    return changed


@changes
def test_nothing_begins_that_has_changed_while_it_was_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch, change: Edit
) -> None:
    changed = while_recorded(world, monkeypatch, "move", change)
    world.kafka.copy(OURS)
    world.tick(3)
    assert changed
    assert MOVE_LATER not in world.kafka.writes
    released = "uid-move" not in world.kube.objects
    assert released or change is made_again or LATER.topic not in record(world)


def test_what_was_left_out_leaves_no_doubt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # a write of an earlier process would be in doubt: no list shows yet that the broker passes on what it was sent
    forget(world.loop, started=time.monotonic() - SETTLE_SECONDS - 1, forwarding=Forwarding())
    while_recorded(world, monkeypatch, "move", suspended)
    world.kafka.copy(OURS)
    world.tick(2)
    assert world.ready("move")["reason"] == "Suspended"
    world.change("move", lambda obj: obj["spec"].update(suspend=False))
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def more_partitions(world: World, numbers: range) -> list[Object]:
    """Entries that move further partitions of LATER's topic."""
    parts = [LATER._replace(partition=number) for number in numbers]
    kafka = world.kafka
    assert kafka.sizes is not None
    kafka.replicas |= dict.fromkeys(parts, kafka.replicas[LATER])
    kafka.isr |= dict.fromkeys(parts, kafka.isr[LATER])
    kafka.leader |= dict.fromkeys(parts, kafka.leader[LATER])
    kafka.sizes |= dict.fromkeys(parts, kafka.sizes[LATER])
    return [{"topic": "later", "partition": number, "replicas": [4, 2, 3]} for number in numbers]


def test_the_cluster_is_read_before_each_batch_a_resource_before_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_batch(monkeypatch, 2)
    for name, numbers in (("one", range(1, 4)), ("other", range(4, 6))):
        spec = {"clusterRef": {"name": "main"}, "partitions": more_partitions(world, numbers)}
        world.put(api_object("PartitionReassignment", name, spec))
    metadata, perform, events = world.kube.metadata, world.kafka.perform, []

    async def read(kind: str, namespace: str, name: str) -> Object | None:
        events.append(name)
        return await metadata(kind, namespace, name)

    def sent(step: Step) -> Outcome:
        events.append(step.tp.topic)
        return perform(step)

    monkeypatch.setattr(world.kube, "metadata", read)
    monkeypatch.setattr(world.kafka, "perform", sent)
    world.tick(until=lambda: "later" in events)
    assert events == ["main", "one", "later", "later", "main", "other", "later", "later", "main", "later"]


@pytest.mark.parametrize("batch", [1, 2])
def test_a_brake_set_between_two_batches_stops_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """What is brought back goes on meanwhile."""
    a_batch(monkeypatch, batch)
    entries = more_partitions(world, range(1, 5))
    world.change("move", lambda obj: obj["spec"].update(partitions=entries, concurrency={"partitions": 9}))
    perform = world.kafka.perform

    def sent(step: Step) -> Outcome:
        if step.tp.topic == "later" and "execution" not in world.kube.objects["uid-main"]["spec"]:
            world.kube.write("uid-main", brake(world, "Pause"))
        return perform(step)

    monkeypatch.setattr(world.kafka, "perform", sent)
    world.tick(4)
    assert len([tp for tp in world.kafka.reassignments if tp.topic == "later"]) == batch
    assert world.kafka.replicas[OURS] == (1, 2, 3)


@changes
def test_nothing_begins_by_a_version_that_the_api_server_has_no_more(world: World, change: Edit) -> None:
    world.kube.write("uid-move", change)  # the watch is behind
    world.kafka.copy(OURS)
    world.tick(3)
    assert MOVE_LATER not in world.kafka.writes
    now = world.kube.objects.get("uid-move")
    if now and change is not made_again:
        assert whole(world.store.get("uid-move") or {}) == now


def test_one_that_changed_meanwhile_keeps_no_other_waiting(world: World) -> None:
    other = LATER._replace(partition=1)
    for known in (world.kafka.replicas, world.kafka.isr, world.kafka.leader, world.kafka.sizes):
        known[other] = known[LATER]  # type: ignore[index]
    world.add("other", other, (4, 2, 3))
    world.kube.write("uid-move", suspended)
    world.kafka.copy(OURS)
    world.tick(until=lambda: other in world.kafka.reassignments)
    assert MOVE_LATER not in world.kafka.writes


def test_metadata_is_read_only_for_what_begins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata, read = world.kube.metadata, []

    async def count(kind: str, namespace: str, name: str) -> Object | None:
        read.append(name)
        return await metadata(kind, namespace, name)

    monkeypatch.setattr(world.kube, "metadata", count)
    world.tick(3)
    assert read == []
    world.kafka.copy(OURS)
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert read == ["main", "move"]
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert read == ["main", "move"]


def brake(world: World, execution: str) -> Edit:
    def pull(obj: Object) -> None:
        obj["spec"]["execution"] = execution
        obj["metadata"]["generation"] += 1

    return pull


@pytest.mark.parametrize("seen", [True, False], ids=["brought by the watch", "the watch is behind"])
@pytest.mark.parametrize("execution", ["Pause", "CancelOurs"])
def test_a_brake_set_while_records_are_written_holds_in_that_tick(
    world: World, monkeypatch: pytest.MonkeyPatch, execution: str, seen: bool
) -> None:
    write_record, pulled = world.kube.write_record, []

    async def meanwhile(obj: Object, spec: Object, *, held: bool) -> Object:
        if any(topic["topic"] == "later" for topic in spec.get("topics", ())) and not pulled:
            pulled.append(world.kube.write("uid-main", brake(world, execution)))
            if seen:
                world.store.put(pulled[0])
        return await write_record(obj, spec, held=held)

    monkeypatch.setattr(world.kube, "write_record", meanwhile)
    world.kafka.copy(OURS)
    world.tick(3)
    assert pulled
    assert MOVE_LATER not in world.kafka.writes
    assert LATER.topic not in record(world)
    world.pull("Run")
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def recorded_and_not_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick in which the KafkaCluster could not be read again after the record of LATER was written."""
    get = world.kube.get

    async def fails(kind: str, namespace: str, name: str) -> Object | None:
        if name == "main":
            raise ApiServerError("500")
        return await get(kind, namespace, name)

    with monkeypatch.context() as patch:
        patch.setattr(world.kube, "get", fails)
        world.kafka.copy(OURS)
        world.tick()
    assert record(world)[LATER.topic]["state"] == "Submitting"
    assert MOVE_LATER not in world.kafka.writes


def test_what_was_recorded_and_not_sent_is_judged_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded_and_not_sent(world, monkeypatch)
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_what_was_recorded_in_the_same_second_is_read_once_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = world.kube.now()
    world.kube.clock = lambda: now
    recorded_and_not_sent(world, monkeypatch)
    world.kube.write("uid-move", suspended)
    world.tick(3)
    assert MOVE_LATER not in world.kafka.writes


def test_a_cancel_without_record_and_answer_is_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(steps: list[Step], still_valid: object = None) -> dict[Step, Outcome]:
        assert [type(step) for step in steps] == [Cancel]
        return dict.fromkeys(steps, Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "lost"))

    async def refuse(*_: object, **__: object) -> Any:
        raise ApiServerError("500")

    world.pull("CancelOurs")
    monkeypatch.setattr(world.brokers, "perform", lost)
    for method in ("get", "write_record", "write_status", "create"):
        monkeypatch.setattr(world.kube, method, refuse)
    asyncio.run(world.loop._safe_tick())
    assert record(world)[OURS.topic]["state"] == "InFlight"
    assert set(world.loop.memory.recent.unanswered) == {OURS}
    assert not world.loop.memory.recent.settled(OURS)


def marked(world: World) -> bool:
    return world.store.foreign_cancels("uid-main")


def cancel_all(world: World) -> None:
    world.pull("CancelAll")
    world.tick(until=lambda: not world.kafka.reassignments)
    assert marked(world)
    world.add("late", LATER, (4, 2, 3))


def test_after_a_restart_nothing_begins_while_a_cancel_of_others_may_land(world: World) -> None:
    cancel_all(world)
    world.restart()
    forget(world.loop, started=time.monotonic())
    world.pull("Run")
    world.tick(3)
    assert not world.kafka.reassignments
    assert world.conditions("main")["Paused"] == "Connecting"
    assert marked(world)
    forget(world.loop, started=time.monotonic() - LANDING_SECONDS)
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert not marked(world)


def test_the_process_that_cancelled_moves_of_others_goes_on_at_once(world: World) -> None:
    cancel_all(world)
    world.pull("Run")
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert not marked(world)


def test_no_move_of_others_is_cancelled_that_cannot_be_marked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> Any:
        raise ReassignError(Reason.NOT_AUTHORIZED, "403")

    monkeypatch.setattr(world.loop.writer.records, "mark_foreign_cancels", refuse)
    world.pull("CancelAll")
    world.tick(5)
    assert set(world.kafka.reassignments) == {THEIRS}
