"""`make demo`: a manifest moves replicas between brokers; then a manifest is deleted, and its move is undone."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from localplatform import operator_
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import follow, reasons
from localplatform.processes import wait_until
from localplatform.story import removed_afterwards, replicas_of, tell
from localplatform.workload import Workload

Object = dict[str, Any]
Targets = Mapping[int, Sequence[int]]

MB = 10**6
ORDERS, PARTITIONS, PARTITION_BYTES = "demo-orders", 12, 18 * MB
PAYMENTS = "demo-payments"
RATE, SLOW = 3 * MB, 64 * 1024
"""Bytes per second on each broker: so that there is something to watch, and something to undo."""


class Demo:
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        if cluster.count < 4:
            raise PlatformError("the demo needs four brokers: make up BROKERS=4")

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all):
            self.move()
            self.undo()

    def move(self) -> None:
        """A manifest, and where its replicas are then."""
        size = PARTITIONS * PARTITION_BYTES // MB
        self.console.rule(f"1. {PARTITIONS} partitions with {size} MB of records move")
        before = {p: [p % 4, (p + 1) % 4] for p in range(PARTITIONS)}
        targets = {p: [p % 4, (p + 2) % 4] for p in range(PARTITIONS)}
        self.console.print(f"making the topic {ORDERS}, and filling it")
        self.kafka.create(ORDERS, list(before.values()), PARTITION_BYTES)
        self._apply("demo-move", ORDERS, targets, RATE)
        obj = follow(self.console, lambda: self._read("demo-move"), succeeded, 300)
        self.console.print(f"[green]Succeeded[/]: {(obj or {})['status']['summary']}")
        self._stock_tool_finds(ORDERS, targets)

    def undo(self) -> None:
        """A manifest deleted in flight, and that nothing of it is left."""
        self.console.rule("2. a move is undone, because its manifest is deleted")
        before = {0: [2, 0, 1], 1: [0, 3, 2], 2: [3, 1, 0], 3: [1, 2, 3]}
        targets = {0: [3, 0, 1], 1: [1, 0, 3], 2: [2, 3, 1], 3: [0, 1, 2]}
        self.kafka.create(PAYMENTS, list(before.values()), PARTITION_BYTES)
        self._apply("demo-undo", PAYMENTS, targets, SLOW)
        follow(self.console, lambda: self._read("demo-undo"), lambda obj: _in_flight(obj) == len(targets), 60)
        listed = self.cluster.tool("reassign-partitions", "--list")
        self.console.print(f"all of it is in flight:\n[dim]{listed.strip()}[/]")
        self.console.print("kubectl delete partitionreassignment demo-undo")
        self._kubectl("delete", "partitionreassignment", "demo-undo", "--wait=false")
        follow(self.console, lambda: self._read("demo-undo"), lambda obj: obj is None, 120)
        self.console.print("[green]gone[/]")
        self._stock_tool_finds(PAYMENTS, before)

    def _apply(self, name: str, topic: str, targets: Targets, rate: int) -> None:
        entries = [{"topic": topic, "partition": p, "replicas": list(r)} for p, r in targets.items()]
        manifest = {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "PartitionReassignment",
            "metadata": {"name": name, "namespace": operator_.CLUSTER_NAMESPACE},
            "spec": {
                "clusterRef": {"name": operator_.CLUSTER},
                "partitions": entries,
                "throttle": {"interBroker": rate},
            },
        }
        self.console.print(
            f"kubectl apply: PartitionReassignment {name}, {len(targets)} partitions of {topic}, at no more than "
            f"{rate / MB:.2g} MB/s on each broker; the rates below are the sum over all brokers"
        )
        self._kubectl("apply", "-f", "-", input=json.dumps(manifest))

    def _stock_tool_finds(self, topic: str, expected: Targets) -> None:
        """Read the assignment back with Kafka's own tools: the order counts, nothing may be in flight, and no throttle
        be left."""
        if not wait_until(lambda: "throttle" not in self._cluster_status()):  # 75 s after an upgrade
            raise PlatformError(f"a throttle is left: {self._cluster_status()['throttle']}")
        listed = self.cluster.tool("reassign-partitions", "--list").strip()
        if topic in listed:
            raise PlatformError(f"the stock tool still finds something in flight:\n{listed}")
        described = self.cluster.tool("topics", "--describe", "--topic", topic)
        if "throttled" in described:
            raise PlatformError(f"the stock tool still finds a throttle:\n{described}")
        found = replicas_of(described)
        if found != {(topic, p): list(r) for p, r in expected.items()}:
            raise PlatformError(f"the stock tool finds {found}, not {dict(expected)}:\n{described}")
        self.console.print(f"kafka-reassign-partitions --list: [dim]{listed}[/]")
        self.console.print(f"kafka-topics --describe:\n[dim]{described.strip()}[/]")
        self.console.print(
            "[green]the stock tools find it as it should be, in order, nothing in flight, no throttle left[/]"
        )

    def _cluster_status(self) -> Object:
        text = self._kubectl("get", "kafkacluster", operator_.CLUSTER, "-o", "json")
        return dict(json.loads(text).get("status", {}))

    def _read(self, name: str) -> Object | None:
        text = self._kubectl("get", "partitionreassignment", name, "--ignore-not-found", "-o", "json")
        return json.loads(text) if text.strip() else None

    def _kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments, input=input)

    def _remove_all(self) -> None:
        for name in ("demo-move", "demo-undo"):
            self._kubectl("delete", "partitionreassignment", name, "--ignore-not-found", "--wait=false")
            if not wait_until(lambda name=name: self._read(name) is None):  # type: ignore[misc]
                raise PlatformError(f"{name} does not go: {reasons(self._read(name))}")
        self.kafka.delete([ORDERS, PAYMENTS])


def succeeded(obj: Object | None) -> bool:
    conditions = {
        c["type"]: c for c in ((obj or {}).get("status") or {}).get("conditions", ()) if c["status"] == "True"
    }
    if obj is None or conditions.keys() & {"Failed", "Stalled"}:
        raise PlatformError(f"the move does not go on: {reasons(obj)}")
    return "Succeeded" in conditions


def _in_flight(obj: Object | None) -> int:
    return (((obj or {}).get("status") or {}).get("progress") or {}).get("partitionsInFlight") or 0


if __name__ == "__main__":
    sys.exit(tell(Demo))
