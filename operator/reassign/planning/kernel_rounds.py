"""What shedding left: brokers still outside a band are filled or emptied one replica at a time, bytes, then counts.

While counts are put right, bytes may leave their band by a margin that grows from round to round; the next pass over
the bytes repairs that with a few large replicas.
"""

from __future__ import annotations

import numpy as np

from .kernel import State, entry, first_not_above, fits, inner, lists, move, neediest, slot_of
from .model import Bytes

TRIES = 48
"""Replicas of one broker that are tried for one move."""


@entry
def outside(s: State) -> float:
    """How far all brokers are outside their bands, in replicas."""
    total = 0.0
    for b in range(s.load.shape[1]):
        much = max(0, s.load[0, b] - s.high[0, b]) + max(0, s.low[0, b] - s.load[0, b])
        many = max(0, s.load[1, b] - s.high[1, b]) + max(0, s.low[1, b] - s.load[1, b])
        total += s.counts[0] * much / s.mean + s.counts[1] * many
    return total


@inner
def push(s: State, start: Bytes, item: Bytes, b: int, kind: int, margin: int) -> bool:
    """Moves one replica away from a broker: for bytes the smallest that covers the excess, else a smaller one; for
    counts one that moves anyway, else the smallest."""
    first, end = start[b], start[b + 1]
    excess = float(s.load[0, b] - s.high[0, b] - 1)
    at = end if kind else first_not_above(s, item, first, end, excess)
    best, slot, to = -1, -1, -1
    for way in range(2):  # upwards to greater ones, then downwards
        i, tries = (at - 1, 0) if way == 0 else (at, 0)
        while first <= i < end and tries < TRIES and best < 0:
            p = item[i]
            i += -1 if way == 0 else 1
            k = slot_of(s, p, b)
            if k < 0:
                continue
            tries += 1
            if s.load[0, b] - s.size[p] < s.low[0, b] - (margin if kind else 0):
                if way == 0:
                    break
                continue
            moves = s.row[p, k] != s.home[p, k]
            other = neediest(s, p, k, margin if kind else 0, 0 if kind else 1)
            if other >= 0:
                best, slot, to = p, k, other
                if kind and not moves:  # is there one a little greater that moves anyway?
                    while first <= i < end and tries < TRIES:
                        q = item[i]
                        i -= 1
                        tries += 1
                        j = slot_of(s, q, b)
                        if j >= 0 and s.row[q, j] != s.home[q, j]:
                            other = neediest(s, q, j, margin, 0)
                            if other >= 0:
                                best, slot, to = q, j, other
                                break
    if best < 0:
        return False
    move(s, best, slot, to)
    return True


@inner
def pull(s: State, start: Bytes, item: Bytes, b: int, kind: int, margin: int) -> bool:
    """Moves one replica to a broker: for bytes the smallest that covers the lack from who can spare it, else the
    greatest that can be spared; for counts one that moves anyway, else the smallest."""
    best, slot, least = -1, -1, np.inf
    lack = s.low[0, b] - s.load[0, b]
    for a in range(s.load.shape[1]):
        if a == b or s.load[1, a] - (kind > 0) < s.low[1, a] - (kind == 0):
            continue
        first, end = start[a], start[a + 1]
        spare = s.load[0, a] - s.low[0, a] + (margin if kind else 0)
        if spare <= 0:
            continue
        if kind == 0:
            i = first_not_above(s, item, first, end, float(min(lack - 1, spare))) - 1
            step = -1
            if lack > spare or i < first:
                i, step = i + 1, 1
        else:
            i, step = end - 1, -1
        tries = 0
        while first <= i < end and tries < TRIES // 4:
            p = item[i]
            i += step
            tries += 1
            size = s.size[p]
            if size > spare:
                if step < 0:
                    break
                continue
            k = slot_of(s, p, a)
            if k < 0 or s.load[0, b] + size > min(s.high[0, b] + (margin if kind else 0), s.room[b]):
                continue
            free = s.row[p, k] != s.home[p, k]
            cost = 0.0 if kind and free else float(size)
            if kind == 0 and size < lack:
                cost = 1e18 - size
            if cost < least and fits(s, p, k, b):
                best, slot, least = p, k, cost
                if kind == 0 or free:
                    break
    if best < 0:
        return False
    move(s, best, slot, b)
    return True


@inner
def settle(s: State, kind: int, margin: int, moves: int) -> int:
    """One pass over all brokers for bytes (0) or counts (1), of at most so many moves; returns how many are left."""
    start, item = lists(s)
    for b in range(s.load.shape[1]):
        while moves > 0 and s.load[kind, b] > s.high[kind, b] and push(s, start, item, b, kind, margin):
            moves -= 1
        while moves > 0 and s.load[kind, b] < s.low[kind, b] and pull(s, start, item, b, kind, margin):
            moves -= 1
    return moves


@inner
def copy(source: Bytes, into: Bytes) -> None:
    """Both (·, ·); by hand, since it compiles in less time."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            into[i, j] = source[i, j]


@entry
def rounds(s: State, most: int, moves: int) -> None:
    """Up to `most` rounds and `moves` moves, until all is inside or nothing comes nearer; keeps the best state seen."""
    row, load, least = np.empty_like(s.row), np.empty_like(s.load), outside(s)
    copy(s.row, row)
    copy(s.load, load)
    idle = 0
    for n in range(most):
        if least == 0.0 or idle > 3 or moves <= 0:
            break
        margin = int(s.mean * (1 + n))
        for kind in range(2):
            if s.counts[kind] > 0:
                moves = settle(s, kind, margin, moves)
        if s.counts[0] > 0:
            moves = settle(s, 0, margin, moves)
        now = outside(s)
        idle += 1
        if now < least:
            idle, least = 0, now
            copy(s.row, row)
            copy(s.load, load)
    copy(row, s.row)
    copy(load, s.load)
