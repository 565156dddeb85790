"""A run over a fleet, stage by stage: check, assess, plan, emit, report.

Each of the first three leaves its tables in a folder of its own, and last a marker that names what they were made from.
A stage whose marker still fits is read, not made again; so a run that was killed goes on where it was, and comes to
the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import reassign
from reassign.api.digest import hashed
from reassign.errors import Reason
from reassign.files import checks
from reassign.fleet import inventory, quality
from reassign.fleet.assess import assess
from reassign.fleet.assess.terms import terms_of
from reassign.fleet.choose import Kind, Verdict, choose, digest
from reassign.fleet.emit import Emitted, emit, write, writing
from reassign.fleet.overview import Seen, fleet, state
from reassign.fleet.plan import PLANNED, plan, summaries_of
from reassign.fleet.policy import Policy
from reassign.fleet.report import page
from reassign.fleet.report.model import Problem
from reassign.fleet.storage import Storage, spark_errors_as
from reassign.fleet.tables import Tables, collected, gathered, of_clusters, read, reading
from reassign.text import listed

MARKER = "_MADE_FROM"
PASSING = (Reason.INVALID_SNAPSHOT, Reason.PLANNING_FAILED)
"""Why a cluster is not planned although its snapshot is good: another run may find it otherwise."""


class Stage(StrEnum):
    CHECK = "check"
    ASSESS = "assess"
    PLAN = "plan"
    EMIT = "emit"
    REPORT = "report"


class Job(NamedTuple):
    """The input and output of a run: `snapshots` and `work` are folders of any file system that Spark knows."""

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
    """The results of a run, as far as it went."""

    clusters: int
    left_out: dict[str, Problem]  # by cluster
    verdicts: tuple[Verdict, ...]
    loads: list[dict[str, Any]]  # rows of cluster_load
    summaries: dict[str, Any]  # of plans, by cluster
    emitted: Emitted | None


def run(spark: SparkSession, job: Job, last: Stage, begin: Callable[[Stage], None]) -> Result:
    """Run all stages up to the last one; `begin` is called as each of them begins.

    Raises PlanningError for what cannot be read, planned or written at all; a broken cluster is left out.
    """
    kept, stages = Kept(spark, job.work), of(job, last)
    begin(Stage.CHECK)
    files = inventory.take(spark, job.snapshots)
    chosen = choose(files)
    inputs = digest(files)
    job.policy.check_patterns({file.cluster for file in files if file.cluster})
    key = hashed([inputs, program()])

    @cache
    def newest() -> Tables:
        tables = read(spark, job.snapshots, [each.folder for each in chosen.newest])
        with reading(job.snapshots):
            brokers, log_dirs = gathered(tables.brokers, tables.log_dirs)
        return tables._replace(brokers=brokers, log_dirs=log_dirs)

    results = kept.stage(Stage.CHECK, key, lambda: quality.check(job.snapshots, newest(), chosen))
    checked = quality.checked(chosen, results["verdicts"])
    quarantined = problems(checked.quarantine)
    good = checked.newest
    names = [each.folder.cluster for each in good]

    begin(Stage.ASSESS)
    key = hashed([key, job.policy.digest])

    def assessed() -> dict[str, pa.Table]:
        now, older = of_clusters(newest(), names), checked.history
        history = read(spark, job.snapshots, [each.folder for each in (*good, *older)]) if older else now
        goals = {name: job.policy.terms(name).planner_goal() for name in names}
        return collected(assess(now, history, terms_of(spark, goals))._asdict())

    def planned() -> dict[str, pa.Table]:
        sizes = {each.folder.cluster: each.rows["partitions"] for each in good}
        return {"planned": plan(spark, of_clusters(newest(), names), job.policy, sizes).toArrow()}

    with ThreadPoolExecutor(1) as beside:  # Spark's cores plan while its driver thinks of how to assess
        plans = beside.submit(kept.stage, Stage.PLAN, key, planned) if Stage.PLAN in stages else None
        tables = kept.stage(Stage.ASSESS, key, assessed)
        if plans:
            begin(Stage.PLAN)
        rows = plans.result()["planned"] if plans else PLANNED.empty_table()
    lists = {name: table.to_pylist() for name, table in tables.items()}
    summaries = summaries_of(rows)
    if any(each["problem"] and each["problem"]["reason"] in PASSING for each in summaries.values()):
        kept.forget(Stage.ASSESS)
        kept.forget(Stage.PLAN)
    left_out = quarantined | {name: each["problem"] for name, each in summaries.items() if each["problem"]}
    seen = [Seen(each.folder.cluster, each.cluster_id, each.taken_at, None) for each in good]
    seen += [Seen(name, None, None, problem) for name, problem in quarantined.items()]
    emitted = None
    if job.manifests is not None and Stage.EMIT in stages:
        begin(Stage.EMIT)
        manifests = {name: each["manifests"] for name, each in summaries.items() if not each["problem"]}
        states = {each.cluster: _entry(each, summaries.get(each.cluster)) for each in seen}
        emitted = emit(job.manifests, rows, manifests, about(inputs, job.policy), states)
    if job.report is not None and Stage.REPORT in stages:
        begin(Stage.REPORT)
        quarantine = [each._asdict() for each in checked.quarantine]
        text = page.render(fleet(seen, quarantine, lists, summaries, job.policy))
        with writing(job.report):
            write(job.report, text.encode())
    return Result(len(seen), left_out, (*checked.quarantine, *checked.notes), lists["cluster_load"], summaries, emitted)


def problems(quarantine: Iterable[Verdict]) -> dict[str, Problem]:
    """Return why clusters are left out: by cluster the first fault of its newest snapshot."""
    by_cluster: dict[str, Problem] = {}
    for verdict in quarantine:
        by_cluster.setdefault(verdict.cluster, {"reason": verdict.kind, "message": _sentence(verdict)})
    return by_cluster


def _sentence(verdict: Verdict) -> str:
    if verdict.kind == Kind.FOLDER_NAME:
        return f"{verdict.example}: rename it"
    of = f"{verdict.table}: " if verdict.table else ""
    example = listed([verdict.example.removesuffix(checks.AGAIN)], verdict.rows)
    return f"the snapshot of {verdict.date} cannot be trusted: {of}{example}; take it again"


def _entry(seen: Seen, summary: Any) -> dict[str, Any]:
    """Return a cluster's entry in the run manifest."""
    problem = seen.problem or (summary and summary["problem"])
    taken = seen.taken_at.isoformat() if seen.taken_at else None
    return {"state": state(seen, summary), "snapshot": taken, "problem": problem or None}


class Kept:
    """The tables of stages, in a folder for each of them below the work folder."""

    def __init__(self, spark: SparkSession, work: str) -> None:
        self._work, self._storage = work.rstrip("/"), Storage(spark)

    def stage(self, name: Stage, key: str, make: Callable[[], Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
        """The tables of a stage, made anew unless they are there, made from the same (`key`)."""
        with self._usable():
            if kept := self._kept(name, key):
                return kept
            self.forget(name)  # first: tables that are written anew must not pass for whole
        tables = make()
        with self._usable():
            for table, rows in tables.items():
                content = pa.BufferOutputStream()
                pq.write_table(rows, content, compression="zstd")
                self._storage.write(self._file(name, table), content.getvalue().to_pybytes())
            self._storage.write(self._marker(name), " ".join((key, *tables)).encode())
        return dict(tables)

    def forget(self, name: Stage) -> None:
        """Have a stage made anew by the next run."""
        self._storage.remove(self._marker(name))

    def _kept(self, name: Stage, key: str) -> dict[str, pa.Table] | None:
        """None where there is no such stage, or what is there is damaged."""
        try:
            made_from, *tables = (self._storage.read(self._marker(name)) or b"").decode().split() or [""]
            if made_from != key:
                return None
            files = {table: self._storage.read(self._file(name, table)) for table in tables}
            return {table: pq.read_table(pa.BufferReader(content or b"")) for table, content in files.items()}
        except (UnicodeDecodeError, pa.ArrowInvalid, Py4JJavaError):
            return None

    def _marker(self, name: Stage) -> str:
        return f"{self._work}/{name}/{MARKER}"

    def _file(self, name: Stage, table: str) -> str:
        return f"{self._work}/{name}/{table}.parquet"

    def _usable(self) -> AbstractContextManager[None]:
        todo = "fix that, or name another one, and run it again: it goes on where it was"
        return spark_errors_as(Reason.CANNOT_BE_WRITTEN, f"the work folder {self._work} cannot be used", todo)


PARTS = ("api", "core", "files", "fleet", "manifests", "planning")


@cache
def program() -> str:
    """Return a hash of the sources that plan: what another version of them has made is made again."""
    folder = Path(reassign.__file__).parent
    files = sorted(file for part in PARTS for file in (folder / part).rglob("*.py"))
    versions = [[library.__name__, library.__version__] for library in (numba, np, pa)]
    return hashed(
        versions + [[str(file.relative_to(folder)), hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]
    )


def about(inputs: str, policy: Policy) -> dict[str, str]:
    """Return the run's entry in the run manifest."""
    return {"snapshots": inputs, "policy": policy.digest, "version": reassign.__version__}
