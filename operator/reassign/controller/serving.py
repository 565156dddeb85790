"""Which KafkaClusters are served, and what their status says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from reassign.api.kafka_cluster import (
    MAX_FOREIGN,
    BrokerStatus,
    ForeignInFlight,
    ForeignPartition,
    KafkaCluster,
    KafkaClusterStatus,
    ReplicationFactorGuard,
    ThrottleStatus,
)
from reassign.controller.store import Store
from reassign.core.cluster import ClusterHold
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Broker, Snapshot
from reassign.core.moves.brake import foreign
from reassign.core.report.conditions import ConditionState, conditions
from reassign.errors import Reason, ReassignError


def hold_of(cluster: KafkaCluster, referring: Collection[str]) -> Problem | None:
    """Why this cluster is not served, given what refers to it; what is in flight on it goes on."""
    if not cluster.metadata.deletion_timestamp:
        return None
    if not referring:
        return Problem(Reason.CLUSTER_DELETED, "being deleted: it goes when its throttles are restored")
    names = ", ".join(sorted(referring)[:5])
    return Problem(
        Reason.CLUSTER_DELETED,
        f"being deleted: nothing new starts, and it goes when nothing refers to it any more; "
        f"delete the {len(referring)} resources that do ({names})",
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
    aspects = [ConditionState("Ready", True, "Connected", f"{len(snapshot.brokers)} brokers are registered")]
    for kind, problem in (("Paused", stance.pause), ("Stalled", stance.stuck)):
        if problem:
            aspects.append(ConditionState(kind, True, problem.reason, problem.message))
    return aspects


def unready_status(cluster: KafkaCluster, problem: Problem, now: datetime) -> KafkaClusterStatus:
    """The status of a cluster that cannot be used now: what was known of it stays."""
    standing = "Reconciling" if problem.reason is Reason.CONNECTING else "Stalled"
    aspects = [
        ConditionState("Ready", False, problem.reason, problem.message),
        ConditionState(standing, True, problem.reason, problem.message),
    ]
    return _judged(cluster, aspects, now)


def _judged(cluster: KafkaCluster, aspects: Sequence[ConditionState], now: datetime) -> KafkaClusterStatus:
    generation = cluster.metadata.generation
    return cluster.status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions(cluster.status.conditions, aspects, generation, now),
        }
    )
