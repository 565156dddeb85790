"""Two KafkaClusters for the same brokers: which one starts moves, and which one sets throttles.

Both have the same id pinned in their statuses, and the older one starts moves while it is Ready. So a KafkaCluster that
never does anything blocks no other one. Each believes the other's status: one that is Ready again starts nothing before
the younger one has said that it is a duplicate. One whose namespace cannot be read starts nothing and cannot say so:
`as_served` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from reassign.api.common import Condition, ConditionStatus
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_record import RecordedThrottles
from reassign.core.model.problem import Name, Names, Problem
from reassign.core.model.snapshot import Snapshot
from reassign.core.throttle.stage import left_to_restore
from reassign.errors import Reason

Throttles = Callable[[str], RecordedThrottles | None]
"""The record of the throttles of a KafkaCluster, by its uid."""
HANDOVER = timedelta(seconds=90)
"""How long a KafkaCluster that is not Ready any more may still have a request under way: brokers hold one that they
forward for up to 60 seconds. For as long one that is Ready again waits for a younger one to see that."""


def as_served(cluster: KafkaCluster, since: datetime, *, readable: bool) -> KafkaCluster:
    """Return a KafkaCluster as its status would be if it told since when its namespace is readable, or not.

    It is not Ready while its namespace is unreadable, and Ready again only since it can be read.
    """
    ready = _ready(cluster)
    if ready is None or ready.status is not ConditionStatus.TRUE:
        return cluster
    now: dict[str, object] = {"last_transition_time": max(ready.last_transition_time, since)}
    if not readable:
        now |= {"status": ConditionStatus.FALSE, "reason": Reason.NOT_AUTHORIZED}
    conditions = (c.model_copy(update=now) if c is ready else c for c in cluster.status.conditions)
    status = cluster.status.model_copy(update={"conditions": tuple(conditions)})
    return cluster.model_copy(update={"status": status})


def duplicate_of(
    cluster: KafkaCluster, cluster_id: str, others: Iterable[KafkaCluster], now: datetime
) -> Problem | None:
    """Return the problem of an older KafkaCluster that serves the same brokers, if any: only that one starts moves.

    One that is not Ready keeps nothing from being served: anyone who may make a KafkaCluster could block another one.
    """
    older = next((o for o in _same(cluster, cluster_id, others) if _age(o) < _age(cluster) and _serves(o, now)), None)
    if older is None:
        return None
    return Problem(
        Reason.DUPLICATE_CLUSTER,
        "the older KafkaCluster ",
        _name(older),
        f" stands for the same cluster {cluster_id}; refer to that one, from a new resource",
    )


def not_yet_seen(
    cluster: KafkaCluster, cluster_id: str, others: Iterable[KafkaCluster], now: datetime
) -> Problem | None:
    """Return the problem of a younger KafkaCluster that served the same brokers while this one was not Ready.

    The wait lasts until the younger one says that it starts nothing any more, and for `HANDOVER` at most: one that says
    nothing does not block this one.
    """
    ready = _ready(cluster)
    if ready and ready.status is ConditionStatus.TRUE and now - ready.last_transition_time >= HANDOVER:
        return None
    for other in _same(cluster, cluster_id, others):
        its = _ready(other)
        if _age(other) > _age(cluster) and its and its.status is ConditionStatus.TRUE:
            return Problem(
                Reason.CONNECTING, "the younger KafkaCluster ", _name(other), " is about to stop starting moves"
            )
    return None


def _serves(other: KafkaCluster, now: datetime) -> bool:
    """Whether a KafkaCluster starts moves, or was about to until just now."""
    ready = _ready(other)
    if ready is None or ready.status is ConditionStatus.TRUE:
        return ready is not None
    return ready.reason not in STARTS_NOTHING and now - ready.last_transition_time < HANDOVER


STARTS_NOTHING = frozenset(
    {Reason.CLUSTER_DELETED, Reason.RESTORING_THROTTLES, Reason.DUPLICATE_CLUSTER, Reason.CLUSTER_CLAIMED}
)
"""Why a KafkaCluster whose brokers are reached starts nothing new: it only ends what it has begun."""


def _ready(cluster: KafkaCluster) -> Condition | None:
    return next((c for c in cluster.status.conditions if c.type == "Ready"), None)


def younger_throttles(
    cluster: KafkaCluster, snapshot: Snapshot, others: Iterable[KafkaCluster], throttles: Throttles
) -> Problem | None:
    """Return why this one leaves the throttles alone: a younger KafkaCluster has set some on the same brokers.

    The younger one set them before it was known to be a duplicate. If both set rates, each would restore the other's.
    """
    those = _with_throttles(cluster, snapshot, others, throttles)
    return next((_throttled("younger", other) for other in those if _age(other) > _age(cluster)), None)


def older_throttles(
    cluster: KafkaCluster, snapshot: Snapshot, others: Iterable[KafkaCluster], throttles: Throttles
) -> Problem | None:
    """Return why this one sets no throttle: an older KafkaCluster that is not served any more restores some.

    If the older one cannot reach the brokers now, it waits, once it can, until this one has restored its own throttles.
    """
    those = _with_throttles(cluster, snapshot, others, throttles)
    those = (other for other in those if (ready := _ready(other)) and ready.reason in STARTS_NOTHING)
    return next((_throttled("older", other) for other in those if _age(other) < _age(cluster)), None)


def _with_throttles(
    cluster: KafkaCluster, snapshot: Snapshot, others: Iterable[KafkaCluster], throttles: Throttles
) -> Iterator[KafkaCluster]:
    same = _same(cluster, snapshot.cluster_id, others)
    return (other for other in same if left_to_restore(throttles(other.metadata.uid), snapshot.brokers))


def _throttled(which: str, other: KafkaCluster) -> Problem:
    return Problem(
        Reason.THROTTLE_NOT_SET,
        f"the {which} KafkaCluster ",
        _name(other),
        " has throttles on the same brokers and restores them when its moves have ended: nothing throttled begins "
        "before that; if they stay, its status says why",
    )


def _same(cluster: KafkaCluster, cluster_id: str, others: Iterable[KafkaCluster]) -> Iterator[KafkaCluster]:
    """Return the other KafkaClusters that stand for the same brokers."""
    return (o for o in others if o.metadata.uid != cluster.metadata.uid and o.status.cluster_id == cluster_id)


def _name(cluster: KafkaCluster) -> Names:
    """Return a KafkaCluster's name for those who may refer to it; the owner of another one is no exception."""
    meta, allowed = cluster.metadata, (one.name for one in cluster.spec.allowed_namespaces)
    name = Name(f"{meta.namespace}/{meta.name}", namespaces=frozenset({meta.namespace, *allowed}), elsewhere=True)
    return Names((name,), "of another namespace")


def _age(cluster: KafkaCluster) -> tuple[datetime, str]:
    assert cluster.metadata.creation_timestamp is not None
    return cluster.metadata.creation_timestamp, cluster.metadata.uid
