"""Decide: from the resources, their records and one snapshot to records, steps and what to say of each partition.

Pure, and safe to repeat: nothing here remembers anything but the record (which is in status) and `Recent`.
Resources are judged in the order of their age, so the older one goes first wherever two want the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reassign.api.kafka_cluster import Limits
from reassign.api.partition_reassignment import (
    DeletionPolicy,
    PartitionEntry,
    PartitionState,
    PreferredLeader,
    RecordState,
    ReplicationFactorChange,
)
from reassign.core.budget import Budget, take_in_flight, waiting
from reassign.core.checks import Candidate, existence, first_problem
from reassign.core.follow import Held, Recent, next_move
from reassign.core.model import Alter, Cancel, Elect, Outcome, Problem, Result, Snapshot, Step, TopicPartition
from reassign.core.resource import Entry, Record, Resource, active, recorded
from reassign.errors import Reason

STATES = {
    RecordState.SUBMITTING: PartitionState.PENDING,
    RecordState.IN_FLIGHT: PartitionState.IN_FLIGHT,
    RecordState.CANCELLING: PartitionState.CANCELLING,
    RecordState.COMPLETED: PartitionState.COMPLETED,
    RecordState.CANCELLED: PartitionState.CANCELLED,
    RecordState.FAILED: PartitionState.FAILED,
}


@dataclass(slots=True)
class Verdict:
    """What is to happen to one resource.

    `waiting` are its partitions without an entry: Pending or Blocked, and why. `problems` are those of partitions
    with an entry. `release` lets go of the finalizer of a resource that is being deleted.
    """

    resource: Resource
    record: dict[TopicPartition, Entry]
    steps: list[Step] = field(default_factory=list)
    waiting: dict[TopicPartition, tuple[PartitionState, Problem | None]] = field(default_factory=dict)
    problems: dict[TopicPartition, Problem] = field(default_factory=dict)
    release: bool = False
    let_go: bool = False
    """Released at its deadline, with moves still in flight."""

    @property
    def must_record(self) -> bool:
        """Whether the record has to be in status before the steps are taken."""
        before = self.resource.record
        return any(before.get(s.tp) != self.record[s.tp] for s in self.steps if not isinstance(s, Elect))

    @property
    def unsettled(self) -> bool:
        """Whether anything may still have to be followed or cancelled: then the finalizer stays."""
        return bool(self.waiting or active(self.record))


def decide(
    resources: Sequence[Resource],
    snapshot: Snapshot,
    limits: Limits,
    hold: Problem | None,
    recent: Recent,
    now: datetime,
) -> list[Verdict]:
    """One verdict for each resource. `hold` is why nothing new may start on this cluster, if so."""
    verdicts = [_advance(resource, snapshot, recent, now) for resource in sorted(resources, key=lambda r: r.age_key)]
    recent.cancelled &= {
        (v.resource.uid, tp) for v in verdicts for tp, e in v.record.items() if e.state is RecordState.CANCELLING
    }
    holders = {tp: v.resource for v in verdicts for tp in active(v.record)}
    budget = Budget(limits.partitions_in_flight, limits.moves_per_broker)
    take_in_flight(budget, snapshot, snapshot.reassignments)
    for verdict in verdicts:
        _take_unlisted(budget, verdict.record, snapshot)
    for verdict in verdicts:
        _admit(verdict, snapshot, holders, budget, hold, recent)
    return verdicts


def _advance(resource: Resource, snapshot: Snapshot, recent: Recent, now: datetime) -> Verdict:
    """Take every entry of the record one step further."""
    record = _adopted(resource, snapshot) if resource.status_lost else resource.record
    verdict = Verdict(resource, dict(record))
    if resource.deleted and (let_go := lets_go(resource, record, now)) is not None:
        verdict.release, verdict.let_go = True, let_go
        return verdict
    for tp, entry in record.items():
        move = next_move(Held(resource, tp, entry, snapshot, recent))
        if move.entry is None:
            del verdict.record[tp]
        else:
            verdict.record[tp] = move.entry
        if move.step:
            verdict.steps.append(move.step)
        if move.problem:
            verdict.problems[tp] = move.problem
    verdict.release = resource.deleted is not None and not active(verdict.record)
    return verdict


def lets_go(resource: Resource, record: Record, now: datetime) -> bool | None:
    """Whether a resource being deleted is let go as it stands: True at its deadline, False as an orphan."""
    if resource.spec.deletion_policy is DeletionPolicy.ORPHAN:
        return False
    deadline = resource.spec.deletion_deadline_seconds
    holds = resource.status_lost or active(record)
    if holds and resource.deleted and deadline and now >= resource.deleted + timedelta(seconds=deadline):
        return True
    return None


def _adopted(resource: Resource, snapshot: Snapshot) -> Record:
    """The record of a resource whose status was lost: its entries that are in flight to where it wants them."""
    record: dict[TopicPartition, Entry] = {}
    for tp, entry in resource.asked.items():
        in_flight = snapshot.reassignments.get(tp)
        if in_flight and in_flight.target == set(entry.replicas) and tp.topic in snapshot.topics:
            record[tp] = Entry(
                snapshot.topics[tp.topic].id,
                in_flight.original,
                entry.replicas,
                RecordState.IN_FLIGHT,
                recorded(Reason.ORDER_UNKNOWN),
            )
    return record


def _take_unlisted(budget: Budget, record: Record, snapshot: Snapshot) -> None:
    """Count moves whose alter may land yet, though they are not listed."""
    for tp, entry in record.items():
        if entry.state is RecordState.SUBMITTING and tp not in snapshot.reassignments:
            budget.take(entry.added, snapshot.leader(tp))


def _admit(
    verdict: Verdict,
    snapshot: Snapshot,
    holders: dict[TopicPartition, Resource],
    budget: Budget,
    hold: Problem | None,
    recent: Recent,
) -> None:
    """Judge the partitions that have no entry yet, and start those that may."""
    resource = verdict.resource
    if resource.deleted:
        return
    own = _own_budget(verdict, snapshot)
    hold = resource.unsupported or _suspended(resource) or hold
    for tp, wanted in resource.asked.items():
        if tp in verdict.record:
            continue
        holder = holders.get(tp, resource) if resource.unsupported else holders.setdefault(tp, resource)
        claimed_by = None if holder is resource else f"{holder.namespace}/{holder.name}"
        problem = existence(tp, snapshot) or recent.refusal(tp, wanted.replicas)
        if problem:
            verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
            continue
        candidate = _candidate(resource, wanted, snapshot, claimed_by)
        ready = recent.settled(tp) and resource.has_finalizer and not resource.status_lost
        if tp not in snapshot.reassignments and candidate.partition.replicas == wanted.replicas:
            _settle_at_target(verdict, candidate, hold, ready=ready)
            continue
        if problem := first_problem(candidate):
            verdict.waiting[tp] = (PartitionState.BLOCKED, problem)
            continue
        added = set(wanted.replicas) - set(candidate.partition.replicas)
        source = candidate.partition.leader
        lack = budget.lacks(added, source) or own.lacks(added, source)
        if hold or lack or not ready:
            verdict.waiting[tp] = (PartitionState.PENDING, hold or (waiting(lack) if lack else None))
            continue
        budget.take(added, source)
        own.take(added, source)
        verdict.record[tp] = Entry(
            candidate.topic.id, candidate.partition.replicas, wanted.replicas, RecordState.SUBMITTING
        )
        allow = candidate.factor_change is ReplicationFactorChange.ALLOW
        verdict.steps.append(Alter(tp, wanted.replicas, allow))


def _own_budget(verdict: Verdict, snapshot: Snapshot) -> Budget:
    concurrency = verdict.resource.spec.concurrency
    own = Budget(concurrency.partitions if concurrency else None, concurrency.moves_per_broker if concurrency else None)
    take_in_flight(own, snapshot, active(verdict.record).keys() & snapshot.reassignments.keys())
    _take_unlisted(own, verdict.record, snapshot)
    return own


def _suspended(resource: Resource) -> Problem | None:
    if not resource.spec.suspend:
        return None
    return Problem(Reason.SUSPENDED, "spec.suspend is true; set it to false to start what is pending")


def _candidate(resource: Resource, wanted: PartitionEntry, snapshot: Snapshot, claimed_by: str | None) -> Candidate:
    topic = snapshot.topics[wanted.topic]
    return Candidate(
        tp=TopicPartition(wanted.topic, wanted.partition),
        target=wanted.replicas,
        expected=wanted.expected_replicas,
        factor_change=resource.spec.replication_factor_change,
        topic=topic,
        partition=topic.partitions[wanted.partition],
        snapshot=snapshot,
        claimed_by=claimed_by,
    )


def _settle_at_target(verdict: Verdict, candidate: Candidate, hold: Problem | None, *, ready: bool) -> None:
    """A partition that is where it should be is settled without any check; at most its leader is elected.

    While metadata may be stale it waits, and so does an election while nothing may start.
    """
    tp, partition = candidate.tp, candidate.partition
    entry = Entry(candidate.topic.id, partition.replicas, candidate.target, RecordState.COMPLETED)
    elect = verdict.resource.spec.preferred_leader is PreferredLeader.ELECT and partition.leader != candidate.target[0]
    in_sync = partition.isr >= set(candidate.target)
    if not ready or (elect and hold):
        verdict.waiting[tp] = (PartitionState.PENDING, hold)
    elif in_sync and not elect:
        verdict.record[tp] = entry
    else:
        verdict.record[tp] = entry.to(RecordState.IN_FLIGHT)
        if in_sync:
            verdict.steps.append(Elect(tp))


def fold(verdict: Verdict, outcomes: Mapping[Step, Outcome], recent: Recent, at: float) -> None:
    """Write what the steps met into the record, the problems and `recent`; `at` is when they were over.

    A step with no outcome was not taken.
    """
    for step in verdict.steps:
        outcome = outcomes.get(step)
        if outcome is None:
            continue
        recent.touch(step.tp, at, answered=outcome.result is not Result.UNKNOWN)
        if outcome.result is Result.UNKNOWN:
            verdict.problems[step.tp] = _problem(outcome)
        elif isinstance(step, Elect):
            _fold_elect(verdict, step, outcome, recent)
        elif isinstance(step, Cancel):
            _fold_cancel(verdict, step, outcome, recent, at)
        elif verdict.record[step.tp].state is RecordState.CANCELLING:
            _fold_restore(verdict, step, outcome, recent, at)
        elif outcome.result is Result.APPLIED:
            verdict.record[step.tp] = verdict.record[step.tp].to(RecordState.IN_FLIGHT)
        else:
            del verdict.record[step.tp]
            problem = recent.refuse(step.tp, step.replicas, _problem(outcome), at)
            verdict.waiting[step.tp] = (PartitionState.BLOCKED, problem)


def _problem(outcome: Outcome) -> Problem:
    return Problem(outcome.reason or Reason.REQUEST_FAILED, outcome.message)


def _fold_elect(verdict: Verdict, step: Elect, outcome: Outcome, recent: Recent) -> None:
    failed = None if outcome.result is Result.APPLIED else recorded(Reason.ELECTION_FAILED)
    entry = verdict.record[step.tp]
    verdict.record[step.tp] = entry.to(RecordState.COMPLETED, failed or entry.problem)
    recent.busy.pop(step.tp, None)


def _fold_cancel(verdict: Verdict, step: Cancel, outcome: Outcome, recent: Recent, at: float) -> None:
    if outcome.result is Result.APPLIED:
        recent.cancelled.add((verdict.resource.uid, step.tp))
    elif outcome.reason is not Reason.NO_REASSIGNMENT_IN_PROGRESS:
        verdict.problems[step.tp] = recent.refuse(step.tp, (), _problem(outcome), at)


GIVE_UP = (Reason.INVALID_REPLICA_ASSIGNMENT, Reason.UNKNOWN_TOPIC_OR_PARTITION)
"""Refusals of a restore that no retry mends: a broker of the original ones, or the topic, is gone."""


def _fold_restore(verdict: Verdict, step: Alter, outcome: Outcome, recent: Recent, at: float) -> None:
    refused = outcome.result is not Result.APPLIED
    if refused and outcome.reason not in GIVE_UP:
        verdict.problems[step.tp] = recent.refuse(step.tp, step.replicas, _problem(outcome), at)
        return
    recent.cancelled.discard((verdict.resource.uid, step.tp))
    entry = verdict.record[step.tp]
    if verdict.resource.deleted:
        failed = recorded(Reason.INVALID_REPLICA_ASSIGNMENT) if refused else None
        verdict.record[step.tp] = entry.to(RecordState.CANCELLED, failed or entry.problem)
    else:
        del verdict.record[step.tp]
