"""Whether replicas are spread over racks of racks. It shares no code with the planner, so that it can judge plans."""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.model import UNKNOWN, Bools, Ints

AT_ONCE = 3_000_000
"""Counts, at most one for each partition and broker; a few times their size is the memory that it takes."""


def spread(groups: Ints, replicas: Ints, usable: Bools | None = None) -> Bools:
    """Which partitions' replicas (P, R) are on different brokers, and as evenly over each node as its children allow.

    Even: no child of a node has two replicas more than one that has a broker left. `groups` (L, B) are of `levels`,
    `replicas` are indices of brokers, UNKNOWN fills rows; `usable` (B,) brokers count as left, all of them for None.
    It shares nothing with what places replicas, so that certificates and tests can judge that by it.
    """
    usable = np.ones(groups.shape[1], np.bool_) if usable is None else usable
    good = np.empty(len(replicas), np.bool_)
    step = max(1, AT_ONCE // max(1, len(usable)))
    for i in range(0, len(replicas), step):
        good[i : i + step] = _spread(groups, replicas[i : i + step], usable)
    return good


def _spread(groups: Ints, replicas: Ints, usable: Bools) -> Bools:
    in_order = np.sort(replicas, axis=1)
    good: Bools = ~((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] != UNKNOWN)).any(axis=1)
    parent = np.zeros(groups.shape[1], np.int32)
    for group in groups:
        first_broker = np.unique(group, return_index=True)[1]
        first_child = np.flatnonzero(np.diff(parent[first_broker], prepend=-1))
        has = np.zeros((len(replicas), len(first_broker)), np.int16)
        left = np.zeros_like(has) + np.bincount(group[usable], minlength=len(first_broker)).astype(np.int16)
        for column in replicas.T:
            rows = np.flatnonzero(column != UNKNOWN)
            brokers = column[rows]
            has[rows, group[brokers]] += 1
            left[rows, group[brokers]] -= usable[brokers]
        most = np.maximum.reduceat(has, first_child, axis=1)
        least = np.minimum.reduceat(np.where(left > 0, has, np.iinfo(np.int16).max - 1), first_child, axis=1)
        good &= (most <= least + 1).all(axis=1)
        parent = group
    return good
