"""The running whole, as the tests see it: kubectl, the brokers, and the operator's process."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from localplatform.brokers import Brokers
from localplatform.controlplane import ApiServer, binaries
from localplatform.operator_pod import OperatorPod
from localplatform.parts import plugin
from localplatform.processes import TIMEOUT, run
from localplatform.workload import Move, Workload

Object = dict[str, Any]
Targets = Mapping[tuple[str, int], Sequence[int]]
T = TypeVar("T")

MB = 1024 * 1024
HELD_BYTES = 24 * MB
"""What a partition holds when its move is to be held: at the held rate it takes minutes."""


def eventually(
    what: str, look: Callable[[], T | None], seconds: float = TIMEOUT, state: Callable[[], object] = str
) -> T:
    """The first true thing that `look` returns; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}\n{state()}")
        time.sleep(0.2)
    return found


@dataclass
class World:
    """One test's view: names begin with its prefix, and what it makes is gone afterwards."""

    api: ApiServer
    brokers: Brokers
    operator: OperatorPod
    prefix: str
    namespace: str = "kafka"
    cluster: str = "local"
    topics: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.kafka = Workload(self.brokers.bootstrap_servers)

    # Kubernetes

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.api.kubectl(f"--namespace={self.namespace}", *arguments, input=input)

    def plugin(self, *arguments: object) -> str:
        """What `kubectl kafka-reassign` prints; fails unless it ends with 0."""
        path = f"{binaries()}:{plugin()}:{os.environ['PATH']}"
        command = ["kubectl", "kafka-reassign", *map(str, arguments), f"--namespace={self.namespace}"]
        return run(command, env={"PATH": path, "KUBECONFIG": str(self.api.kubeconfig)})

    def read(self, name: str, kind: str = "partitionreassignment") -> Object | None:
        """The object as it is now; None when it is gone."""
        return self.api.get(f"/apis/kafka.reassign.dev/v1alpha1/namespaces/{self.namespace}/{kind}s/{name}")

    def record(self, name: str) -> list[Object]:
        """What the operator has recorded of a PartitionReassignment, by topic."""
        uid = (self.read(name) or {})["metadata"]["uid"]
        parts = (self.read(f"{uid}-{part}", "reassignmentrecord") for part in itertools.count())
        return [topic for part in itertools.takewhile(bool, parts) for topic in (part or {})["spec"]["topics"]]

    def apply(self, manifest: Object) -> None:
        self.kubectl("apply", "-f", "-", input=json.dumps(manifest))

    def patch(self, name: str, spec: Object, kind: str = "partitionreassignment") -> None:
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def delete(self, name: str, kind: str = "partitionreassignment") -> None:
        self.kubectl("delete", kind, name, "--wait=false")

    def move(self, name: str, targets: Targets, **spec: Any) -> str:
        """Apply a PartitionReassignment; returns its name."""
        name = f"{self.prefix}-{name}"
        if name not in self.resources:
            self.resources.append(name)
        self.apply(self.manifest(name, targets, **spec))
        return name

    def manifest(self, name: str, targets: Targets, **spec: Any) -> Object:
        return {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "PartitionReassignment",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"clusterRef": {"name": self.cluster}, "partitions": entries(targets)} | spec,
        }

    def condition(self, name: str, type: str, kind: str = "partitionreassignment") -> Object:
        """A condition of the current generation; empty when there is none yet."""
        obj = self.read(name, kind) or {"metadata": {}}
        for condition in obj.get("status", {}).get("conditions", ()):
            if condition["type"] == type and condition["observedGeneration"] == obj["metadata"]["generation"]:
                return dict(condition)
        return {}

    def wait_for(
        self,
        name: str,
        type: str,
        status: str = "True",
        reason: str = "",
        seconds: float = TIMEOUT,
        kind: str = "partitionreassignment",
    ) -> Object:
        """Wait for a condition, and its reason when one is given."""

        def look() -> Object | None:
            found = self.condition(name, type, kind)
            return found if found.get("status") == status and reason in ("", found.get("reason")) else None

        what = f"{name}: {type}={status} {reason}"
        return eventually(
            what, look, seconds, lambda: json.dumps((self.read(name, kind) or {}).get("status"), indent=1)
        )

    def wait_gone(self, name: str, kind: str = "partitionreassignment") -> None:
        eventually(
            f"{name} is gone",
            lambda: self.read(name, kind) is None,
            state=lambda: json.dumps(self.read(name, kind), indent=1),
        )

    def partition(self, name: str, topic: str, partition: int = 0) -> Object:
        """What status says of one partition; empty when it says nothing."""
        details = ((self.read(name) or {}).get("status") or {}).get("partitions", ())
        return next((dict(d) for d in details if (d["topic"], d["partition"]) == (topic, partition)), {})

    def wait_partition(self, name: str, topic: str, partition: int = 0, **fields: Any) -> Object:
        """Wait until status says this of a partition, such as state="InFlight"."""

        def look() -> Object | None:
            found = self.partition(name, topic, partition)
            return found if found and all(found.get(key) == value for key, value in fields.items()) else None

        what = f"{name}: {topic}-{partition} has {fields}"
        return eventually(what, look, state=lambda: json.dumps((self.read(name) or {}).get("status"), indent=1))

    def events(self, name: str) -> list[tuple[str, str]]:
        """Type and reason of the events on an object, oldest first."""
        listed = json.loads(self.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
        ours = [e for e in listed if e["regarding"]["name"] == name]
        return [(e["type"], e["reason"]) for e in sorted(ours, key=lambda e: str(e["eventTime"]))]

    # Kafka

    def topic(self, name: str, *replicas: Sequence[int], size: int = 0, **config: str) -> str:
        """Make a topic, whose replicas for each partition are given; returns its name."""
        name = f"{self.prefix}-{name}"
        self.topics.append(name)
        self.kafka.create(name, replicas, size, {key.replace("_", "."): value for key, value in config.items()})
        return name

    def hold(self, *topics: str) -> None:
        """From now on moves of these topics take minutes."""
        self.held.update(topics)
        self.kafka.throttle(topics)

    def let_go(self, *topics: str) -> None:
        self.kafka.unthrottle(topics)
        self.held.difference_update(topics)

    def wait_in_flight(self, *partitions: tuple[str, int]) -> dict[tuple[str, int], Move]:
        """Wait until the brokers list these partitions."""

        def look() -> dict[tuple[str, int], Move] | None:
            found = self.kafka.in_flight({topic for topic, _ in partitions})
            return found if set(partitions) <= found.keys() else None

        return eventually(f"in flight: {partitions}", look)

    def wait_idle(self, *topics: str) -> None:
        eventually(f"nothing of {topics} is in flight", lambda: not self.kafka.in_flight(topics))

    def brokers_say(self, targets: Targets) -> None:
        """None of these partitions is in flight now, and they have these replicas in this order."""
        topics, wanted = {topic for topic, _ in targets}, {key: list(replicas) for key, replicas in targets.items()}
        assert targets.keys() & self.kafka.in_flight(topics).keys() == set()

        def found() -> dict[tuple[str, int], list[int]]:
            all_of = {(topic, p): found for topic in topics for p, found in self.kafka.replicas(topic).items()}
            return {key: all_of[key] for key in wanted if key in all_of}

        eventually("metadata shows it", lambda: found() == wanted, state=found)

    def stock_tool_says(self, targets: Targets) -> None:
        """The stock tool finds these replicas in this order, and none of these partitions in flight."""
        described = self.brokers.tool("topics", "--describe", "--topic", "|".join({topic for topic, _ in targets}))
        found = {}
        for line in described.splitlines():
            fields = dict(field.strip().split(":", 1) for field in line.split("\t") if ":" in field)
            if "Partition" in fields:
                key = fields["Topic"].strip(), int(fields["Partition"])
                moving = fields.get("Adding Replicas", "").strip() or fields.get("Removing Replicas", "").strip()
                found[key] = "in flight" if moving else [int(broker) for broker in fields["Replicas"].split(",")]
        assert {key: found.get(key) for key in targets} == {key: list(r) for key, r in targets.items()}

    def created(self, topic: str) -> Counter[tuple[int, int]]:
        """How often each replica, by partition and broker, was created, as the brokers' logs tell."""
        found: Counter[tuple[int, int]] = Counter()
        for broker in self.brokers.ids:
            log = self.brokers.processes.log(f"kafka-{broker}").read_text(errors="replace")
            for match in re.finditer(rf"Created log for partition {re.escape(topic)}-(\d+) ", log):
                found[int(match[1]), broker] += 1
        return found

    @contextmanager
    def brokers_frozen(self, ids: Iterable[int] | None = None) -> Iterator[None]:
        """Brokers that neither answer nor end."""
        ids = list(self.brokers.ids if ids is None else ids)
        if not ids:
            yield
            return
        with self.brokers.frozen(ids[0]), self.brokers_frozen(ids[1:]):
            yield

    def clean_up(self) -> None:
        """Remove what the test made; fails when something does not go."""
        if self.held:
            self.kafka.unthrottle(topic for topic in self.held if self.kafka.replicas(topic))
        if self.resources:
            self.kubectl("delete", "partitionreassignment", *self.resources, "--ignore-not-found", "--wait=false")
        for name in self.resources:
            self.wait_gone(name)
        self.kafka.delete(self.topics)


def entries(targets: Targets) -> list[Object]:
    """spec.partitions for targets by topic and partition."""
    return [{"topic": t, "partition": p, "replicas": list(r)} for (t, p), r in targets.items()]
