"""Which cluster a command observes: a KafkaCluster, read with the user's kubeconfig; bootstrap servers; a folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import typer
from pydantic import ValidationError

from reassign.api.kafka_cluster import NO_PORT, KafkaCluster, KafkaClusterSpec
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.refs import Kube
from reassign.core.model.snapshot import Snapshot
from reassign.core.survey import survey
from reassign.errors import Reason, ReassignError
from reassign.files import snapshots
from reassign.files import tables as snapshot_tables
from reassign.inspect import cluster as live
from reassign.inspect.snapshot import snapshot
from reassign.kafka.connection import Connection
from reassign.planning.problem.model import Cluster
from reassign.planning.unseen import unseen_notes
from reassign.text import counted


class Where(NamedTuple):
    """A KafkaCluster by name, bootstrap servers, or a folder with a snapshot."""

    cluster: str | None
    """The KafkaCluster; beside a folder only the one that manifests name."""
    kube: Kube
    bootstrap_servers: str | None
    snapshot: Path | None = None


class Observed(NamedTuple):
    """A cluster, and the KafkaCluster that it was observed by."""

    cluster: Cluster
    by: KafkaCluster | None = None


def where_of(
    cluster: str | None, kube: Kube, bootstrap_servers: list[str] | None, snapshot: Path | None = None
) -> Where:
    """Return what the options name; raises a usage error where one of them would have no effect."""
    if bootstrap_servers is not None and (cluster or snapshot):
        other = "--cluster" if cluster else "--snapshot"
        raise typer.BadParameter(
            f"it is another cluster than {other} names: give one", param_hint="'--bootstrap-server'"
        )
    return Where(cluster, kube, None if bootstrap_servers is None else ",".join(bootstrap_servers), snapshot)


async def observe_live(where: Where) -> tuple[Snapshot, KafkaCluster | None]:
    """Observe a whole live cluster."""
    connection, by = await _connection(where)
    async with live.read_only(connection) as client:
        observed, notes = await live.observe(client, by.status.cluster_id if by else None)
    print_notes(notes)
    return observed, by


async def take(where: Where) -> snapshot_tables.Snapshot:
    """Take a snapshot of a live cluster."""
    connection, by = await _connection(where)
    async with live.read_only(connection) as client:
        taken, notes = await snapshot(client, by)
    print_notes(notes)
    return taken


def print_notes(notes: Iterable[str]) -> None:
    """Say what a reader should know of what was observed, a line each."""
    for note in notes:
        out.say(f"note: {note}")


def observe(where: Where) -> Observed:
    """Return the cluster as it is, or as it was when a snapshot was taken."""
    if where.snapshot is not None:
        return Observed(snapshots.read(where.snapshot).cluster)
    observed, by = asyncio.run(observe_live(where))
    return Observed(survey(observed), by)


def keep(where: Where, to: Path, name: str | None = None) -> None:
    """Write a snapshot into a folder, and print its size.

    With a name for the cluster it goes to its place below `to`, where it replaces an earlier one of that day.
    """
    with out.progress("observing the cluster", "writing") as next_step:
        taken = asyncio.run(take(where))
        print_notes(unseen_notes(taken.cluster.unseen))
        next_step()
        folder = snapshots.place(to, name, taken.taken_at) if name else to
        snapshots.write(folder, taken, replace=name is not None)
    cluster = taken.cluster
    unknown = int((cluster.sizes < 0).sum())
    what = f"{counted(len(cluster.brokers), 'broker')}, {counted(len(cluster.topics), 'topic')}, "
    what += counted(len(cluster.partition), "partition")
    out.write(f"{folder}: {what}{f', {unknown} of them of unknown size' if unknown else ''}\n")


async def _connection(where: Where) -> tuple[Connection, KafkaCluster | None]:
    """Return the connection to a cluster; raises for a resource or Secret that is missing or wrong."""
    if where.bootstrap_servers is not None:
        return Connection(plain(where.bootstrap_servers).bootstrap_servers), None
    if where.cluster is None:
        raise ReassignError(
            Reason.CLUSTER_NOT_FOUND, "no cluster is named; use --cluster, or --bootstrap-server for one without TLS"
        )
    return await live.resolve(namespace_of(where.kube), where.cluster, where.kube.login)


def plain(bootstrap_servers: str) -> KafkaClusterSpec:
    """Return the spec of a KafkaCluster that has brokers and nothing else."""
    try:
        spec = KafkaClusterSpec(bootstrap_servers=bootstrap_servers)
    except ValidationError:
        message = f"{bootstrap_servers!r} is not host:port, or several with commas between"
        raise typer.BadParameter(message, param_hint="'--bootstrap-server'") from None
    if re.search(NO_PORT, bootstrap_servers):
        message = f"{bootstrap_servers!r} has a number that is no port: ports are from 1 to 65535"
        raise typer.BadParameter(message, param_hint="'--bootstrap-server'")
    return spec
