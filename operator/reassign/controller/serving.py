"""Which KafkaClusters are served, and what their status says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reassign.api.kafka_cluster import (
    MAX_FOREIGN,
    BrokerStatus,
    ForeignInFlight,
    ForeignPartition,
    KafkaCluster,
    KafkaClusterStatus,
    ReplicationFactorGuard,
)
from reassign.api.supported import unsupported_cluster
from reassign.controller.store import Store
from reassign.core.model import Problem, Snapshot
from reassign.core.report import Aspect, conditions
from reassign.core.resource import Resource, active
from reassign.errors import ClusterError, Reason


def hold_of(cluster: KafkaCluster, referring: Sequence[Resource]) -> Problem | None:
    """Why nothing new may start on this cluster, by its own spec."""
    if cluster.metadata.deletion_timestamp:
        names = ", ".join(sorted(r.name for r in referring)[:5])
        return Problem(
            Reason.CLUSTER_DELETED,
            f"being deleted: nothing new starts, and it goes when nothing refers to it any more; "
            f"delete the {len(referring)} PartitionReassignments that do ({names})",
        )
    sentence = unsupported_cluster(cluster.spec)
    return Problem(Reason.NOT_SUPPORTED_YET, sentence) if sentence else None


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
    for obj in store.clusters():
        try:
            other = KafkaCluster.parse(obj)
        except ValueError:
            continue  # of a schema that this version cannot read; it is not served either
        same = other.metadata.uid != cluster.metadata.uid and other.status.cluster_id == cluster_id
        if same and _age(other) < _age(cluster):
            name = f"{other.metadata.namespace}/{other.metadata.name}"
            return Problem(
                Reason.DUPLICATE_CLUSTER,
                f"the older KafkaCluster {name} stands for the same cluster {cluster_id}; use that one",
            )
    return None


def _age(cluster: KafkaCluster) -> tuple[datetime, str]:
    assert cluster.metadata.creation_timestamp is not None
    return cluster.metadata.creation_timestamp, cluster.metadata.uid


def cluster_status(
    cluster: KafkaCluster, snapshot: Snapshot, resources: Sequence[Resource], hold: Problem | None, now: datetime
) -> KafkaClusterStatus:
    """The status of a cluster that can be seen."""
    ours = {tp for r in resources for tp in active(r.record)}
    foreign = sorted(snapshot.reassignments.keys() - ours)
    ready = Aspect("Ready", True, "Connected", f"{len(snapshot.brokers)} brokers are registered")
    status = unready_status(cluster, hold, now) if hold else _judged(cluster, [ready], now)
    return status.model_copy(
        update={
            "cluster_id": snapshot.cluster_id,
            "brokers": tuple(
                BrokerStatus(id=b.id, rack=b.rack, fenced=b.fenced)
                for b in sorted(snapshot.brokers.values(), key=lambda b: b.id)
            ),
            "replication_factor_guard": ReplicationFactorGuard(snapshot.guard),
            "in_flight": len(ours & snapshot.reassignments.keys()),
            "foreign_in_flight": ForeignInFlight(
                count=len(foreign),
                partitions=tuple(
                    ForeignPartition(
                        topic=tp.topic,
                        partition=tp.partition,
                        adding_replicas=snapshot.reassignments[tp].adding,
                        removing_replicas=snapshot.reassignments[tp].removing,
                    )
                    for tp in foreign[:MAX_FOREIGN]
                ),
            ),
        }
    )


def unready_status(cluster: KafkaCluster, problem: Problem, now: datetime) -> KafkaClusterStatus:
    """The status of a cluster that cannot be used now: what was known of it stays."""
    standing = "Reconciling" if problem.reason is Reason.CONNECTING else "Stalled"
    aspects = [
        Aspect("Ready", False, problem.reason, problem.message),
        Aspect(standing, True, problem.reason, problem.message),
    ]
    return _judged(cluster, aspects, now)


def _judged(cluster: KafkaCluster, aspects: Sequence[Aspect], now: datetime) -> KafkaClusterStatus:
    generation = cluster.metadata.generation
    return cluster.status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": conditions(cluster.status.conditions, aspects, generation, now),
        }
    )
