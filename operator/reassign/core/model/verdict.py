"""What is to happen to one resource: its record from now on, the steps to take, and what to say of each partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from reassign.api.partition_reassignment import PartitionState, RecordState
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Alter, Cancel, Elect, Step

STATES = {
    RecordState.SUBMITTING: PartitionState.PENDING,
    RecordState.IN_FLIGHT: PartitionState.IN_FLIGHT,
    RecordState.CANCELLING: PartitionState.CANCELLING,
    RecordState.COMPLETED: PartitionState.COMPLETED,
    RecordState.CANCELLED: PartitionState.CANCELLED,
    RecordState.FAILED: PartitionState.FAILED,
}


class Stall(NamedTuple):
    """What keeps a move in flight from coming nearer, and whether that has lasted for stallTimeoutSeconds."""

    problem: Problem
    overdue: bool


@dataclass(slots=True)
class Verdict:
    """What is to happen to one resource.

    `waiting` are its partitions without an entry: Pending or Blocked, and why. `problems` are those of partitions
    with an entry, which stand in the way of its next step; `notes` only say what is being done, and `stalls` are of
    moves that go on by themselves once the cause is mended. `release` lets go of the finalizer of a resource that is
    being deleted. `expired`: its deadline is over, and nothing new starts.
    """

    resource: Resource
    record: dict[TopicPartition, Entry]
    steps: list[Step] = field(default_factory=list)
    waiting: dict[TopicPartition, tuple[PartitionState, Problem | None]] = field(default_factory=dict)
    problems: dict[TopicPartition, Problem] = field(default_factory=dict)
    stalls: dict[TopicPartition, Stall] = field(default_factory=dict)
    notes: dict[TopicPartition, Problem] = field(default_factory=dict)
    held_back: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The replicas of partitions that were to begin at this tick, and cannot be throttled for longer than that."""
    expired: bool = False
    release: bool = False
    let_go: bool = False
    """Released at its deadline, with moves still in flight."""

    @property
    def must_record(self) -> bool:
        """Whether the record has to be in status before the steps are taken."""
        before = self.resource.record
        return any(before.get(s.tp) != self.record[s.tp] for s in self.steps if not isinstance(s, Elect))

    def begins(self, step: Step) -> bool:
        """Whether a move of ours begins with a step, or somebody else's ends for it.

        A cancel that is in the status already is none: it may have been sent.
        """
        entry = self.record[step.tp]
        if isinstance(step, Cancel):
            return entry.superseding and entry != self.resource.record.get(step.tp)
        return isinstance(step, Alter) and entry.state is RecordState.SUBMITTING

    def hold_back(self, tp: TopicPartition, problem: Problem, *, lasts: bool) -> None:
        """Take back all that was to begin for a partition at this tick: it is pending instead, and says why."""
        self.steps = [step for step in self.steps if step.tp != tp]
        entry = self.record.pop(tp)
        if lasts:
            self.held_back[tp] = entry.target
        self.notes.pop(tp, None)
        self.waiting[tp] = (PartitionState.PENDING, problem)

    @property
    def unsettled(self) -> bool:
        """Whether anything may still have to be followed or cancelled: then the finalizer stays."""
        return bool((self.waiting and not self.resource.dry_run) or active(self.record))
