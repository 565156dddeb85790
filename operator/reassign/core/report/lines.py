"""One line for each partition of a resource: its state, and why it is not at its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reassign.api.partition_reassignment import PartitionReassignmentStatus, PartitionState, RecordState
from reassign.core.model.log_dirs import bytes_to_copy
from reassign.core.model.problem import Problem
from reassign.core.model.progress import Bytes
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.verdict import STATES, Verdict
from reassign.core.report.events import COSTS
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Line:
    """One partition's state, before it is cut to what status shows."""

    tp: TopicPartition
    state: PartitionState
    problem: Problem | None
    bytes: Bytes | None


def lines_of(verdict: Verdict, targets: Mapping[TopicPartition, Sequence[int]], snapshot: Snapshot) -> list[Line]:
    """A line for each partition that has a target."""
    costs = _costs_said(verdict.resource.status)
    return [_line(verdict, tp, target, snapshot, costs.get(tp)) for tp, target in targets.items()]


def _line(
    verdict: Verdict, tp: TopicPartition, target: Sequence[int], snapshot: Snapshot, cost: Problem | None
) -> Line:
    entry = verdict.record.get(tp)
    asked = verdict.resource.asked.get(tp)
    named = entry.log_dirs if entry else asked.named if asked else ()
    size = bytes_to_copy(tp, entry, target, named, snapshot)
    if entry is None:
        state, problem = verdict.waiting.get(tp, (PartitionState.PENDING, None))
        return Line(tp, state, problem, size)
    problem = verdict.problems.get(tp)
    if problem and entry.state is RecordState.IN_FLIGHT:
        return Line(tp, PartitionState.BLOCKED, problem, size)
    stall = verdict.stalls.get(tp)
    shown = problem or verdict.notes.get(tp) or (stall.problem if stall and stall.overdue else None)
    shown = shown or (cost if entry.state is RecordState.CANCELLING else None)
    return Line(tp, STATES[entry.state], shown or (stall.problem if stall else entry.problem), size)


def _costs_said(before: PartitionReassignmentStatus) -> dict[TopicPartition, Problem]:
    """What cancels throw away. It is known only while the move is listed, and stands until it is confirmed."""
    return {
        TopicPartition(d.topic, d.partition): Problem(Reason(d.reason), d.message)
        for d in before.partitions
        if d.reason in COSTS and d.message
    }
