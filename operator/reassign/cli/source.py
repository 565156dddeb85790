"""Where a cluster is looked at: a KafkaCluster read with the user's kubeconfig, or plain bootstrap servers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

import typer
from kubernetes.aio.config import list_kube_config_contexts
from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterSpec
from reassign.cli import output as out
from reassign.controller import looking
from reassign.core.model.snapshot import Snapshot
from reassign.core.survey import survey
from reassign.errors import Reason, ReassignError
from reassign.files import snapshots
from reassign.kafka.connection import Connection
from reassign.planning.problem.model import Cluster

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Where(NamedTuple):
    """A KafkaCluster by name and namespace (None: the one of the kubeconfig's context), bootstrap servers, or a folder
    with a snapshot; beside that, `cluster` is only what manifests refer to."""

    cluster: str | None
    namespace: str | None
    bootstrap_servers: str | None
    snapshot: Path | None = None


class Seen(NamedTuple):
    """A cluster, and the KafkaCluster by which it was looked at."""

    cluster: Cluster
    by: KafkaCluster | None = None


def where_of(
    cluster: str | None, namespace: str | None, bootstrap_servers: str | None, snapshot: Path | None = None
) -> Where:
    """What the options say; a usage error where one of them would not count."""
    if bootstrap_servers is not None and (cluster or snapshot):
        other = "--cluster" if cluster else "--snapshot"
        raise typer.BadParameter(
            f"it is another cluster than {other} names: give one", param_hint="'--bootstrap-server'"
        )
    return Where(cluster, namespace, bootstrap_servers, snapshot)


async def look(where: Where) -> tuple[Snapshot, KafkaCluster | None]:
    """One look at everything that the cluster has."""
    connection, cluster = await _reach(where)
    async with looking.client_of(connection) as client:
        snapshot, notes = await looking.look(client, cluster)
    _say(notes)
    return snapshot, cluster


async def take(where: Where) -> snapshots.Snapshot:
    """The same with what a snapshot keeps beside."""
    connection, cluster = await _reach(where)
    async with looking.client_of(connection) as client:
        taken, notes = await looking.take(client, cluster)
    _say(notes)
    return taken


def _say(notes: list[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def seen(where: Where) -> Seen:
    """The cluster as it is, or as it was when a snapshot was taken."""
    if where.snapshot is not None:
        return Seen(snapshots.read(where.snapshot).cluster)
    snapshot, by = asyncio.run(look(where))
    return Seen(survey(snapshot), by)


def keep(where: Where, to: Path, name: str | None = None) -> None:
    """Take a snapshot, and say what is in it: into a folder, or, with a name for the cluster, to its place below `to`,
    where it replaces an earlier one of that day."""
    with out.progress("looking at the cluster", "writing") as next_step:
        taken = asyncio.run(take(where))
        next_step()
        folder = snapshots.place(to, name, taken.taken_at) if name else to
        snapshots.write(folder, taken, replace=name is not None)
    cluster = taken.cluster
    unknown = int((cluster.sizes < 0).sum())
    what = f"{len(cluster.brokers)} brokers, {len(cluster.topics)} topics, {len(cluster.partition)} partitions"
    out.write(f"{folder}: {what}{f', {unknown} of them of unknown size' if unknown else ''}\n")


async def _reach(where: Where) -> tuple[Connection, KafkaCluster | None]:
    """The way to a cluster; raises what says which resource or Secret is missing or wrong."""
    if where.bootstrap_servers is not None:
        return Connection(plain(where.bootstrap_servers).bootstrap_servers), None
    if where.cluster is None:
        raise ReassignError(
            Reason.CLUSTER_NOT_FOUND, "no cluster is named; use --cluster, or --bootstrap-server for one without TLS"
        )
    return await looking.reach(namespace_or_default(where.namespace), where.cluster)


def plain(bootstrap_servers: str) -> KafkaClusterSpec:
    """What a KafkaCluster would say that has brokers and nothing else."""
    try:
        return KafkaClusterSpec(bootstrap_servers=bootstrap_servers)
    except ValidationError:
        message = f"{bootstrap_servers!r} is not host:port, or several with commas between"
        raise typer.BadParameter(message, param_hint="'--bootstrap-server'") from None


def namespace_or_default(namespace: str | None) -> str:
    """As kubectl: the namespace of the kubeconfig's context where none is named, or that of the pod."""
    if namespace:
        return namespace
    try:
        _, current = list_kube_config_contexts(os.environ.get("KUBECONFIG"))  # type: ignore[no-untyped-call]
        return str(current["context"].get("namespace") or "default")
    except Exception:  # the library raises anything; who needs the API server is told so
        return POD_NAMESPACE.read_text() if POD_NAMESPACE.is_file() else "default"
