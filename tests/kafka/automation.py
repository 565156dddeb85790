"""Brokers, an API server and an operator as a process: what tests of decommissions and policies work on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from localplatform.brokers import Brokers
from localplatform.brokers import running as running_brokers
from localplatform.controlplane import ApiServer, api_server
from localplatform.processes import wait_until
from localplatform.workload import Workload
from tests.api.conftest import CRDS
from tests.api.kubectl import Kubectl, Object, cluster, decommission
from tests.operator_process import CONTROLLER, OperatorProcess, running

CORDON = "cordoned.log.dirs"
SET = (CORDON, "leader.replication.throttled.rate", "follower.replication.throttled.rate")
DYNAMIC = 2
"""DescribeConfigs' source DYNAMIC_BROKER_CONFIG."""
SECONDS = 180


class Automation:
    """A cluster that an operator serves; each test leaves it as it was."""

    def __init__(
        self, brokers: Brokers, api: ApiServer, directory: Path, stack: ExitStack, module: str = CONTROLLER
    ) -> None:
        self.brokers, self.kafka, self.kubectl = brokers, Workload(brokers.bootstrap_servers), Kubectl(api)
        self._api, self._directory, self._stack, self._module = api, directory, stack, module
        self._number = 0
        self.operator = self.start_operator()
        self.kubectl.apply(cluster(bootstrapServers=brokers.bootstrap_servers))
        self.kubectl("wait", "--for=condition=Ready", "kcl/main", "--timeout=2m")

    def start_operator(self) -> OperatorProcess:
        """Start another process of the operator; the one before has ended."""
        self._number += 1
        directory = self._directory / str(self._number)
        directory.mkdir()
        name, settings = f"operator-{self._number}", {"REASSIGN_LEASE": "false"}
        started = running(name, self._api.kubeconfig, directory, self._module, **settings)
        self.operator = self._stack.enter_context(started)
        self.operator.wait_ready()
        return self.operator

    def retire(self, name: str = "retire-5", brokers: Sequence[int] = (5,), **spec: Any) -> str:
        """Apply a BrokerDecommission; return its name."""
        self.kubectl.apply(decommission(name, brokers=[*brokers], **spec))
        return name

    def approve(self, name: str) -> None:
        digest = self.until(name, lambda status: "digest" in status)["digest"]
        self.kubectl.patch("kbd", name, {"spec": {"approvedDigest": digest}})

    def status(self, name: str, kind: str = "kbd") -> Object:
        found: Object = self.kubectl.json("get", kind, name)["status"]
        return found

    def until(
        self, name: str, condition: Callable[[Object], bool], seconds: float = SECONDS, kind: str = "kbd"
    ) -> Object:
        """Wait until a status is so; return it."""
        last: Object = {}

        def holds() -> bool:
            nonlocal last
            last = self.status(name, kind)
            return condition(last)

        assert wait_until(holds, seconds), f"{last}\n{self.operator.log_text()}"
        return last

    def until_ready(self, name: str, reason: str, seconds: float = SECONDS) -> Object:
        """Wait until the condition Ready has this reason; return the status."""
        return self.until(name, lambda status: ready(status).get("reason") == reason, seconds)

    def registered(self) -> set[int]:
        """Return the brokers that are registered, those that are down too, as the KafkaCluster shows them."""
        return {broker["id"] for broker in self.kubectl.json("get", "kcl", "main")["status"]["brokers"]}

    def on(self, broker: int) -> list[str]:
        """Return the partitions that have a replica on a broker."""
        topics = self.kafka.metadata().topics.items()
        return [f"{name}-{n}" for name, t in topics for n, p in t.partitions.items() if broker in p.replicas]

    def configs(self) -> dict[str, str]:
        """Return what is set on brokers by anyone, by broker and name."""
        found = {}
        for broker in self.brokers.registered():
            resource = ConfigResource(ResourceType.BROKER, str(broker))
            [entries] = self.kafka.ask(lambda admin, of=resource: admin.describe_configs([of])).values()
            found |= {f"{broker} {e.name}": e.value for e in entries.values() if e.source == DYNAMIC and e.name in SET}
        return found

    def cordon(self, broker: int, text: str | None) -> None:
        """Set, or delete, the cordon of a broker as another client."""
        op = AlterConfigOpType.DELETE if text is None else AlterConfigOpType.SET
        entry = ConfigEntry(CORDON, text, incremental_operation=op)
        resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
        self.kafka.ask(lambda admin: admin.incremental_alter_configs([resource]))

    @contextmanager
    def beside(self, work: Callable[[], object], seconds: float) -> Iterator[None]:
        """Do this again and again, so many seconds apart, within the block."""
        ended = threading.Event()

        def go_on() -> None:
            while not ended.is_set():
                work()
                ended.wait(seconds)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def nothing_is_left(self) -> bool:
        """Whether nothing is in flight, and no configuration is set."""
        in_flight = self.brokers.tool("reassign-partitions", "--list")
        return "No partition reassignments found" in in_flight and not self.configs()

    def clean_up(self, topics: Sequence[str]) -> None:
        for kind in ("krpol", "kbd", "krp", "kpr"):
            self.kubectl("delete", kind, "--all", "--timeout=2m")
        for broker in self.brokers.ids:
            if not self.brokers.alive(broker):
                self.brokers.restart(broker)
        self.kafka.delete(topics)
        assert wait_until(self.nothing_is_left, SECONDS), self.configs()


@contextmanager
def automation(version: str, tmp: pytest.TempPathFactory, module: str = CONTROLLER) -> Iterator[Automation]:
    """Six brokers of a version, and an operator that serves them."""
    with ExitStack() as stack:
        api = stack.enter_context(api_server(tmp.mktemp("api")))
        kubectl = Kubectl(api)
        kubectl("apply", "--server-side", "-f", str(CRDS))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
        brokers = stack.enter_context(running_brokers(tmp.mktemp("brokers"), version, brokers=6, controllers=1))
        yield Automation(brokers, api, tmp.mktemp("operators"), stack, module)


def ready(status: Object) -> Object:
    """Return the condition Ready."""
    return condition(status, "Ready")


def condition(status: Object, kind: str) -> Object:
    return next((c for c in status.get("conditions", ()) if c["type"] == kind), {})
