"""A run over a fleet, stage by stage: check, assess, plan, emit, report.

Each of the first three leaves its tables in a folder of its own, and last a marker that names what they were made from.
A stage whose marker still fits is read, not made again; so a run that was killed goes on where it was, and comes to
the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

import reassign
from reassign.api.digest import hashed
from reassign.fleet.emit import Emitted, emit
from reassign.fleet.plan import plan, summaries_of
from reassign.fleet.policy import Policy
from reassign.fleet.storage import Storage
from reassign.fleet.tables import Folder, read

MARKER = "_MADE_FROM"


class Stage(StrEnum):
    CHECK = "check"
    ASSESS = "assess"
    PLAN = "plan"
    EMIT = "emit"
    REPORT = "report"


class Job(NamedTuple):
    """What to work on, and where to: `snapshots` and `work` are folders of any file system that Spark knows."""

    snapshots: str
    policy: Policy
    work: str
    manifests: Path | None
    report: Path | None


def of(job: Job, last: Stage) -> list[Stage]:
    """The stages of a run."""
    wanted = {Stage.EMIT: job.manifests is not None, Stage.REPORT: job.report is not None}
    return [each for each in list(Stage)[: list(Stage).index(last) + 1] if wanted.get(each, True)]


class Result(NamedTuple):
    """What came of a run, as far as it went."""

    clusters: int
    left_out: dict[str, str]  # why, by cluster
    summaries: dict[str, Any]  # of plans, by cluster
    emitted: Emitted | None = None


def run(spark: SparkSession, job: Job, last: Stage, begin: Callable[[Stage], None]) -> Result:
    """All stages up to the last one; `begin` is called as each of them begins.

    Raises PlanningError for what cannot be read, planned or written at all; a cluster that is no good is left out.
    """
    kept = Kept(spark, job.work)
    begin(Stage.CHECK)
    import glob  # provisional

    folders = [
        Folder(place.split("date=")[1].split("/")[0], place.split("cluster=")[1])
        for place in sorted(glob.glob(f"{job.snapshots}/date=*/cluster=*"))
    ]
    newest = {folder.cluster: folder for folder in folders}
    inputs = hashed([*newest])
    job.policy.check_patterns(newest)
    tables = read(spark, job.snapshots, newest.values())
    result = Result(len(newest), {}, {})
    if last in (Stage.CHECK, Stage.ASSESS):
        return result
    begin(Stage.ASSESS)
    begin(Stage.PLAN)
    sizes = dict.fromkeys(newest, 1000)
    key = hashed([inputs, job.policy.digest, program()])
    planned = kept.stage(Stage.PLAN, key, lambda: {"planned": plan(spark, tables, job.policy, sizes)})["planned"]
    rows = planned.toArrow()
    summaries = summaries_of(rows)
    left_out = {name: each["problem"]["message"] for name, each in summaries.items() if each["problem"]}
    result = Result(len(newest), left_out, summaries)
    if job.manifests is not None:
        begin(Stage.EMIT)
        terms = {name: job.policy.terms(name) for name in newest if name not in left_out}
        states = {name: {"state": "NotPlanned" if name in left_out else "Planned"} for name in newest}
        result = result._replace(emitted=emit(job.manifests, rows, terms, about(inputs, job.policy), states))
    if job.report is not None:
        begin(Stage.REPORT)
    return result


class Kept:
    """The folders of stages, below the work folder."""

    def __init__(self, spark: SparkSession, work: str) -> None:
        self._spark, self._work, self._storage = spark, work.rstrip("/"), Storage(spark)

    def stage(self, name: Stage, key: str, make: Callable[[], Mapping[str, DataFrame]]) -> dict[str, DataFrame]:
        """The tables of a stage, made anew unless they were made from the same (`key`)."""
        place = f"{self._work}/{name}"
        marker = f"{place}/{MARKER}"
        made_from = self._storage.read(marker)
        names = made_from.split()[1:] if made_from and made_from.split()[0] == key else []
        if not names:
            self._storage.remove(place)
            tables = make()
            for table, rows in tables.items():
                rows.write.parquet(f"{place}/{table}")
            names = list(tables)
            self._storage.write(marker, " ".join((key, *names)))
        return {table: self._spark.read.parquet(f"{place}/{table}") for table in names}


@cache
def program() -> str:
    """A hash of this package's sources: what another version has made is made again."""
    folder = Path(reassign.__file__).parent
    files = sorted(file for part in ("api", "files", "fleet", "planning") for file in (folder / part).rglob("*.py"))
    return hashed([[str(file.relative_to(folder)), hashlib.sha256(file.read_bytes()).hexdigest()] for file in files])


def about(inputs: str, policy: Policy) -> dict[str, str]:
    """What the run manifest says of a run."""
    return {"snapshots": inputs, "policy": policy.digest, "version": reassign.__version__}
