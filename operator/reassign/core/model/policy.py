"""What a KafkaCluster says to all of its resources."""

from __future__ import annotations

from dataclasses import dataclass

from reassign.api.kafka_cluster import Limits
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition


@dataclass(frozen=True, slots=True)
class Policy:
    """What the KafkaCluster says to all of its resources; `hold` is why nothing new may start on it, if so.

    With `undo`, whatever is in flight is brought back. Without a `permission`, everybody may move everything.
    `throttled` is whether moves are throttled that do not say at what rate.
    """

    limits: Limits
    hold: Problem | None = None
    undo: bool = False
    permission: Permission | None = None
    throttled: bool = False

    def forbids(self, resource: Resource, tp: TopicPartition) -> Problem | None:
        """Why the resource's namespace may not move a partition, or None."""
        return self.permission.of_topic(resource.namespace, tp.topic) if self.permission else None

    def throttles(self, resource: Resource) -> bool:
        """Whether the resource's moves between brokers are throttled by us."""
        own = resource.spec.throttle and resource.spec.throttle.inter_broker
        return self.throttled or own is not None

    def view(self, resource: Resource, snapshot: Snapshot) -> Snapshot:
        """What the resource's status may tell of the cluster."""
        return self.permission.view(resource, snapshot) if self.permission else snapshot
