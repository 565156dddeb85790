"""Plans in a process of its own: `python -m tests.benchmarks.fresh CLUSTER RUNS` prints what that took, as JSON."""

from __future__ import annotations

import json
import pickle
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np


def now() -> np.ndarray:
    """Seconds of the clock, and of this process on a core."""
    return np.array((time.perf_counter(), time.process_time()))


BEGUN = now()

from reassign.planning.problem.problem import pose  # noqa: E402  the import is part of what is measured
from reassign.planning.solve import solve  # noqa: E402


def main(path: str, runs: str) -> None:
    imported = now()
    cluster, goal = pickle.loads(Path(path).read_bytes())
    read = now()
    digests = {sha256(solve(pose(cluster, goal)).target.tobytes()).hexdigest()}
    first, busy = now() - read + imported - BEGUN
    digests |= {sha256(solve(pose(cluster, goal)).target.tobytes()).hexdigest() for _ in range(int(runs) - 1)}
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) * 1024  # what getrusage says would include the process that started this one
    print(json.dumps({"first": first, "busy": busy, "peak": peak, "digests": sorted(digests)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
