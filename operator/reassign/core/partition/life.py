"""Life: what becomes of each partition in the record that does not go back, by its state (`core.model.states`).

What is in flight is known from ListPartitionReassignments alone. Metadata can lag behind a write. So where a partition
is not in flight, metadata is believed at once only if it shows the target, and otherwise after `SETTLE_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from reassign.api.partition_reassignment import PreferredLeader, WhenInFlight
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded_problem
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.snapshot import Snapshot
from reassign.core.model.states import State
from reassign.core.model.steps import Elect
from reassign.core.model.verdict import Verdict
from reassign.core.partition.directories import Directed
from reassign.core.partition.situation import Situation, situations, with_true_original
from reassign.core.partition.undo import must_go_back
from reassign.errors import Reason

NO_ENTRY = Row()
"""The record forgets the partition. If it is asked for, admission judges it anew."""


def follow(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules) -> Verdict:
    """Take every partition in the record that does not go back one step further."""
    if verdict.release:
        return verdict
    found = situations(verdict, snapshot, recent, rules)
    return verdict.with_rows({s.tp: LIFE[s.entry.state](s) for s in found if not must_go_back(s)})


def _superseding(s: Situation) -> Row:
    """Keep the entry until the cancel of another client's move is certain.

    Then drop the entry, so that all checks judge again before our own move begins. If the other move is still listed,
    drop it too: the checks judge before it is cancelled once more. Likewise where our own move is no longer wanted.
    """
    wanted = s.target == s.entry.target
    waits = wanted and s.listed is None and not s.settled and (s.unread or not s.lost())
    return Row(s.entry) if waits or s.in_doubt() else NO_ENTRY


def _submitting(s: Situation) -> Row:
    """Follow a move whose alter may have landed. One that surely did not land is judged anew."""
    if problem := s.lost():
        return NO_ENTRY if s.nothing_in_flight(problem) else _lost(s, problem)
    return _moving(s) or NO_ENTRY


def _in_flight(s: Situation) -> Row:
    """Follow a move to its end. Where it is surely gone, another client has cancelled or changed it.

    Copies between directories that were ours are ended first.
    """
    if problem := s.lost():
        return _lost(s, problem)
    if row := _moving(s):
        return row
    left = s.undirected()
    if not left.done:
        return left.beside(Row(s.entry))
    return Row(_with_log_dirs(s, s.directed()).to(State.CANCELLED, recorded_problem(Reason.CANCELLED_EXTERNALLY)))


def _settling(s: Situation) -> Row:
    """Drop the entry, so that admission judges the partition anew, and an older resource can have it."""
    return NO_ENTRY


def _completed(s: Situation) -> Row:
    return Row(s.entry) if s.resource.deleted or s.unchanged else NO_ENTRY


def _cancelled(s: Situation) -> Row:
    if s.resource.deleted:
        return Row(s.entry)
    return Row(_completed_after_all(s)) if s.unchanged else NO_ENTRY


def _failed(s: Situation) -> Row:
    """Judge a partition anew whose cause of failure is gone; any other is kept like one that was cancelled."""
    return NO_ENTRY if _reopened(s) else _cancelled(s)


LIFE: Mapping[State, Callable[[Situation], Row]] = {
    State.SUPERSEDING: _superseding,
    State.SUBMITTING: _submitting,
    State.IN_FLIGHT: _in_flight,
    State.SETTLING: _settling,
    State.COMPLETED: _completed,
    State.CANCELLED: _cancelled,
    State.FAILED: _failed,
}


def _moving(s: Situation) -> Row | None:
    """Return the row of a move that is listed, has come to its target, or may still land; None for one that is gone."""
    directed = s.directed()
    entry = _with_log_dirs(s, directed)
    if s.listed is None:
        if s.partition.replicas == entry.target:
            return _finishing(s, entry, directed)
        doubt = s.recent.doubts.get((s.tp, entry.target))
        return None if s.settled else Row(entry).with_saying(SayingKind.PROBLEM, doubt)
    if s.listed.target == frozenset(entry.target):
        entry = with_true_original(entry, s.listed.original)
        if s.unshown:
            return Row(entry, listed=True)
        return directed.beside(Row(entry.to(State.IN_FLIGHT, entry.problem)))
    doubt = s.in_doubt()
    return Row(entry).with_saying(SayingKind.PROBLEM, doubt) if doubt else None


def _finishing(s: Situation, entry: Entry, directed: Directed) -> Row:
    """Complete a move that is not in flight any more, and whose replicas equal the target in order.

    All of them must be in sync and in the directories that are named, and the first one the leader. The state is
    Settling where an edit has left nothing to move.
    """
    entry = entry.to(State.SETTLING if entry.moves_nothing else State.IN_FLIGHT, entry.problem)
    if not (s.partition.isr >= set(entry.target) and directed.done):
        return directed.beside(Row(entry))
    elect = s.resource.spec.preferred_leader is PreferredLeader.ELECT and s.permitted
    if elect and s.partition.leader != entry.target[0]:
        return Row(entry, (Elect(s.tp),))
    return Row(entry.to(State.COMPLETED, entry.problem))


def _completed_after_all(s: Situation) -> Entry:
    """Return the entry, Completed where the partition is at its target after all, in the directories that are named."""
    partition = s.snapshot.partition(s.tp)
    in_sync = partition is not None and partition.isr >= set(s.entry.target)
    return s.entry.to(State.COMPLETED) if s.at_target and in_sync and s.directed().done else s.entry


def _reopened(s: Situation) -> bool:
    """Whether the cause of a failure is no longer asked for, so that the partition is judged anew."""
    reason = s.entry.problem and s.entry.problem.reason
    if s.resource.deleted:
        return False
    if reason is Reason.DEADLINE_EXCEEDED:
        return not s.expired
    return reason is Reason.IN_FLIGHT_ELSEWHERE and s.resource.spec.when_in_flight is not WhenInFlight.FAIL


def _lost(s: Situation, problem: Problem) -> Row:
    return Row(_with_log_dirs(s, s.directed())).with_saying(SayingKind.PROBLEM, problem)


def _with_log_dirs(s: Situation, directed: Directed) -> Entry:
    return replace(s.entry, log_dirs=directed.log_dirs)
