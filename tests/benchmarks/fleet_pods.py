"""`make bench-fleet-pods`: how long a fleet takes as a Job of the local platform, with one executor and with two.

Beside the seconds from the Job's creation to its end: what the driver took for each stage. Driver and executors are
pods of one machine, which has two cores; so a second executor shares what the first one has with the driver.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from localplatform import parts
from localplatform.controlplane import ApiServer
from localplatform.spark import run_fleet
from tests.benchmarks.fleets import write_fleet

EXECUTORS = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200, help="of 3k replicas each")
    parser.add_argument("--giant", action="store_true", help="and one of 999k")
    options = parser.parse_args()
    server = ApiServer.load(parts.API)
    assert server is not None
    print(f"{options.clusters} clusters of 3k replicas{', one of 999k' if options.giant else ''}", flush=True)
    for executors in EXECUTORS:
        with tempfile.TemporaryDirectory() as folder:
            write_fleet(Path(folder, "snapshots"), options.clusters, options.giant)
            began = time.time()
            ran = run_fleet(server, Path(folder), executors=executors)
            assert ran.code == 0, ran.log
            print(f"{executors} executors: {ran.seconds:.1f} s; {stages(Path(folder), began)}\n{ran.pods}", flush=True)


def stages(folder: Path, began: float) -> str:
    """Seconds that each stage took, after the time from `began` to the end of the first one."""
    marks = [folder / "work" / stage / "_MADE_FROM" for stage in ("check", "assess", "plan")]
    marks += [folder / "manifests" / "run.json", folder / "report.html"]
    times = [(mark.parent.name, mark.stat().st_mtime) for mark in marks if mark.exists()]
    first, last = times[0]
    lines = [
        f"{first} {last - began:.1f}",
        *(f"{name} {end - start:.1f}" for (_, start), (name, end) in pairwise(times)),
    ]
    return ", ".join(lines)


if __name__ == "__main__":
    main()
