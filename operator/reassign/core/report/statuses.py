"""Report: from a verdict and the snapshot to the status of a resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from reassign.api.common import Condition
from reassign.api.limits import MAX_DETAILS, MAX_SAMPLES
from reassign.api.partition_reassignment import (
    CopiedSample,
    PartitionDetail,
    PartitionReassignmentStatus,
    PartitionState,
    Progress,
)
from reassign.core.checks.deadline import begins_anew, start_time
from reassign.core.model.problem import Problem
from reassign.core.model.progress import CopyProgress, completion_time, duration, percent, rate, together
from reassign.core.model.record import Entry, active
from reassign.core.model.resource import Resource
from reassign.core.model.row import STATUS
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.verdict import Verdict
from reassign.core.report.conditions import ConditionState, conditions
from reassign.core.report.dry_run import conclude, unless_only_grown
from reassign.core.report.lines import Line, lines_of
from reassign.core.report.reassignment_conditions import checked, states_of, unseen

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


def comes_first(resource: Resource) -> bool:
    """Whether the status is written before the record: the first one, and one that starts the clock anew."""
    return not resource.deleted and (resource.status.observed_generation is None or begins_anew(resource))


def report(
    verdict: Verdict, snapshot: Snapshot, samples: Sequence[tuple[float, int]], now: datetime
) -> PartitionReassignmentStatus:
    """Return the status of a resource; `samples` are (seconds, bytes copied), oldest first, for the rate."""
    resource, before = verdict.resource, verdict.resource.status
    targets = targets_of(verdict)
    lines = lines_of(verdict, targets, snapshot)
    counts = Counter(line.state for line in lines)
    progress = _progress(verdict, lines, counts, samples, now)
    flights = [_replicas_in_flight(tp, entry, snapshot) for tp, entry in active(verdict.record).items()]
    conclusion = conclude(verdict, snapshot) if resource.dry_run and not resource.unsupported else None
    states = checked(conclusion) if conclusion else states_of(verdict, snapshot, lines, counts)
    settled = not resource.dry_run and not any(counts[state] for state in (*UNSETTLED, PartitionState.BLOCKED))
    ended = None if begins_anew(resource) else before.completion_time
    status = PartitionReassignmentStatus(
        observed_generation=resource.generation,
        conditions=_conditions(resource, states, now),
        start_time=start_time(resource, now),
        completion_time=(ended or now) if settled else None,
        summary=conclusion.summary if conclusion else _summary(counts, progress, lines, now),
        progress=progress,
        samples=_sampled(resource, progress, now),
        adding=sum(len(adding) for adding, _ in flights),
        removing=sum(len(removing) for _, removing in flights),
        partitions=tuple(
            _detail(verdict, line, targets[line.tp], snapshot)
            for line in sorted(lines, key=lambda x: (DETAIL_ORDER.index(x.state), x.tp))[:MAX_DETAILS]
        ),
    )
    return unless_only_grown(before, status) if resource.dry_run else status


def targets_of(verdict: Verdict) -> Mapping[TopicPartition, Sequence[int]]:
    """Return the target replicas of each partition that a resource names, or has named."""
    recorded = {tp: entry.target for tp, entry in verdict.record.items()}
    return recorded | dict(verdict.resource.wanted)


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
    reported = (
        CopyProgress(before.bytes_copied or 0, before.bytes_total or 0) if before and goes_on else CopyProgress(0, 0)
    )
    shown = together(known, reported.copied) if known else reported
    per_second = rate(samples) if counts[PartitionState.IN_FLIGHT] else None
    to_come = sum(line.bytes.total - line.bytes.copied for line in lines if line.bytes and line.goes_on)
    return numbers.model_copy(
        update={
            "bytes_total": shown.total if known or shown.total else None,
            "bytes_copied": shown.copied if known or shown.total else None,
            "percent": percent(shown.copied, shown.total, completed, partitions) if partitions else None,
            "bytes_per_second": per_second,
            "estimated_completion_time": completion_time(to_come, per_second, now),
        }
    )


def _sampled(resource: Resource, progress: Progress, now: datetime) -> tuple[CopiedSample, ...]:
    """Return the samples, with one more where the bytes have changed, or moves have begun or ended.

    The status is written then in any case. Of too many samples, the one whose neighbours are nearest to each other
    goes.
    """
    status, copied = resource.status, progress.bytes_copied
    samples = () if begins_anew(resource) else status.samples
    moving = bool(progress.partitions_in_flight)
    if copied is None or not (moving or samples):
        return samples
    moved = bool(status.progress and status.progress.partitions_in_flight)
    if samples and samples[-1].bytes_copied == copied and moving is moved:
        return samples
    samples = (*samples, CopiedSample(time=now, bytes_copied=copied))
    if len(samples) <= MAX_SAMPLES:
        return samples
    gaps = [
        (after.time - before.time, i + 1) for i, (before, after) in enumerate(zip(samples, samples[2:], strict=False))
    ]
    _, least = min(gaps)
    return samples[:least] + samples[least + 1 :]


def _removed(verdict: Verdict) -> bool:
    """Whether a partition that was counted no longer is: its bytes go out of the total."""
    before, now = (
        {tp for tp, entry in record.items() if STATUS[entry.state] not in UNCOUNTED}
        for record in (verdict.resource.record, verdict.record)
    )
    return not before <= now


def _only_grown(resource: Resource, before: Progress, now: Progress) -> bool:
    """Whether nothing has moved: that topics grow meanwhile is no progress."""
    in_flight = before.partitions_in_flight or now.partitions_in_flight
    idle = not in_flight and before.partitions_completed == now.partitions_completed
    return resource.up_to_date and idle and before.bytes_total is not None


def _summary(counts: Mapping[PartitionState, int], progress: Progress, lines: Sequence[Line], now: datetime) -> str:
    parts = [f"{counts[PartitionState.COMPLETED]}/{len(lines)} partitions"]
    if progress.percent is not None:
        parts.append(f"{progress.percent} %")
    if progress.estimated_completion_time:
        left = (progress.estimated_completion_time - now).total_seconds()
        waits = any(
            line.state in (PartitionState.PENDING, PartitionState.BLOCKED) and not line.goes_on for line in lines
        )
        parts.append(f"about {duration(max(left, 0))} left" + (" for what does not wait" if waits else ""))
    for state in (PartitionState.BLOCKED, PartitionState.FAILED, PartitionState.CANCELLING, PartitionState.CANCELLED):
        if counts[state]:
            parts.append(f"{counts[state]} {state.lower()}")
    return ", ".join(parts)


def _replicas_in_flight(
    tp: TopicPartition, entry: Entry | None, snapshot: Snapshot
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the replicas that are being added, and those being removed.

    Of a move that the brokers have accepted since the cluster was observed, these are what it will add and remove.
    """
    if listed := snapshot.reassignments.get(tp):
        return listed.adding, listed.removing
    partition = snapshot.partition(tp)
    if entry is None or entry.state is not State.IN_FLIGHT or partition is None:
        return (), ()
    there = partition.replicas
    return (
        tuple(b for b in entry.target if b not in there and b not in entry.original),
        tuple(b for b in entry.original if b in there and b not in entry.target),
    )


def _detail(verdict: Verdict, line: Line, target: Sequence[int], snapshot: Snapshot) -> PartitionDetail:
    entry = verdict.record.get(line.tp)
    partition = snapshot.partition(line.tp)
    in_flight = snapshot.reassignments.get(line.tp)
    current = in_flight.replicas if in_flight else partition.replicas if partition else None
    adding, removing = _replicas_in_flight(line.tp, entry, snapshot)
    moving = line.state in (PartitionState.IN_FLIGHT, PartitionState.CANCELLING)
    return PartitionDetail(
        topic=line.tp.topic,
        partition=line.tp.partition,
        state=line.state,
        original_replicas=entry.original if entry else None,
        current_replicas=current,
        target_replicas=tuple(target),
        adding_replicas=adding if in_flight else adding or None,
        removing_replicas=removing if in_flight else removing or None,
        bytes_copied=line.bytes.copied if line.bytes and moving else None,
        bytes_total=line.bytes.total if line.bytes and moving else None,
        start_time=entry.began if entry else None,
        completion_time=entry.ended if entry else None,
        waited_for=entry.waited_for if entry else None,
        reason=line.problem.reason if line.problem else None,
        message=line.problem.message if line.problem else None,
    )


def blind(resource: Resource, problem: Problem, now: datetime) -> PartitionReassignmentStatus:
    """Return the status of a resource whose cluster cannot be seen: what was known stays, and why it stands still."""
    before = resource.status
    return before.model_copy(
        update={
            "observed_generation": resource.generation,
            "start_time": None if begins_anew(resource) else before.start_time,
            "completion_time": before.completion_time if resource.up_to_date else None,
            "conditions": _conditions(resource, unseen(resource, problem), now),
        }
    )


def _conditions(resource: Resource, states: Sequence[ConditionState], now: datetime) -> tuple[Condition, ...]:
    timeout = resource.spec.stall_timeout_seconds
    return conditions(resource.status.conditions, states, resource.generation, now, timeout)
