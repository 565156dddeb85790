"""Decide: from the resources, their records and one snapshot to records, steps and what to say of each partition.

Pure, and safe to repeat: nothing here remembers anything but the record (which is in status) and `Recent`.
Resources are judged in the order of their age, so the older one goes first wherever two want the same partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from reassign.api.partition_reassignment import DeletionPolicy, RecordState
from reassign.core.checks.deadline import deadline_is_over
from reassign.core.model.memory import Recent
from reassign.core.model.policy import Policy
from reassign.core.model.record import Entry, Record, active, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.verdict import Stall, Verdict
from reassign.core.moves.admit import admit
from reassign.core.moves.follow import Held, next_move
from reassign.core.moves.stall import watch
from reassign.errors import Reason


def decide(
    resources: Sequence[Resource], snapshot: Snapshot, policy: Policy, recent: Recent, now: datetime
) -> list[Verdict]:
    """One verdict for each resource."""
    by_age = sorted(resources, key=lambda r: r.age_key)
    verdicts = [_advance(resource, snapshot, policy, recent, now) for resource in by_age]
    recent.cancelled &= {
        (v.resource.uid, tp) for v in verdicts for tp, e in v.record.items() if e.state is RecordState.CANCELLING
    }
    recent.tracks = watch(verdicts, snapshot, recent.tracks, recent.now, policy.throttles)
    admit(verdicts, snapshot, policy, recent)
    return verdicts


def _advance(resource: Resource, snapshot: Snapshot, policy: Policy, recent: Recent, now: datetime) -> Verdict:
    """Take every entry of the record one step further."""
    record = resource.record
    if resource.status_lost:
        record = {**_adopted(resource, snapshot, policy), **record}
    verdict = Verdict(resource, dict(record), expired=deadline_is_over(resource, now))
    if resource.deleted and (let_go := lets_go(resource, record, now)) is not None:
        verdict.release, verdict.let_go = True, let_go
        return verdict
    for tp, entry in record.items():
        move = next_move(Held(resource, tp, entry, snapshot, recent, verdict.expired, policy.undo))
        if move.entry is None:
            del verdict.record[tp]
        else:
            verdict.record[tp] = move.entry
        verdict.steps += [step for step in (move.tell, move.step) if step]
        if move.problem:
            verdict.problems[tp] = move.problem
        if move.refused:
            verdict.stalls[tp] = Stall(move.refused, overdue=False)
        if move.note:
            verdict.notes[tp] = move.note
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


def _adopted(resource: Resource, snapshot: Snapshot, policy: Policy) -> Record:
    """What a record that was lost may have said: the entries that are in flight to where the resource wants them.

    Who takes pains can make a resource that looks so: no permission, nothing adopted.
    """
    record: dict[TopicPartition, Entry] = {}
    for tp, entry in resource.asked.items():
        if policy.forbids(resource, tp):
            continue
        in_flight = snapshot.reassignments.get(tp)
        if in_flight and in_flight.target == set(entry.replicas) and tp.topic in snapshot.topics:
            record[tp] = Entry(
                snapshot.topics[tp.topic].id,
                in_flight.original,
                entry.replicas,
                RecordState.IN_FLIGHT,
                recorded(Reason.ORDER_UNKNOWN),
                entry.named,
            )
    return record
