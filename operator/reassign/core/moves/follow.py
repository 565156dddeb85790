"""What to do next about a partition that a resource holds: follow its move to the end, or bring it back.

What is in flight is known from ListPartitionReassignments alone. Metadata can lag behind a write, so what it says
of a partition that is not in flight is believed at once only where it cannot be stale (it shows the target), and
otherwise after `SETTLE_SECONDS` without anything in flight.

A change in flight is never an override: cancel, see that it is no longer listed, restore the order (a cancel of
[1,2,3] → [4,2,3] leaves [2,3,1]), and only then, if there is a new target, submit that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from reassign.api.partition_reassignment import PreferredLeader, RecordState, WhenInFlight
from reassign.core.checks.chain import cancel_problem, existence
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, ReplicationFactorGuard, Snapshot, TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel, Elect, Judged, Step
from reassign.core.moves.log_dirs import Directed, Director
from reassign.core.moves.undo_cost import thrown_away
from reassign.errors import Reason


class Move(NamedTuple):
    """The entry as it is from now on (None: forget it), what to do, what stands in the way, and what to say.

    `tell` goes out beside the step: copies between directories and moves between brokers do not wait for each other.
    `refused` is why something of it does not.
    """

    entry: Entry | None
    step: Step | None = None
    problem: Problem | None = None
    note: Problem | None = None
    tell: AlterLogDirs | None = None
    refused: Problem | None = None

    def telling(self, directed: Directed) -> Move:
        return self._replace(tell=directed.tell, refused=directed.refused)


@dataclass(frozen=True, slots=True)
class Held:
    """A partition with an entry in the record of a resource, and what is observed of it."""

    resource: Resource
    tp: TopicPartition
    entry: Entry
    snapshot: Snapshot
    recent: Recent
    expired: bool = False
    undo: bool = False
    """The brake is pulled: whatever it is, it is to be brought back."""

    def lost(self) -> Problem | None:
        """Why the partition cannot be followed: the topic is gone, or another one has its name."""
        topic = self.snapshot.topics.get(self.tp.topic)
        if topic and topic.id != self.entry.topic_id:
            return Problem(
                Reason.TOPIC_RECREATED,
                f"the topic {self.tp.topic} was deleted and made again while it was moved; "
                "remove the entry, and add it again if the new topic is meant",
            )
        problem = existence(self.tp, self.snapshot)
        if problem and problem.reason is Reason.UNKNOWN_TOPIC_OR_PARTITION:
            return Problem(
                problem.reason, f"the topic {self.tp.topic} was deleted while it was moved; remove the entry"
            )
        return problem

    def is_over(self, lost: Problem) -> bool:
        """Whether nothing of ours is in flight for a partition that was lost; what another topic has is not ours."""
        others = lost.reason is Reason.TOPIC_RECREATED and self.tp in self.snapshot.reassignments
        return others or (lost.reason is not Reason.NOT_AUTHORIZED and self.settled)

    @property
    def settled(self) -> bool:
        """Whether what metadata says of a partition that is not in flight can be believed."""
        unconfirmed = self.entry.state in (RecordState.SUBMITTING, RecordState.CANCELLING)
        return self.recent.settled(self.tp, unconfirmed=unconfirmed)

    @property
    def at_target(self) -> bool:
        """Whether nothing is in flight any more, and metadata shows the target."""
        partition = self.snapshot.partition(self.tp)
        listed = self.tp in self.snapshot.reassignments
        return not listed and partition is not None and partition.replicas == self.entry.target

    @property
    def named(self) -> tuple[tuple[int, str], ...]:
        """The directories that the resource names now."""
        asked = self.resource.asked.get(self.tp)
        return asked.named if asked else ()

    def directed(self) -> Directed:
        """On the way to the directories that are named."""
        return self._director.direct(self.tp, self.entry.log_dirs, self.named, self.entry.target)

    def undirected(self) -> Directed:
        """On the way to where no replica is copied to another directory any more; those that go take theirs along."""
        partition = self.snapshot.partition(self.tp)
        return self._director.direct(self.tp, self.entry.log_dirs, (), partition.replicas if partition else ())

    @property
    def _director(self) -> Director:
        supersede = self.resource.spec.when_in_flight is WhenInFlight.SUPERSEDE
        return Director(self.snapshot, self.recent.answers, self.recent.shown, supersede, self.recent.refusal)

    def cancelled(self, problem: Problem | None = None) -> Move:
        """Brought back. While the resource is being deleted its record keeps the entry."""
        return Move(self.entry.to(RecordState.CANCELLED, problem) if self.resource.deleted else None)


def next_move(held: Held) -> Move:
    """Take an entry one step further, towards what its resource wants now."""
    resource, entry = held.resource, held.entry
    if entry.stays:
        return Move(None)  # judged anew each time: it holds nothing that an older one wants
    target = resource.wanted.get(held.tp)
    if entry.superseding:
        return _make_way(held, wanted=target == entry.target)
    unwanted = target != entry.target or (held.undo and not (held.at_target and held.directed().done))
    if entry.state is RecordState.CANCELLING or (entry.active and unwanted):
        return _bring_back(held)
    if entry.active:
        return _follow(held)
    if resource.deleted:
        return Move(entry)
    unchanged = target == entry.target and held.named == entry.log_dirs
    return Move(_came_true(held) if unchanged and not reopened(held) else None)


def reopened(held: Held) -> bool:
    """Whether what failed an entry is no longer asked for, so that it is judged anew."""
    failed, reason = held.entry.state is RecordState.FAILED, held.entry.problem and held.entry.problem.reason
    if not failed:
        return False
    if reason is Reason.DEADLINE_EXCEEDED:
        return not held.expired
    return reason is Reason.IN_FLIGHT_ELSEWHERE and held.resource.spec.when_in_flight is not WhenInFlight.FAIL


def _make_way(held: Held, *, wanted: bool) -> Move:
    """Hold the partition until the cancel of somebody else's move is sure; then, and as long as that move is listed,
    the entry is dropped, so that all checks judge again before it is cancelled or our own move begins."""
    cancelled = held.tp not in held.snapshot.reassignments
    waits = wanted and cancelled and not held.settled and not held.lost()
    return Move(held.entry if waits else None)


def _came_true(held: Held) -> Entry:
    """A partition that was given up, or whose move was taken for cancelled by others, is completed where it is seen
    at its target after all, in the directories that are named."""
    entry, partition = held.entry, held.snapshot.partition(held.tp)
    in_sync = partition is not None and partition.isr >= set(entry.target)
    given_up = entry.state in (RecordState.CANCELLED, RecordState.FAILED)
    if given_up and held.at_target and in_sync and held.directed().done:
        return entry.to(RecordState.COMPLETED)
    return entry


def _follow(held: Held) -> Move:
    """A move that is still wanted."""
    tp, snapshot, directed = held.tp, held.snapshot, held.directed()
    entry = replace(held.entry, log_dirs=directed.log_dirs)
    if problem := held.lost():
        if entry.state is RecordState.SUBMITTING and held.is_over(problem):
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
        entry = _with_true_original(entry, in_flight.original)
        return Move(entry.to(RecordState.IN_FLIGHT, entry.problem)).telling(directed)
    if entry.state is RecordState.SUBMITTING:
        return Move(None)
    left = held.undirected()
    if not left.done:
        return Move(held.entry).telling(left)
    return Move(entry.to(RecordState.CANCELLED, recorded(Reason.CANCELLED_EXTERNALLY)))


def _with_true_original(entry: Entry, listed: tuple[int, ...]) -> Entry:
    """The controller's word on which replicas there were; the recorded order, where it is about the same ones."""
    if set(entry.original) == set(listed):
        return entry
    return replace(entry, original=listed, problem=recorded(Reason.ORDER_UNKNOWN))


def _finish(held: Held, entry: Entry, partition: Partition, directed: Directed) -> Move:
    """Done is: not in flight, replicas equal the target in order, all of them in sync, and where they are named."""
    entry = entry.to(RecordState.IN_FLIGHT, entry.problem)
    if not (partition.isr >= set(entry.target) and directed.done):
        return Move(entry).telling(directed)
    if held.resource.spec.preferred_leader is PreferredLeader.ELECT and partition.leader != entry.target[0]:
        return Move(entry, Elect(held.tp))
    return Move(entry.to(RecordState.COMPLETED, entry.problem))


def _bring_back(held: Held) -> Move:
    """A move that is no longer wanted: the resource is being deleted, or its entry was removed or changed.

    Copies between directories end beside it, and the entry is held until they have: of a broker that is down one would
    go on when it is back.
    """
    move = _back_to_original(held)
    if held.lost():
        return move
    left = held.undirected()
    if (move.entry is None or not move.entry.active) and not left.done:
        move = Move(held.entry.to(RecordState.CANCELLING, held.entry.problem))
    return move.telling(left)


def _back_to_original(held: Held) -> Move:
    tp, snapshot, recent = held.tp, held.snapshot, held.recent
    entry = held.entry.to(RecordState.CANCELLING, held.entry.problem)
    if problem := held.lost():
        return held.cancelled(problem) if held.is_over(problem) else Move(entry, problem=problem)
    partition = snapshot.topics[tp.topic].partitions[tp.partition]
    in_flight = snapshot.reassignments.get(tp)
    if in_flight is not None:
        if in_flight.target == frozenset(entry.original) and not in_flight.hangs:
            return Move(entry)
        if in_flight.target != frozenset(entry.target) and not in_flight.hangs:
            return held.cancelled(recorded(Reason.CANCELLED_EXTERNALLY))
        entry = _with_true_original(entry, in_flight.original)
        required = snapshot.topics[tp.topic].min_insync_replicas
        if problem := cancel_problem(entry.original, partition, required, snapshot.brokers):
            return Move(entry, problem=problem)
        if refusal := recent.refusal(tp, ()):
            return Move(entry, problem=refusal)
        sizes = (snapshot.sizes or {}).get(tp)
        cost = thrown_away(in_flight, sizes, held.resource.wanted.get(tp, ()))
        return Move(entry, Cancel.of(tp, in_flight), note=cost)
    same = set(partition.replicas) == set(entry.original)
    if not held.settled:
        confirmed = (held.resource.uid, tp) in recent.cancelled
        return _restore(held, entry) if confirmed and same else Move(entry)
    if partition.replicas == entry.target:
        return Move(entry.to(RecordState.COMPLETED) if held.resource.deleted else None)
    if partition.replicas == entry.original:
        return held.cancelled(entry.problem)
    return _restore(held, entry) if same else held.cancelled(recorded(Reason.CANCELLED_EXTERNALLY))


def _restore(held: Held, entry: Entry) -> Move:
    """Metadata has shown the same replicas. Where the guard is ours it would look again, and could be shown stale ones
    that count those of the cancelled move too."""
    refusal = held.recent.refusal(held.tp, entry.original)
    emulated = held.snapshot.guard is ReplicationFactorGuard.EMULATED
    judged = Judged(entry.topic_id, frozenset(entry.original))
    return Move(entry, None if refusal else Alter(held.tp, entry.original, emulated, judged), refusal)
