"""Partitions that only leave drained brokers: where their replicas go. What is planned is balanced around them.

Every other replica stays, unless racks allow no row with it. Each new one goes to the subtree with the fewest of its
partition, from the top of the tree down, and there to the broker that has least for its weight. It takes over the slot
of the replica that it replaces.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.assignments import OF_LEADERS, loads
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Ints
from reassign.planning.problem.shares import DISK
from reassign.planning.problem.tree import Tree


def evicted(
    current: Ints, leaving: Bools, keep: Bools, each: Bytes, allowed: Bools, weight: Bytes, room: Bytes, tree: Tree
) -> Ints:
    """Return the rows (P, R) with those of `leaving` (P,) where they go. One without room that racks allow stays.

    `keep` (P, R) are the replicas that may stay. `each` (K, P) is what a replica counts. The greatest
    partitions go first.
    """
    rows = current.copy()
    size = each[DISK]
    load = _lying(current, each, allowed)
    total = np.maximum(load.sum(axis=1), 1)
    some = np.flatnonzero(leaving)
    for p in some[np.argsort(-size[some], kind="stable")].tolist():
        lies = load - _lying(current[p : p + 1], each[:, p : p + 1], allowed)
        open_ = allowed & (lies[DISK] + size[p] <= room)
        has = (lies / total[:, None]).sum(axis=0) / np.maximum(weight, 1)
        row = _row(np.where(keep[p], current[p], UNKNOWN), current[p] >= 0, open_, has, allowed, tree)
        if row is not None:
            rows[p] = row
            load = lies + _lying(rows[p : p + 1], each[:, p : p + 1], allowed)
    return rows


def _lying(rows: Ints, each: Bytes, allowed: Bools) -> Bytes:
    """Return (·, B): what lies on each broker of all that any replica counts."""
    lying: Bytes = loads(rows, each, len(allowed))[~OF_LEADERS]
    return lying


def _row(stays: Ints, slots: Bools, open_: Bools, has: np.ndarray, allowed: Bools, tree: Tree) -> Ints | None:
    """Return a legal row with as many of the replicas that may stay as possible; None where there is none."""
    rf = np.array([slots.sum()], np.int32)
    while True:
        row = stays.copy()
        for slot in np.flatnonzero(slots & (stays == UNKNOWN)).tolist():
            free = np.setdiff1d(np.flatnonzero(open_), row)
            if len(free):
                row[slot] = min(free.tolist(), key=lambda b: (_crowding(row, b, tree), has[b], b))
        if done(row[None], rf, allowed, tree.path, tree.level, tree.extra)[0]:
            return row
        held = np.flatnonzero(stays != UNKNOWN).tolist()
        if not held:
            return None
        stays[max(held, key=lambda slot: (_crowding(stays, int(stays[slot]), tree), slot))] = UNKNOWN


def _crowding(row: Ints, broker: int, tree: Tree) -> tuple[int, ...]:
    """Return how many replicas of the row lie beside a broker, the top level first."""
    return tuple((tree.path[row[row != UNKNOWN]] == tree.path[broker]).sum(axis=0).tolist())
