"""Undo: bring back what is no longer wanted, and release a resource that is being deleted.

A change in flight is never an override. The move is cancelled first. When it is no longer listed, the order is
restored: a cancel of [1,2,3] → [4,2,3] leaves [2,3,1]. Only then is a new target, if there is one, submitted.
Undo comes first, and no other stage holds it up. Only the safety of a cancel delays it (`CancelUnsafe`), and with
CancelAll the copy of what it cancels, which a resource that is being deleted does not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.api.partition_reassignment import DeletionPolicy
from reassign.core.checks.in_sync import cancel_problem
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, Record, active, recorded_problem
from reassign.core.model.resource import Resource
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.snapshot import Reassignment, Snapshot
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel, Judged
from reassign.core.model.verdict import Verdict
from reassign.core.partition.situation import Situation, situations, with_true_original
from reassign.errors import Reason
from reassign.text import amount, named_brokers, plural


def undo(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules, now: datetime) -> Verdict:
    """Take every partition that is to go back one step further."""
    resource = verdict.resource
    if resource.deleted and (abandoned := released(resource, verdict.record, now)) is not None:
        return replace(verdict, release=True, abandoned=abandoned)
    found = situations(verdict, snapshot, recent, rules)
    return verdict.with_rows({s.tp: _bring_back(s) for s in found if must_go_back(s)})


def release(verdict: Verdict) -> Verdict:
    """Release a resource that is being deleted once nothing of it is in flight."""
    gone = verdict.resource.deleted is not None and not active(verdict.record)
    return replace(verdict, release=verdict.release or gone)


def released(resource: Resource, record: Record, now: datetime) -> bool | None:
    """Whether a resource being deleted is released as it stands: True at its deadline, False as an orphan."""
    if resource.spec.deletion_policy is DeletionPolicy.ORPHAN:
        return False
    deadline = resource.spec.deletion_deadline_seconds
    holds = resource.record_lost or active(record)
    if holds and resource.deleted and deadline and now - resource.deleted >= timedelta(seconds=deadline):
        return True
    return None


def must_go_back(s: Situation) -> bool:
    """Whether a partition is on its way back, or is to be.

    Its resource is being deleted, its target is another one now, or the brake is set. One that is Settling or
    Superseding never does: nothing of our own is in flight for it.
    """
    if s.entry.state in (State.SETTLING, State.SUPERSEDING):
        return False
    unwanted = s.target != s.entry.target or (s.rules.undo and not (s.at_target and s.directed().done))
    return s.entry.state is State.CANCELLING or (s.entry.active and unwanted)


def _bring_back(s: Situation) -> Row:
    """Bring a partition back and end its copies between log directories.

    The entry stays until both have ended: a broker that is down would continue its copy after a restart.
    """
    row = _to_original(s)
    if s.lost():
        return row
    left = s.undirected()
    if not (left.done or (row.entry and row.entry.active)):
        row = Row(_cancelling(s))
    return left.beside(row)


def _to_original(s: Situation) -> Row:
    """Bring the replicas back: cancel, see that it is no longer listed, and restore the order."""
    entry = _cancelling(s)
    if problem := s.lost():
        return _end(s, problem) if s.nothing_in_flight(problem) else Row(entry).with_saying(SayingKind.PROBLEM, problem)
    if s.listed:
        return _cancel(s, entry, s.listed)
    replicas = s.partition.replicas
    same = set(replicas) == set(entry.original)
    confirmed = (s.resource.uid, s.tp) in s.recent.cancelled
    if not s.settled:
        return _restore(s, entry) if confirmed and same else Row(entry)
    if replicas == entry.target:
        return Row(entry.to(State.COMPLETED) if s.resource.deleted else None)
    if replicas == entry.original:
        return _end(s, entry.problem)
    if same and (s.permitted or confirmed):
        return _restore(s, entry)
    return _end(s, recorded_problem(Reason.ORDER_UNKNOWN if same else Reason.CANCELLED_EXTERNALLY))


def _cancelling(s: Situation) -> Entry:
    return s.entry.to(State.CANCELLING, s.entry.problem)


def _cancel(s: Situation, entry: Entry, move: Reassignment) -> Row:
    """Cancel what is listed, unless it is on its way back already, is another client's, or cannot safely go back.

    While a request of ours may still land on another client's move, the entry stays.
    """
    if move.target == frozenset(entry.original) and not move.hangs:
        return Row(entry)
    recorded = move.target == frozenset(entry.target) or move.hangs if s.permitted else move.final == entry.target
    if not recorded:
        if doubt := s.in_doubt():
            return Row(entry).with_saying(SayingKind.PROBLEM, doubt)
        return _end(s, recorded_problem(Reason.CANCELLED_EXTERNALLY))
    entry = with_true_original(entry, move.original)
    required = s.snapshot.topics[s.tp.topic].min_insync_replicas
    unsafe = cancel_problem(entry.original, s.partition, required, s.snapshot.brokers)
    if problem := unsafe or s.recent.refusal(s.tp, ()):
        return Row(entry).with_saying(SayingKind.PROBLEM, problem)
    cost = undo_cost(move, (s.snapshot.sizes or {}).get(s.tp), s.target or ())
    return Row(entry, (Cancel.of(s.tp, move),)).with_saying(SayingKind.NOTE, cost)


def _restore(s: Situation, entry: Entry) -> Row:
    """Restore the order: metadata has shown the same replicas.

    Where the operator emulates the guard of the replication factor, the check before the alter may read metadata that
    still counts the cancelled move's replicas. So this step allows a change there.
    """
    if refusal := s.recent.refusal(s.tp, entry.original):
        return Row(entry).with_saying(SayingKind.PROBLEM, refusal)
    emulated = s.snapshot.guard is ReplicationFactorGuard.EMULATED
    return Row(entry, (Alter(s.tp, entry.original, emulated, Judged(entry.topic_id, frozenset(entry.original))),))


def _end(s: Situation, problem: Problem | None) -> Row:
    """End it: the entry goes, or stays as Cancelled while the resource is being deleted."""
    return Row(s.entry.to(State.CANCELLED, problem) if s.resource.deleted else None)


def undo_cost(move: Reassignment, sizes: Mapping[int, int] | None, wanted: Iterable[int]) -> Problem:
    """Say what the cancel of a move discards; `wanted` are the replicas that the partition moves to next, if any.

    `sizes` are bytes by broker.
    """
    going = move.adding
    if not going:
        return Problem(Reason.CANCELLING, "it goes back to its original replicas; nothing had to be copied")
    copied = amount(sum(sizes.get(b, 0) for b in going)) if sizes else "what was copied"
    sentence = (
        "it goes back to its original replicas: the cancel removes the "
        f"{plural(going, 'replica', 'replicas')} on {named_brokers(going)} and discards {copied}"
    )
    if again := set(going) & set(wanted):
        sentence += f", which {named_brokers(again, 'copies')} again"
    return Problem(Reason.CANCELLING, sentence)
