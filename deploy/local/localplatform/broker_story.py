"""What the demos share in which brokers come and go: what is told, a folder in Git, and what the stock tools find."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from localplatform import operator_
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo_view import megabytes, reasons
from localplatform.processes import run, wait_until
from localplatform.story import replicas_of
from localplatform.traffic import Traffic
from localplatform.workload import Workload

Object = dict[str, Any]

BOUND = "no plan can do with less than"


class BrokerStory:
    """A platform of six brokers that can be cordoned, and a console that is told what happens there, and when."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        self.began = time.monotonic()
        self._told: dict[str, str] = {}
        if cluster.count != 6 or tuple(map(int, cluster.version.split("."))) < (4, 3):
            raise PlatformError(
                "this demo needs six brokers that can be cordoned: make up BROKERS=6 KAFKA_VERSION=4.3.1"
            )

    @contextmanager
    def repository(self) -> Iterator[None]:
        """Have a folder in Git, `tree`, for manifests while the block runs."""
        with tempfile.TemporaryDirectory() as folder:
            self.tree = Path(folder)
            self._git("init", "--quiet", "--initial-branch=main")
            yield

    # --- What is told ---

    def part(self, title: str) -> None:
        self.console.rule(title)

    def say(self, text: str) -> None:
        self.console.print(f"{time.monotonic() - self.began:4.0f} s  {text}")

    def say_plans(self, plans: Iterable[Object]) -> None:
        """Show what plans copy beside the least that any plan can copy."""
        table = Table("plan", "bytes", BOUND, "replicas", "outcome")
        for plan in plans:
            bytes_ = (megabytes(plan[key]) for key in ("bytes", "lowerBoundBytes"))
            table.add_row(plan["name"], *bytes_, str(plan["replicas"]), plan["outcome"])
        self.console.print(table)

    def counts(self) -> str:
        """How many replicas each broker has that is up."""
        counts = Counter(broker for ids in self.assignment().values() for broker in ids)
        return ", ".join(f"{counts[broker]} on broker {broker}" for broker in sorted(self.cluster.registered()))

    # --- What is done, and waited for ---

    def push(self, file: str, manifest: Object, message: str) -> None:
        """Write a manifest, commit it, and apply it."""
        text = yaml.safe_dump(manifest, sort_keys=False)
        (self.tree / file).write_text(text)
        self.push_changes(file, message)
        self.console.print(f"[dim]{text.rstrip()}[/]")

    def change(self, file: str, manifest: Object, message: str) -> None:
        """Write a manifest again, commit what has changed, and apply it."""
        (self.tree / file).write_text(yaml.safe_dump(manifest, sort_keys=False))
        for line in self.push_changes(file, message):
            self.console.print(f"[dim]{line}[/]")

    def push_changes(self, file: str, message: str) -> list[str]:
        """Commit a manifest that was changed, and apply it; return the lines that were changed."""
        self._git("add", file)
        self._git("commit", "--quiet", f"--message={message}")
        said = self._git("log", "-1", "--format=%h %s").strip()
        self.kubectl("apply", "-f", str(self.tree / file))
        self.say(f"[bold]git commit[/] {said}; [bold]kubectl apply[/] -f {file}")
        lines = self._git("show", "--format=", "--unified=0").splitlines()
        return [line for line in lines if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))]

    def _git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=platform", "-c", "user.email=platform@localhost", "-c", "commit.gpgsign=false"]
        return run(["git", "-C", self.tree, *identity, *arguments])

    def kubectl(self, *arguments: str) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments)

    def read(self, kind: str, name: str) -> Object:
        return dict(json.loads(self.kubectl("get", kind, name, "-o", "json")))

    def names(self, kind: str, prefixes: tuple[str, ...]) -> list[str]:
        """The objects of a kind whose names begin so, each with its kind."""
        found = self.kubectl("get", kind, "-o", "name").split()
        return [name for name in found if name.rpartition("/")[2].startswith(prefixes)]

    def wait(self, kind: str, name: str, what: str, done: Callable[[Object], bool], seconds: float) -> Object:
        """Wait for an object, with what Ready and its triggers say; return it."""
        deadline = time.monotonic() + seconds
        while True:
            obj = self.read(kind, name)
            for of, said in _sayings(obj):
                if self._told.get(f"{kind} {of}") != said:
                    self._told[f"{kind} {of}"] = said
                    self.say(said)
            if done(obj):
                self.say(f"[green]{what}[/]")
                return obj
            if time.monotonic() > deadline:
                raise PlatformError(f"not within {seconds:.0f} s: {what}; {reasons(obj)}")
            time.sleep(0.5)

    def until(self, what: str, done: Callable[[], bool], seconds: float) -> None:
        if not wait_until(done, seconds, pause=0.5):
            raise PlatformError(f"not within {seconds:.0f} s: {what}")
        self.say(f"[green]{what}[/]")

    # --- What the brokers have ---

    def assignment(self) -> Mapping[tuple[str, int], list[int]]:
        """The replicas of each partition, as the stock tool finds them."""
        return replicas_of(self.cluster.tool("topics", "--describe"))

    def check_records(self, traffic: Traffic) -> None:
        """Every record that was acknowledged, read back."""
        if lost := traffic.lost():
            raise PlatformError(f"{sum(map(len, lost.values()))} acknowledged records are lost: {lost}")
        self.say(f"[green]{traffic.count} records were acknowledged, and all of them are there[/]")

    def _cluster_status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = self.read("kafkacluster", operator_.CLUSTER).get("status", {})
        return status

    def check_nothing_left(self) -> None:
        """No throttle, no cordon, and nothing in flight, as the stock tools find it."""
        self.until("no throttle and no cordon is left", lambda: not self._configs(), 180)
        self.until("the KafkaCluster says so too", lambda: "throttle" not in self._cluster_status(), 60)
        listed = self.cluster.tool("reassign-partitions", "--list").strip()
        if listed != "No partition reassignments found.":
            raise PlatformError(f"the stock tool still finds something in flight:\n{listed}")
        self.say(f"kafka-reassign-partitions --list: [dim]{listed}[/]")

    def _configs(self) -> list[str]:
        """Throttles and cordons, as the stock tool finds them on all brokers and topics."""
        found = [self.cluster.tool("configs", "--describe", "--entity-type", kind) for kind in ("brokers", "topics")]
        lines = [line.strip() for text in found for line in text.splitlines()]
        return [line for line in lines if ".throttled." in line or line.startswith("cordoned.")]


def _sayings(obj: Object) -> Iterator[tuple[str, str]]:
    """What an object says of itself, by what it is about."""
    for ready in obj.get("status", {}).get("conditions", ()):
        if ready["type"] == "Ready":
            yield "Ready", f"[yellow]{ready['reason']}[/] {ready['message']}"
    for trigger in obj.get("status", {}).get("triggers", ()):
        reason = f" {trigger['reason']}" if "reason" in trigger else ""
        yield trigger["name"], f"[dim]{trigger['name']}:[/] [cyan]{trigger['state']}{reason}[/] {trigger['message']}"


def holds(obj: Object, condition: str) -> bool:
    """Whether a condition of an object is True."""
    return any(c["type"] == condition and c["status"] == "True" for c in obj["status"].get("conditions", ()))
