"""Racks of racks (KIP-879): what brokers say of their place, read as a tree, and whether replicas are spread over it.

A rack is a path, `/dc1/row2/rack7`, or a plain name, which is a path of one. The brokers of a rack are its
children. Paths may differ in depth: a broker of `/dc1` beside one of `/dc1/row2` is a child of `/dc1` by itself, since
no more is known of it (to refuse it would leave a cluster unplanned while its racks are being refined); brokers without
a rack are children of the root, each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reassign.api.goal import Awareness
from reassign.errors import PlanningError, Reason
from reassign.planning.model import UNKNOWN, Bools, Ints
from reassign.text import listed

MAX_DEPTH = 11
"""Names of a path. The kernel compares brokers by one number with 5 bits for each level, and the broker itself."""
AT_ONCE = 3_000_000  # counts, at most one for each partition and broker; a few times their size is what it takes


def levels(racks: Sequence[str], awareness: Awareness, ids: Sequence[int] | Ints) -> Ints:
    """Nested groups of brokers, top level first: (L, B), the group of each broker at each level, 0 to n - 1.

    Groups are numbered by their path; those of one group above follow each other. A broker that is a child by itself
    has a group of its own at that level and below. Tree has a level for each name of the longest path, Flat at most one
    (racks are whole strings), None has none; so have brokers of which none has a rack.
    `racks` (B,), "" for none; `ids` (B,), which also order brokers that are children by themselves.
    Raises INVALID_RACKS (Tree only) for what is no path, for paths beside plain names, and for ones too long.
    """
    paths = _paths(racks, awareness, ids)
    depth = max(map(len, paths), default=0)
    groups = np.empty((depth, len(paths)), np.int32)
    for level in range(depth):
        # named children sort before brokers by themselves; 0 and 1 keep names and ids from being compared
        keys = [
            tuple((0, name, 0) for name in path[: level + 1]) + (((1, "", int(b)),) if len(path) <= level else ())
            for path, b in zip(paths, ids, strict=True)
        ]
        number = {key: i for i, key in enumerate(sorted(set(keys)))}
        groups[level] = [number[key] for key in keys]
    return groups


def _paths(racks: Sequence[str], awareness: Awareness, ids: Sequence[int] | Ints) -> list[tuple[str, ...]]:
    if awareness is Awareness.NONE:
        return [()] * len(racks)
    if awareness is Awareness.FLAT:
        return [(rack,) if rack else () for rack in racks]
    paths = [tuple(rack.removeprefix("/").split("/")) if rack.startswith("/") else (rack,) for rack in racks]
    unreadable = [
        i for i, path in enumerate(paths) if racks[i] and any(not name or name != name.strip() for name in path)
    ]
    if unreadable:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks cannot be read ({_named(unreadable, racks, ids)}): a rack is a name, or a path like "
            "/dc1/row2/rack7, with no empty name in it and no space around one; correct broker.rack there, or use "
            "awareness Flat",
        )
    deep = [i for i, path in enumerate(paths) if len(path) > MAX_DEPTH]
    if deep:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks have more than {MAX_DEPTH} names ({_named(deep, racks, ids)}): leave some out of broker.rack, "
            "or use awareness Flat",
        )
    as_path = [i for i, rack in enumerate(racks) if rack.startswith("/")]
    as_name = [i for i, rack in enumerate(racks) if rack and not rack.startswith("/")]
    if as_path and as_name:
        raise PlanningError(
            Reason.INVALID_RACKS,
            f"some racks are paths ({_named(as_path, racks, ids)}) and others plain names "
            f"({_named(as_name, racks, ids)}): make broker.rack the same kind everywhere, or use awareness Flat",
        )
    return [path if rack else () for rack, path in zip(racks, paths, strict=True)]


def _named(which: Sequence[int], racks: Sequence[str], ids: Sequence[int] | Ints) -> str:
    return listed(f"{racks[i]!r} of broker {ids[i]}" for i in which)


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
