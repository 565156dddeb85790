"""The planner's machine code, made when the image is built: `python -m reassign.planning.compiled`.

numba keeps it under the CPU that it is for. That of the image is for any (NUMBA_CPU_NAME=generic): the planner
compares whole numbers and jumps, so the instructions that only newer CPUs have make it no faster; and every node plans
the same. numba reads from no folder that it may not write to; so what the image keeps is linked into one that it may.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

__all__ = ["link"]

KEPT, USED = "REASSIGN_COMPILED", "NUMBA_CACHE_DIR"
"""Environment variables: where the image keeps the code, and where numba looks for it."""


def link() -> None:
    """Have numba find what is kept, wherever this package lay when it was made. Without the variables it compiles."""
    from numba.core.caching import UserProvidedCacheLocator

    kept, used = os.environ.get(KEPT), os.environ.get(USED)
    if not kept or not used:
        return
    locator: Any = UserProvidedCacheLocator
    folder = Path(used, locator.get_suitable_cache_subpath(__file__))
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(Path(kept).rglob("*.nb[ci]")):
        with suppress(FileExistsError):
            (folder / file.name).symlink_to(file)


def make_plans(partitions: int) -> None:
    """Make plans for all kinds of goals, so that all has been called that a plan can call."""
    import numpy as np

    from reassign.api.goal import By
    from reassign.planning.model import Cluster, Directories, Goal
    from reassign.planning.plan import make

    brokers = np.arange(6, dtype=np.int32)
    row = np.arange(partitions, dtype=np.int32)
    replicas = np.stack((row % 3, 3 + row % 2), axis=1).astype(np.int32)
    yes = np.ones(len(brokers), np.bool_)
    space = np.full(len(brokers), 1 << 40, np.int64)
    cluster = Cluster(
        id="made",
        brokers=brokers,
        racks=("/a/1", "/a/2", "/b/1", "/b/2", "/c/1", "/c/2"),
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
    balances = (frozenset(By), frozenset({By.DISK}), frozenset({By.REPLICAS}), frozenset({By.LEADERS}), frozenset[By]())
    for balance, replication_factor in product(balances, (None, 1, 3)):
        goal = Goal(drain=frozenset({5}), balance=balance, replication_factor=replication_factor)
        make(cluster, goal, 20, 1 << 24, 1 << 20)


def misses() -> dict[str, int]:
    """By function how often this process found no code of it and compiled it."""
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in sys.modules.items() if name.startswith("reassign.planning.")]
    found: dict[str, Any] = {
        value.py_func.__qualname__: value.stats
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    assert any(stats.cache_hits or stats.cache_misses for stats in found.values())
    return {name: sum(stats.cache_misses.values()) for name, stats in found.items() if stats.cache_misses}


if __name__ == "__main__":
    link()
    make_plans(100)
    if os.environ.get(KEPT) and (compiled := misses()):
        sys.exit(f"not kept, though a plan needs it: {', '.join(compiled)}")
