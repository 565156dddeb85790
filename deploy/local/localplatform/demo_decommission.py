"""`make demo-decommission`: a broker is emptied, stopped and replaced while topics are made and records are written."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from localplatform import operator_, parts
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes, reasons
from localplatform.processes import run, wait_until
from localplatform.story import removed_afterwards, replicas_of, tell
from localplatform.traffic import Traffic
from localplatform.workload import Workload

Object = dict[str, Any]

MB = 10**6
OLD, NEW = 5, 6
"""The broker that goes, and the one that comes."""
NAME, FILE = f"decommission-{OLD}", f"decommission-{OLD}.yaml"
ORDERS, PREFIX = "life-orders", "life"
PARTITIONS, PARTITION_BYTES, RATE = 12, 8 * MB, 2 * MB
CORDON_SECONDS = 10.0
"""How long after a cordon is in force every controller knows of it."""


class DemoDecommission:
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        self.traffic = Traffic(cluster.bootstrap_servers, PREFIX)
        self.began, self.told = time.monotonic(), ""
        if cluster.count != 6 or tuple(map(int, cluster.version.split("."))) < (4, 3):
            raise PlatformError(
                "this demo needs six brokers that can be cordoned: make up BROKERS=6 KAFKA_VERSION=4.3.1"
            )

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all), tempfile.TemporaryDirectory() as folder:
            self.tree = Path(folder)
            self.fill()
            with self.traffic.going_on():
                digest = self.commit()
                self.approve(digest)
                self.empty(digest)
                self.stop()
                self.replace()
            self.check_records()
            self.restore()

    def fill(self) -> None:
        """A topic of which half the replicas are on the broker that is to go."""
        self._part(f"1. six brokers, and much of it on broker {OLD}")
        layout = [[p % OLD, OLD] if p % 2 else [OLD, p % OLD] for p in range(PARTITIONS)]
        self.kafka.create(ORDERS, layout, PARTITION_BYTES)
        self._say(f"replicas: {self._counts()}")
        self._say("from now on a topic is made every ten seconds, and 100 records a second are written with acks=all")

    def commit(self) -> str:
        """The wish as a manifest in Git, and what the operator makes of it; the digest of the plan."""
        self._part(f"2. a commit says that broker {OLD} is to go; the operator plans, and waits")
        self._git("init", "--quiet", "--initial-branch=main")
        manifest = {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "BrokerDecommission",
            "metadata": {"name": NAME, "namespace": operator_.CLUSTER_NAMESPACE},
            "spec": {
                "clusterRef": {"name": operator_.CLUSTER},
                "brokers": [OLD],
                "unregister": "WhenDown",
                "waves": {"maxPartitions": 6},
                "template": {"throttle": {"interBroker": RATE}},
            },
        }
        text = yaml.safe_dump(manifest, sort_keys=False)
        (self.tree / FILE).write_text(text)
        self._push(f"broker {OLD} is to go")
        self.console.print(f"[dim]{text.rstrip()}[/]")
        found = self._wait("a plan waits for approval", lambda it: "digest" in it["status"], 120)
        plan = json.loads(self._kubectl("get", "krp", f"{NAME}-1", "-o", "json"))["status"]
        moves, bound = plan["moves"], plan["lowerBound"]
        table = Table(f"{NAME}-1", "this plan", "no plan can do with less than")
        table.add_row("bytes", megabytes(moves["bytes"]), megabytes(bound["bytes"]))
        table.add_row("replicas", str(moves["replicas"]), str(bound["replicas"]))
        table.add_row("waves", str(len(plan["waves"])), str(bound["waves"]))
        self.console.print(table)
        return str(found["status"]["digest"])

    def approve(self, digest: str) -> None:
        """The approval, as a commit of one line; a topic has landed since, which the plan does not know."""
        self._part("3. a topic lands on it all the same; then a commit approves the plan")
        planned = time.monotonic()
        self._until(f"a new topic has replicas on broker {OLD}", lambda: bool(self._landed(OLD, planned)), 60)
        words = ("approve", f"kbd/{NAME}", "-n", operator_.CLUSTER_NAMESPACE, "--yes", "--file")
        plugin = parts.plugin() / "kubectl-kafka_reassign"
        run([plugin, *words, self.tree / FILE], env={"KUBECONFIG": str(self.server.kubeconfig)})
        self._say(f"[bold]kubectl kafka-reassign[/] {' '.join(words)} {FILE}")
        changed = self._push(f"approve {NAME}")
        if changed != [f"+  approvedDigest: {digest}"]:
            raise PlatformError(f"the approval has changed more than its line: {changed}")
        self.console.print(f"[green]{changed[0]}[/]")

    def empty(self, digest: str) -> None:
        """The cordon, the plan, and a further plan for what the first one does not know."""
        self._part("4. the broker is cordoned, and emptied by a plan and a further one")
        self._wait(f"broker {OLD} is cordoned", lambda it: _is(it, "Cordoned"), 120)
        cordoned = time.monotonic() + CORDON_SECONDS
        found = self._wait(f"broker {OLD} is empty", lambda it: _is(it, "Empty"), 400)
        since = [it.topic for it in list(self.traffic.made) if it.began > cordoned]
        if landed := self._landed(OLD, cordoned):
            raise PlatformError(f"these have landed on a broker that is cordoned: {landed}")
        self._say(f"topics that were made since the cordon: {len(since)}, none of them on broker {OLD}")
        table = Table("plan", "bytes", "no plan can do with less than", "replicas", "outcome")
        plans = found["status"]["plans"]
        for plan in plans:
            bytes_ = (megabytes(plan[key]) for key in ("bytes", "lowerBoundBytes"))
            table.add_row(plan["name"], *bytes_, str(plan["replicas"]), plan["outcome"])
        self.console.print(table)
        if len(plans) < 2 or {plan["outcome"] for plan in plans} != {"Succeeded"}:
            raise PlatformError(f"two plans that have succeeded were expected, not {plans}")
        if found["spec"]["approvedDigest"] != digest or not since:
            raise PlatformError("one approval was to cover all plans, and topics were to be made since")
        self._say(f"replicas: {self._counts()}")

    def stop(self) -> None:
        """The broker ends, and the operator takes its registration away."""
        self._part("5. the broker is stopped, and a minute later unregistered by the operator")
        self.cluster.shut_down(OLD)
        self._say(f"broker {OLD} is stopped")
        self._wait(f"broker {OLD} is unregistered", lambda it: _is(it, "Succeeded"), 240)
        if OLD in (known := self.cluster.known()):
            raise PlatformError(f"the stock tool still finds broker {OLD}: {known}")
        self._say(f"kafka-cluster list-endpoints: brokers [dim]{', '.join(map(str, sorted(known)))}[/]")
        self._kubectl("delete", "kbd", NAME, "--timeout=2m")

    def replace(self) -> None:
        """Another broker, with an empty disk."""
        self._part(f"6. broker {NEW} comes, with an empty disk")
        self.cluster.add(NEW)
        began = time.monotonic()
        self._until(f"a new topic has replicas on broker {NEW}", lambda: bool(self._landed(NEW, began)), 60)
        self._say(f"replicas: {self._counts()}")

    def check_records(self) -> None:
        """Every record that was acknowledged, read back."""
        self._part("7. what is left")
        if lost := self.traffic.lost():
            raise PlatformError(f"{sum(map(len, lost.values()))} acknowledged records are lost: {lost}")
        self._say(f"[green]{self.traffic.count} records were acknowledged, and all of them are there[/]")

    def restore(self) -> None:
        """The brokers as they were, and what the stock tools find."""
        self._remove_all()
        self._until("no throttle and no cordon is left", lambda: not self._configs(), 180)
        if "throttle" in self._cluster_status():
            raise PlatformError(f"the KafkaCluster still says that there is one: {self._cluster_status()}")
        listed = self.cluster.tool("reassign-partitions", "--list").strip()
        if listed != "No partition reassignments found.":
            raise PlatformError(f"the stock tool still finds something in flight:\n{listed}")
        self._say(f"kafka-reassign-partitions --list: [dim]{listed}[/]")

    def _landed(self, broker: int, since: float) -> list[str]:
        """The topics that were made since then, and have a replica on the broker."""
        topics = [it.topic for it in list(self.traffic.made) if it.began > since]
        return [topic for topic in topics if any(broker in ids for ids in self.kafka.replicas(topic).values())]

    def _counts(self) -> str:
        placed = replicas_of(self.cluster.tool("topics", "--describe"))
        counts = Counter(broker for ids in placed.values() for broker in ids)
        return ", ".join(f"{counts[broker]} on broker {broker}" for broker in sorted(self.cluster.registered()))

    def _configs(self) -> list[str]:
        """Throttles and cordons, as the stock tool finds them on all brokers and topics."""
        found = [self.cluster.tool("configs", "--describe", "--entity-type", kind) for kind in ("brokers", "topics")]
        lines = [line.strip() for text in found for line in text.splitlines()]
        return [line for line in lines if ".throttled." in line or line.startswith("cordoned.")]

    def _cluster_status(self) -> Object:
        text = self._kubectl("get", "kafkacluster", operator_.CLUSTER, "-o", "json")
        return dict(json.loads(text).get("status", {}))

    def _push(self, message: str) -> list[str]:
        """Commit the manifest and apply it; the lines that were changed."""
        self._git("add", FILE)
        self._git("commit", "--quiet", f"--message={message}")
        said = self._git("log", "-1", "--format=%h %s").strip()
        self._kubectl("apply", "-f", str(self.tree / FILE))
        self._say(f"[bold]git commit[/] {said}; [bold]kubectl apply[/] -f {FILE}")
        lines = self._git("show", "--format=", "--unified=0").splitlines()
        return [line for line in lines if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))]

    def _git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=platform", "-c", "user.email=platform@localhost", "-c", "commit.gpgsign=false"]
        return run(["git", "-C", self.tree, *identity, *arguments])

    def _wait(self, what: str, done: Callable[[Object], bool], seconds: float) -> Object:
        """Wait for the BrokerDecommission, with what Ready says; return it."""
        deadline = time.monotonic() + seconds
        while True:
            obj = json.loads(self._kubectl("get", "kbd", NAME, "-o", "json"))
            ready = [c for c in obj["status"].get("conditions", ()) if c["type"] == "Ready"]
            if ready and (said := f"[yellow]{ready[0]['reason']}[/] {ready[0]['message']}") != self.told:
                self.told = said
                self._say(said)
            if done(obj):
                self._say(f"[green]{what}[/]")
                return dict(obj)
            if time.monotonic() > deadline:
                raise PlatformError(f"not within {seconds:.0f} s: {what}; {reasons(obj)}")
            time.sleep(0.5)

    def _until(self, what: str, done: Callable[[], bool], seconds: float) -> None:
        if not wait_until(done, seconds, pause=0.5):
            raise PlatformError(f"not within {seconds:.0f} s: {what}")
        self._say(f"[green]{what}[/]")

    def _part(self, title: str) -> None:
        self.console.rule(title)

    def _say(self, text: str) -> None:
        self.console.print(f"{time.monotonic() - self.began:4.0f} s  {text}")

    def _kubectl(self, *arguments: str) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments)

    def _remove_all(self) -> None:
        if not self.cluster.alive(OLD):
            self.cluster.add(OLD)  # first of all: only a broker that is up has its cordon lifted
        self._kubectl("delete", "kbd", NAME, "--ignore-not-found", "--timeout=5m")
        waves = self._kubectl("get", "kpr", "-o", "name").split()
        if ours := [name for name in waves if name.rpartition("/")[2].startswith(f"{NAME}-")]:
            self._kubectl("delete", *ours, "--timeout=5m")
        self.kafka.delete(topic for topic in self.kafka.metadata().topics if topic.startswith(f"{PREFIX}-"))
        self.cluster.remove(NEW)


def _is(obj: Object, condition: str) -> bool:
    return any(c["type"] == condition and c["status"] == "True" for c in obj["status"].get("conditions", ()))


if __name__ == "__main__":
    sys.exit(tell(DemoDecommission))
