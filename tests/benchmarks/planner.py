"""`make bench-planner`: how fast the planner is and how far from the optimum, beside Kafka's own placer and the bounds.

On made clusters (instances.py), the goal being disk, replicas and leaders inside ±10 % with racks of racks:
- seconds of the kernel alone, warm, on one core, beside Kafka's StripedReplicaPlacer in the same run, on the same
  partitions, brokers and racks; what each of them moves, how even that is, and how many partitions miss their racks
- bytes and moves beside what any plan must cost, for many kinds of clusters and seeds; whether all bands are met
- bytes beside the exact optimum (HiGHS) of small clusters
- a first plan in a fresh process, its peak of memory, and whether 20 plans in two processes are the same bytes

Nothing is asserted: a line says what was measured and what it stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from reassign.planning.bounds import certificates
from reassign.planning.problem.model import Certificate, Ints
from reassign.planning.problem.problem import PlacementProblem, pose
from reassign.planning.solve import outside_bands, solve
from tests.benchmarks import exact
from tests.benchmarks.instances import SIZES, Made, cluster, goal
from tests.benchmarks.placer import place
from tests.spread import spread

T = TypeVar("T")

KINDS = {
    "3 x 4 racks": Made(0, 0),
    "a broker drained": Made(0, 0, drained=True),
    "3 racks": Made(0, 0, racks=(3,)),
    "12 racks": Made(0, 0, racks=(12,)),
    "no racks": Made(0, 0, racks=()),
    "unequal capacities": Made(0, 0, unequal_capacities=True),
    "unequal racks": Made(0, 0, unequal_racks=True),
    "RF 2": Made(0, 0, replication_factor=2),
    "RF 4": Made(0, 0, replication_factor=4),
    "RF 5": Made(0, 0, replication_factor=5),
    "sizes by broker, .3": Made(0, 0, gamma=0.3),
    "sizes by broker, .6": Made(0, 0, gamma=0.6),
    "10 % not spread": Made(0, 0, violations=0.1),
}
LARGE_SEEDS = 2
EXACT_KINDS = ("3 x 4 racks", "a broker drained", "no racks", "unequal capacities")
EXACT_SEEDS = 3
GROWTH = {"99k": (99_000, 100), "999k": (999_000, 300), "3.3M": (3_300_000, 1_000), "10M": (9_999_000, 3_000)}
TIMES = 6
RUNS = 20
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Result:
    """One plan: what it costs, whether all bands are met, and how many partitions are not spread over the racks."""

    certificate: Certificate
    met: bool
    said: bool
    not_spread: int


def made(size: str, kind: str, seed: int) -> Made:
    replicas, brokers = SIZES[size]
    return replace(KINDS[kind], replicas=replicas, brokers=brokers, seed=seed)


def judge(problem: PlacementProblem, target: Ints, said: bool = False) -> Result:
    load = problem.loads(target)
    low, high = certificates.limits(problem)
    met = bool(((load >= low) & (load <= high)).all())
    not_spread = int((~spread(problem.groups, target, problem.allowed)).sum())
    return Result(certificates.certify(problem, target), met, said, not_spread)


def planned(what: Made) -> Result:
    problem = pose(cluster(what), goal(what))
    solution = solve(problem)
    return judge(problem, solution.target, bool(solution.unmet or outside_bands(problem, solution.target)))


def speed(sizes: Iterable[str]) -> None:
    print("\n## Seconds on one core, beside Kafka's own placer (fastest of several, warm)\n")
    print(
        f"{'size':>5} {'kernel':>8} {'Kafka':>8} {'ratio':>6} {'pose':>6} {'certify':>7} | {'moved':>6} {'Kafka':>6} | "
        f"{'greatest':>8} {'Kafka':>6} | {'not spread':>10} {'Kafka':>6}"
    )
    for size in sizes:
        what = made(size, "3 x 4 racks", 0)
        of, wanted = cluster(what), goal(what)
        posing, problem = fastest(pose, of, wanted)
        kernel, solution = fastest(solve, problem)
        certifying, _ = fastest(certificates.certify, problem, solution.target)
        placed, kafka = place(of, np.flatnonzero(problem.allowed))
        ours, theirs = judge(problem, solution.target), judge(problem, placed)
        total = int((problem.size * problem.rf).sum())
        moved = [result.certificate.bytes / total for result in (ours, theirs)]
        greatest = [result.certificate.balance[0].after[1] for result in (ours, theirs)]
        print(
            f"{size:>5} {kernel:8.4f} {kafka:8.4f} {kernel / kafka:6.2f} {posing:6.3f} {certifying:7.3f} | "
            f"{moved[0]:6.1%} {moved[1]:6.1%} | {greatest[0]:8.3f} {greatest[1]:6.3f} | "
            f"{ours.not_spread:10} {theirs.not_spread:6}",
            flush=True,
        )


def fastest(call: Callable[..., T], *arguments: object) -> tuple[float, T]:
    """Seconds, by the clock as those of the peer are, compiled before; and what came out."""
    result, taken = call(*arguments), []
    for _ in range(TIMES):
        started = time.perf_counter()
        result = call(*arguments)
        taken.append(time.perf_counter() - started)
    return min(taken), result


def distance(seeds: int, pool: ProcessPoolExecutor) -> None:
    print("\n## Bytes and moves ÷ what any plan must cost that balances as well (1 is optimal)\n")
    print(
        f"{'size':>5} {'clusters':20} {'seeds':>5} {'bytes median':>12} {'worst':>7} {'moves median':>12} {'worst':>7} "
        f"{'bands met':>9} {'else said':>9} {'not spread':>10}"
    )
    for size in ("9k", "99k", "999k"):
        for number, kind in enumerate(KINDS):
            count = seeds if size != "999k" or number == 0 else min(seeds, LARGE_SEEDS)
            results = list(pool.map(planned, [made(size, kind, seed) for seed in range(count)]))
            moved = [r.certificate.bytes / max(1, r.certificate.bytes_bound) for r in results]
            moves = [r.certificate.moves / max(1, r.certificate.moves_bound) for r in results]
            print(
                f"{size:>5} {kind:20} {count:5} {median(moved):12.4f} {max(moved):7.4f} {median(moves):12.3f} "
                f"{max(moves):7.3f} {sum(r.met for r in results):6}/{count:<2} "
                f"{sum(r.said for r in results if not r.met):6}/{sum(not r.met for r in results):<2} "
                f"{sum(r.not_spread for r in results):10}",
                flush=True,
            )


def against_optimum(what: Made) -> tuple[float, float, bool]:
    """Return bytes ÷ the optimum's bound, how exactly the optimum is known, and whether all bands are met."""
    problem = pose(cluster(what), goal(what))
    plan, best = solve(problem).target, exact.optimum(problem)
    known = 1.0 if best.target is None else certificates.cost(problem, best.target).bytes / best.bytes_bound
    return certificates.cost(problem, plan).bytes / best.bytes_bound, known, judge(problem, plan).met


def small(pool: ProcessPoolExecutor, seeds: int) -> None:
    print("\n## 360 replicas on 12 brokers: bytes ÷ the exact optimum's lower bound (HiGHS)\n")
    print(f"{'clusters':20} {'seeds':>5} {'median':>8} {'worst':>7} {'bands met':>9} {'optimum known to':>16}")
    for kind in EXACT_KINDS:
        rows = list(pool.map(against_optimum, [made("360", kind, seed) for seed in range(seeds)]))
        ratios, known, met = zip(*rows, strict=True)
        print(
            f"{kind:20} {seeds:5} {median(ratios):8.4f} {max(ratios):7.4f} {sum(met):6}/{seeds:<2} {max(known):16.4f}",
            flush=True,
        )


def fresh() -> None:
    print("\n## A fresh process: import, compiled code from its cache, first plan; reading the cluster not included\n")
    with tempfile.TemporaryDirectory() as scratch:
        for size in ("9k", "999k"):
            path = write(Path(scratch, size), made(size, "3 x 4 racks", 0))
            said = child(path, 1, "0")
            print(
                f"{size:>5}: {said['first']:.2f} s, {said['busy']:.2f} s of them on a core (of 3 s), "
                f"peak {said['peak'] / MIB:.0f} MiB (of 512 MiB)",
                flush=True,
            )
        path = write(Path(scratch, "same"), made("99k", "a broker drained", 0))
        digests = {digest for seed in "12" for digest in child(path, RUNS // 2, seed)["digests"]}
        print(f"\n{RUNS} plans of 99k replicas in two processes with other hash seeds: {len(digests)} sha256")


def write(path: Path, what: Made) -> Path:
    path.write_bytes(pickle.dumps((cluster(what), goal(what))))
    return path


def child(path: Path, runs: int, hash_seed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.fresh", str(path), str(runs)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(said))


def growth() -> None:
    print("\n## Growth of the kernel\n")
    planned(made("9k", "3 x 4 racks", 0))  # compiled from here on
    for size, (replicas, brokers) in GROWTH.items():
        what = Made(replicas, brokers)
        problem = pose(cluster(what), goal(what))
        started = time.process_time()
        target = solve(problem).target
        took = time.process_time() - started
        result = judge(problem, target)
        print(
            f"{size:>5} on {brokers:4} brokers: {took:7.2f} s, {took / replicas * 1e6:.2f} µs a replica, "
            f"bytes ÷ bound {result.certificate.bytes / result.certificate.bytes_bound:.4f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the planner is, and how far from the optimum.")
    parser.add_argument("--seeds", type=int, default=20, help="clusters of each kind and size (20)")
    parser.add_argument("--growth", action="store_true", help="also up to 10M replicas on 3,000 brokers: some minutes")
    options = parser.parse_args()
    started = time.monotonic()
    speed(("360", "9k", "99k", "999k"))
    fresh()
    with ProcessPoolExecutor() as pool:
        distance(options.seeds, pool)
        small(pool, min(options.seeds, EXACT_SEEDS))
    if options.growth:
        growth()
    print(f"\nall of it in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
