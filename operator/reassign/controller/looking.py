"""A look at a live cluster from outside of the operator, by whoever changes nothing there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.connect import connection_of
from reassign.core.cluster import check_identity
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot
from reassign.core.survey import roles, survey
from reassign.errors import ApiServerError, MissingReferenceError, Reason, ReassignError
from reassign.files import snapshots
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kafka.throttles import KEPT, Read
from reassign.kube.client import Kind, KubeClient


async def reach(namespace: str, name: str) -> tuple[Connection, KafkaCluster]:
    """The way to a KafkaCluster's brokers; raises what says which resource or Secret is missing or wrong."""
    async with api_server() as kube:
        cluster = await kafka_cluster(kube, namespace, name)
        return await connection_of(cluster, kube), cluster


async def look(client: KafkaClient, by: KafkaCluster | None) -> tuple[Snapshot, list[str]]:
    """One look at everything that a cluster has, and what of it we may not see, a sentence each.

    A ClusterError when it is not the one that the KafkaCluster `by` stands for.
    """
    snapshot = await client.observe_everything()
    if by:
        check_identity(by, snapshot.cluster_id)
    if hidden := sorted(snapshot.unauthorized_topics):
        what = f"{len(hidden)} topics are left out ({hidden[0]} first): grant DESCRIBE and DESCRIBE_CONFIGS on them"
        return snapshot, [what]
    return snapshot, []


async def take(client: KafkaClient, by: KafkaCluster | None) -> tuple[snapshots.Snapshot, list[str]]:
    """A look with configurations, as it is kept; else as `look`. What is gone by the time it is asked for has none."""
    taken_at = datetime.now(UTC)
    snapshot, notes = await look(client, by)
    brokers = [
        ConfigResource(ConfigResourceType.BROKER, str(id))
        for id, broker in snapshot.brokers.items()
        if not broker.fenced
    ]
    topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in snapshot.topics]
    read = await client.configs([*brokers, *topics], KEPT)
    cluster = survey(snapshot)
    taken = snapshots.Snapshot(cluster, taken_at, *roles(snapshot, cluster), _set(read))
    return taken, notes + _left_out(read)


def _set(read: Read) -> tuple[snapshots.Config, ...]:
    found = ((resource, configs) for resource, configs in read.items() if isinstance(configs, Mapping))
    return tuple(sorted(snapshots.Config(*resource, *one) for resource, configs in found for one in configs.items()))


def _left_out(read: Read) -> list[str]:
    notes = []
    for kind, where in ((ConfigResourceType.BROKER, "the cluster"), (ConfigResourceType.TOPIC, "them")):
        problems = [(p, found) for p, found in read.items() if p.type is kind and isinstance(found, Problem)]
        if problems:
            resource, first = problems[0]
            why = first.message.rstrip(".")
            if first.reason is Reason.NOT_AUTHORIZED:
                why = f"grant DESCRIBE_CONFIGS on {where}"
            notes.append(f"the configurations of {len(problems)} {kind}s are left out ({resource.name} first): {why}")
    return notes


@asynccontextmanager
async def client_of(connection: Connection) -> AsyncIterator[KafkaClient]:
    """A client that cannot write: whatever is asked of it, nothing of the cluster is changed."""
    client = await KafkaClient.connect(connection, before_write=_refuse)
    try:
        yield client
    finally:
        await client.close()


def _refuse() -> None:
    raise AssertionError("who only looks changes nothing")


@asynccontextmanager
async def api_server() -> AsyncIterator[KubeClient]:
    """The API server that the user's kubeconfig names, or, in a pod without one, its own."""
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
            Reason.CLUSTER_NOT_FOUND, f"there is no KafkaCluster {name} in namespace {namespace}; name another one"
        )
    try:
        return KafkaCluster.parse(found)
    except ValidationError as error:
        raise ReassignError(Reason.CANNOT_BE_READ, f"the KafkaCluster {namespace}/{name}: {first_of(error)}") from None


def first_of(error: ValidationError) -> str:
    """The first thing that is wrong with an object."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg'].removeprefix('Value error, ')}; correct it"
