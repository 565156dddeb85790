"""What a run makes of the tables of its pass, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reassign.fleet import stages
from reassign.fleet.choose import Verdict
from reassign.fleet.job import Job
from reassign.fleet.one_pass import NEWEST
from reassign.fleet.outcomes import schema_of, table_of
from reassign.fleet.policy import FleetPolicy

TODAY = datetime.now(UTC).date().isoformat()
CLOSED = Verdict("date=2026-01-30/", "2026-01-30", "", "FileNotRead", 1, "it cannot be read", True)


class Kept:
    """A work folder that is asked for no table of executors."""

    reused = False

    def __init__(self) -> None:
        self.forgotten = False

    def parts(self, table: str, columns: list[str]) -> list[pa.Table]:
        return []

    def forget(self) -> None:
        self.forgotten = True


def run(verdict: Verdict, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[stages.Result, bool]:
    """The result of a run with one cluster and this verdict, and whether the next one makes its tables anew."""
    tables = {kind: schema_of(kind).empty_table() for kind in ("files", "cluster_load", "plans")}
    tables["verdicts"] = table_of([verdict._asdict()], schema_of("verdicts"))
    tables["newest"] = table_of([{"cluster": "main", "cluster_id": "id", "taken_at": datetime.now(UTC)}], NEWEST)
    monkeypatch.setattr(stages, "_tables", lambda *_: tables)
    kept: Any = Kept()
    spark: Any = None
    result = stages._run(spark, Job("snapshots", FleetPolicy(), "work", folder), kept, lambda: None)
    return result, kept.forgotten


def test_a_day_that_cannot_be_listed_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wave = tmp_path / "clusters" / "hidden" / "wave-1.yaml"
    wave.parent.mkdir(parents=True)
    wave.write_text("")
    result, _ = run(CLOSED, tmp_path, monkeypatch)
    assert (result.clusters, result.left_out.keys(), result.days.keys()) == (1, set(), {"date=2026-01-30/"})
    assert json.loads((tmp_path / "run.json").read_text())["clusters"].keys() == {"main"}
    assert wave.exists()


@pytest.mark.parametrize(
    ("kind", "date", "anew"),
    [
        ("FutureSnapshot", "2362-01-31", False),
        ("FutureSnapshot", TODAY, True),
        ("FileNotRead", "2026-01-30", True),
        ("DamagedPage", "2026-01-30", False),
    ],
)
def test_only_what_may_pass_makes_the_next_run_read_all_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, date: str, anew: bool
) -> None:
    _, forgotten = run(Verdict("other", date, "", kind, 1, "such as", False), tmp_path, monkeypatch)
    assert forgotten is anew
