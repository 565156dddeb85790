"""The rules of a KafkaCluster for all of its resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from reassign.api.common import byte_limit_of
from reassign.api.kafka_cluster import Execution, KafkaClusterSpec, Limits, NamespaceLimits
from reassign.api.partition_reassignment import Throttle
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.verdict import Verdict, rendered
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """The throttle that a cluster gives to its resources, its bounds, the cordons, and the record of what is set."""

    default: Throttle = field(default_factory=Throttle)
    minimum: int | str | None = None
    maximum: int | str | None = None
    record: RecordedConfigs | None = None
    older: Problem | None = None
    """An older KafkaCluster for the same brokers that is served: nothing new is set."""
    younger: Problem | None = None
    """A younger KafkaCluster for the same brokers that has throttles to restore: nothing is touched."""
    yields: Problem | None = None
    """Another installation's claim, or an older KafkaCluster that has set throttles as well: nothing is set, and what
    it has set over ours is left to it."""
    permission: Permission | None = None
    """Whose moves are throttled; None: all. What is set for others stays until their moves end."""
    cordons: frozenset[int] = frozenset()
    """The brokers that are to be cordoned."""

    @classmethod
    def of(cls, cluster: KafkaClusterSpec, record: RecordedConfigs | None = None) -> ConfigRules:
        return cls(cluster.throttle or Throttle(), cluster.limits.min_throttle, cluster.limits.max_throttle, record)


@dataclass(frozen=True, slots=True)
class ClusterRules:
    """The rules of a KafkaCluster for all of its resources."""

    limits: Limits
    hold: Problem | None = None
    """Why nothing new may start on the cluster."""
    execution: Execution = Execution.RUN
    permission: Permission | None = None
    """None: every namespace may move everything."""
    throttle: ConfigRules = field(default_factory=ConfigRules)
    unreadable: Collection[str] = ()
    """Namespaces that can be neither read nor written now."""
    cordons: frozenset[int] = frozenset()
    """The brokers that are to take no new replicas."""
    holds: Mapping[str, Problem | None] = field(default_factory=dict)
    """Why nothing new may start for the waves of plans that evacuate lost brokers, by the uid of the plan."""

    @property
    def wanted_cordons(self) -> frozenset[int]:
        """The brokers that are to be cordoned now: none while the brake undoes what is in flight."""
        return frozenset() if self.undo else self.cordons

    @property
    def small_move_bytes(self) -> int:
        """How much a move may copy that takes no slot of a broker; 0: each move takes slots."""
        return byte_limit_of(self.limits.small_move_bytes)

    @property
    def undo(self) -> bool:
        """Whether the brake is set so that everything in flight is cancelled."""
        return self.execution in (Execution.CANCEL_OURS, Execution.CANCEL_ALL)

    def hold_of(self, resource: Resource) -> Problem | None:
        """Return why nothing new may start for a resource. The plans in `holds` are in the KafkaCluster's namespace."""
        owned = self.permission is None or self.permission.owner == resource.namespace
        return self.holds.get(resource.plan_uid or "", self.hold) if owned else self.hold

    def held_by(self, problem: Problem) -> ClusterRules:
        """Return the rules where this keeps everything from starting, too."""
        holds = {uid: hold or problem for uid, hold in self.holds.items()}
        return replace(self, hold=self.hold or problem, holds=holds)

    def forbids(self, resource: Resource, tp: TopicPartition) -> Problem | None:
        """Return why the resource's namespace may not move a partition, or None."""
        return self.permission.of_topic(resource.namespace, tp.topic) if self.permission else None

    def unseen(self, resource: Resource) -> Problem | None:
        """Return why nothing begins for the resource's namespace, if it cannot be read now."""
        if resource.namespace not in self.unreadable:
            return None
        return Problem(Reason.NOT_AUTHORIZED, "the operator may not read this namespace: restore its RoleBinding")

    def limits_of(self, namespace: str) -> NamespaceLimits:
        """Return what a namespace may have in flight; the KafkaCluster's own has no bounds of its own."""
        owned = self.permission is None or self.permission.owner == namespace
        return (None if owned else self.limits.per_namespace) or NamespaceLimits()

    def throttles(self, resource: Resource) -> bool:
        """Whether the resource's moves between brokers are throttled by us."""
        own = resource.spec.throttle and resource.spec.throttle.inter_broker
        return self.throttle.default.inter_broker is not None or own is not None

    def view(self, verdict: Verdict, snapshot: Snapshot) -> tuple[Verdict, Snapshot]:
        """Return what the status of the verdict's resource may say, and show of the cluster."""
        resource = verdict.resource
        if self.permission is None:
            return verdict, snapshot
        audience = self.permission.audience(resource.namespace)
        return rendered(verdict, audience), self.permission.view(resource, snapshot)
