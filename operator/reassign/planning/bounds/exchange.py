"""The cheapest exchange: what brokers give each other at the fewest bytes, by classes of size (a linear program).

Its solution guides plans (`kernel.apply_exchange`), and its prices prove bounds (`joint_bound`).
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np

from reassign.planning.bounds.interior_point import interior_point
from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import Bytes, Floats, Ints

CLASSES = 160
"""Size classes at most."""
FEWEST = 4
"""Size classes, at least, of partitions that must gain or lose the same number of replicas."""
WORK = 700_000
"""Brokers times classes squared at most: the work of one step of the interior point."""


class Exchange(NamedTuple):
    """Letters: b brokers that exchange, B all brokers, C classes, P partitions."""

    place: Bytes  # (B,) of each broker among those that exchange, -1 of others
    kind: Bytes  # (P,) the class, -1 of partitions without bytes
    size: Floats  # (C,) mean bytes of its partitions
    out: Floats  # (b, C) the share that leaves of the replicas there
    come: Floats  # (b, C) how many replicas come
    price: Floats  # (2, b) of a byte in bytes and of a replica in mean sizes, more on this broker
    mean: float  # bytes of a partition
    low: Bytes  # (2, b) bytes and replicas that may lie there in the end
    high: Bytes  # (2, b)


def cheapest_exchange(
    rows: Ints, size: Bytes, brokers: Bytes, wanted: Bytes, low: Bytes, high: Bytes
) -> Exchange | None:
    """Return the exchange that costs the fewest bytes; None where there is nothing to exchange.

    `rows` (P, R) and `size` are of partitions by size, ascending. `wanted` (P,) is how many replicas of each lie on
    these `brokers` in the end. `low` and `high` (2, B) are the bands of the bytes and replicas that these partitions
    bring.
    """
    total = int(size.sum())
    if not total or not len(brokers):
        return None
    mean = total / len(size)
    once = np.array([[total], [len(size)]])  # a broker holds no partition twice
    band = np.clip(np.stack((low[:, brokers], high[:, brokers])), 0, once)
    place = np.full(low.shape[1], -1, np.int64)
    place[brokers] = np.arange(len(brokers))
    classes = min(CLASSES, max(FEWEST, isqrt(WORK // len(brokers))))
    kind, have, sizes, gain, lies = _gather(rows, size, place, len(brokers), wanted, classes)
    change = (band - lies) / np.array([[mean], [1.0]])
    price, out, come = _solved(*(each.tobytes() for each in (have, sizes / mean, gain, change)))
    if not (np.isfinite(price).all() and np.isfinite(out).all() and np.isfinite(come).all()):
        return None
    return Exchange(place, kind, sizes, out / np.maximum(have, 1.0), come, price, mean, band[0], band[1])


@lru_cache(maxsize=16)
def _solved(have: bytes, size: bytes, gain: bytes, change: bytes) -> tuple[Floats, Floats, Floats]:
    """Return `interior_point`'s solution, remembered.

    The bound of a plan usually asks for the same as the plan did. It does not if something was illegal before, or is
    outside of its band in the end.
    """
    sizes, gains, changes = (np.frombuffer(each).copy() for each in (size, gain, change))
    low, high = changes.reshape(2, 2, -1)
    return interior_point(np.frombuffer(have).reshape(-1, len(sizes)).copy(), sizes, gains, low, high)


@compiled()
def _gather(
    rows: Ints, size: Bytes, place: Bytes, brokers: int, wanted: Bytes, classes: int
) -> tuple[Bytes, Floats, Floats, Floats, Bytes]:
    """Sort partitions into classes: those that gain as many replicas (fewer than 0: lose) and are of about the same
    size.

    Return the class of each partition (P,), the replicas of each class on each broker (b, C), and the load of each
    broker (2, b). Between these are, for each class (C,), the mean size and the replicas gained.
    """
    width = rows.shape[1]
    kinds = width + wanted.max() + 1
    gains, share = np.empty(len(size), np.int64), np.zeros(kinds)
    for p in range(len(rows)):
        gains[p] = wanted[p]
        for b in rows[p]:
            if b >= 0 and place[b] >= 0:
                gains[p] -= 1
        share[gains[p] + width] += np.sqrt(float(size[p]))
    whole, start, many = share.sum(), np.zeros(kinds + 1, np.int64), np.zeros(kinds, np.int64)
    for kind in range(kinds):
        if share[kind] > 0:
            many[kind] = max(FEWEST, int(classes * share[kind] / whole))
        start[kind + 1] = start[kind] + many[kind]
    classes = start[kinds]
    have, number, total = np.zeros((brokers, classes)), np.zeros(classes), np.zeros(classes)
    gain, lies, passed = np.zeros(classes), np.zeros((2, brokers), np.int64), np.zeros(kinds)
    for p in range(len(rows)):
        kind = gains[p] + width
        passed[kind] += np.sqrt(float(size[p]))
        gains[p] = -1
        if many[kind] == 0:
            continue  # of no bytes
        c = start[kind] + min(int(passed[kind] / share[kind] * many[kind]), many[kind] - 1)
        number[c] += 1
        total[c] += size[p]
        gain[c] += kind - width
        gains[p] = c
        for b in rows[p]:
            if b >= 0 and place[b] >= 0:
                have[place[b], c] += 1
                lies[0, place[b]] += size[p]
                lies[1, place[b]] += 1
    return gains, have, total / np.maximum(number, 1.0), gain, lies
