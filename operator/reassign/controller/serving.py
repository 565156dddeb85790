"""Which KafkaClusters are served, and what their status says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reassign.api.kafka_cluster import (
    MAX_FOREIGN,
    BrokerStatus,
    Execution,
    ForeignInFlight,
    ForeignPartition,
    KafkaCluster,
    KafkaClusterStatus,
    PacingStatus,
    ReplicationFactorGuard,
    ThrottleStatus,
)
from reassign.controller.store import ClusterKey, Store, has_finalizer
from reassign.core.model.permission import Permission
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, Snapshot
from reassign.core.moves.brake import foreign
from reassign.core.plans.model import Plan
from reassign.core.report.conditions import ConditionState, conditions, unready
from reassign.errors import ClusterError, Reason, ReassignError


def unsettled_on(key: ClusterKey, resources: Iterable[Resource], store: Store) -> list[str]:
    """What keeps a KafkaCluster from being deleted: what has something in flight, or may come to. The waves of a plan
    that has not begun do not; what cannot be read may."""
    moving = [f"{r.namespace}/{r.name}" for r in resources if not (r.settled or _holds_nothing(r))]
    unread = [
        u for u in store.unreadable(key) if has_finalizer(u.obj) or "completionTime" not in u.obj.get("status", {})
    ]
    plans = [p for p in store.plans(key) if (p.under_way if isinstance(p, Plan) else has_finalizer(p.obj))]
    return moving + [f"{other.namespace}/{other.name}" for other in (*unread, *plans)]


def _holds_nothing(resource: Resource) -> bool:
    """Whether it is a dry run, or a wave that waits for its plan."""
    waits = resource.dry_run or (resource.plan is not None and resource.asleep)
    return waits and not active(resource.record)


def hold_of(cluster: KafkaCluster, unsettled: Collection[str]) -> Problem | None:
    """Why this cluster is not served, given what is not settled on it; what is in flight goes on."""
    if not cluster.metadata.deletion_timestamp:
        return None
    if not unsettled:
        return Problem(Reason.RESTORING_THROTTLES, "being deleted: it goes when its throttles are restored")
    names = ", ".join(sorted(unsettled)[:5])
    return Problem(
        Reason.CLUSTER_DELETED,
        f"being deleted: nothing new starts, and it goes when everything that refers to it is settled; "
        f"delete the {len(unsettled)} resources that are not ({names})",
    )


def check_identity(cluster: KafkaCluster, cluster_id: str) -> None:
    """Raises ClusterError when the brokers are those of another cluster than at first."""
    pinned = cluster.status.cluster_id
    if pinned and pinned != cluster_id:
        raise ClusterError(
            Reason.CLUSTER_ID_CHANGED,
            f"the brokers are of cluster {cluster_id}, but this KafkaCluster stands for {pinned}; "
            "correct bootstrapServers, or make another KafkaCluster for the other cluster",
        )


def duplicate_of(cluster: KafkaCluster, cluster_id: str, store: Store) -> Problem | None:
    """The older KafkaCluster that stands for the same brokers, if any: only that one is served."""
    older = next((other for other in _same(cluster, cluster_id, store) if _age(other) < _age(cluster)), None)
    if older is None:
        return None
    return Problem(
        Reason.DUPLICATE_CLUSTER,
        f"the older KafkaCluster {_name(older)} stands for the same cluster {cluster_id}; use that one",
    )


def younger_throttles(cluster: KafkaCluster, snapshot: Snapshot, store: Store) -> Problem | None:
    """Why this one leaves the throttles alone: a younger KafkaCluster for the same brokers has set some, before it was
    known to be a duplicate. Were both to set rates, each would restore the other's."""
    for other in _same(cluster, snapshot.cluster_id, store):
        if _age(other) > _age(cluster) and left_to_restore(other.status.throttle, snapshot.brokers):
            return Problem(
                Reason.THROTTLE_NOT_SET,
                f"the younger KafkaCluster {_name(other)} has throttles on the same brokers and restores them when its "
                "moves are over: nothing throttled begins before that; if they stay, its status says why",
            )
    return None


def left_to_restore(record: ThrottleStatus | None, brokers: Mapping[int, Broker]) -> bool:
    """Whether a record has something to restore; on brokers that are no longer registered it cannot be."""
    return record is not None and bool(record.topics or any(b.broker in brokers for b in record.brokers))


def _same(cluster: KafkaCluster, cluster_id: str, store: Store) -> Iterator[KafkaCluster]:
    """The other KafkaClusters that stand for the same brokers."""
    for obj in store.clusters():
        try:
            other = store.parse_cluster(obj)
        except ReassignError:
            continue  # it cannot be read, and is not served either
        if other.metadata.uid != cluster.metadata.uid and other.status.cluster_id == cluster_id:
            yield other


def _name(cluster: KafkaCluster) -> str:
    return f"{cluster.metadata.namespace}/{cluster.metadata.name}"


def _age(cluster: KafkaCluster) -> tuple[datetime, str]:
    assert cluster.metadata.creation_timestamp is not None
    return cluster.metadata.creation_timestamp, cluster.metadata.uid


def permission_of(cluster: KafkaCluster) -> Permission:
    """Who may move what: its own namespace everything, others what spec.allowedNamespaces says."""
    others = {allowed.name: allowed.topics for allowed in cluster.spec.allowed_namespaces}
    return Permission(others | {cluster.metadata.namespace: ("*",)})


def policy_of(cluster: KafkaCluster, stance: ClusterHold) -> Policy:
    """What the cluster says to its resources now."""
    undo = cluster.spec.execution in (Execution.CANCEL_OURS, Execution.CANCEL_ALL)
    limits = cluster.spec.limits
    if stance.pacing:
        limits = limits.model_copy(update={"partitions_in_flight": stance.pacing.partitions_in_flight})
    default = cluster.spec.throttle and cluster.spec.throttle.inter_broker
    return Policy(limits, stance.hold or stance.pause, undo, permission_of(cluster), default is not None)


@dataclass(frozen=True, slots=True)
class ClusterHold:
    """How a cluster is served now: not at all (`hold`), without new moves (`pause`), not as it asks (`stuck`), or with
    fewer moves at once than it allows (`pacing`)."""

    hold: Problem | None = None
    pause: Problem | None = None
    stuck: Problem | None = None
    pacing: PacingStatus | None = None


def cluster_status(
    cluster: KafkaCluster, snapshot: Snapshot, resources: Sequence[Resource], stance: ClusterHold, now: datetime
) -> KafkaClusterStatus:
    """The status of a cluster that can be seen."""
    others = foreign(resources, snapshot)
    status = (
        unready_status(cluster, stance.hold, now) if stance.hold else _judged(cluster, _serving(snapshot, stance), now)
    )
    return status.model_copy(
        update={
            "cluster_id": snapshot.cluster_id,
            "brokers": tuple(
                BrokerStatus(id=b.id, rack=b.rack, fenced=b.fenced)
                for b in sorted(snapshot.brokers.values(), key=lambda b: b.id)
            ),
            "replication_factor_guard": ReplicationFactorGuard(snapshot.guard),
            "pacing": stance.pacing,
            "in_flight": len(snapshot.reassignments) - len(others),
            "foreign_in_flight": ForeignInFlight(
                count=len(others),
                partitions=tuple(
                    ForeignPartition(
                        topic=tp.topic,
                        partition=tp.partition,
                        adding_replicas=snapshot.reassignments[tp].adding,
                        removing_replicas=snapshot.reassignments[tp].removing,
                    )
                    for tp in others[:MAX_FOREIGN]
                ),
            ),
        }
    )


def _serving(snapshot: Snapshot, stance: ClusterHold) -> list[ConditionState]:
    states = [ConditionState("Ready", True, "Connected", f"{len(snapshot.brokers)} brokers are registered")]
    for kind, problem in (("Paused", stance.pause), ("Stalled", stance.stuck)):
        if problem:
            states.append(ConditionState(kind, True, problem.reason, problem.message))
    return states


def unready_status(cluster: KafkaCluster, problem: Problem, now: datetime) -> KafkaClusterStatus:
    """The status of a cluster that cannot be used now: what was known of it stays."""
    return _judged(cluster, unready(problem.reason, problem.message), now)


def _judged(cluster: KafkaCluster, states: Sequence[ConditionState], now: datetime) -> KafkaClusterStatus:
    generation = cluster.metadata.generation
    return cluster.status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions(cluster.status.conditions, states, generation, now),
        }
    )
