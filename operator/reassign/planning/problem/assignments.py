"""Loads and changes of assignments, for all partitions at once. Brokers are indices, -1 fills rows."""

from __future__ import annotations

import numpy as np

from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Ints


def loads(replicas: Ints | Bytes, size: Bytes, brokers: int) -> Bytes:
    """Return (K, B): bytes, replicas and preferred leaders on each broker."""
    load = np.zeros((3, brokers), np.int64)
    _count(replicas, size, load)
    return load


@compiled(nogil=True)
def _count(replicas: Ints | Bytes, size: Bytes, load: Bytes) -> None:
    for p in range(len(replicas)):
        for slot in range(replicas.shape[1]):
            b = replicas[p, slot]
            if b >= 0:
                load[0, b] += size[p]
                load[1, b] += 1
                load[2, b] += slot == 0


def by_factor(rf: Ints, which: Bools) -> list[tuple[int, Bools]]:
    """Return each replication factor, with those of the partitions `which` (P,) that have it."""
    return [(r, which & (rf == r)) for r in np.flatnonzero(np.bincount(rf[which])).tolist()]


def added(current: Ints, target: Ints) -> Bools:
    """Return (P, R'): which replicas of a target (P, R') are on a broker that has none now (P, R)."""
    is_added = np.zeros(target.shape, np.bool_)
    for slot, column in enumerate(target.T):
        is_added[:, slot] = (column != UNKNOWN) & (current != column[:, None]).all(axis=1)
    return is_added
