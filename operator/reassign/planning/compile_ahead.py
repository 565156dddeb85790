"""Compiles all that a plan needs, ahead of the first plan: `python -m reassign.planning.compile_ahead`.

An image is built with its result. Where REASSIGN_COMPILED names such a result, this fails if it is not complete.
"""

from __future__ import annotations

import os
import sys
from itertools import product

import numpy as np
from numba.core.dispatcher import Dispatcher

from reassign.api.goal import By, Scope
from reassign.planning.machine_code import KEPT
from reassign.planning.plan import make
from reassign.planning.problem.model import Cluster, Directories, PlacementGoal


def make_plans(partitions: int) -> None:
    """Make plans for all kinds of goals, so that every function that a plan can call has been called."""

    brokers = np.arange(6, dtype=np.int32)
    row = np.arange(partitions, dtype=np.int32)
    replicas = np.stack((row % 3, 3 + row % 2), axis=1).astype(np.int32)
    yes = np.ones(len(brokers), np.bool_)
    space = np.full(len(brokers), 1 << 40, np.int64)
    cluster = Cluster(
        id="made",
        brokers=brokers,
        racks=("/a/1", "/a/2", "/b/1", "/b/2", "/c/1", "/c/2"),
        registered=yes,
        alive=yes,
        directories=Directories(brokers, ("/kafka",) * len(brokers), space, space, ~yes, yes),
        topics=("made",),
        topic=np.zeros(partitions, np.int32),
        partition=row,
        replicas=replicas,
        sizes=(1 + row % 7).astype(np.int64) << 20,
        in_flight=np.zeros(partitions, np.bool_),
        directory=replicas.copy(),
    )
    balances = (frozenset(By), *(frozenset({by}) for by in By), frozenset[By]())
    for balance, replication_factor in product(balances, (None, 1, 3)):
        goal = PlacementGoal(drain=frozenset({5}), balance=balance, replication_factor=replication_factor)
        make(cluster, goal, 20, 1 << 24, 1 << 20)
    make(cluster, PlacementGoal(drain=frozenset({3}), scope=Scope.DRAINED))


def misses() -> dict[str, int]:
    """Return how often this process has compiled each function, since no code of it was kept."""
    modules = [module for name, module in sys.modules.items() if name.startswith("reassign.planning.")]
    statistics = {
        f"{value.py_func.__module__}.{value.py_func.__qualname__}": value.stats
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    assert any(stats.cache_hits or stats.cache_misses for stats in statistics.values())
    return {name: sum(stats.cache_misses.values()) for name, stats in statistics.items() if stats.cache_misses}


if __name__ == "__main__":
    make_plans(100)
    if os.environ.get(KEPT) and (compiled := misses()):
        sys.exit(f"not kept, though a plan needs it: {', '.join(compiled)}")
