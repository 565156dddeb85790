"""Legal partitions: enough replicas, on allowed brokers, spread as evenly as the tree allows.

The check runs over all replicas, compiled. It shares nothing with what makes plans, so that certificates can rely on
it.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.machine_code import compiled
from reassign.planning.problem.model import Bools, Ints


@compiled()
def ancestor(path: Ints, broker: int, depth: int) -> int:
    """Return the node above a broker that has `depth` nodes above itself."""
    return path[broker, depth - 1] if depth else 0


@compiled()
def evenly_spread(brokers: Ints, path: Ints, level: Ints, extra: Ints) -> bool:
    """Return whether replicas on these brokers are spread as evenly as the tree allows."""
    for depth in range(path.shape[1]):
        alone = True
        for first in range(len(brokers)):
            node = ancestor(path, brokers[first], depth)
            below = 0
            for b in brokers[:first]:
                below += ancestor(path, b, depth) == node
            if below:
                continue
            for b in brokers[first:]:
                below += ancestor(path, b, depth) == node
            if below == 1:
                continue
            alone = False
            full, more = level[node, below], 0
            for i in range(first, len(brokers)):
                child, has = path[brokers[i], depth], 0
                for b in brokers[: i + 1]:
                    has += path[b, depth] == child
                if ancestor(path, brokers[i], depth) == node and has > full:
                    more += 1
                    if has > full + 1 or more > extra[node, below]:
                        return False
        if alone:
            return True
    return True


@compiled()
def done(target: Ints, rf: Ints, allowed: Bools, path: Ints, level: Ints, extra: Ints) -> Bools:
    """Return (P,): which partitions have the wanted number of replicas, all on allowed brokers, legally spread."""
    good = np.zeros(len(target), np.bool_)
    brokers = np.empty(target.shape[1], np.int32)
    for p in range(len(target)):
        held, right = 0, True
        for b in target[p]:
            if b >= 0:
                right = right and allowed[b]
                brokers[held] = b
                held += 1
        good[p] = right and held == rf[p] and evenly_spread(brokers[:held], path, level, extra)
    return good
