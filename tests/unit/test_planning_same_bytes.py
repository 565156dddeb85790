"""The same cluster and goal give the same plan to the byte, in whatever process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.instances import Made, cluster, goal

ROOT = Path(__file__).parents[2]


def test_processes_with_other_hash_seeds_make_the_same_plan(tmp_path: Path) -> None:
    made = Made(9_000, 30, unequal_capacities=True, violations=0.1, drained=True)
    (tmp_path / "cluster").write_bytes(pickle.dumps((cluster(made), goal(made))))
    command = [sys.executable, "-m", "tests.benchmarks.fresh", str(tmp_path / "cluster"), "3"]
    processes = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}", "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    digests = {line.decode().split('"digests": ')[1] for line in said}
    assert len(digests) == 1
    assert digests.pop().count('"') == 2  # one digest for all the runs of each process
