"""`make bench-fleet`, its second part: how the pass over a fleet would grow with cores, from 1 to 64.

No such machine is at hand. So each snapshot is judged for once, by itself, and timed; then its seconds are played
through as a run does it. Snapshots are packed into tasks by their bytes (`handout.packed`), so many for each core, and
a core takes the next task as soon as it has ended one, in Spark's order. Left out are the start, Spark's reading and
its shuffle, and what the driver does alone. Beside it stands what no order can be faster than: the largest, or the mean
of the cores.

The fleets are of the snapshots that were timed, each of them several times.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from reassign.fleet import choose
from reassign.fleet.choose import File, Folder
from reassign.fleet.cluster import outcome_of
from reassign.fleet.handout import TASKS_PER_CORE, packed
from reassign.fleet.policy import FleetPolicy
from tests.benchmarks.fleets import write_fleet

CORES = (1, 2, 4, 8, 16, 32, 64)
TIMES = 10
"""The clusters of 3k replicas that are timed make a fleet of so many times as many."""


class Timed(NamedTuple):
    """A snapshot: the bytes of its files, and the seconds that its outcome took on one core."""

    size: int
    seconds: float


def timed(root: Path) -> list[Timed]:
    """Answer for each snapshot below the root, the first one twice, so that nothing is loaded meanwhile."""
    files = sorted(root.rglob("*.parquet"))
    folders = choose.wanted(File(str(file.relative_to(root)), file.stat().st_size) for file in files)
    first = next(iter(folders.items()))
    _timed(root, *first)
    return [_timed(root, *each) for each in folders.items()]


def _timed(root: Path, folder: Folder, files: Iterable[File]) -> Timed:
    contents = {file.path: pa.py_buffer((root / file.path).read_bytes()) for file in files}
    began = time.perf_counter()
    outcome_of(folder, contents, FleetPolicy(), newest=True)
    return Timed(sum(content.size for content in contents.values()), time.perf_counter() - began)


def makespan(fleet: Sequence[Timed], cores: int) -> float:
    """Seconds until the last task has ended."""
    tasks = min(len(fleet), TASKS_PER_CORE * cores)
    of = {Folder("", str(number)): each for number, each in enumerate(fleet)}
    seconds = [0.0] * tasks
    for folder, task in packed({folder: each.size for folder, each in of.items()}, tasks).items():
        seconds[task] += of[folder].seconds
    free = [0.0] * cores
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def bound(fleet: Sequence[Timed], cores: int) -> float:
    """Seconds that no order of whole snapshots is below."""
    return max(max(each.seconds for each in fleet), sum(each.seconds for each in fleet) / cores)


def show(name: str, fleet: Sequence[Timed]) -> None:
    print(f"\n{name}: {len(fleet):,} clusters, {sum(each.seconds for each in fleet):.1f} s on one core")
    print("cores  makespan     bound  ratio")
    for cores in CORES:
        took, least = makespan(fleet, cores), bound(fleet, cores)
        print(f"{cores:5}  {took:6.2f} s  {least:6.2f} s  {took / least:5.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="How the pass over a fleet would grow with cores.")
    parser.add_argument("--clusters", type=int, default=200, help="clusters of 3k replicas that are timed (200)")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the fleet (the system's)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as root:
        write_fleet(Path(root), options.clusters, giant=True)
        found = timed(Path(root))
    giant = max(found)
    even = [*chain.from_iterable(repeat([each for each in found if each is not giant], TIMES))]
    spread = sorted(each.seconds for each in even)
    print(
        f"clusters of 3k replicas took {spread[0]:.3f} to {spread[-1]:.3f} s, half of them up to "
        f"{spread[len(spread) // 2]:.3f} s; the one of 999k took {giant.seconds:.1f} s"
    )
    show("an even fleet", even)
    show("the same with one of 999k", [*even, giant])


if __name__ == "__main__":
    main()
