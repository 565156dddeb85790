"""`make demo-decommission`: a broker is emptied, stopped and replaced while topics are made and records are written."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.table import Table

from localplatform import operator_, parts
from localplatform.broker_story import BOUND, BrokerStory, holds
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes
from localplatform.processes import run
from localplatform.story import removed_afterwards, tell
from localplatform.traffic import Traffic

MB = 10**6
OLD, NEW = 5, 6
"""The broker that goes, and the one that comes."""
NAME, FILE = f"decommission-{OLD}", f"decommission-{OLD}.yaml"
ORDERS, PREFIX = "life-orders", "life"
PARTITIONS, PARTITION_BYTES, RATE = 12, 8 * MB, 2 * MB
CORDON_SECONDS = 10.0
"""How long after a cordon is in force every controller knows of it."""


class DemoDecommission(BrokerStory):
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        super().__init__(server, cluster, console)
        self.traffic = Traffic(cluster.bootstrap_servers, PREFIX)

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all), self.repository():
            self.fill()
            with self.traffic.going_on():
                digest = self.commit()
                self.approve(digest)
                self.empty(digest)
                self.stop()
                self.replace()
            self.part("7. what is left")
            self.check_records(self.traffic)
            self.restore()

    def fill(self) -> None:
        """A topic of which half the replicas are on the broker that is to go."""
        self.part(f"1. six brokers, and much of it on broker {OLD}")
        layout = [[p % OLD, OLD] if p % 2 else [OLD, p % OLD] for p in range(PARTITIONS)]
        self.kafka.create(ORDERS, layout, PARTITION_BYTES)
        self.say(f"replicas: {self.counts()}")
        self.say("from now on a topic is made every ten seconds, and 100 records a second are written with acks=all")

    def commit(self) -> str:
        """The wish as a manifest in Git, and what the operator makes of it; the digest of the plan."""
        self.part(f"2. a commit says that broker {OLD} is to go; the operator plans, and waits")
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
        self.push(FILE, manifest, f"broker {OLD} is to go")
        found = self.wait("kbd", NAME, "a plan waits for approval", lambda it: "digest" in it["status"], 120)
        plan = self.read("krp", f"{NAME}-1")["status"]
        moves, bound = plan["moves"], plan["lowerBound"]
        table = Table(f"{NAME}-1", "this plan", BOUND)
        table.add_row("bytes", megabytes(moves["bytes"]), megabytes(bound["bytes"]))
        table.add_row("replicas", str(moves["replicas"]), str(bound["replicas"]))
        table.add_row("waves", str(len(plan["waves"])), str(bound["waves"]))
        self.console.print(table)
        return str(found["status"]["digest"])

    def approve(self, digest: str) -> None:
        """The approval, as a commit of one line; a topic has landed since, which the plan does not know."""
        self.part("3. a topic lands on it all the same; then a commit approves the plan")
        planned = time.monotonic()
        self.until(f"a new topic has replicas on broker {OLD}", lambda: bool(self._landed(OLD, planned)), 60)
        words = ("approve", f"kbd/{NAME}", "-n", operator_.CLUSTER_NAMESPACE, "--yes", "--file")
        plugin = parts.plugin() / "kubectl-kafka_reassign"
        run([plugin, *words, self.tree / FILE], env={"KUBECONFIG": str(self.server.kubeconfig)})
        self.say(f"[bold]kubectl kafka-reassign[/] {' '.join(words)} {FILE}")
        changed = self.push_changes(FILE, f"approve {NAME}")
        if changed != [f"+  approvedDigest: {digest}"]:
            raise PlatformError(f"the approval has changed more than its line: {changed}")
        self.console.print(f"[green]{changed[0]}[/]")

    def empty(self, digest: str) -> None:
        """The cordon, the plan, and a further plan for what the first one does not know."""
        self.part("4. the broker is cordoned, and emptied by a plan and a further one")
        self.wait("kbd", NAME, f"broker {OLD} is cordoned", lambda it: holds(it, "Cordoned"), 120)
        cordoned = time.monotonic() + CORDON_SECONDS
        found = self.wait("kbd", NAME, f"broker {OLD} is empty", lambda it: holds(it, "Empty"), 400)
        since = [it.topic for it in list(self.traffic.made) if it.began > cordoned]
        if landed := self._landed(OLD, cordoned):
            raise PlatformError(f"these have landed on a broker that is cordoned: {landed}")
        self.say(f"topics that were made since the cordon: {len(since)}, none of them on broker {OLD}")
        plans = found["status"]["plans"]
        self.say_plans(plans)
        if len(plans) < 2 or {plan["outcome"] for plan in plans} != {"Succeeded"}:
            raise PlatformError(f"two plans that have succeeded were expected, not {plans}")
        if found["spec"]["approvedDigest"] != digest or not since:
            raise PlatformError("one approval was to cover all plans, and topics were to be made since")
        self.say(f"replicas: {self.counts()}")

    def stop(self) -> None:
        """The broker ends, and the operator takes its registration away."""
        self.part("5. the broker is stopped, and a minute later unregistered by the operator")
        self.cluster.shut_down(OLD)
        self.say(f"broker {OLD} is stopped")
        self.wait("kbd", NAME, f"broker {OLD} is unregistered", lambda it: holds(it, "Succeeded"), 240)
        if OLD in (known := self.cluster.known()):
            raise PlatformError(f"the stock tool still finds broker {OLD}: {known}")
        self.say(f"kafka-cluster list-endpoints: brokers [dim]{', '.join(map(str, sorted(known)))}[/]")
        self.kubectl("delete", "kbd", NAME, "--timeout=2m")

    def replace(self) -> None:
        """Another broker, with an empty disk."""
        self.part(f"6. broker {NEW} comes, with an empty disk")
        self.cluster.add(NEW)
        began = time.monotonic()
        self.until(f"a new topic has replicas on broker {NEW}", lambda: bool(self._landed(NEW, began)), 60)
        self.say(f"replicas: {self.counts()}")

    def restore(self) -> None:
        """The brokers as they were, and what the stock tools find."""
        self._remove_all()
        self.check_nothing_left()

    def _landed(self, broker: int, since: float) -> list[str]:
        """The topics that were made since then, and have a replica on the broker."""
        topics = [it.topic for it in list(self.traffic.made) if it.began > since]
        return [topic for topic in topics if any(broker in ids for ids in self.kafka.replicas(topic).values())]

    def _remove_all(self) -> None:
        if not self.cluster.alive(OLD):
            self.cluster.add(OLD)  # first of all: only a broker that is up has its cordon lifted
        self.kubectl("delete", "kbd", NAME, "--ignore-not-found", "--timeout=5m")
        if waves := self.names("kpr", (f"{NAME}-",)):
            self.kubectl("delete", *waves, "--timeout=5m")
        self.kafka.delete(topic for topic in self.kafka.metadata().topics if topic.startswith(f"{PREFIX}-"))
        self.cluster.remove(NEW)


if __name__ == "__main__":
    sys.exit(tell(DemoDecommission))
