"""Which partitions are spread over racks as they lie now, on brokers that may hold replicas and on others."""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.model import Bools, Ints

AT_ONCE = 4_000_000
"""Pairs of one partition's replicas that are compared at a time."""


def spread(groups: Ints, replicas: Ints, allowed: Bools) -> Bools:
    """Return (P,): where no child of a node has two replicas more than one that has an allowed broker left.

    `groups` (L, B) are of `racks.levels`; `replicas` (P, R) are on different brokers.
    """
    good = np.ones(len(replicas), np.bool_)
    above = np.zeros(groups.shape[1], np.int32)
    step = max(1, AT_ONCE // max(1, replicas.shape[1] ** 2))
    for group in groups:
        for i in range(0, len(replicas), step):
            good[i : i + step] &= _even(above, group, replicas[i : i + step], allowed)
        above = group
    return good


def _even(above: Ints, group: Ints, replicas: Ints, allowed: Bools) -> Bools:
    """Return (P,): whether the replicas below each node `above` (B,) are spread evenly over its children, `group`."""
    slots = np.arange(replicas.shape[1])
    held = replicas >= 0
    child = np.where(held, group[replicas], -1 - slots)
    same = child[:, :, None] == child[:, None, :]
    has = same.sum(axis=2)
    good: Bools = (has <= 1).all(axis=1)
    some = np.flatnonzero(~good)
    child, same, has, held, at = child[some], same[some], has[some], held[some], replicas[some]
    usable = np.bincount(group[allowed], minlength=len(group))
    left = usable[child] - (same & (held & allowed[at])[:, None, :]).sum(axis=2)
    node = np.where(held, above[at], -1 - slots)
    beside = node[:, :, None] == node[:, None, :]
    lower = beside & (left > 0)[:, None, :] & (has[:, None, :] < has[:, :, None] - 1)
    first = ~(same & (slots[None, :] < slots[:, None])).any(axis=2)
    counted = (beside & (first & held & (usable[child] > 0))[:, None, :]).sum(axis=2)
    children = np.unique(np.stack((above, group))[:, allowed], axis=1)
    empty = np.bincount(children[0], minlength=len(group))[node] > counted
    good[some] = ~(held & (has > 1) & (lower.any(axis=2) | empty)).any(axis=1)
    return good
