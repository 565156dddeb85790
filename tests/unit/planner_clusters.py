"""Small clusters for the planner's kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

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


@st.composite
def made_clusters(draw: st.DrawFn) -> Cluster:
    brokers = draw(st.integers(3, 12))
    kind = draw(st.sampled_from(["none", "plain", "paths"]))
    names = {"none": [""], "plain": ["x", "y", "z"], "paths": ["/p/1", "/p/2", "/q/1", "/q/2"]}[kind]
    racks = tuple(draw(st.lists(st.sampled_from(names), min_size=brokers, max_size=brokers)))
    dead = draw(st.lists(st.integers(0, brokers - 1), max_size=1))
    partitions = draw(st.integers(1, 60))
    chance = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    most = min(draw(st.integers(1, 5)), brokers - 1)
    some = draw(st.booleans())
    skew = chance.dirichlet(np.full(brokers, draw(st.sampled_from([0.5, 50.0]))) + 0.05) + 1e-6
    rows = [
        chance.choice(brokers, chance.integers(1, most + 1) if some else most, False, skew / skew.sum()).tolist()
        for _ in range(partitions)
    ]
    sizes = chance.lognormal(0, 1, partitions) * 1000
    sizes[chance.random(partitions) < 0.05] = UNKNOWN
    free = [int(x) for x in chance.lognormal(0, 1, brokers) * 4000]
    topic = np.sort(chance.integers(0, 3, partitions)).tolist()
    made = cluster(
        rows,
        sizes.astype(int).tolist(),
        racks,
        tuple(dead),
        topics=("__own", "a", "b"),
        topic=topic,
        disks=directories(brokers, 20000, free) if draw(st.booleans()) else None,
    )
    return replace(made, in_flight=chance.random(partitions) < 0.05)
