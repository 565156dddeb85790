"""A PartitionReassignment as the core sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from reassign.api.digest import spec_digest
from reassign.api.partition_reassignment import (
    Mode,
    PartitionEntry,
    PartitionReassignmentSpec,
    PartitionReassignmentStatus,
)
from reassign.core.model.problem import Problem
from reassign.core.model.record import Record, active
from reassign.core.model.snapshot import TopicPartition


@dataclass(frozen=True)
class Resource:
    """One PartitionReassignment; `unsupported` says what it asks for that cannot be done.

    What is derived from spec and status is worked out once: a tick asks for it many times.
    """

    uid: str
    version: int
    namespace: str
    name: str
    generation: int
    created: datetime
    spec: PartitionReassignmentSpec
    status: PartitionReassignmentStatus
    has_finalizer: bool
    record: Record = field(default_factory=dict)
    record_lost: bool = False
    """Whether another client removed parts of the record."""
    owner_gone: bool = False
    """Whether only the record is left: the object went without us, and what it has in flight is undone."""
    deleted: datetime | None = None
    unsupported: Problem | None = None
    plan: str | None = None
    """The ReassignmentPlan whose wave it is."""

    @property
    def age_key(self) -> tuple[datetime, str]:
        """Sorts resources by who came first; the uid breaks a tie."""
        return (self.created, self.uid)

    @property
    def up_to_date(self) -> bool:
        """Whether status speaks of the spec as it is now."""
        return self.status.observed_generation == self.generation

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do, and status says so: it is only judged for drift."""
        return self.up_to_date and bool(self.status.completion_time) and not self.has_finalizer and not self.deleted

    @property
    def asleep(self) -> bool:
        """Whether it is suspended, status says so, and it holds nothing: what becomes of it can wait."""
        return self.spec.suspend and self.up_to_date and not active(self.record) and not self.deleted

    @property
    def dry_run(self) -> bool:
        """Whether it is only judged."""
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
        """The target replicas by partition; nothing once it is being deleted."""
        return {} if self.deleted else {tp: entry.replicas for tp, entry in self.asked.items()}
