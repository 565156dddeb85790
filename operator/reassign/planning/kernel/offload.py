"""Offloading: what overloaded brokers give, chosen so that bytes and counts meet their bands together at the fewest
bytes."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import KernelState, first_not_above, move, neediest, slot_of, update_deficits
from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bytes

FAILURES = 64
"""Replicas of one broker that may have no receiver before the rest is left to local search."""


@inner
def between(low: int, high: int, share: float) -> int:
    return low + int((high - low) * share)


@entry
def level(load: Bytes, low: Bytes, high: Bytes, group: Bytes, forced: Bytes) -> tuple[Bytes, Bytes]:
    """Return (floor, ceiling) inside the band, each (B,), such that each group of brokers gives as much as it takes.

    A group is brokers that can only exchange among themselves. The greater of what must be given and what must be taken
    moves, so the other side goes further into its band. `forced` (B,) is what a broker gives at least, for another
    reason.
    """
    floor, ceiling = low.copy(), high.copy()
    for g in range(group.max() + 1):
        gives, takes = 0, 0
        for b in range(len(group)):
            if group[b] == g:
                gives += max(forced[b], load[b] - high[b])
                takes += max(0, low[b] - load[b])
        least, most = 0.0, 1.0
        for _ in range(40):
            middle = (least + most) / 2
            moved = 0
            for b in range(len(group)):
                if group[b] == g:
                    if gives >= takes:
                        moved += max(0, between(low[b], high[b], middle) - load[b])
                    else:
                        moved += max(forced[b], load[b] - between(high[b], low[b], middle))
            if moved >= max(gives, takes):
                most = middle
            else:
                least = middle
        for b in range(len(group)):
            if group[b] == g:
                if gives >= takes:
                    floor[b] = between(low[b], high[b], most)
                else:
                    ceiling[b] = between(high[b], low[b], most)
    return floor, ceiling


@entry
def smallest(s: KernelState, start: Bytes, item: Bytes) -> Bytes:
    """Return (B,) the bytes of the smallest replicas that the excess of replicas forces out of each broker."""
    forced = np.zeros(len(start) - 1, np.int64)
    for b in range(len(forced)):
        excess = s.load[1, b] - s.ceiling[1, b]
        for i in range(max(start[b], start[b + 1] - excess), start[b + 1]):
            forced[b] += s.size[item[i]]
    return forced


@inner
def next_left(gone: Bytes, i: int) -> int:
    """Return the first index from i on that is not gone (union-find with path compression)."""
    while gone[i] != i:
        gone[i] = gone[gone[i]]
        i = gone[i]
    return i


@inner
def pick(s: KernelState, item: Bytes, start: int, end: int, after: Bytes, before: Bytes, many: int, much: int) -> int:
    """Return the index in a broker's list of the replica to give next; -1 for none. `many`, `much` are its excesses."""
    wanted = max(0.0, much / many) if many > 1 else float(max(0, much))
    at = first_not_above(s, item, start, end, wanted)
    small = next_left(after, at - start) + start  # the greatest of at most what is wanted
    large = next_left(before, at - start) + start - 1  # the smallest above; shifted by one, so that start - 1 is none
    if small >= end and large < start:
        return -1
    if small >= end:
        return large
    if large < start:
        return small
    if many > 1:
        nearer = wanted - s.size[item[small]] <= s.size[item[large]] - wanted
        return small if nearer else large
    last = next_left(before, end - start) + start - 1
    finishes = s.size[item[small]] + s.size[item[last]]  # the least that it takes when the smaller one goes first
    return large if s.size[item[large]] <= max(wanted + s.mean / 64, finishes) and much > 0 else small


@entry
def offload(s: KernelState, start: Bytes, item: Bytes, turn: Bytes) -> None:
    """Let brokers, in turn, give replicas down to their ceilings, each to the broker that needs it most."""
    update_deficits(s)
    longest = 0
    for b in range(len(start) - 1):
        longest = max(longest, start[b + 1] - start[b])
    after, before = np.empty(longest + 2, np.int64), np.empty(longest + 2, np.int64)
    for b in turn:
        much, many = s.load[0, b] - s.ceiling[0, b], s.load[1, b] - s.ceiling[1, b]
        if much <= 0 and many <= 0:
            continue
        for i in range(start[b + 1] - start[b] + 2):
            after[i] = before[i] = i
        failures = 0
        while (much > 0 or many > 0) and failures < FAILURES:
            i = pick(s, item, start[b], start[b + 1], after, before, many, much)
            if i < 0:
                break
            after[i - start[b]] = i - start[b] + 1
            before[i - start[b] + 1] = i - start[b]
            p = item[i]
            slot = slot_of(s, p, b)
            to = neediest(s, p, slot, 0, 0) if slot >= 0 else -1
            if to < 0 or s.load[0, b] - s.size[p] < s.low[0, b] or s.load[1, b] - 1 < s.low[1, b]:
                failures += 1
                continue
            move(s, p, slot, to)
            much, many = s.load[0, b] - s.ceiling[0, b], s.load[1, b] - s.ceiling[1, b]
