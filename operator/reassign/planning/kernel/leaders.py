"""Preferred leaders: one that left returns where a follower can leave instead, and a follower of the row takes the
first slot. No bytes move for it."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.further import Loads, may_change, transfer
from reassign.planning.kernel.repair import preference
from reassign.planning.kernel.state import KernelState, fits, move, slot_of, update_deficits
from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bools, Bytes, Ints


@inner
def swap(row: Ints, leads: Bytes, p: int, k: int) -> None:
    """Make the replica in slot `k` the preferred leader."""
    leads[row[p, 0]] -= 1
    leads[row[p, k]] += 1
    row[p, 0], row[p, k] = row[p, k], row[p, 0]


@inner
def hand_over(row: Ints, still: Bools, first: Ints, leads: Bytes, floor: Bytes, ceiling: Bytes, changed: bool) -> None:
    """Let brokers above their ceiling hand leadership to the follower with the greatest deficit.

    `changed`: only for partitions whose leader changes anyway.
    """
    for p in range(len(row)):
        b = row[p, 0]
        if still[p] or leads[b] <= ceiling[b] or (changed and b == first[p]):
            continue
        best, most = 0, 0
        for k in range(1, row.shape[1]):
            c = row[p, k]
            if c >= 0 and floor[c] - leads[c] > most:
                best, most = k, floor[c] - leads[c]
        if best:
            swap(row, leads, p, best)


@inner
def edges(row: Ints, still: Bools, edge: Ints) -> None:
    """Fill (B, B) with a partition that each leader and follower share; -1 for none."""
    edge.fill(-1)
    for p in range(len(row)):
        if not still[p]:
            for k in range(1, row.shape[1]):
                if row[p, k] >= 0:
                    edge[row[p, 0], row[p, k]] = p


@inner
def augmenting_path(edge: Ints, leads: Bytes, low: Bytes, high: Bytes, source: int, queue: Bytes, came: Bytes) -> int:
    """Return the nearest broker that can take from `source`, which leads too many, or give to it; -1 for none.

    `came` (B,) is the way back.
    """
    over = leads[source] > high[source]
    came.fill(-1)
    came[source] = source
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        b = queue[head]
        head += 1
        for c in range(len(leads)):
            joined = edge[b, c] if over else edge[c, b]
            if joined < 0 or came[c] >= 0:
                continue
            came[c] = b
            if (over and leads[c] < high[c]) or (not over and leads[c] > low[c]):
                return c
            queue[tail] = c
            tail += 1
    return -1


@entry
def augment(row: Ints, still: Bools, leads: Bytes, low: Bytes, high: Bytes, edge: Ints) -> int:
    """Hand over along augmenting paths, one at a time for each broker outside its band. Return how many there were."""
    brokers, augmented = len(leads), 0
    edges(row, still, edge)
    queue, came = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    for source in range(brokers):
        while leads[source] > high[source] or leads[source] < low[source]:
            over = leads[source] > high[source]
            c = augmenting_path(edge, leads, low, high, source, queue, came)
            if c < 0:
                break
            augmented += 1
            while c != source:
                leader, follower = (came[c], c) if over else (c, came[c])
                p = int(edge[leader, follower])
                for k in range(row.shape[1]):
                    edge[leader, row[p, k]] = -1
                for k in range(1, row.shape[1]):
                    if row[p, k] == follower:
                        swap(row, leads, p, k)
                        break
                c = came[c]
    return augmented


@entry
def lead(row: Ints, still: Bools, first: Ints, leads: Bytes, band: Bytes, aim: Bytes, chains: int) -> None:
    """Bring the leaders inside their band, as far as hand-overs can. `band` and `aim` are (2, B), low and high."""
    hand_over(row, still, first, leads, aim[0], aim[1], True)
    hand_over(row, still, first, leads, aim[0], aim[1], False)
    edge = np.empty((len(leads), len(leads)), np.int32)
    for _ in range(chains):
        if augment(row, still, leads, band[0], band[1], edge) == 0:
            break


@inner
def follower_to_leave(s: KernelState, p: int, of: Loads, led: Loads, weight: Bytes) -> int:
    """Return the slot whose broker can leave in place of the former preferred leader, the least needed; -1 for none.

    The row stays legal, and no load leaves its band.
    """
    best, least, leader, now = -1, 0.0, s.home[p, 0], s.row[p, 0]
    if s.load[0, leader] + s.size[p] > s.room[leader] or not may_change(of, len(of.load) - 1, leader, -1, p):
        return -1
    last = len(led.load) - 1
    if now >= 0 and not (may_change(led, last, now, p, -1) and may_change(led, last, leader, -1, p)):
        return -1
    for k in range(s.row.shape[1]):
        b = s.row[p, k]
        if b < 0 or not may_change(of, len(of.load) - 1, b, p, -1) or not fits(s, p, k, leader):
            continue
        wanted = preference(s, weight, s.size[p], b)
        if best < 0 or wanted <= least:
            best, least = k, wanted
    return best


@entry
def keep_leaders(s: KernelState, keep: Bools, weight: Bytes, of: Loads, led: Loads, sweeps: int) -> int:
    """Let a follower leave in place of a preferred leader that may stay, where all loads stay in their bands.

    `of` is what replicas count and `led` what leaders count. Return how many preferred leaders returned.
    """
    update_deficits(s)
    returned = 0
    for _ in range(sweeps):
        before = returned
        for p in range(len(s.row)):
            leader, now = s.home[p, 0], s.row[p, 0]
            if s.still[p] or leader < 0 or not keep[p, 0] or slot_of(s, p, leader) >= 0:
                continue
            k = follower_to_leave(s, p, of, led, weight)
            if k < 0:
                continue
            transfer(of, s.row[p, k], leader, p)
            if now >= 0:
                transfer(led, now, leader, p)
            move(s, p, k, leader)
            s.row[p, 0], s.row[p, k] = s.row[p, k], s.row[p, 0]
            returned += 1
        if returned == before:
            break
    return returned
