"""Partitions that only leave drained brokers: where their replicas go. What is planned is balanced around them.

Every other replica stays, unless racks allow no row with it and the goal's scope lets it move. Each new one goes to the
subtree with the fewest of its partition, from the top of the tree down, and there to the broker that has least for its
weight. It takes over the slot of the replica that it replaces.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.assignments import OF_LEADERS, loads
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Floats, Ints
from reassign.planning.problem.shares import DISK
from reassign.planning.problem.tree import Tree


def evicted(
    current: Ints,
    leaving: Bools,
    keep: Bools,
    each: Bytes,
    allowed: Bools,
    closed: Bools,
    weight: Bytes,
    room: Bytes,
    tree: Tree,
    *,
    others_stay: bool,
) -> Ints:
    """Return the rows (P, R) with those of `leaving` (P,) where they go. One without room that racks allow stays.

    Where `others_stay`, all replicas that may stay do, however that spreads the row over racks.
    `keep` (P, R) are the replicas that may stay; `closed` (B,) brokers get none. `each` (K, P) is what a replica
    counts. The greatest partitions go first.
    """
    rows = current.copy()
    size = each[DISK]
    load = _lying(current, each, allowed)
    total = np.maximum(load.sum(axis=1), 1)
    some = np.flatnonzero(leaving)
    for p in some[np.argsort(-size[some], kind="stable")].tolist():
        lies = load - _lying(current[p : p + 1], each[:, p : p + 1], allowed)
        open_ = allowed & ~closed & (lies[DISK] + size[p] <= room)
        has = (lies / total[:, None]).sum(axis=0) / np.maximum(weight, 1)
        row = _row(np.where(keep[p], current[p], UNKNOWN), current[p] >= 0, open_, has, allowed, tree, others_stay)
        if row is not None:
            rows[p] = row
            load = lies + _lying(rows[p : p + 1], each[:, p : p + 1], allowed)
    return rows


def _lying(rows: Ints, each: Bytes, allowed: Bools) -> Bytes:
    """Return (·, B): what lies on each broker of all that any replica counts."""
    lying: Bytes = loads(rows, each, len(allowed))[~OF_LEADERS]
    return lying


def _row(
    stays: Ints, slots: Bools, open_: Bools, has: Floats, allowed: Bools, tree: Tree, others_stay: bool
) -> Ints | None:
    """Return a legal row with as many of the replicas that may stay as possible; None where there is none.

    Where `others_stay`, it has all of them, and is as legal as that allows.
    """
    rf = np.array([slots.sum()], np.int32)
    while True:
        row = stays.copy()
        for slot in np.flatnonzero(slots & (stays == UNKNOWN)).tolist():
            free = np.setdiff1d(np.flatnonzero(open_), row)
            if len(free):
                row[slot] = free[np.lexsort((free, has[free], *_crowding(row, free, tree)[::-1]))[0]]
        if others_stay:
            return row if (row[slots] != UNKNOWN).all() else None
        if done(row[None], rf, allowed, tree.path, tree.level, tree.extra)[0]:
            return row
        held = np.flatnonzero(stays != UNKNOWN).tolist()
        if not held:
            return None
        crowding = _crowding(stays, stays[held], tree)
        stays[held[np.lexsort((held, *crowding[::-1]))[-1]]] = UNKNOWN


def _crowding(row: Ints, brokers: Ints, tree: Tree) -> Ints:
    """Return (D, ·) how many replicas of the row lie beside each of these brokers, the top level first."""
    beside = tree.path[row[row != UNKNOWN]][:, None] == tree.path[brokers][None]
    return np.asarray(beside.sum(axis=0).T.astype(np.int32))
