"""The tree of racks with the brokers as its leaves, and how many replicas of one partition each node may hold.

The replicas of a partition spread over the children of a node as evenly as the children have brokers for. Take n
replicas below a node, and the greatest level with Σ min(cap, level) ≤ n. Then each child holds min(cap, level) or
min(cap, level + 1) of them. That is what is called legal here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reassign.planning.problem.model import Bools, Ints


@dataclass(frozen=True, slots=True)
class Tree:
    """N nodes: the root is 0, then level by level; the last B are the brokers. D is the depth without the root.

    `level`, `extra`, `least` and `most` are tables by number of replicas, 0 to R.
    """

    path: Ints  # (B, D) the nodes from below the root down to the broker itself
    parent: Ints  # (N,) of the root: 0
    cap: Ints  # (N,) brokers below that may hold replicas
    level: Ints  # (N, R + 1)
    extra: Ints  # (N, R + 1) what remains of n replicas when each child has min(cap, level)
    least: Ints  # (N, R + 1) replicas of a partition with that factor below a node in any legal placement
    most: Ints  # (N, R + 1)

    @property
    def children(self) -> list[list[int]]:
        """The children of each node, in order."""
        children: list[list[int]] = [[] for _ in self.parent]
        for node, parent in enumerate(self.parent.tolist()[1:], start=1):
            children[parent].append(node)
        return children


def grow(groups: Ints, allowed: Bools, replicas: int) -> Tree:
    """Return the tree of `groups` (L, B), a rack of each broker per level from the top, for up to so many replicas."""
    brokers = len(allowed)
    path = np.empty((brokers, len(groups) + 1), np.int32)
    parents: list[int] = [0]
    above = np.zeros(brokers, np.int64)
    for depth, level in enumerate([*groups, np.arange(brokers)]):
        _, first, inverse = np.unique(np.stack((above, level)), axis=1, return_index=True, return_inverse=True)
        if depth == len(groups):
            first, inverse = np.arange(brokers), np.arange(brokers)
        path[:, depth] = len(parents) + inverse
        parents += above[first].tolist()
        above = path[:, depth].astype(np.int64)
    parent = np.array(parents, np.int32)
    cap = np.zeros(len(parent), np.int32)
    cap[0] = allowed.sum()
    for depth in range(path.shape[1]):
        np.add.at(cap, path[allowed, depth], 1)
    tree = Tree(path, parent, cap, *(np.zeros((len(parent), replicas + 1), np.int32) for _ in range(4)))
    tree.least[0] = tree.most[0] = np.arange(replicas + 1)
    for node, children in enumerate(tree.children):
        if not children:
            continue
        below = cap[children]
        filled = [int(np.minimum(below, level).sum()) for level in range(replicas + 2)]
        for n in range(replicas + 1):
            tree.level[node, n] = max(level for level in range(n + 1) if filled[level] <= n)
            tree.extra[node, n] = n - filled[tree.level[node, n]]
        for n in range(replicas + 1):
            low, high = int(tree.least[node, n]), int(tree.most[node, n])
            tree.least[children, n] = np.minimum(below, tree.level[node, low])
            full = tree.level[node, high]
            tree.most[children, n] = np.minimum(below, full + (filled[full] < high))
    return tree
