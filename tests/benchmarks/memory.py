"""`make bench-memory`: the greatest memory of the operator, of the process that plans, and of the one that takes a
snapshot, beside made clusters.

The answers of brokers are made, and then decoded as those of brokers are. The operator looks for what it pauses for,
again and again; the others look at everything, and plan to drain a broker, or write it down. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataResponse

from reassign.core.model.configs import ConfigResourceType
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kafka.throttles import SET_AT
from tests.benchmarks.instances import SIZES, Made, cluster

METADATA, LOG_DIRS = 12, 4
"""Versions of these requests."""
MIB = 2**20


class Brokers:
    """A line to brokers that answer from a file."""

    def __init__(self, path: Path) -> None:
        self._metadata, self._log_dirs = pickle.loads(path.read_bytes())

    def newest_version(self, api: object) -> int:
        return 1

    def read(self, make: Any) -> Any:
        request = make()
        match type(request).__name__:
            case "MetadataRequest":
                return MetadataResponse.decode(self._metadata, version=METADATA)
            case "DescribeConfigsRequest":
                minimum = SimpleNamespace(
                    name="min.insync.replicas", value="2", config_source=SET_AT[ConfigResourceType.TOPIC]
                )
                names = [resource.resource_name for resource in request.resources]
                return SimpleNamespace(
                    results=[
                        SimpleNamespace(error_code=0, error_message=None, resource_name=name, configs=[minimum])
                        for name in names
                    ]
                )
        brokers = [SimpleNamespace(broker_id=id, rack=None, is_fenced=False) for id in self._log_dirs]
        return SimpleNamespace(error_code=0, error_message=None, cluster_id="made", topics=[], brokers=brokers)

    def read_by(self, make: Any, first: Sequence[int] = ()) -> tuple[Any, int | None]:
        return self.read(make), next(iter(first), None)

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        if type(request).__name__ == "DescribeConfigsRequest":
            return SimpleNamespace(
                results=[SimpleNamespace(error_code=0, error_message=None, resource_name=str(broker), configs=[])]
            )
        return DescribeLogDirsResponse.decode(self._log_dirs[broker], version=LOG_DIRS)

    def close(self) -> None:
        pass


def write(size: str, path: Path) -> None:
    """The answers of a made cluster's brokers."""
    made = cluster(Made(*SIZES[size]))
    topic = MetadataResponse.MetadataResponseTopic
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    log = result.DescribeLogDirsTopic
    topics: dict[str, list[Any]] = defaultdict(list)
    held: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    rows = zip(made.topic.tolist(), made.partition.tolist(), made.replicas.tolist(), made.sizes.tolist(), strict=True)
    for of, number, replicas, bytes in rows:
        name = made.topics[of]
        ids = {"replica_nodes": replicas, "isr_nodes": replicas, "offline_replicas": [], "leader_id": replicas[0]}
        topics[name].append(
            topic.MetadataResponsePartition(error_code=0, partition_index=number, leader_epoch=1, **ids)
        )
        for broker in replicas:
            of_one = {"partition_index": number, "partition_size": bytes, "offset_lag": 0, "is_future_key": False}
            held[broker][name].append(log.DescribeLogDirsPartition(**of_one))
    metadata = MetadataResponse(
        version=METADATA,
        throttle_time_ms=0,
        brokers=[],
        cluster_id="made",
        controller_id=1,
        topics=[
            topic(error_code=0, name=name, topic_id=UUID(int=number + 1), is_internal=False, partitions=partitions)
            for number, (name, partitions) in enumerate(topics.items())
        ],
    ).encode(version=METADATA)
    space = {"error_code": 0, "log_dir": "/kafka", "total_bytes": 1 << 50, "usable_bytes": 1 << 49}
    log_dirs = {
        broker: DescribeLogDirsResponse(
            version=LOG_DIRS,
            throttle_time_ms=0,
            error_code=0,
            results=[result(topics=[log(name=n, partitions=ps) for n, ps in logs.items()], **space)],
        ).encode(version=LOG_DIRS)
        for broker, logs in held.items()
    }
    path.write_bytes(pickle.dumps((metadata, log_dirs)))


def operate(brokers: Any) -> None:
    async def look() -> None:
        client = KafkaClient(Connection("made:9092"), brokers, ThreadPoolExecutor(4), lambda: None)
        for _ in range(3):
            await client.observe_shortages()
        await client.close()

    asyncio.run(look())


def plan(brokers: Any) -> None:
    from reassign.api.kafka_cluster import KafkaCluster
    from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus
    from reassign.controller.plans import job
    from reassign.core.plans.model import PlanResource
    from reassign.inspect import cluster as inspected

    async def connect(connection: Connection, **_: object) -> KafkaClient:
        return KafkaClient(connection, brokers, ThreadPoolExecutor(4), lambda: None)

    inspected.KafkaClient = SimpleNamespace(connect=connect)  # type: ignore[misc,assignment]
    spec = ReassignmentPlanSpec.parse({"clusterRef": {"name": "made"}, "goal": {"drainBrokers": [0]}})
    of = {"metadata": {"name": "made", "namespace": "made", "uid": "made"}, "spec": {"bootstrapServers": "made:9092"}}
    asked = PlanResource("uid", 1, "made", "drain", 1, spec, ReassignmentPlanStatus(), True)
    job.work_out(job.Job(asked, KafkaCluster.parse(of), None, Connection("made:9092"), ("*",)))


def keep(brokers: Any) -> None:
    from reassign.files import snapshots
    from reassign.files import tables as snapshot_tables
    from reassign.inspect.snapshot import snapshot

    async def look() -> snapshot_tables.Snapshot:
        client = KafkaClient(Connection("made:9092"), brokers, ThreadPoolExecutor(4), lambda: None)
        taken, _ = await snapshot(client, None)
        await client.close()
        return taken

    with tempfile.TemporaryDirectory() as folder:
        snapshots.write(Path(folder, "snapshot"), asyncio.run(look()))


PROCESSES = {"operator": operate, "plan": plan, "snapshot": keep}


def memory(what: str) -> int:
    """VmRSS, or VmHWM for the greatest that it was, in bytes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[what].split()[0]) * 1024


def main(*arguments: str) -> None:
    if arguments:
        what, path = arguments[0], Path(arguments[1])
        if what not in PROCESSES:
            return write(what, path)
        if what != "snapshot":
            import reassign.controller.supervisor  # noqa: F401  what the operator has loaded

        before = memory("VmRSS")
        brokers = Brokers(path)
        ours = memory("VmRSS") - before  # of this benchmark
        PROCESSES[what](brokers)
        return print(f"{(memory('VmHWM') - ours) / MIB:10.0f}", end="", flush=True)
    environment = os.environ | {"NUMBA_CPU_NAME": "generic"}
    subprocess.run([sys.executable, "-m", "reassign.planning.compile_ahead"], check=True, env=environment)
    print(f"{'replicas':>10}", *(f"{what:>9}" for what in PROCESSES), "  MiB")
    for size in ("9k", "99k", "999k"):
        with tempfile.NamedTemporaryFile() as file:
            command = [sys.executable, "-m", "tests.benchmarks.memory"]
            subprocess.run([*command, size, file.name], check=True)
            print(f"{size:>10}", end="", flush=True)
            for what in PROCESSES:
                subprocess.run([*command, what, file.name], check=True, env=environment)
        print(flush=True)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
