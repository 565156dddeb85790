"""The command `list`: what moves partitions or makes plans, or what is in flight as the stock tool's JSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

import typer
from rich.table import Table

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import OWNERS, Item, list_each, of_cluster
from reassign.cli.options import ListOutput
from reassign.cli.refs import Kube, several
from reassign.core.brake import TargetReplicas, documents
from reassign.core.cluster import check_identity
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind, KubeClient, Object
from reassign.text import amount, listed, printable

LISTED = (Kind.PARTITION_REASSIGNMENT, *OWNERS)
NO_OBJECT = f"no {', '.join(LISTED[:-1])} or {LISTED[-1]}"
NO_OBJECTS = f"no {', '.join(map(several, LISTED[:-1]))} or {several(LISTED[-1])}"
STATE = ("NAME", "CLUSTER", "READY", "REASON")
NOTHING = '{"version":1,"partitions":[]}\n'


def run(kube: Kube, all_namespaces: bool, cluster: str | None, output: ListOutput) -> None:
    """Write the objects of a namespace or of all, or what a cluster has in flight."""
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
            none = f"{NO_OBJECT} in {where} refers to the KafkaCluster {cluster}"
            out.say(none if cluster else f"there are {NO_OBJECTS} in {where}")
            return
        shown = (now, all_namespaces, output is ListOutput.WIDE)
        of = {kind: [item for item in items if item.kind is kind] for kind in TABLES}
        out.write_tables(TABLES[kind](found, *shown) for kind, found in of.items() if found)


async def _read(kube: Kube, namespace: str | None, cluster: str | None) -> tuple[list[Item], datetime]:
    async with live.api_server(kube.login) as server:
        items = of_cluster(await list_each(server, LISTED, namespace), cluster)
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
        where += f", and {NO_OBJECT} refers to one"
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
    more = ["IN FLIGHT", "BLOCKED", "RATE", "MESSAGE"] if wide else []
    made = out.table(*(["NAMESPACE"] if with_namespace else []), *STATE, "PROGRESS", "AGE", *more)
    for item in items:
        row = [*_state(item, with_namespace), item.status.summary or "", age(item.obj, now)]
        rate, progress = item.progress.bytes_per_second, item.progress
        counts = [str(progress.partitions_in_flight), str(progress.partitions_blocked)]
        row += [*counts, f"{amount(rate)}/s" if rate else "", _message(item)] if wide else []
        made.add_row(*map(printable, row))
    return made


def decommissions(items: Sequence[Item], now: datetime, with_namespace: bool = False, wide: bool = False) -> Table:
    """Return a row for each BrokerDecommission; the replicas left are empty where they are not known."""
    more = ["CORDONED", "MESSAGE"] if wide else []
    columns = (*STATE, "BROKERS", "LEFT", "PROGRESS", "AGE", *more)
    made = out.table(*(["NAMESPACE"] if with_namespace else []), *columns, numbers=("LEFT",))
    for item in items:
        status = item.status
        assert isinstance(status, BrokerDecommissionStatus)
        left = "" if status.replicas_left is None else str(status.replicas_left)
        row = [*_state(item, with_namespace), listed(item.spec["brokers"], most=10, separator=","), left]
        row += [status.summary or "", age(item.obj, now)]
        cordoned = item.condition("Cordoned")
        row += [cordoned.status.value if cordoned else "", _message(item)] if wide else []
        made.add_row(*map(printable, row))
    return made


def policies(items: Sequence[Item], now: datetime, with_namespace: bool = False, wide: bool = False) -> Table:
    """Return a row for each ReassignmentPolicy, with columns as kubectl has them."""
    more = ["TRIGGER", "MESSAGE"] if wide else []
    made = out.table(*(["NAMESPACE"] if with_namespace else []), *STATE, "PLAN", "NEXT", "AGE", *more)
    for item in items:
        status = item.status
        assert isinstance(status, ReassignmentPolicyStatus)
        plan, next = status.plan, status.next_schedule_time
        row = [*_state(item, with_namespace), plan.name if plan else "", f"{next:%Y-%m-%dT%H:%M:%SZ}" if next else ""]
        row += [age(item.obj, now), *([plan.trigger if plan else "", _message(item)] if wide else [])]
        made.add_row(*map(printable, row))
    return made


TABLES: dict[Kind, Callable[[Sequence[Item], datetime, bool, bool], Table]] = {
    Kind.PARTITION_REASSIGNMENT: table,
    Kind.BROKER_DECOMMISSION: decommissions,
    Kind.REASSIGNMENT_POLICY: policies,
}
"""How objects of each kind are shown, in the order of the tables."""


def _state(item: Item, with_namespace: bool) -> list[str]:
    ready = item.ready
    state = [ready.status.value, ready.reason] if ready else ["Unknown", "Pending"]
    return [*([item.namespace] if with_namespace else []), item.name, item.cluster[1], *state]


def _message(item: Item) -> str:
    return item.ready.message if item.ready else "the operator has not seen it yet"


def age(obj: Object, now: datetime) -> str:
    """Return how long an object has been there, in one unit."""
    return since(datetime.fromisoformat(obj["metadata"]["creationTimestamp"]), now)


def since(time: datetime, now: datetime) -> str:
    """Return how long ago a time was, in one unit."""
    seconds = int((now - time).total_seconds())
    for unit, length, most in (("s", 1, 120), ("m", 60, 120), ("h", 3600, 48)):
        if seconds < most * length:
            return f"{max(seconds, 0) // length}{unit}"
    return f"{seconds // 86400}d"


def without_managers(obj: Object) -> Object:
    """Return an object as kubectl shows it."""
    return obj | {"metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
