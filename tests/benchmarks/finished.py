"""What finished resources take of the operator: memory, the longest stall of its event loop, and seconds of CPU.

WAVES PartitionReassignments of EACH partitions that have succeeded, with their records, are listed from an HTTP server
and held. Brokers are made: they have all replicas where they were brought. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from reassign.api.common import API_VERSION, GROUP, VERSION
from reassign.api.kafka_cluster import KafkaCluster, ReplicationFactorGuard
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.controller.objects.part import Part
from reassign.controller.objects.reading import joined, parse_resource
from reassign.controller.objects.store import Store
from reassign.controller.objects.watches import Watches
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health
from reassign.controller.supervisor import Supervisor
from reassign.controller.writing.writer import Writer
from reassign.core.cluster import ClusterHold, rules_of
from reassign.core.configs.stage import ConfigRead
from reassign.core.model.forwarding import Forwarded
from reassign.core.model.snapshot import Broker, Partition, Snapshot, Topic
from reassign.core.report.statuses import report
from reassign.core.tick import Memory, decide
from reassign.kafka.connection import Connection
from reassign.kube.client import Kind, KubeClient
from reassign.kube.events import EventRecorder
from tests.benchmarks.memory import MIB, memory

WAVES, EACH, PART, TOPIC = 400, 500, 100, 100
"""Resources, partitions of each, of one part of a record, and of one topic."""
BEAT_SECONDS = 0.01
IDLE_SECONDS = 30.0
Object = dict[str, Any]


# --- The API server ---


def objects(waves: int) -> Iterator[Object]:
    """The KafkaCluster, and the finished resources with their records."""
    cluster = _object("KafkaCluster", "made", {"bootstrapServers": "made:9092"})
    yield cluster | {"status": {"observedGeneration": 1}}
    record = _object("ReassignmentRecord", "made-0", {"clusterRef": _ref(), "part": 0, "clusterId": "made"})
    record["metadata"]["ownerReferences"] = [_owner(cluster)]
    yield record
    seen, rules = cluster_of(waves), rules_of(KafkaCluster.parse(cluster), ClusterHold(), None)
    for number in range(waves):
        entries = [_entry(p) for p in range(number * EACH, (number + 1) * EACH)]
        wave = _object("PartitionReassignment", f"wave-{number:04}", {"clusterRef": _ref(), "partitions": entries})
        wave["status"] = {"observedGeneration": 1}
        parts = [_part(wave, entries[first : first + PART], first // PART) for first in range(0, EACH, PART)]
        resource = joined(parse_resource(wave), [Part.parse(part) for part in parts])
        now = datetime.now(UTC)
        for _ in range(2):
            resource = replace(resource, has_finalizer=False)
            topics = {tp.topic: seen.topics[tp.topic] for tp in resource.asked}
            memory = Memory.begin(float("-inf"))
            [verdict] = decide([resource], replace(seen, topics=topics), ConfigRead(), memory, rules, now).verdicts
            resource = replace(resource, status=report(*rules.view(verdict, seen), (), now))
        wave["status"] = resource.status.wire()
        wave["metadata"]["managedFields"] = _managed(wave)
        yield wave
        for part in parts:
            part["metadata"]["managedFields"] = _managed(part)
            yield part


def cluster_of(waves: int) -> Snapshot:
    topics = {
        _topic(first): Topic(
            _topic(first),
            1,
            {
                n: Partition(_replicas(first + n), frozenset(_replicas(first + n)), _replicas(first + n)[0])
                for n in range(TOPIC)
            },
        )
        for first in range(0, waves * EACH, TOPIC)
    }
    return Snapshot(
        cluster_id="made",
        guard=ReplicationFactorGuard.NATIVE,
        brokers={b: Broker(b) for b in range(30)},
        topics=topics,
        reassignments={},
        forwarded=Forwarded(0, frozenset({0})),
    )


def _topic(partition: int) -> str:
    return f"orders-of-all-customers-{partition // TOPIC:05}"


def _replicas(partition: int) -> tuple[int, ...]:
    return tuple((partition + n) % 30 for n in range(3))


def _entry(partition: int) -> Object:
    topic, number = _topic(partition), partition % TOPIC
    return {"topic": topic, "partition": number, "replicas": list(_replicas(partition))}


def _ref() -> Object:
    return {"name": "made", "namespace": "made"}


def _owner(obj: Object) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }


def _object(kind: str, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": "made", "uid": f"{kind}-{name}", "resourceVersion": "7", "generation": 1}
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def _part(wave: Object, entries: list[Object], number: int) -> Object:
    topics: dict[str, list[Object]] = {}
    for entry in entries:
        original = [*entry["replicas"][1:], (entry["replicas"][0] + 9) % 30]
        moved = {"originalReplicas": original, "targetReplicas": entry["replicas"], "state": "Completed"}
        topics.setdefault(entry["topic"], []).append({"partition": entry["partition"], **moved})
    written = [{"topic": topic, "topicId": topic, "partitions": moved} for topic, moved in topics.items()]
    spec = {"clusterRef": _ref(), "part": number, "deletionPolicy": "Cancel", "topics": written}
    part = _object("ReassignmentRecord", f"{wave['metadata']['uid']}-{number}", spec)
    part["metadata"]["ownerReferences"] = [_owner(wave)]
    return part


def _managed(obj: Object) -> list[Object]:
    """What the API server says of each field: entries of the spec one by one, and the rest as a whole."""
    entries = {
        f'k:{{"partition":{entry["partition"]},"topic":"{entry["topic"]}"}}': {
            ".": {},
            "f:partition": {},
            "f:replicas": {},
            "f:topic": {},
        }
        for entry in obj["spec"].get("partitions", ())
    }
    fields = {"f:spec": {f"f:{name}": entries if name == "partitions" else {} for name in obj["spec"]}}
    by = {"apiVersion": API_VERSION, "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z", "operation": "Apply"}
    return [{**by, "manager": "kubectl", "fieldsV1": fields}]


class Server:
    """Lists in pages, as far as it is asked for that, and watches that bring nothing."""

    def __init__(self, waves: int) -> None:
        self._items: dict[str, dict[str, bytes]] = {kind.plural: {} for kind in Kind}
        for obj in objects(waves):
            self._items[Kind(obj["kind"]).plural][obj["metadata"]["name"]] = json.dumps(obj).encode()

    def serve(self, port: Any) -> None:
        async def run() -> None:
            app = web.Application()
            app.router.add_get("/api", self._core)
            app.router.add_get("/api/v1", self._namespaces)
            app.router.add_get("/apis", self._groups)
            app.router.add_get(f"/apis/{API_VERSION}", self._resources)
            app.router.add_get(f"/apis/{API_VERSION}/{{plural}}", self._list)
            one = f"/apis/{API_VERSION}/namespaces/made/{{plural}}/{{name}}"
            app.router.add_get(one, self._get)
            app.router.add_patch(one, self._patch)
            app.router.add_patch(f"{one}/status", self._patch)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port.send(site._server.sockets[0].getsockname()[1])  # type: ignore[union-attr]
            await asyncio.Event().wait()

        asyncio.run(run())

    async def _core(self, _: web.Request) -> web.Response:
        return web.json_response({"versions": ["v1"]})

    async def _namespaces(self, _: web.Request) -> web.Response:
        resource = {"name": "namespaces", "singularName": "namespace", "kind": "Namespace", "namespaced": False}
        return web.json_response({"resources": [{**resource, "verbs": ["list", "watch"]}]})

    async def _groups(self, _: web.Request) -> web.Response:
        version = {"groupVersion": API_VERSION, "version": VERSION}
        return web.json_response({"groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]})

    async def _resources(self, _: web.Request) -> web.Response:
        resources = [
            {
                "name": kind.plural,
                "singularName": kind.lower(),
                "kind": kind.value,
                "namespaced": True,
                "verbs": ["list", "watch", "patch"],
            }
            for kind in Kind
        ]
        return web.json_response({"resources": resources})

    async def _get(self, request: web.Request) -> web.Response:
        body = self._items[request.match_info["plural"]].get(request.match_info["name"])
        return web.Response(body=body, content_type="application/json", status=200 if body else 404)

    async def _patch(self, request: web.Request) -> web.Response:
        items, name = self._items[request.match_info["plural"]], request.match_info["name"]
        obj = json.loads(items[name])
        for change in await request.json():
            *path, last = change["path"].strip("/").split("/")
            of = obj
            for key in path:
                of = of[key]
            of[last] = change["value"]
        obj["metadata"]["resourceVersion"] = str(int(obj["metadata"]["resourceVersion"]) + 1)
        items[name] = json.dumps(obj).encode()
        return web.Response(body=items[name], content_type="application/json")

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            stream = web.StreamResponse()
            await stream.prepare(request)
            bookmark = {"metadata": {"resourceVersion": "7"}}
            await stream.write(json.dumps({"type": "BOOKMARK", "object": bookmark}).encode() + b"\n")
            await asyncio.sleep(600)
            return stream
        plural, first = request.match_info["plural"], int(request.query.get("continue") or 0)
        items = [*self._items[plural].values()]
        last = min(first + int(request.query.get("limit") or len(items)), len(items))
        meta = {"resourceVersion": "7", "continue": str(last) if last < len(items) else ""}
        kind = next(kind for kind in Kind if kind.plural == plural)
        head = json.dumps({"apiVersion": API_VERSION, "kind": f"{kind}List", "metadata": meta}).encode()
        body = head[:-1] + b', "items": [' + b",".join(items[first:last]) + b"]}"
        return web.Response(body=body, content_type="application/json")


# --- The operator ---


class Client:
    """The adapter to brokers that have everything where it was brought."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    async def observe(self, topics: Collection[str], *_: object) -> Snapshot:
        return replace(self._snapshot, topics={name: self._snapshot.topics[name] for name in topics})

    async def perform(self, steps: object, still_valid: object = None) -> Any:
        raise AssertionError(steps)

    async def close(self) -> None:
        pass


class Heart:
    """Beats on the event loop; the longest time without, and the most CPU that the process took meanwhile."""

    longest, most = 0.0, 0.0

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            await asyncio.sleep(2 * BEAT_SECONDS)
            task.cancel()

    async def _beat(self) -> None:
        last, cpu = time.monotonic(), time.process_time()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now, used = time.monotonic(), time.process_time()
            self.longest, last = max(self.longest, now - last - BEAT_SECONDS), now
            self.most, cpu = max(self.most, used - cpu), used


async def measured(what: str, work: Callable[[], Awaitable[object]]) -> None:
    heart, cpu, began = Heart(), time.process_time(), time.monotonic()
    async with heart.beating():
        await work()
    took, used = time.monotonic() - began, time.process_time() - cpu
    print(
        f"{what:>24} {took:8.2f} {used:8.2f} {heart.longest:8.2f} {heart.most:8.2f}",
        *(f"{memory(of) / MIB:8.0f}" for of in ("VmRSS", "VmHWM")),
        flush=True,
    )


async def operate(waves: int) -> None:
    store, metrics, client = Store(), Metrics(), Client(cluster_of(waves))
    gc.freeze()  # what is made here is none of the operator's
    async with KubeClient() as kube:
        writer = Writer(kube, EventRecorder(kube, "made"), store, metrics)
        plans = Plans(store, kube, writer, Planner())
        loops: list[ClusterLoop] = []

        def make_loop(key: Any) -> ClusterLoop:
            loop = ClusterLoop(key, store, kube, writer, metrics, Health(60, []), lambda: None, plans)
            cluster = store.parse_cluster(store.cluster(key) or {})
            loop.observer.client, loop.observer.connection = client, Connection("made:9092")  # type: ignore[assignment]
            loop.observer._connected_to = (cluster.metadata.uid, cluster.spec)
            loops.append(loop)
            return loop

        supervisor = Supervisor(store, kube, writer, plans, (), make_loop)
        watches = Watches((), supervisor.receive)

        async def watch() -> None:
            watches.start()
            while watches.missing([""]):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            await asyncio.sleep(10)

        async def all_judged() -> None:
            for _ in range(turns):
                loop._drift._due = float("-inf")
                await loop._safe_tick()

        print(
            f"{'':>24} {'seconds':>8} {'CPU s':>8} {'stall s':>8} {'CPU s':>8} {'MiB':>8} {'peak MiB':>8}", flush=True
        )
        await measured("before", lambda: asyncio.sleep(0))
        await measured("first list", supervisor.list_at_first)
        await measured("watches begin", watch)
        supervisor.listing.expire()
        await measured("list again", supervisor.list_at_first)
        loop = make_loop(("made", "made"))
        await measured("first reconciliation", loop._safe_tick)
        turns = 1
        await measured("a drift turn", all_judged)
        await measured("a second drift turn", all_judged)
        serving = asyncio.create_task(loop.run())
        await measured(f"{IDLE_SECONDS:.0f} s idle", lambda: asyncio.sleep(IDLE_SECONDS))
        serving.cancel()


@contextmanager
def serving(waves: int) -> Iterator[int]:
    """The port of an API server, which runs apart."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=lambda: Server(waves).serve(theirs))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def main(*arguments: str) -> None:
    waves = int(arguments[0]) if arguments else WAVES
    if len(arguments) > 1:
        asyncio.run(operate(waves))
        os._exit(0)  # the watches go on
    with serving(waves) as port, tempfile.TemporaryDirectory() as folder:
        cluster = {"name": "made", "cluster": {"server": f"http://127.0.0.1:{port}"}}
        context = {"name": "made", "context": {"cluster": "made", "user": "made"}}
        config = {
            "clusters": [cluster],
            "contexts": [context],
            "users": [{"name": "made", "user": {"token": "made"}}],
            "current-context": "made",
        }
        path = Path(folder, "kubeconfig")
        path.write_text(json.dumps(config))
        os.spawnve(
            os.P_WAIT,
            sys.executable,
            [sys.executable, "-m", "tests.benchmarks.finished", str(waves), "operate"],
            os.environ | {"KUBECONFIG": str(path)},
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
