"""In-sync replicas: which replicas of a partition in flight are needed until others are in sync (KIP-236)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reassign.core.model.snapshot import Partition


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
