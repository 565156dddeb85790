"""The cheapest exchange (`bounds.exchange`), rounded to replicas: each class of size leaves and enters brokers as it
says."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import KernelState, allows, move
from reassign.planning.machine_code import entry, inlined, inner
from reassign.planning.problem.model import Bytes, Floats


@inlined
def progress(behind: Floats, at: int, size: float, share: float) -> float:
    """Return by how much a replica reduces the squared backlog of a broker: replicas, and a share of bytes."""
    return float(share * size * (behind[0, at] - size / 2) + behind[1, at] - 0.5)


@inlined
def book(behind: Floats, at: int, size: float, replicas: float) -> None:
    """Add replicas of that size to the backlog of a broker."""
    behind[0, at] += replicas * size
    behind[1, at] += replicas


@inner
def receiver(s: KernelState, p: int, k: int, place: Bytes, coming: Floats, size: float, share: float) -> int:
    """Return the broker with the most progress that may take a replica; its own where it moves anyway; -1 for none."""
    b = s.row[p, k]
    free = b != s.home[p, k]
    best, most = b if free else -1, -share * size * size - 1
    for a in range(len(place)):
        if place[a] < 0:
            continue
        brings = progress(coming, place[a], size, share)
        if brings <= most or (a == b and not free) or s.load[0, a] + s.size[p] > s.room[a]:
            continue
        if a == b or allows(s, p, k, a):
            best, most = a, brings
    return best


@entry
def apply_exchange(
    s: KernelState, place: Bytes, kind: Bytes, size: Floats, out: Floats, come: Floats, share: float
) -> None:
    """Move replicas as an exchange says, the greatest first.

    The arrays are those of a `bounds.exchange.Exchange`, `kind` of all partitions. `share` is how much bytes count
    beside replicas. What is less than a replica, in bytes and in number, is carried on to the next smaller ones.
    """
    leaving, coming = np.zeros((2, len(out))), np.zeros((2, len(out)))
    started = np.zeros(len(size), np.bool_)
    for p in range(len(s.row)):
        c, w = kind[p], s.size[p] / s.mean
        if s.still[p] or c < 0:
            continue
        if not started[c]:
            started[c] = True
            for a in range(len(out)):
                book(coming, a, size[c] / s.mean, come[a, c])
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0 or place[b] < 0:
                continue
            free = b != s.home[p, k]
            if not free:
                book(leaving, place[b], w, out[place[b], c])
                if progress(leaving, place[b], w, share) < 0:
                    continue
            best = receiver(s, p, k, place, coming, w, share)
            if best < 0:
                continue
            book(coming, place[best], w, -1.0)
            if not free:
                book(leaving, place[b], w, -1.0)
            if best != b:
                move(s, p, k, best)
