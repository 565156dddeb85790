"""Waves of made plans: how many, how long they take beside the bound, and the CPU time to find them.

How long is said in parts of the bound: as the certificate says it, where a wave is as long as its busiest broker needs,
and as `simulation` has it, copy by copy, with all of a wave at once and with as much as the operator lets by default.
Where bytes fill the waves to more than FULL nothing is left to exchange, so these are told apart. Nothing is asserted.

Some plans come from the planner, for clusters of `instances`. For the others it is not needed: of each partition one
replica is replaced, half of the brokers give, the others take, none as much as another, of sizes that are lognormal
(σ = 1).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from reassign.planning.problem.model import Bools, Bytes, Ints
from reassign.planning.problem.problem import pose
from reassign.planning.solve import solve
from reassign.planning.waves.moves import moves_of
from reassign.planning.waves.split import makespan, split
from tests.benchmarks import simulation
from tests.benchmarks.instances import Made, cluster, goal

MADE = ((800, 30, 200), (3_000, 30, 200), (10_600, 100, 500), (20_000, 100, 500), (110_000, 300, 2_000))
"""Partitions, brokers, and how many partitions a wave may have."""
SEEDS = range(5)
SMALL, LARGE = {"replicas": 9_000, "brokers": 30}, {"replicas": 99_000, "brokers": 100}
KINDS: dict[str, dict[str, bool | int]] = {
    "": {},
    "drained": {"drained": True},
    "two replicas": {"replication_factor": 2},
    "unequal disks": {"unequal_capacities": True},
}
GIB = 2**30
RATES = (20 * 2**20, 50 * 2**20, 200 * 2**20)
"""Bytes per second; the rate makes all of it longer alike, so one each in turns."""
TOLERANCE = 1.05
FULL = 0.995


class Plan(NamedTuple):
    current: Ints
    target: Ints
    sizes: Bytes
    alive: Bools


class Found(NamedTuple):
    moves: int
    number: int
    number_bound: int
    full: bool
    said: float
    simulated: float
    limited: float
    seconds: float


def made(partitions: int, brokers: int, seed: int) -> Plan:
    random = np.random.default_rng(seed)
    half = brokers // 2
    given, taken = (share / share.sum() for share in random.uniform(0.2, 1, (2, half)))
    ends = random.choice(half, partitions, p=given), half + random.choice(half, partitions, p=taken)
    stays = (ends[1] - half + 1) % half + half
    sizes = (random.lognormal(0, 1, partitions) * 1e9).astype(np.int64)
    source, destination = (np.stack([end, stays], axis=1).astype(np.int32) for end in ends)
    return Plan(source, destination, sizes, np.ones(brokers, np.bool_))


def planned(instance: Made) -> Plan:
    of = cluster(instance)
    problem = pose(of, goal(instance))
    return Plan(of.replicas, solve(problem).target, problem.size, of.alive)


def measure(plan: Plan, max_partitions: int, max_bytes: int | None, rate: int) -> Found:
    started = time.process_time()
    moves = moves_of(plan.current, plan.target, plan.sizes, plan.alive[plan.current])
    waves = split(moves, max_partitions, max_bytes)
    seconds = time.process_time() - started
    lasts = makespan(moves, waves.wave, rate)
    copies = simulation.waves_of(*plan[:3], waves.wave, plan.alive)
    bound = simulation.busiest([copy for wave in copies for copy in wave]) / rate
    all_at_once = sum(simulation.seconds(wave, rate, len(moves), len(moves)) for wave in copies)
    limited = sum(simulation.seconds(wave, rate) for wave in copies)
    full = max_bytes is not None and moves.bytes.sum() > FULL * max_bytes * waves.number
    ratios = (each / bound for each in (lasts.seconds, all_at_once, limited))
    return Found(len(moves), waves.number, waves.bound, full, *ratios, seconds)


def rows() -> Iterator[tuple[str, list[Found]]]:
    """What was measured, by name."""
    for number, (size, kind) in enumerate((size, kind) for size in (SMALL, LARGE) for kind in KINDS):
        seeds = SEEDS if size is SMALL else SEEDS[:1]
        plans = [planned(Made(**size, seed=seed, **KINDS[kind])) for seed in seeds]  # type: ignore[arg-type]
        name = f"{size['replicas'] // 1000}k / {size['brokers']} {kind}".strip()
        rate = RATES[number % len(RATES)]
        for partitions, gib in ((50, None), (200, None), (500, None), (500, size["brokers"] * 5)):
            cap = f"{partitions}" + (f", {gib} GiB" if gib else "")
            yield f"{name}: {cap}", [measure(plan, partitions, gib and gib * GIB, rate) for plan in plans]
    for partitions, brokers, most in MADE:
        plans = [made(partitions, brokers, seed) for seed in (SEEDS if partitions < 100_000 else SEEDS[:2])]
        yield f"made {partitions} / {brokers}: {most}", [measure(plan, most, None, RATES[1]) for plan in plans]


def main() -> None:
    print(f"{'replicas / brokers: caps':>34}   moves  waves  makespan ÷ bound (worst of the seeds)")
    print(f"{'said':>64}  {'all at once':>13}  {'as admitted':>13}  CPU seconds")
    at_bound, judged, limited, full = True, (0.0, ""), (0.0, ""), (0.0, "")
    for name, found in rows():
        at_bound &= all(f.number == f.number_bound for f in found)
        for each in found:
            limited = max(limited, (each.limited, name))
            if each.full:
                full = max(full, (each.simulated, name))
            else:
                judged = max(judged, (each.simulated, name))
        ratios = ([f.said for f in found], [f.simulated for f in found], [f.limited for f in found])
        shown = "  ".join(f"{median(of):.3f} ({max(of):.3f})" for of in ratios)
        seconds = median(f.seconds for f in found)
        print(f"{name:>34}  {found[0].moves:6}  {found[0].number:5}  {shown}  {seconds:11.2f}", flush=True)
    within = judged[0] <= TOLERANCE
    print(f"waves at their bound: {'yes' if at_bound else 'NO'}")
    print(f"worst makespan, simulated: {judged[0]:.3f} ({judged[1]}), {'within' if within else 'OVER'} {TOLERANCE}")
    print(f"where bytes fill the waves to more than {FULL:.1%}: {full[0]:.3f} ({full[1]})")
    print(f"with {simulation.PER_BROKER} copies at once to and from a broker: {limited[0]:.3f} ({limited[1]})")


if __name__ == "__main__":
    main()
