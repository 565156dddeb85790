"""What follows from where replicas are, for all partitions at once; brokers are indices, -1 fills rows."""

from __future__ import annotations

import numpy as np

from reassign.planning.model import UNKNOWN, Bools, Bytes, Ints


def loads(replicas: Ints | Bytes, size: Bytes, brokers: int) -> Bytes:
    """(K, B): bytes, replicas and preferred leaders on each broker."""
    held = replicas >= 0
    load = np.zeros((3, brokers), np.int64)
    for slot in range(replicas.shape[1]):
        here = held[:, slot]
        np.add.at(load[0], replicas[here, slot], size[here])
    load[1] = np.bincount(replicas[held], minlength=brokers)
    if replicas.shape[1]:
        load[2] = np.bincount(replicas[held[:, 0], 0], minlength=brokers)
    return load


def added(current: Ints, target: Ints) -> Bools:
    """(P, R'): which replicas of a target (P, R') are on a broker that has none now (P, R)."""
    found = np.zeros(target.shape, np.bool_)
    for slot, column in enumerate(target.T):
        found[:, slot] = (column != UNKNOWN) & (current != column[:, None]).all(axis=1)
    return found
