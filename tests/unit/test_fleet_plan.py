"""What a worker makes of one cluster's rows: whatever is wrong with it is a row about it, and no exception."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reassign.files import snapshots
from reassign.fleet import plan
from reassign.fleet.policy import Policy, parse
from reassign.planning.problem.model import Cluster
from tests.benchmarks.instances import Made, cluster

TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)


def rows_of(folder: Path, made: Cluster, taken_at: datetime = TAKEN) -> pa.Table:
    """As a worker gets them: of all tables one below the other, in whatever order."""
    snapshots.write(folder, snapshots.in_sync(made, taken_at))
    tables = []
    for name in plan.INPUT:
        rows = pq.read_table(folder / f"{name}.parquet").replace_schema_metadata(None)
        for column, value in (("table", name), ("cluster", "main")):
            rows = rows.append_column(column, pa.array([value] * len(rows), pa.string()))
        tables.append(rows.take(list(range(len(rows)))[::-1]))
    return pa.concat_tables(tables, promote_options="default")


def problem_of(rows: pa.Table, policy: Policy) -> Any:
    [about] = plan.plan_rows(rows, policy).to_pylist()
    return json.loads(about["summary"])["problem"]


def test_a_plan_that_no_object_can_hold_leaves_out_its_cluster(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "s", cluster(Made(17 * 30, 18, racks=(), replication_factor=17)))
    problem = problem_of(rows, parse("defaults: {goal: {drainBrokers: [18]}}", ""))
    assert problem["reason"] == "InvalidGoal"
    assert "partitions.0" in problem["message"]


def test_rows_of_two_snapshots_are_not_planned(tmp_path: Path) -> None:
    made = cluster(Made(90, 6))
    rows = [rows_of(tmp_path / str(n), made, TAKEN + timedelta(seconds=n)) for n in range(2)]
    mixed = pa.concat_tables([rows[0], rows[1].slice(0, 1)])
    assert problem_of(mixed, Policy())["reason"] == "InvalidSnapshot"


def test_a_mistake_of_the_planner_is_said_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise IndexError("7 of 3")

    monkeypatch.setattr(plan, "make_of", fail)
    assert problem_of(rows_of(tmp_path / "s", cluster(Made(90, 6))), Policy()) == {
        "reason": "PlanningFailed",
        "message": "the planner has failed (IndexError: 7 of 3); please report it",
    }
