"""A live cluster, read and never changed: by the command line, by the process that plans, and by Spark's executors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster
from reassign.core.cluster import check_identity
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot
from reassign.errors import MissingReferenceError, Reason, ReassignError
from reassign.inspect.connect import connection_of
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kube.client import Kind, KubeClient
from reassign.kube.login import DEFAULT_LOGIN, Login
from reassign.text import first_error, listed

CONNECT_SECONDS = 10.0


async def resolve(namespace: str, name: str, login: Login = DEFAULT_LOGIN) -> tuple[Connection, KafkaCluster]:
    """Return a KafkaCluster and the connection to its brokers; raises for a resource or Secret that is missing."""
    async with api_server(login) as kube:
        cluster = await kafka_cluster(kube, namespace, name)
        return await connection_of(cluster, kube), cluster


async def observe(client: KafkaClient, pinned: str | None) -> tuple[Snapshot, list[str]]:
    """Observe a whole cluster; also return why topics could not be read that the Kafka user may see, a sentence each.

    Raises ClusterError when the brokers are of another cluster than the `pinned` one, if one is.
    """
    snapshot = await client.observe_everything()
    check_identity(pinned, snapshot.cluster_id)
    unread: dict[Reason, dict[str, Problem]] = {}
    for topic, problem in sorted(snapshot.unread_topics.items()):
        if problem.reason is not Reason.NOT_AUTHORIZED:
            unread.setdefault(problem.reason, {})[topic] = problem
    return snapshot, [
        f"topics are left out ({listed(problems)}): {next(iter(problems.values())).message}"
        for problems in unread.values()
    ]


@asynccontextmanager
async def read_only(connection: Connection, seconds: float = CONNECT_SECONDS) -> AsyncIterator[KafkaClient]:
    """Connect within this time, with a client that refuses every write."""
    client = await KafkaClient.connect(connection, timeout=seconds, before_write=_refuse)
    try:
        yield client
    finally:
        await client.close()


def _refuse() -> None:
    raise AssertionError("a read-only client cannot write")


@asynccontextmanager
async def api_server(login: Login = DEFAULT_LOGIN) -> AsyncIterator[KubeClient]:
    """Connect to the API server that the user's kubeconfig names, or, in a pod without one, to its own."""
    async with KubeClient(login=login) as kube:
        yield kube


async def kafka_cluster(kube: KubeClient, namespace: str, name: str) -> KafkaCluster:
    """Read a KafkaCluster."""
    obj = await kube.get(Kind.KAFKA_CLUSTER, namespace, name)
    if obj is None:
        raise await missing(kube, namespace, name, [Kind.KAFKA_CLUSTER], Reason.CLUSTER_NOT_FOUND)
    try:
        return KafkaCluster.parse(obj)
    except ValidationError as error:
        raise ReassignError(
            Reason.CANNOT_BE_READ, f"the KafkaCluster {namespace}/{name}: {first_error(error)}; correct it"
        ) from None


async def missing(
    kube: KubeClient, namespace: str, name: str, kinds: Sequence[Kind], reason: Reason = Reason.NOTHING_SELECTED
) -> ReassignError:
    """Return the error for an object that is not there; it names the others, where the user may list them."""
    try:
        names = [name for kind in kinds for name in await kube.names(kind, namespace)]
    except ReassignError as error:
        if error.reason is not Reason.NOT_AUTHORIZED:
            return error
        names = []
    what = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    return not_there(what, name, f"in namespace {namespace}", names, reason)


def not_there(
    what: str, name: str | None, where: str, names: Sequence[str], reason: Reason = Reason.NOTHING_SELECTED
) -> MissingReferenceError:
    """Return the error for a name that no object has, or, without a name, for objects that are not there."""
    there = f"there are: {listed(names)}" if names else "name another one, or another namespace"
    return MissingReferenceError(reason, f"there is no {what}{f' {name}' if name else ''} {where}; {there}")
