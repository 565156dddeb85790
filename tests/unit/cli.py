"""The command line as a user has it, with a made cluster where brokers and an API server would be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from reassign.api.goal import By
from reassign.cli.app import app
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import LogDir, Snapshot, TopicPartition
from reassign.core.survey import roles, survey
from reassign.errors import MissingReferenceError, Reason
from reassign.files import snapshots
from reassign.files import tables as snapshot_tables
from reassign.inspect import cluster
from reassign.kafka.throttles import Read
from reassign.planning.problem.model import Balance, Certificate, Cluster, PlacementGoal, Plan, UnmetGoal
from tests.unit.sim import SimKafka, partitions

API = "kafka.reassign.dev/v1alpha1"
Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
HEAVY = {
    "numba",
    "numpy",
    "pyspark",
    "pyarrow",
    "kafka",
    "confluent_kafka",
    "kubernetes",
    "kopf",
    "aiohttp",
}
"""The packages that take long to import."""
TAKEN = datetime(2026, 1, 31, tzinfo=UTC)
P0, P1 = partitions(2)
GIB = 2**30


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str | None = None) -> Ran:
    """A command; whatever it does, it never ends in a traceback."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def error_of(ran: Ran, code: int) -> str:
    """The one line on stderr of a command that fails, with nothing on stdout."""
    assert (ran.code, ran.out) == (code, ""), ran
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    return ran.err


def sim(topic: str = P0.topic) -> SimKafka:
    p0, p1 = TopicPartition(topic, 0), TopicPartition(topic, 1)
    return SimKafka(
        {p0: (0, 1), p1: (1, 0)},
        sizes={p0: {0: GIB, 1: GIB}, p1: {1: 2 * GIB, 0: 2 * GIB}},
        log_dirs={2: {"/a": LogDir(), "/b": LogDir()}},
    )


def taken(folder: Path, kafka: SimKafka | None = None) -> Path:
    """A snapshot's folder."""
    seen = (kafka or sim()).snapshot()
    cluster = survey(seen)
    snapshots.write(folder / "snapshot", snapshot_tables.Snapshot(cluster, TAKEN, *roles(seen, cluster)))
    return folder / "snapshot"


class Planner:
    """In place of the planner: from broker 1 to broker 2, and what it was asked."""

    def __init__(self, *unmet: UnmetGoal) -> None:
        self.unmet = unmet
        self.goal = PlacementGoal()
        self.waves: tuple[int, int | None, int | None] = (0, None, None)

    def make(self, cluster: Cluster, goal: PlacementGoal, *waves: int | None) -> Plan:
        self.goal, self.waves = goal, waves  # type: ignore[assignment]
        target = np.where(cluster.replicas == 1, 2, cluster.replicas).astype(np.int32)
        balance = Balance(By.DISK, (0.0, 1.5), (0.9, 1.1), 1.05, (0.9, 1.1))
        certificate = Certificate(
            bytes=3 * GIB,
            bytes_bound=2 * GIB,
            moves=2,
            moves_bound=2,
            leaders=1,
            balance=(balance,),
            waves=1,
            waves_bound=1,
            makespan=90.0 if waves[2] else None,
            makespan_bound=60.0 if waves[2] else None,
            unmet=self.unmet,
        )
        changed = (target != cluster.replicas).any(axis=1)
        return Plan(target, np.full_like(target, -1), np.where(changed, 0, -1).astype(np.int32), certificate)


class Live:
    """In place of a live cluster and its API server, which has these objects."""

    def __init__(self, kafka: SimKafka, *objects: dict[str, Any]) -> None:
        self.kafka, self.objects = kafka, objects
        self.hidden: frozenset[str] = frozenset()
        self.set: Read = {}

    async def observe_everything(self) -> Snapshot:
        unread = dict.fromkeys(self.hidden, Problem(Reason.NOT_AUTHORIZED, "it may not be described"))
        return replace(self.kafka.snapshot(), unread_topics=unread)

    async def observe(
        self, topics: Collection[str], sizes_of: Collection[TopicPartition], destinations: Collection[int]
    ) -> Snapshot:
        return self.kafka.snapshot()

    async def configs(
        self, resources: Collection[ConfigResource], names: Mapping[ConfigResourceType, Sequence[str]]
    ) -> Read:
        return {resource: self.set.get(resource, {}) for resource in resources}

    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        found = [
            o for o in await self.list(kind) if (o["metadata"]["namespace"], o["metadata"]["name"]) == (namespace, name)
        ]
        return found[0] if found else None

    async def list(self, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        return [o for o in self.objects if o["kind"] == kind and namespace in (None, o["metadata"]["namespace"])]

    def now(self) -> datetime:
        return TAKEN

    async def names(self, kind: str, namespace: str) -> list[str]:
        return [o["metadata"]["name"] for o in await self.list(kind) if o["metadata"]["namespace"] == namespace]

    async def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        raise MissingReferenceError(Reason.SECRET_NOT_FOUND, f"there is no Secret {name} in {namespace}; create it")

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @asynccontextmanager
        async def itself(*_: object) -> AsyncIterator[Live]:
            yield self

        for name in ("read_only", "api_server"):
            monkeypatch.setattr(cluster, name, itself)


def entry(partition: int, *replicas: int, **more: object) -> Object:
    return {"topic": "orders", "partition": partition, "replicas": list(replicas)} | more


def manifest(*entries: Object, name: str = "move", namespace: str | None = None, **spec: object) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "partitions": list(entries)} | spec
    return {"apiVersion": API, "kind": "PartitionReassignment", "metadata": metadata, "spec": spec}


def kafka_cluster(**spec: object) -> Object:
    return {
        "apiVersion": API,
        "kind": "KafkaCluster",
        "metadata": {"name": "main", "namespace": "kafka", "uid": "c"},
        "spec": {"bootstrapServers": "b:9092"} | spec,
    }


def moved() -> dict[str, Any]:
    """Partition 0 has moved, partition 1 was there already, partition 2 has not begun."""
    done = [
        {"partition": 0, "originalReplicas": [0, 1], "targetReplicas": [2, 3], "state": "Completed"},
        {"partition": 1, "originalReplicas": [1, 0], "targetReplicas": [1, 0], "state": "Completed"},
    ]
    found = manifest(entry(0, 2, 3), entry(1, 1, 0), entry(2, 4, 5), namespace="kafka", throttle={"interBroker": "1Mi"})
    return found | {"status": {"partitions": [{"topic": "orders", **partition} for partition in done]}}
