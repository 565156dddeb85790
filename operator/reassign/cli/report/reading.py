"""What the API server has about one PartitionReassignment, and what of it the user may not read."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

import typer

from reassign import __version__
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item, find
from reassign.cli.refs import Kube, Ref
from reassign.cli.report.history import Sources, describes_all, history
from reassign.cli.report.page import render
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object

T = TypeVar("T")


def run(kube: Kube, name: Ref) -> None:
    """Write the page to stdout; what is missing in it is named on stderr, too."""
    if name.kind not in (None, Kind.PARTITION_REASSIGNMENT):
        raise typer.BadParameter(f"{name.kind} has no report: name one of its waves", param_hint="'NAME'")
    if sys.stdout and sys.stdout.isatty():
        raise typer.BadParameter("it writes an HTML file to stdout: redirect it, as in > report.html")
    known = history(asyncio.run(_read(kube, namespace_of(kube), name)))
    for note in known.missing:
        out.say(f"note: {note}")
    out.write(render(known, __version__))


async def _read(kube: Kube, namespace: str, name: Ref) -> Sources:
    async with live.api_server(kube.login) as server:
        item = await find(server, namespace, name, [Kind.PARTITION_REASSIGNMENT])
        return await sources(server, item)


async def sources(server: KubeClient, item: Item) -> Sources:
    """Return all there is about a PartitionReassignment."""
    missing: list[str] = []

    async def allowed(what: str, answer: Awaitable[T], otherwise: T) -> T:
        try:
            return await answer
        except ReassignError as error:
            if error.reason is not Reason.NOT_AUTHORIZED:
                raise
            missing.append(f"{what} are not shown: you may not read them")
            return otherwise

    records: list[Object] = []
    if not describes_all(item.obj):
        what = "times of partitions that the status does not describe"
        records = await allowed(what, server.list(Kind.REASSIGNMENT_RECORD, item.namespace), [])
    events = await allowed("events", server.events(item.obj), [])
    cluster = await allowed(
        "limits and throttle of the KafkaCluster", server.get(Kind.KAFKA_CLUSTER, *item.cluster), None
    )
    if cluster:
        events += await allowed("events of the KafkaCluster", server.events(cluster), [])
    return Sources(item.obj, records, events, cluster, server.now(), tuple(missing))
