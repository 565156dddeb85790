"""One step further: what a stage says of the partitions in a resource's record, and how that enters its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from reassign.api.partition_reassignment import WhenInFlight
from reassign.core.checks.existence import missing
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import AlterLogDirs, Step
from reassign.core.model.verdict import Stall, Verdict
from reassign.core.moves.log_dirs import Directed, Director
from reassign.errors import Reason


class Move(NamedTuple):
    """The entry as it is from now on (None: forget it), what to do, what stands in the way, and what to say.

    `instruct` goes out beside the step: copies between directories and moves between brokers do not wait for each
    other. `refused` is why something of it does not.
    """

    entry: Entry | None
    step: Step | None = None
    problem: Problem | None = None
    note: Problem | None = None
    instruct: AlterLogDirs | None = None
    refused: Problem | None = None

    def instructing(self, directed: Directed) -> Move:
        return self._replace(instruct=directed.instruct, refused=directed.refused)


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
    """The brake is set: whatever it is, it is to be brought back."""

    @property
    def target(self) -> tuple[int, ...] | None:
        """The replicas that the resource wants now."""
        return self.resource.wanted.get(self.tp)

    def lost(self) -> Problem | None:
        """Why the partition cannot be followed: the topic is gone, or another one has its name."""
        topic = self.snapshot.topics.get(self.tp.topic)
        if topic and topic.id != self.entry.topic_id:
            return Problem(
                Reason.TOPIC_RECREATED,
                f"the topic {self.tp.topic} was deleted and made again while it was moved; "
                "remove the entry, and add it again if the new topic is meant",
            )
        problem = missing(self.tp, self.snapshot)
        if problem and problem.reason is Reason.UNKNOWN_TOPIC_OR_PARTITION:
            return Problem(
                problem.reason, f"the topic {self.tp.topic} was deleted while it was moved; remove the entry"
            )
        return problem

    def ended(self, lost: Problem) -> bool:
        """Whether nothing of ours is in flight for a partition that was lost; what another topic has is not ours."""
        others = lost.reason is Reason.TOPIC_RECREATED and self.tp in self.snapshot.reassignments
        return others or (lost.reason is not Reason.NOT_AUTHORIZED and self.settled)

    @property
    def settled(self) -> bool:
        """Whether what metadata says of a partition that is not in flight can be believed."""
        return self.recent.settled(self.tp, self.recent.recorded(self.tp, self.entry))

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
        """On the way to where no replica is copied to another directory any more."""
        partition = self.snapshot.partition(self.tp)
        return self._director.direct(self.tp, self.entry.log_dirs, (), partition.replicas if partition else ())

    @property
    def _director(self) -> Director:
        supersede = self.resource.spec.when_in_flight is WhenInFlight.SUPERSEDE
        return Director(self.snapshot, self.recent, supersede)


def held_by(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules) -> Iterator[Held]:
    """The partitions with an entry in a verdict's record."""
    for tp, entry in verdict.record.items():
        yield Held(verdict.resource, tp, entry, snapshot, recent, verdict.expired, rules.undo)


def advance(verdict: Verdict, moves: Mapping[TopicPartition, Move]) -> Verdict:
    """The verdict after these partitions of its record were taken one step further."""
    record = dict(verdict.record)
    for tp, move in moves.items():
        if move.entry is None:
            del record[tp]
        else:
            record[tp] = move.entry
    stalls = {tp: Stall(move.refused, overdue=False) for tp, move in moves.items() if move.refused}
    return replace(
        verdict,
        record=record,
        steps=(*verdict.steps, *(s for m in moves.values() for s in (m.instruct, m.step) if s)),
        problems={**verdict.problems, **{tp: move.problem for tp, move in moves.items() if move.problem}},
        stalls={**verdict.stalls, **stalls},
        notes={**verdict.notes, **{tp: move.note for tp, move in moves.items() if move.note}},
    )


def with_true_original(entry: Entry, listed: tuple[int, ...]) -> Entry:
    """The controller's word on which replicas there were; the recorded order, where it is about the same ones."""
    if set(entry.original) == set(listed):
        return entry
    return replace(entry, original=listed, problem=recorded(Reason.ORDER_UNKNOWN))
