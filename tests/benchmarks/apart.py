"""An API server, brokers and the operator's process, apart from the local platform and from each other's limits."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from localplatform.brokers import CONTROLLERS, Brokers, running
from localplatform.controlplane import ApiServer, start_api_server
from localplatform.machine import CHECKOUT
from localplatform.processes import TIMEOUT, Process, Processes, free_port, wait_until
from localplatform.workload import Workload

NAMESPACE, CLUSTER = "kafka", "bench"
API = f"/apis/kafka.reassign.dev/v1alpha1/namespaces/{NAMESPACE}"
WRITES = ("create", "update", "patch", "delete")

Object = dict[str, Any]
Targets = Mapping[int, Sequence[int]]


@dataclass
class Apart:
    """What a benchmark works with. `process` is the operator's, `port` that of its metrics."""

    api: ApiServer
    brokers: Brokers
    processes: Processes
    process: Process
    port: int
    admin: KafkaAdminClient
    metadata: AdminClient
    kafka: Workload = field(init=False)

    def __post_init__(self) -> None:
        self.kafka = Workload(self.brokers.bootstrap_servers)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.api.kubectl(f"--namespace={NAMESPACE}", *arguments, input=input)

    def apply(self, *objects: Object) -> None:
        """Server-side, as large objects need it."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(listed))

    def limit(self, limits: Object) -> None:
        """Limits of the KafkaCluster instead of those that it has."""
        patch = {"spec": {"limits": None}}, {"spec": {"limits": limits}}
        for one in patch if limits else patch[:1]:
            self.kubectl("patch", "kafkacluster", CLUSTER, "--type=merge", "-p", json.dumps(one))

    def condition(self, name: str, of_type: str, kind: str = "partitionreassignment") -> bool:
        """Whether it is True."""
        found = self.api.get(f"{API}/{kind}s/{name}") or {}
        conditions = found.get("status", {}).get("conditions", ())
        return any(c["type"] == of_type and c["status"] == "True" for c in conditions)

    def replicas(self, topic: str) -> dict[int, list[int]]:
        future = self.metadata.describe_topics(TopicCollection([topic]), request_timeout=20)[topic]
        return {p.id: [node.id for node in p.replicas] for p in future.result().partitions}

    def moved(self, topic: str, targets: Targets) -> bool:
        """Whether nothing of a topic is in flight, and its replicas are these."""
        if any(tp.topic == topic for tp in self.admin.list_partition_reassignments()):
            return False
        found = self.replicas(topic)
        return all(found.get(number) == list(replicas) for number, replicas in targets.items())

    def memory(self) -> int:
        """The greatest that the operator's process had, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(dict(line.split(":", 1) for line in status.splitlines())["VmHWM"].split()[0]) * 1024

    def log(self) -> str:
        """What the operator has logged so far."""
        return self.processes.log("operator").read_text()

    def cpu_seconds(self) -> float:
        """What the operator's process has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kafka_writes(self) -> float:
        """How many requests of the operator have changed something on the brokers, as it counts them."""
        lines = _page(self.port, "metrics").splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("kafka_reassign_kafka_writes_total"))

    def writes(self, since: datetime, of: str = "") -> dict[str, list[Write]]:
        """What the operator wrote to the API server since then, by resource and subresource."""
        found: dict[str, list[Write]] = defaultdict(list)
        for line in self.api.audit_log.read_text().splitlines():
            event = json.loads(line)
            began, ended = (datetime.fromisoformat(event[f"{at}Timestamp"]) for at in ("requestReceived", "stage"))
            if began < since or event["verb"] not in WRITES or event["stage"] != "ResponseComplete":
                continue
            target = event["objectRef"]
            if "kubectl" in event.get("userAgent", "") or of not in ("", target.get("name")):
                continue
            kind = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            found[kind].append(Write(began, (ended - began).total_seconds()))
        return found


@dataclass(frozen=True)
class Write:
    """A request that the API server answered: when it came, and how many seconds it took."""

    at: datetime
    seconds: float


def report_writes(writes: Mapping[str, Sequence[Write]]) -> None:
    for kind, those in sorted(writes.items()):
        took = [write.seconds * 1000 for write in those]
        print(f"  {len(those):5} writes of {kind}: median {statistics.median(took):.0f} ms, maximum {max(took):.0f} ms")


def manifest(name: str, topic: str, targets: Targets, **spec: Any) -> Object:
    partitions = [{"topic": topic, "partition": n, "replicas": list(replicas)} for n, replicas in targets.items()]
    return {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "PartitionReassignment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterRef": {"name": CLUSTER}, "partitions": partitions} | spec,
    }


def eventually(what: str, look: Callable[[], bool], seconds: float = TIMEOUT, pause: float = 0.2) -> float:
    """When it was first seen, on the monotonic clock."""
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(pause)
    return time.monotonic()


@contextmanager
def apart(brokers: int, controllers: int = CONTROLLERS) -> Iterator[Apart]:
    """All of it, on free ports, while the block lasts; the operator runs as the administrator."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder, "brokers"), brokers=brokers, controllers=controllers) as cluster,
    ):
        processes = Processes(Path(folder, "processes"), Path(folder, "logs"), end_with_us=True)
        try:
            api = start_api_server(processes, Path(folder, "api"))
            _prepare(api, cluster)
            process, port = _operator(processes, api)
            admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
            metadata = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            found = Apart(api, cluster, processes, process, port, admin, metadata)
            eventually("the KafkaCluster is Ready", lambda: found.condition(CLUSTER, "Ready", "kafkacluster"))
            yield found
            admin.close()
        except BaseException:
            print(processes.log_end("operator"), file=sys.stderr)
            raise
        finally:
            processes.stop_all()


def _prepare(api: ApiServer, cluster: Brokers) -> None:
    api.kubectl("apply", "--server-side", "-f", str(CHECKOUT / "crds"))
    api.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
    if not wait_until(lambda: api.get("/apis/kafka.reassign.dev/v1alpha1") is not None):
        raise TimeoutError("the API server does not serve our kinds")
    api.kubectl("create", "namespace", NAMESPACE)
    obj = {
        "apiVersion": "kafka.reassign.dev/v1alpha1",
        "kind": "KafkaCluster",
        "metadata": {"name": CLUSTER, "namespace": NAMESPACE},
        "spec": {"bootstrapServers": cluster.bootstrap_servers},
    }
    eventually("a KafkaCluster can be made", lambda: api.applied(obj))


def _page(port: int, name: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def _operator(processes: Processes, api: ApiServer) -> tuple[Process, int]:
    port = free_port()
    env = {
        "KUBECONFIG": str(api.kubeconfig),
        "PYTHONPATH": str(CHECKOUT / "operator"),
        "REASSIGN_HTTP_PORT": str(port),
    }
    process = processes.start("operator", [sys.executable, "-m", "reassign.controller"], env)

    def ready() -> bool:
        try:
            return bool(_page(port, "readyz"))
        except OSError:
            return False

    processes.wait("the operator", ready, process)
    return process, port
