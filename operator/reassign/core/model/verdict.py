"""What is to happen to one resource: a row for each of its partitions, and whether it is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.problem import Audience, render
from reassign.core.model.record import Record, active
from reassign.core.model.resource import Resource
from reassign.core.model.row import Row, Saying, SayingKind
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Elect, Step


@dataclass(frozen=True)
class Verdict:
    """What is to happen to one resource. Each stage of a decision returns a new one."""

    resource: Resource
    rows: Mapping[TopicPartition, Row] = field(default_factory=dict)
    """Of the partitions that have an entry in the record, and of those that were judged."""
    expired: bool = False
    """Whether its deadline has passed, so that nothing new starts."""
    release: bool = False
    """Whether the finalizer is removed, of a resource that is being deleted."""
    abandoned: bool = False
    """Whether it is released at its deletion deadline, with moves still in flight."""
    partial: bool = False
    """Whether a bug kept it from being judged any further than its undo: nothing more is said of it."""
    unrestored: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The original order of partitions that are back without it, since the brokers refused it."""

    @classmethod
    def of(cls, resource: Resource, record: Record, *, expired: bool = False) -> Verdict:
        """Return the verdict before any stage: the record as it is, and nothing to do."""
        return cls(resource, {tp: Row(entry) for tp, entry in record.items()}, expired)

    def with_rows(self, rows: Mapping[TopicPartition, Row]) -> Verdict:
        """Return the verdict with these rows in place of its own for the same partitions."""
        return replace(self, rows={**self.rows, **rows}) if rows else self

    @cached_property
    def record(self) -> Record:
        """The record from now on."""
        return {tp: row.entry for tp, row in self.rows.items() if row.entry}

    @cached_property
    def acting(self) -> Mapping[TopicPartition, Row]:
        """The rows that have steps."""
        return {tp: row for tp, row in self.rows.items() if row.steps}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps to take, those that bring a partition back before all others."""
        undo: list[Step] = []
        others: list[Step] = []
        for row in self.acting.values():
            (undo if row.goes_back else others).extend(row.steps)
        return (*undo, *others)

    @cached_property
    def beginning(self) -> tuple[Step, ...]:
        """The steps that neither bring a partition back nor elect its leader: before them comes the last check."""
        rows = (row for row in self.acting.values() if not row.goes_back)
        return tuple(step for row in rows for step in row.steps if not isinstance(step, Elect))

    @property
    def must_record(self) -> bool:
        """Whether the record has to be written before the steps are taken."""
        return any(row.must_record(self.resource.record.get(tp)) for tp, row in self.acting.items())

    @property
    def starts(self) -> bool:
        """Whether any move begins."""
        return any(row.begins(self.resource.record.get(tp)) for tp, row in self.acting.items())

    @property
    def unsettled(self) -> bool:
        """Whether anything may still have to be followed or cancelled: then the finalizer stays."""
        waits = not self.resource.dry_run and any(row.waits for row in self.rows.values())
        return waits or bool(active(self.record))

    @property
    def waits_to_settle(self) -> bool:
        """Whether a partition would start, if what is known of it were not that young."""
        return any(
            row.waits is PartitionState.PENDING and not row.said(SayingKind.PROBLEM) for row in self.rows.values()
        )


def rendered(verdict: Verdict, audience: Audience | None) -> Verdict:
    """Return the verdict with its problems as this audience may read them."""
    return verdict.with_rows(
        {
            tp: replace(row, says=tuple(Saying(kind, render(problem, audience)) for kind, problem in row.says))
            for tp, row in verdict.rows.items()
            if row.says
        }
    )
