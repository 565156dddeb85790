"""The loop of one KafkaCluster, mostly with the brake pulled: API server and brokers in memory, the rest as it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.api.common import FINALIZER, NEVER_WRITTEN
from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.cluster import outage
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.cluster.pace import AT_ONCE_SECONDS, MOVING_SECONDS, DriftTurn, Pace
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health
from reassign.controller.writing.attempts import AT_ONCE
from reassign.controller.writing.writer import Reporter
from reassign.core.model.forwarding import Forwarding
from reassign.core.model.memory import Recent
from reassign.core.model.snapshot import Broker, Snapshot, Topic, TopicPartition
from reassign.core.model.steps import Alter, Cancel, Outcome, Step
from reassign.errors import ApiServerError, ClusterError, ConflictError, Reason, ReassignError
from reassign.kafka.connection import Connection
from reassign.kube.events import EventRecorder
from tests.unit import kstatus
from tests.unit.sim import SimKafka

OURS, THEIRS, LATER = TopicPartition("ours", 0), TopicPartition("theirs", 0), TopicPartition("later", 0)
Object = dict[str, Any]


class Kube:
    """Objects with resource versions, and the ConfigMaps that were made."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.config_maps: list[list[Object]] = []
        self.events: list[str] = []
        self.refusal: ReassignError | None = None
        self.unwritable: set[str] = set()
        """The uids of those whose status a webhook that fails keeps from being written."""
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def now(self) -> datetime:
        return self.clock()

    def write(self, uid: str, change: Callable[[Object], None]) -> Object:
        """The object after a client has changed it."""
        before = self.objects[uid]
        after = self.objects[uid] = deepcopy(before)
        change(after)
        if "status" in after:
            after["status"].setdefault("observedGeneration", NEVER_WRITTEN)  # the schema's default
        after["metadata"]["resourceVersion"] = str(int(before["metadata"]["resourceVersion"]) + 1)
        return deepcopy(after)

    def _write(self, obj: Object, change: Callable[[Object], None]) -> Object:
        uid = obj["metadata"]["uid"]
        if self.objects[uid]["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise ConflictError("another version")
        return self.write(uid, change)

    async def get(self, kind: str, namespace: str, name: str) -> Object | None:
        if not name:  # then the path is that of the collection
            return {"kind": f"{kind}List", "metadata": {}, "items": []}
        return deepcopy(self.objects.get(f"uid-{name}"))

    async def metadata(self, kind: str, namespace: str, name: str) -> Object | None:
        found = await self.get(kind, namespace, name)
        return found and {"kind": "PartialObjectMetadata", "metadata": found["metadata"]}

    async def add_finalizer(self, obj: Object) -> Object:
        if FINALIZER in obj["metadata"].get("finalizers", ()):
            return obj
        return self._write(obj, lambda new: new["metadata"].update(finalizers=[FINALIZER]))

    async def remove_finalizer(self, obj: Object) -> Object:
        left = self._write(obj, lambda new: new["metadata"].update(finalizers=[]))
        if left["metadata"].get("deletionTimestamp"):
            del self.objects[left["metadata"]["uid"]]
        return left

    async def write_status(self, obj: Object, status: Object) -> Object:
        if obj["metadata"]["uid"] in self.unwritable:
            raise ApiServerError("500: failed calling webhook")
        kstatus.check(obj | {"status": status})
        return self._write(obj, lambda new: new.update(status=status))

    async def create(self, obj: Object) -> Object:
        uid = f"uid-{obj['metadata']['name']}"
        if uid in self.objects:
            raise ConflictError("already exists")
        given = {"uid": uid, "resourceVersion": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
        status = {} if obj["kind"] == "ReassignmentRecord" else {"status": {"observedGeneration": NEVER_WRITTEN}}
        self.objects[uid] = deepcopy(obj) | {"metadata": obj["metadata"] | given} | status
        return deepcopy(self.objects[uid])

    async def write_record(self, obj: Object, spec: Object, *, held: bool) -> Object:
        def change(new: Object) -> None:
            new["spec"] = spec
            if held:
                new["metadata"]["finalizers"] = [FINALIZER]

        return self._write(obj, change)

    async def suspend(self, obj: Object, suspended: bool) -> Object:
        def change(new: Object) -> None:
            new["spec"].update(suspend=suspended)
            new["metadata"]["generation"] += 1

        return self._write(obj, change)

    async def delete(self, obj: Object) -> Object | None:
        if obj["metadata"].get("finalizers"):
            return self._write(obj, lambda new: new["metadata"].update(deletionTimestamp="2026-01-02T00:00:00Z"))
        del self.objects[obj["metadata"]["uid"]]
        return None

    async def create_config_map(self, namespace: str, name: str, data: Object, labels: Object) -> None:
        if self.refusal:
            raise self.refusal
        self.config_maps.append(json.loads(data["reassignment.json"])["partitions"])

    async def request(self, verb: str, path: str, body: Object, **_: object) -> Object:
        self.events.append(body.get("reason", "a repeat"))
        return body


class KilledError(Exception):
    """The process ends here."""


class Brokers:
    """SimKafka behind the adapter's methods; it shows the topics that were asked for."""

    def __init__(self, kafka: SimKafka, kube: Kube) -> None:
        self._kafka = kafka
        self._kube = kube
        self.kept_at_cancel: list[int] = []
        self.dies = False
        self.reachable = True
        self.short: dict[str, Topic] = {}
        self.asked: frozenset[str] = frozenset()

    async def observe(
        self, topics: Collection[str], sizes_of: object, destinations: object, doubts: object
    ) -> Snapshot:
        if not self.reachable:
            raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")
        self.asked = frozenset(topics)
        found = self._kafka.snapshot()
        return replace(found, topics={name: topic for name, topic in found.topics.items() if name in topics})

    async def observe_shortages(self) -> Mapping[str, Topic]:
        return self.short

    async def perform(self, steps: Sequence[Step]) -> dict[Step, Outcome]:
        if self.dies:
            raise KilledError
        self.kept_at_cancel += [len(self._kube.config_maps) for step in steps if isinstance(step, Cancel)]
        return {step: self._kafka.perform(step) for step in steps}

    async def close(self) -> None:
        pass


class World:
    """A KafkaCluster, one resource that moves OURS, and another client that moves THEIRS."""

    def __init__(self) -> None:
        sizes = {tp: dict.fromkeys(range(6), 100) for tp in (OURS, THEIRS, LATER)}
        self.kafka = SimKafka(dict.fromkeys(sizes, (1, 2, 3)), min_insync=2, sizes=sizes)
        self.store = Store()
        self.kube = Kube()
        self.put(_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"}))
        self.add("move", OURS, (4, 2, 3))
        self.metrics = Metrics()
        self.planner = Planner()
        self.brokers = Brokers(self.kafka, self.kube)
        self.loop = self.new_loop()
        self.kafka.perform(Alter(THEIRS, (5, 2, 3)))
        self.tick(until=lambda: set(self.kafka.reassignments) == {OURS, THEIRS})

    def new_loop(self) -> ClusterLoop:
        """One that is connected."""
        kube: Any = self.kube
        client: Any = self.brokers
        reporter = Reporter(kube, EventRecorder(kube, "test"), self.store, self.metrics)
        plans = Plans(self.store, kube, reporter, self.planner)
        health = Health(60, [])
        loop = ClusterLoop(("kafka", "main"), self.store, kube, reporter, self.metrics, health, lambda: None, plans)
        connect(loop, client, self.store.parse_cluster(self.store.get("uid-main") or {}))
        return loop

    def tick(self, times: int = 1, until: Callable[[], bool] | None = None) -> None:
        for _ in range(20 if until else times):
            asyncio.run(self.loop._tick())  # type: ignore[arg-type]
            if until and until():
                return
        assert until is None, "it did not come true"

    def safe_tick(self, until: Callable[[], bool]) -> None:
        """Tick as the loop does by itself: what ends one tick does not end the next."""
        for _ in range(20):
            asyncio.run(self.loop._safe_tick())  # type: ignore[arg-type]
            if until():
                return
        raise AssertionError("it did not come true")

    def add(self, name: str, tp: TopicPartition, replicas: Sequence[int]) -> None:
        """One more resource, which moves one partition."""
        entry = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        self.put(_object("PartitionReassignment", name, {"clusterRef": {"name": "main"}, "partitions": [entry]}))

    def put(self, obj: Object) -> None:
        """An object is there."""
        self.kube.objects[obj["metadata"]["uid"]] = obj
        self.store.put(deepcopy(obj))

    def change(self, name: str, change: Callable[[Object], None]) -> None:
        """Write the spec or metadata of an object as another client."""

        def edit(obj: Object) -> None:
            change(obj)
            obj["metadata"]["generation"] += 1

        self.store.put(self.kube.write(f"uid-{name}", edit))

    def change_status(self, name: str, change: Callable[[Object], None]) -> None:
        """Write the status of an object as another client; the watch brings it."""
        self.store.put(self.kube.write(f"uid-{name}", lambda obj: change(obj["status"])))

    def restart(self) -> None:
        """The process is new: what it knew is lost."""
        self.store = Store()
        self.store.take_over([*self.kube.objects.values()], {})
        self.loop = self.new_loop()

    def delete(self, name: str) -> None:
        self.change(name, lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-02T00:00:00Z"))

    def pull(self, execution: str) -> None:
        self.change("main", lambda obj: obj["spec"].update(execution=execution))

    def conditions(self, name: str) -> dict[str, str]:
        obj = self.store.get(f"uid-{name}") or {}
        return {c["type"]: c["reason"] for c in obj["status"]["conditions"] if c["status"] == "True"}

    def ready(self, name: str) -> Object:
        """The condition Ready."""
        obj = self.store.get(f"uid-{name}") or {}
        return next(c for c in obj["status"]["conditions"] if c["type"] == "Ready")

    def kept(self) -> list[list[str]]:
        return [[move["topic"] for move in moves] for moves in self.kube.config_maps]


def connect(loop: ClusterLoop, client: Any, cluster: KafkaCluster) -> None:
    """Have it connected to these brokers, in an operator that has been running for long."""
    loop.observer.client, loop.observer.connection = client, Connection("b:9092")
    loop.observer._connected_to = (cluster.metadata.uid, cluster.spec)
    forget(loop, started=float("-inf"), forwarding=Forwarding(listed={0: float("-inf")}))


def forget(loop: ClusterLoop, **recent: Any) -> None:
    """Have it remember this of its last seconds instead."""
    loop.memory = replace(loop.memory, recent=replace(loop.memory.recent, **recent))


def _object(kind: str, name: str, spec: Object) -> Object:
    metadata = {
        "name": name,
        "namespace": "kafka",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": {"observedGeneration": NEVER_WRITTEN} | ({"clusterId": "sim"} if kind == "KafkaCluster" else {}),
    }


def served(since: str = "2025-01-01T00:00:00Z", reason: str = "Connected") -> Object:
    """The status of a KafkaCluster for these brokers: Ready, or for this reason not."""
    ready = {"type": "Ready", "status": str(reason == "Connected"), "reason": reason, "message": ""}
    return {"clusterId": "sim", "conditions": [{**ready, "lastTransitionTime": since}]}


def throttle_record(cluster: str, namespace: str = "kafka") -> Object:
    """The record of a throttle that is set on a topic for a KafkaCluster."""
    config = {"name": "follower.replication.throttled.replicas", "value": "0:1"}
    throttle = {"topics": [{"topic": "other", "configs": [config]}]}
    made = _object("ReassignmentRecord", f"uid-{cluster}-0", {"part": 0, "throttle": throttle})
    made["spec"]["clusterRef"] = {"name": cluster, "namespace": namespace}
    version = made["apiVersion"]
    owner = {"apiVersion": version, "kind": "KafkaCluster", "name": cluster, "uid": f"uid-{cluster}"}
    made["metadata"] |= {"namespace": namespace, "ownerReferences": [owner]}
    return made


@pytest.fixture
def world() -> World:
    return World()


def test_cancel_ours_cancels_ours_at_the_next_tick_and_keeps_nothing(world: World) -> None:
    world.pull("CancelOurs")
    world.tick()
    assert set(world.kafka.reassignments) == {THEIRS}
    assert world.kube.config_maps == []
    assert world.conditions("main") == {"Ready": "Connected", "Paused": "CancelledByBrake"}
    assert "CancelledByBrake" in world.kube.events


def test_cancel_all_keeps_and_then_cancels_everything_at_the_next_tick(world: World) -> None:
    world.pull("CancelAll")
    world.tick()
    assert world.kafka.reassignments == {}
    assert world.kept() == [["ours", "theirs"]]
    assert world.brokers.kept_at_cancel == [1, 1]
    world.tick(3)
    assert world.kept() == [["ours", "theirs"]]
    pause = asyncio.run(world.loop._tick())
    assert pause is not None
    assert pause <= MOVING_SECONDS  # what others begin now does not go on for long


def test_the_brake_takes_back_what_it_can_though_much_cannot_be_written(world: World) -> None:
    for number in range(5):
        world.add(f"bad-{number}", LATER, (4, 2, 3))
    world.kube.unwritable = {"uid-main", *(f"uid-bad-{number}" for number in range(5))}
    world.pull("CancelOurs")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_a_kill_between_keeping_and_cancelling_keeps_again_and_cancels(world: World) -> None:
    world.brokers.dies = True
    world.pull("CancelAll")
    with pytest.raises(KilledError):
        world.tick()
    world.brokers.dies = False
    world.loop.memory = replace(world.loop.memory, kept={})  # as a new process has it
    world.tick()
    assert world.kafka.reassignments == {}
    assert world.kept() == [["ours", "theirs"], ["ours", "theirs"]]


def test_a_foreign_move_started_under_cancel_all_is_kept_and_cancelled(world: World) -> None:
    world.pull("CancelAll")
    world.tick()
    world.kafka.perform(Alter(LATER, (5, 2, 3)))
    world.tick(until=lambda: not world.kafka.reassignments)
    assert world.kept() == [["ours", "theirs"], ["later"]]


def test_moves_that_cannot_be_kept_are_not_cancelled_and_are_reported(world: World) -> None:
    world.kube.refusal = ReassignError(Reason.NOT_AUTHORIZED, "no more ConfigMaps")
    world.pull("CancelAll")
    world.tick(2)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert world.conditions("main")["Stalled"] == "NotAuthorized"
    world.kube.refusal = None
    world.tick(2)
    assert world.kafka.reassignments == {}
    assert "Stalled" not in world.conditions("main")


def test_an_unsafe_cancel_of_a_foreign_move_waits_and_is_named(world: World) -> None:
    world.kafka.isr[THEIRS] = frozenset({2, 5})
    world.kafka.brokers |= {1: Broker(1, fenced=True), 3: Broker(3, fenced=True)}
    world.pull("CancelAll")
    world.tick(2)
    assert THEIRS in world.kafka.reassignments
    assert world.conditions("main")["Stalled"] == "CancelUnsafe"
    world.kafka.brokers |= {3: Broker(3)}
    world.kafka.isr[THEIRS] = frozenset({2, 3, 5})
    world.tick(until=lambda: THEIRS not in world.kafka.reassignments)


def test_a_cluster_that_an_older_one_stands_for_cancels_nothing_of_others(world: World) -> None:
    older = _object("KafkaCluster", "older", {"bootstrapServers": "b:9092"})
    older["status"] = served()
    older["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    world.put(older)
    world.pull("CancelAll")
    world.tick(2)
    assert set(world.kafka.reassignments) == {THEIRS}


@pytest.mark.parametrize("change", ["moved", "made again"])
def test_a_change_during_a_record_write_is_decided_again(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    entry = {"topic": "later", "partition": 0, "replicas": [4, 2, 3], "expectedReplicas": [1, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(entry))
    write_record = world.kube.write_record

    async def meanwhile(obj: Object, spec: Object, *, held: bool) -> Object:
        if any(topic["topic"] == "later" for topic in spec.get("topics", ())) and not changed:
            changed.append(change)
            if change == "moved":
                world.kafka.move_as_another(LATER, (5, 2, 3))
                world.kafka.copy(LATER)
            else:
                world.kafka.topic_ids["later"] = "another"
        return await write_record(obj, spec, held=held)

    changed: list[str] = []
    monkeypatch.setattr(world.kube, "write_record", meanwhile)
    world.tick(5)
    assert changed == [change]
    assert LATER not in world.kafka.reassignments
    assert world.kafka.replicas[LATER] == ((5, 2, 3) if change == "moved" else (1, 2, 3))


def test_a_resource_with_a_lost_record_reports_its_wait(world: World) -> None:
    del world.kube.objects["uid-uid-move-0"]
    world.restart()
    world.delete("move")
    world.brokers.reachable = False
    world.loop.memory = replace(world.loop.memory, recent=Recent())  # nothing seen yet
    world.tick()
    assert world.conditions("move") == {"Reconciling": "Cancelling"}
    assert world.ready("move")["reason"] == "ClusterUnreachable"
    move = world.store.resource("uid-move")
    assert move
    assert move.record_lost


@pytest.mark.parametrize(("seconds", "reason"), [(9.0, "Connected"), (12.0, "ClusterUnreachable")])
def test_brokers_that_hang_for_long_show_after_one_observation(
    world: World, monkeypatch: pytest.MonkeyPatch, seconds: float, reason: str
) -> None:
    now = time.monotonic()

    async def hang(*_: object) -> Snapshot:
        nonlocal now
        now += seconds
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no answer in time")

    monkeypatch.setattr(world.brokers, "observe", hang)
    monkeypatch.setattr(outage, "time", SimpleNamespace(monotonic=lambda: now))
    world.tick()
    assert world.ready("main")["reason"] == reason


def test_a_cluster_being_deleted_waits_only_for_what_is_not_settled(world: World) -> None:
    world.delete("main")
    world.tick(3)
    assert "kafka/move" in world.ready("main")["message"]
    world.kafka.copy(OURS)
    world.tick(until=lambda: world.store.get("uid-main") is None)
    assert world.conditions("move") == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("field", [{"mode": "DryRun"}, {"suspend": True}], ids=["dry run", "suspended"])
def test_a_dry_run_keeps_no_cluster_and_a_suspended_move_does(world: World, field: Object) -> None:
    world.kafka.copy(OURS)
    world.add("later", LATER, (4, 2, 3))
    world.change("later", lambda obj: obj["spec"].update(field))
    world.tick(3)
    world.delete("main")
    world.tick(3)
    assert (world.store.get("uid-main") is None) is ("mode" in field)


@pytest.fixture
def in_two_batches(world: World) -> World:
    """The first batch is in flight."""
    later = {"topic": "later", "partition": 0, "replicas": [4, 2, 3]}
    world.change("move", lambda obj: obj["spec"]["partitions"].append(later))
    world.change("move", lambda obj: obj["spec"].update(concurrency={"partitions": 1}))
    world.tick(2)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    return world


def test_started_moves_are_one_event_and_not_one_per_batch(in_two_batches: World) -> None:
    world = in_two_batches
    world.kafka.copy(OURS)
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick(2)
    assert world.kube.events == ["ReassignmentStarted"]


def test_moves_started_again_after_a_pause_count_in_the_first_event(in_two_batches: World) -> None:
    world = in_two_batches
    world.change("move", lambda obj: obj["spec"].update(suspend=True))
    world.kafka.copy(OURS)
    world.tick(2)
    assert (world.conditions("move"), world.ready("move")["reason"]) == ({}, "Suspended")
    world.change("move", lambda obj: obj["spec"].update(suspend=False))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.kube.events == ["ReassignmentStarted", "a repeat"]


def test_a_failed_survey_stops_no_deletion(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails() -> Mapping[str, Topic]:
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    world.add("waits", LATER, (4, 2, 3))
    monkeypatch.setattr(world.brokers, "observe_shortages", fails)
    world.loop.observer._survey._at = float("-inf")
    world.delete("move")
    world.tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})
    world.tick(until=lambda: world.store.get("uid-move") is None)
    assert world.conditions("main")["Paused"] == "ClusterUnreachable"
    assert LATER not in world.kafka.reassignments


@pytest.mark.parametrize("error", [ApiServerError("500"), ConflictError("another version")], ids=["500", "409"])
def test_a_status_that_is_refused_stops_no_cancel(
    world: World, monkeypatch: pytest.MonkeyPatch, error: ReassignError
) -> None:
    async def refuse(*_: object, **__: object) -> Object:
        raise error

    world.add("late", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.pull("CancelOurs")
    for method in ("get", "write_status", "write_record", "create"):
        monkeypatch.setattr(world.kube, method, refuse)
    world.safe_tick(until=lambda: set(world.kafka.reassignments) == {THEIRS})


def test_a_conflict_on_the_cluster_is_resolved_by_a_get(world: World) -> None:
    world.kube.write("uid-main", lambda obj: obj["metadata"].update(labels={"a": "b"}))  # the watch is late
    world.change_status("main", lambda status: status.update(inFlight=7))
    world.store._objects["uid-main"]["metadata"]["resourceVersion"] = "1"
    world.add("late", LATER, (4, 2, 3))
    world.safe_tick(until=lambda: LATER in world.kafka.reassignments)


def test_nothing_begins_under_a_brake_that_the_watch_has_not_brought(world: World) -> None:
    def brake(obj: Object) -> None:
        obj["spec"]["execution"] = "Pause"
        obj["metadata"]["generation"] += 1

    world.add("late", LATER, (4, 2, 3))
    world.kube.write("uid-main", brake)
    world.tick(5)
    assert LATER not in world.kafka.reassignments
    assert world.conditions("main")["Paused"] == "Paused"


def test_the_end_of_quick_moves_is_looked_for_soon_and_of_slow_ones_later(world: World) -> None:
    pauses = [asyncio.run(world.loop._tick()) for _ in range(6)]
    assert pauses == [0.2, 0.4, 0.8, MOVING_SECONDS, MOVING_SECONDS, MOVING_SECONDS]


def test_after_a_move_has_ended_the_loop_ticks_at_once(world: World) -> None:
    world.add("later", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    world.tick(6)
    world.kafka.copy(OURS)
    assert asyncio.run(world.loop._tick()) == AT_ONCE_SECONDS
    assert asyncio.run(world.loop._tick()) < MOVING_SECONDS


def test_a_loop_that_finds_nothing_pauses_as_long_as_it_worked() -> None:
    pace = Pace()
    pace.at_once()
    assert [pace.later(took) for took in (0.0, 0.7, 0.1, 5.0, 0.0)] == [0.2, 0.7, 0.8, MOVING_SECONDS, MOVING_SECONDS]


def test_several_resources_are_written_at_once_but_not_all(world: World) -> None:
    write, under_way, at_once = world.kube.write_status, set(), []

    async def slowly(obj: Object, status: Object) -> Object:
        under_way.add(obj["metadata"]["uid"])
        at_once.append(len(under_way))
        for _ in range(20):
            await asyncio.sleep(0)
        under_way.remove(obj["metadata"]["uid"])
        return await write(obj, status)

    world.kube.write_status = slowly  # type: ignore[method-assign]
    for number in range(3 * AT_ONCE):
        world.add(f"r{number}", TopicPartition("later", number), (4, 2, 3))
    world.tick()
    assert len(at_once) >= 3 * AT_ONCE
    assert max(at_once) == AT_ONCE


def test_an_error_with_one_of_several_resources_keeps_no_other_waiting(world: World) -> None:
    names = [f"r{number}" for number in range(3 * AT_ONCE)]
    for name in names:
        world.add(name, LATER, (4, 2, 3))
    world.kube.unwritable = {f"uid-{name}" for name in names[::2]}
    world.tick()
    written = {name for name in names if "conditions" in world.kube.objects[f"uid-{name}"]["status"]}
    assert written == set(names[1::2])


def test_resources_are_judged_for_drift_as_seldom_as_that_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0, cpu=0.0)
    time = SimpleNamespace(monotonic=lambda: clock.now, process_time=lambda: clock.cpu)
    monkeypatch.setattr("reassign.controller.cluster.pace.time", time)
    turn, judged = DriftTurn(), []
    for second in range(200):
        clock.now = float(second)
        with turn.tick():
            judged += [second] if turn.now else []
            clock.cpu += 1.0 if second >= 30 else 0.125
    assert judged == [0, 15, 30, 80, 130, 180]


def test_a_long_round_is_not_a_stuck_loop(world: World) -> None:
    now = 0.0
    world.loop.health = health = Health(30.0, [], clock=lambda: now)
    health.tick(world.loop.name)
    world.add("later", LATER, (4, 2, 3))
    write_status, stuck = world.kube.write_status, []

    async def slowly(obj: Object, status: Object) -> Object:
        nonlocal now
        now += 25
        stuck.extend(health.stuck())
        return await write_status(obj, status)

    world.kube.write_status = slowly  # type: ignore[method-assign]
    world.delete("move")
    for _ in range(3):
        world.tick()
        health.tick(world.loop.name)
    assert now > 60
    assert stuck == []
