"""The situation of a partition with an entry in the record: what is wanted of it, and what is observed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reassign.api.partition_reassignment import WhenInFlight
from reassign.core.checks.existence import missing
from reassign.core.checks.in_flight import describe
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded_problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Reassignment, Snapshot, TopicPartition
from reassign.core.model.verdict import Verdict
from reassign.core.partition.directories import Directed, Director
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Situation:
    """A partition with an entry in the record of a resource, and what is observed of it."""

    resource: Resource
    tp: TopicPartition
    entry: Entry
    snapshot: Snapshot
    recent: Recent
    rules: ClusterRules
    expired: bool = False
    """Whether the deadline of the resource has passed."""

    @property
    def listed(self) -> Reassignment | None:
        """What is in flight for the partition, ours or another client's."""
        return self.snapshot.reassignments.get(self.tp)

    @property
    def partition(self) -> Partition:
        """What metadata shows of a partition that is not lost."""
        return self.snapshot.topics[self.tp.topic].partitions[self.tp.partition]

    @property
    def target(self) -> tuple[int, ...] | None:
        """The replicas that the resource wants now."""
        return self.resource.wanted.get(self.tp)

    def lost(self) -> Problem | None:
        """Say why the partition cannot be followed: its topic is gone, another one has the name, or it is `unread`."""
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

    def nothing_in_flight(self, lost: Problem) -> bool:
        """Whether nothing of ours is in flight for a partition that was lost; a move of the new topic is not ours."""
        others = lost.reason is Reason.TOPIC_RECREATED and self.tp in self.snapshot.reassignments
        return (others and not self.in_doubt()) or (not self.unread and self.settled)

    @property
    def unread(self) -> bool:
        """Whether the topic cannot be read now: nothing is known of it."""
        return self.tp.topic in self.snapshot.unread_topics

    def in_doubt(self) -> Problem | None:
        """Say that a request of ours without an answer may still land, whatever is in flight now."""
        if self.recent.in_doubt(self.tp, self.entry) is None:
            return None
        seen = f"another client is moving it ({describe(self.listed)}), and " if self.listed else ""
        return Problem(
            Reason.IN_FLIGHT_ELSEWHERE,
            f"{seen}a request of ours without an answer may still land: the entry stays until it has, or cannot any "
            "more, a minute and a half at most",
        )

    @property
    def settled(self) -> bool:
        """Whether what metadata says of a partition that is not in flight can be believed."""
        return self.recent.settled(self.tp, self.recent.open_write(self.tp, self.entry))

    @property
    def unshown(self) -> bool:
        """Whether what is listed may be a move of a topic that was made again: metadata is not known to be as new."""
        return (self.tp, self.entry.topic_id) in self.recent.unshown

    @property
    def at_target(self) -> bool:
        """Whether nothing is in flight any more, and metadata shows the target."""
        partition = self.snapshot.partition(self.tp)
        return self.listed is None and partition is not None and partition.replicas == self.entry.target

    @property
    def permitted(self) -> bool:
        """Whether the resource's namespace may move the partition now.

        Where it may not, the record may be forged, if the API server lets others write it. So nothing is done but to
        bring back a move that is listed just as it is recorded.
        """
        return self.rules.forbids(self.resource, self.tp) is None

    @property
    def named(self) -> tuple[tuple[int, str], ...]:
        """The directories that the resource names now."""
        asked = self.resource.asked.get(self.tp)
        return asked.named if asked else ()

    @property
    def unchanged(self) -> bool:
        """Whether the resource wants what the entry has: the same replicas, in the same directories."""
        return self.target == self.entry.target and self.named == self.entry.log_dirs

    def directed(self) -> Directed:
        """Return how far the replicas are on their way to the directories that are named."""
        directed = self._director.direct(self.tp, self.entry.log_dirs, self.named, self.entry.target)
        return directed if self.permitted or directed.instruct is None else directed._replace(instruct=None)

    def undirected(self) -> Directed:
        """Return what is left to do until no copy between directories is under way."""
        partition = self.snapshot.partition(self.tp)
        return self._director.direct(self.tp, self.entry.log_dirs, (), partition.replicas if partition else ())

    @property
    def _director(self) -> Director:
        supersede = self.resource.spec.when_in_flight is WhenInFlight.SUPERSEDE
        return Director(self.snapshot, self.recent, supersede)


def situations(verdict: Verdict, snapshot: Snapshot, recent: Recent, rules: ClusterRules) -> Iterator[Situation]:
    """Yield the situation of each partition that has an entry in a verdict's record."""
    for tp, entry in verdict.record.items():
        yield Situation(verdict.resource, tp, entry, snapshot, recent, rules, verdict.expired)


def with_true_original(entry: Entry, listed: tuple[int, ...]) -> Entry:
    """Return the entry with the originals that the controller lists, in the recorded order where they are the same.

    Otherwise the order is not known, and the entry says so.
    """
    if set(entry.original) == set(listed):
        return entry
    return replace(entry, original=listed, problem=recorded_problem(Reason.ORDER_UNKNOWN))
