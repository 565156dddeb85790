"""Follow: see a move that is still wanted to its end.

What is in flight is known from ListPartitionReassignments alone. Metadata can lag behind a write, so what it says
of a partition that is not in flight is believed at once only where it cannot be stale (it shows the target), and
otherwise after `SETTLE_SECONDS` without anything in flight.
"""

from __future__ import annotations

from dataclasses import replace

from reassign.api.partition_reassignment import PreferredLeader, WhenInFlight
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.record import Entry, recorded
from reassign.core.model.snapshot import Partition, Snapshot
from reassign.core.model.states import State
from reassign.core.model.steps import Elect
from reassign.core.model.verdict import Verdict
from reassign.core.moves.advance import Held, Move, advance, held_by, with_true_original
from reassign.core.moves.log_dirs import Directed
from reassign.core.moves.undo import goes_back
from reassign.errors import Reason


def follow(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules) -> Verdict:
    """Take every entry that does not go back one step further."""
    if verdict.release:
        return verdict
    held = held_by(verdict, snapshot, recent, rules)
    return advance(verdict, {h.tp: _next(h) for h in held if not goes_back(h)})


def _next(held: Held) -> Move:
    entry = held.entry
    if entry.state is State.SETTLING:
        return Move(None)  # judged anew each time: it holds nothing that an older one wants
    if entry.state is State.SUPERSEDING:
        return _make_way(held)
    if entry.active:
        return _follow(held)
    if held.resource.deleted:
        return Move(entry)
    unchanged = held.target == entry.target and held.named == entry.log_dirs
    return Move(_came_true(held) if unchanged and not _reopened(held) else None)


def _reopened(held: Held) -> bool:
    """Whether what failed an entry is no longer asked for, so that it is judged anew."""
    failed, reason = held.entry.state is State.FAILED, held.entry.problem and held.entry.problem.reason
    if not failed:
        return False
    if reason is Reason.DEADLINE_EXCEEDED:
        return not held.expired
    return reason is Reason.IN_FLIGHT_ELSEWHERE and held.resource.spec.when_in_flight is not WhenInFlight.FAIL


def _make_way(held: Held) -> Move:
    """Hold the partition until the cancel of another client's move is sure; then, and as long as that move is listed,
    the entry is dropped, so that all checks judge again before it is cancelled or our own move begins."""
    wanted = held.target == held.entry.target
    cancelled = held.tp not in held.snapshot.reassignments
    waits = wanted and cancelled and not held.settled and not held.lost()
    return Move(held.entry if waits else None)


def _came_true(held: Held) -> Entry:
    """A partition that was given up, or whose move was taken for cancelled by others, is completed where it is seen
    at its target after all, in the directories that are named."""
    entry, partition = held.entry, held.snapshot.partition(held.tp)
    in_sync = partition is not None and partition.isr >= set(entry.target)
    given_up = entry.state in (State.CANCELLED, State.FAILED)
    if given_up and held.at_target and in_sync and held.directed().done:
        return entry.to(State.COMPLETED)
    return entry


def _follow(held: Held) -> Move:
    """A move that is still wanted."""
    tp, snapshot, directed = held.tp, held.snapshot, held.directed()
    entry = replace(held.entry, log_dirs=directed.log_dirs)
    if problem := held.lost():
        if entry.state is State.SUBMITTING and held.ended(problem):
            return Move(None)
        return Move(entry, problem=problem)
    in_flight = snapshot.reassignments.get(tp)
    if in_flight is None:
        partition = snapshot.topics[tp.topic].partitions[tp.partition]
        if partition.replicas == entry.target:
            return _finish(held, entry, partition, directed)
        if not held.settled:
            return Move(entry, problem=held.recent.doubts.get((tp, entry.target)))
    elif in_flight.target == frozenset(entry.target):
        entry = with_true_original(entry, in_flight.original)
        return Move(entry.under_way(entry.problem)).instructing(directed)
    if entry.state is State.SUBMITTING:
        return Move(None)
    left = held.undirected()
    if not left.done:
        return Move(held.entry).instructing(left)
    return Move(entry.to(State.CANCELLED, recorded(Reason.CANCELLED_EXTERNALLY)))


def _finish(held: Held, entry: Entry, partition: Partition, directed: Directed) -> Move:
    """Done is: not in flight, replicas equal the target in order, all of them in sync, and where they are named."""
    entry = entry.under_way(entry.problem)
    if not (partition.isr >= set(entry.target) and directed.done):
        return Move(entry).instructing(directed)
    if held.resource.spec.preferred_leader is PreferredLeader.ELECT and partition.leader != entry.target[0]:
        return Move(entry, Elect(held.tp))
    return Move(entry.to(State.COMPLETED, entry.problem))
