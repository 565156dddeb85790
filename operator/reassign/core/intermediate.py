"""Intermediate replicas (KIP-236): which replicas of a partition in flight may go, and what going back throws away.

Brokers never dropped them as the proposal would have, and an override in flight hangs on today's. So the algorithm
serves as a judge: it says which replicas a partition can do without, and which hold it up until others are back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reassign.core.model import Partition, Problem, Reassignment, ids
from reassign.errors import Reason


def droppable(
    assigned: Sequence[int],
    leader: int | None,
    isr: frozenset[int],
    sizes: Mapping[int, int],
    top: int,
    min_insync_replicas: int = 1,
) -> frozenset[int]:
    """The replicas that may go when a reassignment changes in flight (KIP-236, onPartitionReassignment).

    `assigned` are all replicas, the adding ones too; `sizes` are bytes by broker, a lag being the leader's size less
    the replica's, and the whole where it is not known; `top` is the size of the original assignment. Existing are the
    leader, the in-sync replicas, then the others by their lag; the first `top` of them stay. None may go where `top`
    is below min.insync.replicas.
    """
    if top < min_insync_replicas:
        return frozenset()
    whole = sizes.get(leader, 0) if leader is not None else max(sizes.values(), default=0)
    in_sync = [b for b in assigned if b in isr]
    others = sorted((b for b in assigned if b not in isr), key=lambda b: whole - sizes.get(b, 0))
    existing = dict.fromkeys([*([leader] if leader in assigned else []), *in_sync, *others])
    return frozenset(assigned) - frozenset(list(existing)[:top])


def holding_up(partition: Partition, original: Sequence[int], required: int) -> frozenset[int]:
    """The replicas being added that a partition in flight cannot do without, since too few others are in sync."""
    top = max(len(original), 1)
    may_go = droppable(partition.replicas, partition.leader, partition.isr, {}, top, min(required, top))
    return (frozenset(partition.replicas) - may_go - frozenset(original)) & partition.isr


def thrown_away(move: Reassignment, sizes: Mapping[int, int] | None, wanted: Iterable[int]) -> Problem:
    """What going back from a move costs, as a sentence; `wanted` are the replicas that it moves to next, if any."""
    going = move.adding
    if not going:
        return Problem(Reason.CANCELLING, "it goes back to its original replicas; nothing had to be copied")
    copied = f"{sum(sizes.get(b, 0) for b in going)} bytes" if sizes else "what was"
    sentence = f"it goes back to its original replicas; those on broker {ids(going)} go, and {copied} copied to them"
    if again := set(going) & set(wanted):
        sentence += f", which broker {ids(again)} copies once more"
    return Problem(Reason.CANCELLING, sentence)
