"""`make demo-gitops`: a real Argo CD carries out what is committed, shows what is wrong, and asks before it cancels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import yaml
from rich.console import Console

from localplatform import argocd, machine, operator_, parts
from localplatform.argocd import ArgoCd, Object, application, confirm
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.processes import TIMEOUT, wait_until
from localplatform.story import removed_afterwards, tell
from localplatform.workload import Workload

MB = 10**6
NAME, TOPIC, PARTITIONS, SIZE = "gitops", "gitops-orders", 4, 10 * MB
FOLDER = f"clusters/{NAME}"
PREFIX, ASKED = "argocd.argoproj.io", "Prune=confirm,Delete=confirm"


class DemoGitOps:
    """The story, one method for each of its parts."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.cluster, self.console = server, cluster, console
        self.kafka = Workload(cluster.bootstrap_servers)
        found = argocd.load(machine.processes(), server, parts.ARGOCD)
        if found is None:
            raise PlatformError("this demo needs Argo CD: make up ARGOCD=1")
        self.argocd: ArgoCd = found

    def run(self) -> None:
        """All of it; what it made is gone afterwards."""
        with removed_afterwards(self._remove_all):
            self.waves()
            self.mistake()
            self.plan()
            self.removal()

    def waves(self) -> None:
        """Two waves in one commit: the second one waits until the first one is healthy."""
        self.console.rule("1. a commit of two waves; Argo CD applies the second when the first is Healthy")
        self.kafka.create(TOPIC, [[0, 1]] * PARTITIONS, SIZE)
        self._commit(self._wave(1, [0, 1], [0, 2]), self._wave(2, [2, 3], [0, 2]))
        policy = argocd.sync_policy(self.argocd.repository, retry_seconds=5)
        self.server.apply(application(self.argocd.repository, NAME, FOLDER, **policy))
        self._wait("both waves have moved", lambda: self._replicas() == [[0, 2]] * 4 and self._is("Healthy"))

    def mistake(self) -> None:
        """A wave that cannot be done, and the commit that corrects it."""
        self.console.rule("2. a commit with a mistake: the reason is in Argo CD, and a correction is applied")
        self._commit(self._wave(3, [0, 1], [0, 42]))
        self._wait("it is Degraded", lambda: self._is("Degraded"))
        status, message = self.argocd.health_of(NAME, f"{NAME}-3")
        self.console.print(f"[red]{status}[/]: {message}")
        self._commit(self._wave(3, [0, 1], [0, 1]))
        self._wait("the correction has moved them", lambda: self._is("Healthy") and self._replicas()[0] == [0, 1])

    def plan(self) -> None:
        """A goal in Git, which a commit approves."""
        self.console.rule("3. a goal in Git: the plan waits, and a commit approves it")
        manifest = self._manifest("ReassignmentPlan", NAME)
        manifest["metadata"]["annotations"] = {f"{PREFIX}/sync-wave": "4"}  # the last: nothing waits for its approval
        manifest["spec"] |= {"goal": {"drainBrokers": [0]}, "topics": {"include": [TOPIC]}}
        self._commit(manifest)
        self._wait("it waits for approval", lambda: self._is("Suspended"))
        self.console.print(self.argocd.health_of(NAME, NAME)[1])
        manifest["spec"]["approvedDigest"] = self._read("reassignmentplan", NAME)["status"]["digest"]
        self._commit(manifest)
        self._wait("broker 0 is drained", lambda: self._is("Healthy") and self._drained())

    def removal(self) -> None:
        """A manifest that is removed in flight: Argo CD asks, and then the operator cancels."""
        self.console.rule("4. a manifest is removed in flight: Argo CD asks first, then the move is cancelled")
        before = self._replicas()[0]
        self._commit(self._wave(5, [0], [0, *before[:1]], throttle={"interBroker": "64Ki"}))
        self._wait("it moves", lambda: self._in_flight(5) > 0)
        self._commit(remove=(f"{NAME}-5",))
        self._wait("Argo CD asks", lambda: "confirmation" in self._operation())
        self.console.print(f"[yellow]{self._operation()}[/]; meanwhile in flight: {self._in_flight(5)}")
        confirm(self.argocd, NAME)
        self._wait("it is cancelled, and its manifest is gone", lambda: not self._found(5))
        if self._replicas()[0] != before:
            raise PlatformError(f"the replicas are {self._replicas()[0]}, not {before} as before")
        self.console.print(f"[green]{TOPIC}-0 is on {before} again, as before[/]")

    def _manifest(self, kind: str, name: str) -> Object:
        metadata = {"name": name, "namespace": operator_.CLUSTER_NAMESPACE}
        spec: dict[str, Any] = {"clusterRef": {"name": operator_.CLUSTER}}
        return {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}

    def _wave(self, number: int, partitions: list[int], to: list[int], **spec: Any) -> Object:
        found = self._manifest("PartitionReassignment", f"{NAME}-{number}")
        found["metadata"]["annotations"] = {f"{PREFIX}/sync-wave": str(number), f"{PREFIX}/sync-options": ASKED}
        wanted = [{"topic": TOPIC, "partition": n, "replicas": to} for n in partitions]
        found["spec"] |= {"partitions": wanted, "throttle": {"interBroker": 5 * MB}, **spec}
        return found

    def _commit(self, *manifests: Object, remove: tuple[str, ...] = ()) -> None:
        files: dict[str, str | None] = {f"{FOLDER}/{m['metadata']['name']}.yaml": yaml.safe_dump(m) for m in manifests}
        files |= {f"{FOLDER}/{name}.yaml": None for name in remove}
        commit = self.argocd.repository.commit(files | {f"{FOLDER}/README.md": "Waves of the demo."})
        said = [m["metadata"]["name"] for m in manifests] + [f"without {name}" for name in remove]
        self.console.print(f"[bold]git push[/] {commit[:8]}: {', '.join(said)}")

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        """Until it is so; each change of the Application is told."""
        told = ""

        def look() -> bool:
            nonlocal told
            now = " · ".join([*self.argocd.state(NAME), *self._summaries()])
            if now != told:
                told = now
                self.console.print(f"[dim]Argo CD: {now}[/]")
            return done()

        if not wait_until(look, pause=1):
            raise PlatformError(f"not within {TIMEOUT:.0f} s: {what}; {self._operation()}")
        self.console.print(f"[green]{what}[/]")

    def _summaries(self) -> list[str]:
        nodes = self.argocd.application(NAME).get("status", {}).get("resources", ())
        known = (self._read(node["kind"], node["name"]) for node in nodes)
        unfinished = (obj for obj in known if obj and not _ready(obj))
        return [f"{obj['metadata']['name']}: {obj.get('status', {}).get('summary') or '…'}" for obj in unfinished]

    def _is(self, health: str) -> bool:
        return self.argocd.state(NAME)[1] == health

    def _operation(self) -> str:
        state = self.argocd.application(NAME).get("status", {}).get("operationState", {})
        return str(state.get("message", ""))

    def _replicas(self) -> list[list[int]]:
        found = self.kafka.replicas(TOPIC)
        return [found[n] for n in sorted(found)]

    def _drained(self) -> bool:
        return all(0 not in replicas for replicas in self._replicas())

    def _found(self, number: int) -> Object:
        return self._read("partitionreassignment", f"{NAME}-{number}")

    def _in_flight(self, number: int) -> int:
        status = self._found(number).get("status", {})
        return int((status.get("progress") or {}).get("partitionsInFlight", 0))

    def _read(self, kind: str, name: str) -> Object:
        path = f"/apis/kafka.reassign.dev/v1alpha1/namespaces/{operator_.CLUSTER_NAMESPACE}/{kind.lower()}s/{name}"
        return self.server.get(path) or {}

    def _remove_all(self) -> None:
        namespace = f"--namespace={argocd.NAMESPACE}"
        self.server.kubectl(namespace, "delete", "application", NAME, "--ignore-not-found", "--timeout=5m")
        namespace = f"--namespace={operator_.CLUSTER_NAMESPACE}"
        for kind in ("reassignmentplan", "partitionreassignment"):
            found = self.server.kubectl(namespace, "get", kind, "-o=name").split()
            if ours := [name for name in found if name.rpartition("/")[2].startswith(NAME)]:
                self.server.kubectl(namespace, "delete", *ours, "--timeout=5m")
        tree = self.argocd.repository.tree
        stale = [str(path.relative_to(tree)) for path in (tree / FOLDER).glob("*")]
        if stale:
            self.argocd.repository.commit(dict.fromkeys(stale))
        self.kafka.delete([TOPIC])


def _ready(obj: Object) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


if __name__ == "__main__":
    sys.exit(tell(DemoGitOps))
