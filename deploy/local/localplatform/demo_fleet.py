"""`make demo-fleet`: sixty made clusters and a real one are planned on Spark, and the real one's manifests are applied.

The real one is the platform's, snapshotted as any cluster is. Its manifests are applied wave by wave, in the order in
which Argo CD syncs them. What was made stays in .local/demo-fleet, to look at.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from localplatform import operator_, parts
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo import succeeded
from localplatform.demo_view import follow
from localplatform.machine import CHECKOUT, LOCAL
from localplatform.processes import run, wait_until
from localplatform.story import by_broker, check_even, held_by, load_table, removed_afterwards, replicas_of, tell
from localplatform.workload import Workload

Object = dict[str, Any]
Tree = dict[Path, tuple[bytes, int]]
"""Manifests, below the folder of clusters: what is in them, and when they were written."""

MB = 10**6
CLUSTERS, DAYS, TOLERANCE = 60, 3, 10
TOPICS = {"fleet-orders": (12, 8 * MB), "fleet-payments": (16, 4 * MB), "fleet-audit": (12, 2 * MB)}
"""Partitions, and bytes of each."""
SKEWED = ([0, 1], [1, 0], [0, 1], [0, 3], [2, 1])
"""Replicas, one partition after another: both sites, but most of it on two of the four brokers."""
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
PLAN_LABEL = "kafka.reassign.dev/plan"
SHOWN = 900
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
POLICY = f"""\
defaults:
  namespace: {operator_.CLUSTER_NAMESPACE}
  goal:
    balance: {{by: [Disk, Replicas, Leaders], tolerancePercent: {TOLERANCE}}}
  template:
    throttle: {{interBroker: 50Mi}}
overrides:
- clusters: [{operator_.CLUSTER}]
  topics: {{include: [fleet-*]}}
  waves: {{maxPartitions: 12}}
  template:
    throttle: {{interBroker: 20Mi}}
- clusters: [ap-*]
  goal: {{balance: {{by: [Disk]}}}}
"""


class DemoFleet:
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        self.folder = LOCAL / "demo-fleet"
        self.manifests, self.report = self.folder / "manifests", self.folder / "report.html"
        if cluster.count != 4:
            raise PlatformError("this demo needs four brokers: make up BROKERS=4")

    def run(self) -> None:
        """All of it; what it made on the platform is gone afterwards."""
        with removed_afterwards(self._remove_all):
            self.snapshots()
            self.plan()
            self.picture()
            before = self.tree()
            self.apply()
            self.again(before)

    def snapshots(self) -> None:
        """The made clusters, and the real one, badly loaded."""
        self.console.rule(f"1. snapshots of {CLUSTERS} made clusters, {DAYS} days of them, and of a real one")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "policy.yaml").write_text(POLICY)
        made = [str(self.folder / "snapshots"), f"--clusters={CLUSTERS}", f"--days={DAYS}"]
        yesterday = f"--last={datetime.now(UTC).date() - timedelta(days=1)}"
        paths = os.pathsep.join((str(CHECKOUT / "operator"), str(CHECKOUT)))
        command = [sys.executable, "-m", "tests.benchmarks.fleets", *made, yesterday]
        self.console.print(run(command, env={"PYTHONPATH": paths}).strip())
        for topic, (partitions, size) in TOPICS.items():
            self.kafka.create(topic, [SKEWED[p % len(SKEWED)] for p in range(partitions)], size)
        self._show_loads()
        self._snapshot()

    def plan(self) -> None:
        """All stages, with a policy."""
        self.console.rule("2. a policy, and a run over all of them")
        self.console.print(POLICY.strip(), style="dim", markup=False)
        self.console.print("planning on Spark, which takes about a minute")
        self._run()
        waves = self._waves()
        if not waves:
            raise PlatformError(f"nothing is planned for {operator_.CLUSTER}, whose brokers are not in balance")
        self.console.print(f"for the real one: {', '.join(str(wave.relative_to(self.manifests)) for wave in waves)}")
        self.console.print(f"{waves[0].read_text()[:SHOWN].strip()}\n…", style="dim", markup=False)

    def picture(self) -> None:
        """The report in a browser, if there is one."""
        self.console.print(f"the report: {self.report}")
        if browser := next(filter(None, map(shutil.which, CHROMIUM)), None):
            picture = self.report.with_suffix(".png")
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1500"]
            run([browser, *flags, f"--screenshot={picture}", self.report.as_uri()])
            self.console.print(f"a screenshot of it: {picture}")

    def apply(self) -> None:
        """The real cluster's manifests, each when the one before has succeeded."""
        self.console.rule("3. the manifests of the real cluster are applied, wave by wave")
        for file in self._waves():
            manifest = yaml.safe_load(file.read_text())
            name = manifest["metadata"]["name"]
            self.console.print(f"kubectl apply --server-side -f {file.relative_to(self.folder)}")
            self._kubectl("apply", "--server-side", "-f", str(file))
            follow(self.console, lambda name=name: self._read(name), succeeded, 300)  # type: ignore[misc]
        self.console.print(f"[dim]{self._kubectl('get', 'kpr', '-l', self._label).rstrip()}[/]")

    def again(self, before: Tree) -> None:
        """The next snapshot, and what a run makes of it."""
        self.console.rule("4. the next snapshot, and the next run")
        self._show_loads()
        self._snapshot()
        self._run()
        if left := self._waves():
            raise PlatformError(f"it is not in balance: {', '.join(map(str, left))}")
        after = self.tree()
        own = {file for file in before if file.parts[0] == operator_.CLUSTER}
        if after != {file: content for file, content in before.items() if file not in own}:
            changed = sorted(str(file) for file in before.keys() ^ after.keys() | _other(before, after))
            raise PlatformError(f"manifests of other clusters are not what they were: {', '.join(changed)}")
        self.console.print(
            f"its {len(own)} manifests, carried out, are removed; the {len(after)} of the others are the same bytes, "
            "and none was written again"
        )
        assignment = replicas_of(self.cluster.tool("topics", "--describe"))
        check_even(self.console, by_broker(assignment, held_by(self.cluster)), self.cluster.ids, TOLERANCE)
        self.console.print(f"[green]{operator_.CLUSTER} is in balance, and nothing is left to do for it[/]")
        self.console.print(f"kept, to look at: {self.folder}")

    def tree(self) -> Tree:
        """The manifests of all clusters as they are now."""
        clusters = self.manifests / "clusters"
        return {
            file.relative_to(clusters): (file.read_bytes(), file.stat().st_mtime_ns)
            for file in sorted(clusters.glob("*/*.yaml"))
        }

    def _waves(self) -> list[Path]:
        """The real cluster's manifests in the order of their sync waves."""

        def sync_wave(file: Path) -> int:
            return int(yaml.safe_load(file.read_text())["metadata"]["annotations"][SYNC_WAVE])

        return sorted((self.manifests / "clusters" / operator_.CLUSTER).glob("*.yaml"), key=sync_wave)

    def _snapshot(self) -> None:
        into = self.folder / "snapshots"
        self._plugin("snapshot", f"--cluster={operator_.CLUSTER}", "-n", operator_.CLUSTER_NAMESPACE, f"--into={into}")

    def _run(self) -> None:
        places = {"snapshots": "snapshots", "policy": "policy.yaml", "work": "work", "manifests": "manifests"}
        options = [f"--{option}={self.folder / name}" for option, name in places.items()]
        self._plugin("fleet", "run", *options, f"--report={self.report}")

    def _plugin(self, *words: str) -> None:
        self.console.print(f"kubectl kafka-reassign {' '.join(words)}".replace(str(self.folder), "."))
        environment = {"KUBECONFIG": str(self.server.kubeconfig)}
        printed = run([parts.plugin() / "kubectl-kafka_reassign", *words], env=environment)
        if printed.strip():
            self.console.print(printed.rstrip(), markup=False)

    def _show_loads(self) -> None:
        assignment = replicas_of(self.cluster.tool("topics", "--describe"))
        self.console.print(load_table(self.cluster, by_broker(assignment, held_by(self.cluster))))

    @property
    def _label(self) -> str:
        return f"{PLAN_LABEL}={operator_.CLUSTER}"

    def _read(self, name: str) -> Object | None:
        text = self._kubectl("get", "kpr", name, "--ignore-not-found", "-o", "json")
        return json.loads(text) if text.strip() else None

    def _kubectl(self, *arguments: str) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments)

    def _remove_all(self) -> None:
        self._kubectl("delete", "kpr", "-l", self._label, "--wait=false")
        if not wait_until(lambda: not self._kubectl("get", "kpr", "-l", self._label, "-o", "name")):
            raise PlatformError(f"these do not go: {self._kubectl('get', 'kpr', '-l', self._label)}")
        self.kafka.delete(TOPICS)


def _other(before: Tree, after: Tree) -> set[Path]:
    return {file for file in before.keys() & after.keys() if before[file] != after[file]}


if __name__ == "__main__":
    sys.exit(tell(DemoFleet))
