"""A rule of the planner stands in one place: what it says counts for the operator, the command line and a fleet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from reassign.controller.plans.job import plan_of
from reassign.files import snapshots
from reassign.fleet import cluster as of_cluster
from reassign.fleet.choose import Folder
from reassign.fleet.outcomes import batch_of, of_kind
from reassign.fleet.policy import FleetPolicy
from reassign.planning.problem import problem
from reassign.planning.problem.model import Bools, Bytes, Cluster
from tests.benchmarks.instances import Made, cluster
from tests.snapshots import in_sync
from tests.unit.cli import TAKEN, run
from tests.unit.planning_job import job

MADE = cluster(Made(300, 6, racks=(3,)))
Moves = dict[tuple[str, int], list[int]]
"""Where replicas go, by topic and partition."""


def by_operator(_: Path) -> Moves:
    goal = {"balance": {"by": ["Disk", "Replicas", "Leaders"]}}
    return _of_specs(plan_of(job(goal=goal, template={}), MADE).manifests)


def by_command_line(root: Path) -> Moves:
    said = json.loads(run("plan", "--snapshot", root, "--balance", "disk,replicas,leaders", "-o", "json").out)
    return {(each["topic"], each["partition"]): each["to"] for each in said["partitions"]}


def by_fleet(root: Path) -> Moves:
    return _of_specs(yaml.safe_load(row["text"]) for row in of_kind(_outcome(root), "manifests").to_pylist())


def _of_specs(manifests: Iterable[Any]) -> Moves:
    entries = (entry for manifest in manifests for entry in manifest["spec"]["partitions"])
    return {(entry["topic"], entry["partition"]): entry["replicas"] for entry in entries}


def _outcome(root: Path) -> pa.Table:
    contents = {f"date={TAKEN:%Y-%m-%d}/cluster=main/{f.name}": pa.py_buffer(f.read_bytes()) for f in root.iterdir()}
    outcome = of_cluster.outcome_of(Folder(f"{TAKEN:%Y-%m-%d}", "main"), contents, FleetPolicy(), newest=True)
    return pa.Table.from_batches([batch_of([outcome])])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    snapshots.write(tmp_path / "s", in_sync(MADE, TAKEN))
    return tmp_path / "s"


WAYS: tuple[Callable[[Path], Moves], ...] = (by_operator, by_command_line, by_fleet)


def test_another_weight_of_a_broker_is_followed_wherever_it_is_planned(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [before] = _distinct(way(root) for way in WAYS)
    share = of_kind(_outcome(root), "broker_load").to_pylist()[0]["share_bytes"]
    weights = problem.weights

    def heavier(cluster: Cluster, allowed: Bools) -> Bytes:
        found = weights(cluster, allowed)
        found[0] *= 3
        return found

    monkeypatch.setattr(problem, "weights", heavier)
    [after] = _distinct(way(root) for way in WAYS)
    assert after != before
    on_first = [sum(1 in replicas for replicas in moves.values()) for moves in (before, after)]
    assert on_first[1] > on_first[0] + 20
    assert of_kind(_outcome(root), "broker_load").to_pylist()[0]["share_bytes"] < share / 1.4


def _distinct(plans: Iterable[Moves]) -> list[Moves]:
    found: list[Moves] = []
    for plan in plans:
        if plan not in found:
            found.append(plan)
    return found
