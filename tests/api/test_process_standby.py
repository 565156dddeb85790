"""Two processes of the operator: one writes, the other watches, is ready, and takes over."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localplatform.controlplane import ApiServer
from localplatform.processes import wait_until
from tests.api.kubectl import Kubectl, cluster
from tests.api.site import ACCOUNTS, LEASE, UNREACHABLE, Site, is_served
from tests.forwarder import Forwarder
from tests.operator_process import OperatorProcess, running


class Pair:
    """The one that has the Lease, and the one that waits for it; each has an account of its own."""

    def __init__(self, site: Site, api: ApiServer, directory: Path, stack: ExitStack) -> None:
        self.site, self._api = site, api
        for kubectl in (site.a, site.b):
            site.allow(kubectl)
        self.active, self.standby = (self._start(name, directory, stack) for name in ACCOUNTS)

    def _start(self, name: str, directory: Path, stack: ExitStack) -> OperatorProcess:
        kubeconfig = self.site.kubeconfig(directory, self._api, account=name)
        process = stack.enter_context(running(name, kubeconfig, directory, **self.site.watched))
        process.wait_ready()
        assert wait_until(lambda: bool(self.holder))
        return process

    @property
    def holder(self) -> str:
        if "lease.coordination" not in self.site.system("get", "lease", "-o", "name"):
            return ""
        return str(self.site.system.read("lease", LEASE)["spec"].get("holderIdentity", ""))

    def writes(self, process: OperatorProcess, since: datetime) -> list[str]:
        """What a process wrote to our kinds since then, as the API server's audit log has it."""
        user = f"system:serviceaccount:{self.site.system.namespace}:{process.name}"
        events = map(json.loads, self._api.audit_log.read_text().splitlines())
        return [
            f"{event['verb']} {event['requestURI']}"
            for event in events
            if event["user"]["username"] == user
            and event["verb"] in ("create", "update", "patch", "delete")
            and datetime.fromisoformat(event["requestReceivedTimestamp"]) >= since
        ]


@pytest.fixture
def pair(site: Site, api: ApiServer, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(site, api, tmp_path, stack)


def gauges(process: OperatorProcess) -> dict[str, float]:
    """The gauges about the Lease, by name."""
    text = process.get("/metrics")[1]
    found = re.findall(r'^kafka_reassign_(\w+)\{lease="[^"/]+/[^"/]+"\} (\S+)$', text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def served_by(process: OperatorProcess, pair: Pair, kubectl: Kubectl, name: str) -> None:
    """A new KafkaCluster is served, by this process."""
    since = datetime.now(UTC)
    kubectl.apply(cluster(name, bootstrapServers=UNREACHABLE))
    assert is_served(kubectl, name), process.log_text()
    assert pair.writes(process, since)


def test_the_one_that_waits_is_ready_and_writes_nothing(pair: Pair) -> None:
    since = datetime.now(UTC)
    active, standby = gauges(pair.active), gauges(pair.standby)
    assert (active["lease_held"], active["standby_ready"]) == (1, 0)
    assert (standby["lease_held"], standby["standby_ready"]) == (0, 1)
    assert active["lease_renewed_timestamp_seconds"] == pytest.approx(time.time(), abs=60)
    assert standby["lease_renewed_timestamp_seconds"] == 0
    assert active["lease_transitions"] == standby["lease_transitions"]
    assert re.search(r'api_write_bytes_total\{resource="leases"\} [1-9]', pair.active.get("/metrics")[1])
    assert pair.standby.get("/readyz") == (200, "ok\n")
    served_by(pair.active, pair, pair.site.a, "main")
    assert "kafka_cluster=" in pair.active.get("/metrics")[1]
    assert "kafka_cluster=" not in pair.standby.get("/metrics")[1]
    assert pair.writes(pair.standby, since) == []


def test_on_sigterm_the_other_takes_over_at_once(pair: Pair) -> None:
    served_by(pair.active, pair, pair.site.a, "main")
    pair.active.send(signal.SIGTERM)
    assert pair.active.ended() == 0
    assert pair.holder != pair.active.name, "the Lease is not released"
    assert wait_until(lambda: pair.holder == pair.standby.name)
    served_by(pair.standby, pair, pair.site.b, "main")


def test_one_that_was_stopped_writes_nothing_when_it_continues(pair: Pair) -> None:
    served_by(pair.active, pair, pair.site.a, "main")
    since = datetime.now(UTC)
    pair.active.send(signal.SIGSTOP)
    assert wait_until(lambda: pair.holder == pair.standby.name)
    pair.site.a.patch("kafkacluster", "main", {"spec": {"bootstrapServers": "127.0.0.1:2"}})
    for number in range(5):  # more that it would serve
        pair.site.a.apply(cluster(f"later-{number}", bootstrapServers=UNREACHABLE))
    pair.active.send(signal.SIGCONT)
    assert pair.active.ended() == 3, pair.active.log_text()
    assert pair.writes(pair.active, since) == []
    for number in range(5):
        assert is_served(pair.site.a, f"later-{number}")


def test_sigterm_ends_one_that_is_importing(site: Site, api: ApiServer, tmp_path: Path) -> None:
    with running("one", site.kubeconfig(tmp_path, api), tmp_path, **site.watched) as process:
        assert wait_until(process.takes_sigterm, pause=0.01)
        assert process.get("/livez")[0] == 0, "it has started already"
        process.send(signal.SIGTERM)
        assert process.ended() == 0, process.log_text()
    assert process.log_text() == ""


def test_sigterm_ends_one_that_waits_for_the_api_server(
    site: Site, api: ApiServer, forwarder: Forwarder, tmp_path: Path
) -> None:
    kubeconfig = site.kubeconfig(tmp_path, api, forwarder.port)
    with running("one", kubeconfig, tmp_path, **site.watched) as process:
        assert wait_until(lambda: bool(process.log("namespace cannot be read"))), process.log_text()
        process.send(signal.SIGTERM)
        assert process.ended() == 0, process.log_text()


def test_sigterm_ends_one_that_waits_for_the_lease(pair: Pair) -> None:
    pair.standby.send(signal.SIGTERM)
    assert pair.standby.ended() == 0, pair.standby.log_text()
    assert pair.holder == pair.active.name
    served_by(pair.active, pair, pair.site.a, "main")
