"""A balance goal that is added touches four files, and everything from the resource to the report follows.

A copy of the package gets two goals with a measure of their own: what each replica takes in, and what leaders send.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reassign
from reassign.api.goal import COUNTED, By
from reassign.planning.problem.problem import RESOURCES
from reassign.planning.problem.shares import DISK, LEADERS, REPLICAS

PACKAGE, ROOT = Path(reassign.__file__).parent, Path(__file__).parents[2]
EDITS = {
    "api/goal.py": [
        ('    LEADERS = "Leaders"\n', '    LEADERS = "Leaders"\n    IN = "TrafficIn"\n    OUT = "TrafficOut"\n'),
        (
            "leaders=True),\n}",
            "leaders=True),\n"
            '    By.IN: Counted("taken_in", "bytes produced", TRAFFIC, "B/s"),\n'
            '    By.OUT: Counted("sent", "bytes sent to consumers", TRAFFIC, "B/s", leaders=True),\n}',
        ),
        ("COUNTED = {", 'TRAFFIC = Measure("traffic", "produced_bytes")\n\nCOUNTED = {'),
    ],
    "planning/problem/model.py": [
        (
            "np.empty((0, 0), np.int32))  # (P, R) index into directories\n",
            "np.empty((0, 0), np.int32))  # (P, R) index into directories\n"
            "    traffic: Bytes = field(default_factory=lambda: np.empty(0, np.int64))  # (P,)\n",
        )
    ],
    "core/survey.py": [
        (
            "        in_flight=_bools",
            "        traffic=_bytes([UNKNOWN] * len(partitions)),\n        in_flight=_bools",
        )
    ],
    "files/schema.py": [("VERSION = 4", "VERSION = 5")],
}
"""By file, what is written and what was there."""

SCRIPT = """
import json, sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
import numpy as np
from typer.testing import CliRunner
from reassign.api.reassignment_plan import BalanceGoal
from reassign.cli.app import app
from reassign.files import snapshots
from reassign.fleet.report.details import _loads
from reassign.planning.problem.model import PlacementGoal
from reassign.planning.problem.problem import pose
from reassign.planning.solve import outside_bands, solve
from tests.benchmarks.instances import Made, cluster
from tests.snapshots import in_sync

made = cluster(Made(int(sys.argv[2]), int(sys.argv[3])))
traffic = np.rint(1e5 * np.random.default_rng(7).lognormal(0, 1, len(made.sizes))).astype(np.int64)
made = replace(made, traffic=traffic)
folder = Path(sys.argv[1])
snapshots.write(folder, in_sync(made, datetime(2026, 1, 31, tzinfo=UTC)))
back = snapshots.read(folder).cluster
problem = pose(back, PlacementGoal(balance=frozenset(BalanceGoal().by)))
target = solve(problem).target
second = pose(replace(back, replicas=target), PlacementGoal(balance=frozenset(BalanceGoal().by)))
ran = lambda *options: CliRunner().invoke(app, ["plan", "--snapshot", str(folder), *options]).stdout
print(json.dumps({
    "read back": bool((back.traffic == traffic).all()),
    "before": [each.what for each in outside_bands(problem, problem.current)],
    "after": [each.what for each in outside_bands(problem, target)],
    "second plan moves": bool((solve(second).target != target).any()),
    "json": json.loads(ran("--balance", "trafficin,trafficout", "-o", "json")),
    "text": ran("--balance", "disk,trafficin"),
    "loads of a report": list(_loads({by: [1.0] for by in BalanceGoal().by}, 1)),
}))
"""


def test_the_table_begins_with_what_the_kernel_searches_for() -> None:
    assert (RESOURCES[DISK], RESOURCES[REPLICAS], RESOURCES[LEADERS]) == (By.DISK, By.REPLICAS, By.LEADERS)
    assert tuple(COUNTED) == tuple(By)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(PACKAGE, source / "reassign", ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in EDITS.items():
        path = source / "reassign" / name
        for before, after in edits:
            text = path.read_text()
            assert text.count(before) == 1, (name, before)
            path.write_text(text.replace(before, after))
    return source


def ran(source: Path, *arguments: str, **environment: str) -> str:
    path = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_goal_added_in_four_files_is_planned_and_shown(copied: Path, tmp_path: Path) -> None:
    assert len(EDITS) == 4
    # not compiled: that takes longer than so few partitions do without
    said: dict[str, Any] = json.loads(ran(copied, "-c", SCRIPT, str(tmp_path / "s"), "40", "6", NUMBA_DISABLE_JIT="1"))
    assert said["read back"]
    assert {what.partition(" ")[0] for what in said["before"]} == {*By, "TrafficIn", "TrafficOut"}
    assert (said["after"], said["second plan moves"]) == ([], False)
    assert [each["by"] for each in said["json"]["balance"]] == ["TrafficIn", "TrafficOut"]
    assert list(said["json"]["brokers"][0]["after"]) == ["disk", "replicas", "leaders", "trafficin", "trafficout"]
    assert "trafficin before" in said["text"]
    assert "iB/s" in said["text"]
    assert said["loads of a report"] == ["Disk", "Replicas", "Leaders", "TrafficIn", "TrafficOut"]


def test_a_goal_added_in_four_files_is_in_the_resource(copied: Path, tmp_path: Path) -> None:
    ran(copied, "-m", "reassign.api.crd", str(tmp_path))
    written = (tmp_path / "kafka.reassign.dev_reassignmentplans.yaml").read_text()
    assert "- TrafficOut\n" in written
    assert "TrafficIn (bytes produced)" in written
