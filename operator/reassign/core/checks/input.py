"""The input of the checks: a partition that waits to be moved, and all that is known about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from reassign.api.partition_reassignment import ANY_LOG_DIR, PartitionEntry, WhenInFlight
from reassign.core.model.budget import Budget, slots_of
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.log_dir_reports import FRESH_SECONDS
from reassign.core.model.log_dirs import LogDirPlacement, placements
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Name
from reassign.core.model.resource import Resource
from reassign.core.model.room import Room
from reassign.core.model.snapshot import Partition, Reassignment, Snapshot, Topic, TopicPartition


@dataclass(frozen=True)
class Input:
    """A partition that waits to be moved, and all that is known about it.

    The properties are of partitions that exist (`checks.existence`). Many checks ask for them, so each is computed
    once.
    """

    tp: TopicPartition
    wanted: PartitionEntry
    resource: Resource
    snapshot: Snapshot
    rules: ClusterRules
    recent: Recent
    room: Room
    """What brokers have room for."""
    budget: Budget
    """What is left of the cluster's budget."""
    own: Budget
    """What is left of the resource's budget."""
    shared: Budget
    """What is left of its namespace's budget."""
    moving: bool = False
    """Whether the resource has moves in flight."""
    expired: bool = False
    """Whether the resource's deadline has passed."""
    claimed_by: Name | None = None
    """Another resource that has the partition."""

    @property
    def target(self) -> tuple[int, ...]:
        return self.wanted.replicas

    @property
    def topic(self) -> Topic:
        return self.snapshot.topics[self.tp.topic]

    @cached_property
    def partition(self) -> Partition:
        return self.topic.partitions[self.tp.partition]

    @cached_property
    def log_dirs(self) -> Mapping[int, str]:
        """The directories that the entry names, by broker."""
        return dict(self.wanted.named)

    @cached_property
    def in_flight(self) -> Reassignment | None:
        """The partition's move in flight: another client's, since its own has not begun."""
        return self.snapshot.reassignments.get(self.tp)

    @cached_property
    def placements(self) -> list[LogDirPlacement]:
        """The placement of each replica for which a directory is named."""
        return placements(self.tp, self.wanted.named, self.snapshot)

    @property
    def done(self) -> bool:
        """Whether the partition is at its target, in the directories that are named."""
        at_target = self.in_flight is None and self.partition.replicas == self.target
        return at_target and all(place.done for place in self.placements)

    @cached_property
    def current(self) -> tuple[int, ...]:
        """The replicas that the partition has, without those being added."""
        return self.in_flight.original if self.in_flight else self.partition.replicas

    @property
    def stale(self) -> bool:
        """Whether `current` may be as it was a moment ago; what is in flight never is."""
        return self.in_flight is None and self.recent.is_stale(self.tp)

    @property
    def supersedes(self) -> bool:
        """Whether another client's move has to make way."""
        return self.in_flight is not None and self.resource.spec.when_in_flight is WhenInFlight.SUPERSEDE

    @property
    def under_way(self) -> bool:
        """Whether another client's move, which may be superseded, goes to the same target."""
        move = self.in_flight
        return self.supersedes and move is not None and move.final == self.target and not move.hangs

    @cached_property
    def added(self) -> frozenset[int]:
        """The brokers that get a replica."""
        return frozenset(self.target) - frozenset(self.current)

    @cached_property
    def slots(self) -> Collection[int]:
        """The brokers on which the move takes a slot."""
        return slots_of(self.tp, self.added, self.snapshot, self.rules.small_move_bytes)

    @property
    def replaced_slots(self) -> Collection[int] | None:
        """The slots of the move in flight that makes way; None without one."""
        if self.in_flight is None:
            return None
        return slots_of(self.tp, self.in_flight.adding, self.snapshot, self.rules.small_move_bytes)

    @cached_property
    def receivers(self) -> frozenset[int]:
        """The brokers that get a replica, or copy theirs to another directory."""
        return self.added | {place.broker for place in self.placements if place.copies}

    @cached_property
    def directories(self) -> Mapping[int, str]:
        """The directory on each receiver that has room: one by its path, or ANY_LOG_DIR."""
        return {b: path for b in self.receivers if (path := self._directory(b))}

    @property
    def unplaced(self) -> frozenset[int]:
        """The receivers that have room, unless what is on its way there goes where this goes."""
        if len(self.directories) == len(self.receivers):
            return frozenset()
        full = self.receivers - self.directories.keys()
        return frozenset(broker for broker in full if self._directory(broker, reported=True))

    def _directory(self, broker: int, *, reported: bool = False) -> str | None:
        return self.room.directory(broker, self.log_dirs.get(broker, ANY_LOG_DIR), self.tp, reported=reported)

    @property
    def silence_lasts(self) -> bool:
        """Whether the partition has waited long for brokers' reports on their log directories."""
        return self.recent.now - self.recent.silence.get(self.tp, self.recent.now) >= FRESH_SECONDS
