"""Where a cluster is looked at: a KafkaCluster read with the user's kubeconfig, or plain bootstrap servers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import typer
from kubernetes.aio.config import list_kube_config_contexts
from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterSpec
from reassign.cli import output as out
from reassign.controller.connect import connection_of
from reassign.controller.serving import check_identity
from reassign.core.model import Snapshot
from reassign.core.survey import survey
from reassign.errors import ApiServerError, MissingReferenceError, Reason, ReassignError
from reassign.files import snapshots
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import Kind, KubeClient
from reassign.planning.model import Cluster


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
    async with client_of(connection) as client:
        snapshot = await client.observe_everything()
    if cluster:
        check_identity(cluster, snapshot.cluster_id)
    if hidden := sorted(snapshot.unauthorized_topics):
        what = f"{len(hidden)} topics are left out ({hidden[0]} first): grant DESCRIBE and DESCRIBE_CONFIGS on them"
        typer.echo(f"note: {what}", err=True)
    return snapshot, cluster


def seen(where: Where) -> Seen:
    """The cluster as it is, or as it was when a snapshot was taken."""
    if where.snapshot is not None:
        return Seen(snapshots.read(where.snapshot).cluster)
    snapshot, by = asyncio.run(look(where))
    return Seen(survey(snapshot), by)


def keep(folder: Path, where: Where) -> None:
    """Take a snapshot into a folder, and say what is in it."""
    taken_at = datetime.now(UTC)
    with out.progress("looking at the cluster", "writing") as next_step:
        cluster = seen(where).cluster
        next_step()
        snapshots.write(folder, snapshots.in_sync(cluster, taken_at))
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
    async with api_server() as kube:
        cluster = await kafka_cluster(kube, namespace_or_default(where.namespace), where.cluster)
        return await connection_of(cluster, kube), cluster


def plain(bootstrap_servers: str) -> KafkaClusterSpec:
    """What a KafkaCluster would say that has brokers and nothing else."""
    try:
        return KafkaClusterSpec(bootstrap_servers=bootstrap_servers)
    except ValidationError:
        message = f"{bootstrap_servers!r} is not host:port, or several with commas between"
        raise typer.BadParameter(message, param_hint="'--bootstrap-server'") from None


@asynccontextmanager
async def client_of(connection: Connection) -> AsyncIterator[KafkaClient]:
    """A client that cannot write: whatever is asked of it, nothing of the cluster is changed."""
    client = await KafkaClient.connect(connection, before_write=_refuse)
    try:
        yield client
    finally:
        await client.close()


def _refuse() -> None:
    raise AssertionError("the command line changes nothing")


@asynccontextmanager
async def api_server() -> AsyncIterator[KubeClient]:
    """The API server that the user's kubeconfig names."""
    kube = KubeClient()
    try:
        await kube.__aenter__()
    except Exception as error:  # the library raises anything for a kubeconfig that is not one
        why = str(error).partition("\n")[0] or type(error).__name__
        raise ApiServerError(
            f"the kubeconfig cannot be used ({why}); set KUBECONFIG, or see `kubectl config`"
        ) from None
    try:
        yield kube
    finally:
        await kube.__aexit__(None, None, None)


async def kafka_cluster(kube: KubeClient, namespace: str, name: str) -> KafkaCluster:
    """A KafkaCluster as it is now."""
    found = await kube.get(Kind.KAFKA_CLUSTER, namespace, name)
    if found is None:
        raise MissingReferenceError(
            Reason.CLUSTER_NOT_FOUND, f"there is no KafkaCluster {name} in namespace {namespace}; see --namespace"
        )
    try:
        return KafkaCluster.parse(found)
    except ValidationError as error:
        raise ReassignError(Reason.CANNOT_BE_READ, f"the KafkaCluster {namespace}/{name}: {first_of(error)}") from None


def namespace_or_default(namespace: str | None) -> str:
    """As kubectl: the namespace of the kubeconfig's context where none is named."""
    if namespace:
        return namespace
    try:
        _, current = list_kube_config_contexts(os.environ.get("KUBECONFIG"))  # type: ignore[no-untyped-call]
        return str(current["context"].get("namespace") or "default")
    except Exception:  # likewise; who needs the API server is told so
        return "default"


def first_of(error: ValidationError) -> str:
    """The first thing that is wrong with an object."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg'].removeprefix('Value error, ')}; correct it"
