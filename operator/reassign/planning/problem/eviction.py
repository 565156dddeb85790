"""Partitions that only leave drained brokers: where their replicas go. What is planned is balanced around them.

Every other replica stays, unless racks allow no row with it. Each new one goes to the subtree with the fewest of its
partition, from the top of the tree down, and there to the broker that has least for its weight. It takes over the slot
of the replica that it replaces.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.assignments import loads
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Ints
from reassign.planning.problem.tree import Tree


def evicted(
    current: Ints, leaving: Bools, keep: Bools, size: Bytes, allowed: Bools, weight: Bytes, room: Bytes, tree: Tree
) -> Ints:
    """Return the rows (P, R) with those of `leaving` (P,) where they go. One without room that racks allow stays.

    `keep` (P, R) are the replicas that may stay. The greatest partitions go first.
    """
    rows = current.copy()
    load = loads(current, size, len(allowed))[:2]
    total = np.maximum(load.sum(axis=1), 1)
    some = np.flatnonzero(leaving)
    for p in some[np.argsort(-size[some], kind="stable")].tolist():
        lies = load - loads(current[p : p + 1], size[p : p + 1], len(allowed))[:2]
        open_ = allowed & (lies[0] + size[p] <= room)
        has = (lies / total[:, None]).sum(axis=0) / np.maximum(weight, 1)
        row = _row(np.where(keep[p], current[p], UNKNOWN), current[p] >= 0, open_, has, allowed, tree)
        if row is not None:
            rows[p] = row
            load = lies + loads(rows[p : p + 1], size[p : p + 1], len(allowed))[:2]
    return rows


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
