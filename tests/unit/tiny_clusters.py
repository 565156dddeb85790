"""Clusters so small that all their plans can be tried."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from reassign.api.goal import By
from reassign.errors import PlanningError
from reassign.planning.problem.model import Bytes, Cluster, Directories, Ints, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, pose
from tests.spread import spread

RACKS = (
    ("", "", "", "", ""),
    ("a", "a", "b", "b", "c"),
    ("a", "a", "a", "b", "b"),
    ("a", "b", "b", "b", "b"),
    ("/x/1", "/x/2", "/y/1", "/y/1", "/y/2"),
    ("/x/1", "/x/1", "/y/1", "/y/2", "/z"),
)


def tiny(racks: tuple[str, ...], rows: list[list[int]], sizes: list[int], capacity: list[int]) -> Cluster:
    brokers = len(racks)
    width = max(map(len, rows))
    return Cluster(
        id="tiny",
        brokers=np.arange(1, brokers + 1, dtype=np.int32),
        racks=racks,
        registered=np.ones(brokers, np.bool_),
        alive=np.ones(brokers, np.bool_),
        directories=Directories(
            broker=np.arange(brokers, dtype=np.int32),
            path=("/kafka",) * brokers,
            total=np.array(capacity, np.int64) * 10_000,
            usable=np.array(capacity, np.int64) * 10_000,
            cordoned=np.zeros(brokers, np.bool_),
            online=np.ones(brokers, np.bool_),
        ),
        topics=("t",),
        topic=np.zeros(len(rows), np.int32),
        partition=np.arange(len(rows), dtype=np.int32),
        replicas=np.array([row + [-1] * (width - len(row)) for row in rows], np.int32),
        sizes=np.array(sizes, np.int64),
        in_flight=np.zeros(len(rows), np.bool_),
    )


@st.composite
def problems(draw: st.DrawFn) -> PlacementProblem:
    racks = draw(st.sampled_from(RACKS))
    count = draw(st.integers(1, 4))
    factor = draw(st.integers(1, 3))
    replicas = st.lists(st.integers(0, 4), min_size=factor, max_size=factor, unique=True)
    rows = draw(st.lists(replicas, min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    made = tiny(racks, rows, sizes, draw(st.lists(st.sampled_from([1, 1, 2]), min_size=5, max_size=5)))
    in_flight = np.array(draw(st.lists(st.sampled_from([False, False, True]), min_size=count, max_size=count)))
    wanted = PlacementGoal(
        drain=frozenset(draw(st.sets(st.integers(1, 5), max_size=2))),
        replication_factor=draw(st.none() | st.integers(1, 4)),
        balance=draw(st.frozensets(st.sampled_from(By))),
        tolerance=draw(st.sampled_from([0.01, 0.1, 0.5])),
    )
    try:
        return pose(replace(made, in_flight=in_flight), wanted)
    except PlanningError:
        assume(False)
        raise


def choices(problem: PlacementProblem) -> list[list[tuple[int, ...]]]:
    """Per partition all legal sets of brokers."""
    found = []
    for row, movable, factor in zip(problem.current, problem.movable, problem.rf, strict=True):
        sets = list(combinations(np.flatnonzero(problem.allowed).tolist(), int(factor)))
        good = spread(problem.groups, np.array(sets, np.int32), problem.allowed) if movable else []
        found.append(
            [s for s, ok in zip(sets, good, strict=True) if ok] if movable else [tuple(row[row >= 0].tolist())]
        )
    return found


def as_target(sets: tuple[tuple[int, ...], ...]) -> Ints:
    width = max(map(len, sets))
    return np.array([[*s, *[-1] * (width - len(s))] for s in sets], np.int32)


def every_plan(problem: PlacementProblem) -> tuple[Bytes, Bytes, Bytes]:
    """Loads (N, 2, B), bytes and moves (N,) of all legal plans."""
    options = choices(problem)
    lies = [np.array([[b in s for b in range(len(problem.alive))] for s in sets], np.int64) for sets in options]
    held = np.array([[b in row for b in range(len(problem.alive))] for row in problem.current])
    pick = np.indices([len(sets) for sets in options]).reshape(len(options), -1)
    placed = np.stack([of[which] for of, which in zip(lies, pick, strict=True)])
    added = (placed * ~held[:, None]).sum(axis=2)
    load = np.stack(((placed * problem.size[:, None, None]).sum(axis=0), placed.sum(axis=0)), axis=1)
    return load, (added * problem.size[:, None]).sum(axis=0), added.sum(axis=0)
