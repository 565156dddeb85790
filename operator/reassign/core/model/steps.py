"""Steps that can be taken for partitions, and their outcomes: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
class AlterLogDirs:
    """The directories to put replicas into, each as broker and path (AlterReplicaLogDirs)."""

    tp: TopicPartition
    dirs: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Alter:
    """New replicas for a partition, in this order (AlterPartitionReassignments).

    With the guard, the replication factor must not change (KIP-860).
    """

    tp: TopicPartition
    replicas: tuple[int, ...]
    allow_replication_factor_change: bool = False
    judged: Judged | None = field(default=None, compare=False, repr=False)
    """The topic and replicas that the partition was judged by."""
    directed: AlterLogDirs | None = field(default=None, compare=False, repr=False)
    """The directories that brokers have to know before: elsewhere there may be no room."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel of a partition's move (AlterPartitionReassignments with no replicas)."""

    tp: TopicPartition
    target: tuple[int, ...]
    """The replicas that the move goes to, sorted."""

    @classmethod
    def of(cls, tp: TopicPartition, move: Reassignment) -> Cancel:
        """Return the cancel of a move that is listed."""
        return cls(tp, tuple(sorted(move.target)))


@dataclass(frozen=True, slots=True)
class Elect:
    """An election of the first replica as the leader (ElectLeaders, preferred)."""

    tp: TopicPartition


Step = Alter | AlterLogDirs | Cancel | Elect


class Result(StrEnum):
    """The result of a step; UNKNOWN when the answer was lost, NOT_SENT when the broker could not be reached."""

    APPLIED = "Applied"
    REFUSED = "Refused"
    UNKNOWN = "Unknown"
    NOT_SENT = "NotSent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a step; reason and message unless it was applied."""

    result: Result
    reason: Reason | None = None
    message: str = ""
    private: bool = False
    """Whether the message may name a broker's address; where there is no answer, any may."""

    @property
    def problem(self) -> Problem:
        """The problem of a step that was not applied."""
        reason = self.reason or Reason.REQUEST_FAILED
        if self.private or self.result in (Result.UNKNOWN, Result.NOT_SENT):
            return Problem(reason, private(self.message, "the brokers did not answer; they are asked again"))
        return Problem(reason, self.message)


APPLIED = Outcome(Result.APPLIED)


def not_directed(step: Step, outcomes: Mapping[Step, Outcome]) -> Outcome | None:
    """Return the outcome of an alter that is not sent, because a broker did not take the directory of its replica."""
    met = outcomes.get(step.directed) if isinstance(step, Alter) and step.directed else None
    if met is None or met.result is Result.APPLIED:
        return None
    return met if met.result is Result.REFUSED else replace(met, result=Result.NOT_SENT)
