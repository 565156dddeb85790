"""`make bench-fleet`: how long a fleet takes from snapshots to manifests and report, and how much memory, on 2 cores.

Each run is a process of its own, with a work folder of its own: from the start of Python and the JVM to the last file.
What files the system still has in memory is not cold. The kernel and the archive of Spark's classes are made before.
Beside it, in the same run, a loop in Python reads the same files and writes the same manifests (fleet_loop.py), without
Spark, and without what a run does besides: checks, assessment, report.

- 201 clusters with 1.6M replicas, one of them with 999k; 1,000 clusters of 3k replicas; and the first with 30 days
- growth of time with 1, 2, 4 and 8 times the clusters, and from how many on Spark would be faster than the loop
- with the platform up, as the Job of deploy/spark with 1, 2 and 4 executors, from its creation to its end
- with `--driver`, instead of all that: the memory of the driver for many small clusters, beside what it wrote

Memory is that of all processes of a run together, what they share counted once (Pss), looked at once a second.
Nothing is asserted: a line says what was measured and what it stands beside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from localplatform import parts
from localplatform.controlplane import ApiServer
from tests.benchmarks import fleet_pods
from tests.benchmarks.fleets import write_fleet

REPOSITORY = Path(__file__).parents[2]
GROWTH = (50, 100, 200, 400)
FLEETS = {
    "201 clusters, 1.6M replicas": (200, True, 1, 1.6),
    "1,000 clusters, 3M replicas": (1_000, False, 1, 0.95),
    "201 clusters, 1.6M replicas, 30 days": (200, True, 30, 2.4),
}
"""Clusters of 3k replicas, whether there is a giant, days of snapshots, and the ratio to the loop that is wanted."""
ON_KUBERNETES = 200
SMALL = 300
"""Replicas of the clusters whose number is what a driver's memory is measured by."""
LOOK_SECONDS = 1
MIB = 2**20
TICKS = os.sysconf("SC_CLK_TCK")


class Ran(NamedTuple):
    """Seconds on the clock, seconds that all processes were on a core, and the most bytes of memory that they had: all
    together, the first one, and the first JVM that it started."""

    seconds: float
    busy: float
    memory: int
    first: int
    jvm: int


class Used(NamedTuple):
    """Of one process, up to now: its name, seconds on a core, bytes of memory, and the most that it had."""

    name: str
    busy: float
    memory: int
    most: int


def measured(command: list[str], log: Path) -> Ran:
    """Run this in a process of its own, which has to end well."""
    paths = os.pathsep.join((str(REPOSITORY / "operator"), str(REPOSITORY)))
    environment = {**os.environ, "PYTHONPATH": paths}
    began, memory = time.perf_counter(), 0
    processes: dict[int, Used] = {}
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, *command], env=environment, stdout=file, stderr=file)
        while process.poll() is None:
            looked = look(process.pid)
            for one, used in looked.items():  # one that has just ended has no memory any more
                most = max(used.most, processes[one].most if one in processes else 0)
                processes[one] = used._replace(most=most)
            memory = max(memory, sum(used.memory for used in looked.values()))
            time.sleep(LOOK_SECONDS)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} has ended with {process.returncode}:\n{log.read_text()[-2000:]}")
    jvm = next((used.most for used in processes.values() if used.name == "java"), 0)
    return Ran(seconds, sum(used.busy for used in processes.values()), memory, processes[process.pid].most, jvm)


def look(root: int) -> dict[int, Used]:
    """What a process, and all that it and they have started, use: by process id, each before those it has started."""
    children, busy, names = defaultdict(list), {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            named, _, said = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        process, fields = int(stat.parent.name), said.split()
        children[int(fields[1])].append(process)
        busy[process] = (int(fields[11]) + int(fields[12])) / TICKS
        names[process] = named.partition("(")[2]
    found = [root] if root in busy else []
    for one in found:
        found += children[one]
    return {
        one: Used(names[one], busy[one], _bytes(one, "smaps_rollup", "Pss:"), _bytes(one, "status", "VmHWM:"))
        for one in found
    }


def _bytes(process: int, file: str, what: str) -> int:
    try:
        said = Path(f"/proc/{process}/{file}").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in said.splitlines() if line.startswith(what)), 0)


def fleet(snapshots: Path, folder: Path, master: str) -> tuple[Ran, str]:
    """All stages, and the seconds that each of them took."""
    work, manifests, report = folder / "work", folder / "manifests", folder / "report.html"
    places = {
        "--snapshots": snapshots,
        "--work": work,
        "--manifests": manifests,
        "--report": report,
        "--master": master,
    }
    options = [str(word) for option in places.items() for word in option]
    began = time.time()
    ran = measured(["-m", "reassign.cli", "fleet", "run", *options], folder / "log")
    return ran, fleet_pods.stages(folder, began)


def loop(snapshots: Path, folder: Path) -> Ran:
    return measured(["-m", "tests.benchmarks.fleet_loop", str(snapshots), str(folder / "manifests")], folder / "log")


def compare(
    clusters: int, giant: bool, scratch: Path, options: argparse.Namespace, days: int = 1
) -> tuple[float, float]:
    """Make a fleet, and run both over it; prints what they took, and gives their seconds: Spark's, and the loop's."""
    with tempfile.TemporaryDirectory(dir=scratch) as made:
        snapshots, spark, plain = (Path(made, name) for name in ("snapshots", "spark", "loop"))
        spark.mkdir()
        plain.mkdir()
        write_fleet(snapshots, clusters, giant, days)
        ran, by_stage = fleet(snapshots, spark, options.master)
        print(f"  Spark: {_said(ran)}; {by_stage}", flush=True)
        alone = loop(snapshots, plain)
        print(
            f"  loop:  {_said(alone)}; Spark's time is {ran.seconds / alone.seconds:.2f} of it; {_same(spark, plain)}"
        )
        return ran.seconds, alone.seconds


def first(options: argparse.Namespace) -> None:
    """Run a small fleet, for what the first run of an installation leaves in the user's cache."""
    with tempfile.TemporaryDirectory(dir=options.scratch) as made:
        folder = Path(made, "run")
        folder.mkdir()
        write_fleet(Path(made, "snapshots"), 3)
        fleet(Path(made, "snapshots"), folder, options.master)


def driver(counts: Sequence[int], options: argparse.Namespace) -> None:
    """Run fleets of so many clusters, and print a line of MiB for each."""
    columns = ("clusters", "Python", "JVM", "manifests", "report", "work", "seconds")
    print(*(f"{column:>10}" for column in columns))
    for clusters in counts:
        with tempfile.TemporaryDirectory(dir=options.scratch) as made:
            snapshots, folder = Path(made, "snapshots"), Path(made, "run")
            folder.mkdir()
            write_fleet(snapshots, clusters, days=options.days, replicas=options.replicas)
            print(of_driver(clusters, snapshots, folder, options.master), flush=True)


def of_driver(clusters: int, snapshots: Path, folder: Path, master: str) -> str:
    ran, _ = fleet(snapshots, folder, master)
    sizes = (size(folder / name) for name in ("manifests", "report.html", "work"))
    mebibytes = (f"{bytes_ / MIB:10.1f}" for bytes_ in (ran.first, ran.jvm, *sizes))
    return " ".join((f"{clusters:>10}", *mebibytes, f"{ran.seconds:10.1f}"))


def size(place: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    return sum(file.stat().st_size for file in (place, *place.rglob("*")) if file.is_file())


def _said(ran: Ran) -> str:
    return f"{ran.seconds:6.1f} s ({ran.busy:.0f} s on a core), peak {ran.memory / MIB:5.0f} MiB"


def _same(one: Path, other: Path) -> str:
    trees = [
        {file.relative_to(folder): file.read_bytes() for file in sorted(folder.glob("manifests/clusters/*/*.yaml"))}
        for folder in (one, other)
    ]
    same = sum(trees[1].get(name) == content for name, content in trees[0].items())
    return f"{same} of {len(trees[0].keys() | trees[1].keys())} manifests are the same bytes"


def crossing(counts: tuple[int, ...], spark: list[float], plain: list[float]) -> str:
    """From how many clusters on Spark is faster, by straight lines through what was measured."""
    (slope, start), (slope_alone, start_alone) = (np.polyfit(counts, seconds, 1) for seconds in (spark, plain))
    lines = (
        f"Spark {start:.1f} s + {slope * 1000:.0f} ms a cluster, loop {start_alone:.1f} s + {slope_alone * 1000:.0f} ms"
    )
    if slope >= slope_alone:
        return f"{lines}: Spark is never faster here"
    return f"{lines}: Spark is faster from {(start - start_alone) / (slope_alone - slope):.0f} clusters on"


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a fleet takes, and how much memory.")
    parser.add_argument("--master", default="local[2]", help="Spark's master (local[2])")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the fleets (the system's)")
    parser.add_argument("--growth", type=int, nargs="+", default=GROWTH, help="clusters (50 100 200 400)")
    parser.add_argument("--replicas", type=int, default=SMALL, help=f"of a cluster, with --driver ({SMALL})")
    parser.add_argument("--days", type=int, default=1, help="snapshots of a cluster, with --driver (1)")
    parser.add_argument("--driver", type=int, nargs="+", help="clusters that the driver's memory is measured with")
    options = parser.parse_args()
    subprocess.run(
        [sys.executable, "-m", "reassign.planning.compile_ahead"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")},
        check=True,
    )
    first(options)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, of which {load:.1f} were busy with other things; files may be in memory")
    if options.driver:
        print(f"\nthe driver's memory and what it wrote, in MiB; {options.replicas} replicas, {options.days} days")
        return driver(options.driver, options)
    for name, (clusters, giant, days, wanted) in FLEETS.items():
        print(f"\n{name}; at most {wanted} of the loop's time is wanted")
        compare(clusters, giant, options.scratch, options, days)
    print("\ngrowth, clusters of 3k replicas")
    spark, plain = [], []
    for clusters in options.growth:
        print(f"{clusters} clusters")
        took = compare(clusters, False, options.scratch, options)
        spark.append(took[0])
        plain.append(took[1])
    print(crossing(tuple(options.growth), spark, plain))
    print(f"\non the local Kubernetes, {ON_KUBERNETES} clusters of 3k replicas, driver and executors on the same cores")
    server = ApiServer.load(parts.API)
    if server is None:
        print("not measured: the platform is not up (make up)")
    else:
        fleet_pods.compare(server, ON_KUBERNETES, False, options.scratch)
    return None


if __name__ == "__main__":
    main()
