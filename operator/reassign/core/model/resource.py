"""A PartitionReassignment as the core sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from reassign.api.common import ConditionStatus
from reassign.api.digest import spec_digest
from reassign.api.partition_reassignment import (
    Mode,
    PartitionEntry,
    PartitionReassignmentSpec,
)
from reassign.core.model.problem import Problem
from reassign.core.model.read_back import StatusReadBack
from reassign.core.model.record import Record, active
from reassign.core.model.snapshot import TopicPartition


@dataclass(frozen=True)
class Resource:
    """One PartitionReassignment.

    What is derived from spec and status is computed once: a reconciliation asks for it many times.
    """

    uid: str
    version: int
    namespace: str
    name: str
    generation: int
    created: datetime
    spec: PartitionReassignmentSpec
    status: StatusReadBack
    has_finalizer: bool
    record: Record = field(default_factory=dict)
    record_lost: bool = False
    """Whether another client removed parts of the record."""
    owner_gone: bool = False
    """Whether only the record is left: the object went without us, and what it has in flight is undone."""
    deleted: datetime | None = None
    unsupported: Problem | None = None
    """What the resource asks for that cannot be done."""
    plan: str | None = None
    """The name of the ReassignmentPlan whose wave it is."""
    plan_uid: str | None = None
    """The uid of that plan."""

    @property
    def age_key(self) -> tuple[datetime, str]:
        """A key that sorts resources by age; the uid breaks a tie."""
        return (self.created, self.uid)

    @property
    def partitions(self) -> int:
        """How many partitions the spec names."""
        return len(self.spec.partitions)

    @property
    def up_to_date(self) -> bool:
        """Whether status speaks of the spec as it is now."""
        return self.status.observed_generation == self.generation

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do, and status says so: the resource is only judged for drift."""
        return self.up_to_date and bool(self.status.completion_time) and not self.has_finalizer and not self.deleted

    @property
    def has_moved(self) -> bool:
        """Whether status tells of partitions that a record must have."""
        progress, judged_only = self.status.progress, any(c.type == "Checked" for c in self.status.conditions)
        if progress is None or judged_only or self.dry_run:
            return False
        return any((progress.partitions_in_flight, progress.partitions_completed, progress.partitions_failed))

    @property
    def asleep(self) -> bool:
        """Whether the resource is suspended, status says so, and it holds nothing: what becomes of it can wait."""
        return self.spec.suspend and self.up_to_date and not active(self.record) and not self.deleted

    @property
    def dry_run(self) -> bool:
        """Whether the resource is only judged."""
        return self.spec.mode is Mode.DRY_RUN

    @cached_property
    def digest(self) -> str:
        """The `spec_digest` of the spec."""
        return spec_digest(self.spec)

    @cached_property
    def asked(self) -> Mapping[TopicPartition, PartitionEntry]:
        """The entries of the spec by partition."""
        return {TopicPartition(e.topic, e.partition): e for e in self.spec.partitions}

    @cached_property
    def named(self) -> frozenset[TopicPartition]:
        """Every partition that the spec or the record names."""
        return frozenset(self.asked.keys() | self.record.keys())

    @cached_property
    def wanted(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The target replicas by partition; nothing once the resource is being deleted."""
        return {} if self.deleted else {tp: entry.replicas for tp, entry in self.asked.items()}


@dataclass(frozen=True, slots=True)
class Settled:
    """The summary of a settled PartitionReassignment between two judgements for drift: it holds no partition."""

    uid: str
    version: int
    namespace: str
    name: str
    age_key: tuple[datetime, str]
    digest: str
    """The `spec_digest` of the spec."""
    partitions: int
    """How many partitions it names."""
    succeeded: bool
    """Whether it succeeded, or else failed."""
    completion_time: datetime
    ttl_seconds_after_finished: int | None
    has_moved: bool
    """Whether its status tells of partitions that a record must have."""
    start_time: datetime | None = None
    deleted: ClassVar[None] = None

    @classmethod
    def of(cls, resource: Resource) -> Settled | None:
        """Return the summary of a resource; None where more of it is needed."""
        status = resource.status
        true = {condition.type for condition in status.conditions if condition.status is ConditionStatus.TRUE}
        ended = resource.settled and true & {"Succeeded", "Failed"}
        if not ended or status.completion_time is None:
            return None
        return cls(
            uid=resource.uid,
            version=resource.version,
            namespace=resource.namespace,
            name=resource.name,
            age_key=resource.age_key,
            digest=resource.digest,
            partitions=resource.partitions,
            succeeded="Succeeded" in true,
            completion_time=status.completion_time,
            ttl_seconds_after_finished=resource.spec.ttl_seconds_after_finished,
            has_moved=resource.has_moved,
            start_time=status.start_time,
        )
