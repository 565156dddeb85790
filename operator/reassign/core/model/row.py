"""One row for each partition of a resource: its entry in the record, the steps to take, and what is said of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel, Step

PENDING, BLOCKED = PartitionState.PENDING, PartitionState.BLOCKED

STATUS = {
    State.SUPERSEDING: PartitionState.CANCELLING,
    State.SUBMITTING: PartitionState.PENDING,
    State.IN_FLIGHT: PartitionState.IN_FLIGHT,
    State.SETTLING: PartitionState.IN_FLIGHT,
    State.CANCELLING: PartitionState.CANCELLING,
    State.RESTORING: PartitionState.CANCELLING,
    State.COMPLETED: PartitionState.COMPLETED,
    State.CANCELLED: PartitionState.CANCELLED,
    State.FAILED: PartitionState.FAILED,
}
"""The state that status shows."""


class SayingKind(Enum):
    """What a saying is about, in the order of precedence where only one is shown."""

    PROBLEM = auto()
    """It stands in the way of the next step, or of the beginning."""
    NOTE = auto()
    """It is what is being done."""
    OVERDUE = auto()
    """The move has not come nearer to its end for stallTimeoutSeconds."""
    STALL = auto()
    """The move does not come nearer to its end, and goes on by itself once the cause is removed."""


class Saying(NamedTuple):
    """What is said of a partition."""

    kind: SayingKind
    problem: Problem


@dataclass(frozen=True, slots=True)
class Row:
    """What becomes of one partition. Each stage of a decision returns a new row."""

    entry: Entry | None = None
    """Its entry in the record from now on; None: there is none."""
    steps: tuple[Step, ...] = ()
    says: tuple[Saying, ...] = ()
    waits: PartitionState | None = None
    """Pending or Blocked, without an entry; Completed in a dry run that finds the partition at its target."""
    listed: bool = False
    """Whether its move is in flight, though the record says Submitting yet: it may be of a topic made again."""
    put_off: tuple[int, ...] = ()
    """The target of a move that was withheld for longer: it is asked for later, and takes no place meanwhile."""

    @property
    def state(self) -> State | None:
        """What has become of the partition: Restoring while a step restores its order, otherwise as it is recorded."""
        if self.entry is None:
            return None
        restores = self.entry.state is State.CANCELLING and self._takes(Alter)
        return State.RESTORING if restores else self.entry.state

    @property
    def goes_back(self) -> bool:
        """Whether it is being brought back."""
        return self.state in (State.CANCELLING, State.RESTORING)

    def said(self, *kinds: SayingKind) -> Problem | None:
        """Return the problem of the first saying of these kinds."""
        return next((problem for kind, problem in self.says if kind in kinds), None)

    def with_saying(self, kind: SayingKind, problem: Problem | None) -> Row:
        """Return the row with this said, in place of what was said of the kind; None changes nothing."""
        if problem is None:
            return self
        others = (saying for saying in self.says if saying.kind is not kind)
        return replace(self, says=(*others, Saying(kind, problem)))

    def stalled(self, problem: Problem, *, overdue: bool) -> Row:
        """Return the row with what keeps its move from coming nearer, in place of what was said of that."""
        others = tuple(saying for saying in self.says if saying.kind not in (SayingKind.STALL, SayingKind.OVERDUE))
        return replace(self, says=(*others, Saying(SayingKind.OVERDUE if overdue else SayingKind.STALL, problem)))

    def begins(self, before: Entry | None) -> bool:
        """Whether a move of ours begins, or another client's ends for it; `before` is the entry as it is recorded.

        A cancel that is recorded already is no beginning: it may have been sent.
        """
        if self.state is State.SUPERSEDING:
            recorded = before is not None and before.state is State.SUPERSEDING
            return not recorded and self._takes(Cancel)
        return self.state is State.SUBMITTING and self._takes(Alter)

    def must_record(self, before: Entry | None) -> bool:
        """Whether the entry has to be recorded before the steps are taken; `before` is the entry as it is recorded."""
        return before != self.entry and self._takes(Alter, AlterLogDirs, Cancel)

    def _takes(self, *kinds: type[Step]) -> bool:
        return any(isinstance(step, kinds) for step in self.steps)

    def withhold(self, steps: Collection[Step], before: Entry | None, why: Problem | None = None) -> Row:
        """Return the row without steps that cannot be taken now, as if they had not been decided.

        `before` is the entry to return to. Where it was not active, the partition waits. One that goes back keeps its
        entry, recorded or not.
        """
        left = tuple(step for step in self.steps if step not in steps)
        if left or before == self.entry or self.goes_back:
            return replace(self, steps=left)
        return replace(self, entry=before, steps=()) if before and before.active else waiting(PENDING, why)

    def shown(self, cost: Problem | None = None) -> tuple[PartitionState, Problem | None]:
        """Return the state that status shows, and why.

        `cost` is what the last status said that a cancel discards: it is known only while the move is listed.
        """
        if self.entry is None:
            return self.waits or PENDING, self.said(SayingKind.PROBLEM) if self.waits else None
        status = PartitionState.IN_FLIGHT if self.listed else STATUS[self.entry.state]
        problem = self.said(SayingKind.PROBLEM)
        if problem and status is PartitionState.IN_FLIGHT:
            return BLOCKED, problem
        going_on = problem or self.said(SayingKind.NOTE) or self.said(SayingKind.OVERDUE)
        discarded = cost if status is PartitionState.CANCELLING else None
        return status, going_on or discarded or self.said(SayingKind.STALL) or self.entry.problem


def waiting(state: PartitionState, problem: Problem | None = None) -> Row:
    """Return the row of a partition without an entry, Pending or Blocked, and why."""
    return Row(waits=state).with_saying(SayingKind.PROBLEM, problem)
