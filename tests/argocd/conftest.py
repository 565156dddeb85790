"""A real Argo CD beside an API server, brokers and the operator; each test has a topic and a folder in Git."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from localplatform import argocd as platform
from localplatform import prerequisites
from localplatform.argocd import ArgoCd, Object
from localplatform.controlplane import start_controllers
from localplatform.processes import TIMEOUT, wait_until
from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.fleet.emit import ASKED, SYNC_OPTIONS, SYNC_WAVE
from tests.benchmarks.apart import API, CLUSTER, NAMESPACE, Apart, apart

NUMBERS = count(1)


@dataclass
class Site:
    """One test's part of it: a topic of `name`, an Application of that name, and its folder."""

    name: str
    bench: Apart
    argocd: ArgoCd

    @property
    def folder(self) -> str:
        return f"clusters/{self.name}"

    def topic(self, partitions: int = 2, size: int = 0, on: tuple[int, ...] = (0, 1)) -> None:
        """On these brokers; known to all when it returns, so that no reading of the operator misses it."""
        self.bench.kafka.create(self.name, [on] * partitions, size)
        for server in self.bench.kafka.bootstrap_servers.split(","):
            found = AdminClient({"bootstrap.servers": server, "log_level": 0})
            self.eventually(
                f"{server} knows the topic", lambda a=found: self.name in a.list_topics(timeout=TIMEOUT).topics
            )

    def wave(self, number: int, *partitions: int, to: tuple[int, ...] = (0, 2), **spec: Any) -> Object:
        """A manifest of partitions of the topic."""
        name = f"{self.name}-{number}"
        wanted = [{"topic": self.name, "partition": n, "replicas": list(to)} for n in partitions]
        annotations = {SYNC_WAVE: str(number), SYNC_OPTIONS: ASKED}
        return {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "PartitionReassignment",
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"clusterRef": {"name": CLUSTER}, "partitions": wanted, **spec},
        }

    def commit(self, *manifests: Object, remove: tuple[str, ...] = ()) -> str:
        """Write each manifest to a file of its own, and remove those of these names."""
        files: dict[str, str | None] = {self._file(m["metadata"]["name"]): yaml.safe_dump(m) for m in manifests}
        return self.argocd.repository.commit(
            files | dict.fromkeys(map(self._file, remove)) | {self._file("README"): ""}
        )

    def path(self, name: str) -> Path:
        """The file of a manifest, in the work tree that the next commit takes."""
        return self.argocd.repository.tree / self._file(name)

    def _file(self, name: str) -> str:
        return f"{self.folder}/{name}.{'md' if name == 'README' else 'yaml'}"

    def application(self, server_side: bool = True) -> None:
        """Make the Application, with the policy of our ApplicationSet but quick retries."""
        policy = self.policy() | ({} if server_side else {"syncOptions": []})
        self.argocd.server.apply(platform.application(self.argocd.repository, self.name, self.folder, **policy))

    def policy(self) -> dict[str, Any]:
        return platform.sync_policy(self.argocd.repository, retry_seconds=2)

    def found(self, number: int) -> Object | None:
        """The PartitionReassignment of a wave."""
        return self.bench.api.get(f"{API}/partitionreassignments/{self.name}-{number}")

    def succeeded(self, number: int) -> bool:
        return self.bench.condition(f"{self.name}-{number}", "Succeeded")

    def in_flight(self) -> bool:
        """Whether anything of the topic is moving."""
        return any(tp.topic == self.name for tp in self.bench.admin.list_partition_reassignments())

    def ends_at(self, *replicas: list[int]) -> None:
        """The replicas of its partitions, as brokers show them a moment after the move at the latest."""
        self.eventually(f"the replicas are {replicas}", lambda: self.replicas() == [*replicas])

    def replicas(self) -> list[list[int]]:
        found = self.bench.replicas(self.name)
        return [found[number] for number in sorted(found)]

    def cordoned(self, broker: int) -> bool:
        """Whether any directory of a broker is to take no new replicas, as its configuration says."""
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        [found] = self.bench.kafka.ask(lambda admin: admin.describe_configs([resource])).values()
        return bool(found[CORDONED_LOG_DIRS].value)

    def compared_since(self, moment: datetime) -> Callable[[], bool]:
        """Whether Argo CD has compared twice since then: the first comparison may have begun before."""
        seen: set[datetime] = set()

        def compared() -> bool:
            at = datetime.fromisoformat(self.argocd.application(self.name)["status"]["reconciledAt"])
            seen.update({at} if at > moment else ())
            return len(seen) > 1

        return compared

    def state(self) -> tuple[str, str]:
        return self.argocd.state(self.name)

    def eventually(self, what: str, condition: Any) -> None:
        """Wait until it is so; else say what Argo CD says."""
        if not wait_until(condition):
            status = self.argocd.application(self.name).get("status", {})
            raise AssertionError(f"not within {TIMEOUT:.0f} s: {what}; {json.dumps(status)[:3000]}")


@pytest.fixture(scope="session")
def argo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Apart, ArgoCd]]:
    prerequisites.require(["api", "brokers", "argocd"])
    with apart(4, controllers=1) as bench:
        start_controllers(bench.processes, bench.api)  # Argo CD deletes in the foreground
        yield bench, platform.start(bench.processes, bench.api, tmp_path_factory.mktemp("argocd"))


@pytest.fixture
def site(argo: tuple[Apart, ArgoCd]) -> Iterator[Site]:
    """At the end its Application is gone, and what it made."""
    name = f"t{next(NUMBERS)}"
    found = Site(name, *argo)
    yield found
    api = found.argocd.server
    api.kubectl("-n", platform.NAMESPACE, "delete", "applicationset", "--all", "--wait=false")
    api.kubectl("-n", platform.NAMESPACE, "delete", "application", name, "--ignore-not-found", "--wait=false")
    bare = json.dumps([{"op": "remove", "path": "/metadata/finalizers"}])
    if (found.argocd.application(name).get("metadata") or {}).get("finalizers"):
        api.kubectl("-n", platform.NAMESPACE, "patch", "application", name, "--type=json", f"--patch={bare}")
    for kind in ("reassignmentpolicies", "brokerdecommissions", "reassignmentplans", "partitionreassignments"):
        api.kubectl("-n", NAMESPACE, "delete", kind, "--all", "--timeout=5m")
