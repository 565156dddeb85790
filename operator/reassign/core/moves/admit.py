"""Admit: judge the partitions that have no entry yet, and start those that there is room for.

Room goes to the resource that has the fewest partitions in flight, so that an old giant does not starve a small new
one, and within a resource to the partition with the most bytes to copy, so that the end is not one long tail.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reassign.api.partition_reassignment import (
    PartitionEntry,
    PartitionState,
    PreferredLeader,
    RecordState,
    ReplicationFactorChange,
)
from reassign.core.checks.budget import Budget, stuck_sources, take_in_flight, unlisted, waiting
from reassign.core.checks.chain import Candidate, claimed, existence, first_problem
from reassign.core.checks.disk import Room
from reassign.core.model.log_dir_reports import FRESH_SECONDS
from reassign.core.model.log_dirs import bytes_to_copy
from reassign.core.model.memory import Recent
from reassign.core.model.policy import Policy
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, Record, active, failed
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs, Elect, Judged
from reassign.core.model.verdict import Verdict
from reassign.core.moves.dry_run import rehearse
from reassign.core.moves.foreign import fails, supersede, waits_for_idle
from reassign.errors import Reason


@dataclass(slots=True)
class Queue:
    """The partitions of one resource that may start, and the resource's own budget."""

    verdict: Verdict
    own: Budget
    candidates: Iterator[Candidate]


def admit(verdicts: Sequence[Verdict], snapshot: Snapshot, policy: Policy, recent: Recent) -> None:
    """Judge what waits; `verdicts` come in the order of their resources' age: the older one claims a partition."""
    # what a status still says is held is held: killed now, the next process would read that
    held = (
        (tp, v.resource)
        for v in verdicts
        for record in (v.resource.record, v.record)
        for tp, entry in active(record).items()
        if not (entry.stays or snapshot.lost(tp, entry.topic_id))
    )
    holders = dict(held)
    stuck = stuck_sources((tp for v in verdicts for tp in v.stalls), snapshot)
    budget = Budget(policy.limits.partitions_in_flight, policy.limits.moves_per_broker, stuck=stuck)
    take_in_flight(budget, snapshot, snapshot.reassignments)
    room = Room.of(snapshot, policy.limits.min_free_disk_percent, recent.answers.fresh(recent.now))
    for verdict in verdicts:
        _take_unlisted(budget, verdict.record, snapshot)
        _expect_unlisted(room, verdict.record, snapshot)
    queues = [
        Queue(verdict, _own_budget(verdict, snapshot, stuck), _largest_first(candidates, snapshot))
        for verdict in verdicts
        if (candidates := _judged(verdict, snapshot, holders, policy, recent, waits_for_idle(verdict, budget), room))
    ]
    _start(queues, budget, room)


def _start(queues: Sequence[Queue], budget: Budget, room: Room) -> None:
    waiting_queues = [(queue.own.partitions, age, queue) for age, queue in enumerate(queues)]
    heapq.heapify(waiting_queues)
    while waiting_queues:
        _, age, queue = heapq.heappop(waiting_queues)
        if candidate := next(queue.candidates, None):
            _start_one(queue, candidate, budget, room)
            heapq.heappush(waiting_queues, (queue.own.partitions, age, queue))


def _start_one(queue: Queue, candidate: Candidate, budget: Budget, room: Room) -> None:
    tp, source = candidate.tp, candidate.partition.leader
    if waits := waits_for_idle(queue.verdict, budget):  # another one may have begun in this very tick
        queue.verdict.waiting[tp] = (PartitionState.PENDING, waits)
        return
    if problem := room.lacks(candidate):
        queue.verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
        return
    if candidate.in_flight:
        supersede(queue.verdict, candidate, budget, queue.own)
        return
    if lack := queue.own.lacks(candidate.added, source) or budget.lacks(candidate.added, source):
        queue.verdict.waiting[tp] = (PartitionState.PENDING, waiting(lack))
        return
    room.take(candidate)
    budget.take(candidate.added, source)
    queue.own.take(candidate.added, source)
    queue.verdict.record[tp] = _entry(candidate, RecordState.SUBMITTING)
    if to_come := tuple((b, p) for b, p in sorted(candidate.log_dirs.items()) if b in candidate.added):
        queue.verdict.steps.append(AlterLogDirs(tp, to_come))
    allow = candidate.factor_change is ReplicationFactorChange.ALLOW
    judged = Judged(candidate.topic.id, frozenset(candidate.current))
    queue.verdict.steps.append(Alter(tp, candidate.target, allow, judged))


def _entry(candidate: Candidate, state: RecordState) -> Entry:
    log_dirs = tuple(sorted(candidate.log_dirs.items()))
    return Entry(candidate.topic.id, candidate.partition.replicas, candidate.target, state, log_dirs=log_dirs)


def _largest_first(candidates: Sequence[Candidate], snapshot: Snapshot) -> Iterator[Candidate]:
    def size(candidate: Candidate) -> int:
        found = bytes_to_copy(candidate.tp, None, candidate.target, candidate.log_dirs.items(), snapshot)
        return found.total if found else 0

    return iter(sorted(candidates, key=size, reverse=True))


def _judged(
    verdict: Verdict,
    snapshot: Snapshot,
    holders: dict[TopicPartition, Resource],
    policy: Policy,
    recent: Recent,
    not_idle: Problem | None,
    room: Room,
) -> list[Candidate]:
    """Say of each partition without an entry why it waits, or that it is done; the others may start now."""
    resource = verdict.resource
    if resource.deleted:
        return []
    hold = resource.unsupported or _suspended(resource) or policy.hold or not_idle
    candidates: list[Candidate] = []
    claims = not (resource.unsupported or resource.dry_run or resource.spec.suspend)
    room = room.copy() if resource.dry_run else room
    for tp, wanted in resource.asked.items():
        if tp in verdict.record:
            continue
        if problem := policy.forbids(resource, tp):
            verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
            continue
        holder = holders.setdefault(tp, resource) if claims else holders.get(tp, resource)
        claimed_by = None if holder is resource else f"{holder.namespace}/{holder.name}"
        if problem := existence(tp, snapshot):
            if verdict.expired:
                verdict.record[tp] = failed(wanted, Reason.DEADLINE_EXCEEDED)
            else:
                verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
            continue
        candidate = _candidate(resource, wanted, snapshot, claimed_by)
        if resource.dry_run:
            verdict.waiting[tp] = rehearse(candidate, room)
            continue
        # what is in flight is never stale
        sure = bool(candidate.in_flight) or recent.settled(tp)
        ready = sure and resource.has_finalizer and not resource.status_lost
        refused = _refusal(candidate, recent)
        if candidate.done:
            _settle_at_target(verdict, candidate, hold, ready=ready)
        elif verdict.expired:
            verdict.record[tp] = failed(wanted, Reason.DEADLINE_EXCEEDED, candidate.topic.id, candidate.current)
        elif problem := first_problem(candidate) or refused:
            if ready and not hold and fails(candidate, problem):
                verdict.record[tp] = failed(wanted, problem.reason, candidate.topic.id, candidate.current)
            else:
                verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
        elif hold or not ready:
            verdict.waiting[tp] = (PartitionState.PENDING, hold)
        elif silent := room.silent(candidate):
            lasts = recent.now - recent.silence.setdefault(tp, recent.now) >= FRESH_SECONDS
            verdict.waiting[tp] = (PartitionState.BLOCKED if lasts else PartitionState.PENDING, silent)
        else:
            recent.silence.pop(tp, None)
            candidates.append(candidate)
    return candidates


def _refusal(candidate: Candidate, recent: Recent) -> Problem | None:
    """Why brokers, or others who insist, keep it from being tried now."""
    tp, move = candidate.tp, candidate.in_flight
    if refusal := recent.refusal(tp, candidate.target):
        return refusal
    if candidate.supersedes and move:
        return recent.refusal(tp, ()) or recent.refusal(tp, move.target)
    return None


def _take_unlisted(budget: Budget, record: Record, snapshot: Snapshot) -> None:
    for tp, entry in unlisted(record, snapshot).items():
        if entry.may_land:
            budget.take(entry.added, snapshot.leader(tp))
        else:
            budget.take((), None)


def _expect_unlisted(room: Room, record: Record, snapshot: Snapshot) -> None:
    for tp, entry in unlisted(record, snapshot).items():
        if entry.may_land:
            room.expect(tp, entry.added, dict(entry.log_dirs))


def _own_budget(verdict: Verdict, snapshot: Snapshot, stuck: frozenset[int]) -> Budget:
    concurrency = verdict.resource.spec.concurrency
    own = Budget(
        concurrency.partitions if concurrency else None,
        concurrency.moves_per_broker if concurrency else None,
        stuck=stuck,
    )
    take_in_flight(own, snapshot, active(verdict.record).keys() & snapshot.reassignments.keys())
    _take_unlisted(own, verdict.record, snapshot)
    return own


def _suspended(resource: Resource) -> Problem | None:
    if not resource.spec.suspend:
        return None
    if resource.plan:
        what = f"the ReassignmentPlan {resource.plan} lets it go in its turn, once it is approved"
    else:
        what = "set it to false to start what is pending"
    return Problem(Reason.SUSPENDED, f"spec.suspend is true; {what}")


def _candidate(resource: Resource, wanted: PartitionEntry, snapshot: Snapshot, claimed_by: str | None) -> Candidate:
    topic = snapshot.topics[wanted.topic]
    return Candidate(
        tp=TopicPartition(wanted.topic, wanted.partition),
        target=wanted.replicas,
        expected=wanted.expected_replicas,
        factor_change=resource.spec.replication_factor_change,
        when_in_flight=resource.spec.when_in_flight,
        topic=topic,
        partition=topic.partitions[wanted.partition],
        snapshot=snapshot,
        claimed_by=claimed_by,
        log_dirs=dict(wanted.named),
    )


def _settle_at_target(verdict: Verdict, candidate: Candidate, hold: Problem | None, *, ready: bool) -> None:
    """A partition that is where it should be is settled without any check; at most its leader is elected.

    While metadata may be stale it waits, and so does an election while nothing may start.
    """
    tp, partition = candidate.tp, candidate.partition
    entry = _entry(candidate, RecordState.COMPLETED)
    elect = verdict.resource.spec.preferred_leader is PreferredLeader.ELECT and partition.leader != candidate.target[0]
    in_sync = partition.isr >= set(candidate.target)
    if not ready or (elect and hold):
        verdict.waiting[tp] = (PartitionState.PENDING, hold)
    elif in_sync and not elect:
        verdict.record[tp] = entry
    elif problem := claimed(candidate):  # another one may move it away before this one is settled
        verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
    else:
        verdict.record[tp] = entry.to(RecordState.IN_FLIGHT)
        if in_sync:
            verdict.steps.append(Elect(tp))
