"""A dry run: every entry is judged as if it were to start now, all together, and nothing is written to Kafka.

A dry run has no record, needs no finalizer and claims no partition. Its bytes are rounded to two digits, so that topics
that grow do not have its status written all the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reassign.api.partition_reassignment import PartitionReassignmentStatus, PartitionState
from reassign.core.model.progress import leader_bytes
from reassign.core.model.read_back import StatusReadBack
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.verdict import Verdict
from reassign.core.model.waits import NEEDS_USER
from reassign.text import amount


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a dry run; the reason is that of the condition Checked."""

    passed: bool
    reason: str
    message: str
    summary: str


def conclude(verdict: Verdict, snapshot: Snapshot) -> Conclusion:
    """Return the conclusion from what each partition would come to."""
    rows = sorted((tp, row.shown()) for tp, row in verdict.rows.items() if row.waits)
    counts = Counter(state for _, (state, _) in rows)
    summary = f"{counts[PartitionState.PENDING]} of {len(rows)} partitions would move"
    if blocked := counts[PartitionState.BLOCKED]:
        summary += f", {blocked} {'is' if blocked == 1 else 'are'} blocked"
    if completed := counts[PartitionState.COMPLETED]:
        summary += f", {completed} {'is at its' if completed == 1 else 'are at their'} target"
    moves = [f"to broker {broker}: {amount(size)}" for broker, size in sorted(_to_come(verdict, snapshot).items())]
    message = "; ".join([summary, ", ".join(moves)] if moves else [summary])
    problems = [(tp, problem) for tp, (state, problem) in rows if state is PartitionState.BLOCKED and problem]
    # it does not pass before a user has done his part
    if first := next((p for p in problems if p[1].reason in NEEDS_USER), next(iter(problems), None)):
        tp, problem = first
        return Conclusion(False, problem.reason, f"{message}; {tp}: {problem.message}", summary)
    return Conclusion(True, "ChecksPassed", message, summary)


def _to_come(verdict: Verdict, snapshot: Snapshot) -> Counter[int]:
    """Return the bytes by the broker that would get them, where their sizes are known."""
    to_come: Counter[int] = Counter()
    for tp, row in verdict.rows.items():
        partition, size = snapshot.partition(tp), leader_bytes(tp, snapshot)
        if row.waits is PartitionState.PENDING and partition and size is not None:
            for broker in set(verdict.resource.wanted[tp]) - set(partition.replicas):
                to_come[broker] += size
    return to_come


def unless_only_grown(before: StatusReadBack, after: PartitionReassignmentStatus) -> PartitionReassignmentStatus:
    """Return the status to be written: the one before, where only exact numbers of bytes differ."""
    return before.model_copy() if _rounded(before) == _rounded(after) else after


def _rounded(status: StatusReadBack) -> PartitionReassignmentStatus:
    progress = status.progress and status.progress.model_copy(update={"bytes_total": None})
    return status.model_copy(update={"progress": progress})
