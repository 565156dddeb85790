"""Statuses that another client wiped or wrote: known state stays, and foreign state is not taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.handlers import Supervisor
from reassign.kube.managed import field_manager
from tests.unit.test_controller_loop import (
    FINALIZER_FIELDS,
    LATER,
    OURS,
    RECORD_FIELDS,
    THEIRS,
    KilledError,
    Object,
    World,
)

Edit = Callable[[Object], None]


@pytest.fixture
def world() -> World:
    return World()


def record(world: World, name: str = "move") -> list[Object]:
    """The record that the API server has."""
    found: list[Object] = world.kube.objects[f"uid-{name}"]["status"].get("record", [])
    return found


def states(world: World) -> dict[str, str]:
    """What the record of the resource says, by topic."""
    return {topic["topic"]: topic["partitions"][0]["state"] for topic in record(world)}


def claim_completed(status: Object) -> None:
    status["record"] = deepcopy(status["record"])
    status["record"][0]["partitions"][0]["state"] = "Completed"


WRITTEN_BY_HAND: dict[str, Edit] = {
    "wiped": Object.clear,
    "record removed": lambda status: status.pop("record"),
    "generation removed": lambda status: status.pop("observedGeneration"),
    "record edited": claim_completed,
}
by_hand = pytest.mark.parametrize("by_hand", WRITTEN_BY_HAND.values(), ids=WRITTEN_BY_HAND)


@by_hand
def test_a_status_that_another_client_wrote_is_restored_and_reported(world: World, by_hand: Edit) -> None:
    before = record(world)
    world.change_status("move", by_hand)
    world.tick(3)
    assert record(world) == before
    assert world.store.overwritten(("kafka", "main")) == []
    assert world.kube.events == ["ReassignmentStarted", "StatusRestored"]


@by_hand
def test_an_entry_removed_at_the_same_time_is_cancelled(world: World, by_hand: Edit) -> None:
    world.change_status("move", by_hand)
    later = {"topic": "later", "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"].update(partitions=[later]))
    world.tick(until=lambda: set(world.kafka.reassignments) == {LATER, THEIRS})
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3))


def test_an_entry_edited_at_the_same_time_cancels_our_own_move(world: World) -> None:
    world.change_status("move", Object.clear)
    world.change("move", lambda obj: obj["spec"]["partitions"][0].update(replicas=[5, 2, 3]))
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


@by_hand
def test_a_deletion_at_the_same_time_cancels(world: World, by_hand: Edit) -> None:
    world.change_status("move", by_hand)
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_the_record_is_back_before_anything_that_needs_it(world: World) -> None:
    world.change_status("move", Object.clear)
    world.brokers.reachable = False
    world.tick()
    assert record(world)


def test_statuses_that_cannot_be_restored_do_not_delay_the_brake(world: World) -> None:
    names = ("one", "two", "three", "four")
    for name in names:
        world.add(name, OURS, (5, 2, 3))
    world.tick(2)
    world.kube.unwritable = {f"uid-{name}" for name in names}
    for name in names:
        world.change_status(name, Object.clear)
    world.pull("CancelOurs")
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_nothing_is_begun_whose_record_cannot_be_written_back(world: World) -> None:
    world.brokers.dies = True
    world.add("late", LATER, (4, 2, 3))
    with pytest.raises(KilledError):
        world.tick(5)
    world.brokers.dies = False
    assert record(world, "late")
    world.kube.unwritable = {"uid-late"}
    world.change_status("late", Object.clear)
    world.tick(5)
    assert LATER not in world.kafka.reassignments
    world.kube.unwritable.clear()
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_it_is_written_back_while_the_cluster_is_missing_too(world: World) -> None:
    world.store.drop("uid-main")
    del world.kube.objects["uid-main"]
    world.change_status("move", Object.clear)
    kube, unused = world.kube, None
    supervisor = Supervisor(world.store, kube, world.loop.reporter, world.loop.plans, (), unused)  # type: ignore[arg-type]
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert record(world)
    assert world.conditions("move") == {"Stalled": "ClusterNotFound"}


def test_what_is_settled_is_not_moved_again_when_its_status_is_wiped(world: World) -> None:
    world.kafka.copy(OURS)
    world.tick(until=lambda: "Succeeded" in world.conditions("move"))
    world.tick()
    world.change_status("move", Object.clear)
    world.kafka.move_as_another(OURS, (1, 2, 3))
    world.kafka.copy(OURS)
    world.tick(3)
    assert OURS not in world.kafka.reassignments
    assert "Succeeded" in world.conditions("move")


def test_our_write_counts_when_the_watch_brings_it_before_the_answer(world: World) -> None:
    manager = field_manager("uid-move")
    world.store.put(world.kube.write("uid-move", manager, lambda obj: claim_completed(obj["status"])))
    assert world.store.overwritten(("kafka", "main")) == []
    move = world.store.resource("uid-move")
    assert move
    assert {str(entry.state) for entry in move.record.values()} == {"Completed"}


def test_a_record_without_managed_fields_counts(world: World) -> None:
    obj = world.kube.write("uid-move", "kubectl", lambda obj: claim_completed(obj["status"]))
    obj["metadata"]["managedFields"] = []  # the API server dropped them, since they made the object too large
    world.store.put(obj)
    assert world.store.overwritten(("kafka", "main")) == []


def test_a_status_wiped_while_down_is_rebuilt_and_reported_once(world: World) -> None:
    world.change_status("move", Object.clear)
    world.restart()
    world.tick(3)
    (topic,) = record(world)
    assert topic["partitions"][0]["reason"] == "OrderUnknown"
    assert world.kube.events.count("StatusRebuilt") == 1
    assert "StatusRestored" not in world.kube.events
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def claim_other_originals(status: Object) -> None:
    status["record"] = deepcopy(status["record"])
    status["record"][0]["partitions"][0]["originalReplicas"] = [5, 2, 3]


def test_a_record_edited_while_down_is_rebuilt_from_in_flight_moves(world: World) -> None:
    world.change_status("move", claim_other_originals)
    world.restart()
    world.tick(3)
    (topic,) = record(world)
    assert sorted(topic["partitions"][0]["originalReplicas"]) == [1, 2, 3]


def test_completed_entries_of_a_record_edited_while_down_stay_completed(world: World) -> None:
    entry = {"topic": LATER.topic, "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(entry))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.kafka.copy(OURS)
    world.tick(until=lambda: states(world) == {"later": "InFlight", "ours": "Completed"})
    world.kafka.move_as_another(OURS, (5, 2, 3))
    world.kafka.copy(OURS)
    world.change_status("move", claim_other_originals)  # of the one in flight
    world.restart()
    world.tick(5)
    assert world.kafka.replicas[OURS] == (5, 2, 3)
    assert set(world.kafka.reassignments) == {LATER, THEIRS}
    assert states(world) == {"later": "InFlight", "ours": "Completed"}
    assert sorted(record(world)[0]["partitions"][0]["originalReplicas"]) == [1, 2, 3]
    assert "RecordNotBelieved" in world.kube.events
    assert "StatusRestored" not in world.kube.events


def test_a_generation_removed_while_down_keeps_our_record(world: World) -> None:
    before = record(world)
    world.change_status("move", lambda status: status.pop("observedGeneration"))
    world.restart()
    world.tick(3)
    assert record(world) == before


def test_settled_entries_stay_settled_in_a_record_of_any_writer(world: World) -> None:
    world.kafka.copy(OURS)
    world.tick(until=lambda: "Succeeded" in world.conditions("move"))
    world.tick()
    kept = deepcopy(world.kube.objects["uid-move"]["status"])
    world.change_status("move", Object.clear)
    world.change_status("move", lambda status: status.update(kept))  # as a backup brings it back
    world.kafka.move_as_another(OURS, (1, 2, 3))
    world.kafka.copy(OURS)
    world.restart()
    world.tick(3)
    assert OURS not in world.kafka.reassignments
    assert "Succeeded" in world.conditions("move")


def test_writers_merged_by_the_api_server_are_not_another_client(world: World) -> None:
    (ours,) = [e for e in world.kube.objects["uid-move"]["metadata"]["managedFields"] if e["fieldsV1"] == RECORD_FIELDS]
    ours["manager"] = "ancient-changes"
    world.restart()
    move = world.store.resource("uid-move")
    assert move
    assert set(move.record) == {OURS}


def test_a_wiped_status_without_our_finalizer_takes_nothing_over(world: World) -> None:
    world.change_status("move", Object.clear)
    world.kube.objects["uid-move"]["metadata"]["managedFields"] = []
    world.restart()
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def copied(world: World, mode: str = "Wait", **status: object) -> None:
    """A manifest made from another object, of a resource that moved THEIRS to where another client moves it now."""
    entry = {"topic": THEIRS.topic, "partition": 0, "replicas": [5, 2, 3]}
    manager = field_manager("uid-before")
    world.add("copy", THEIRS, (5, 2, 3))
    obj = world.kube.objects["uid-copy"]
    obj["spec"] = {"clusterRef": {"name": "main"}, "partitions": [entry], "whenInFlight": mode}
    obj["status"] = status
    obj["metadata"] |= {
        "finalizers": [FINALIZER],
        "managedFields": [{"manager": manager, "fieldsV1": FINALIZER_FIELDS}],
        "resourceVersion": "2",
    }
    if "record" in status:
        obj["metadata"]["managedFields"].append({"manager": manager, "fieldsV1": RECORD_FIELDS})
    world.restart()


in_flight_before = {
    "observedGeneration": 1,
    "record": [
        {
            "topic": THEIRS.topic,
            "topicId": f"id-{THEIRS.topic}",
            "partitions": [
                {"partition": 0, "originalReplicas": [1, 2, 3], "targetReplicas": [5, 2, 3], "state": "InFlight"}
            ],
        }
    ],
}


@pytest.mark.parametrize("status", [{}, in_flight_before], ids=["without its status", "with its status"])
def test_a_copied_manifest_with_our_finalizer_takes_nothing_over(world: World, status: Object) -> None:
    copied(world, **status)
    world.tick(3)
    assert world.conditions("copy") == {"Reconciling": "InFlightElsewhere"}
    world.delete("copy")
    world.tick(until=lambda: world.store.get("uid-copy") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_a_copied_manifest_is_carried_out_as_any_other(world: World) -> None:
    copied(world)
    world.kafka.perform_as_another(THEIRS)
    world.tick(until=lambda: THEIRS in world.kafka.reassignments)
    world.delete("copy")
    world.tick(until=lambda: world.store.get("uid-copy") is None)
    assert set(world.kafka.reassignments) == {OURS}
