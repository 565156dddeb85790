"""Budgets: how much may be in flight at once, over a cluster and for one resource.

Destinations are never above `moves_per_broker`; sources (a partition's leader) are counted at admission only,
since a leader can change later. A partition that needs more slots than there are runs alone on its source.
A small move takes no slot, since it ends within moments: it counts as a partition only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reassign.core.model.record import Entry, Record
from reassign.core.model.snapshot import Snapshot, TopicPartition, live_brokers
from reassign.core.model.states import State
from reassign.text import counted

SLOTLESS_AS_ONE = 20
"""So many moves of one resource that take no slot begin together: few writes record the small moves of many
resources."""


class Lack(NamedTuple):
    """What a budget has no room for, as a sentence, and the source that has none left."""

    message: str
    source: int | None = None


@dataclass(slots=True)
class Budget:
    """Limits (None: unbounded) and how much of them is used: partitions, and slots by broker."""

    max_partitions: int | None
    moves_per_broker: int | None
    partitions: int = 0
    slotless: int = 0
    """Partitions whose moves take no slot."""
    destinations: Counter[int] = field(default_factory=Counter)
    sources: Counter[int] = field(default_factory=Counter)
    kept: set[int] = field(default_factory=set)
    """Sources whose next room is kept for a partition that comes first and needs more than there is."""
    lasting: Counter[int] = field(default_factory=Counter)
    """The slots by source that no move of ours will free: of other clients' moves, and of moves that are stuck."""

    @property
    def weight(self) -> int:
        """How much is used, for taking turns: SLOTLESS_AS_ONE moves that take no slot count as one."""
        return self.partitions - self.slotless + self.slotless // SLOTLESS_AS_ONE

    def take(self, slots: Collection[int], source: int | None, *, lasts: bool = False) -> None:
        """Count a partition whose move, read from `source`, takes these slots; `lasts`: see `lasting`."""
        self.partitions += 1
        self.slotless += not slots
        self.destinations.update(slots)
        if source is not None:
            self.sources[source] += len(slots)
            self.lasting[source] += len(slots) if lasts else 0

    def lack(self, slots: Collection[int], source: int | None, replaced: Collection[int] | None = None) -> Lack | None:
        """Return what stands in the way of one more partition whose move takes these slots, or None.

        `replaced` are the slots of a move in flight, counted already, that makes way for it.
        """
        places = self.partitions - (0 if replaced is None else 1)
        freed = replaced or ()
        if self.max_partitions is not None and places >= self.max_partitions:
            return Lack(f"{counted(self.max_partitions, 'place')} for partitions in flight, and none is free")
        if self.moves_per_broker is None:
            return None
        for broker in sorted(slots):
            if self.destinations[broker] - (broker in freed) >= self.moves_per_broker:
                return Lack(f"broker {broker} receives {counted(self.moves_per_broker, 'replica')} already")
        if source is not None and slots:
            used = self.sources[source] - len(freed)
            if source in self.kept or (used and used + len(slots) > self.moves_per_broker):
                return Lack(f"broker {source} sends {counted(used, 'replica')} already", source)
        return None

    def reserve(self, slots: Collection[int], source: int | None, replaced: Collection[int] | None = None) -> bool:
        """Keep the room at its source for a partition that lacks room there alone; return whether it lacks any.

        Otherwise partitions that need one slot would starve one that needs several. Room is kept only where our own
        moves will free enough of it.
        """
        lack = self.lack(slots, source, replaced)
        if lack and lack.source is not None and self.moves_per_broker is not None:
            lasting = self.lasting[lack.source] - len(replaced or ())
            if lasting <= 0 or lasting + len(slots) <= self.moves_per_broker:
                self.kept.add(lack.source)
        return lack is not None


def slots_of(tp: TopicPartition, added: Collection[int], snapshot: Snapshot, small_move_bytes: int) -> Collection[int]:
    """Return the brokers on which a move takes a slot: those that get a replica, or none for a small move.

    A move is not small while the leader's broker has not reported its size.
    """
    size, leader = (snapshot.sizes or {}).get(tp, {}), snapshot.leader(tp)
    if not small_move_bytes or leader is None or leader not in size:
        return added
    return () if size[leader] * len(added) <= small_move_bytes else added


def stuck_moves(stalled: Iterable[TopicPartition], snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Return the partitions whose moves stand still: these, and where a move hangs or waits for a broker."""
    alive = live_brokers(snapshot.brokers)
    waiting = (tp for tp, move in snapshot.reassignments.items() if move.hangs or not alive.issuperset(move.adding))
    return frozenset([*stalled, *waiting])


def unlisted(record: Record, snapshot: Snapshot) -> Record:
    """Return the entries that have a place though their move is not listed in flight.

    Their alter may land yet, on another client's move or on a topic made again too, or is to come, or they are copied
    between directories.
    """
    return {tp: entry for tp, entry in record.items() if _may_come(tp, entry, snapshot)}


def _may_come(tp: TopicPartition, entry: Entry, snapshot: Snapshot) -> bool:
    move = snapshot.reassignments.get(tp)
    if entry.may_land:
        return move is None or move.target != frozenset(entry.target)
    copied = entry.state is State.IN_FLIGHT and bool(entry.log_dirs)
    return copied and move is None and not snapshot.lost(tp, entry.topic_id)


def take_in_flight(
    budget: Budget,
    snapshot: Snapshot,
    partitions: Iterable[TopicPartition],
    lasting: Collection[TopicPartition],
    small_move_bytes: int,
) -> None:
    """Count reassignments that are in flight; one whose topic is not in the snapshot has no known source."""
    for tp in partitions:
        slots = slots_of(tp, snapshot.reassignments[tp].adding, snapshot, small_move_bytes)
        budget.take(slots, snapshot.leader(tp), lasts=tp in lasting)
