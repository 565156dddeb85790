"""What the API server refuses for one object, or one namespace: the others go on, and nothing is repeated at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reassign.api.common import API_VERSION, FINALIZER
from reassign.controller.cluster.loop import WAITING_SECONDS
from reassign.errors import ApiServerError, ConflictError, Reason, ReassignError
from reassign.kube.lease import LeaseLost
from tests.unit.claimed import Throttled
from tests.unit.throttling import show_changes
from tests.unit.world import LATER, OURS, THEIRS, Object, World, api_object, forget

FORBIDDEN = ReassignError(Reason.NOT_AUTHORIZED, "exceeded quota of team-b")
WEBHOOK = ApiServerError("500: failed calling webhook")


@pytest.fixture
def world() -> World:
    """Nothing is in flight but another client's move, and there is one place more."""
    world = World()
    world.kafka.copy(OURS)
    world.tick(10)
    limits = {"partitionsInFlight": 2, "smallMoveBytes": 0}
    allowed = [{"name": "team-b", "topics": ["ours"]}]
    world.change("main", lambda obj: obj["spec"].update(limits=limits, allowedNamespaces=allowed))
    return world


def add_elsewhere(world: World, name: str = "elsewhere") -> None:
    """A resource of another namespace that moves OURS, and was served while it was suspended."""
    entry = {"topic": "ours", "partition": 0, "replicas": [1, 2, 3]}
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "suspend": True, "partitions": [entry]}
    obj = api_object("PartitionReassignment", name, spec)
    obj["metadata"]["namespace"] = "team-b"
    world.put(obj)
    world.tick(3)
    world.change(name, lambda obj: obj["spec"].update(suspend=False))
    forget(world.loop, busy={})


def refuse(
    world: World, error: ReassignError, *methods: str, namespace: str = "team-b", of: Callable[[Object], bool] = bool
) -> None:
    """Have the API server answer these requests about objects of a namespace with an error."""

    def refusing(real: Any) -> Any:
        async def method(*arguments: Any, **options: Any) -> Any:
            first = arguments[0]
            place = first["metadata"]["namespace"] if isinstance(first, dict) else arguments[1]
            if place == namespace and (not isinstance(first, dict) or of(first)):
                raise error
            return await real(*arguments, **options)

        return method

    for name in methods:
        setattr(world.kube, name, refusing(getattr(world.kube, name)))


def pauses(world: World, ticks: int = 12) -> list[float]:
    """How long the loop would wait after each tick."""
    return [asyncio.run(world.loop._safe_tick()) or 0.0 for _ in range(ticks)]


RECORDS, READS = ("write_record", "create"), ("get", "metadata")


@pytest.mark.parametrize("error", [FORBIDDEN, WEBHOOK], ids=["forbidden", "webhook"])
def test_a_resource_that_cannot_be_recorded_takes_no_place_from_others(world: World, error: ReassignError) -> None:
    add_elsewhere(world)
    refuse(world, error, *RECORDS)
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)
    pauses(world, 2)
    assert OURS not in world.kafka.reassignments
    ready = next(c for c in world.store.get("uid-elsewhere")["status"]["conditions"] if c["type"] == "Ready")  # type: ignore[index]
    assert ready["reason"] == error.reason
    assert f"its record or status cannot be written: {error.message}" in ready["message"]


def test_an_edit_that_cannot_be_recorded_is_not_said_to_be_done(world: World) -> None:
    refuse(world, FORBIDDEN, *RECORDS, namespace="kafka")
    moved = {"topic": "ours", "partition": 0, "replicas": [5, 2, 3]}
    world.change("move", lambda obj: obj["spec"].update(partitions=[moved]))
    forget(world.loop, busy={})
    pauses(world, 4)
    assert "Succeeded" not in world.conditions("move")
    assert world.kafka.replicas[OURS] == (4, 2, 3)


def test_a_refusal_delays_neither_anothers_undo_nor_its_replacement() -> None:
    world = World()
    allowed = [{"name": "team-b", "topics": ["ours"]}]
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=allowed))
    add_elsewhere(world)  # it asks for the replicas that the other one came from
    refuse(world, FORBIDDEN, *RECORDS)
    world.delete("move")
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)
    assert world.kafka.replicas[OURS] == (1, 2, 3)
    pauses(world, 3)
    world.delete("elsewhere")
    world.safe_tick(until=lambda: world.store.get("uid-elsewhere") is None)
    forget(world.loop, busy={})
    world.add("again", OURS, (1, 2, 3))
    world.safe_tick(until=lambda: "Succeeded" in world.conditions("again"))


@pytest.mark.parametrize("error", [FORBIDDEN, WEBHOOK], ids=["forbidden", "webhook"])
def test_a_resource_with_an_unwritable_status_takes_no_place_from_others(world: World, error: ReassignError) -> None:
    world.change("main", lambda obj: obj["spec"]["limits"].update(partitionsInFlight=1))
    add_elsewhere(world)
    refuse(world, error, "write_status")
    world.add("late", LATER, (4, 2, 3))
    pauses(world, 4)
    world.kafka.reassignments.pop(THEIRS)
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)
    assert OURS not in world.kafka.reassignments


def test_a_resource_of_an_unreadable_namespace_takes_no_place_from_others(world: World) -> None:
    add_elsewhere(world)
    refuse(world, FORBIDDEN, *RECORDS, *READS, "write_status", "add_finalizer", "remove_finalizer")
    world.store.unreadable_namespaces.add("team-b")
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)
    assert OURS not in world.kafka.reassignments


def test_a_move_that_cannot_be_recorded_slows_no_other() -> None:
    world = Throttled()
    before = dict(world.rates)
    refuse(world, FORBIDDEN, "create", namespace="kafka", of=lambda obj: "stuck" in obj["metadata"]["name"])
    world.add("stuck", LATER, (4, 2, 3))
    world.change("stuck", lambda obj: obj["spec"].update(throttle={"interBroker": "1Ki"}))
    slowed = 0
    for _ in range(12):
        show_changes(world.loop)
        forget(world.loop, busy={})
        pauses(world, 1)
        slowed += world.rates != before
    assert LATER not in world.kafka.reassignments
    assert slowed <= 1  # at the first attempt
    assert world.rates == before


@pytest.mark.parametrize("method", ["write_status", "add_finalizer"])
def test_what_is_refused_is_not_asked_for_at_once(world: World, method: str) -> None:
    refuse(world, FORBIDDEN, method, namespace="kafka", of=lambda obj: obj["metadata"]["name"] == "late")
    world.add("late", LATER, (4, 2, 3))
    assert pauses(world)[-1] == WAITING_SECONDS


def test_while_the_api_server_is_away_the_loop_waits(world: World) -> None:
    writes = ("write_status", "add_finalizer", "remove_finalizer")
    refuse(world, ApiServerError("connection refused"), *RECORDS, *READS, *writes, namespace="kafka")
    world.add("late", LATER, (4, 2, 3))
    assert pauses(world)[-1] == WAITING_SECONDS


def test_a_conflict_about_a_record_is_asked_about_before_its_next_release() -> None:
    world = World()
    world.delete("move")
    real, conflicts = world.kube.remove_finalizer, 0

    async def remove(obj: Object) -> Object:
        nonlocal conflicts
        if obj["kind"] == "ReassignmentRecord" and not conflicts:  # the watch does not bring this
            world.kube.write(obj["metadata"]["uid"], lambda new: new["metadata"].update(annotations={"x": "y"}))
        try:
            return await real(obj)
        except ConflictError:
            conflicts += 1
            raise

    world.kube.remove_finalizer = remove  # type: ignore[method-assign]
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)
    assert conflicts == 1


def test_an_owner_that_cannot_be_asked_for_holds_nothing_else(world: World) -> None:
    entry = {"partition": 0, "originalReplicas": [1, 2, 3], "targetReplicas": [5, 2, 3], "state": "InFlight"}
    topics = [{"topic": "theirs", "topicId": "id-theirs", "partitions": [entry]}]
    spec = {"part": 0, "clusterRef": {"namespace": "kafka", "name": "main"}, "topics": topics}
    part = api_object("ReassignmentRecord", "uid-gone-0", spec)
    owner = {"apiVersion": API_VERSION, "kind": "PartitionReassignment", "name": "gone", "uid": "uid-gone"}
    part["metadata"] |= {"namespace": "team-b", "finalizers": [FINALIZER], "ownerReferences": [owner]}
    world.put(part)
    refuse(world, FORBIDDEN, "get")
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)
    assert THEIRS in world.kafka.reassignments


def test_a_conflict_that_cannot_be_asked_about_ends_no_tick(world: World) -> None:
    add_elsewhere(world)
    refuse(world, ConflictError("409"), "write_status")
    refuse(world, FORBIDDEN, "get")
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)


def test_the_first_status_of_a_cluster_delays_no_deletion() -> None:
    world = World()
    world.change_status("main", dict.clear)
    world.kube.unwritable = {"uid-main"}
    world.delete("move")
    world.safe_tick(until=lambda: OURS not in world.kafka.reassignments)
    world.add("late", LATER, (4, 2, 3))
    pauses(world)
    assert LATER not in world.kafka.reassignments  # nothing begins before it says which cluster it stands for


def test_a_record_that_has_nothing_to_rebuild_is_not_said_to_be_rebuilt() -> None:
    world = World()
    world.kafka.reassignments.pop(OURS)
    for uid in [uid for uid in world.kube.objects if uid.startswith("uid-uid-move")]:
        del world.kube.objects[uid]
    world.restart()
    world.kube.unwritable = {"uid-move"}
    pauses(world, 5)
    assert "RecordRebuilt" not in world.kube.events


def test_a_deletion_whose_records_were_lost_says_what_goes_on() -> None:
    world = World()
    for uid in [uid for uid in world.kube.objects if uid.startswith("uid-uid-move")]:
        del world.kube.objects[uid]
    world.restart()
    world.delete("move")
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)
    assert OURS in world.kafka.reassignments
    assert "ReassignmentOrphaned" in world.kube.events


def test_a_process_that_may_not_write_any_more_ends_without_a_traceback(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async def lost(*_: object) -> Object:
        raise LeaseLost("not renewed in time")

    world.kube.write_status = lost  # type: ignore[method-assign]
    world.add("late", LATER, (4, 2, 3))
    pauses(world, 2)
    shown = capsys.readouterr().out
    assert "nothing is written any more" in shown
    assert "Traceback" not in shown
    assert "unexpectedly" not in shown
