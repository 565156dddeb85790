"""Shares of what brokers hold, in proportion to weight, as far as racks, disks and fixed replicas allow, and bands
around them.

All numbers are whole and of any length, so that the same input gives the same shares on every machine.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

import numpy as np

from reassign.planning.problem.model import Bytes
from reassign.planning.problem.tree import Tree

DISK, REPLICAS, LEADERS = range(3)
"""The first rows of what is counted for each broker, `api.goal.COUNTED`."""

OPEN = 1 << 62
"""The upper end of a band that does not bind."""

PARTS = 20
"""Bits of the fractions in which shares and bands are searched for."""


def shares(
    tree: Tree, weight: Bytes, fixed: Bytes, amounts: dict[int, int], atleast: Bytes, atmost: Bytes, *, leaders: bool
) -> tuple[Bytes, Bytes]:
    """Return each broker's share (B,) of one resource, and the same rounded down.

    From the root down, each node's load goes to its children by weight, between the least and the most that legal
    placements put there. `amounts` are those of movable partitions, by replication factor: bytes of one replica, or how
    many there are.

    `fixed` (B,) is the load of other partitions. In all, a broker has from `atleast` to `atmost` (B,). Of `leaders` a
    partition has one, anywhere.
    """
    brokers = len(weight)
    children = tree.children
    weights = _up(tree, np.where(tree.cap[-brokers:] > 0, weight, 0))
    least, most = _up(tree, fixed), _up(tree, fixed)
    for r, amount in amounts.items():
        if not leaders:
            least = [a + amount * b for a, b in zip(least, tree.least[:, r].tolist(), strict=True)]
        most = [a + amount * min(b, 1 if leaders else b) for a, b in zip(most, tree.most[:, r].tolist(), strict=True)]
    least = [max(a, b) for a, b in zip(least, _up(tree, atleast), strict=True)]
    most = [max(a, min(b, c)) for a, b, c in zip(least, most, _up(tree, np.maximum(fixed, atmost)), strict=True)]
    total = sum(fixed.tolist()) + sum(amount if leaders else amount * r for r, amount in amounts.items())
    whole, fine = (
        _down(children, weights, total << bits, *([limit << bits for limit in limits] for limits in (least, most)))[
            -brokers:
        ]
        for bits in (0, PARTS)
    )
    return np.array(whole, np.int64), np.array([(part + brokers) >> PARTS for part in fine], np.int64)


def band(least: Bytes, greatest: Bytes, tolerance: float) -> tuple[Bytes, Bytes]:
    """Return (low, high), each (B,): the tolerance below `least` and above `greatest`, rounded inward."""
    wide, of = Fraction(str(tolerance)).as_integer_ratio()
    low = [-((wide - of) * share // of) for share in least.tolist()]
    return np.array(low, np.int64), np.array([(of + wide) * share // of for share in greatest.tolist()], np.int64)


def coverable(tree: Tree, share: Bytes, fixed: Bytes, atleast: Bytes, sizes: dict[int, Bytes], beside: Bytes) -> Bytes:
    """Return the shares (B,), lowered to where the replicas suffice.

    A replica that is larger than the deficit of every broker below a node fills no more than that deficit. What lies
    `beside` it (B,) fills nothing. `sizes` are the bytes of movable partitions, by replication factor. Brokers have
    `fixed` bytes, and in the end `atleast` (B,) whatever their share.
    """
    reach = share.copy()
    largest = max((int(size.max(initial=0)) for size in sizes.values()), default=0)
    for node, below in enumerate(tree.children):
        leaves = np.flatnonzero((tree.path == node).any(axis=1)) if node else np.arange(len(share))
        leaves = leaves[np.maximum(reach, atleast)[leaves] > fixed[leaves]]
        if not below or not len(leaves) or largest <= (reach[leaves] - fixed[leaves]).max():
            continue
        most = {r: int(tree.most[node, r]) for r in sizes}
        asked, floor, lies, wasted = reach[leaves], atleast[leaves], fixed[leaves], int(beside[leaves].min())

        def suffices(
            part: int, asked: Bytes = asked, floor: Bytes = floor, lies: Bytes = lies, most: dict[int, int] = most,
            wasted: int = wasted,
        ) -> bool:  # fmt: skip
            deficit = np.maximum(np.maximum(_scaled(asked, part), floor) - lies, 0)
            each = int(deficit.max())
            useful = sum(most[r] * int(np.minimum(size, each).sum()) for r, size in sizes.items())
            filled = sum(most[r] * int((size >= each).sum()) for r, size in sizes.items())
            return int(deficit.sum()) <= useful - min(filled, len(asked)) * wasted

        if not suffices(1 << PARTS):
            part = bisect_left(range(1 << PARTS), True, key=lambda part: not suffices(part)) - 1
            reach[leaves] = _scaled(asked, max(part, 0))
    return reach


def _scaled(share: Bytes, part: int) -> Bytes:
    return np.array([value * part >> PARTS for value in share.tolist()], np.int64)


def _down(children: list[list[int]], weights: list[int], total: int, least: list[int], most: list[int]) -> list[int]:
    """Return the shares of all nodes."""
    share = [0] * len(least)
    share[0] = total
    for node, below in enumerate(children):
        if below:
            parts = _split(share[node], *([x[c] for c in below] for x in (weights, least, most)))
            for child, part in zip(below, parts, strict=True):
                share[child] = part
    return share


def _up(tree: Tree, leaves: Bytes) -> list[int]:
    """Return the sums over the subtrees."""
    sums: list[int] = [0] * (len(tree.parent) - len(leaves)) + leaves.tolist()
    for node in range(len(sums) - 1, 0, -1):
        sums[tree.parent[node]] += sums[node]
    return sums


def _split(total: int, weight: list[int], least: list[int], most: list[int]) -> list[int]:
    """Split `total` in proportion to weight, each part between its least and its most. What rounding leaves goes in
    order."""
    share: list[int | None] = [None] * len(weight)
    while True:
        open_ = [i for i, part in enumerate(share) if part is None]
        rest = total - sum(part for part in share if part is not None)
        whole = sum(weight[i] for i in open_)
        wish = {i: rest * weight[i] // whole if whole else 0 for i in open_}
        short = [i for i in open_ if wish[i] < least[i]]
        over = [i for i in open_ if wish[i] > most[i]]
        if not short and not over:
            break
        deficit = sum(least[i] - wish[i] for i in short)
        spare = sum(wish[i] - most[i] for i in over)
        for i in short if deficit >= spare else over:
            share[i] = least[i] if deficit >= spare else most[i]
    parts = [wish[i] if part is None else part for i, part in enumerate(share)]
    left = total - sum(parts)
    while left > 0:
        roomy = [i for i in wish if parts[i] < most[i]][:left]
        for i in roomy:
            parts[i] += 1
        left = left - len(roomy) if roomy else 0
    return parts
