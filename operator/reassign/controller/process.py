"""The operator's process: watches and probes from the start, then the Lease, then a loop for each KafkaCluster."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

import structlog

from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.logs import set_up_logs
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.objects.watches import Watches
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.controller.server import Health, serving
from reassign.controller.settings import Settings
from reassign.controller.supervisor import Supervisor
from reassign.controller.writing.writer import Writer
from reassign.errors import ReassignError
from reassign.kube.access import missing_rights
from reassign.kube.client import ClusterKey, KubeClient
from reassign.kube.events import EventRecorder
from reassign.kube.lease import Lease

log = structlog.get_logger()


def main() -> None:
    """Run until a signal stops it."""
    settings = Settings()
    set_up_logs(settings.log_level)
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(run(settings))
    except ReassignError as error:
        sys.exit(f"error: {error.message} ({error.reason})")


async def run(settings: Settings) -> None:
    """Watch, and wait for the Lease; then serve."""
    _stop_on_signals()
    store, metrics = Store(), Metrics()
    lease = _lease(settings, metrics)
    before_write = lease.check if lease else lambda: None
    async with KubeClient(before_write, metrics.api_write) as kube:
        writer = Writer(kube, EventRecorder(kube, settings.pod_name), store, metrics)
        plans = Plans(store, kube, writer, Planner())

        def make_loop(key: ClusterKey) -> ClusterLoop:
            return ClusterLoop(
                key, store, kube, writer, metrics, health, before_write, plans, lease.uid if lease else ""
            )

        supervisor = Supervisor(store, kube, writer, plans, settings.watch_namespaces, make_loop)
        watches = Watches(settings.watch_namespaces, supervisor.receive)
        health = Health(settings.liveness_seconds, [lambda: supervisor.listing.missing(watches)])
        metrics.observe_namespaces(supervisor.listing.scopes)
        metrics.observe_lease(lease, lambda: not health.missing())
        async with serving(health, metrics, settings.http_port):
            try:
                await supervisor.list_at_first()
                watches.start()
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_log_missing_rights(settings))
                    tasks.create_task(supervisor.sweep())
                    tasks.create_task(supervisor.restart_stuck())
                    if lease:
                        await lease.acquire()
                    await supervisor.serve()
            finally:
                await supervisor.stop()
                if lease:
                    await lease.release()


def _lease(settings: Settings, metrics: Metrics) -> Lease | None:
    if not settings.lease:
        return None
    name = settings.pod_namespace, settings.lease_name
    return Lease(*name, settings.pod_name, on_lost=lambda: os._exit(3), written=metrics.api_write)


def _stop_on_signals() -> None:
    loop, running = asyncio.get_running_loop(), asyncio.current_task()
    assert running is not None

    def stop() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: None)  # what is being released is not cut short
        running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


async def _log_missing_rights(settings: Settings) -> None:
    lease_at = (settings.pod_namespace, settings.lease_name) if settings.lease else None
    try:
        async with KubeClient() as kube:
            for sentence in await missing_rights(kube, settings.watch_namespaces, lease_at):
                log.error("a right is missing; see the chart's Role", missing=sentence)
    except ReassignError as error:
        log.warning("cannot ask for our rights", reason=error.reason, error=error.message)
