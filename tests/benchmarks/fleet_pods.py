"""`make bench-fleet-pods`: how long a fleet takes as a Job of the local platform, with 1, 2 and 4 executors.

Beside the seconds from the Job's creation to its end: what the driver took for each stage. Driver and executors are
pods of one machine. With two cores, executors share with each other and with the driver what there is of them.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

from localplatform import parts
from localplatform.controlplane import ApiServer
from localplatform.spark import run_fleet
from tests.benchmarks.fleets import write_fleet

EXECUTORS = (1, 2, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200, help="of 3k replicas each")
    parser.add_argument("--giant", action="store_true", help="and one of 999k")
    options = parser.parse_args()
    server = ApiServer.load(parts.API)
    assert server is not None
    print(f"{options.clusters} clusters of 3k replicas{', one of 999k' if options.giant else ''}", flush=True)
    compare(server, options.clusters, options.giant)


def compare(server: ApiServer, clusters: int, giant: bool, scratch: Path | None = None) -> None:
    """Run a fleet with each number of executors; prints what it took, and the pods of the run."""
    for executors in EXECUTORS:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            write_fleet(Path(folder, "snapshots"), clusters, giant)
            ran = run_fleet(server, Path(folder), executors=executors)
            assert ran.code == 0, ran.log
            print(
                f"  executors: {executors}; {ran.seconds:.1f} s; {stages(Path(folder), ran.created)}\n{ran.pods}",
                flush=True,
            )


def stages(folder: Path, began: float) -> str:
    """Seconds that each stage of a run took that writes below this folder, the first one since `began`."""
    marks = {
        "outcomes": "work/pass/verdicts.parquet",
        "history": "work/pass/leftovers.parquet",
        "rest of the pass": "work/pass/_MADE_FROM",
        "emit": "manifests/run.json",
        "report": "report.html",
    }
    times = {"start": began} | {stage: (folder / mark).stat().st_mtime for stage, mark in marks.items()}
    return ", ".join(f"{name} {end - start:.1f}" for (_, start), (name, end) in pairwise(times.items()))


if __name__ == "__main__":
    main()
