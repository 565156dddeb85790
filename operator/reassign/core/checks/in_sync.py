"""In-sync replicas: which replicas of a partition in flight are needed until others are in sync (KIP-236)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, Partition
from reassign.errors import Reason
from reassign.text import counted, named_brokers


def min_in_sync_replicas(i: Input) -> Problem | None:
    """Refuse fewer replicas than min.insync.replicas: brokers accept them, and producers with acks=all then fail."""
    required = i.topic.min_insync_replicas
    if len(i.target) >= required or len(i.target) >= len(i.current) or i.stale:
        return None
    return Problem(
        Reason.BELOW_MIN_IN_SYNC_REPLICAS,
        f"{counted(len(i.target), 'replica')} would be fewer than min.insync.replicas={required}; name more replicas, "
        "or lower it",
    )


def cancel_problem(
    original: tuple[int, ...], partition: Partition, required: int, brokers: Mapping[int, Broker]
) -> Problem | None:
    """Return why going back to the original replicas is unsafe now, or None.

    Of the originals min.insync.replicas, or all where they are fewer, must be alive and in sync. KIP-236 asks as much
    of replicas that are dropped in flight.
    """
    good = {b for b in original if b in partition.isr and b in brokers and not brokers[b].fenced}
    needed = min(required, len(original))
    if len(good) >= needed:
        return None
    missing = set(original) - good
    held_up = holding_up(partition, original, required)
    until_then = f"; until then {named_brokers(held_up)} must stay" if held_up else ""
    return Problem(
        Reason.CANCEL_UNSAFE,
        f"going back to {list(original)} would leave {len(good)} of at least {needed} in-sync replicas; "
        f"it is held back until {named_brokers(missing, 'is')} alive and in sync again{until_then}",
    )


def droppable(
    assigned: Sequence[int],
    leader: int | None,
    isr: frozenset[int],
    sizes: Mapping[int, int],
    top: int,
    min_insync_replicas: int = 1,
) -> frozenset[int]:
    """Return the replicas that may go when a reassignment changes in flight (KIP-236, onPartitionReassignment).

    `assigned` are all replicas, the adding ones too; `top` is the size of the original assignment. `sizes` are bytes by
    broker. A replica lags by the leader's size less its own, and by all of it where its size is not known. The leader
    comes first, then the in-sync replicas, then the others by their lag; the first `top` of them stay. None may go
    where `top` is below min.insync.replicas.
    """
    if top < min_insync_replicas:
        return frozenset()
    whole = sizes.get(leader, 0) if leader is not None else max(sizes.values(), default=0)
    in_sync = [b for b in assigned if b in isr]
    others = sorted((b for b in assigned if b not in isr), key=lambda b: whole - sizes.get(b, 0))
    existing = dict.fromkeys([*([leader] if leader in assigned else []), *in_sync, *others])
    return frozenset(assigned) - frozenset(list(existing)[:top])


def holding_up(partition: Partition, original: Sequence[int], required: int) -> frozenset[int]:
    """Return the replicas being added that a partition in flight needs, since too few others are in sync."""
    top = max(len(original), 1)
    may_go = droppable(partition.replicas, partition.leader, partition.isr, {}, top, min(required, top))
    return (frozenset(partition.replicas) - may_go - frozenset(original)) & partition.isr
