"""A dry run: every entry is judged as if it were to start now, all together, and nothing is written to Kafka.

It has no record, needs no finalizer and claims no partition. What it says is rounded to two digits, so that topics
that grow do not have its status written all the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reassign.api.partition_reassignment import PartitionReassignmentStatus, PartitionState
from reassign.core.checks import Candidate, first_problem
from reassign.core.disk import Room
from reassign.core.model import Problem, Snapshot, ids
from reassign.core.progress import amount, leader_bytes
from reassign.core.verdict import Verdict
from reassign.errors import Reason


def rehearse(candidate: Candidate, room: Room) -> tuple[PartitionState, Problem | None]:
    """What would become of a partition; `room` is what is left by those rehearsed before."""
    if candidate.done:
        return PartitionState.COMPLETED, None
    if problem := first_problem(candidate) or room.silent(candidate) or room.lacks(candidate):
        return PartitionState.BLOCKED, problem
    room.take(candidate)
    between_dirs = [place.broker for place in candidate.placements if place.copies]
    return PartitionState.PENDING, Problem(Reason.WOULD_MOVE, _would_move(candidate, between_dirs))


def _would_move(candidate: Candidate, between_dirs: Sequence[int]) -> str:
    size = leader_bytes(candidate.tp, candidate.snapshot)
    if between_dirs and not candidate.added:
        return f"would be copied to another log directory of broker {ids(between_dirs)}"
    if not candidate.added:
        return "would change without copying anything"
    if size is None:
        return f"would be copied to broker {ids(candidate.added)}"
    each = "each of the brokers" if len(candidate.added) > 1 else "broker"
    return f"would copy {amount(size)} to {each} {ids(candidate.added)}"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a dry run comes to: the reason is of the condition Checked."""

    passed: bool
    reason: str
    message: str
    summary: str


def conclude(verdict: Verdict, snapshot: Snapshot) -> Conclusion:
    """From what each partition would come to."""
    said = sorted(verdict.waiting.items())
    counts = Counter(state for _, (state, _) in said)
    summary = f"{counts[PartitionState.PENDING]} of {len(said)} partitions would move"
    if counts[PartitionState.BLOCKED]:
        summary += f", {counts[PartitionState.BLOCKED]} are blocked"
    if counts[PartitionState.COMPLETED]:
        summary += f", {counts[PartitionState.COMPLETED]} are at their target"
    moves = [f"to broker {broker}: {amount(size)}" for broker, size in sorted(_to_come(verdict, snapshot).items())]
    message = "; ".join([summary, ", ".join(moves)] if moves else [summary])
    for tp, (state, problem) in said:
        if state is PartitionState.BLOCKED and problem:
            return Conclusion(False, problem.reason, f"{message}; {tp}: {problem.message}", summary)
    return Conclusion(True, "ChecksPassed", message, summary)


def _to_come(verdict: Verdict, snapshot: Snapshot) -> Counter[int]:
    """Bytes by the broker that would get them, where their sizes are known."""
    found: Counter[int] = Counter()
    for tp, (state, _) in verdict.waiting.items():
        partition, size = snapshot.partition(tp), leader_bytes(tp, snapshot)
        if state is PartitionState.PENDING and partition and size is not None:
            for broker in set(verdict.resource.wanted[tp]) - set(partition.replicas):
                found[broker] += size
    return found


def unless_only_grown(
    before: PartitionReassignmentStatus, after: PartitionReassignmentStatus
) -> PartitionReassignmentStatus:
    """The status to be written: as it was, where only exact numbers of bytes differ."""
    return before if _rounded(before) == _rounded(after) else after


def _rounded(status: PartitionReassignmentStatus) -> PartitionReassignmentStatus:
    progress = status.progress and status.progress.model_copy(update={"bytes_total": None})
    return status.model_copy(update={"progress": progress})
