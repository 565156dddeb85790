"""Preferred leaders: a follower of the row takes the first place. No bytes move."""

from __future__ import annotations

import numpy as np

from .kernel import entry, inner
from .model import Bools, Bytes


@inner
def swap(row: Bytes, leads: Bytes, p: int, k: int) -> None:
    leads[row[p, 0]] -= 1
    leads[row[p, k]] += 1
    row[p, 0], row[p, k] = row[p, k], row[p, 0]


@inner
def hand_over(
    row: Bytes, still: Bools, first: Bytes, leads: Bytes, floor: Bytes, ceiling: Bytes, changed: bool
) -> None:
    """Brokers above their ceiling give leadership to the follower that lacks most; `changed`: only of partitions whose
    leader changes anyway."""
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
def edges(row: Bytes, still: Bools, brokers: int) -> Bytes:
    """(B, B) of each leader and follower a partition that they share; -1 for none."""
    edge = np.empty((brokers, brokers), np.int64)
    edge.fill(-1)
    for p in range(len(row)):
        if not still[p]:
            for k in range(1, row.shape[1]):
                if row[p, k] >= 0:
                    edge[row[p, 0], row[p, k]] = p
    return edge


@inner
def augment(row: Bytes, still: Bools, leads: Bytes, low: Bytes, high: Bytes) -> bool:
    """One chain of hand-overs, the shortest, from a broker that leads too many or to one that leads too few."""
    brokers = len(leads)
    edge = edges(row, still, brokers)
    queue, came = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    for source in range(brokers):
        over, under = leads[source] > high[source], leads[source] < low[source]
        if not over and not under:
            continue
        came.fill(-1)
        came[source] = source
        queue[0] = source
        head, tail, found = 0, 1, -1
        while head < tail and found < 0:
            b = queue[head]
            head += 1
            for c in range(brokers):
                joined = edge[b, c] if over else edge[c, b]
                if joined < 0 or came[c] >= 0:
                    continue
                came[c] = b
                queue[tail] = c
                tail += 1
                if (over and leads[c] < high[c]) or (under and leads[c] > low[c]):
                    found = c
                    break
        if found < 0:
            continue
        c = found
        while c != source:
            b = came[c]
            p, to = (edge[b, c], c) if over else (edge[c, b], b)
            for k in range(1, row.shape[1]):
                if row[p, k] == to:
                    swap(row, leads, p, k)
                    break
            c = b
        return True
    return False


@entry
def lead(row: Bytes, still: Bools, first: Bytes, leads: Bytes, band: Bytes, aim: Bytes, chains: int) -> None:
    """Brings the leaders inside their band, as far as hand-overs can; `band` and `aim` are (2, B), low and high."""
    hand_over(row, still, first, leads, aim[0], aim[1], True)
    hand_over(row, still, first, leads, aim[0], aim[1], False)
    for _ in range(chains):
        if not augment(row, still, leads, band[0], band[1]):
            break
