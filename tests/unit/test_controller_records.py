"""The operator's own records: what is resumed from is in no object that others write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from types import SimpleNamespace

import pytest

from reassign.api.common import FINALIZER
from reassign.controller.supervisor import Supervisor
from reassign.core.duplicates import HANDOVER_SECONDS
from reassign.errors import ApiServerError, Reason, ReassignError
from tests.unit.records import held, in_flight_before, parts, record
from tests.unit.world import LATER, OURS, THEIRS, KilledError, Object, World, config_record, forget

Edit = Callable[[Object], None]


@pytest.fixture
def world() -> World:
    return World()


def claim_completed(status: Object) -> None:
    entry = {"partition": 0, "originalReplicas": [5, 2, 3], "targetReplicas": [4, 2, 3], "state": "Completed"}
    status["record"] = [{"topic": OURS.topic, "topicId": f"id-{OURS.topic}", "partitions": [entry]}]


WRITTEN_BY_HAND: dict[str, Edit] = {
    "wiped": Object.clear,
    "generation removed": lambda status: status.pop("observedGeneration"),
    "a record forged": claim_completed,
}
by_hand = pytest.mark.parametrize("by_hand", WRITTEN_BY_HAND.values(), ids=WRITTEN_BY_HAND)


def test_a_record_belongs_to_its_resource_and_is_held_until_it_is_settled(world: World) -> None:
    [part] = parts(world)
    assert part["metadata"]["name"] == "uid-move-0"
    [owner] = part["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "name": "move",
        "uid": "uid-move",
    }
    assert part["spec"]["clusterRef"] == {"namespace": "kafka", "name": "main"}
    assert held(world)
    assert "record" not in world.kube.objects["uid-move"]["status"]
    world.kafka.copy(OURS)
    world.tick(until=lambda: "Succeeded" in world.conditions("move"))
    world.tick(2)
    assert record(world)[OURS.topic]["state"] == "Completed"
    assert not held(world)


@by_hand
def test_what_others_write_into_a_status_changes_nothing(world: World, by_hand: Edit) -> None:
    before = record(world)
    world.change_status("move", by_hand)
    world.tick(3)
    assert record(world) == before
    world.restart()
    world.tick(3)
    assert record(world) == before
    assert world.conditions("move") == {"Reconciling": "PartitionsInFlight"}


@by_hand
def test_an_entry_removed_at_the_same_time_is_cancelled(world: World, by_hand: Edit) -> None:
    world.change_status("move", by_hand)
    later = {"topic": "later", "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"].update(partitions=[later]))
    world.tick(until=lambda: set(world.kafka.reassignments) == {LATER, THEIRS})
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3))


@by_hand
def test_a_deletion_at_the_same_time_cancels(world: World, by_hand: Edit) -> None:
    world.change_status("move", by_hand)
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}
    assert not held(world)


def test_statuses_that_cannot_be_written_do_not_delay_the_brake(world: World) -> None:
    names = ("one", "two", "three", "four")
    for name in names:
        world.add(name, OURS, (5, 2, 3))
    world.tick(2)
    world.kube.unwritable = {f"uid-{name}" for name in names}
    for name in names:
        world.change_status(name, Object.clear)
    world.pull("CancelOurs")
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_nothing_is_begun_whose_record_cannot_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> Object:
        raise ApiServerError("500: failed calling webhook")

    world.add("late", LATER, (4, 2, 3))
    with monkeypatch.context() as patch:
        patch.setattr(world.kube, "create", refuse)
        world.tick(5)
        assert LATER not in world.kafka.reassignments
    forget(world.loop, unwritten={})  # it is tried again after 15 s
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert record(world, "late")[LATER.topic]["originalReplicas"] == [1, 2, 3]


def test_a_kill_after_the_record_and_before_the_alter_loses_nothing(world: World) -> None:
    world.brokers.dies = True
    world.add("late", LATER, (4, 2, 3))
    with pytest.raises(KilledError):
        world.tick(5)
    assert record(world, "late")[LATER.topic]["state"] == "Submitting"
    world.brokers.dies = False
    world.restart()
    world.tick(until=lambda: LATER in world.kafka.reassignments)


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


def lose_record(world: World, name: str = "move") -> None:
    """Another client strips the finalizers of its records and deletes them, while no operator runs."""
    for part in parts(world, name):
        del world.kube.objects[part["metadata"]["uid"]]


def test_a_move_whose_record_was_lost_while_down_may_be_taken_over(world: World) -> None:
    world.change("move", lambda obj: obj["spec"].update(whenInFlight="Supersede"))
    world.tick(2)
    lose_record(world)
    world.restart()
    world.tick(3)
    assert record(world)[OURS.topic]["reason"] == "OrderUnknown"
    assert sorted(record(world)[OURS.topic]["originalReplicas"]) == [1, 2, 3]
    world.delete("move")
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_a_record_of_another_owner_of_the_same_name_counts_for_nothing(world: World) -> None:
    [part] = parts(world)
    world.kafka.copy(OURS)
    world.tick(until=lambda: "Succeeded" in world.conditions("move"))
    copy = {**part, "metadata": part["metadata"] | {"uid": "uid-copy", "name": "another-0", "finalizers": []}}
    copy["metadata"]["ownerReferences"] = [part["metadata"]["ownerReferences"][0] | {"uid": "uid-before"}]
    world.put(copy)
    world.tick(3)
    move = world.store.resource("uid-move")
    assert move
    assert {str(entry.state) for entry in move.record.values()} == {"Completed"}


def strip(world: World, name: str = "move") -> None:
    """A user strips our finalizer of a resource, and deletes it."""
    del world.kube.objects[f"uid-{name}"]
    world.store.drop(f"uid-{name}")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("stripped", [False, True])
def test_a_deletion_that_orphans_its_records_is_still_undone(world: World, restarted: bool, stripped: bool) -> None:
    """kubectl delete --cascade=orphan has the garbage collector remove their owner references."""
    [part] = parts(world)
    world.store.put(world.kube.write(part["metadata"]["uid"], lambda obj: obj["metadata"].pop("ownerReferences")))
    if stripped:
        strip(world)
    else:
        world.delete("move")
    if restarted:
        world.restart()
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3) and not held(world))
    assert world.store.get("uid-move") is None


BACKUP = {"apiVersion": "velero.io/v1", "kind": "Backup", "name": "nightly", "uid": "uid-nightly"}
NAMESAKE = {"apiVersion": "other.dev/v1", "kind": "PartitionReassignment", "name": "other", "uid": "uid-other"}
UNKNOWN_KIND = {"apiVersion": "kafka.reassign.dev/v2", "kind": "Campaign", "name": "spring", "uid": "uid-spring"}


@pytest.mark.parametrize("first", [BACKUP, NAMESAKE, UNKNOWN_KIND], ids=lambda owner: owner["kind"])
@pytest.mark.parametrize("orphaned", [False, True])
def test_an_owner_of_another_kind_changes_nothing(world: World, first: Object, orphaned: bool) -> None:
    """Another client refers to an owner, too, and to one that is not ours where a deletion orphaned the record."""

    def refer(part: Object) -> None:
        references = part["metadata"]["ownerReferences"]
        part["metadata"]["ownerReferences"] = [first, *([] if orphaned else references)]

    [part] = parts(world)
    world.store.put(world.kube.write(part["metadata"]["uid"], refer))
    world.restart()
    assert len(world.store.parts("uid-move")) == 1
    world.delete("move")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3) and not held(world))


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_resource_without_its_finalizer_left_in_flight_is_undone(world: World, restarted: bool) -> None:
    strip(world)
    if restarted:
        world.restart()
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3) and not held(world))
    assert not [uid for uid in world.store._gone if world.store._held(uid)]


def test_what_was_to_be_orphaned_stays_in_flight_without_its_resource(world: World) -> None:
    world.change("move", lambda obj: obj["spec"].update(deletionPolicy="Orphan"))
    world.tick(2)
    strip(world)
    world.tick(until=lambda: not held(world))
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_a_resource_that_a_get_finds_is_not_taken_for_gone(world: World) -> None:
    world.store.drop("uid-move")  # a watch that is wrong
    world.tick(3)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert world.store.resource("uid-move")


def copied(world: World, mode: str = "Wait", **status: object) -> None:
    """A manifest made from another object, of a resource that moved THEIRS to where another client moves it now."""
    entry = {"topic": THEIRS.topic, "partition": 0, "replicas": [5, 2, 3]}
    world.add("copy", THEIRS, (5, 2, 3))
    obj = world.kube.objects["uid-copy"]
    obj["spec"] = {"clusterRef": {"name": "main"}, "partitions": [entry], "whenInFlight": mode}
    obj["status"] = status
    obj["metadata"] |= {"finalizers": [FINALIZER], "resourceVersion": "2"}
    world.restart()


@pytest.mark.parametrize("status", [{}, in_flight_before()], ids=["without its status", "with its status"])
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


def test_nothing_that_an_earlier_version_kept_in_statuses_counts(world: World) -> None:
    rate = {"name": "follower.replication.throttled.rate", "value": "1048576"}
    throttle = {"interBroker": 1048576, "brokers": [{"broker": 4, "configs": [rate]}]}
    world.change_status("main", lambda status: status.update(throttle=throttle))
    world.add("other", THEIRS, (5, 2, 3))
    world.change_status("other", lambda status: status.update(in_flight_before()))
    world.restart()
    world.tick(3)
    assert "throttle" not in world.kube.objects["uid-main"]["status"]
    assert "record" not in world.kube.objects["uid-other"]["status"]
    for name in ("other", "main"):
        world.delete(name)
    world.tick(until=lambda: world.store.get("uid-other") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_a_missing_cluster_is_reported_and_its_records_stay(world: World) -> None:
    world.store.drop("uid-main")
    del world.kube.objects["uid-main"]
    world.change_status("move", Object.clear)
    kube, unused = world.kube, None
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), unused)  # type: ignore[arg-type]
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert record(world)
    assert held(world)
    assert world.conditions("move") == {"Stalled": "ClusterNotFound"}


def test_a_record_without_resource_and_cluster_is_given_up_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("main", "move"):
        strip(world, name)
    now = 1000.0
    monkeypatch.setattr("reassign.controller.supervisor.time", SimpleNamespace(monotonic=lambda: now))
    kube, unused = world.kube, None
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), unused)  # type: ignore[arg-type]
    supervisor.listing.scopes[""].due = float("inf")
    supervisor._serving = True

    def sweep(seconds: int) -> None:
        nonlocal now
        now += seconds
        asyncio.run(supervisor._sweep_once())

    sweep(0)
    sweep(599)
    assert held(world)
    world.store.unreadable_namespaces.add("kafka")
    sweep(1)
    assert held(world), "the KafkaCluster may be there"
    world.store.unreadable_namespaces.clear()
    sweep(0)
    assert held(world)
    sweep(600)
    assert not held(world)
    assert b"kafka_reassign_undos_given_up_total 1.0" in world.metrics.text()
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def refuse_to_make(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> Object:
        raise ReassignError(Reason.REQUEST_FAILED, "nothing can be made in a namespace that is being deleted")

    monkeypatch.setattr(world.kube, "create", refuse)


def test_a_namespace_being_deleted_stops_no_undo(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_make(world, monkeypatch)
    world.delete("main")
    world.delete("move")
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.safe_tick(until=lambda: world.store.get("uid-main") is None)


def test_a_record_that_a_backup_brought_back_undoes_nothing(world: World) -> None:
    [part] = deepcopy(parts(world))
    world.kafka.copy(OURS)
    world.tick(until=lambda: "Succeeded" in world.conditions("move"))
    world.tick(2)
    world.kafka.move_as_another(OURS, (1, 2, 3))
    world.kafka.copy(OURS)
    world.kafka.move_as_another(OURS, (4, 2, 3))
    made = {"uid": "uid-copy", "name": "copy-0", "creationTimestamp": "2126-01-01T00:00:00Z"}
    part["metadata"] |= made
    part["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    world.put(part)
    world.tick(5)
    assert OURS in world.kafka.reassignments
    assert not held_by_us(world, "uid-copy")


def held_by_us(world: World, uid: str) -> bool:
    return FINALIZER in world.kube.objects[uid]["metadata"]["finalizers"]


def test_a_dry_run_that_is_carried_out_takes_nothing_over(world: World) -> None:
    world.add("dry", THEIRS, (5, 2, 3))
    done = {"topic": LATER.topic, "partition": 0, "replicas": [1, 2, 3]}
    world.change("dry", lambda obj: obj["spec"].update(mode="DryRun", partitions=[*obj["spec"]["partitions"], done]))
    world.tick(3)
    world.change("dry", lambda obj: obj["spec"].update(mode="Execute"))
    world.tick(3)
    world.delete("dry")
    world.tick(until=lambda: world.store.get("uid-dry") is None)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}


def test_what_a_cluster_without_its_finalizer_set_goes_to_one_made_anew(world: World) -> None:
    now = world.store.clock()
    world.store.clock = lambda: now
    record = config_record("main")
    record["metadata"]["finalizers"] = [FINALIZER]
    world.put(record)
    main = world.kube.objects.pop("uid-main")
    world.store.drop("uid-main")
    world.put({**main, "metadata": {**main["metadata"], "uid": "uid-main-again", "finalizers": []}, "status": {}})
    world.kube.objects["uid-main"] = world.kube.objects["uid-main-again"]  # where a GET by its name finds it
    world.tick(3)
    assert held_by_us(world, "uid-uid-main-0")
    now += HANDOVER_SECONDS
    world.tick(3)
    assert not held_by_us(world, "uid-uid-main-0")
    assert world.store.throttle("uid-main-again")


def test_a_record_of_a_cluster_that_cannot_be_read_stops_no_undo(world: World) -> None:
    record = config_record("main")
    record["spec"]["part"] = "first"
    world.put(record)
    world.delete("move")
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)


def test_definitions_of_an_earlier_version_stop_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server drops the fields of a record that they lack."""
    write, create = world.kube.write_record, world.kube.create

    def dropped(spec: Object) -> Object:
        return {name: value for name, value in spec.items() if name not in ("clusterId", "parts")}

    async def write_record(obj: Object, spec: Object, *, held: bool) -> Object:
        return await write(obj, dropped(spec), held=held)

    async def created(obj: Object) -> Object:
        return await create(obj | {"spec": dropped(obj["spec"])})

    monkeypatch.setattr(world.kube, "write_record", write_record)
    monkeypatch.setattr(world.kube, "create", created)
    for objects in (world.kube.objects, world.store._objects):
        objects.pop("uid-uid-main-0")
    world.restart()
    world.add("late", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.delete("move")
    world.tick(until=lambda: set(world.kafka.reassignments) == {LATER, THEIRS})
