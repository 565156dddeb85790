"""What has ended is packed: it takes little room, is read as the whole is, and is judged for drift in its turn."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.cluster import pace
from reassign.controller.cluster.pace import DriftTurn
from reassign.controller.objects.packing import COPY, Packed, whole
from reassign.controller.objects.part import Part
from reassign.controller.objects.reading import joined, packed, parse_resource
from reassign.controller.objects.store import Store
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.expiry import expired
from tests.unit.sim import partitions, resource
from tests.unit.world import LATER, OURS, Object, World, forget

KEY = ("kafka", "main")
UID = "uid-move"


@pytest.fixture
def world() -> World:
    """One in which `move` has succeeded, and others have written what the operator does not read."""
    world = World()
    finish(world, "move", OURS)
    return world


def finish(world: World, name: str, tp: TopicPartition) -> None:
    world.kafka.copy(tp)

    def ended() -> bool:
        forget(world.loop, busy={})
        return "Succeeded" in world.conditions(name) and not world.kube.objects[f"uid-{name}"]["metadata"]["finalizers"]

    world.tick(until=ended)


def full(world: World) -> Resource:
    """The resource as it is read where nothing is packed."""
    parts = [o for o in world.kube.objects.values() if o["metadata"]["name"].startswith(f"{UID}-")]
    return joined(parse_resource(world.kube.objects[UID]), [Part.parse(part) for part in parts])


def changed(obj: Object, change: Callable[[Object], object]) -> Object:
    obj = deepcopy(obj)
    change(obj)
    return obj


# --- What is packed ---


def test_a_finished_resource_and_its_records_are_packed(world: World) -> None:
    kinds = {obj["kind"] for uid in world.store.uids() if isinstance(obj := world.store.get(uid), Packed)}
    assert kinds == {"PartitionReassignment", "ReassignmentRecord"}
    assert [kept.uid for kept in world.store.settled(KEY)] == [UID]
    assert world.store.resources(KEY) == []


def test_a_packed_object_has_no_long_part_and_its_whole_has_all(world: World) -> None:
    obj = world.kube.objects[UID]
    obj["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "annotations": {COPY: "{}", "mine": "stays"}}
    found = packed(obj)
    assert whole(found) == obj
    assert "partitions" not in found["spec"] | found["status"]
    assert "managedFields" not in found["metadata"]
    assert found["metadata"]["annotations"] == {"mine": "stays"}
    assert found["status"]["conditions"] == obj["status"]["conditions"]


NOT_PACKED: dict[str, Callable[[Object], object]] = {
    "our finalizer": lambda obj: obj["metadata"].update(finalizers=[FINALIZER]),
    "being deleted": lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-02T00:00:00Z"),
    "edited since": lambda obj: obj["metadata"].update(generation=9),
    "not ended": lambda obj: obj["status"].pop("completionTime"),
    "no outcome": lambda obj: obj["status"].update(conditions=[]),
    "unreadable": lambda obj: obj["spec"].update(mode="Other"),
}


@pytest.mark.parametrize("change", NOT_PACKED.values(), ids=NOT_PACKED)
def test_what_may_have_to_be_served_stays_whole(world: World, change: Callable[[Object], object]) -> None:
    obj = changed(world.kube.objects[UID], change)
    assert packed(obj) is obj


def test_a_record_of_what_is_in_flight_stays_whole(world: World) -> None:
    def reopen(part: Object) -> None:
        part["spec"]["topics"][0]["partitions"][0]["state"] = "InFlight"

    part = world.kube.objects[f"uid-{UID}-0"]
    assert isinstance(packed(part), Packed)
    assert not isinstance(packed(changed(part, reopen)), Packed)


# --- It is read as the whole is ---


def test_a_packed_resource_is_read_as_the_whole_one_with_its_record(world: World) -> None:
    found = world.store.resource(UID)
    assert found == full(world)
    assert found
    assert found.record
    assert world.store.settled(KEY) == [Settled.of(full(world))]


@pytest.mark.parametrize("seconds", [59, 60])
def test_a_packed_resource_expires_when_the_whole_one_does(world: World, seconds: int) -> None:
    world.change("move", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=60))
    world.tick(2)
    found, kept = full(world), world.store.known(UID)
    assert isinstance(kept, Settled)
    assert found.status.completion_time
    now = found.status.completion_time + timedelta(seconds=seconds)
    assert expired(kept, now) is expired(found, now) is (seconds == 60)


def test_a_resource_that_lost_its_record_is_kept_whole(world: World) -> None:
    world.store.drop(f"uid-{UID}-0")
    assert world.store.settled(KEY) == []
    [found] = world.store.resources(KEY)
    assert found.record_lost


def test_an_edit_opens_a_packed_resource(world: World) -> None:
    world.change("move", lambda obj: obj["spec"]["partitions"][0].update(replicas=[5, 2, 3]))
    assert world.store.settled(KEY) == []
    [found] = world.store.resources(KEY)
    assert found.wanted == {OURS: (5, 2, 3)}
    assert found.record == full(world).record
    world.tick(until=lambda: OURS in world.kafka.reassignments)


def test_a_new_process_packs_what_it_finds(world: World) -> None:
    before = world.store.settled(KEY)
    world.restart()
    assert world.store.settled(KEY) == before
    assert world.store.resources(KEY) == []


# --- Lists ---


def test_what_is_listed_again_is_not_packed_again(world: World) -> None:
    known = world.store.get(UID)
    assert packed(deepcopy(world.kube.objects[UID]), known) is known


def test_another_history_of_a_packed_object_is_taken_over(world: World) -> None:
    other = changed(world.kube.objects[UID], lambda obj: obj["spec"]["partitions"][0].update(replicas=[5, 2, 3]))
    listed = packed(other, world.store.get(UID))
    world.store.take_over([listed], {UID: int(other["metadata"]["resourceVersion"])})
    found = world.store.resource(UID)
    assert found
    assert found.wanted == {OURS: (5, 2, 3)}


def test_an_object_is_found_where_it_refers_to_now(world: World) -> None:
    store = Store()
    obj = deepcopy(world.kube.objects[UID])
    store.put(obj)
    moved = changed(obj, lambda obj: obj["spec"].update(clusterRef={"name": "other"}))
    moved["metadata"]["resourceVersion"] = "999"
    store.put(moved)
    assert store.referred() == {("kafka", "other")}
    assert [r.uid for r in store.resources(("kafka", "other"))] == [UID]
    store.drop(UID)
    assert store.referred() == set()


# --- Drift ---


def named(number: int, count: int) -> Resource:
    found = resource(dict.fromkeys(partitions(count), (1, 2, 3)))
    return replace(found, uid=f"uid-{number}", created=datetime(2026, 1, 1 + number, tzinfo=UTC))


def turns(sizes: list[int], times: int) -> list[list[int]]:
    """Which of the resources of these sizes are judged at each of so many turns."""
    resources = [named(number, count) for number, count in enumerate(sizes)]
    turn = DriftTurn()
    return [[int(uid.removeprefix("uid-")) for uid in turn.next(resources[::-1])] for _ in range(times)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], [[], []]),
        ([4, 4], [[0, 1], [0, 1]]),
        ([4, 4, 4], [[0, 1], [2], [0, 1]]),
        ([20, 1, 9, 1], [[0], [1, 2], [3], [0]]),
    ],
)
def test_what_has_ended_is_judged_some_at_a_time_in_turn(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], expected: list[list[int]]
) -> None:
    monkeypatch.setattr(pace, "DRIFT_PARTITIONS", 10)
    assert turns(sizes, len(expected)) == expected


def test_what_is_no_longer_allowed_is_not_judged(world: World) -> None:
    foreign = deepcopy(world.kube.objects[UID])
    foreign["metadata"] |= {"uid": "uid-foreign", "name": "foreign", "namespace": "elsewhere"}
    foreign["spec"]["clusterRef"] = {"name": "main", "namespace": "kafka"}
    foreign["status"].pop("progress")
    world.store.put(foreign)
    assert {kept.uid for kept in world.store.settled(KEY)} == {UID, "uid-foreign"}
    cluster = world.store.parse_cluster(world.store.get("uid-main") or {})
    assert [kept.uid for kept in world.loop.unserved.settled(cluster)] == [UID]


def test_each_finished_resource_is_found_to_have_drifted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add("second", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    finish(world, "second", LATER)
    for tp in (OURS, LATER):
        world.kafka.replicas[tp] = (5, 2, 3)
    monkeypatch.setattr(pace, "DRIFT_PARTITIONS", 1)
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: float("inf"), process_time=lambda: 0.0))
    drifted = []
    for _ in range(3):
        world.tick()
        assert len(world.brokers.asked & {OURS.topic, LATER.topic}) == 1
        drifted.append({name for name in ("move", "second") if "Drifted" in world.conditions(name)})
    assert all(len(after - before) <= 1 for before, after in pairwise(drifted))
    assert drifted[-1] == {"move", "second"}
    assert {kept.uid for kept in world.store.settled(KEY)} == {UID, "uid-second"}
