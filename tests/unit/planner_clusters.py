"""Small clusters for the planner's kernel."""

from __future__ import annotations

import numpy as np

from reassign.planning.problem.model import UNKNOWN, Cluster, Directories

NEVER = 1 << 60


def directories(
    brokers: int, total: int = UNKNOWN, usable: int | list[int] = UNKNOWN, cordoned: tuple[int, ...] = ()
) -> Directories:
    """One directory each."""
    return Directories(
        np.arange(brokers, dtype=np.int32),
        ("/data",) * brokers,
        np.full(brokers, total, np.int64),
        np.full(brokers, usable, np.int64) if isinstance(usable, int) else np.array(usable, np.int64),
        np.isin(np.arange(brokers), cordoned),
        np.ones(brokers, bool),
    )


def cluster(
    rows: list[list[int]],
    sizes: list[int] | None = None,
    racks: tuple[str, ...] = ("",) * 4,
    dead: tuple[int, ...] = (),
    fenced: tuple[int, ...] = (),
    topics: tuple[str, ...] = ("a",),
    topic: list[int] | None = None,
    disks: Directories | None = None,
) -> Cluster:
    """Broker ids are the indices and 100. Brokers that are dead are not registered, fenced ones are."""
    width = max(map(len, rows))
    count = len(racks)
    return Cluster(
        id="made",
        brokers=np.arange(100, 100 + count, dtype=np.int32),
        racks=racks,
        registered=~np.isin(np.arange(count), dead),
        alive=~np.isin(np.arange(count), (*dead, *fenced)),
        directories=disks or directories(count),
        topics=topics,
        topic=np.array(topic or [0] * len(rows), np.int32),
        partition=np.arange(len(rows), dtype=np.int32),
        replicas=np.array([row + [-1] * (width - len(row)) for row in rows], np.int32),
        sizes=np.array(sizes or [10] * len(rows), np.int64),
        in_flight=np.zeros(len(rows), bool),
    )
