"""What this process saw and did in its last seconds. Losing it costs a wait, never a decision."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from reassign.core.model.awaited import NOTHING_AWAITED, Awaited
from reassign.core.model.configs import Change
from reassign.core.model.forwarding import (
    NOT_FORWARDED,
    SETTLE_SECONDS,
    Clock,
    Doubts,
    Forwarded,
    Forwarding,
    Write,
)
from reassign.core.model.log_dir_reports import LogDirReports
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import AlterLogDirs, Outcome, Result
from reassign.core.model.track import Track
from reassign.errors import Reason

DIRECT_SECONDS = 7.0
"""How late a request may land that a broker carries out itself, where its answer was lost."""
LAGS_SECONDS = 30.0
"""How long the broker whose metadata is read may lag behind the controllers before another one is read."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15.0, 300.0

Request = tuple[int, ...] | tuple[tuple[int, str], ...] | frozenset[int]
"""A request to brokers: replicas (none: a cancel), a replica in a directory of its broker, or to cancel other clients'
move to these replicas once more."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why brokers, or the API server, refused, when to ask again, and how long that was put off."""

    problem: Problem
    until: float
    delay: float


class Touched(NamedTuple):
    """A step was taken for a partition; without an answer it may land later."""

    tp: TopicPartition
    answered: bool


class Refused(NamedTuple):
    """A refusal by brokers: the request is made again after a while, each time after longer."""

    tp: TopicPartition
    request: Request
    problem: Problem


class Doubted(NamedTuple):
    """A request for these replicas to which no answer came."""

    tp: TopicPartition
    replicas: tuple[int, ...]
    problem: Problem


class CancelConfirmed(NamedTuple):
    """A broker confirmed the cancel of a resource's move; its order is still to be restored."""

    uid: str
    tp: TopicPartition


class Restored(NamedTuple):
    """The order that a cancelled move came from is there again, or cannot be had."""

    uid: str
    tp: TopicPartition


class Elected(NamedTuple):
    """An election was answered: metadata need not settle for it."""

    tp: TopicPartition


class Instructed(NamedTuple):
    """An instruction to brokers about log directories; where an answer is missing, one may be told later."""

    step: AlterLogDirs
    answered: bool


Fact = Touched | Refused | Doubted | CancelConfirmed | Restored | Elected | Instructed
"""What the outcome of a step adds to the memory."""


OfTopic = tuple[TopicPartition, str]
"""A partition of the topic with that id."""


class Holder(NamedTuple):
    """The resource whose move to these replicas is in flight, by uid, and its namespace."""

    uid: str
    namespace: str
    target: frozenset[int]


@dataclass(frozen=True, slots=True)
class Recent:
    """What this process saw in its last seconds, by a monotonic clock."""

    now: float = 0.0
    """When the last observation began: what it read is not older."""
    started: float = 0.0
    forwarding: Forwarding = field(default_factory=Forwarding)
    unanswered: Mapping[TopicPartition, Write] = field(default_factory=dict)
    """The last writes without an answer."""
    answered: frozenset[TopicPartition] = frozenset()
    """Partitions held by a resource of which this process knows that no write is open: the last one was its own, and
    was answered, or was not sent."""
    clock: Clock = field(default_factory=lambda: Clock(0.0, datetime.min.replace(tzinfo=UTC)))
    busy: Mapping[TopicPartition, Awaited] = field(default_factory=dict)
    """Partitions that were in flight, or may have been altered, since then."""
    forwarded: Forwarded = NOT_FORWARDED
    """How the last observation came about."""
    unshown: Mapping[OfTopic, Awaited] = field(default_factory=dict)
    """Moves that are listed and whose alter was not answered: until metadata as new as the first of these lists shows
    the topic, they may be of one that was made again."""
    reading: Awaited = NOTHING_AWAITED
    """What the broker whose metadata is read was to show when it was first read: all partitions as they were then."""
    cancelled: frozenset[tuple[str, TopicPartition]] = frozenset()
    """Partitions, by the resource's uid, whose cancel a broker confirmed and whose order is still to be restored. Where
    metadata shows the original replicas, it need not settle first."""
    refused: Mapping[tuple[TopicPartition, Request], Refusal] = field(default_factory=dict)
    """What brokers refused, by partition and request."""
    unwritten: Mapping[str, Refusal] = field(default_factory=dict)
    """What the API server refused, by the uid of a resource."""
    doubts: Mapping[tuple[TopicPartition, tuple[int, ...]], Problem] = field(default_factory=dict)
    """Why no answer came to the last request for these replicas."""
    tracks: Mapping[TopicPartition, Track] = field(default_factory=dict)
    """How near the moves in flight have come to their end."""
    silence: Mapping[TopicPartition, float] = field(default_factory=dict)
    """Since when a partition waits for brokers to report on their log directories."""
    holders: Mapping[TopicPartition, Holder] = field(default_factory=dict)
    """Who has the moves in flight, also after a resource went before they had ended."""
    reports: LogDirReports = field(default_factory=LogDirReports)
    """The reports on log directories."""
    lifting: frozenset[int] = frozenset()
    """The brokers whose cordon is being lifted, or was until just now: the controllers may not know yet."""

    def observe(
        self,
        began: float,
        ended: float,
        in_flight: Collection[TopicPartition],
        answered: Collection[int] = (),
        forwarded: Forwarded = NOT_FORWARDED,
    ) -> Recent:
        """Return the memory after a snapshot that was read between these moments.

        `answered` are the brokers that reported log directories.
        """
        forwarding = self.forwarding.observe(began, forwarded)
        same = forwarded.reader == self.forwarded.reader
        awaited = self.busy if same else {tp: one.of_another() for tp, one in self.busy.items()}
        known = {tp: one.observe(began, forwarded) for tp, one in awaited.items()}
        busy = {tp: one for tp, one in known.items() if not one.is_shown(began, forwarded)}
        busy |= {tp: Awaited(max(known[tp].since, ended) if tp in known else ended) for tp in in_flight}
        unshown = self.unshown if same else {move: one.of_another() for move, one in self.unshown.items()}
        reading = self.reading if same else Awaited(began if self._left else self.reading.since)
        return replace(
            self,
            now=began,
            forwarding=forwarding,
            unanswered={
                tp: write for tp, write in self.unanswered.items() if began - forwarding.landed(write) < SETTLE_SECONDS
            },
            busy=busy,
            unshown={move: one.observe(began, forwarded) for move, one in unshown.items()},
            forwarded=forwarded,
            reading=reading.observe(began, forwarded),
            cancelled=frozenset(key for key in self.cancelled if key[1] not in in_flight),
            doubts={key: problem for key, problem in self.doubts.items() if key[0] not in in_flight},
            refused={k: r for k, r in self.refused.items() if began - r.until < LONGEST_RETRY_SECONDS},
            unwritten={k: r for k, r in self.unwritten.items() if began - r.until < LONGEST_RETRY_SECONDS},
            reports=self.reports.observe(began, answered),
        )

    def remember(self, facts: Collection[Fact], at: float) -> Recent:
        """Return the memory after the steps that these facts are about, which ended at this moment."""
        busy, refused, doubts = dict(self.busy), dict(self.refused), dict(self.doubts)
        unanswered, via = dict(self.unanswered), self.forwarding.via
        cancelled, met = set(self.cancelled), set(self.answered)
        instructed: list[tuple[AlterLogDirs, float]] = []

        def refuse(tp: TopicPartition, request: Request, problem: Problem) -> None:
            refused[tp, request] = refused_again(refused.get((tp, request)), problem, at, LONGEST_RETRY_SECONDS)

        for fact in facts:
            match fact:
                case Touched(tp, answered):
                    busy[tp] = Awaited(at)
                    if answered:
                        met.add(tp)
                    else:
                        met.discard(tp)
                        before = unanswered.get(tp)
                        unanswered[tp] = Write(None if before and before.via != via else via, at)
                case Refused(tp, request, problem):
                    refuse(tp, request, problem)
                case Doubted(tp, replicas, problem):
                    if (tp, replicas) in doubts:  # from the second time on, it is asked for after longer
                        refuse(tp, replicas, problem)
                    doubts[tp, replicas] = problem
                case CancelConfirmed(uid, tp):
                    cancelled.add((uid, tp))
                case Restored(uid, tp):
                    cancelled.discard((uid, tp))
                case Elected(tp):
                    busy.pop(tp, None)
                case Instructed(step, answered):
                    instructed.append((step, at if answered else at + DIRECT_SECONDS))
        lost = any(isinstance(fact, Touched) and not fact.answered for fact in facts)
        return replace(
            self,
            forwarding=self.forwarding.lost([via]) if lost else self.forwarding,
            unanswered=unanswered,
            answered=frozenset(met),
            busy=busy,
            refused=refused,
            doubts=doubts,
            cancelled=frozenset(cancelled),
            reports=self.reports.instruct(instructed, at),
        )

    def put_off(self, unwritten: Mapping[str, Problem]) -> Recent:
        """Return the memory after these resources, by uid, could not be written."""
        found = dict(self.unwritten)
        for uid, problem in unwritten.items():
            away = problem.reason is Reason.API_SERVER_UNAVAILABLE
            longest = RETRY_SECONDS if away else LONGEST_RETRY_SECONDS
            found[uid] = refused_again(found.get(uid), problem, self.now, longest)
        return replace(self, unwritten=found)

    def remember_changes(self, outcomes: Mapping[Change, Outcome]) -> Recent:
        """Return the memory after changes of configurations."""
        lost = {self.forwarding.via_of(c.key.resource) for c, o in outcomes.items() if o.result is Result.UNKNOWN}
        return replace(self, forwarding=self.forwarding.lost(lost)) if lost else self

    def settled(self, tp: TopicPartition, write: Write | None = None) -> bool:
        """Whether nothing has been in flight for a partition long enough that metadata is not stale.

        An earlier process may have altered the partition just before it ended, so a new one waits as long first.
        `write` is the one that a record leaves open: it has to have landed, and so have all without an answer.
        """
        landed = [self.forwarding.landed(sent) for sent in (self.unanswered.get(tp), write) if sent]
        return self.now - max([self.started, *landed]) >= SETTLE_SECONDS and not self.is_stale(tp)

    def is_stale(self, tp: TopicPartition) -> bool:
        """Whether metadata may be older than what this process has seen of a partition."""
        return not self._is_shown(self.busy.get(tp, self.reading))

    def awaiting(self, moves: Iterable[OfTopic]) -> Recent:
        """Return the memory of the moves that are listed, and whose topic metadata may not show yet."""
        found = {move: self.unshown.get(move) or self.busy.get(move[0], Awaited(self.now)) for move in moves}
        return replace(self, unshown={move: one for move, one in found.items() if not self._is_shown(one)})

    def _is_shown(self, awaited: Awaited) -> bool:
        return all(one.is_shown(self.now, self.forwarded) for one in (self.reading, awaited))

    def lagging(self, tp: TopicPartition) -> int | None:
        """Return the broker whose metadata is read, if it is known to lag and is to show what became of a partition."""
        moves = (one for move, one in self.unshown.items() if move[0] == tp)
        awaited = (self.reading, self.busy.get(tp, self.reading), *moves)
        late = any(one.is_late(self.now, SETTLE_SECONDS) for one in awaited)
        return self.forwarded.reader if late else None

    @property
    def _first(self) -> tuple[int, ...]:
        """The brokers to read next: the same one, or the nearest to the controllers where it is left."""
        via = self.forwarding.via
        return (self._left and self.forwarded.nearest) or (() if via is None else (via,))

    @property
    def _left(self) -> bool:
        """Whether the broker whose metadata is read has been behind for too long."""
        awaited = (self.reading, *self.busy.values(), *self.unshown.values())
        return any(one.is_late(self.now, LAGS_SECONDS) for one in awaited)

    def doubts_about(
        self, moves: Iterable[Write], configs: Iterable[Write], named: Iterable[Set[TopicPartition]]
    ) -> Doubts:
        """Return what the next observation is to settle: about these writes, and metadata of the partitions named."""
        doubts = self.forwarding.doubts(self.now, moves, configs)
        reader = self.forwarded.reader
        unseen = reader is None or not self.reading.is_shown(self.now, self.forwarded)
        return doubts._replace(
            offsets=doubts.offsets or unseen or bool(self.unshown),
            reader=reader,
            lately={tp for some in named for tp in self.busy.keys() & some} if self.busy else frozenset(),
            first=self._first,
        )

    def open_write(self, tp: TopicPartition, entry: Entry) -> Write | None:
        """Return the write of an earlier process that an entry leaves open; its broker may be unknown.

        That process may have sent it as late as when this one began: the time in the record is before all records of
        that reconciliation were written, and by a clock that may have been set since. A write of this process is in
        `unanswered` until it has landed.
        """
        open_still = tp not in self.answered and entry.may_land
        return Write(entry.via, self.started) if open_still else None

    def in_doubt(self, tp: TopicPartition, entry: Entry | None) -> Write | None:
        """Return the last write for a partition, of this process or as it is recorded, that may not have landed."""
        write = self.unanswered.get(tp) or (self.open_write(tp, entry) if entry else None)
        return write if write and self.now - self.forwarding.landed(write) < SETTLE_SECONDS else None

    def shown(self, tp: TopicPartition, broker: int) -> bool:
        """Whether a broker's log directories show all that it was told about a partition.

        An instruction of an earlier process just before its end may land late, too.
        """
        return self.reports.is_sure(tp, broker, self.started + DIRECT_SECONDS)

    def refusal(self, tp: TopicPartition, request: Request) -> Problem | None:
        """Return why a request is not made now."""
        return self._now(self.refused.get((tp, request)))

    def waits(self, uid: str) -> Problem | None:
        """Return why nothing of a resource begins now, if it could not be written."""
        return self._now(self.unwritten.get(uid))

    def _now(self, refusal: Refusal | None) -> Problem | None:
        return refusal.problem if refusal and refusal.until > self.now else None


def refused_again(before: Refusal | None, problem: Problem, at: float, longest: float) -> Refusal:
    """Return the refusal of a request that was made at this moment: it is made again after twice the last delay."""
    delay = min(before.delay * 2, longest) if before else RETRY_SECONDS
    return Refusal(problem, at + delay, delay)
