"""How much of each resource should lie on each broker: in proportion to weight, as far as racks and fixed load allow.

Exact: whole numbers of any length, so that the same input gives the same targets on every machine.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reassign.planning.model import Bools, Bytes, Ints
from reassign.planning.tree import Tree

OPEN = 1 << 62
"""The upper end of a band that does not bind."""


def targets(tree: Tree, weight: Bytes, fixed: Bytes, size: Bytes, rf: Ints) -> Bytes:
    """(K, B), from the root down: each node's load goes to its children by weight, between the least and the most
    that legal placements put there. `size` and `rf` are of the movable partitions, `fixed` (K, B) the load of others.
    """
    brokers = len(weight)
    children = tree.children
    kinds = np.flatnonzero(np.bincount(rf)).tolist() if len(rf) else []
    bytes_of = {r: int(size[rf == r].sum()) for r in kinds}
    count_of = {r: int((rf == r).sum()) for r in kinds}
    allowed = tree.cap[-brokers:] > 0
    weights = _up(tree, np.where(allowed, weight, 0))
    target = np.zeros((3, brokers), np.int64)
    for row, of in enumerate((bytes_of, count_of, count_of)):
        least = most = _up(tree, fixed[row])
        for r in kinds:
            if row == 2:  # any replica may be the leader
                most = [a + of[r] * min(1, b) for a, b in zip(most, tree.most[:, r].tolist(), strict=True)]
            else:
                least = [a + of[r] * b for a, b in zip(least, tree.least[:, r].tolist(), strict=True)]
                most = [a + of[r] * b for a, b in zip(most, tree.most[:, r].tolist(), strict=True)]
        share = [0] * len(least)
        share[0] = least[0] if row < 2 else least[0] + sum(of.values())
        for node, below in enumerate(children):
            if below:
                parts = _split(share[node], *([x[c] for c in below] for x in (weights, least, most)))
                for child, part in zip(below, parts, strict=True):
                    share[child] = part
        target[row] = share[-brokers:]
    return target


def bands(target: Bytes, fixed: Bytes, allowed: Bools, tolerance: float, largest: int) -> tuple[Bytes, Bytes]:
    """(low, high), each (K, B). Never so narrow that whole replicas do not fit: counts include the target's floor and
    ceiling, and `largest`, the bytes of the greatest movable replica, may lie anywhere beside what is fixed."""
    share = Fraction(str(tolerance))
    low, high = np.zeros_like(target), np.zeros_like(target)
    for row in range(3):
        for broker, goal in enumerate(target[row].tolist()):
            if not allowed[broker]:
                high[row, broker] = fixed[row, broker]
                continue
            least, most = -((share - 1) * goal // 1), (1 + share) * goal // 1
            room = largest if row == 0 else 1
            low[row, broker] = min(int(least), goal)
            high[row, broker] = max(int(most), goal + (row > 0), int(fixed[row, broker]) + room)
    return low, high


def _up(tree: Tree, leaves: Bytes) -> list[int]:
    """Sums over the subtrees."""
    sums: list[int] = [0] * (len(tree.parent) - len(leaves)) + leaves.tolist()
    for node in range(len(sums) - 1, 0, -1):
        sums[tree.parent[node]] += sums[node]
    return sums


def _split(total: int, weight: list[int], least: list[int], most: list[int]) -> list[int]:
    """`total` in proportion to weight, each part between its least and its most; what rounding leaves goes in order."""
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
        lacking = sum(least[i] - wish[i] for i in short)
        spare = sum(wish[i] - most[i] for i in over)
        for i in short if lacking >= spare else over:
            share[i] = least[i] if lacking >= spare else most[i]
    parts = [wish[i] if part is None else part for i, part in enumerate(share)]
    left = total - sum(parts)
    while left > 0:
        roomy = [i for i in wish if parts[i] < most[i]][:left]
        for i in roomy:
            parts[i] += 1
        left = left - len(roomy) if roomy else 0
    return parts
