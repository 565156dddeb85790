"""Log directories: which of them share a volume, and which one a replica goes to on a broker with several volumes.

Brokers put a new replica where the fewest partitions are (KIP-112), whatever its size. On one volume that is as good as
any choice, so the broker chooses. Between volumes it can fill one while another is empty, so there the plan names one.
"""

from __future__ import annotations

import numpy as np

from reassign.api.partition_reassignment import can_be_directed
from reassign.planning.problem.assignments import added
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Cluster, Directories, Ints
from reassign.planning.problem.volume import MOST_VOLUME_BYTES, shared


def volumes(directories: Directories) -> Ints:
    """Return the volume of each directory, (D,), numbered from 0 over all brokers.

    Directories of one broker that report the same size and nearly the same free bytes are on one volume. A directory
    that reports none, or is offline, has a volume of its own.
    """
    volume = np.arange(len(directories.path), dtype=np.int32)
    reported = directories.online & (directories.total != UNKNOWN) & (directories.usable != UNKNOWN)
    total, usable = directories.total.tolist(), directories.usable.tolist()
    for d, broker in enumerate(directories.broker):
        if not reported[d]:
            continue
        for other in range(d - 1, -1, -1):
            if directories.broker[other] != broker:
                break
            if reported[other] and shared(total[d], usable[d], total[other], usable[other]):
                volume[d] = volume[other]
                break
    return np.unique(volume, return_inverse=True)[1].astype(np.int32)


def capacities(directories: Directories, brokers: int) -> tuple[Bytes, Bools]:
    """Return, each (B,): the bytes of a broker's online volumes, and whether all of them are reported."""
    online = directories.online
    reported = np.where(online, np.clip(directories.total, 0, MOST_VOLUME_BYTES), 0)
    _, one = np.unique(volumes(directories), return_index=True)
    capacity = np.zeros(brokers, np.int64)
    np.add.at(capacity, directories.broker[one], reported[one])
    known = np.ones(brokers, np.bool_)
    known[directories.broker[online & (directories.total == UNKNOWN)]] = False
    return capacity, known & (capacity > 0)


def cordoned_brokers(directories: Directories, brokers: int) -> Bools:
    """Return (B,): which brokers have directories online, all of them cordoned."""
    online, open_ = (
        np.bincount(directories.broker[which], minlength=brokers)
        for which in (directories.online, directories.online & ~directories.cordoned)
    )
    return np.asarray((online > 0) & (open_ == 0))


def name(cluster: Cluster, target: Ints, sizes: Bytes, min_free: float) -> tuple[Ints, list[int]]:
    """Return the directory of each added replica, (P, R'), and the partitions that fit into no volume.

    UNKNOWN stands where the broker may choose. The largest replica goes first, each into the volume of its broker with
    the greatest free share of those that have room; `min_free` of it stays free. Within a volume the first directory is
    named.

    Cordoned and offline directories take nothing, nor do those that do not report their size. Where the name of a topic
    is too long for that, the broker chooses, and each volume needs room. `sizes` (P,) are bytes of a replica.
    """
    directories = cluster.directories
    named = np.full(target.shape, UNKNOWN, np.int32)
    volume = volumes(directories)
    open_ = directories.online & ~directories.cordoned & (directories.total > 0) & (directories.usable != UNKNOWN)
    choices = {
        broker: mine
        for broker in np.unique(directories.broker)
        if len(np.unique(volume[(mine := np.flatnonzero((directories.broker == broker) & open_))])) > 1
    }
    if not choices:
        return named, []
    several = np.zeros(len(cluster.brokers) + 1, np.bool_)
    several[list(choices)] = True
    rows, columns = np.nonzero(added(cluster.replicas, target) & several[target])
    free = directories.usable - np.ceil(directories.total * min_free).astype(np.int64)
    without_room: list[int] = []
    for i in np.lexsort((columns, rows, -sizes[rows])):
        row, column = int(rows[i]), int(columns[i])
        mine = choices[target[row, column]]
        if not can_be_directed(cluster.topics[cluster.topic[row]], int(cluster.partition[row])):
            if free[mine].min() < sizes[row]:
                without_room.append(row)
            free[mine] -= sizes[row]
            continue
        takes = mine[free[mine] >= sizes[row]]
        if not len(takes):
            without_room.append(row)
            continue
        best = takes[int(np.argmax(free[takes] / directories.total[takes]))]
        named[row, column] = best
        free[volume == volume[best]] -= sizes[row]
    return named, sorted(set(without_room))
