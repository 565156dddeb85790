"""One line for each partition of a resource: its state, and why it is not at its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.log_dirs import bytes_to_copy
from reassign.core.model.problem import Problem
from reassign.core.model.progress import CopyProgress
from reassign.core.model.read_back import StatusReadBack
from reassign.core.model.row import Row
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import COSTS
from reassign.errors import Reason

KNOWN = frozenset(Reason)


@dataclass(frozen=True, slots=True)
class Line:
    """One partition's state, before it is cut to what status shows."""

    tp: TopicPartition
    state: PartitionState
    problem: Problem | None
    bytes: CopyProgress | None

    @property
    def goes_on(self) -> bool:
        """Whether it moves, or will in its turn. No one knows when any other wait ends."""
        in_turn = self.problem is None or self.problem.reason is Reason.WAITING_FOR_BUDGET
        return self.state is PartitionState.IN_FLIGHT or (self.state is PartitionState.PENDING and in_turn)


def lines_of(verdict: Verdict, targets: Mapping[TopicPartition, Sequence[int]], snapshot: Snapshot) -> list[Line]:
    """Return a line for each partition that has a target."""
    said = _said(verdict.resource.status)
    return [_line(verdict, tp, target, snapshot, said.get(tp)) for tp, target in targets.items()]


def _line(
    verdict: Verdict, tp: TopicPartition, target: Sequence[int], snapshot: Snapshot, said: Problem | None
) -> Line:
    row = verdict.rows.get(tp, Row())
    asked = verdict.resource.asked.get(tp)
    named = row.entry.log_dirs if row.entry else asked.named if asked else ()
    cost = said if said and said.reason in COSTS else None
    state, problem = row.shown(cost)
    return Line(tp, state, _with_cause(problem, said), bytes_to_copy(tp, row.entry, target, named, snapshot))


def _with_cause(problem: Problem | None, said: Problem | None) -> Problem | None:
    """Return a failure at the deadline with what was waited for until then: the record has no room for that."""
    if problem is None or problem.reason is not Reason.DEADLINE_EXCEEDED or said is None:
        return problem
    cause = Problem(problem.reason, f"{problem.message}; until then: {said.message}")
    return said if said.reason is Reason.DEADLINE_EXCEEDED else cause


def _said(before: StatusReadBack) -> dict[TopicPartition, Problem]:
    """Return what the last status said of its partitions, for show alone."""
    return {
        TopicPartition(d.topic, d.partition): Problem(Reason(d.reason), d.message)
        for d in before.partitions
        if d.reason in KNOWN and d.message
    }
