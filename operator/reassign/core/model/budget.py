"""Budgets: how much may be in flight at once, over a cluster and for one resource.

Destinations are never above `moves_per_broker`; sources (a partition's leader) are counted at admission only,
since a leader can change later. A partition that needs more slots than there are runs alone on its source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reassign.api.partition_reassignment import RecordState
from reassign.core.model.record import Record
from reassign.core.model.snapshot import Reassignment, Snapshot, TopicPartition


class Lack(NamedTuple):
    """What there is no room for, as a sentence, and the source that is short of it."""

    message: str
    source: int | None = None


@dataclass(slots=True)
class Budget:
    """Limits (None: unbounded) and what is used of them: partitions, and replicas by broker."""

    max_partitions: int | None
    moves_per_broker: int | None
    partitions: int = 0
    destinations: Counter[int] = field(default_factory=Counter)
    sources: Counter[int] = field(default_factory=Counter)
    kept: set[int] = field(default_factory=set)
    """Sources whose next room is kept for a partition that comes first and needs more than there is."""
    stuck: frozenset[int] = frozenset()
    """Sources of moves that are stuck: room there is kept for no partition, since it might never come."""

    def take(self, added: Iterable[int], source: int | None) -> None:
        """Count a partition that gets replicas on the brokers `added`, read from `source`."""
        added = list(added)
        self.partitions += 1
        self.destinations.update(added)
        if source is not None:
            self.sources[source] += len(added)

    def lack(self, added: Collection[int], source: int | None, replaced: Reassignment | None = None) -> Lack | None:
        """What stands in the way of one more partition that gets replicas on the brokers `added`, or None.

        `replaced` is a move in flight, counted already, that makes way for it.
        """
        places = self.partitions - (1 if replaced else 0)
        freed = replaced.adding if replaced else ()
        if self.max_partitions is not None and places >= self.max_partitions:
            return Lack(f"all {self.max_partitions} places for partitions in flight are taken")
        if self.moves_per_broker is None:
            return None
        for broker in sorted(added):
            if self.destinations[broker] - freed.count(broker) >= self.moves_per_broker:
                return Lack(f"broker {broker} receives {self.moves_per_broker} replicas already")
        if source is not None and added:
            used = self.sources[source] - len(freed)
            if source in self.kept or (used and used + len(added) > self.moves_per_broker):
                return Lack(f"broker {source} sends {used} replicas already", source)
        return None

    def reserve(self, added: Collection[int], source: int | None, replaced: Reassignment | None = None) -> bool:
        """Whether there is no room for a partition. Where it lacks room at its source alone, none is left there.

        Otherwise partitions that need one slot would starve one that needs several. Not so where the moves that have
        the room are stuck.
        """
        lack = self.lack(added, source, replaced)
        if lack and lack.source is not None and lack.source not in self.stuck:
            self.kept.add(lack.source)
        return lack is not None


def stuck_sources(stalled: Iterable[TopicPartition], snapshot: Snapshot) -> frozenset[int]:
    """The brokers that moves are read from which stand still: these, those that hang, or that wait for a broker."""
    alive = {b.id for b in snapshot.brokers.values() if not b.fenced}
    waiting = (tp for tp, move in snapshot.reassignments.items() if move.hangs or not alive.issuperset(move.adding))
    return frozenset(source for tp in (*stalled, *waiting) if (source := snapshot.leader(tp)) is not None)


def unlisted(record: Record, snapshot: Snapshot) -> Record:
    """The entries that have a place though they are not listed: their alter may land yet, or is to come, or they are
    copied between directories."""
    return {
        tp: entry
        for tp, entry in record.items()
        if tp not in snapshot.reassignments
        and not snapshot.lost(tp, entry.topic_id)
        and (entry.may_land or (entry.state is RecordState.IN_FLIGHT and entry.log_dirs))
    }


def take_in_flight(budget: Budget, snapshot: Snapshot, partitions: Iterable[TopicPartition]) -> None:
    """Count reassignments that are in flight; one whose topic is not in the snapshot has no known source."""
    for tp in partitions:
        budget.take(snapshot.reassignments[tp].adding, snapshot.leader(tp))
