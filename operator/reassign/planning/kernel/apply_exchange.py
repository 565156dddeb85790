"""Replicas go as the cheapest exchange has it (`exchange`): as many of each class of size from and to each broker."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import State, allows, move
from reassign.planning.machine_code import entry, inlined
from reassign.planning.problem.model import Bytes, Floats


@inlined
def worth(behind: Floats, at: int, size: float, share: float) -> float:
    """How much nearer a replica brings what has gone to what should have: replicas, and a share of bytes, squared."""
    return float(share * size * (behind[0, at] - size / 2) + behind[1, at] - 0.5)


@inlined
def count(behind: Floats, at: int, size: float, replicas: float) -> None:
    behind[0, at] += replicas * size
    behind[1, at] += replicas


@entry
def pour(s: State, place: Bytes, kind: Bytes, size: Floats, out: Floats, come: Floats, share: float) -> None:
    """The arrays are those of an `exchange`, `kind` of all partitions. `share` is how much bytes count beside replicas.

    Greatest first. What is less than a replica, in bytes and in number, is carried on to the next smaller ones.
    """
    leaving, coming = np.zeros((2, len(out))), np.zeros((2, len(out)))
    begun = np.zeros(len(size), np.bool_)
    for p in range(len(s.row)):
        c, w = kind[p], s.size[p] / s.mean
        if s.still[p] or c < 0:
            continue
        if not begun[c]:
            begun[c] = True
            for a in range(len(out)):
                count(coming, a, size[c] / s.mean, come[a, c])
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0 or place[b] < 0:
                continue
            free = b != s.home[p, k]
            if not free:
                count(leaving, place[b], w, out[place[b], c])
                if worth(leaving, place[b], w, share) < 0:
                    continue
            best, most = b if free else -1, -share * w * w - 1
            for a in range(len(place)):
                if place[a] < 0:
                    continue
                brings = worth(coming, place[a], w, share)
                if brings <= most or (a == b and not free) or s.load[0, a] + s.size[p] > s.room[a]:
                    continue
                if a == b or allows(s, p, k, a):
                    best, most = a, brings
            if best < 0:
                continue
            count(coming, place[best], w, -1.0)
            if not free:
                count(leaving, place[b], w, -1.0)
            if best != b:
                move(s, p, k, best)
