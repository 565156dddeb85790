"""Local search: brokers still outside a band give or take one replica at a time, for bytes, then for counts.

In the passes for counts, bytes may leave their band by a margin that grows from round to round. The next pass for bytes
repairs that with a few large replicas.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import (
    KernelState,
    first_not_above,
    fits,
    lists,
    move,
    neediest,
    slot_of,
    update_deficits,
)
from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bytes, Ints

TRIES = 24
"""Replicas of one broker that are tried for one move."""

AT_ONCE = 400
"""Moves for one broker in one pass, and for all when they approach their bands."""

GAIN = 8
"""A move that leaves a band to come nearer to others has to gain one part in so many of its bytes."""

FAR = 1e18
"""More than any cost in bytes: among moves that do not suffice, the greatest is the best."""


@entry
def outside(s: KernelState) -> float:
    """Return how far all brokers are outside their bands, in replicas."""
    total = 0.0
    for b in range(s.load.shape[1]):
        much = max(0, s.load[0, b] - s.high[0, b]) + max(0, s.low[0, b] - s.load[0, b])
        many = max(0, s.load[1, b] - s.high[1, b]) + max(0, s.low[1, b] - s.load[1, b])
        total += s.counts[0] * much / s.mean + s.counts[1] * many
    return total


@inner
def move_from(s: KernelState, start: Bytes, item: Bytes, b: int, kind: int, margin: int) -> bool:
    """Move one replica away from a broker; return whether one could move.

    For bytes it is the smallest that covers the excess, else a smaller one. For counts it is the smallest. `margin` is
    how far the other kind may leave its band.
    """
    wide, many = margin * kind, margin * (1 - kind)
    if kind == 0 and s.load[1, b] - 1 < s.low[1, b] - many:
        return False
    first, end = start[b], start[b + 1]
    excess = float(s.load[0, b] - s.high[0, b] - 1)
    at = end if kind else first_not_above(s, item, first, end, excess)
    for way in range(2):  # upwards to greater ones, then downwards
        i, tries = (at - 1, 0) if way == 0 else (at, 0)
        while first <= i < end and tries < TRIES:
            p = item[i]
            i += -1 if way == 0 else 1
            k = slot_of(s, p, b)
            if k < 0:
                continue
            tries += 1
            if s.load[0, b] - s.size[p] < s.low[0, b] - wide:
                if way == 0:
                    break
                continue
            to = neediest(s, p, k, wide, many)
            if to >= 0:
                move(s, p, k, to)
                return True
    return False


@inner
def move_to(s: KernelState, start: Bytes, item: Bytes, b: int, kind: int, margin: int) -> bool:
    """Move one replica to a broker; return whether one could move.

    For bytes it is the smallest spare one that covers the deficit, else the greatest spare one. For counts it is the
    smallest. `margin` is how far the other kind may leave its band.
    """
    wide, many = margin * kind, margin * (1 - kind)
    if s.load[1, b] + 1 > s.high[1, b] + many:
        return False
    best, slot, least = -1, -1, np.inf
    deficit = s.low[0, b] - s.load[0, b]
    for a in range(s.load.shape[1]):
        if a == b or s.load[1, a] - 1 < s.low[1, a] - many:
            continue
        first, end = start[a], start[a + 1]
        spare = s.load[0, a] - s.low[0, a] + wide
        if spare <= 0:
            continue
        if kind == 0:
            i = first_not_above(s, item, first, end, float(min(deficit - 1, spare))) - 1
            step = -1
            if deficit > spare or i < first:
                i, step = i + 1, 1
        else:
            i, step = end - 1, -1
        tries = 0
        while first <= i < end and tries < TRIES:
            p = item[i]
            i += step
            tries += 1
            size = s.size[p]
            if size > spare:
                if step < 0:
                    break
                continue
            k = slot_of(s, p, a)
            if k < 0 or s.load[0, b] + size > min(s.high[0, b] + wide, s.room[b]):
                continue
            cost = FAR - size if kind == 0 and size < deficit else float(size)
            if cost < least and fits(s, p, k, b):
                best, slot, least = p, k, cost
                break
    if best < 0:
        return False
    move(s, best, slot, b)
    return True


@inner
def move_cost(s: KernelState, p: int, slot: int) -> float:
    """Return the bytes that moving a replica costs: none for one that moves anyway."""
    return 0.0 if s.row[p, slot] != s.home[p, slot] else float(s.size[p])


@inner
def swap(s: KernelState, start: Bytes, item: Bytes, b: int) -> bool:
    """Bring a broker's bytes into the band, or nearer, by a swap of two replicas. Counts stay as they are."""
    over = s.load[0, b] > s.high[0, b]
    wanted = s.load[0, b] - s.high[0, b] if over else s.low[0, b] - s.load[0, b]
    best, other, at, least = -1, -1, -1, np.inf
    for a in range(s.load.shape[1]):
        spare = s.high[0, a] - s.load[0, a] if over else s.load[0, a] - s.low[0, a]
        if a == b or spare <= 0:
            continue
        giver, taker = (b, a) if over else (a, b)
        aim = min(wanted, spare * 3 // 4)  # so that there is a choice between that and what can be spared
        i = first_not_above(s, item, start[giver], start[giver + 1], float(aim - 1)) - 1
        step, tries = -1, 0
        if i < start[giver]:
            i, step = start[giver], 1
        while start[giver] <= i < start[giver + 1] and tries < TRIES:
            p = item[i]
            i += step
            tries += 1
            k = slot_of(s, p, giver)
            if k < 0 or not fits(s, p, k, taker):
                continue
            first = first_not_above(s, item, start[taker], start[taker + 1], float(s.size[p] - aim))
            first = min(first, start[taker + 1] - 1)
            for j in range(max(first, start[taker]), min(start[taker + 1], first + 8)):
                q = item[j]
                gain = s.size[p] - s.size[q]
                m = slot_of(s, q, taker)
                if m < 0 or q == p or gain * 48 <= aim or gain > min(spare, wanted + s.high[0, b] - s.low[0, b]):
                    continue
                cost = move_cost(s, p, k) + move_cost(s, q, m) if gain >= wanted else FAR - gain
                if cost < least and s.load[0, taker] + gain <= s.room[taker] and fits(s, q, m, giver):
                    best, other, at, least = p, q, a, cost
            if least == 0.0:
                break
        if least == 0.0:
            break
    if best < 0:
        return False
    giver, taker = (b, at) if over else (at, b)
    move(s, best, slot_of(s, best, giver), taker)
    move(s, other, slot_of(s, other, taker), giver)
    return True


@entry
def plan_cost(s: KernelState) -> tuple[float, int, int]:
    """Return how far from the bands, how many bytes, how many moves: the least is the best."""
    copied, moves = 0, 0
    for p in range(len(s.row)):
        for k in range(s.row.shape[1]):
            if s.row[p, k] >= 0 and s.row[p, k] != s.home[p, k]:
                copied += s.size[p]
                moves += 1
    return outside(s), copied, moves


@inner
def inside(s: KernelState, kind: int, b: int) -> bool:
    """Return whether a broker is inside its band."""
    return bool(s.low[kind, b] <= s.load[kind, b] <= s.high[kind, b])


@entry
def one_pass(s: KernelState, kind: int, margin: int, moves: int) -> int:
    """Pass over all brokers once, for bytes (0) or counts (1), with at most `moves` moves. Return how many of them
    remain."""
    b = 0
    while b < s.load.shape[1] and inside(s, kind, b):
        b += 1
    if b == s.load.shape[1]:
        return moves
    starts, items = lists(s)
    start, item, moved_start, moved_item = starts[0], items[0], starts[1], items[1]
    for b in range(s.load.shape[1]):
        going, left = True, min(moves, AT_ONCE)
        while going and left > 0 and not inside(s, kind, b):
            going = kind == 0 and swap(s, moved_start, moved_item, b)
            if not going and s.load[kind, b] > s.high[kind, b]:
                going = move_from(s, moved_start, moved_item, b, kind, margin) or move_from(
                    s, start, item, b, kind, margin
                )
            elif not going:
                going = move_to(s, moved_start, moved_item, b, kind, margin) or move_to(s, start, item, b, kind, margin)
            if not going and kind == 0:
                going = swap(s, start, item, b)
            left -= 1
            moves -= 1
    return moves


@inner
def copy(source: Ints | Bytes, into: Ints | Bytes) -> None:
    """Copy one (·, ·) array into another; by hand, since that compiles in less time."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            into[i, j] = source[i, j]


@entry
def local_search(s: KernelState, most: int, moves: int) -> None:
    """Run up to `most` rounds of up to `moves` moves in all, until all bands are met or nothing improves. Keep the best
    state."""
    row, load, least = np.empty_like(s.row), np.empty_like(s.load), outside(s)
    copy(s.row, row)
    copy(s.load, load)
    update_deficits(s)
    idle = 0
    for n in range(most):
        if least == 0.0 or idle > 3 or moves <= 0:
            break
        margin = int(s.mean * 2.0**n)
        for turn in range(3):  # bytes, counts, and bytes again
            kind = turn % 2
            if s.counts[kind] > 0:
                moves = one_pass(s, kind, margin if kind else n % 2 * (1 - turn // 2), moves)
        now = outside(s)
        idle += 1
        if now < least:
            idle, least = 0, now
            copy(s.row, row)
            copy(s.load, load)
    copy(row, s.row)
    copy(load, s.load)


@inner
def off(s: KernelState, kind: int, b: int, change: int) -> int:
    """Return how far a broker is outside its band once it has that much more."""
    load = s.load[kind, b] + change
    return int(max(0, load - s.high[kind, b]) + max(0, s.low[kind, b] - load))


@inner
def gain_of(s: KernelState, giver: int, taker: int, size: int) -> int:
    """Return by how much the bytes of two brokers together come nearer to their bands by a move of a replica.

    It is 0 where their numbers of replicas go further from theirs.
    """
    if off(s, 1, giver, -1) + off(s, 1, taker, 1) > off(s, 1, giver, 0) + off(s, 1, taker, 0):
        return 0
    return off(s, 0, giver, 0) + off(s, 0, taker, 0) - off(s, 0, giver, -size) - off(s, 0, taker, size)


@inner
def nearer(s: KernelState, start: Bytes, item: Bytes, b: int) -> bool:
    """Make the move to or from a broker that brings bytes nearest to their bands; return whether there was one."""
    best, slot, to, most = -1, -1, -1, 0
    over = s.load[0, b] > s.high[0, b]
    for other in range(s.load.shape[1]):
        if other == b:
            continue
        giver, taker = (b, other) if over else (other, b)
        aim = max(s.load[0, giver] - s.high[0, giver], s.low[0, taker] - s.load[0, taker])
        at = first_not_above(s, item, start[giver], start[giver + 1], float(aim))
        for way in range(2):  # upwards to greater ones, then downwards
            i, tries = (at - 1, 0) if way == 0 else (at, 0)
            while start[giver] <= i < start[giver + 1] and tries < TRIES:
                p = item[i]
                i += -1 if way == 0 else 1
                k = slot_of(s, p, giver)
                if k < 0:
                    continue
                tries += 1
                gain = gain_of(s, giver, taker, s.size[p])
                if gain <= most or gain * GAIN < s.size[p] or s.load[0, taker] + s.size[p] > s.room[taker]:
                    continue
                if fits(s, p, k, taker):
                    best, slot, to, most = p, k, taker, gain
    if best < 0:
        return False
    move(s, best, slot, to)
    return True


@entry
def approach(s: KernelState) -> None:
    """Where bytes are outside their bands, move up to `AT_ONCE` replicas by which they come nearer all together.

    Other than in the passes, a broker may leave its band for that.
    """
    update_deficits(s)
    moves, before = AT_ONCE, -1
    while 0 < moves != before:
        before = moves
        starts, items = lists(s)
        for b in range(s.load.shape[1]):
            if moves > 0 and not inside(s, 0, b) and nearer(s, starts[0], items[0], b):
                moves -= 1
