"""A live cluster with its configurations, as a snapshot that can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from reassign.api.kafka_cluster import KafkaCluster
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.problem import Problem
from reassign.core.survey import roles, survey
from reassign.errors import Reason
from reassign.files.tables import Config, Snapshot
from reassign.inspect.cluster import observe
from reassign.kafka.client import KafkaClient
from reassign.kafka.throttles import KEPT, Read
from reassign.text import listed


async def snapshot(client: KafkaClient, by: KafkaCluster | None) -> tuple[Snapshot, list[str]]:
    """Observe a cluster and read its configurations; also return what is left out, a sentence each.

    A topic or broker that is gone by the time its configurations are read has none. Raises as `observe` does.
    """
    taken_at = datetime.now(UTC)
    observed, notes = await observe(client, by.status.cluster_id if by else None)
    brokers = [
        ConfigResource(ConfigResourceType.BROKER, str(id))
        for id, broker in observed.brokers.items()
        if not broker.fenced
    ]
    topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in observed.topics]
    read = await client.configs([*brokers, *topics], KEPT)
    cluster = survey(observed)
    return Snapshot(cluster, taken_at, *roles(observed, cluster), _set(read)), notes + _left_out(read)


def _set(read: Read) -> tuple[Config, ...]:
    readable = ((resource, configs) for resource, configs in read.items() if isinstance(configs, Mapping))
    return tuple(sorted(Config(*resource, *one) for resource, configs in readable for one in configs.items()))


def _left_out(read: Read) -> list[str]:
    notes = []
    for kind, where in ((ConfigResourceType.BROKER, "the cluster"), (ConfigResourceType.TOPIC, "them")):
        problems = {r.name: problem for r, problem in read.items() if r.type is kind and isinstance(problem, Problem)}
        if problems:
            first = next(iter(problems.values()))
            why = first.message.rstrip(".")
            if first.reason is Reason.NOT_AUTHORIZED:
                why = f"grant DESCRIBE_CONFIGS on {where}"
            notes.append(f"the configurations of {kind}s are left out ({listed(problems)}): {why}")
    return notes
