"""Undo: bring back what is no longer wanted, and release a resource that is being deleted.

A change in flight is never an override: cancel, see that it is no longer listed, restore the order (a cancel of
[1,2,3] → [4,2,3] leaves [2,3,1]), and only then, if there is a new target, submit that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.api.partition_reassignment import DeletionPolicy, PartitionState
from reassign.core.checks.in_sync import cancel_problem
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem, ids
from reassign.core.model.record import Entry, Record, active, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Reassignment, Snapshot
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Cancel, Judged
from reassign.core.model.verdict import Verdict, Waiting
from reassign.core.moves.advance import Held, Move, advance, held_by, with_true_original
from reassign.errors import Reason


def undo(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules, now: datetime) -> Verdict:
    """Take every entry that is to go back one step further."""
    resource = verdict.resource
    if resource.deleted and (abandoned := released(resource, verdict.record, now)) is not None:
        return replace(verdict, release=True, abandoned=abandoned)
    held = held_by(verdict, snapshot, recent, rules)
    return advance(verdict, {h.tp: _bring_back(h) for h in held if goes_back(h)})


def release(verdict: Verdict) -> Verdict:
    """Release a resource that is being deleted once nothing of it is in flight."""
    gone = verdict.resource.deleted is not None and not active(verdict.record)
    return replace(verdict, release=verdict.release or gone)


def undoing(verdict: Verdict) -> Verdict:
    """A verdict with the steps that bring something back, and without all others, as if these had not been decided."""
    before, record, waiting = verdict.resource.record, dict(verdict.record), dict(verdict.waiting)
    steps = [s for s in verdict.steps if _brings_back(record[s.tp])]
    for tp in {step.tp for step in verdict.steps} - {step.tp for step in steps}:
        if (entry := before.get(tp)) and entry.active:  # one that had ended is not where it is wanted now
            record[tp] = entry
        else:
            del record[tp]
            waiting[tp] = Waiting(PartitionState.PENDING)
    return replace(verdict, record=record, steps=tuple(steps), waiting=waiting)


def released(resource: Resource, record: Record, now: datetime) -> bool | None:
    """Whether a resource being deleted is released as it stands: True at its deadline, False as an orphan."""
    if resource.spec.deletion_policy is DeletionPolicy.ORPHAN:
        return False
    deadline = resource.spec.deletion_deadline_seconds
    holds = resource.record_lost or active(record)
    if holds and resource.deleted and deadline and now - resource.deleted >= timedelta(seconds=deadline):
        return True
    return None


def _brings_back(entry: Entry) -> bool:
    return entry.state is State.CANCELLING


def goes_back(held: Held) -> bool:
    """Whether an entry is on its way back, or is to be: its resource is being deleted, its target is another one now,
    or the brake is set."""
    entry = held.entry
    if entry.state in (State.SETTLING, State.SUPERSEDING):
        return False
    unwanted = held.target != entry.target or (held.undo and not (held.at_target and held.directed().done))
    return entry.state is State.CANCELLING or (entry.active and unwanted)


def _bring_back(held: Held) -> Move:
    """Copies between directories end beside it, and the entry is held until they have: of a broker that is down one
    would go on when it is back."""
    move = _back_to_original(held)
    if held.lost():
        return move
    left = held.undirected()
    if (move.entry is None or not move.entry.active) and not left.done:
        move = Move(held.entry.to(State.CANCELLING, held.entry.problem))
    return move.instructing(left)


def _back_to_original(held: Held) -> Move:
    entry = held.entry.to(State.CANCELLING, held.entry.problem)
    if problem := held.lost():
        return _cancelled(held, problem) if held.ended(problem) else Move(entry, problem=problem)
    partition = held.snapshot.topics[held.tp.topic].partitions[held.tp.partition]
    if in_flight := held.snapshot.reassignments.get(held.tp):
        return _cancel(held, entry, in_flight, partition)
    same = set(partition.replicas) == set(entry.original)
    if not held.settled:
        confirmed = (held.resource.uid, held.tp) in held.recent.cancelled
        return _restore(held, entry) if confirmed and same else Move(entry)
    if partition.replicas == entry.target:
        return Move(entry.to(State.COMPLETED) if held.resource.deleted else None)
    if partition.replicas == entry.original:
        return _cancelled(held, entry.problem)
    return _restore(held, entry) if same else _cancelled(held, recorded(Reason.CANCELLED_EXTERNALLY))


def _cancel(held: Held, entry: Entry, in_flight: Reassignment, partition: Partition) -> Move:
    """Cancel what is listed, unless it is on its way back already, is another client's, or cannot safely go back."""
    if in_flight.target == frozenset(entry.original) and not in_flight.hangs:
        return Move(entry)
    if in_flight.target != frozenset(entry.target) and not in_flight.hangs:
        return _cancelled(held, recorded(Reason.CANCELLED_EXTERNALLY))
    entry = with_true_original(entry, in_flight.original)
    required = held.snapshot.topics[held.tp.topic].min_insync_replicas
    unsafe = cancel_problem(entry.original, partition, required, held.snapshot.brokers)
    if problem := unsafe or held.recent.refusal(held.tp, ()):
        return Move(entry, problem=problem)
    cost = undo_cost(in_flight, (held.snapshot.sizes or {}).get(held.tp), held.target or ())
    return Move(entry, Cancel.of(held.tp, in_flight), note=cost)


def _cancelled(held: Held, problem: Problem | None = None) -> Move:
    """Brought back. While the resource is being deleted its record keeps the entry."""
    return Move(held.entry.to(State.CANCELLED, problem) if held.resource.deleted else None)


def _restore(held: Held, entry: Entry) -> Move:
    """Metadata has shown the same replicas. Where the guard is ours it would observe again, and could be shown stale
    ones that count those of the cancelled move too."""
    refusal = held.recent.refusal(held.tp, entry.original)
    emulated = held.snapshot.guard is ReplicationFactorGuard.EMULATED
    judged = Judged(entry.topic_id, frozenset(entry.original))
    return Move(entry, None if refusal else Alter(held.tp, entry.original, emulated, judged), refusal)


def undo_cost(move: Reassignment, sizes: Mapping[int, int] | None, wanted: Iterable[int]) -> Problem:
    """What going back from a move throws away; `wanted` are the replicas that it moves to next, if any.

    `sizes` are bytes by broker.
    """
    going = move.adding
    if not going:
        return Problem(Reason.CANCELLING, "it goes back to its original replicas; nothing had to be copied")
    copied = f"{sum(sizes.get(b, 0) for b in going)} bytes" if sizes else "what was"
    sentence = f"it goes back to its original replicas; those on broker {ids(going)} go, and {copied} copied to them"
    if again := set(going) & set(wanted):
        sentence += f", which broker {ids(again)} copies once more"
    return Problem(Reason.CANCELLING, sentence)
