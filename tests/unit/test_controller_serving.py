"""Which KafkaClusters are served: not one whose brokers are others than at first, nor the younger of two."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

import pytest

from reassign.api.config_keys import LOG_DIR_RATE
from reassign.api.kafka_cluster import Execution, KafkaCluster
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller import supervisor
from reassign.controller.cluster.observer import Observer
from reassign.controller.cluster.unserved import Unserved
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.server import Health
from reassign.controller.supervisor import Supervisor
from reassign.core.cluster import (
    ClusterHold,
    check_identity,
    cluster_status,
    hold_now,
    hold_of,
    rules_of,
    unready_status,
)
from reassign.core.duplicates import Peer, abandoned, duplicate_of, not_yet_stopped, peers_throttles
from reassign.core.model.forwarding import NO_DOUBTS
from reassign.core.model.problem import Name, Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, LogDir, Snapshot, TopicPartition
from reassign.errors import ClusterError, MissingReferenceError, Reason
from reassign.kafka.client import KafkaClient
from tests.unit.clusters import cluster, move
from tests.unit.sim import START, SimKafka


def store(*objects: Any) -> Store:
    made = Store()
    for obj in objects:
        made.put(obj)
    return made


def test_brokers_of_another_cluster_than_at_first_are_not_touched() -> None:
    check_identity(None, "one")
    check_identity("one", "one")
    with pytest.raises(ClusterError) as raised:
        check_identity("one", "two")
    assert raised.value.reason is Reason.CLUSTER_ID_CHANGED


NOW = 1000.0


ITEMS = {"name": "follower.replication.throttled.replicas", "value": "0:1"}
THROTTLE = RecordedConfigs.parse({"topics": [{"topic": "orders", "configs": [ITEMS]}]})


def peer(name: str, created: str = "2026-01-01T00:00:00Z", unready: str = "", for_seconds: float = 900) -> Peer:
    """A KafkaCluster for the cluster `one`, Ready, or for this reason not, for so long."""
    age = datetime.fromisoformat(created), f"uid-{name}"
    return Peer(age[1], Name(f"kafka/{name}"), age, "one", unready, NOW - for_seconds)


def declared(of: Peer) -> KafkaCluster:
    created, uid = of.age
    return KafkaCluster.parse(cluster(uid.removeprefix("uid-"), created.isoformat()))


OLDER, YOUNGER = partial(peer, "a"), partial(peer, "b", "2026-01-02T00:00:00Z")


def the_duplicate(of: Peer, *others: Peer, cluster_id: str = "one") -> Problem | None:
    return duplicate_of(declared(of), cluster_id, [of, *others], NOW)


def test_of_two_for_the_same_brokers_the_younger_is_held() -> None:
    held = the_duplicate(YOUNGER(), OLDER())
    assert held is not None
    assert held.reason is Reason.DUPLICATE_CLUSTER
    assert "kafka/a" in held.message
    assert the_duplicate(OLDER(), YOUNGER()) is None


def test_the_uid_decides_between_two_clusters_of_one_age() -> None:
    first, second = peer("a"), peer("b")
    assert the_duplicate(second, first) is not None
    assert the_duplicate(first, second) is None
    assert the_duplicate(second, first, cluster_id="two") is None


@pytest.mark.parametrize(
    ("reason", "seconds", "holds"),
    [
        ("Connecting", 89, True),  # the process has just started
        ("ClusterUnreachable", 89, True),  # a request of it may be under way
        ("ClusterUnreachable", 90, False),
        ("AuthenticationFailed", 90, False),
        ("ClusterIdChanged", 90, False),
        ("DuplicateCluster", 0, False),  # the one that is older still holds
        ("ClusterDeleted", 0, False),  # it starts nothing new
        ("ClusterNotFound", 0, False),
    ],
)
def test_an_older_cluster_that_is_not_ready_blocks_nothing(reason: str, seconds: int, holds: bool) -> None:
    assert bool(the_duplicate(YOUNGER(), OLDER(unready=reason, for_seconds=seconds))) is holds


@pytest.mark.parametrize(
    ("own", "younger", "waits"),
    [
        ({"unready": "ClusterUnreachable"}, {}, True),
        ({"for_seconds": 1}, {}, True),
        ({"for_seconds": 90}, {}, False),  # the younger one has had its time
        ({"for_seconds": 1}, {"unready": "DuplicateCluster"}, False),
        ({"for_seconds": 1}, {"unready": "ClusterUnreachable"}, False),
    ],
)
def test_one_that_is_ready_again_waits_for_the_younger_to_stop(own: Any, younger: Any, waits: bool) -> None:
    peers = [OLDER(**own), YOUNGER(**younger)]
    assert bool(not_yet_stopped(declared(peers[0]), "one", peers, NOW)) is waits
    assert not_yet_stopped(declared(peers[1]), "one", peers, NOW) is None


@pytest.mark.parametrize(
    ("unready", "seconds", "keeps", "taken"),
    [
        ("SecretNotFound", 90, False, ["kafka/c"]),
        ("SecretNotFound", 89, False, []),
        ("DuplicateCluster", 900, True, []),  # its moves are in flight
        ("DuplicateCluster", 89, False, []),
        ("DuplicateCluster", 90, False, ["kafka/c"]),  # it should have restored them by now
        ("RestoringThrottles", 90, False, ["kafka/c"]),
        ("ClusterClaimed", 900, True, []),
        ("", 900, False, []),
        ("CannotBeRead", 90, True, ["kafka/c"]),
        ("ClusterNotFound", 90, True, ["kafka/c"]),
        ("ClusterNotFound", 89, True, []),
    ],
)
def test_only_the_served_cluster_takes_over_what_another_left(
    unready: str, seconds: float, keeps: bool, taken: list[str]
) -> None:
    left = peer("c", "2026-01-03T00:00:00Z", unready, seconds)._replace(throttle=THROTTLE, keeps=keeps)
    peers = [OLDER(), YOUNGER(unready="DuplicateCluster"), left]
    snapshot = replace(SimKafka({}).snapshot(), cluster_id="one")

    def found(of: Peer) -> list[str]:
        return [other.name.text for other in abandoned(declared(of), snapshot, peers, NOW)]

    assert found(OLDER()) == taken
    assert found(YOUNGER()) == []


COPIED = TopicPartition("orders", 0)
RATE = {"name": LOG_DIR_RATE, "value": "7168"}
COPYING = {"broker": 0, "configs": [RATE], "copying": [{"topic": "orders", "partitions": [0]}]}
UNDER_WAY = {0: {"/a": LogDir(logs={COPIED: 9}), "/b": LogDir(futures={COPIED: 3})}}


@pytest.mark.parametrize(
    ("fields", "down", "keeps"),
    [
        ({"log_dirs": UNDER_WAY}, False, True),
        ({"log_dirs": UNDER_WAY}, True, False),
        ({"log_dirs": {0: {"/a": LogDir(), "/b": LogDir(logs={COPIED: 9})}}}, False, False),
        ({"log_dirs": {}}, False, False),
        # its Kafka user lost the right to see them after the last report
        ({"log_dirs": UNDER_WAY, "unread_log_dirs": {0: Problem(Reason.NOT_AUTHORIZED, "")}}, False, False),
    ],
)
def test_only_a_copy_that_is_seen_keeps_throttles(fields: dict[str, Any], down: bool, keeps: bool) -> None:
    record = RecordedConfigs.parse({"brokers": [COPYING]})
    kafka = SimKafka({COPIED: (0, 1, 2)})
    kafka.brokers[0] = Broker(0, fenced=down)
    snapshot = replace(kafka.snapshot(), cluster_id="one", **fields)
    hold = hold_now(declared(OLDER()), snapshot, [], [], record, NOW)
    assert hold.keeps is keeps
    left = YOUNGER(unready="DuplicateCluster")._replace(throttle=record, keeps=hold.keeps)
    assert bool(abandoned(declared(OLDER()), snapshot, [OLDER(), left], NOW)) is not keeps


def test_a_message_says_which_cluster_takes_throttles_over() -> None:
    left = peer("c", "2026-01-03T00:00:00Z", "SecretNotFound")._replace(throttle=THROTTLE)
    peers = [OLDER(), YOUNGER(unready="DuplicateCluster"), left]
    snapshot = replace(SimKafka({}).snapshot(), cluster_id="one")
    for of, taker in ((peers[0], "this one"), (peers[1], "the KafkaCluster that is served")):
        _, younger = peers_throttles(declared(of), snapshot, peers, NOW)
        assert younger is not None
        assert f", {taker} takes them over, provided" in younger.message


def deleted_at_once(*uids: str) -> dict[str, list[str]]:
    """From whom each takes over, where both have throttles that they cannot restore."""
    restoring = [made(unready="RestoringThrottles")._replace(throttle=THROTTLE) for made in (OLDER, YOUNGER)]
    snapshot = replace(SimKafka({}).snapshot(), cluster_id="one")
    taken = {}
    for of in restoring:
        judged = declared(of)
        if of.uid in uids:
            judged = judged.model_copy(
                update={"metadata": judged.metadata.model_copy(update={"deletion_timestamp": START})}
            )
        taken[of.uid] = [other.uid for other in abandoned(judged, snapshot, restoring, NOW)]
    return taken


def test_two_that_are_being_deleted_do_not_take_over_from_each_other() -> None:
    assert deleted_at_once("uid-a", "uid-b") == {"uid-a": ["uid-b"], "uid-b": []}


def test_nothing_new_starts_on_one_that_is_being_deleted() -> None:
    deleted = cluster("main")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    held = hold_of(KafkaCluster.parse(deleted), ["kafka/first"])
    assert held is not None
    assert held.reason is Reason.CLUSTER_DELETED
    assert held.message.startswith("the KafkaCluster kafka/main is being deleted: nothing new starts on it")
    assert "waits for kafka/first" in held.message
    assert hold_of(KafkaCluster.parse(cluster("main")), []) is None


def test_one_that_waits_for_orphaned_moves_names_some_of_them() -> None:
    deleted = cluster("main")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    held = hold_of(KafkaCluster.parse(deleted), [], None, [TopicPartition("orders", number) for number in range(7)])
    assert held is not None
    assert held.reason is Reason.RESTORING_THROTTLES
    assert "these orphaned moves end: orders-0, orders-1, orders-2, orders-3, orders-4 and 2 more" in held.message


def test_one_that_nothing_keeps_from_being_deleted_is_not_stalled() -> None:
    deleted = cluster("main")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    main = KafkaCluster.parse(deleted)
    held = hold_of(main, [])
    assert held is not None
    assert {c.type for c in unready_status(main, held, START).conditions if c.status == "True"} == {"Reconciling"}


def test_a_connected_cluster_counts_its_fenced_brokers() -> None:
    kafka = SimKafka({TopicPartition("orders", 0): (0, 1, 2)})
    main = KafkaCluster.parse(cluster("main"))
    every = len(kafka.brokers)
    ready = cluster_status(main, kafka.snapshot(), [], ClusterHold(), START).conditions[0]
    assert ready.message == f"{every} brokers registered"
    kafka.brokers[2] = Broker(2, fenced=True)
    ready = cluster_status(main, kafka.snapshot(), [], ClusterHold(), START).conditions[0]
    assert ready.message == f"{every} brokers registered, 1 of them fenced (down or still starting): 2"


def test_what_came_while_all_was_being_listed_is_not_taken_for_gone() -> None:
    seen = store(cluster("vanished"), cluster("main"))
    known = seen.versions()
    seen.put(cluster("new"))
    seen.take_over([cluster("main")], known)
    assert {obj["metadata"]["name"] for obj in seen.clusters()} == {"main", "new"}


def test_a_cluster_that_is_unreachable_is_stalled_once_that_has_lasted() -> None:
    main, unreachable = KafkaCluster.parse(cluster("main")), Problem(Reason.CLUSTER_UNREACHABLE, "no broker answers")
    for seconds, kinds in ((0, {"Reconciling"}), (599, {"Reconciling"}), (600, {"Stalled", "Reconciling"})):
        status = unready_status(main, unreachable, START + timedelta(seconds=seconds))
        main = main.model_copy(update={"status": status})
        assert {c.type for c in status.conditions if c.status == "True"} == kinds
    duplicate = unready_status(main, Problem(Reason.DUPLICATE_CLUSTER, "use the other"), START)
    assert {c.type for c in duplicate.conditions if c.status == "True"} == {"Stalled"}


class EndingLoop:
    """A loop that takes a moment to end, as one that closes its connection does."""

    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.end = asyncio.Event()

    async def run(self) -> None:
        await self.end.wait()


def test_a_cluster_made_again_while_its_loop_is_ending_gets_a_loop() -> None:
    async def scenario() -> int:
        made: list[EndingLoop] = []
        again = asyncio.Event()
        known = store(cluster("main"))

        def make(_: object) -> Any:
            made.append(EndingLoop())
            if len(made) == 2:
                again.set()
            return made[-1]

        supervisor = Supervisor(known, None, None, None, (), make)  # type: ignore[arg-type]
        supervisor._serving = True
        supervisor._wake(("kafka", "main"))
        await asyncio.sleep(0)
        known.drop("uid-main")
        known.put(cluster("main"))
        supervisor._wake(("kafka", "main"))
        made[0].end.set()
        await again.wait()
        await supervisor.stop()
        return len(made)

    assert asyncio.run(asyncio.wait_for(scenario(), 5)) == 2


class TickingLoop:
    """A loop that ticks until it is stuck, and from then on waits for what never comes."""

    def __init__(self, key: tuple[str, str], health: Health) -> None:
        self.key, self.name, self.health, self.metrics = key, "/".join(key), health, Metrics()
        self.wake, self.stuck = asyncio.Event(), False

    async def run(self) -> None:
        try:
            while True:
                self.health.tick(self.name)
                if self.stuck:
                    await asyncio.Event().wait()
                await asyncio.sleep(0.01)
        finally:
            self.health.forget(self.name)


def test_a_stuck_loop_is_started_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "WATCHDOG_SECONDS", 0.02)
    health = Health(0.2, [])
    made: dict[str, list[TickingLoop]] = {"main": [], "other": []}

    def make(key: tuple[str, str]) -> Any:
        made[key[1]].append(TickingLoop(key, health))
        if len(made["main"]) == 2:
            again.set()
        return made[key[1]][-1]

    again = asyncio.Event()

    async def scenario() -> None:
        deleted = cluster("main")
        deleted["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        known = store(deleted, cluster("other"))
        supervisor = Supervisor(known, None, None, None, (), make)  # type: ignore[arg-type]
        supervisor._serving = True
        for name in made:
            supervisor._wake(("kafka", name))
        watchdog = asyncio.create_task(supervisor.restart_stuck())
        made["main"][0].stuck = True
        await again.wait()
        await asyncio.sleep(0.5)
        watchdog.cancel()
        assert health.stuck() == []
        await supervisor.stop()

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert {name: len(loops) for name, loops in made.items()} == {"main": 2, "other": 1}
    assert made["main"][0].metrics.text().count(b"kafka_reassign_loops_restarted_total 1.0") == 1


class Refusals:
    """A writer that takes down who was refused, and why."""

    def __init__(self) -> None:
        self.made: dict[str, str] = {}

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def refresh(self, resource: object) -> None:
        """What is known is what there is."""

    async def refuse(self, resource: Resource, problem: Problem, now: object) -> None:
        self.made[resource.name] = problem.reason


def test_a_resource_not_allowed_is_refused_but_its_moves_are_followed() -> None:
    moving = move("moving", "team-b", finalizers=["kafka.reassign.dev/cancel"])
    partition = {"partition": 0, "originalReplicas": [0], "targetReplicas": [1], "state": "InFlight"}
    topics = [{"topic": "t", "topicId": "id", "partitions": [partition]}]
    record = move("moving-0", "team-b") | {"kind": "ReassignmentRecord"}
    record["spec"] = {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0, "topics": topics}
    owner = {key: moving[key] for key in ("apiVersion", "kind")} | {"name": "moving", "uid": moving["metadata"]["uid"]}
    record["metadata"]["ownerReferences"] = [owner]
    known = store(cluster("main"), move("own"), move("allowed", "team-a"), move("refused", "team-b"), moving, record)
    writer: Any = Refusals()
    unused: Any = None
    unserved = Unserved(("kafka", "main"), known, writer, unused, unused)
    allowed = KafkaCluster.parse(cluster("main", allowedNamespaces=[{"name": "team-a", "topics": ["*"]}]))
    admitted = asyncio.run(unserved.refuse(allowed))
    assert {resource.name for resource in admitted} == {"own", "allowed", "moving"}
    assert writer.made == {"refused": "NamespaceNotAllowed"}


class Secrets:
    """What the API server has of Secrets; it can be emptied."""

    def __init__(self) -> None:
        self.data = {"password": b"secret"}

    async def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        if not self.data:
            raise MissingReferenceError(Reason.SECRET_NOT_FOUND, f"there is no Secret {name} in namespace {namespace}")
        return self.data


def secured(**metadata: Any) -> KafkaCluster:
    sasl = {
        "mechanism": "SCRAM-SHA-512",
        "username": "mover",
        "passwordSecretRef": {"name": "user", "key": "password"},
    }
    obj = cluster("main", sasl=sasl)
    obj["metadata"] |= metadata
    return KafkaCluster.parse(obj)


def test_when_the_secrets_are_gone_the_last_ones_serve_to_undo_the_moves() -> None:
    secrets: Any = Secrets()
    observer = Observer(secrets, lambda: None)
    before = asyncio.run(observer._connection_of(secured()))
    observer.connection, observer._connected_to = before, ("uid-main", secured().spec)
    secrets.data = {}
    deleted = secured(deletionTimestamp="2026-01-02T00:00:00Z")
    assert asyncio.run(observer._connection_of(deleted)) == before
    braked = secured()
    braked = braked.model_copy(
        update={"spec": braked.spec.model_copy(update={"execution": Execution.CANCEL_OURS})},
    )
    assert asyncio.run(observer._connection_of(braked)) == before
    with pytest.raises(MissingReferenceError):
        asyncio.run(observer._connection_of(secured()))


@pytest.mark.parametrize(
    ("directories", "cordoned"),
    [
        ({}, None),
        ({"/a": LogDir(cordoned=None)}, None),
        ({"/a": LogDir(cordoned=True), "/b": LogDir()}, False),
        ({"/a": LogDir(cordoned=True), "/b": LogDir(cordoned=True)}, True),
        ({"/a": LogDir(cordoned=True), "/b": LogDir(online=False)}, True),
        ({"/a": LogDir(online=False)}, None),
    ],
)
def test_a_status_shows_which_brokers_are_cordoned(directories: dict[str, LogDir], cordoned: bool | None) -> None:
    snapshot = replace(SimKafka({}).snapshot(), log_dirs={3: directories})
    status = cluster_status(KafkaCluster.parse(cluster("main")), snapshot, [], ClusterHold(), START)
    assert [broker.cordoned for broker in status.brokers] == [None, None, None, cordoned, None, None]


def test_a_cordon_that_a_peer_wants_holds_no_throttle_of_the_other() -> None:
    cordon = {"name": "cordoned.log.dirs", "value": "*"}
    record = RecordedConfigs.parse({"brokers": [{"broker": 3, "configs": [cordon]}]})
    wants = OLDER()._replace(throttle=record, cordons=frozenset({3}))
    snapshot = replace(SimKafka({}).snapshot(), cluster_id="one")
    assert peers_throttles(declared(YOUNGER()), snapshot, [wants], NOW) == (None, None)
    older, younger = peers_throttles(declared(YOUNGER()), snapshot, [wants._replace(cordons=frozenset())], NOW)
    assert older is not None
    assert younger is None


@pytest.mark.parametrize(
    ("hold", "deleted", "wanted"),
    [
        (ClusterHold(), False, {3}),
        (ClusterHold(pause=Problem(Reason.PAUSED, "")), False, {3}),
        (ClusterHold(older=Problem(Reason.DUPLICATE_CLUSTER, "")), False, set()),
        (ClusterHold(), True, set()),
    ],
)
def test_a_cluster_that_is_not_served_wants_no_cordon(hold: ClusterHold, deleted: bool, wanted: set[int]) -> None:
    main = cluster("main")
    if deleted:
        main["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    assert rules_of(KafkaCluster.parse(main), hold, None, frozenset({3})).wanted_cordons == wanted


def test_brokers_to_be_cordoned_are_asked_for_their_directories() -> None:
    asked: list[tuple[object, object]] = []

    class Client:
        async def observe(self, topics: object, sizes: object, destinations: set[int], doubts: object) -> Snapshot:
            asked.append((sizes, {*destinations}))
            directories = {b: {"/a": LogDir(cordoned=b == 4)} for b in destinations}
            return replace(SimKafka({}).snapshot(), sizes={}, log_dirs=directories)

    unused: Any = None
    observer, client = Observer(unused, unused), cast(KafkaClient, Client())
    cordon = {"name": "cordoned.log.dirs", "value": "*"}
    record = RecordedConfigs.parse({"brokers": [{"broker": 4, "configs": [cordon]}]})
    for throttle, wanted in ((None, {3}), (record, {3}), (None, set[int]()), (None, set[int]())):
        asyncio.run(observer._snapshot(client, throttle, [], wanted, NO_DOUBTS))
        observer._sized_at = float("-inf")
    assert asked == [(set(), {3}), (set(), {3, 4}), (set(), {4}), (set(), {4})]
    observer._log_dirs = {}
    asyncio.run(observer._snapshot(client, None, [], set(), NO_DOUBTS))
    assert asked[-1] == (None, set())
