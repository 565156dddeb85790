"""Loads and changes of assignments, for all partitions at once. Brokers are indices, -1 fills rows."""

from __future__ import annotations

import numpy as np

from reassign.api.goal import COUNTED
from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Ints

OF_LEADERS = np.array([counted.leaders for counted in COUNTED.values()])
"""(K,): which goals count preferred leaders alone."""


def loads(replicas: Ints | Bytes, each: Bytes, brokers: int, which: Bools | None = None) -> Bytes:
    """Return (K, B): what lies on each broker; `each` (K, P) is what a replica of each partition counts.

    `which` (P,) are the partitions that count; None: all.
    """
    load = np.zeros((len(each), brokers), np.int64)
    some = np.ones(len(replicas), np.bool_) if which is None else which
    _count(replicas, np.ascontiguousarray(each), some, OF_LEADERS, load)
    return load


@compiled(nogil=True)
def _count(replicas: Ints | Bytes, each: Bytes, which: Bools, of_leaders: Bools, load: Bytes) -> None:
    for p in range(len(replicas)):
        for slot in range(replicas.shape[1]):
            b = replicas[p, slot]
            if which[p] and b >= 0:
                for k in range(len(each)):
                    if slot == 0 or not of_leaders[k]:
                        load[k, b] += each[k, p]


def by_factor(rf: Ints, which: Bools) -> list[tuple[int, Bools]]:
    """Return each replication factor, with those of the partitions `which` (P,) that have it."""
    return [(r, which & (rf == r)) for r in np.flatnonzero(np.bincount(rf[which])).tolist()]


def added(current: Ints, target: Ints) -> Bools:
    """Return (P, R'): which replicas of a target (P, R') are on a broker that has none now (P, R)."""
    is_added = np.zeros(target.shape, np.bool_)
    for slot, column in enumerate(target.T):
        is_added[:, slot] = (column != UNKNOWN) & (current != column[:, None]).all(axis=1)
    return is_added
