"""The operator's process: one writer, the watches, a loop for each KafkaCluster, probes and metrics."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any

import kopf
import structlog

from reassign.controller.handlers import Supervisor
from reassign.controller.logs import set_up_logs
from reassign.controller.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.controller.planner import Planner
from reassign.controller.plans import Plans
from reassign.controller.reporter import Reporter
from reassign.controller.server import Health, serving
from reassign.controller.settings import Settings
from reassign.controller.store import Store
from reassign.errors import ReassignError
from reassign.kube.access import missing_rights
from reassign.kube.client import ClusterKey, KubeClient
from reassign.kube.events import EventRecorder
from reassign.kube.lease import Lease

log = structlog.get_logger()


def main() -> None:
    """Run until a signal stops it; exit non-zero when the operator may not do what it has to."""
    settings = Settings()
    set_up_logs(settings.log_level)
    try:
        asyncio.run(run(settings))
    except ReassignError as error:
        log.error("the operator cannot start", reason=error.reason, error=error.message)
        sys.exit(1)


async def run(settings: Settings) -> None:
    """Check the rights, take the Lease, then watch and serve."""
    async with KubeClient() as kube:
        namespaces = settings.watch_namespaces
        lease_at = (settings.pod_namespace, settings.lease_name) if settings.lease else None
        if missing := await missing_rights(kube, namespaces, lease_at):
            for sentence in missing:
                log.error("a right is missing; see the chart's Role", missing=sentence)
            sys.exit(1)
        metrics, watching = Metrics(), asyncio.Event()
        lease = _lease(settings)
        awaited: list[tuple[str, Callable[[], bool]]] = [("the watches", watching.is_set)]
        health = Health(settings.liveness_seconds, awaited)
        async with serving(health, metrics, settings.http_port):
            if lease:
                await lease.acquire()
            try:
                await _watch(settings, kube, metrics, health, watching, lease)
            finally:
                if lease:
                    await lease.release()


def _lease(settings: Settings) -> Lease | None:
    if not settings.lease:
        return None
    return Lease(settings.pod_namespace, settings.lease_name, settings.pod_name, on_lost=lambda: os._exit(3))


async def _watch(
    settings: Settings, kube: KubeClient, metrics: Metrics, health: Health, watching: asyncio.Event, lease: Lease | None
) -> None:
    store = Store()
    reporter = Reporter(kube, EventRecorder(kube, settings.pod_name), store, metrics)
    plans = Plans(store, kube, reporter, Planner())
    before_write = lease.check if lease else lambda: None

    def make_loop(key: ClusterKey) -> ClusterLoop:
        return ClusterLoop(key, store, kube, reporter, metrics, health, before_write, plans, lease.uid if lease else "")

    supervisor = Supervisor(store, kube, reporter, plans, settings.watch_namespaces, make_loop)
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_login)
    supervisor.register(registry)
    await supervisor.list_all_at_first()
    sweep = asyncio.create_task(supervisor.sweep(), name="sweep")
    try:
        await kopf.operator(
            registry=registry,
            settings=_kopf_settings(),
            namespaces=settings.watch_namespaces,
            clusterwide=not settings.watch_namespaces,
            standalone=True,
            ready_flag=watching,
        )
    finally:
        sweep.cancel()
        await supervisor.stop()


def _login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """A registry of our own knows no way to log in by itself.

    In a pod the address comes from the environment, as with other clients: a name would need the cluster's DNS.
    """
    if in_pod := kopf.login_with_service_account(**kwargs):
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        return dataclasses.replace(in_pod, server=f"https://{f'[{host}]' if ':' in host else host}:{port}")
    return kopf.login_with_kubeconfig(**kwargs)


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 60
    return settings


if __name__ == "__main__":
    main()
