"""`make bench-takeover`: how soon a waiting process of the operator writes to Kafka when the active one is lost.

Ten times the active process is killed (SIGKILL), ten times it is stopped (SIGSTOP), in the middle of one reassignment.
One that was stopped continues afterwards: it must end, and may write nothing new. It starts what it needs by itself.
"""

from __future__ import annotations

import json
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from confluent_kafka.admin import NewTopic

from localplatform import brokers
from localplatform.brokers import Brokers
from localplatform.console import say
from localplatform.controlplane import ApiServer, api_server
from localplatform.processes import wait_until
from localplatform.workload import Workload
from tests.operator_process import OperatorProcess, running

ROUNDS = 10
PARTITIONS = 2000
TOPIC = "moved"
SECONDS = 60
CRDS = Path(__file__).parents[2] / "crds"
IN_FLIGHT = 4
"""Few at a time, so that there is always one more to write; also the most that one request asks for."""


class Pair:
    """Two processes; each that has ended is followed by another one of another name, as another pod would be."""

    def __init__(self, server: ApiServer, directory: Path, stack: ExitStack) -> None:
        self._server, self._directory, self._stack = server, directory, stack
        self._numbers = count(1)
        self.processes = [self.start(), self.start()]

    def start(self) -> OperatorProcess:
        name = f"pod-{next(self._numbers)}"
        process = self._stack.enter_context(running(name, self._server.kubeconfig, self._directory))
        process.wait_ready()
        return process

    @property
    def active(self) -> OperatorProcess:
        lease = self._server.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/kafka-reassign-operator")
        holder = lease and lease["spec"].get("holderIdentity")
        return next(process for process in self.processes if process.name == holder)

    def other(self, process: OperatorProcess) -> OperatorProcess:
        return next(other for other in self.processes if other is not process)

    def replace(self, process: OperatorProcess) -> None:
        process.end()
        self.processes = [other for other in self.processes if other is not process] + [self.start()]


def writes(process: OperatorProcess) -> list[datetime]:
    """When it wrote to Kafka, as it logged."""
    return [datetime.fromisoformat(record["timestamp"]) for record in process.log("step")]


def take_over(pair: Pair, number: signal.Signals) -> float:
    """Seconds from the signal to the next write of the other one."""
    active = pair.active
    other = pair.other(active)
    before = len(writes(active))
    assert wait_until(lambda: len(writes(active)) > before, SECONDS, pause=0.02), "the active one does not write"
    since = datetime.now(UTC)
    active.send(number)
    assert wait_until(lambda: any(at > since for at in writes(other)), SECONDS, pause=0.05), other.log_text()[-3000:]
    seconds = (min(at for at in writes(other) if at > since) - since).total_seconds()
    if number is signal.SIGSTOP:
        active.send(signal.SIGCONT)
        assert active.ended() == 3, active.log_text()[-3000:]
        late = [at for at in writes(active) if at > since]  # a request that was under way may be answered now
        assert len(late) <= IN_FLIGHT, f"it wrote {len(late)} times after it had been stopped"
    pair.replace(active)
    return seconds


def prepare(server: ApiServer, cluster: Brokers) -> None:
    """A KafkaCluster, and one reassignment that takes longer than all rounds."""
    server.kubectl("apply", "--server-side", "-f", str(CRDS))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
    ids = sorted(cluster.ids)
    placed = [[ids[n % len(ids)]] for n in range(PARTITIONS)]
    new = NewTopic(TOPIC, num_partitions=PARTITIONS, replica_assignment=placed)
    Workload(cluster.bootstrap_servers).ask(lambda admin: admin.create_topics([new]))
    partitions = [{"topic": TOPIC, "partition": n, "replicas": [ids[(n + 1) % len(ids)]]} for n in range(PARTITIONS)]
    version = {"apiVersion": "kafka.reassign.dev/v1alpha1"}
    spec = {"limits": {"partitionsInFlight": IN_FLIGHT}, "bootstrapServers": cluster.bootstrap_servers}
    main_cluster = version | {"kind": "KafkaCluster", "metadata": {"name": "main"}, "spec": spec}
    move = {"clusterRef": {"name": "main"}, "partitions": partitions}
    for obj in (main_cluster, version | {"kind": "PartitionReassignment", "metadata": {"name": "move"}, "spec": move}):
        assert wait_until(lambda obj=obj: _applied(server, obj), 30)  # type: ignore[misc]


def _applied(server: ApiServer, obj: dict[str, object]) -> bool:
    try:
        server.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(obj))
    except Exception:  # a kind that was just made is not served at once
        return False
    return True


def main() -> int:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        server = stack.enter_context(api_server(directory / "api"))
        cluster = stack.enter_context(brokers.running(directory / "brokers", brokers=2))
        prepare(server, cluster)
        pair = Pair(server, directory, stack)
        for number in (signal.SIGKILL, signal.SIGSTOP):
            seconds = []
            for round_ in range(1, ROUNDS + 1):
                seconds.append(take_over(pair, number))
                say(f"{number.name} {round_}: the other one wrote after {seconds[-1]:.1f} s")
                time.sleep(1)
            say(f"{number.name}: median {statistics.median(seconds):.1f} s, maximum {max(seconds):.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
