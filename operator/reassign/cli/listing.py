"""The command `list`: PartitionReassignments, or what is in flight on a cluster as the stock tool's JSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime

import typer
from rich.table import Table

from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import Item, of_cluster
from reassign.cli.options import ListOutput
from reassign.cli.refs import Kube
from reassign.core.brake import TargetReplicas, documents
from reassign.core.cluster import check_identity
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import amount, printable

NOTHING = '{"version":1,"partitions":[]}\n'


def run(kube: Kube, all_namespaces: bool, cluster: str | None, output: ListOutput) -> None:
    """Write the PartitionReassignments of a namespace or of all, or what a cluster has in flight."""
    if output is ListOutput.REASSIGNMENT_JSON:
        if cluster is None:
            raise typer.BadParameter("reassignment-json is of one KafkaCluster: name it with --cluster")
        out.write(as_stock(asyncio.run(in_flight(kube, cluster))))
        return
    namespace = namespace_of(kube)
    items, now = asyncio.run(_read(kube, None if all_namespaces else namespace, cluster))
    if not out.write_value(out.as_list([without_managers(item.obj) for item in items]), output):
        if not items:
            where = "any namespace" if all_namespaces else f"namespace {namespace}"
            none = f"no PartitionReassignment in {where} refers to the KafkaCluster {cluster}"
            out.say(none if cluster else f"there are no PartitionReassignments in {where}")
            return
        out.write_tables([table(items, now, all_namespaces, output is ListOutput.WIDE)])


async def _read(kube: Kube, namespace: str | None, cluster: str | None) -> tuple[list[Item], datetime]:
    async with live.api_server(kube.login) as server:
        objects = await server.list(Kind.PARTITION_REASSIGNMENT, namespace)
        items = of_cluster(map(Item, objects), cluster)
        if cluster and not items:
            await check_cluster(server, namespace, cluster)
        return items, server.now()


async def check_cluster(server: KubeClient, namespace: str | None, cluster: str) -> None:
    """Raise MissingReferenceError where the user sees that there is no KafkaCluster of this name."""
    try:
        names = [obj["metadata"]["name"] for obj in await server.list(Kind.KAFKA_CLUSTER, namespace)]
    except ReassignError as error:
        if error.reason is Reason.NOT_AUTHORIZED:
            return
        raise
    if cluster not in names:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        where += ", and no PartitionReassignment refers to one"
        raise live.not_there("KafkaCluster", cluster, where, names, Reason.CLUSTER_NOT_FOUND)


async def in_flight(kube: Kube, cluster: str) -> TargetReplicas:
    """Return everything in flight on the brokers of a KafkaCluster, moves of other clients included."""
    connection, by = await live.resolve(namespace_of(kube), cluster, kube.login)
    async with live.read_only(connection) as client:
        snapshot = await client.observe((), (), ())
    check_identity(by.status.cluster_id, snapshot.cluster_id)
    return {tp: move.final for tp, move in snapshot.reassignments.items()}


def as_stock(moves: TargetReplicas) -> str:
    """Return moves as one file of the stock tool."""
    return "".join(documents(moves, sys.maxsize)) or NOTHING


def table(items: Sequence[Item], now: datetime, with_namespace: bool = False, wide: bool = False) -> Table:
    """Return a row for each PartitionReassignment, with columns as kubectl has them."""
    columns = [*(["NAMESPACE"] if with_namespace else []), "NAME", "CLUSTER", "READY", "REASON", "PROGRESS", "AGE"]
    more = ["IN FLIGHT", "BLOCKED", "RATE", "MESSAGE"] if wide else []
    made = out.table(*columns, *more)
    for item in items:
        ready, namespace = item.ready, [item.namespace] if with_namespace else []
        state = [ready.status.value, ready.reason] if ready else ["Unknown", "Pending"]
        row = [*namespace, item.name, item.cluster[1], *state, item.status.summary or "", age(item.obj, now)]
        rate, progress = item.progress.bytes_per_second, item.progress
        counts = [str(progress.partitions_in_flight), str(progress.partitions_blocked)]
        message = ready.message if ready else "the operator has not seen it yet"
        row += [*counts, f"{amount(rate)}/s" if rate else "", message] if wide else []
        made.add_row(*map(printable, row))
    return made


def age(obj: Object, now: datetime) -> str:
    """Return how long an object has been there, in one unit."""
    seconds = int((now - datetime.fromisoformat(obj["metadata"]["creationTimestamp"])).total_seconds())
    for unit, length, most in (("s", 1, 120), ("m", 60, 120), ("h", 3600, 48)):
        if seconds < most * length:
            return f"{max(seconds, 0) // length}{unit}"
    return f"{seconds // 86400}d"


def without_managers(obj: Object) -> Object:
    """Return an object as kubectl shows it."""
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
