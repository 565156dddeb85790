"""What the core may read of an object that others can write: mypy refuses every other field.

Anyone with the right to write statuses can forge one. So nothing that is read back from a status may move a replica,
keep another resource's moves from being undone, or approve. docs/security/threats.md says so of each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.common import Condition, ObjectMeta
from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.api.made_plan import MadePlan
from reassign.api.partition_reassignment import CopiedSample, PartitionDetail, PartitionReassignmentStatus, Progress
from reassign.api.reassignment_plan import BalanceStatus, LowerBound, PlanMoves, ReassignmentPlanStatus, Unmet, Wave
from reassign.api.reassignment_policy import PolicyPlan, ReassignmentPolicyStatus, TriggerStatus


class DeclaredCluster(Protocol):
    """A KafkaCluster as users declare it: nothing of its status decides anything."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> KafkaClusterSpec: ...


class StatusReadBack(Protocol):
    """The last status of a PartitionReassignment."""

    @property
    def observed_generation(self) -> int | None: ...
    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def start_time(self) -> datetime | None: ...
    @property
    def completion_time(self) -> datetime | None: ...
    @property
    def progress(self) -> Progress | None: ...
    @property
    def samples(self) -> tuple[CopiedSample, ...]: ...
    @property
    def partitions(self) -> tuple[PartitionDetail, ...]: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> PartitionReassignmentStatus:
        """Return the whole status with these fields changed, to be written again."""
        ...


class PlanStatusReadBack(Protocol):
    """The last status of a ReassignmentPlan."""

    @property
    def observed_generation(self) -> int | None: ...
    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def planned_input_hash(self) -> str | None: ...
    @property
    def stale_digest(self) -> str | None: ...
    @property
    def waves(self) -> tuple[Wave, ...]: ...
    @property
    def moves(self) -> PlanMoves | None: ...
    @property
    def lower_bound(self) -> LowerBound | None: ...
    @property
    def balance(self) -> BalanceStatus | None: ...
    @property
    def unmet(self) -> tuple[Unmet, ...]: ...
    @property
    def goal_observed_time(self) -> datetime | None: ...
    @property
    def unregistered_brokers(self) -> tuple[int, ...]: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> ReassignmentPlanStatus:
        """Return the whole status with these fields changed, to be written again."""
        ...


class DecommissionStatusReadBack(Protocol):
    """The last status of a BrokerDecommission."""

    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def plans(self) -> tuple[MadePlan, ...]: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> BrokerDecommissionStatus:
        """Return the whole status with these fields changed, to be written again."""
        ...


class PolicyStatusReadBack(Protocol):
    """The last status of a ReassignmentPolicy."""

    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def last_schedule_time(self) -> datetime | None: ...
    @property
    def triggers(self) -> tuple[TriggerStatus, ...]: ...
    @property
    def plans(self) -> tuple[PolicyPlan, ...]: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> ReassignmentPolicyStatus:
        """Return the whole status with these fields changed, to be written again."""
        ...
