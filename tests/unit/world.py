"""The loop of one KafkaCluster with API server and brokers in memory; the rest is the operator's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from reassign.api.common import FINALIZER, NEVER_WRITTEN
from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health
from reassign.controller.writing.writer import Writer
from reassign.core.model.forwarding import Forwarding
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot, Topic, TopicPartition
from reassign.core.model.steps import Alter, Cancel, Outcome, Step, not_directed
from reassign.errors import ApiServerError, ClusterError, ConflictError, Reason, ReassignError
from reassign.kafka.client import StillValid
from reassign.kafka.connection import Connection
from reassign.kafka.steps import batches, turn
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

    async def remove_entries(self, obj: Object, partitions: Collection[tuple[str, int]]) -> Object:
        def change(new: Object) -> None:
            entries = new["spec"]["partitions"]
            new["spec"]["partitions"] = [e for e in entries if (e["topic"], e["partition"]) not in partitions]
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


class KilledError(BaseException):
    """The process ends here, whatever catches errors."""


class Brokers:
    """SimKafka behind the adapter's methods; it shows the topics that were asked for."""

    def __init__(self, kafka: SimKafka, kube: Kube) -> None:
        self._kafka = kafka
        self._kube = kube
        self.kept_at_cancel: list[int] = []
        self.dies = False
        self.reachable = True
        self.short: dict[str, Topic] = {}
        self.layouts = 0
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

    async def observe_layout(self, logs_of: Callable[[Layout], Collection[int]]) -> Layout:
        self.layouts += 1
        found = layout_seen(self._kafka.snapshot())
        return replace(found, log_dirs={b: found.log_dirs[b] for b in logs_of(found) if b in found.log_dirs})

    async def perform(self, steps: Sequence[Step], still_valid: StillValid | None = None) -> dict[Step, Outcome]:
        if self.dies:
            raise KilledError
        self.kept_at_cancel += [len(self._kube.config_maps) for step in steps if isinstance(step, Cancel)]
        outcomes: dict[Step, Outcome] = {}
        for batch in batches(sorted(steps, key=turn)):
            for step in await still_valid(batch) if still_valid else batch:
                outcomes[step] = not_directed(step, outcomes) or self._kafka.perform(step)
        return outcomes

    async def close(self) -> None:
        pass


class World:
    """A KafkaCluster, one resource that moves OURS, and another client that moves THEIRS."""

    def __init__(self) -> None:
        sizes = {tp: dict.fromkeys(range(6), 100) for tp in (OURS, THEIRS, LATER)}
        self.kafka = SimKafka(dict.fromkeys(sizes, (1, 2, 3)), min_insync=2, sizes=sizes)
        self.store = Store()
        self.kube = Kube()
        self.put(api_object("KafkaCluster", "main", {"bootstrapServers": "b:9092"}))
        self.put(cluster_record("main"))
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
        writer = Writer(kube, EventRecorder(kube, "test"), self.store, self.metrics)
        plans = Plans(self.store, kube, writer, self.planner)
        health = Health(60, [])
        loop = ClusterLoop(("kafka", "main"), self.store, kube, writer, self.metrics, health, lambda: None, plans)
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
        self.put(api_object("PartitionReassignment", name, {"clusterRef": {"name": "main"}, "partitions": [entry]}))

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


def serve_beside(world: World, name: str, reason: Reason | None = None) -> None:
    """The process serves this KafkaCluster for the same brokers, too: it is Ready, or for this reason not."""
    if world.store.cluster_id(f"uid-{name}") is None:
        world.put(cluster_record(name, world.store.get(f"uid-{name}")["metadata"]["namespace"]))  # type: ignore[index]
    world.store.note_served(f"uid-{name}", reason and Problem(reason, ""))


def connect(loop: ClusterLoop, client: Any, cluster: KafkaCluster) -> None:
    """Have it connected to these brokers, in an operator that has been running for long."""
    loop.observer.client, loop.observer.connection = client, Connection("b:9092")
    loop.observer._connected_to = (cluster.metadata.uid, cluster.spec)
    forget(loop, started=float("-inf"), forwarding=Forwarding(listed={0: float("-inf")}))


def forget(loop: ClusterLoop, **recent: Any) -> None:
    """Have it remember this of its last seconds instead."""
    loop.memory = replace(loop.memory, recent=replace(loop.memory.recent, **recent))


def api_object(kind: str, name: str, spec: Object) -> Object:
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
        "status": {"observedGeneration": NEVER_WRITTEN},
    }


def cluster_record(cluster: str, namespace: str = "kafka", cluster_id: str = "sim", **more: Any) -> Object:
    """The record of a KafkaCluster, for the simulated brokers if nothing else is said."""
    spec = {"clusterRef": {"name": cluster, "namespace": namespace}, "part": 0, "clusterId": cluster_id, **more}
    made = api_object("ReassignmentRecord", f"uid-{cluster}-0", spec)
    version = made["apiVersion"]
    owner = {"apiVersion": version, "kind": "KafkaCluster", "name": cluster, "uid": f"uid-{cluster}"}
    made["metadata"] |= {"namespace": namespace, "ownerReferences": [owner]}
    return made


def config_record(cluster: str, namespace: str = "kafka") -> Object:
    """The record of a KafkaCluster for which a throttle is set on a topic."""
    config = {"name": "follower.replication.throttled.replicas", "value": "0:1"}
    made = cluster_record(cluster, namespace, throttle={"topics": [{"topic": "other", "configs": [config]}]})
    made["metadata"]["resourceVersion"] = "2"  # it is written after the id
    return made


def fails_for(monkeypatch: pytest.MonkeyPatch, where: Any, function: str, name: str) -> None:
    """Have a function whose first argument is, or has, a resource raise for the one of that name."""
    right = getattr(where, function)

    def wrong(first: Any, *rest: Any) -> Any:
        if getattr(first, "resource", first).name == name:
            raise ZeroDivisionError
        return right(first, *rest)

    monkeypatch.setattr(where, function, wrong)
