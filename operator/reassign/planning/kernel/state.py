"""The state that all parts of the kernel change, what a legal move is, and which broker gets a replica.

Partitions are sorted by size, greatest first, so that a broker's list of partitions is sorted by size too. Everything
is compiled. Numbers that are compared with bands are whole, and ties go to the lower index: the same input gives the
same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.planning.machine_code import entry, inlined, inner
from reassign.planning.problem.model import Bools, Bytes, Floats, Ints


class KernelState(NamedTuple):
    """Row 0 of the pairs is bytes, row 1 replicas. P partitions, R slots, B brokers, N nodes, D depth of the tree.

    All whole numbers but the brokers in rows are int64, so that each function is compiled once.
    """

    row: Ints  # (P, R) brokers; -1 for an empty slot
    home: Ints  # (P, R) the broker of the replica in this slot before; -1 for none
    still: Bools  # (P,) is not touched
    size: Bytes  # (P,)
    load: Bytes  # (2, B)
    room: Bytes  # (B,)
    closed: Bools  # (B,) gets no replica of a partition that had none there
    low: Bytes  # (2, B) band
    high: Bytes  # (2, B)
    floor: Bytes  # (2, B) inside the band: brokers are filled up to here
    ceiling: Bytes  # (2, B) inside the band: brokers are emptied down to here
    counts: Floats  # (2,) whether bytes and replicas are balanced, 1.0 or 0.0
    mean: float  # bytes of a replica
    deficit: Floats  # (2, B) up to the floor, in replicas of mean bytes; `update_deficits` fills it, `move` updates it
    path: Bytes  # (B, D)
    cap: Bytes  # (N,)
    level: Bytes  # (N, R + 1)
    extra: Bytes  # (N, R + 1)
    begin: Bytes  # (N + 1,) where the brokers of each node begin
    under: Bytes  # (B * (D + 1),) the brokers below each node, in order


@inlined
def below(s: KernelState, p: int, depth: int, node: int) -> int:
    """Return how many replicas of a partition lie below a node."""
    n = 0
    for k in range(s.row.shape[1]):
        b = s.row[p, k]
        if b >= 0 and s.path[b, depth] == node:
            n += 1
    return n


@inlined
def bars(s: KernelState, p: int, b: int) -> bool:
    """Return whether a broker is closed to a partition: one that had a replica there may have it again."""
    barred = s.closed[b]
    if barred:
        for k in range(s.home.shape[1]):
            if s.home[p, k] == b:
                barred = False
    return bool(barred)


@inlined
def allows(s: KernelState, p: int, slot: int, to: int) -> bool:
    """Return whether a legal row stays legal when the replica in `slot` goes to another broker, open to it."""
    if bars(s, p, to):
        return False
    n = 0
    for k in range(s.row.shape[1]):
        if s.row[p, k] == to:
            return False
        n += s.row[p, k] >= 0
    origin = s.row[p, slot]
    depth, parent = 0, 0
    while s.path[origin, depth] == s.path[to, depth]:
        parent = s.path[to, depth]
        n = below(s, p, depth, parent)
        depth += 1
    loses, gains = s.path[origin, depth], s.path[to, depth]
    had, has = below(s, p, depth, loses), below(s, p, depth, gains)
    level = s.level[parent, n]
    if has + 1 > min(s.cap[gains], level + 1) or had - 1 < min(s.cap[loses], level):
        return False
    for d in range(depth + 1, s.path.shape[1]):
        level = s.level[loses, had - 1]
        loses = s.path[origin, d]
        had = below(s, p, d, loses)
        if had - 1 < min(s.cap[loses], level):
            return False
        level = s.level[gains, has]
        gains = s.path[to, d]
        has = below(s, p, d, gains)
        if has + 1 > min(s.cap[gains], level + 1):
            return False
    return True


@inner
def fits(s: KernelState, p: int, slot: int, to: int) -> bool:
    """Return what `allows` returns; not inlined, for callers that ask less often."""
    return allows(s, p, slot, to)


@inlined
def slot_of(s: KernelState, p: int, b: int) -> int:
    """Return the slot of a partition's replica on a broker; -1 for none."""
    for k in range(s.row.shape[1]):
        if s.row[p, k] == b:
            return k
    return -1


@inner
def move(s: KernelState, p: int, slot: int, to: int) -> None:
    """Move the replica in `slot` to another broker."""
    origin = s.row[p, slot]
    s.load[0, origin] -= s.size[p]
    s.load[1, origin] -= 1
    s.load[0, to] += s.size[p]
    s.load[1, to] += 1
    s.row[p, slot] = to
    update_deficit(s, origin)
    update_deficit(s, to)


@inlined
def update_deficit(s: KernelState, b: int) -> None:
    """Compute how far a broker is below its floor."""
    s.deficit[0, b] = (s.floor[0, b] - s.load[0, b]) / s.mean
    s.deficit[1, b] = s.floor[1, b] - s.load[1, b]


@inner
def update_deficits(s: KernelState) -> None:
    """Compute how far each broker is below its floor."""
    for b in range(s.load.shape[1]):
        update_deficit(s, b)


@inlined
def need(s: KernelState, size: float, b: int) -> float:
    """Return how much a broker needs a replica of that size. The larger the replica, the more its bytes count."""
    return float(s.counts[0] * (size / s.mean) * s.deficit[0, b] + s.counts[1] * s.deficit[1, b])


@inlined
def confines(s: KernelState, p: int, slot: int) -> int:
    """Return the lowest node that the replica in `slot` of a legal row cannot leave, since too few would remain."""
    n = 0
    for k in range(s.row.shape[1]):
        n += s.row[p, k] >= 0
    inside = 0
    for depth in range(s.path.shape[1]):
        node = s.path[s.row[p, slot], depth]
        has = below(s, p, depth, node)
        if has > min(s.cap[node], s.level[inside, n]):
            break
        inside, n = node, has
    return inside


@inner
def neediest(s: KernelState, p: int, slot: int, bytes_slack: int, replicas_slack: int) -> int:
    """Return the broker that needs this replica most, of those that may hold it and stay in their bands; -1 for none.

    Usually the neediest of all brokers is legal. Only if it is not, racks are checked for each broker.
    """
    best, size, inside = -1, s.size[p], confines(s, p, slot)
    for careful in range(2):
        best, most = -1, -np.inf
        for i in range(s.begin[inside], s.begin[inside + 1]):
            b = s.under[i]
            needs = need(s, size, b)
            if needs <= most or s.load[1, b] + 1 > s.high[1, b] + replicas_slack:
                continue
            if s.load[0, b] + size > min(s.high[0, b] + bytes_slack, s.room[b]):
                continue
            if not careful or allows(s, p, slot, b):
                best, most = b, needs
        if best < 0 or fits(s, p, slot, best):
            break
    return best


@entry
def lists(s: KernelState) -> tuple[Bytes, Bytes]:
    """Return (2, B + 1) where each broker's list starts, and (2, ·) the lists: movable partitions, greatest first.

    Row 0 is of all replicas. Row 1 is of those that are away from home, which can go elsewhere at no cost.
    """
    brokers = s.load.shape[1]
    start = np.zeros((2, brokers + 1), np.int64)
    for p in range(len(s.row)):
        if not s.still[p]:
            for k in range(s.row.shape[1]):
                b = s.row[p, k]
                if b >= 0:
                    start[0, b + 1] += 1
                    start[1, b + 1] += b != s.home[p, k]
    for b in range(brokers):
        start[0, b + 1] += start[0, b]
        start[1, b + 1] += start[1, b]
    end = start.copy()
    item = np.empty((2, start[0, brokers]), np.int64)
    for p in range(len(s.row)):
        if not s.still[p]:
            for k in range(s.row.shape[1]):
                b = s.row[p, k]
                if b >= 0:
                    item[0, end[0, b]] = p
                    end[0, b] += 1
                    if b != s.home[p, k]:
                        item[1, end[1, b]] = p
                        end[1, b] += 1
    return start, item


@inlined
def first_not_above(s: KernelState, item: Bytes, start: int, end: int, size: float) -> int:
    """Return the index in a broker's list of its greatest partition of at most that size; `end` for none."""
    while start < end:
        middle = (start + end) // 2
        if s.size[item[middle]] > size:
            start = middle + 1
        else:
            end = middle
    return start
