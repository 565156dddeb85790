"""What a KafkaCluster says: which brokers it stands for, who may move what, and how it is served."""

from __future__ import annotations

from dataclasses import dataclass

from reassign.api.kafka_cluster import Execution, KafkaCluster, PacingStatus
from reassign.core.model.permission import Permission
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.errors import ClusterError, Reason


def check_identity(cluster: KafkaCluster, cluster_id: str) -> None:
    """Raises ClusterError when the brokers are those of another cluster than at first."""
    pinned = cluster.status.cluster_id
    if pinned and pinned != cluster_id:
        raise ClusterError(
            Reason.CLUSTER_ID_CHANGED,
            f"the brokers are of cluster {cluster_id}, but this KafkaCluster stands for {pinned}; "
            "correct bootstrapServers, or make another KafkaCluster for the other cluster",
        )


def permission_of(cluster: KafkaCluster) -> Permission:
    """Who may move what: its own namespace everything, others what spec.allowedNamespaces says."""
    others = {allowed.name: allowed.topics for allowed in cluster.spec.allowed_namespaces}
    return Permission(others | {cluster.metadata.namespace: ("*",)})


@dataclass(frozen=True, slots=True)
class ClusterHold:
    """How a cluster is served now: not at all (`hold`), without new moves (`pause`), not as it asks (`stuck`), or with
    fewer moves at once than it allows (`pacing`)."""

    hold: Problem | None = None
    pause: Problem | None = None
    stuck: Problem | None = None
    pacing: PacingStatus | None = None


def policy_of(cluster: KafkaCluster, stance: ClusterHold) -> Policy:
    """What the cluster says to its resources now."""
    undo = cluster.spec.execution in (Execution.CANCEL_OURS, Execution.CANCEL_ALL)
    limits = cluster.spec.limits
    if stance.pacing:
        limits = limits.model_copy(update={"partitions_in_flight": stance.pacing.partitions_in_flight})
    default = cluster.spec.throttle and cluster.spec.throttle.inter_broker
    return Policy(limits, stance.hold or stance.pause, undo, permission_of(cluster), default is not None)
