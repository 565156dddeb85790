"""Report: from a verdict and the snapshot to the status of a resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reassign.api.limits import MAX_DETAILS
from reassign.api.partition_reassignment import (
    PartitionDetail,
    PartitionReassignmentStatus,
    PartitionState,
    Progress,
    RecordState,
)
from reassign.core.checks.deadline import begins_anew, start_time
from reassign.core.model.log_dirs import bytes_to_copy
from reassign.core.model.problem import Problem
from reassign.core.model.progress import Bytes, completion_time, duration, percent, rate, together
from reassign.core.model.record import active, write_record
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.verdict import STATES, Verdict
from reassign.core.report.conditions import ConditionState, conditions
from reassign.core.report.dry_run import Conclusion, conclude, unless_only_grown
from reassign.core.report.events import CANCELLING, COSTS, IN_FLIGHT
from reassign.errors import Reason

DETAIL_ORDER = (
    PartitionState.FAILED,
    PartitionState.IN_FLIGHT,
    PartitionState.CANCELLING,
    PartitionState.BLOCKED,
    PartitionState.CANCELLED,
    PartitionState.PENDING,
    PartitionState.COMPLETED,
)
UNSETTLED = (PartitionState.PENDING, PartitionState.IN_FLIGHT, PartitionState.CANCELLING)
UNCOUNTED = (PartitionState.FAILED, PartitionState.CANCELLING, PartitionState.CANCELLED)
"""States whose bytes are not part of the progress."""
FOR_SOMEBODY = (Reason.DUPLICATE_CLUSTER, Reason.CLUSTER_DELETED, Reason.INTERNAL_ERROR)
"""Why partitions wait for what only somebody can end."""
STANDS_STILL = (PartitionState.BLOCKED, PartitionState.FAILED, PartitionState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Line:
    """One partition's state, before it is cut to what status shows."""

    tp: TopicPartition
    state: PartitionState
    problem: Problem | None
    bytes: Bytes | None


def report(
    verdict: Verdict, snapshot: Snapshot, samples: Sequence[tuple[float, int]], now: datetime
) -> PartitionReassignmentStatus:
    """The status of a resource. `samples` are (seconds, bytes copied), oldest first, for the rate."""
    resource, before = verdict.resource, verdict.resource.status
    held = active(verdict.record)
    targets = {**{tp: entry.target for tp, entry in verdict.record.items()}, **resource.wanted}
    costs = _costs_said(before)
    lines = [_line(verdict, tp, target, snapshot, costs.get(tp)) for tp, target in targets.items()]
    counts = Counter(line.state for line in lines)
    progress = _progress(verdict, lines, counts, samples, now)
    flights = [r for tp, r in snapshot.reassignments.items() if tp in held]
    conclusion = conclude(verdict, snapshot) if resource.dry_run and not resource.unsupported else None
    aspects = _checked(conclusion) if conclusion else _aspects(verdict, snapshot, lines, counts)
    settled = not resource.dry_run and not any(counts[state] for state in (*UNSETTLED, PartitionState.BLOCKED))
    ended = None if begins_anew(resource) else before.completion_time
    status = PartitionReassignmentStatus(
        observed_generation=resource.generation,
        conditions=conditions(before.conditions, aspects, resource.generation, now),
        start_time=start_time(resource, now),
        completion_time=(ended or now) if settled else None,
        summary=conclusion.summary if conclusion else _summary(counts, progress, len(lines), now),
        progress=progress,
        adding=sum(len(r.adding) for r in flights),
        removing=sum(len(r.removing) for r in flights),
        partitions=tuple(
            _detail(verdict, line, targets[line.tp], snapshot)
            for line in sorted(lines, key=lambda x: (DETAIL_ORDER.index(x.state), x.tp))[:MAX_DETAILS]
        ),
        record=write_record(verdict.record),
    )
    return unless_only_grown(before, status) if resource.dry_run else status


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
    said = problem or verdict.notes.get(tp) or (stall.problem if stall and stall.overdue else None)
    said = said or (cost if entry.state is RecordState.CANCELLING else None)
    return Line(tp, STATES[entry.state], said or (stall.problem if stall else entry.problem), size)


def _costs_said(before: PartitionReassignmentStatus) -> dict[TopicPartition, Problem]:
    """What cancels throw away. It can be told only while the move is listed, and stands until it is confirmed."""
    return {
        TopicPartition(d.topic, d.partition): Problem(Reason(d.reason), d.message)
        for d in before.partitions
        if d.reason in COSTS and d.message
    }


def _progress(
    verdict: Verdict,
    lines: Sequence[Line],
    counts: Mapping[PartitionState, int],
    samples: Sequence[tuple[float, int]],
    now: datetime,
) -> Progress:
    resource = verdict.resource
    before = resource.status.progress
    completed, partitions = counts[PartitionState.COMPLETED], len(lines)
    numbers = Progress(
        partitions_total=partitions,
        partitions_completed=completed,
        partitions_in_flight=counts[PartitionState.IN_FLIGHT],
        partitions_pending=counts[PartitionState.PENDING],
        partitions_blocked=counts[PartitionState.BLOCKED],
        partitions_failed=counts[PartitionState.FAILED],
        partitions_cancelled=counts[PartitionState.CANCELLING] + counts[PartitionState.CANCELLED],
    )
    goes_on = resource.up_to_date and not resource.deleted and not _removed(verdict)
    known = [line.bytes for line in lines if line.bytes and line.state not in UNCOUNTED]
    if before and not resource.dry_run and _only_grown(resource, before, numbers):
        kept = before.model_dump(include={"bytes_total", "bytes_copied", "percent"})
        return numbers.model_copy(update=kept)
    said = Bytes(before.bytes_copied or 0, before.bytes_total or 0) if before and goes_on else Bytes(0, 0)
    shown = together(known, said.copied) if known else said
    per_second = rate(samples) if counts[PartitionState.IN_FLIGHT] else None
    return numbers.model_copy(
        update={
            "bytes_total": shown.total if known or shown.total else None,
            "bytes_copied": shown.copied if known or shown.total else None,
            "percent": percent(shown.copied, shown.total, completed, partitions) if partitions else None,
            "bytes_per_second": per_second,
            "estimated_completion_time": completion_time(shown.total - shown.copied, per_second, now),
        }
    )


def _removed(verdict: Verdict) -> bool:
    """Whether a partition that was counted no longer is: its bytes go out of the total."""
    before, now = (
        {tp for tp, entry in record.items() if STATES[entry.state] not in UNCOUNTED}
        for record in (verdict.resource.record, verdict.record)
    )
    return not before <= now


def _only_grown(resource: Resource, before: Progress, now: Progress) -> bool:
    """Whether nothing has moved: that topics grow meanwhile is no progress."""
    in_flight = before.partitions_in_flight or now.partitions_in_flight
    idle = not in_flight and before.partitions_completed == now.partitions_completed
    return resource.up_to_date and idle and before.bytes_total is not None


def _summary(counts: Mapping[PartitionState, int], progress: Progress, partitions: int, now: datetime) -> str:
    parts = [f"{counts[PartitionState.COMPLETED]}/{partitions} partitions"]
    if progress.percent is not None:
        parts.append(f"{progress.percent} %")
    if progress.estimated_completion_time:
        left = (progress.estimated_completion_time - now).total_seconds()
        parts.append(f"about {duration(max(left, 0))} left")
    for state in (PartitionState.BLOCKED, PartitionState.FAILED, PartitionState.CANCELLING, PartitionState.CANCELLED):
        if counts[state]:
            parts.append(f"{counts[state]} {state.lower()}")
    return ", ".join(parts)


def _aspects(
    verdict: Verdict, snapshot: Snapshot, lines: Sequence[Line], counts: Mapping[PartitionState, int]
) -> list[ConditionState]:
    resource, total = verdict.resource, len(lines)
    done = f"{counts[PartitionState.COMPLETED]} of {total} partitions are at their target"
    stuck = sorted((line.tp, line.problem) for line in lines if line.problem and line.state in STANDS_STILL)
    first_at, first = next(iter(stuck), (None, None))
    because = f"{done}; {first_at}: {first.message}" if first else done
    if resource.deleted:
        held = next((Problem(p.reason, f"{tp}: {p.message}") for tp, p in sorted(verdict.problems.items())), None)
        held = held or _stalled(verdict)
        message = f"partitions going back to their original replicas: {counts[PartitionState.CANCELLING]}"
        return _in_progress(CANCELLING, f"{message}; {held.message}" if held else message, held)
    standing = resource.unsupported or _problem(lines, PartitionState.PENDING, FOR_SOMEBODY)
    if counts[PartitionState.IN_FLIGHT] or counts[PartitionState.CANCELLING] or _goes_on(verdict):
        cancelling = (line.tp for line in lines if line.state is PartitionState.CANCELLING)
        held = next((verdict.problems[tp] for tp in cancelling if tp in verdict.problems), None)
        held = held or _stalled(verdict) or standing
        return _in_progress(IN_FLIGHT, f"{because}; {held.message}" if held else because, held)
    if standing:
        return _unready("Stalled", standing.reason, standing.message)
    if counts[PartitionState.PENDING]:
        if waits := _problem(lines, PartitionState.PENDING):
            return _in_progress(waits.reason, f"{because}; {waits.message}")
        return _in_progress("PartitionsPending", because)
    if counts[PartitionState.BLOCKED] and first:
        return _unready("Stalled", first.reason, because)
    drift = _drift(verdict, snapshot)
    if counts[PartitionState.FAILED] or counts[PartitionState.CANCELLED]:
        return [*_unready("Failed", first.reason if first else "Failed", because), *drift]
    message = f"all {total} partitions are at their target, in sync"
    return [
        ConditionState("Ready", True, "Completed", message),
        ConditionState("Succeeded", True, "Completed", message),
        *drift,
    ]


def _goes_on(verdict: Verdict) -> bool:
    """Whether one batch follows another: what is about to be altered is no pause between them."""
    said = {(c.type, c.reason) for c in verdict.resource.status.conditions}
    return ("Reconciling", IN_FLIGHT) in said and any(
        entry.state is RecordState.SUBMITTING for entry in verdict.record.values()
    )


def _checked(conclusion: Conclusion) -> list[ConditionState]:
    said = conclusion.passed, conclusion.reason, conclusion.message
    aspects = [ConditionState("Ready", *said), ConditionState("Checked", *said)]
    return aspects if conclusion.passed else [*aspects, ConditionState("Stalled", True, *said[1:])]


def _stalled(verdict: Verdict) -> Problem | None:
    overdue = sorted((tp, stall.problem) for tp, stall in verdict.stalls.items() if stall.overdue)
    if not overdue:
        return None
    tp, problem = overdue[0]
    since = duration(verdict.resource.spec.stall_timeout_seconds)
    return Problem(
        problem.reason,
        f"partitions in flight that have not come nearer for {since}: {len(overdue)}; {tp}: {problem.message}",
    )


def _problem(
    lines: Sequence[Line], state: PartitionState, reasons: Collection[Reason] = frozenset(Reason)
) -> Problem | None:
    return next((p for line in lines if (p := line.problem) and line.state is state and p.reason in reasons), None)


def _in_progress(reason: str, message: str, held: Problem | None = None) -> list[ConditionState]:
    aspects = [
        ConditionState("Ready", False, held.reason if held else reason, message),
        ConditionState("Succeeded", False, reason, message),
        ConditionState("Reconciling", True, reason, message),
    ]
    if held:
        aspects.append(ConditionState("Stalled", True, held.reason, held.message))
    return aspects


def _unready(kind: str, reason: str, message: str) -> list[ConditionState]:
    return [
        ConditionState("Ready", False, reason, message),
        ConditionState("Succeeded", False, reason, message),
        ConditionState(kind, True, reason, message),
    ]


def _drift(verdict: Verdict, snapshot: Snapshot) -> list[ConditionState]:
    """Completed partitions that are no longer where they were brought; those moving right now are not judged."""
    drifted = [
        str(tp)
        for tp, entry in sorted(verdict.record.items())
        if entry.state is RecordState.COMPLETED
        and tp not in snapshot.reassignments
        and (partition := snapshot.partition(tp)) is not None
        and partition.replicas != entry.target
    ]
    message = f"{len(drifted)} partitions left their target: {', '.join(drifted[:5])}"
    return [ConditionState("Drifted", True, "MovedAfterwards", message)] if drifted else []


def _detail(verdict: Verdict, line: Line, target: Sequence[int], snapshot: Snapshot) -> PartitionDetail:
    entry = verdict.record.get(line.tp)
    partition = snapshot.partition(line.tp)
    in_flight = snapshot.reassignments.get(line.tp)
    current = in_flight.replicas if in_flight else partition.replicas if partition else None
    moving = line.state in (PartitionState.IN_FLIGHT, PartitionState.CANCELLING)
    return PartitionDetail(
        topic=line.tp.topic,
        partition=line.tp.partition,
        state=line.state,
        original_replicas=entry.original if entry else None,
        current_replicas=current,
        target_replicas=tuple(target),
        adding_replicas=in_flight.adding if in_flight else None,
        removing_replicas=in_flight.removing if in_flight else None,
        bytes_copied=line.bytes.copied if line.bytes and moving else None,
        bytes_total=line.bytes.total if line.bytes and moving else None,
        reason=line.problem.reason if line.problem else None,
        message=line.problem.message if line.problem else None,
    )


def blind(resource: Resource, problem: Problem, now: datetime) -> PartitionReassignmentStatus:
    """The status of a resource whose cluster cannot be seen: what was known stays, and why it stands still.

    A status that was lost is still to be rebuilt, once the cluster is seen: it has no observedGeneration until then.
    """
    before = resource.status
    if resource.deleted:
        message = f"the cancel waits: {problem.message}. deletionPolicy: Orphan lets go of the resource as it is"
        aspects = _in_progress(CANCELLING, message, Problem(problem.reason, message))
    else:
        aspects = _unready("Stalled", problem.reason, problem.message)
    return before.model_copy(
        update={
            "observed_generation": None if resource.status_lost else resource.generation,
            "start_time": None if begins_anew(resource) else before.start_time,
            "completion_time": before.completion_time if resource.up_to_date else None,
            "conditions": conditions(before.conditions, aspects, resource.generation, now),
        }
    )
