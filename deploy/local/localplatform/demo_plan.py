"""`make demo-plan`: a goal becomes a plan, its digest is approved, and waves drain a broker and balance the rest."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from localplatform import operator_
from localplatform.brokers import Brokers, rack
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import line, megabytes, reasons
from localplatform.processes import wait_until
from localplatform.story import (
    Assignment,
    Held,
    by_broker,
    check_even,
    held_by,
    load_table,
    removed_afterwards,
    replicas_of,
    tell,
)
from localplatform.workload import Workload

Object = dict[str, Any]

MB = 10**6
PLAN, DRAINED, TOLERANCE = "demo-plan", 4, 10
TOPICS = {"plan-orders": (12, 12 * MB), "plan-payments": (16, 5 * MB), "plan-audit": (12, 2 * MB)}
"""Partitions, and bytes of each."""
SKEWED = ([0, 1], [4, 1], [0, 3], [1, 4], [0, 1], [4, 3], [2, 1])
"""Replicas, one partition after another: both sites, but most of it on three of the five brokers."""
RATE = 20 * MB


class DemoPlan:
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        if cluster.count != 5:
            raise PlatformError("this demo needs five brokers: make up BROKERS=5")

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all):
            self.skew()
            planned = self.plan()
            before, took = self.assignment(), held_by(self.cluster)
            self.approve(planned["status"]["digest"])
            self.check(self._read(), before, took)

    def skew(self) -> None:
        """Topics whose replicas lie badly."""
        self.console.rule("1. five brokers, each in a rack, in two sites; topics that lie badly")
        for topic, (partitions, size) in TOPICS.items():
            self.kafka.create(topic, [SKEWED[p % len(SKEWED)] for p in range(partitions)], size)
        self._show_loads()

    def plan(self) -> Object:
        """The goal, and the plan that the operator makes of it."""
        self.console.rule(f"2. a ReassignmentPlan: drain broker {DRAINED}, balance the others")
        manifest = {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "ReassignmentPlan",
            "metadata": {"name": PLAN, "namespace": operator_.CLUSTER_NAMESPACE},
            "spec": {
                "clusterRef": {"name": operator_.CLUSTER},
                "goal": {
                    "drainBrokers": [DRAINED],
                    "balance": {"by": ["Disk", "Replicas", "Leaders"], "tolerancePercent": TOLERANCE},
                },
                "waves": {"maxPartitions": 12},
                "template": {"throttle": {"interBroker": RATE}},
            },
        }
        self._kubectl("apply", "-f", "-", input=json.dumps(manifest))
        found = self._wait(lambda status: "digest" in status, 120)
        status = found["status"]
        moves, bound = status["moves"], status["lowerBound"]
        certificate = Table("", "this plan", "no plan can do with less than")
        certificate.add_row("bytes", megabytes(moves["bytes"]), megabytes(bound["bytes"]))
        certificate.add_row("replicas", str(moves["replicas"]), str(bound["replicas"]))
        certificate.add_row("waves", str(len(status["waves"])), str(bound["waves"]))
        certificate.add_row("leaders", str(moves["leaders"]), "")
        certificate.add_row("seconds", str(moves["seconds"]), str(bound["seconds"]))
        self.console.print(certificate)
        balance = Table("broker with least to most, of its share", "before", "after")
        for before, after in zip(status["balance"]["before"], status["balance"]["after"], strict=True):
            balance.add_row(before["by"].lower(), _span(before), _span(after))
        self.console.print(balance)
        self.console.print(f"the plan is its PartitionReassignments, suspended:\n[dim]{self._waves()}[/]")
        self.console.print(f"[dim]{reasons(found)}[/]")
        return found

    def approve(self, digest: str) -> None:
        """The approval, and the waves that it lets go, one after another."""
        self.console.rule("3. approved by its digest, wave after wave")
        self.console.print(f"spec.approvedDigest: {digest}")
        self._kubectl("patch", "krp", PLAN, "--type=merge", "-p", json.dumps({"spec": {"approvedDigest": digest}}))
        self._wait(lambda status: _is(status, "Succeeded"), 300, shown=True)
        self.console.print(f"[green]Succeeded[/]:\n[dim]{self._waves()}[/]")

    def check(self, plan: Object, before: Assignment, took: Held) -> None:
        """What the brokers themselves say of it, beside what the plan promised."""
        self.console.rule("4. what the brokers say")
        after, holds = self.assignment(), held_by(self.cluster)
        self._show_loads()
        if left := [tp for tp, replicas in after.items() if DRAINED in replicas]:
            raise PlatformError(f"broker {DRAINED} still holds {left}")
        if badly := [tp for tp, replicas in after.items() if tp[0] in TOPICS and len(_sites(replicas)) != 2]:
            raise PlatformError(f"replicas are in one site only: {badly}")
        added = {tp: set(replicas) - set(before[tp]) for tp, replicas in after.items()}
        moved = sum(holds[tp][broker] for tp, brokers_ in added.items() for broker in brokers_)
        planned = plan["status"]["moves"]["bytes"]
        if abs(moved - planned) > 0.05 * planned:
            raise PlatformError(f"{moved} bytes have moved, {planned} were planned")
        rest = [broker for broker in self.cluster.ids if broker != DRAINED]
        check_even(self.console, by_broker(after, holds), rest, TOLERANCE)
        self.console.print(f"bytes moved: {megabytes(moved)}; planned: {megabytes(planned)}")
        self.console.print(f"[green]broker {DRAINED} is empty, every partition is in both sites, all is in balance[/]")

    def assignment(self) -> Assignment:
        """The replicas of every partition, as the stock tool describes them."""
        return replicas_of(self.cluster.tool("topics", "--describe"))

    def _show_loads(self) -> None:
        self.console.print(load_table(self.cluster, by_broker(self.assignment(), held_by(self.cluster))))

    def _waves(self) -> str:
        return self._kubectl("get", "kpr", "-l", f"kafka.reassign.dev/plan={PLAN}").rstrip()

    def _read(self) -> Object:
        return dict(json.loads(self._kubectl("get", "krp", PLAN, "-o", "json")))

    def _wait(self, done: Callable[[Object], bool], seconds: float, shown: bool = False) -> Object:
        deadline, told = time.monotonic() + seconds, ""
        while True:
            obj = self._read()
            status = obj.get("status") or {}
            if shown and (running := self._running(status)) and running != told:
                told = running
                self.console.print(running)
            if done(status):
                return obj
            if _is(status, "Stalled") or time.monotonic() > deadline:
                raise PlatformError(f"the plan does not go on: {reasons(obj)}")
            time.sleep(0.5)

    def _running(self, status: Object) -> str:
        """The wave that moves now, in one line."""
        for wave in status.get("waves", ()):
            text = self._kubectl("get", "kpr", wave["name"], "--ignore-not-found", "-o", "json")
            if text and not (obj := json.loads(text))["spec"].get("suspend") and not _is(obj["status"], "Succeeded"):
                return f"{wave['name']}: {line(obj)}"
        return ""

    def _kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments, input=input)

    def _remove_all(self) -> None:
        def left() -> str:
            found = self._kubectl("get", "krp", PLAN, "--ignore-not-found", "-o", "name")
            return found + self._kubectl("get", "kpr", "-l", f"kafka.reassign.dev/plan={PLAN}", "-o", "name")

        self._kubectl("delete", "krp", PLAN, "--ignore-not-found", "--wait=false")
        if not wait_until(lambda: not self._kubectl("get", "krp", PLAN, "--ignore-not-found", "-o", "name")):
            raise PlatformError(f"{PLAN} does not go: {reasons(self._read())}")
        self._kubectl("delete", "kpr", "-l", f"kafka.reassign.dev/plan={PLAN}", "--wait=false")
        if not wait_until(lambda: not left()):
            raise PlatformError(f"these do not go: {left()}")
        self.kafka.delete(TOPICS)


def _sites(replicas: list[int]) -> set[str]:
    return {rack(broker).split("/")[1] for broker in replicas}


def _is(status: Object, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in status.get("conditions", ()))


def _span(shares: Object) -> str:
    return f"{shares['leastPercent']} to {shares['greatestPercent']} %"


if __name__ == "__main__":
    sys.exit(tell(DemoPlan))
