"""The conditions of a PartitionReassignment, from its partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from reassign.api.partition_reassignment import PartitionState
from reassign.core.checks.hold import HOLDS
from reassign.core.model.problem import Problem
from reassign.core.model.progress import duration
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.verdict import Verdict
from reassign.core.model.waits import NEEDS_USER, PASSES, WISHED
from reassign.core.report.conditions import ConditionState, unready, unsettled
from reassign.core.report.dry_run import Conclusion
from reassign.core.report.events import CANCELLING, IN_FLIGHT
from reassign.core.report.lines import Line
from reassign.errors import Reason
from reassign.text import counted, listed

WAITING = (PartitionState.PENDING, PartitionState.BLOCKED)
STANDS_STILL = (PartitionState.BLOCKED, PartitionState.FAILED, PartitionState.CANCELLED)


class Obstacle(NamedTuple):
    """What keeps a resource, or a part of it, from its end, and whether a user has to act."""

    problem: Problem
    stalled: bool


def states_of(
    verdict: Verdict, snapshot: Snapshot, lines: Sequence[Line], counts: Mapping[PartitionState, int]
) -> list[ConditionState]:
    """Return the conditions of a resource that is carried out."""
    resource, total = verdict.resource, len(lines)
    done = f"{counts[PartitionState.COMPLETED]} of {total} partitions are at their target"
    stuck = sorted((line.tp, line.problem) for line in lines if line.problem and line.state in STANDS_STILL)
    first_at, first = next(iter(stuck), (None, None))
    because = f"{done}; {first_at}: {first.message}" if first else done
    if resource.deleted:
        named = (Problem(p.reason, f"{tp}: {p.message}") for tp, p in sorted(_problems(verdict).items()))
        problem = next(named, None)
        message = f"partitions going back to their original replicas: {counts[PartitionState.CANCELLING]}"
        return in_progress(CANCELLING, message, _obstacle(verdict, problem))
    whole = resource.unsupported or _problem(lines, (PartitionState.PENDING,), HOLDS)
    if counts[PartitionState.IN_FLIGHT] or counts[PartitionState.CANCELLING] or _goes_on(verdict):
        problems = _problems(verdict)
        cancelling = (line.tp for line in lines if line.state is PartitionState.CANCELLING)
        problem = next((problems[tp] for tp in cancelling if tp in problems), None)
        return in_progress(IN_FLIGHT, because, _obstacle(verdict, problem, whole), said=first)
    if whole:
        return unsettled(whole.reason, whole.message)
    if counts[PartitionState.PENDING] or counts[PartitionState.BLOCKED]:
        waits = _wait(resource, lines)
        if waits is None:
            return unsettled("PartitionsPending", because)
        return unsettled(waits.reason, because if waits == first else f"{because}; {waits.message}")
    drift = _drift(verdict, snapshot)
    if counts[PartitionState.FAILED] or counts[PartitionState.CANCELLED]:
        reason = first.reason if first else "Failed"
        failed = [ConditionState(kind, True, reason, because) for kind in ("Failed", "Stalled")]
        return [*_not_yet(reason, because), *failed, *drift]
    message = f"all {total} partitions are at their target, in sync" if total > 1 else "it is at its target, in sync"
    return [
        ConditionState("Ready", True, "Completed", message),
        ConditionState("Succeeded", True, "Completed", message),
        *drift,
    ]


def checked(conclusion: Conclusion) -> list[ConditionState]:
    """Return the conditions of a dry run."""
    concluded = conclusion.passed, conclusion.reason, conclusion.message
    ready = [ConditionState("Ready", *concluded)] if conclusion.passed else unready(*concluded[1:])
    return [*ready, ConditionState("Checked", *concluded)]


def unseen(resource: Resource, problem: Problem) -> list[ConditionState]:
    """Return the conditions of a resource whose cluster cannot be seen."""
    if resource.deleted:
        message = f"the cancel waits: {problem.message}. deletionPolicy: Orphan releases the resource as it is"
        waits = Problem(problem.reason, message)
        return in_progress(CANCELLING, message, Obstacle(waits, problem.reason in NEEDS_USER), said=waits)
    if problem.reason in PASSES and resource.spec.suspend and not active(resource.record):
        return unsettled(Reason.SUSPENDED, f"spec.suspend is true; {problem.message}")
    return unsettled(problem.reason, problem.message)


def in_progress(
    reason: str, message: str, obstacle: Obstacle | None, said: Problem | None = None
) -> list[ConditionState]:
    """Return the conditions while something is in flight; `said` is the problem that the message has already."""
    if obstacle is None:
        return [*_not_yet(reason, message), ConditionState("Reconciling", True, reason, message)]
    problem = obstacle.problem
    if problem != said:
        message = f"{message}; {problem.message}"
    states = [
        ConditionState("Ready", False, problem.reason, message),
        ConditionState("Succeeded", False, reason, message),
        ConditionState("Reconciling", True, reason, message),
    ]
    return [*states, ConditionState("Stalled", True, problem.reason, problem.message)] if obstacle.stalled else states


def _not_yet(reason: str, message: str) -> list[ConditionState]:
    return [ConditionState(kind, False, reason, message) for kind in ("Ready", "Succeeded")]


def _goes_on(verdict: Verdict) -> bool:
    """Whether one batch follows another: no pause between them is reported."""
    concluded = {(c.type, c.reason) for c in verdict.resource.status.conditions}
    return ("Reconciling", IN_FLIGHT) in concluded and any(
        entry.state is State.SUBMITTING for entry in verdict.record.values()
    )


def _wait(resource: Resource, lines: Sequence[Line]) -> Problem | None:
    """Return what a resource with nothing in flight waits for: a wish comes first, and a user last."""
    if wish := _problem(lines, WAITING, WISHED):
        return wish
    if resource.spec.suspend:
        return Problem(Reason.SUSPENDED, "spec.suspend is true; set it to false to start what is not blocked by then")
    if passes := _problem(lines, (PartitionState.PENDING,), PASSES):
        return passes
    if any(line.state is PartitionState.PENDING and line.problem is None for line in lines):
        return None
    return _problem(lines, (PartitionState.BLOCKED,), PASSES) or _problem(lines, WAITING)


def _obstacle(verdict: Verdict, problem: Problem | None, whole: Problem | None = None) -> Obstacle | None:
    """Return what keeps moves in flight from their end, or more moves from starting, and whether it is Stalled."""
    if problem and problem.reason in NEEDS_USER:
        return Obstacle(problem, True)
    if overdue := _overdue(verdict):
        return Obstacle(overdue, True)
    if problem:
        return Obstacle(problem, False)
    return Obstacle(whole, True) if whole else None


def _problems(verdict: Verdict) -> dict[TopicPartition, Problem]:
    """Return what stands in the way of the next step, of partitions with an entry in the record."""
    return {tp: problem for tp, row in verdict.rows.items() if row.entry and (problem := row.said(SayingKind.PROBLEM))}


def _overdue(verdict: Verdict) -> Problem | None:
    overdue = sorted((tp, problem) for tp, row in verdict.rows.items() if (problem := row.said(SayingKind.OVERDUE)))
    if not overdue:
        return None
    tp, problem = overdue[0]
    since = duration(verdict.resource.spec.stall_timeout_seconds)
    return Problem(
        problem.reason,
        f"partitions in flight that have not come nearer for {since}: {len(overdue)}; {tp}: {problem.message}",
    )


def _problem(
    lines: Sequence[Line], states: Collection[PartitionState], reasons: Collection[Reason] = frozenset(Reason)
) -> Problem | None:
    return next((p for line in lines if (p := line.problem) and line.state in states and p.reason in reasons), None)


def _drift(verdict: Verdict, snapshot: Snapshot) -> list[ConditionState]:
    """Return Drifted where completed partitions have left their target; partitions in flight are not judged."""
    drifted = [
        str(tp)
        for tp, entry in sorted(verdict.record.items())
        if entry.state is State.COMPLETED
        and tp not in snapshot.reassignments
        and (partition := snapshot.partition(tp)) is not None
        and partition.replicas != entry.target
    ]
    message = f"{counted(len(drifted), 'partition')} no longer at the target: {listed(drifted)}"
    return [ConditionState("Drifted", True, "MovedAfterwards", message)] if drifted else []
