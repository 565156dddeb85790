"""Counts for the bounds, over all replicas, compiled. They share nothing with what makes plans."""

from __future__ import annotations

import numpy as np

from reassign.planning.machine_code import compiled
from reassign.planning.problem.legality import ancestor
from reassign.planning.problem.model import Bools, Bytes, Ints


@compiled()
def leaving(current: Ints, size: Bytes, order: Bytes, excess: Bytes, surplus: Bytes) -> tuple[Bytes, Bytes]:
    """Return the bytes of each broker's `surplus` smallest movable replicas, and how few of its largest make up
    `excess` bytes.

    `order` are the movable partitions by size, ascending. The results are (B,) each.
    """
    brokers = len(excess)
    driven, taken = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    covering, covered = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    for p in order:
        for b in current[p]:
            if b >= 0 and taken[b] < surplus[b]:
                taken[b] += 1
                driven[b] += size[p]
    for p in order[::-1]:
        for b in current[p]:
            if b >= 0 and covered[b] < excess[b]:
                covering[b] += 1
                covered[b] += size[p]
    return driven, covering


@compiled()
def _keepable(brokers: Ints, path: Ints, cap: Ints, level: Ints, extra: Ints, kept: Ints) -> None:
    """Fill `kept[d, i, n]`, for the node at depth d above brokers[i].

    Of n replicas legally placed below it, that many at most can be on these brokers. It is filled where brokers[i] is
    the first below that node.
    """
    depths, replicas = path.shape[1], level.shape[1]
    kept[depths, : len(brokers), 0] = 0
    kept[depths, : len(brokers), 1:] = 1
    for depth in range(depths - 1, -1, -1):
        for first in range(len(brokers)):
            node = ancestor(path, brokers[first], depth)
            for n in range(replicas):
                full, with_least, more = level[node, n], 0, 0
                for i in range(first, len(brokers)):
                    child = path[brokers[i], depth]
                    mine = ancestor(path, brokers[i], depth) == node
                    for b in brokers[:i]:
                        mine = mine and path[b, depth] != child
                    if mine:
                        least = kept[depth + 1, i, min(cap[child], full)]
                        with_least += least
                        if extra[node, n] and cap[child] > full:
                            more += kept[depth + 1, i, full + 1] - least
                kept[depth, first, n] = with_least + min(more, extra[node, n])


@compiled()
def forced(
    current: Ints, rf: Ints, size: Bytes, parts: Bytes, stays: Bools, path: Ints, cap: Ints, level: Ints,
    extra: Ints, least: Ints, nodes: Bytes, depth: Ints, above: Ints,
) -> Bytes:  # fmt: skip
    """Return (2, 2, N): what the partitions `parts` must add, and give up, of their replicas on brokers that `stays`.

    It is the bytes and the replicas at each of the forced `nodes`, without those at forced nodes below it.
    """
    changed = np.zeros((2, 2, len(cap)), np.int64)
    changes = np.zeros((2, len(cap)), np.int64)
    stay = np.empty(current.shape[1], np.int32)
    kept = np.empty((path.shape[1] + 1, current.shape[1], level.shape[1] + 1), np.int32)
    for p in parts:
        staying = 0
        for b in current[p]:
            if b >= 0 and stays[b]:
                stay[staying] = b
                staying += 1
        brokers = stay[:staying]
        _keepable(brokers, path, cap, level, extra, kept)
        changes[:] = 0
        for node in nodes:
            wanted = least[node, rf[p]]
            keep = here = 0
            for i in range(staying - 1, -1, -1):
                if ancestor(path, brokers[i], depth[node]) == node:
                    keep = kept[depth[node], i, wanted]
                    here += 1
            for row, some in enumerate((wanted - keep, here - keep)):
                changes[row, node] += some
                if node:
                    changes[row, above[node]] -= some
        for node in nodes:
            for row in range(2):
                changed[row, 0, node] += changes[row, node] * size[p]
                changed[row, 1, node] += changes[row, node]
    return changed
