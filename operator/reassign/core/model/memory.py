"""What this process saw and did in its last seconds. Losing it costs a wait, never a decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from reassign.core.model.log_dir_reports import Answers
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import AlterLogDirs
from reassign.core.model.track import Track

SETTLE_SECONDS = 3.0
LANDING_SECONDS = 7.0
"""How much longer to wait where an answer was lost: the request may land as late as this."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15.0, 300.0


Asked = tuple[int, ...] | tuple[tuple[int, str], ...] | frozenset[int]
"""Of the brokers: replicas (none: a cancel), a replica in a directory of its broker, or to give up others' move to
these replicas once more."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What brokers would not do, when to ask again, and how long that was put off."""

    problem: Problem
    until: float
    delay: float


@dataclass(slots=True)
class Recent:
    """What this process saw in its last seconds, by a monotonic clock. Losing it costs a wait, never a decision.

    `now` is when the last look began: what it read is not older. `busy` is when a partition was last seen in flight,
    or may have been altered. `cancelled` are the partitions, by the resource's uid, whose cancel a broker confirmed
    and whose order is still to be restored: where metadata shows the original replicas, that need not settle first.
    `refused` is by partition and what was asked for, `doubts` by the replicas: why no answer came to the last request.
    `tracks` are of moves in flight (`core.stall`). `answers` are about log directories.
    """

    now: float = 0.0
    started: float = 0.0
    busy: dict[TopicPartition, float] = field(default_factory=dict)
    cancelled: set[tuple[str, TopicPartition]] = field(default_factory=set)
    refused: dict[tuple[TopicPartition, Asked], Refusal] = field(default_factory=dict)
    doubts: dict[tuple[TopicPartition, tuple[int, ...]], Problem] = field(default_factory=dict)
    tracks: dict[TopicPartition, Track] = field(default_factory=dict)
    silence: dict[TopicPartition, float] = field(default_factory=dict)
    """Since when a partition waits for what brokers say of their log directories."""
    answers: Answers = field(default_factory=Answers)

    def observe(
        self, began: float, ended: float, in_flight: Collection[TopicPartition], answered: Collection[int] = ()
    ) -> None:
        """Take note of a snapshot that was read between these moments, and which brokers told their directories."""
        self.now = began
        self.busy = {tp: at for tp, at in self.busy.items() if began - at < SETTLE_SECONDS}
        self.busy |= {tp: max(self.busy.get(tp, ended), ended) for tp in in_flight}
        self.cancelled = {key for key in self.cancelled if key[1] not in in_flight}
        self.doubts = {key: problem for key, problem in self.doubts.items() if key[0] not in in_flight}
        self.refused = {k: r for k, r in self.refused.items() if began - r.until < LONGEST_RETRY_SECONDS}
        self.answers.observe(began, answered)

    def tell(self, step: AlterLogDirs, at: float, *, answered: bool) -> None:
        """Brokers were told about directories; where an answer is missing, one may be told later."""
        self.answers.tell(step, at, at if answered else at + LANDING_SECONDS)

    def touch(self, tp: TopicPartition, at: float, *, answered: bool) -> None:
        """A step was taken for it; one without an answer may land later."""
        self.busy[tp] = max(self.busy.get(tp, at), at if answered else at + LANDING_SECONDS)

    def settled(self, tp: TopicPartition, *, unconfirmed: bool = False) -> bool:
        """Whether nothing has been in flight for it long enough that metadata is not stale.

        An earlier process may have altered it just before it ended, so a new one waits as long first; where the
        record leaves open whether the brokers answered that one, as long as its request may take to land.
        """
        began = self.started + (LANDING_SECONDS if unconfirmed else 0)
        return self.now - max(self.busy.get(tp, began), began) >= SETTLE_SECONDS

    def shown(self, tp: TopicPartition, broker: int) -> bool:
        """Whether a broker's log directories show all that it was told about a partition.

        What an earlier process told it just before it ended may land late, too.
        """
        return self.answers.is_sure(tp, broker, self.started + LANDING_SECONDS)

    def refuse(self, tp: TopicPartition, asked: Asked, problem: Problem, at: float) -> Problem:
        """Do not ask for this again for a while, each time longer; the problem is why."""
        before = self.refused.get((tp, asked))
        delay = min(before.delay * 2, LONGEST_RETRY_SECONDS) if before else RETRY_SECONDS
        self.refused[tp, asked] = Refusal(problem, at + delay, delay)
        return problem

    def doubt(self, tp: TopicPartition, replicas: tuple[int, ...], problem: Problem, at: float) -> None:
        """No answer came. Ask again once it can no longer land; from the second time on, after longer."""
        if (tp, replicas) in self.doubts:
            self.refuse(tp, replicas, problem, at)
        self.doubts[tp, replicas] = problem

    def refusal(self, tp: TopicPartition, asked: Asked) -> Problem | None:
        """Why it is not asked for now."""
        refusal = self.refused.get((tp, asked))
        return refusal.problem if refusal and refusal.until > self.now else None
