"""What can be done to partitions, and the outcome of doing it: values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reassign.core.model.problem import Problem, private
from reassign.core.model.snapshot import Reassignment, TopicPartition
from reassign.errors import Reason


class Judged(NamedTuple):
    """The topic and the replicas that a partition had when it was judged: with others, it has to be judged again."""

    topic_id: str
    replicas: frozenset[int]


@dataclass(frozen=True, slots=True)
class Alter:
    """Make these the replicas of a partition, in this order (AlterPartitionReassignments).

    With the guard, the replication factor must not change (KIP-860). `judged` is what it was judged by.
    """

    tp: TopicPartition
    replicas: tuple[int, ...]
    allow_replication_factor_change: bool = False
    judged: Judged | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cancel:
    """Revert the move of a partition towards `target`, sorted (AlterPartitionReassignments with no replicas)."""

    tp: TopicPartition
    target: tuple[int, ...]

    @classmethod
    def of(cls, tp: TopicPartition, move: Reassignment) -> Cancel:
        """The cancel of a move that is listed."""
        return cls(tp, tuple(sorted(move.target)))


@dataclass(frozen=True, slots=True)
class Elect:
    """Make the first replica the leader (ElectLeaders, preferred)."""

    tp: TopicPartition


@dataclass(frozen=True, slots=True)
class AlterLogDirs:
    """Put replicas into these directories of their brokers, each as broker and path (AlterReplicaLogDirs)."""

    tp: TopicPartition
    dirs: tuple[tuple[int, str], ...]


Step = Alter | AlterLogDirs | Cancel | Elect


class Result(StrEnum):
    """The result of a step; UNKNOWN when the answer was lost, NOT_SENT when the broker could not be reached."""

    APPLIED = "Applied"
    REFUSED = "Refused"
    UNKNOWN = "Unknown"
    NOT_SENT = "NotSent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step met; reason and message unless it was applied.

    The message may name a broker's address where there is no answer, or it is `private`.
    """

    result: Result
    reason: Reason | None = None
    message: str = ""
    private: bool = False

    @property
    def problem(self) -> Problem:
        """What it met, of one that was not applied."""
        reason = self.reason or Reason.REQUEST_FAILED
        if self.private or self.result in (Result.UNKNOWN, Result.NOT_SENT):
            return Problem(reason, private(self.message, "the brokers did not answer; they are asked again"))
        return Problem(reason, self.message)


APPLIED = Outcome(Result.APPLIED)
