"""`make demo-life`: a policy fills a broker that joins, replaces one that is lost, and stops when one returns."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from localplatform import operator_
from localplatform.broker_story import BrokerStory, Object, holds
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes
from localplatform.story import removed_afterwards, tell
from localplatform.traffic import Made, Reader, Traffic

TopicPartition = tuple[str, int]
Placed = Mapping[TopicPartition, list[int]]
"""The replicas of each partition."""

MB = 10**6
LOST, BACK, NEW = 5, 4, 6
"""The broker that dies for good, the one that comes back, and the one that joins, and leaves."""
POLICY, FILE = "standing", "policy.yaml"
LEAVES = f"decommission-{NEW}"
PREFIX = "life"
ORDERS, RECORDS = f"{PREFIX}-orders", f"{PREFIX}-records"
PARTITIONS, PARTITION_BYTES = 24, 8 * MB
RATE, LOW_RATE = 4 * MB, MB // 4
WAVE = 4
LOST_SECONDS, SETTLE_SECONDS, ADDED_SECONDS = 120, 60, 60


class DemoLife(BrokerStory):
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        super().__init__(server, cluster, console)
        self.traffic = Traffic(cluster.bootstrap_servers, PREFIX, made=[Made(RECORDS, 0)], topic_seconds=None)
        self.reader = Reader(self.traffic)

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all), self.repository():
            self.fill()
            self.commit()
            with self.reader.going_on(), self.traffic.going_on():
                self.grow(self.roll())
                self.lose()
                before, planned, begun = self.come_back()
                self.show_moved(before, self.leave(), planned, begun)
            self.check()
            self._remove_all()
            self.check_nothing_left()

    def fill(self) -> None:
        """Topics with replicas on all six brokers."""
        self.part("1. six brokers, and topics on all of them")
        ids = range(self.cluster.count)
        layout = [[p % len(ids), (p + 1) % len(ids)] for p in range(PARTITIONS)]
        self.kafka.create(ORDERS, layout, PARTITION_BYTES)
        three = [[(p + n) % len(ids) for n in range(3)] for p in ids]
        self.kafka.create(RECORDS, three, config={"min.insync.replicas": "2"})
        self.say(f"replicas: {self.counts()}")

    def commit(self) -> None:
        """The policy, as a manifest in Git."""
        self.part("2. a commit has a policy for brokers that are added, and for those that are lost")
        self.push(FILE, _policy(RATE), "plans that make themselves")
        self.wait("krpol", POLICY, "the policy is in force", lambda it: holds(it, "Ready"), 120)
        self.say("from now on 100 records a second are written with acks=all, and read by a consumer")

    def roll(self) -> float:
        """A broker that joins, and a rolling restart of all others, in which nothing starts; when it has joined."""
        self.part(f"3. broker {NEW} joins with an empty disk; then all others are restarted, one after the other")
        self.cluster.add(NEW)
        joined = time.monotonic()
        self.say(f"broker {NEW} is there")
        for broker in self.cluster.ids:
            self.cluster.shut_down(broker)
            self.cluster.restart(broker)
            self.until(f"broker {broker} was restarted, and all replicas are in sync", self._in_sync, 120)
            self.wait("krpol", POLICY, "nothing has started", lambda it: True, 10)
            if started := self._plans():
                raise PlatformError(f"a plan was made in a rolling restart: {started}")
        return joined

    def grow(self, joined: float) -> None:
        """The new broker gets its share."""
        self.part(f"4. {SETTLE_SECONDS} s after the last restart broker {NEW} is filled")
        settled = time.monotonic()
        plan = self._wait_for_end(1, 300)
        restart, joining = _since(settled), _since(joined)
        self.say(f"[bold]{plan['name']}[/] ended {restart} after the last restart, {joining} after the joining")
        if not self._on(NEW):
            raise PlatformError(f"nothing was moved to broker {NEW}")
        self.say(f"replicas: {self.counts()}")

    def lose(self) -> None:
        """A broker dies for good, and is replaced."""
        self.part(f"5. broker {LOST} is killed, and does not come back")
        self.cluster.kill(LOST)
        killed = time.monotonic()
        self.say(f"broker {LOST} is killed; it is lost after {LOST_SECONDS} s")
        self._wait_for_start(2)
        began = _since(killed)
        plan = self._wait_for_end(2, 300)
        self.say(f"[bold]{plan['name']}[/] began {began} after the kill, and all was replaced after {_since(killed)}")
        if left := self._on(LOST):
            raise PlatformError(f"broker {LOST} still has replicas: {left}")
        self.until("all replicas are in sync", self._in_sync, 120)
        self.say(f"replicas: {self.counts()}")

    def come_back(self) -> tuple[Placed, Placed, set[TopicPartition]]:
        """Another broker dies, and comes back in the middle of its replacement.

        Return where replicas were before and were to be moved, and which moves had begun when it was back.
        """
        self.part(f"6. broker {BACK} is killed, and is started again in the middle of its replacement")
        self.change(FILE, _policy(LOW_RATE), "copy slowly")
        before = self._placed()
        self.cluster.kill(BACK)
        self.say(f"broker {BACK} is killed")
        self._wait_for_start(3)
        self.until("replicas are being moved", lambda: bool(self.kafka.in_flight()), 60)
        waves = self._waves(self._plans()[-1])
        planned = {(e["topic"], e["partition"]): e["replicas"] for wave in waves for e in wave["spec"]["partitions"]}
        self.cluster.restart(BACK)
        begun = {tp for tp, replicas in self._placed().items() if replicas != before[tp]}
        self.say(f"broker {BACK} is back; until now moves of {len(begun)} of {len(planned)} partitions have begun")
        return before, planned, begun

    def leave(self) -> Placed:
        """The broker that has joined is to go, once the plan is retired; return where replicas were then."""
        self.part(f"7. meanwhile a commit says that broker {NEW} is to go; it waits until the plan is retired")
        self.push(f"{LEAVES}.yaml", _decommission(), f"broker {NEW} is to go")
        self.wait("kbd", LEAVES, "it waits", lambda it: _reason(it) == "PlanInProgress", 60)
        self._wait_for_end(3, 600)
        retired = self._placed()
        found = self.wait("kbd", LEAVES, f"broker {NEW} is empty", lambda it: holds(it, "Empty"), 300)
        self.say_plans(found["status"]["plans"])
        return retired

    def show_moved(self, before: Placed, retired: Placed, planned: Placed, begun: set[TopicPartition]) -> None:
        """What the retired plan has moved, and what it has left where it was."""
        self.part(f"8. what was moved while broker {BACK} was away")
        plan = self._plans()[-1]
        table = Table("partition", f"before broker {BACK} was killed", "planned", "when the plan was retired", "")
        for tp, target in planned.items():
            what = "moved" if tp in begun else "left where it was"
            table.add_row(f"{tp[0]}-{tp[1]}", _ids(before[tp]), _ids(target), _ids(retired[tp]), what)
        self.console.print(table)
        copies = f"{plan['replicas']} replicas with {megabytes(plan['bytes'])}"
        self.say(f"[bold]{plan['name']}[/] was to move {copies}; it moved {len(begun)} replicas")
        expected = {tp: planned[tp] if tp in begun else replicas for tp, replicas in before.items()}
        if wrong := {tp: replicas for tp, replicas in retired.items() if replicas != expected[tp]}:
            raise PlatformError(f"what had begun was to end, and nothing else to begin, but replicas are {wrong}")
        if not begun or len(begun) == len(planned):
            raise PlatformError(f"a part of {len(planned)} moves was to begin, not {len(begun)}")
        if cancelled := [wave["metadata"]["name"] for wave in self._waves(plan) if not holds(wave, "Succeeded")]:
            raise PlatformError(f"these were to come to their end: {cancelled}")

    def check(self) -> None:
        """All records, and no plan that went on."""
        self.part("9. what is left")
        self.wait("krpol", POLICY, "the policy has nothing to do", lambda it: _reason(it) == "Idle", 120)
        self.say_plans(plans := self._plans())
        if [plan["outcome"] for plan in plans] != ["Succeeded", "Succeeded", "Retired"]:
            raise PlatformError(f"two plans were to succeed, and a third one to be retired, not {plans}")
        self.check_records(self.traffic)
        if unread := self.reader.unread():
            raise PlatformError(f"{sum(map(len, unread.values()))} records did not reach the consumer: {unread}")
        self.say("[green]the consumer has read all of them[/]")

    def _wait_for_start(self, number: int) -> None:
        def has_begun(it: Object) -> bool:
            return "startTime" in _plan(it, number)

        self.wait("krpol", POLICY, "its plan has begun", has_begun, 300)

    def _wait_for_end(self, number: int, seconds: float) -> Object:
        """Wait for the end of a plan; show it, and return it."""

        def has_ended(it: Object) -> bool:
            return "completionTime" in _plan(it, number)

        plan = _plan(self.wait("krpol", POLICY, "its plan has ended", has_ended, seconds), number)
        self.say_plans([plan])
        return plan

    def _waves(self, plan: Object) -> list[Object]:
        """The PartitionReassignments of a plan."""
        return [self.read(*name.split("/")) for name in self.names("kpr", (f"{plan['name']}-",))]

    def _plans(self) -> list[Object]:
        """The plans that the policy has made."""
        return list(self.read("krpol", POLICY)["status"].get("plans", ()))

    def _on(self, broker: int) -> list[TopicPartition]:
        return [tp for tp, replicas in self._placed().items() if broker in replicas]

    def _placed(self) -> Placed:
        """The replicas of each partition now."""
        topics = self.kafka.metadata().topics.items()
        return {(topic, number): list(p.replicas) for topic, of in topics for number, p in of.partitions.items()}

    def _in_sync(self) -> bool:
        """Whether all replicas are in sync."""
        partitions = [p for topic in self.kafka.metadata().topics.values() for p in topic.partitions.values()]
        return all(set(p.replicas) == set(p.isrs) for p in partitions)

    def _remove_all(self) -> None:
        self.kubectl("delete", "krpol", POLICY, "--ignore-not-found", "--timeout=5m")
        for broker in self.cluster.ids:
            if not self.cluster.alive(broker):
                self.cluster.restart(broker)
        self.kubectl("delete", "kbd", LEAVES, "--ignore-not-found", "--timeout=5m")
        for kind in ("krp", "kpr"):
            if ours := self.names(kind, (f"{POLICY}-", f"{LEAVES}-")):
                self.kubectl("delete", *ours, "--ignore-not-found", "--timeout=5m")
        topics = self.kafka.metadata().topics
        self.kafka.delete(topic for topic in topics if topic.startswith(f"{PREFIX}-"))
        if self.cluster.alive(NEW) and self._on(NEW):  # an earlier run was interrupted: others' replicas are there
            self.server.kubectl("apply", "-f", "-", input=json.dumps(_decommission()))
            self.wait("kbd", LEAVES, f"broker {NEW} is empty", lambda it: holds(it, "Empty"), 300)
            self.kubectl("delete", "kbd", LEAVES, "--timeout=5m")
        self.cluster.remove(NEW)


def _policy(rate: int) -> Object:
    spec = {
        "clusterRef": {"name": operator_.CLUSTER},
        "triggers": [
            {"name": "lost", "brokerLost": {"afterSeconds": LOST_SECONDS}},
            {"name": "out", "brokersAdded": {"afterSeconds": ADDED_SECONDS}},
        ],
        "approval": "NotRequired",
        "settleSeconds": SETTLE_SECONDS,
        "cooldownSeconds": 0,
        "planTemplate": {
            "goal": {"balance": {}},
            "waves": {"maxPartitions": WAVE},
            "template": {"throttle": {"interBroker": rate}},
        },
    }
    return _manifest("ReassignmentPolicy", POLICY, spec)


def _decommission() -> Object:
    spec = {
        "clusterRef": {"name": operator_.CLUSTER},
        "brokers": [NEW],
        "approval": "NotRequired",
        "template": {"throttle": {"interBroker": RATE}},
    }
    return _manifest("BrokerDecommission", LEAVES, spec)


def _manifest(kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": operator_.CLUSTER_NAMESPACE}
    return {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def _plan(policy: Object, number: int) -> Object:
    """The first, second … plan that a policy has made; empty before it is there."""
    found: list[Object] = policy["status"].get("plans", [])[number - 1 : number]
    return found[0] if found else {}


def _reason(obj: Object) -> str:
    """The reason of Ready."""
    return next((c["reason"] for c in obj["status"].get("conditions", ()) if c["type"] == "Ready"), "")


def _since(moment: float) -> str:
    return f"{time.monotonic() - moment:.0f} s"


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))


if __name__ == "__main__":
    sys.exit(tell(DemoLife))
