"""The operator's process: one watched namespace that cannot be read stops no other, nor the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from localplatform.controlplane import ApiServer
from localplatform.processes import wait_until
from tests.api.kubectl import Kubectl, RefusedError, cluster, reassignment
from tests.api.site import UNREACHABLE, Site, is_served, reason
from tests.forwarder import Forwarder
from tests.operator_process import OperatorProcess, running


def readable(process: OperatorProcess, kubectl: Kubectl) -> float:
    series = f'kafka_reassign_namespace_readable{{watched_namespace="{kubectl.namespace}"}} '
    (value,) = [line.split()[1] for line in process.get("/metrics")[1].splitlines() if line.startswith(series)]
    return float(value)


def test_a_namespace_without_its_role_binding_stops_no_other(site: Site, api: ApiServer, tmp_path: Path) -> None:
    site.allow(site.a)
    site.a.apply(cluster(bootstrapServers=UNREACHABLE))
    site.b.apply(cluster(bootstrapServers=UNREACHABLE))
    elsewhere = {"clusterRef": {"name": "main", "namespace": site.b.namespace}}
    site.a.apply(reassignment("elsewhere", **elsewhere))
    with running("one", site.kubeconfig(tmp_path, api), tmp_path, **site.watched) as process:
        process.wait_ready()
        assert is_served(site.a, "main"), process.log_text()
        assert wait_until(lambda: reason(site.a, "kpr", "elsewhere") == "NotAuthorized"), process.log_text()
        assert (readable(process, site.a), readable(process, site.b)) == (1, 0)
        site.allow(site.b)
        assert is_served(site.b, "main"), process.log_text()
        assert (readable(process, site.a), readable(process, site.b)) == (1, 1)
        refused = [r for r in process.log("namespace cannot be read") if r["reason"] == "NotAuthorized"]
        assert [record["namespace"] for record in refused] == [site.b.namespace], refused
        site.b.apply(cluster("second", bootstrapServers=UNREACHABLE))
        assert is_served(site.b, "second"), process.log_text()


def test_a_namespace_whose_rights_go_keeps_what_is_known(
    site: Site, api: ApiServer, forwarder: Forwarder, tmp_path: Path
) -> None:
    forwarder.open()
    site.allow(site.a)
    site.allow(site.b)
    site.a.apply(cluster(bootstrapServers=UNREACHABLE))
    site.b.apply(cluster(bootstrapServers=UNREACHABLE))
    with running("one", site.kubeconfig(tmp_path, api, forwarder.port), tmp_path, **site.watched) as process:
        process.wait_ready()
        assert is_served(site.a, "main"), process.log_text()
        assert is_served(site.b, "main"), process.log_text()
        site.refuse(site.b)
        forwarder.cut()  # a watch that runs is not refused
        seconds = 1 + 1 + 2 + 3 + 5 + 8 + 13 + 21 + 15  # what kopf takes by itself until it gives up, and all watches
        assert not wait_until(lambda: not process.running, seconds), process.log_text()
        site.a.apply(cluster("second", bootstrapServers=UNREACHABLE))
        assert is_served(site.a, "second"), process.log_text()
        site.allow(site.b)
        site.b.apply(cluster("second", bootstrapServers=UNREACHABLE))
        assert is_served(site.b, "second"), process.log_text()


def test_an_api_server_that_is_away_at_the_start_is_waited_for(
    site: Site, api: ApiServer, forwarder: Forwarder, tmp_path: Path
) -> None:
    for kubectl in (site.a, site.b):
        site.allow(kubectl)
        kubectl.apply(cluster(bootstrapServers=UNREACHABLE))
    with running("one", site.kubeconfig(tmp_path, api, forwarder.port), tmp_path, **site.watched) as process:
        assert wait_until(lambda: process.get("/livez")[0] == 200), process.log_text()
        status, text = process.get("/readyz")
        assert status == 503
        assert site.a.namespace in text
        forwarder.open()
        process.wait_ready()
        assert is_served(site.a, "main"), process.log_text()
        assert is_served(site.b, "main"), process.log_text()


def test_a_namespace_that_is_gone_stops_no_other(site: Site, api: ApiServer, tmp_path: Path) -> None:
    site.allow(site.a)
    site.a.apply(cluster(bootstrapServers=UNREACHABLE))
    watched = site.watched | {"REASSIGN_WATCH_NAMESPACES": f"{site.a.namespace},never-was"}
    with pytest.raises(RefusedError):
        site.a("get", "namespace", "never-was")
    with running("one", site.kubeconfig(tmp_path, api), tmp_path, **watched) as process:
        process.wait_ready()
        assert is_served(site.a, "main"), process.log_text()
