"""Partitions that only leave drained brokers: where their replicas go. What is planned is balanced around them.

Every other replica stays, unless racks allow no row with it and the goal's scope lets it move. Each new one goes to the
subtree with the fewest of its partition, from the top of the tree down, and there to the broker that has least for its
weight. It takes over the slot of the replica that it replaces.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.machine_code import entry, inlined, inner
from reassign.planning.problem.assignments import OF_LEADERS, loads
from reassign.planning.problem.legality import evenly_spread
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
    some = np.flatnonzero(leaving)
    if len(some):
        order = some[np.argsort(-each[DISK][some], kind="stable")]
        load = loads(current, each, len(allowed))[~OF_LEADERS]
        open_, counted = allowed & ~closed, np.ascontiguousarray(each[~OF_LEADERS])
        _evict(
            rows,
            order,
            keep,
            counted,
            load,
            open_,
            weight,
            room,
            allowed,
            tree.path,
            tree.level,
            tree.extra,
            others_stay,
        )
    return rows


@entry
def _evict(
    rows: Ints,
    order: Bytes,
    keep: Bools,
    each: Bytes,
    load: Bytes,
    open_: Bools,
    weight: Bytes,
    room: Bytes,
    allowed: Bools,
    path: Ints,
    level: Ints,
    extra: Ints,
    others_stay: bool,
) -> None:
    """Change the rows of these partitions, in this `order`; `each` and `load` are of all that any replica counts."""
    brokers, width = len(allowed), rows.shape[1]
    total = np.maximum(load.sum(axis=1), 1)
    free, has = np.empty(brokers, np.bool_), np.empty(brokers, np.float64)
    stays, row, held = np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.int32)
    least = np.empty(path.shape[1], np.int64)
    for p in order:
        _count(load, each, rows[p], p, -1)
        for b in range(brokers):
            free[b] = open_[b] and load[DISK, b] + each[DISK, p] <= room[b]
            has[b] = 0.0
            for k in range(len(load)):
                has[b] += load[k, b] / total[k]
            has[b] /= max(weight[b], 1)
        for slot in range(width):
            stays[slot] = rows[p, slot] if keep[p, slot] else UNKNOWN
        while True:
            right, slots = True, 0
            row[:] = stays
            for slot in range(width):
                if rows[p, slot] == UNKNOWN:
                    continue
                if row[slot] == UNKNOWN:
                    row[slot] = _least_crowded(row, free, has, path, least)
                right = right and row[slot] != UNKNOWN and (others_stay or allowed[row[slot]])
                held[slots] = row[slot]
                slots += 1
            if right and (others_stay or evenly_spread(held[:slots], path, level, extra)):
                rows[p] = row
                break
            slot = UNKNOWN if others_stay else _most_crowded(stays, path)
            if slot == UNKNOWN:
                break
            stays[slot] = UNKNOWN
        _count(load, each, rows[p], p, 1)


@inner
def _count(load: Bytes, each: Bytes, row: Ints, p: int, sign: int) -> None:
    """Add the replicas of a row to the load, or take them away."""
    for b in row:
        if b >= 0:
            for k in range(len(load)):
                load[k, b] += sign * each[k, p]


@inlined
def _beside(row: Ints, b: int, depth: int, path: Ints) -> int:
    """Return how many replicas of the row lie below the node of a broker at this depth."""
    n = 0
    for other in row:
        n += other >= 0 and path[other, depth] == path[b, depth]
    return n


@inner
def _least_crowded(row: Ints, free: Bools, has: Floats, path: Ints, least: Bytes) -> int:
    """Return the free broker with the fewest replicas of the row beside it, the top level first, and there the one that
    has least; -1 for none. `least` (D,) is scratch space."""
    best = UNKNOWN
    for b in range(len(free)):
        if not free[b] or _beside(row, b, path.shape[1] - 1, path) > 0:
            continue
        better, decided = best < 0 or has[b] < has[best], best < 0
        for d in range(path.shape[1]):
            n = _beside(row, b, d, path)
            if not decided and n != least[d]:
                better, decided = n < least[d], True
                if not better:
                    break
            if better and decided:
                least[d] = n
        if better:
            best = b
    return best


@inner
def _most_crowded(row: Ints, path: Ints) -> int:
    """Return the slot of the replica with the most of the row beside it, the top level first, and there the last one;
    -1 for none."""
    worst = UNKNOWN
    for slot in range(len(row)):
        if row[slot] == UNKNOWN:
            continue
        more = True
        for d in range(path.shape[1]):
            n, most = _beside(row, row[slot], d, path), _beside(row, row[worst], d, path) if worst >= 0 else 0
            if worst >= 0 and n != most:
                more = n > most
                break
        if more:
            worst = slot
    return worst
