"""The same cluster and goal give the same plan to the byte, in whatever process."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from reassign.files import snapshots
from tests.benchmarks.instances import Made, cluster
from tests.snapshots import in_sync

ROOT = Path(__file__).parents[2]
RUNS = 3
MACHINES = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC", "OMP_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "4", "NUMBA_CPU_NAME": "generic"},
)
PLAN = (
    *("--drain-broker", "3", "--balance", "disk,replicas,leaders", "--throttle", "50Mi"),
    *("--max-partitions", "50", "--cluster", "c", "-n", "n"),
)
SCRIPT = """
import sys
from hashlib import sha256
from typer.testing import CliRunner
from reassign.cli.app import app
from tests.snapshots import in_sync
runs, *arguments = sys.argv[1:]
for _ in range(int(runs)):
    for output in ("manifests", "json"):
        ran = CliRunner().invoke(app, [*arguments, "-o", output])
        print(ran.exit_code, output, len(ran.stdout) > 10_000, sha256(ran.stdout_bytes).hexdigest())
"""


def test_runs_in_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    made = cluster(Made(900, 12, unequal_capacities=True, violations=0.1))
    snapshots.write(tmp_path / "s", in_sync(made, datetime(2026, 1, 31, tzinfo=UTC)))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(RUNS), "plan", "--snapshot", str(tmp_path / "s"), *PLAN],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), **machine},
        )
        for machine in MACHINES
    ]
    said = [process.communicate()[0].splitlines() for process in processes]
    assert [len(lines) for lines in said] == [2 * RUNS] * 2
    found = sorted({line for lines in said for line in lines})
    assert [line.rpartition(" ")[0] for line in found] == ["0 json True", "0 manifests True"]
