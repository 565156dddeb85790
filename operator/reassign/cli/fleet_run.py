"""Runs the stages of a fleet, and shows their progress and results."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

from rich.console import JustifyMethod, RenderableType
from rich.table import Table

from reassign.cli import output as out
from reassign.errors import Reason, ReassignError
from reassign.files.whole import check_writable, writing
from reassign.fleet.emit import check_tree
from reassign.fleet.job import Job, not_there
from reassign.fleet.policy import FleetPolicy, parse
from reassign.text import amount, counted, source

if TYPE_CHECKING:
    from reassign.fleet.stages import Result

SHOWN = 20
"""Clusters shown with a line each; the report has all of them."""
PAGE = b"<!doctype html>"
"""The beginning of a report: no other file is replaced by one."""
FILE_SYSTEM_FROM = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT")
"""Environment variables whose settings may have a path without a scheme be of another file system."""
NAME_WIDTH = 60
"""Of clusters' names, which may have 253 characters."""


def run(
    snapshots: str,
    work: str,
    policy: Path | None,
    master: str | None,
    manifests: Path | None,
    report: Path | None,
    plans: bool,
) -> bool:
    """Run all stages that these options want; return whether no cluster, and no day, was left out."""
    page = report and _replaceable(report)
    if page:
        check_writable(page.parent, "a report")
    if manifests:
        check_tree(manifests)
    wanted = parse(out.read(policy), source(policy)) if policy else FleetPolicy()
    _check_there(snapshots)
    job = Job(snapshots, wanted, work, manifests, page, plans)
    started = _imported("spark.session").started
    undisturbed = partial(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
    with (
        ThreadPoolExecutor(1, initializer=undisturbed) as other,
        out.progress("starting Spark", *job.stages) as next_step,
    ):
        # meanwhile; a Ctrl-C is for the main thread, which may hold it back
        stages = other.submit(_imported, "fleet.stages")
        with started(master) as spark:
            result: Result = stages.result().run(spark, job, next_step)
    left_out = result.left_out | result.days
    for name, problem in sorted(left_out.items()):
        out.say(f"left out: {name}: {problem['message']} ({problem['reason']})")
    for cluster in result.emitted.dropped if result.emitted else ():
        out.say(f"removed: {cluster}: its manifests, since it has no snapshot any more")
    for note in result.notes:
        out.say(f"note: {note}")
    out.write_picture(_parts(result, work, manifests, report))
    return not left_out


def _check_there(snapshots: str) -> None:
    """Raise PlanningError for a folder that is not there, as far as it is of this machine whatever Spark is told."""
    scheme, _, path = snapshots.rpartition(":")
    configured = any(map(os.environ.get, FILE_SYSTEM_FROM))
    if (scheme == "file" or not (scheme or configured)) and not Path(path).exists():
        raise not_there(snapshots)


def _replaceable(report: Path) -> Path:
    """Return the place of a report, where links lead to; raises ReassignError for one that no file may replace."""
    what = ""
    with writing(report):
        with suppress(FileNotFoundError):
            mode = report.stat().st_mode
            if S_ISDIR(mode):
                what = "a folder"
            elif not S_ISREG(mode):
                what = "a device or a pipe"
            elif _beginning(report) not in (b"", PAGE):
                what = "there, and is no report"
        place = report.resolve()
    if what:
        raise ReassignError(Reason.CANNOT_BE_WRITTEN, f"{report} is {what}: name another file for the report")
    return place


def _beginning(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(len(PAGE))


def _imported(module: str) -> Any:
    try:
        return import_module(f"reassign.{module}")
    except ImportError as error:
        why = f"there is no {error.name} here, which fleets need: install it, '.[cli,fleet]'"
        raise ReassignError(Reason.SPARK_FAILED, why) from None


def _parts(result: Result, work: str, manifests: Path | None, report: Path | None) -> Iterator[RenderableType]:
    """Return the checks' results, the clusters in most need, the plans, and the files that were written."""
    if result.verdicts:
        yield _verdicts(result)
    yield _clusters(result)
    lines = [f"{counted(result.clusters, 'cluster')}, {len(result.left_out)} of them left out"]
    plans = [each for each in result.summaries.values() if not each["problem"]]
    if plans:
        copied, bound, waves = (
            sum(each["bytes"] for each in plans),
            sum(each["bytes_bound"] for each in plans),
            sum(each["waves"] for each in plans),
        )
        lines.append(
            f"{counted(len(plans), 'plan')} in {counted(waves, 'wave')}, with {amount(copied)} to copy; "
            f"any plans for these goals copy {amount(bound)} or more"
        )
        if partly := sum(bool(each["unmet"]) for each in plans):
            lines.append(f"{partly} of them can reach only a part of the goal, as the report says")
    if result.emitted:
        written, unchanged, removed, _ = result.emitted
        lines.append(f"{manifests}: {written} files written, {unchanged} unchanged, {removed} removed")
    if report:
        lines.append(f"{report}: the report")
    if result.reused:
        lines.append(f"{work}: as the run before left it, since snapshots, policy and program are the same")
    yield "\n".join(lines)


def _verdicts(result: Result) -> RenderableType:
    table = _table("SNAPSHOTS: WHAT IS WRONG", "clusters", "rows", "left out", "such as")
    by_kind = sorted(result.verdicts, key=lambda each: (not each.quarantines, each.kind))
    for (left_out, kind), group in groupby(by_kind, key=lambda each: (each.quarantines, each.kind)):
        verdicts = list(group)
        clusters, rows = len({each.cluster for each in verdicts}), sum(each.rows for each in verdicts)
        such = f"{verdicts[0].cluster}, {verdicts[0].date}: {verdicts[0].example}"
        table.add_row(kind, str(clusters), str(rows), "yes" if left_out else "no", such)
    return table


def _clusters(result: Result) -> RenderableType:
    head = f"CLUSTER (the {SHOWN} least spread)" if len(result.loads) > SHOWN else "CLUSTER"
    table = _table(head, "brokers", "partitions", "bytes", "fullest broker", "not spread", "to copy at least")
    worst = sorted(
        result.loads, key=lambda row: (-(row["violations"] or 0), -(row["bytes_bound"] or 0), row["cluster"])
    )
    for row in worst[:SHOWN]:
        fullest = f"{row['skew_bytes'] * 100:.0f} % of the mean" if row["skew_bytes"] else ""
        counts = [str(row["brokers"]), str(row["partitions"]), _or_unknown(row["bytes"], amount), fullest]
        counts += [_or_unknown(row["violations"], str), _or_unknown(row["bytes_bound"], amount)]
        table.add_row(row["cluster"], *counts)
    return table


def _or_unknown(value: int | None, write: Callable[[int], str]) -> str:
    """Write a value; it is unknown where no plan can be made, as with unreadable racks."""
    return "unknown" if value is None else write(value)


def _table(*columns: str) -> Table:
    """Return an empty table; words that have no room beside the numbers go on in the next line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        words = i == 0 or column == "such as"
        width = NAME_WIDTH if i == 0 else None
        justify: JustifyMethod = "left" if words else "right"
        table.add_column(column, justify=justify, no_wrap=not words, max_width=width, overflow="fold")
    return table
