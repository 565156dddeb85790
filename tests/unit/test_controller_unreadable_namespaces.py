"""A watched namespace that cannot be read: what is known of it stays, and what is not known is not undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from reassign.api.config_keys import FOLLOWER_RATE
from reassign.controller.objects.listing import Listing
from reassign.controller.objects.store import Store
from reassign.controller.objects.watches import Backoffs
from reassign.controller.supervisor import Supervisor
from reassign.errors import ApiServerError, Reason, ReassignError
from reassign.kube.client import Kind
from tests.unit.clusters import cluster, move
from tests.unit.configs import copy
from tests.unit.throttled_brokers import NOTHING_SET, Client
from tests.unit.throttling import grow_up, show_changes
from tests.unit.world import LATER, OURS, Object, World

REFUSED = ReassignError(Reason.NOT_AUTHORIZED, "may not list")
AWAY = ApiServerError("away")


class Kube:
    """An API server that lists what it has, but for namespaces that it answers an error for."""

    def __init__(self, *objects: Object) -> None:
        self.objects = list(objects)
        self.errors: dict[str | None, ReassignError] = {}
        self.hidden: set[str] = set()
        """The names of those that a list leaves out."""
        self.lists = 0

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def list(self, kind: Kind, namespace: str | None, take: Callable[[Object], Object]) -> list[Object]:
        self.lists += 1
        if namespace in self.errors:
            raise self.errors[namespace]
        found = (take(obj) for obj in self.objects if obj["kind"] == kind)
        return [
            o
            for o in found
            if namespace in (None, o["metadata"]["namespace"]) and o["metadata"]["name"] not in self.hidden
        ]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        if namespace in self.errors:
            raise self.errors[namespace]
        named = (obj for obj in self.objects if obj["metadata"]["name"] == name)
        return next((obj for obj in named if obj["metadata"]["namespace"] == namespace), None)


class Site:
    """Two namespaces, of which `b` can be refused."""

    def __init__(self) -> None:
        self.kube, self.store, self.now = Kube(cluster("main"), move("move", "b")), Store(), 1000.0
        kube: Any = self.kube
        self.listing = Listing(self.store, kube, ("kafka", "b"), clock=lambda: self.now)

    def list(self) -> set[str]:
        """The names of what is known after all that is due was listed."""

        async def run() -> None:
            async for _ in self.listing.take_over():
                pass

        asyncio.run(run())
        known = (self.store.get(uid) for uid in self.store.uids())
        return {obj["metadata"]["name"] for obj in known if obj}


@pytest.fixture
def site() -> Site:
    return Site()


def test_what_is_known_of_a_refused_namespace_stays(site: Site) -> None:
    assert site.list() == {"main", "move"}
    site.kube.errors["b"] = REFUSED
    site.kube.objects = [cluster("second")]
    site.now += 300
    assert site.list() == {"second", "move"}
    assert site.store.unreadable_namespaces == {"b"}
    assert site.store.unlisted == set()
    del site.kube.errors["b"]
    site.now += 60
    assert site.list() == {"second"}
    assert site.store.unreadable_namespaces == set()


def test_what_a_list_leaves_out_is_gone_only_when_a_get_agrees(site: Site) -> None:
    assert site.list() == {"main", "move"}
    site.kube.hidden = {"move"}
    site.now += 300
    assert site.list() == {"main", "move"}
    site.kube.objects.pop()
    site.now += 300
    assert site.list() == {"main"}


def test_a_refused_namespace_is_asked_for_ever_less_often(site: Site) -> None:
    site.kube.errors["b"] = REFUSED
    asked = 0
    for _ in range(120):
        before = site.kube.lists
        site.list()
        asked += site.kube.lists > before
        site.now += 1
    assert 7 <= asked <= 9
    assert site.store.unlisted == {"b"}


def test_only_a_namespace_that_is_refused_is_not_waited_for(site: Site) -> None:
    site.kube.errors["b"] = AWAY
    site.list()
    assert site.listing.waiting()
    assert site.store.unreadable_namespaces == set()
    site.kube.errors["b"] = REFUSED
    site.now += 1
    site.list()
    assert not site.listing.waiting()
    site.kube.errors["kafka"] = REFUSED
    site.listing.expire()
    site.list()
    assert site.listing.waiting(), "nothing can be served"


def test_kopf_never_gives_up_on_a_watch() -> None:
    assert list(islice(Backoffs(), 1000))[-1] == 15
    assert list(islice(Backoffs(), 3)) == [1, 1, 2], "each request begins anew"


@pytest.fixture
def world() -> World:
    return World()


def allow(world: World, *namespaces: str) -> None:
    allowed = [{"name": name, "topics": ["*"]} for name in namespaces]
    world.change("main", lambda obj: obj["spec"].update(allowedNamespaces=allowed))
    world.loop.observer._connected_to = ("uid-main", world.store.parse_cluster(world.store.get("uid-main") or {}).spec)


def in_team_a(world: World) -> None:
    """The resource that moves OURS is in a namespace that the KafkaCluster allows."""
    allow(world, "team-a")
    ref = {"name": "main", "namespace": "kafka"}
    world.change("move", lambda obj: obj["metadata"].update(namespace="team-a"))
    world.change("move", lambda obj: obj["spec"].update(clusterRef=ref))


def restart_without(world: World, namespace: str) -> None:
    """A new process that cannot read a namespace."""
    world.restart()
    for obj in map(world.store.get, world.store.uids()):
        if obj and obj["metadata"]["namespace"] == namespace:
            world.store.drop(obj["metadata"]["uid"])
    world.store.unreadable_namespaces.add(namespace)
    world.store.unlisted.add(namespace)


def test_a_cluster_is_kept_while_a_namespace_that_it_allows_is_unread(world: World) -> None:
    in_team_a(world)
    world.tick()
    restart_without(world, "team-a")
    world.delete("main")
    world.tick(2)
    assert "team-a/*" in world.ready("main")["message"]
    assert OURS in world.kafka.reassignments
    world.put(deepcopy(world.kube.objects["uid-move"]))
    world.store.unlisted.clear()
    world.store.unreadable_namespaces.clear()
    world.tick()
    assert "team-a/move" in world.ready("main")["message"]


def test_a_cluster_names_its_unreadable_namespaces_and_serves_the_others(world: World) -> None:
    allow(world, "team-a", "team-b")
    world.store.unreadable_namespaces |= {"team-a", "elsewhere"}
    world.add("later", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.conditions("main")["NamespaceUnreadable"] == "NotAuthorized"
    conditions = (world.store.get("uid-main") or {})["status"]["conditions"]
    assert ["team-a:" in c["message"] for c in conditions if c["type"] == "NamespaceUnreadable"] == [True]
    world.store.unreadable_namespaces.clear()
    world.tick()
    assert "NamespaceUnreadable" not in world.conditions("main")


def test_nothing_new_begins_on_a_cluster_that_may_have_changed_unseen(world: World) -> None:
    world.store.unreadable_namespaces.add("kafka")
    world.kube.unwritable.add("uid-main")  # as all in there
    world.add("later", LATER, (4, 2, 3))
    world.tick(3)
    assert world.conditions("later") == {"Stalled": "NotAuthorized"}
    assert OURS in world.kafka.reassignments
    assert LATER not in world.kafka.reassignments
    world.delete("move")
    world.tick(until=lambda: OURS not in world.kafka.reassignments)


def test_throttles_stay_on_a_cluster_that_may_have_changed_unseen(world: World) -> None:
    client, brokers = Client(copy(NOTHING_SET)), world.brokers
    brokers.configs, brokers.change = client.configs, client.change  # type: ignore[attr-defined]
    world.change("move", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))
    grow_up(world.loop)

    def show() -> None:
        for _ in range(6):
            show_changes(world.loop)
            world.tick()

    show()
    before = copy(client.store)
    assert any(FOLLOWER_RATE in configs for configs in before.values())
    world.store.unreadable_namespaces.add("kafka")
    world.kafka.copy(OURS)
    show()
    assert client.store == before
    world.store.unreadable_namespaces.clear()
    show()
    assert not any(FOLLOWER_RATE in configs for configs in client.store.values())


def test_throttles_stay_while_moves_may_be_of_an_unread_namespace(world: World) -> None:
    client, brokers = Client(copy(NOTHING_SET)), world.brokers
    brokers.configs, brokers.change = client.configs, client.change  # type: ignore[attr-defined]
    in_team_a(world)
    world.change("move", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))
    grow_up(world.loop)
    for _ in range(6):
        show_changes(world.loop)
        world.tick()
    assert any(FOLLOWER_RATE in configs for configs in client.store.values())
    before = copy(client.store)
    restart_without(world, "team-a")
    grow_up(world.loop)
    for _ in range(6):
        show_changes(world.loop)
        world.tick()
    assert client.store == before
    assert OURS in world.kafka.reassignments


def test_a_resource_learns_that_its_clusters_namespace_is_unreadable(world: World) -> None:
    in_team_a(world)
    world.add("later", LATER, (4, 2, 3))
    world.change("later", lambda obj: obj["metadata"].update(namespace="team-a"))
    world.change("later", lambda obj: obj["spec"].update(clusterRef={"name": "main", "namespace": "kafka"}))
    world.store.drop("uid-main")
    world.store.unreadable_namespaces.add("kafka")
    kube: Any = Kube()
    kube.errors["kafka"] = REFUSED
    unused: Any = None
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, ("kafka", "team-a"), unused)
    asyncio.run(supervisor._answer_for_missing("kafka", "main"))
    assert world.conditions("later") == {"Stalled": "NotAuthorized"}
    assert "namespace kafka" in world.ready("later")["message"]
    assert OURS in world.kafka.reassignments


def test_one_unreadable_cluster_keeps_no_other_answer_waiting(world: World) -> None:
    world.store.drop("uid-main")
    world.change("move", lambda obj: obj["spec"].update(clusterRef={"name": "missing"}))
    world.add("later", LATER, (4, 2, 3))
    world.change("later", lambda obj: obj["spec"].update(clusterRef={"name": "main", "namespace": "closed"}))
    kube: Any = Kube()
    kube.errors["closed"] = AWAY
    unused: Any = None
    supervisor = Supervisor(world.store, kube, world.loop.writer, world.loop.plans, (), unused)
    supervisor.listing.scopes[""].due = float("inf")
    supervisor._serving = True
    asyncio.run(supervisor._sweep_once())
    assert world.conditions("move")["Stalled"] == "ClusterNotFound"


def test_what_a_watch_brings_waits_until_all_kinds_were_listed() -> None:
    kube: Any = Kube()
    kube.errors["b"] = REFUSED
    store, unused = Store(), None
    resource, gone = move("move", "b"), move("gone", "b")

    async def run() -> None:
        supervisor = Supervisor(store, kube, unused, unused, ("kafka", "b"), unused)  # type: ignore[arg-type]
        await supervisor._list_due()
        await supervisor.receive("ADDED", resource)
        await supervisor.receive("ADDED", gone)
        await supervisor.receive("DELETED", gone)
        assert store.uids() == set(), "its record may be there, and not be known"
        kube.errors.clear()
        supervisor.listing.expire()
        await supervisor._list_due()
        assert store.uids() == {"uid-move"}

    asyncio.run(run())


def test_a_new_writer_lists_anew_what_a_listing_under_way_has_read() -> None:
    kube: Any = Kube()
    store, unused = Store(), None
    lists, read, half_read, release = kube.list, [], asyncio.Event(), asyncio.Event()

    async def run() -> None:
        supervisor = Supervisor(store, kube, unused, unused, ("kafka", "b"), unused)  # type: ignore[arg-type]

        async def slowly(kind: Kind, namespace: str, take: Callable[[Object], Object]) -> list[Object]:
            found = await lists(kind, namespace, take)
            read.append((kind, namespace))
            if (kind, namespace) == (Kind.PARTITION_REASSIGNMENT, "b"):
                half_read.set()
                await release.wait()
            if namespace == "kafka" and read.count((kind, "kafka")) == 2:
                release.set()
                await under_way
            return found  # type: ignore[no-any-return]

        kube.list = slowly
        under_way = asyncio.create_task(supervisor._list_due())
        await half_read.wait()
        kube.objects.append(move("move", "b"))  # by the writer before
        serving = asyncio.create_task(supervisor.serve())
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(under_way, serving)

    asyncio.run(run())
    assert store.uids() == {"uid-move"}


def test_nothing_begins_while_no_namespace_can_be_read(world: World) -> None:
    kube: Any = Kube()
    kube.errors[None] = REFUSED
    world.kube.unwritable.add("uid-main")
    listing = Listing(world.store, kube, ())

    async def run() -> None:
        async for _ in listing.take_over():
            pass

    asyncio.run(run())
    world.add("later", LATER, (4, 2, 3))
    world.tick(3)
    assert OURS in world.kafka.reassignments
    assert LATER not in world.kafka.reassignments
    kube.errors.clear()
    listing.expire()
    monkey = world.store.take_over
    world.store.take_over = lambda *_: None  # type: ignore[method-assign]
    asyncio.run(run())
    world.store.take_over = monkey  # type: ignore[method-assign]
    world.kube.unwritable.clear()
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_a_cluster_is_kept_while_the_owner_of_a_record_cannot_be_read(world: World) -> None:
    in_team_a(world)
    world.tick()
    world.store.drop("uid-move")
    world.store.unreadable_namespaces.add("team-a")
    world.delete("main")
    world.tick(2)
    assert "team-a/move" in world.ready("main")["message"]
    assert OURS in world.kafka.reassignments
