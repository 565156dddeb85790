"""A run over a fleet: one pass over all snapshots, then the manifests, then the report.

The pass leaves its tables in the work folder. Where they still fit they are read, not made again; so a run that was
killed goes on where it was, and comes to the same bytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic
import pyspark
import yaml
from pyspark.sql import SparkSession

import reassign
from reassign.api.digest import hashed
from reassign.errors import PlanningError, Reason
from reassign.files import rules
from reassign.files.whole import alone_in, put, writing
from reassign.fleet import choose, inventory
from reassign.fleet.choose import Kind, Verdict
from reassign.fleet.emit import Emitted, check_no_links, emit
from reassign.fleet.job import Job
from reassign.fleet.kept import Kept
from reassign.fleet.one_pass import one_pass
from reassign.fleet.outcomes import Row, rows_of
from reassign.fleet.overview import OF_DETAILS, Seen, fleet, state
from reassign.fleet.report import page
from reassign.fleet.report.model import Problem
from reassign.text import listed

LOAD = ("cluster", "brokers", "partitions", "bytes", "skew_bytes", "violations", "bytes_bound")
"""Columns of cluster_load."""
SUMMARY = ("cluster", "problem", "bytes", "bytes_bound")
"""Columns of plans."""


class Result(NamedTuple):
    """The results of a run, as far as it went."""

    clusters: int
    left_out: dict[str, Problem]  # by cluster
    days: dict[str, Problem]  # by the folder of a day that cannot be listed, or is one of tables
    verdicts: Sequence[Verdict]
    loads: list[Row]  # of cluster_load the columns LOAD
    summaries: dict[str, Row]  # by cluster, as `summaries_of` returns them
    emitted: Emitted | None
    notes: Sequence[str] = ()  # of the policy's patterns
    reused: bool = False  # the pass was taken from an earlier run


def run(spark: SparkSession, job: Job, begin: Callable[[], None]) -> Result:
    """Run all stages of a job; `begin` is called as each of them begins.

    Raises PlanningError for what cannot be read, planned or written at all; a broken cluster is left out.
    """
    begin()
    kept = Kept(spark, job.work)
    with kept.alone(), alone_in(job.manifests):
        return _run(spark, job, kept, begin)


def _run(spark: SparkSession, job: Job, kept: Kept, begin: Callable[[], None]) -> Result:
    now = datetime.now(UTC)
    tables = _tables(spark, job, kept, now)
    verdicts = [Verdict(**row) for row in rows_of(tables["verdicts"])]
    quarantine = [verdict for verdict in verdicts if verdict.quarantines]
    quarantined = problems(quarantine)
    days = {name: quarantined.pop(name) for name in [*filter(choose.is_day, quarantined)]}
    summaries = summaries_of(tables["plans"])
    unplanned = {name: row["problem"] for name, row in summaries.items() if row["problem"]}
    failed = any(problem["reason"] == Reason.PLANNING_FAILED for problem in unplanned.values())
    if failed or any(_may_pass(verdict, now) for verdict in verdicts):
        kept.forget()  # another run may find it otherwise
    seen = [Seen(**row, problem=None) for row in rows_of(tables["newest"])]
    seen += [Seen(name, None, None, problem) for name, problem in quarantined.items()]
    matched = {row["cluster"]: row["matched"] for row in rows_of(tables["cluster_load"].select(["cluster", "matched"]))}
    notes = job.policy.unmatched(matched)
    emitted = None
    if job.manifests is not None:
        begin()
        about = {
            "snapshots": choose.digest(rows_of(tables["files"].select(["path", "length", "sha256"]))),
            "policy": job.policy.digest,
            "version": reassign.__version__,
        }
        states = {each.cluster: _entry(each, summaries.get(each.cluster)) for each in seen}
        waves = {name: row["waves"] for name, row in summaries.items() if row["waves"]}
        emitted = emit(job.manifests, _manifests(kept, waves), about, states, hidden=bool(days))
    if job.report is not None:
        begin()
        parts = page.render(fleet(seen, quarantine, tables, kept.parts("details", OF_DETAILS), job.policy, notes))
        with writing(job.report):
            put(job.report, (part.encode() for part in parts))
    loads = [*rows_of(tables["cluster_load"].select(LOAD))]
    if not job.plans:
        assessed = {row["cluster"] for row in loads}
        summaries, unplanned = {}, {name: why for name, why in unplanned.items() if name not in assessed}
    return Result(len(seen), quarantined | unplanned, days, verdicts, loads, summaries, emitted, notes, kept.reused)


def _may_pass(verdict: Verdict, now: datetime) -> bool:
    """Whether another run over the same files may find it otherwise; dates that are to come are in their key."""
    passes = verdict.kind == Kind.FUTURE and not choose.is_later(verdict.date, now)
    return passes or verdict.kind in (Kind.LOST, Kind.NOT_READ)


def _tables(spark: SparkSession, job: Job, kept: Kept, now: datetime) -> dict[str, pa.Table]:
    listing = inventory.take(spark, job.snapshots)
    clusters = {file.cluster for file in listing.files if file.cluster}
    if not any(file.day for file in listing.files):  # a day that cannot be listed may have others
        job.policy.check_patterns(clusters)
    if job.manifests:
        check_no_links(job.manifests, clusters)
    key = hashed([listing.digest, program(), job.policy.digest, choose.later(listing.files, now)])
    return kept.tables(key, partial(one_pass, job, listing, now))


def summaries_of(plans: pa.Table) -> dict[str, Row]:
    """Return by cluster the columns SUMMARY, and how many waves and unmet goals its plan has."""
    counts = {name: pc.list_value_length(plans[name]) for name in ("waves", "unmet")}
    return {row["cluster"]: row for row in rows_of(pa.table({name: plans[name] for name in SUMMARY} | counts))}


def _manifests(kept: Kept, waves: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Return cluster, file name and text of all manifests; raise PlanningError unless each of the `waves` has one.

    All are counted first, since `emit` removes the files of waves that are not there. If a part changes after that, the
    waves of its clusters can be of two plans until the next run, which the error asks for.
    """
    found = Counter(name for part in kept.parts("manifests", ["cluster"]) for name in part["cluster"].to_pylist())
    if found != waves:
        kept.forget()
        raise PlanningError(Reason.SPARK_FAILED, "manifests are missing in the work folder: run it again")
    rows = (row for part in kept.parts("manifests", ["cluster", "name", "text"]) for row in rows_of(part))
    return ((row["cluster"], row["name"], row["text"]) for row in rows)


def problems(quarantine: Iterable[Verdict]) -> dict[str, Problem]:
    """Return why clusters are left out: by cluster the first fault of its newest snapshot."""
    by_cluster: dict[str, Problem] = {}
    for verdict in quarantine:
        by_cluster.setdefault(verdict.cluster, {"reason": verdict.kind, "message": _sentence(verdict)})
    return by_cluster


def _sentence(verdict: Verdict) -> str:
    remedy = choose.REMEDIES.get(verdict.kind, rules.AGAIN)
    if verdict.kind in (Kind.FOLDER_NAME, Kind.LOST):
        return f"{verdict.example}: {remedy}"
    of = f"{verdict.table}: " if verdict.table else ""
    example = listed([verdict.example], verdict.rows)
    return f"the snapshot of {verdict.date} cannot be trusted: {of}{example}; {remedy}"


def _entry(seen: Seen, summary: Row | None) -> Row:
    """Return a cluster's entry in the run manifest."""
    problem = seen.problem or (summary and summary["problem"])
    taken = seen.taken_at.isoformat() if seen.taken_at else None
    unmet = (summary and summary["unmet"]) or 0
    return {"state": state(seen, summary), "snapshot": taken, "problem": problem or None, "unmet": unmet}


def program() -> str:
    """Return a hash of the sources: tables that another version made are made again."""
    folder = Path(reassign.__file__).parent
    files = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.py"))}
    versions = [[library.__name__, library.__version__] for library in (numba, np, pa, pydantic, pyspark, yaml)]
    return hashed(versions + [[name, hashlib.sha256(content).hexdigest()] for name, content in files.items()])
