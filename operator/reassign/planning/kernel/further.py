"""Balances what further goals count, once bytes, replicas and leaders are where they should be.

A change is made only if it brings the goal at hand nearer to its band and takes no other load out of its own. What
replicas count is balanced by moves and by swaps of two replicas, at few bytes. What leaders count is balanced by a
follower taking the first slot, alone or in exchange for another partition's leadership.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.planning.kernel.state import KernelState, first_not_above, fits, lists, move, slot_of
from reassign.planning.machine_code import entry, inlined, inner
from reassign.planning.problem.model import Bools, Bytes, Ints

SWEEPS = 12
TRIES = 48
"""Replicas of one broker that are tried for one change."""
NEAR = 4
"""Replicas of about the same size, larger and smaller, that are tried in exchange."""


class Loads(NamedTuple):
    """Letters as in `KernelState`; K rows of loads, all of which count replicas or all of which count leaders."""

    each: Bytes  # (K, P)
    load: Bytes  # (K, B)
    low: Bytes  # (K, B)
    high: Bytes  # (K, B)


@inlined
def may_change(of: Loads, last: int, b: int, p: int, q: int) -> bool:
    """Return whether a broker may give `p` and take `q`, -1 for none: no load up to row `last` leaves its band."""
    for k in range(last + 1):
        change = (of.each[k, q] if q >= 0 else 0) - (of.each[k, p] if p >= 0 else 0)
        now = of.load[k, b] + change
        if (change > 0 and now > of.high[k, b]) or (change < 0 and now < of.low[k, b]):
            return False
    return True


@inlined
def transfer(of: Loads, giver: int, taker: int, p: int) -> None:
    for k in range(len(of.load)):
        of.load[k, giver] -= of.each[k, p]
        of.load[k, taker] += of.each[k, p]


@inlined
def beyond(of: Loads, k: int, b: int) -> int:
    """Return how far a broker is outside its band: above 0 over it, below 0 under it."""
    return int(max(0, of.load[k, b] - of.high[k, b]) - max(0, of.low[k, b] - of.load[k, b]))


@inner
def exchange(s: KernelState, of: Loads, k: int, start: Bytes, item: Bytes, b: int, turn: int) -> bool:
    """Bring a broker nearer to the band of row `k` by one move or swap; return whether there was one.

    It is the one that gains most for its bytes.
    """
    wanted = beyond(of, k, b)
    best, other, at, most = -1, -1, -1, 0.0
    for a in range(s.load.shape[1]):
        giver, taker = (b, a) if wanted > 0 else (a, b)
        many = start[giver + 1] - start[giver]
        if a == b or many == 0:
            continue
        step = max(1, many // TRIES)
        for i in range(start[giver] + turn % step, start[giver + 1], step):
            p = item[i]
            slot = slot_of(s, p, giver)
            if of.each[k, p] == 0 or slot < 0 or not fits(s, p, slot, taker):
                continue
            near = first_not_above(s, item, start[taker], start[taker + 1], float(s.size[p]))
            for j in range(max(start[taker], near - NEAR) - 1, min(start[taker + 1], near + NEAR)):
                q = item[j] if j >= start[taker] and j >= near - NEAR else -1  # first by itself, for none
                gain = of.each[k, p] - (of.each[k, q] if q >= 0 else 0)
                if gain <= 0:
                    continue
                copied = 0.0 if s.row[p, slot] != s.home[p, slot] else float(s.size[p])
                back = -1
                if q >= 0:
                    back = slot_of(s, q, taker)
                    if back < 0:
                        continue
                    copied += 0.0 if s.row[q, back] != s.home[q, back] else float(s.size[q])
                worth = min(gain, abs(wanted)) / (copied + s.mean)
                if worth <= most or not may_change(of, k, giver, p, q) or not may_change(of, k, taker, q, p):
                    continue
                if s.load[0, taker] + s.size[p] - (s.size[q] if q >= 0 else 0) > s.room[taker]:
                    continue
                if q >= 0 and (s.load[0, giver] + s.size[q] - s.size[p] > s.room[giver] or not fits(s, q, back, giver)):
                    continue
                best, other, at, most = p, q, a, worth
    if best < 0:
        return False
    giver, taker = (b, at) if wanted > 0 else (at, b)
    move(s, best, slot_of(s, best, giver), taker)
    transfer(of, giver, taker, best)
    if other >= 0:
        move(s, other, slot_of(s, other, taker), giver)
        transfer(of, taker, giver, other)
    return True


@entry
def exchange_replicas(s: KernelState, of: Loads, first: int) -> None:
    """Bring the rows from `first` on inside their bands, as far as single moves and swaps can."""
    for k in range(first, len(of.load)):
        for turn in range(SWEEPS):
            starts, items = lists(s)
            changed = False
            for b in range(of.load.shape[1]):
                left = TRIES
                while left > 0 and beyond(of, k, b) != 0 and exchange(s, of, k, starts[0], items[0], b, turn + left):
                    changed = True
                    left -= 1
            if not changed:
                break


@inlined
def lead(row: Ints, of: Loads, p: int, slot: int) -> None:
    transfer(of, row[p, 0], row[p, slot], p)
    row[p, 0], row[p, slot] = row[p, slot], row[p, 0]


@inlined
def follows(row: Ints, p: int, b: int) -> int:
    """Return the slot of a broker that follows in a partition; 0 for none."""
    for slot in range(1, row.shape[1]):
        if row[p, slot] == b:
            return slot
    return 0


@entry
def exchange_leaders(row: Ints, still: Bools, of: Loads, first: int) -> None:
    """Bring the rows from `first` on inside their bands, as far as hand-overs of one or two partitions can."""
    brokers = of.load.shape[1]
    for k in range(first, len(of.load)):
        for turn in range(SWEEPS):
            changed = False
            start = np.zeros(brokers + 1, np.int64)
            for p in range(len(row)):
                if row[p, 0] >= 0:
                    start[row[p, 0] + 1] += 1
            start = np.cumsum(start)
            item, end = np.empty(len(row), np.int64), start.copy()
            for p in range(len(row)):
                if row[p, 0] >= 0:
                    item[end[row[p, 0]]] = p
                    end[row[p, 0]] += 1
            for p in range(len(row)):
                for slot in range(1, row.shape[1]):
                    a, b = row[p, 0], row[p, slot]
                    if still[p] or b < 0 or of.each[k, p] == 0 or (beyond(of, k, a) <= 0 and beyond(of, k, b) >= 0):
                        continue
                    if may_change(of, k, a, p, -1) and may_change(of, k, b, -1, p):
                        lead(row, of, p, slot)
                        changed = True
                        continue
                    many = start[b + 1] - start[b]
                    for i in range(start[b] + turn % max(1, many // TRIES), start[b + 1], max(1, many // TRIES)):
                        q = item[i]
                        back = follows(row, q, a) if row[q, 0] == b and not still[q] else 0
                        if back == 0 or of.each[k, q] >= of.each[k, p]:
                            continue
                        if may_change(of, k, a, p, q) and may_change(of, k, b, q, p):
                            lead(row, of, p, slot)
                            lead(row, of, q, back)
                            changed = True
                            break
            if not changed:
                break
