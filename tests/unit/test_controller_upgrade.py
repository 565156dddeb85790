"""The upgrade from the version that kept its records in statuses: nothing is lost, and no status counts afterwards."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.api.common import NEVER_WRITTEN
from reassign.api.throttle_configs import FOLLOWER_RATE
from reassign.controller import attempts, migration
from reassign.controller.handlers import Supervisor
from reassign.errors import ApiServerError, Reason, ReassignError
from tests.unit.configs import broker
from tests.unit.records import as_before, held, in_flight_before, parts, record
from tests.unit.throttled_brokers import Client
from tests.unit.throttling import grow_up, show_changes
from tests.unit.world import LATER, OURS, THEIRS, Object, World, api_object, forget

TEAM = "team-a"


@pytest.fixture
def world() -> World:
    """As the version before left it."""
    world = World()
    as_before(world)
    return world


@pytest.fixture
def refused(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """What the creation of records meets, by how their names begin."""
    create, errors = world.kube.create, dict[str, Exception]()

    async def refuse(obj: Object) -> Object:
        for begins, error in errors.items():
            if obj["metadata"]["name"].startswith(begins):
                raise error
        return await create(obj)

    monkeypatch.setattr(world.kube, "create", refuse)
    return errors


def tick(world: World, times: int = 4) -> None:
    """Tick as the loop does by itself."""
    for _ in range(times):
        asyncio.run(world.loop._safe_tick())


def forge(world: World, name: str = "move") -> None:
    """Claim in a status that another client's move is a resource's own, and delete the resource."""
    world.change_status(name, lambda status: status.update(record=in_flight_before()["record"]))
    tick(world)
    world.delete(name)
    tick(world, 10)


def recorded_throttle(world: World) -> list[int]:
    return [b["broker"] for part in parts(world, "main") for b in part["spec"].get("throttle", {}).get("brokers", ())]


def throttle_in_status(world: World) -> list[int]:
    return [b["broker"] for b in world.kube.objects["uid-main"]["status"]["throttle"]["brokers"]]


def left(world: World) -> list[str]:
    [part] = parts(world, "main")
    return list(part["spec"]["leftInStatuses"])


def add_team(world: World) -> None:
    """The resource that moves OURS is in another namespace, which could not be listed yet."""
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=[{"name": TEAM, "topics": ["*"]}]))
    obj = world.kube.objects["uid-move"]
    obj["metadata"]["namespace"] = TEAM
    obj["spec"]["clusterRef"] = {"name": "main", "namespace": "kafka"}
    restart_unlisted(world)


def restart_unlisted(world: World) -> None:
    world.restart()
    world.store.drop("uid-move")
    world.store.unlisted.add(TEAM)


def list_team(world: World) -> None:
    world.store.put(world.kube.objects["uid-move"])
    world.store.unlisted.discard(TEAM)


# the throttles


def deletion_undoes_it(world: World) -> None:
    """Delete the resource, and see that its move is gone and the other client's is not."""
    world.delete("move")
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_throttles_stay_in_a_status_until_their_record_is_written(world: World, refused: dict[str, Exception]) -> None:
    refused["uid-main"] = ApiServerError("429: too many requests")
    tick(world)
    assert throttle_in_status(world) == [9]
    refused.clear()
    tick(world)
    assert recorded_throttle(world) == [9]
    assert held(world, "main")
    assert throttle_in_status(world) == []


def test_no_unlisted_namespace_delays_the_record_of_throttles(world: World) -> None:
    world.store.unlisted.add(TEAM)
    tick(world)
    assert recorded_throttle(world) == [9]


def test_no_unreadable_resource_delays_the_record_of_throttles(world: World) -> None:
    world.put(api_object("PartitionReassignment", "bad", {"clusterRef": {"name": "main"}, "mode": "Unknown"}))
    tick(world)
    assert recorded_throttle(world) == [9]
    assert left(world) == []


@pytest.mark.parametrize("makes_records", [True, False], ids=["", "its namespace is being deleted too"])
def test_a_cluster_deleted_during_the_upgrade_restores_its_throttles(
    world: World, refused: dict[str, Exception], makes_records: bool
) -> None:
    if not makes_records:
        refused["uid-"] = ReassignError(Reason.REQUEST_FAILED, "the namespace is being deleted")
    del world.kube.objects["uid-move"]
    world.kube.objects["uid-main"]["status"]["throttle"]["brokers"][0]["broker"] = 4
    world.restart()
    client, brokers = Client({broker(4): {FOLLOWER_RATE: "1048576"}}), world.brokers
    brokers.configs, brokers.change = client.configs, client.change  # type: ignore[attr-defined]
    grow_up(world.loop)
    world.delete("main")
    tick(world)
    assert client.store == {broker(4): {}}
    assert world.store.get("uid-main")
    show_changes(world.loop)  # some seconds later
    world.safe_tick(until=lambda: world.store.get("uid-main") is None)


def test_an_unreadable_cluster_with_throttles_in_status_is_not_released(world: World) -> None:
    del world.kube.objects["uid-move"]
    world.restart()
    world.change("main", lambda obj: obj["spec"].update(limits={"maxThrottle": "fast"}))
    world.delete("main")
    tick(world)
    assert world.store.get("uid-main")
    world.change("main", lambda obj: obj["spec"].update(deletionPolicy="Orphan"))
    tick(world)
    assert world.store.get("uid-main") is None
    assert "ThrottlesOrphaned" in world.kube.events


# the records of resources


def test_a_record_that_is_refused_once_is_written_later(world: World, refused: dict[str, Exception]) -> None:
    refused["uid-move"] = ReassignError(Reason.NOT_AUTHORIZED, "exceeded quota: count/reassignmentrecords")
    tick(world)
    assert left(world) == ["uid-move"]
    assert world.kube.objects["uid-move"]["status"]["record"]
    refused.clear()
    world.loop.take_over._refused.clear()  # some seconds later
    tick(world)
    assert left(world) == []
    assert record(world)[OURS.topic]["state"] == "InFlight"
    deletion_undoes_it(world)


def test_an_undo_needs_no_record_that_a_deleted_namespace_refuses(world: World, refused: dict[str, Exception]) -> None:
    refused["uid-"] = ReassignError(Reason.REQUEST_FAILED, "the namespace is being deleted")
    world.delete("move")
    tick(world)
    assert world.kafka.replicas[OURS] == (1, 2, 3)
    assert set(world.kafka.reassignments) == {THEIRS}
    assert world.store.get("uid-move")
    forget(world.loop, busy={})  # some seconds later
    tick(world)
    assert world.store.get("uid-move") is None


@pytest.mark.parametrize("restarted", [False, True])
def test_the_deletion_of_what_cannot_be_read_waits_for_its_status(world: World, restarted: bool) -> None:
    world.change("move", lambda obj: obj["spec"].update(mode="Unknown"))
    world.delete("move")
    tick(world)
    assert left(world) == ["uid-move"]
    if restarted:
        world.restart()
        tick(world)
    assert OURS in world.kafka.reassignments
    assert world.store.get("uid-move")
    world.change("move", lambda obj: obj["spec"].pop("mode"))
    world.safe_tick(until=lambda: world.store.get("uid-move") is None)
    assert set(world.kafka.reassignments) == {THEIRS}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_namespace_listed_later_is_taken_over_then(world: World, restarted: bool) -> None:
    add_team(world)
    tick(world)
    assert left(world) == [f"{TEAM}/*"]
    if restarted:
        restart_unlisted(world)
        tick(world)
    list_team(world)
    tick(world)
    assert left(world) == []
    assert record(world)[OURS.topic]["state"] == "InFlight"
    deletion_undoes_it(world)


def test_a_deletion_waits_for_a_cluster_that_is_not_known(world: World) -> None:
    world.store.drop("uid-main")  # its namespace could not be listed
    world.store.unreadable_namespaces.add("kafka")
    world.delete("move")
    kube: Any = world.kube
    supervisor = Supervisor(world.store, kube, world.loop.reporter, world.loop.plans, (), lambda _: world.loop)
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert world.store.get("uid-move")
    assert world.kube.objects["uid-move"]["status"]["record"]


# what others may write


@pytest.mark.parametrize("error", [None, ApiServerError("500"), ReassignError(Reason.NOT_AUTHORIZED, "no records")])
def test_no_status_of_a_new_cluster_counts_whatever_its_record_meets(
    world: World, refused: dict[str, Exception], error: Exception | None
) -> None:
    world.kube.objects["uid-main"]["status"] = {"observedGeneration": NEVER_WRITTEN}
    world.restart()
    if error:
        refused["uid-main"] = error
    tick(world)
    assert ("clusterId" in world.kube.objects["uid-main"]["status"]) is (error is None)
    refused.clear()
    tick(world)
    assert "clusterId" in world.kube.objects["uid-main"]["status"]
    forge(world)
    assert THEIRS in world.kafka.reassignments


@pytest.mark.parametrize("delayed", ["nothing", "a namespace", "a resource", "a record"])
def test_no_status_counts_after_the_upgrade(world: World, refused: dict[str, Exception], delayed: str) -> None:
    world.add("other", LATER, (1, 2, 3))
    entry = {"partition": 0, "originalReplicas": [4, 2, 3], "targetReplicas": [1, 2, 3], "state": "Completed"}
    recorded = [{"topic": LATER.topic, "topicId": "id-later", "partitions": [entry]}]
    world.change_status("other", lambda status: status.update(record=recorded))
    if delayed == "a namespace":
        world.store.unlisted.add(TEAM)
    elif delayed == "a resource":
        world.change("other", lambda obj: obj["spec"].update(mode="Unknown"))
    elif delayed == "a record":
        refused["uid-other"] = ReassignError(Reason.NOT_AUTHORIZED, "exceeded quota")
    tick(world)
    expected = {"nothing": [], "a namespace": [f"{TEAM}/*"], "a resource": ["uid-other"], "a record": ["uid-other"]}
    assert left(world) == expected[delayed]
    forge(world)
    assert THEIRS in world.kafka.reassignments


def test_no_status_counts_when_the_clusters_record_goes_first(world: World, refused: dict[str, Exception]) -> None:
    tick(world)
    refused["uid-main"] = ReassignError(Reason.REQUEST_FAILED, "the namespace is being deleted")
    [part] = parts(world, "main")
    world.delete("main")
    del world.kube.objects[part["metadata"]["uid"]]
    world.store.drop(part["metadata"]["uid"])
    forge(world)
    assert THEIRS in world.kafka.reassignments


def test_nothing_begins_while_too_much_is_left(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "MAX_LEFT_IN_STATUSES", 0)
    world.change("move", lambda obj: obj["spec"].update(mode="Unknown"))
    world.add("late", LATER, (5, 2, 3))
    tick(world)
    assert parts(world, "main") == []
    assert LATER not in world.kafka.reassignments


def test_a_refused_record_is_asked_for_ever_less_often(
    world: World, refused: dict[str, Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked, write = 1000.0, 0, world.loop.reporter.records.write

    async def counted(*args: Any, **options: Any) -> None:
        nonlocal asked
        asked += 1
        await write(*args, **options)

    monkeypatch.setattr(world.loop.reporter.records, "write", counted)
    monkeypatch.setattr(migration, "time", SimpleNamespace(monotonic=lambda: now))
    refused["uid-move"] = ReassignError(Reason.NOT_AUTHORIZED, "exceeded quota: count/reassignmentrecords")
    cluster = world.store.readable_clusters()[0]
    for _ in range(600):
        asyncio.run(world.loop.take_over.run(cluster))
        now += 1
    assert 5 <= asked <= 7
    assert left(world) == ["uid-move"]
    refused.clear()
    now += 300
    asyncio.run(world.loop.take_over.run(cluster))
    assert left(world) == []


def test_the_record_of_throttles_waits_for_no_other_record(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(*_: object, **__: object) -> None:
        raise ApiServerError("a webhook did not answer")

    monkeypatch.setattr(attempts, "API_SECONDS", 0.0)
    monkeypatch.setattr(world.loop.reporter.records, "write", slow)
    tick(world)
    assert recorded_throttle(world) == [9]
    assert left(world) == ["uid-move"]
