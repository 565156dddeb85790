"""Made fleets: snapshots of many clusters, as the fleet's commands read them; the same arguments make the same bytes.

`python -m tests.benchmarks.fleets ROOT --clusters 200 --giant` writes `ROOT/date=…/cluster=…`. No two clusters are the
same: seeds, racks, replication factors and how full disks are differ. Of several days the newest is the cluster as it
was made; before, each topic was smaller, by its own rate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from reassign.files.snapshots import write
from reassign.files.tables import Config
from reassign.planning.problem.model import Cluster
from tests.benchmarks.instances import Made, cluster, loads
from tests.snapshots import in_sync

LAST_DAY = date(2026, 1, 31)
REPLICAS = 3_000
BROKERS = (12, 30)
KINDS = (
    Made(REPLICAS, 0),
    Made(REPLICAS, 0, racks=(2, 3)),
    Made(REPLICAS, 0, unequal_capacities=True),
    Made(REPLICAS, 0, violations=0.1),
    Made(REPLICAS, 0, replication_factor=2),
    Made(REPLICAS, 0, gamma=0.3),
    Made(REPLICAS, 0, racks=(3,)),
)
GIANT = Made(999_000, 300)
REGIONS = ("ap", "eu", "us")
"""Of which names begin, so that a policy can tell clusters apart by patterns."""
FULL = (0.3, 0.8)
"""How full the fullest disk of a cluster is: between these."""
DAILY_GROWTH = 0.01
"""The mean of topics' growth in a day; it is exponentially distributed."""
LEFT_BEHIND = 10
"""Of so many clusters one has a throttle that nobody took away."""


def write_fleet(
    root: Path,
    clusters: int,
    giant: bool = False,
    days: int = 1,
    seed: int = 0,
    last: date = LAST_DAY,
    replicas: int = REPLICAS,
) -> list[str]:
    """Write snapshots of `clusters` clusters, and of a giant of 999k replicas, one on each day; their names."""
    names = []
    for number, name, made in _fleet(clusters, giant, replicas):
        whole = _with_disks(
            replace(cluster(replace(made, seed=seed + number)), id=f"made-{seed}-{name}"), seed + number
        )
        growth = np.random.default_rng([seed, number]).exponential(DAILY_GROWTH, len(whole.topics))
        for back in range(days):
            day = last - timedelta(days=back)
            taken_at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(seconds=number)
            snapshot = in_sync(_before(whole, growth, back), taken_at)._replace(configs=_configs(whole, number))
            write(root / f"date={day}" / f"cluster={name}", snapshot)
        names.append(name)
    return names


def _fleet(clusters: int, giant: bool, replicas: int) -> Iterator[tuple[int, str, Made]]:
    for number in range(clusters):
        kind = replace(KINDS[number % len(KINDS)], replicas=replicas, brokers=BROKERS[number % len(BROKERS)])
        yield number, f"{REGIONS[number % len(REGIONS)]}-{number:04}", kind
    if giant:
        yield clusters, "giant", GIANT


def _with_disks(whole: Cluster, seed: int) -> Cluster:
    """All disks larger or smaller by one factor, so that the fullest is as full as we like."""
    used = _used(whole)
    full = np.random.default_rng([seed, len(used)]).uniform(*FULL)
    total = np.ceil(whole.directories.total * (used / whole.directories.total).max() / full).astype(np.int64)
    return replace(whole, directories=replace(whole.directories, total=total, usable=total - used))


def _before(whole: Cluster, growth: np.ndarray, days: int) -> Cluster:
    """The cluster as it was so many days ago."""
    if days == 0:
        return whole
    then = replace(whole, sizes=np.rint(whole.sizes * (1 + growth[whole.topic]) ** -days).astype(np.int64))
    return replace(then, directories=replace(whole.directories, usable=whole.directories.total - _used(then)))


def _used(whole: Cluster) -> np.ndarray:
    return loads(whole.replicas, whole.sizes, len(whole.brokers))


def _configs(whole: Cluster, number: int) -> tuple[Config, ...]:
    if number % LEFT_BEHIND != LEFT_BEHIND - 1:
        return ()
    return (Config("broker", str(whole.brokers[0]), "leader.replication.throttled.rate", str(10**7)),)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the snapshots of a made fleet.")
    parser.add_argument("root", type=Path, help="folder to write to")
    parser.add_argument("--clusters", type=int, default=200, help="clusters (200)")
    parser.add_argument("--replicas", type=int, default=REPLICAS, help=f"of each ({REPLICAS})")
    parser.add_argument("--giant", action="store_true", help="and one of 999k replicas on 300 brokers")
    parser.add_argument("--days", type=int, default=1, help="snapshots of each, one a day (1)")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other clusters (0)")
    parser.add_argument("--last", type=date.fromisoformat, default=LAST_DAY, help=f"the newest day ({LAST_DAY})")
    options = parser.parse_args()
    started = time.monotonic()
    names = write_fleet(**vars(options))
    print(f"{len(names)} clusters, {options.days} day(s) of each, in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
