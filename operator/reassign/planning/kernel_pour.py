"""Replicas go as the cheapest exchange has it (`exchange`): as many of each class of size from and to each broker."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel import Floats, State, allows, entry, move
from reassign.planning.model import Bytes


@entry
def pour(s: State, place: Bytes, kind: Bytes, out: Floats, come: Floats) -> None:
    """`place` (B,) of brokers in the rows of the others, -1 for those that are not in this cell; `kind` (P,) the class;
    `out` (b, C) the share of the replicas there that leaves, `come` (b, C) how many come.

    Greatest first; what is less than a replica is carried on to the next smaller ones.
    """
    leaves, due = np.zeros(len(out)), np.zeros(len(out))
    begun = np.zeros(out.shape[1], np.bool_)
    for p in range(len(s.row)):
        c = kind[p]
        if s.still[p] or c < 0:
            continue
        if not begun[c]:
            begun[c] = True
            for a in range(len(out)):
                due[a] += come[a, c]
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0 or place[b] < 0:
                continue
            free = b != s.home[p, k]
            if not free:
                leaves[place[b]] += out[place[b], c]
                if leaves[place[b]] < 0.5:
                    continue
            best, most = -1, -0.5
            for a in range(len(place)):
                if (
                    place[a] >= 0
                    and due[place[a]] > most
                    and a != b
                    and s.load[0, a] + s.size[p] <= s.room[a]
                    and allows(s, p, k, a)
                ):
                    best, most = a, due[place[a]]
            if free and (best < 0 or due[place[b]] >= most):
                best = b
            if best < 0:
                continue
            due[place[best]] -= 1
            if not free:
                leaves[place[b]] -= 1
            if best != b:
                move(s, p, k, best)
