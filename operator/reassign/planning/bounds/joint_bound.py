"""A bound of the bytes that sees bytes and replicas at once, by Lagrangian relaxation.

A broker with too many bytes in few replicas gives large ones and takes small ones, and what it takes moves too. Let
each byte that lies on broker b in the end cost λ_b, and each replica μ_b, of either sign. Of a plan inside the bands
these prices sum to at most Σ max(λ·low, λ·high) + max(μ·low, μ·high).

So no plan copies less than the following. Sum over the partitions the least that any choice of brokers costs, copies
and prices together, and subtract that maximum. This holds for any prices; good ones are the duals of a small linear
program (`exchange`). The sum is in whole numbers rounded down, so that no rounding makes the bound untrue.

Of legality only two rules are used: how many replicas of a partition lie on the brokers of a cell, and which brokers
are allowed. Two replicas on one broker count as a choice too, which only lowers the bound.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.bounds.exchange import cheapest_exchange
from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import Bytes, Ints

BITS = 20
"""Bits of prices after the point; fewer where replicas are so large that prices would not fit into 64 bits."""
HIGHEST = np.array([[8.0], [64.0]])
"""The highest price of a byte, in bytes, and of a replica, in mean sizes."""
LARGEST = 1 << 55
"""Bytes of all replicas up to which the sums fit into 64 bits; beyond it the bound is 0."""


def least(rows: Ints, size: Bytes, brokers: Bytes, wanted: Bytes, low: Bytes, high: Bytes) -> int:
    """Return the bytes that come to the allowed `brokers` of a cell at least.

    `rows` (P, R) and `size` are of the movable partitions by size, ascending. `wanted` (P,) is how many replicas of
    each lie in the cell. `low` and `high` (2, B) are the bytes and replicas of them that may lie on each broker in the
    end.
    """
    if len(size) and int(size.sum()) * int(wanted.max()) > LARGEST:
        return 0
    cheapest = cheapest_exchange(rows, size, brokers, wanted, low, high)
    if cheapest is None:
        return 0
    bits = max(0, min(BITS, 55 - int(size[-1]).bit_length()))
    scale = np.array([[1.0], [cheapest.mean]]) * 2.0**bits
    cost = np.rint(np.clip(cheapest.price, -HIGHEST, HIGHEST) * scale).astype(np.int64)
    paid: int = sum(
        max(price * a, price * b)
        for prices, lows, highs in zip(cost.tolist(), cheapest.low.tolist(), cheapest.high.tolist(), strict=True)
        for price, a, b in zip(prices, lows, highs, strict=True)
    )
    chosen = int(_choices(rows, size, cheapest.place, wanted, cost, bits))
    return max(0, chosen + (-paid >> bits))


@compiled()
def _cheapest(cost: Bytes, size: int) -> int:
    best = 0
    for b in range(1, cost.shape[1]):
        if cost[0, b] * size + cost[1, b] < cost[0, best] * size + cost[1, best]:
            best = b
    return best


@compiled()
def _cheapest_of_each(cost: Bytes, size: Bytes) -> Bytes:
    """Return the broker that costs least for each size, ascending.

    The least of straight lines is concave: where the same broker is least at two sizes, it is at those between.
    """
    best, ranges = np.empty(len(size), np.int64), np.empty((128, 2), np.int64)
    best[0], best[-1] = _cheapest(cost, size[0]), _cheapest(cost, size[-1])
    ranges[0] = 0, len(size) - 1
    open_ = 1
    while open_:
        open_ -= 1
        first, last = ranges[open_]
        if best[first] == best[last] or size[first] == size[last]:
            best[first:last] = best[first]
        elif last - first > 1:
            middle = (first + last) // 2
            best[middle] = _cheapest(cost, size[middle])
            ranges[open_] = first, middle
            ranges[open_ + 1] = middle, last
            open_ += 2
    return best


@compiled()
def _choices(rows: Ints, size: Bytes, place: Bytes, wanted: Bytes, cost: Bytes, bits: int) -> int:
    """Return the least that any choice of brokers costs, copies and prices, rounded down to bytes."""
    best = _cheapest_of_each(cost, size)
    stay, total = np.empty(rows.shape[1], np.int64), 0
    for p in range(len(rows)):
        staying = 0
        for b in rows[p]:
            if b >= 0 and place[b] >= 0:
                price = cost[0, place[b]] * size[p] + cost[1, place[b]]
                j = staying
                while j > 0 and stay[j - 1] > price:
                    stay[j] = stay[j - 1]
                    j -= 1
                stay[j] = price
                staying += 1
        copied = (size[p] << bits) + cost[0, best[p]] * size[p] + cost[1, best[p]]
        for j in range(wanted[p]):
            total += (min(stay[j], copied) if j < staying else copied) >> bits
    return total
