"""Waves of made plans: how many, how long with their barriers beside the bound, and the CPU time to find them.

A made plan replaces one replica of each of its partitions: half of the brokers give, the others take, none as much as
another, of sizes that are lognormal (σ = 1). Waves of so many partitions that each busy broker has a few in each.
"""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import numpy as np

from reassign.planning.model import Bytes, Ints
from reassign.planning.moves import moves_of
from reassign.planning.waves import makespan, split

PLANS = ((800, 30, 200), (3_000, 30, 200), (10_600, 100, 500), (20_000, 100, 500), (110_000, 300, 2_000))
"""Partitions, brokers, and how many partitions a wave may have."""
SEEDS = range(5)
TOLERANCE = 1.05


class Found(NamedTuple):
    number: int
    number_bound: int
    makespan_ratio: float
    seconds: float


def made(partitions: int, brokers: int, seed: int) -> tuple[Ints, Ints, Bytes]:
    """Old and new replicas (P, 2), and sizes."""
    random = np.random.default_rng(seed)
    half = brokers // 2
    given, taken = (share / share.sum() for share in random.uniform(0.2, 1, (2, half)))
    ends = random.choice(half, partitions, p=given), half + random.choice(half, partitions, p=taken)
    stays = (ends[1] - half + 1) % half + half
    sizes = (random.lognormal(0, 1, partitions) * 1e9).astype(np.int64)
    source, destination = (np.stack([end, stays], axis=1).astype(np.int32) for end in ends)
    return source, destination, sizes


def measure(partitions: int, brokers: int, max_partitions: int, seed: int) -> Found:
    current, target, sizes = made(partitions, brokers, seed)
    started = time.process_time()
    moves = moves_of(current, target, sizes, current >= 0)
    waves = split(moves, max_partitions)
    seconds = time.process_time() - started
    lasts = makespan(moves, waves.wave, rate=1)
    return Found(waves.number, waves.bound, lasts.seconds / lasts.bound, seconds)


def main() -> int:
    print(f"{'partitions / brokers':>20}  waves = bound  makespan ÷ bound (worst of {len(SEEDS)})  CPU seconds")
    good = True
    for partitions, brokers, cap in PLANS:
        found = [measure(partitions, brokers, cap, seed) for seed in SEEDS]
        ratios = [f.makespan_ratio for f in found]
        numbers = f"{found[0].number} = {found[0].number_bound}"
        good &= all(f.number == f.number_bound for f in found) and max(ratios) <= TOLERANCE
        seconds = median(f.seconds for f in found)
        print(
            f"{f'{partitions} / {brokers}':>20}  {numbers:13}  {median(ratios):.3f} ({max(ratios):.3f})  {seconds:.2f}"
        )
    print(f"waves at their bound, makespan within {TOLERANCE}: {'yes' if good else 'NO'}")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
