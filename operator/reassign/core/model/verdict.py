"""What is to happen to one resource: its record from now on, the steps to take, and what to say of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.problem import Audience, Problem, render
from reassign.core.model.record import Record, active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel, Elect, Step

SHOWN = {
    State.SUPERSEDING: PartitionState.CANCELLING,
    State.SUBMITTING: PartitionState.PENDING,
    State.IN_FLIGHT: PartitionState.IN_FLIGHT,
    State.SETTLING: PartitionState.IN_FLIGHT,
    State.CANCELLING: PartitionState.CANCELLING,
    State.COMPLETED: PartitionState.COMPLETED,
    State.CANCELLED: PartitionState.CANCELLED,
    State.FAILED: PartitionState.FAILED,
}


class Stall(NamedTuple):
    """What keeps a move in flight from coming nearer, and whether that has lasted for stallTimeoutSeconds."""

    problem: Problem
    overdue: bool


class Waiting(NamedTuple):
    """The state of a partition without an entry, Pending or Blocked, and why."""

    state: PartitionState
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen to one resource. Each stage of a decision returns a new one.

    `waiting` are its partitions without an entry. `problems` are those of partitions with an entry, which stand in
    the way of its next step; `notes` only say what is being done. `stalls` are of moves that go on by themselves once
    the cause is removed. `withheld` are the target replicas of moves that the gate left out for more than a moment.
    `expired`: its deadline has passed, and nothing new starts. `release` removes the finalizer of a resource that is
    being deleted, `abandoned` says that its deletion deadline did, with moves still in flight.
    """

    resource: Resource
    record: Record
    steps: tuple[Step, ...] = ()
    waiting: Mapping[TopicPartition, Waiting] = field(default_factory=dict)
    problems: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    stalls: Mapping[TopicPartition, Stall] = field(default_factory=dict)
    notes: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    withheld: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    expired: bool = False
    release: bool = False
    abandoned: bool = False

    @property
    def must_record(self) -> bool:
        """Whether the record has to be written before the steps are taken."""
        before = self.resource.record
        return any(before.get(s.tp) != self.record[s.tp] for s in self.steps if not isinstance(s, Elect))

    def begins(self, step: Step) -> bool:
        """Whether a move of ours begins with a step, or another client's ends for it.

        A cancel that is recorded already is none: it may have been sent.
        """
        entry, before = self.record[step.tp], self.resource.record.get(step.tp)
        if isinstance(step, Cancel):
            return entry.state is State.SUPERSEDING and not (before and before.state is State.SUPERSEDING)
        return isinstance(step, Alter) and entry.state is State.SUBMITTING

    @property
    def starts(self) -> bool:
        """Whether any move begins."""
        return any(map(self.begins, self.steps))

    @property
    def unsettled(self) -> bool:
        """Whether anything may still have to be followed or cancelled: then the finalizer stays."""
        return bool((self.waiting and not self.resource.dry_run) or active(self.record))

    @property
    def waits_to_settle(self) -> bool:
        """Whether a partition would start, if what is known of it were not that young."""
        return any(state is PartitionState.PENDING and problem is None for state, problem in self.waiting.values())


def rendered(verdict: Verdict, audience: Audience | None) -> Verdict:
    """The verdict with its problems as this audience may read them."""
    return replace(
        verdict,
        waiting={tp: Waiting(w.state, w.problem and render(w.problem, audience)) for tp, w in verdict.waiting.items()},
        problems={tp: render(problem, audience) for tp, problem in verdict.problems.items()},
        stalls={tp: Stall(render(s.problem, audience), s.overdue) for tp, s in verdict.stalls.items()},
        notes={tp: render(problem, audience) for tp, problem in verdict.notes.items()},
    )
