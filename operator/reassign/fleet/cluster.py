"""Makes one row of each snapshot, its outcome (`outcomes`), from one reading of its files.

The row has the faults of the files and what counts in the cluster's history. Of a cluster's newest snapshot it also has
the faults of rows, the loads, the plan or why there is none, and the manifests.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from reassign.errors import PlanningError, Reason
from reassign.files import checks, rules
from reassign.files.rules import Tables
from reassign.files.schema import SCHEMAS
from reassign.files.tables import cluster_of
from reassign.fleet.choose import File, Folder, Kind, Snapshot, choose
from reassign.fleet.emit import rendered
from reassign.fleet.history_rows import COLUMNS, history_rows
from reassign.fleet.loads import assess, of_racks
from reassign.fleet.outcomes import COSTS, Row
from reassign.fleet.policy import FleetPolicy, Terms
from reassign.manifests.objects import without_entries
from reassign.manifests.waves import entries, waves_of
from reassign.planning.plan import make_of
from reassign.planning.problem.assignments import added
from reassign.planning.problem.model import Cluster, PlacementGoal, Plan
from reassign.planning.problem.problem import RESOURCES, PlacementProblem, online_replicas, pose
from reassign.planning.waves.moves import moves_of
from reassign.planning.waves.split import makespan
from reassign.text import cut, printable

ENTRY = json.JSONEncoder(check_circular=False)
"""No entry holds itself; checking that takes a third of the time."""

RowsByKind = dict[str, list[Row]]


def outcome_of(
    folder: Folder, contents: Mapping[str, pa.Buffer], policy: FleetPolicy, newest: bool, unread: Iterable[File] = ()
) -> Row:
    """Return the row of OUTCOMES of a snapshot with these files, by path below the root, and those that are `unread`.

    Of an older snapshot only the columns that history needs are read.
    """
    files, tables = open_files(contents, {} if newest else COLUMNS)
    files += unread
    rows: RowsByKind = {}
    chosen = choose(files).newest if newest else ()  # this snapshot, or none where a file is wrong
    if chosen:
        rows = _of_newest(chosen[0], tables, policy)
    elif not newest and tables.keys() >= {name for name, columns in COLUMNS.items() if columns}:
        try:
            rows = history_rows(tables, None)
        except MemoryError:
            raise  # in a process of its own it may have more
        except Exception as error:  # such as a name that is not text: rows of older snapshots are not checked
            why = f"its history cannot be read ({type(error).__name__}){checks.AGAIN}"
            files = [file._replace(kind=checks.Kind.DAMAGED, problem=why) for file in files]
    return {**folder._asdict(), "files": [row_of(file) for file in files], **rows}


def lost_outcome(folder: Folder, lengths: Mapping[str, int], why: str) -> Row:
    """Return the row of OUTCOMES of a snapshot, with files of these lengths, whose process has ended."""
    problem = f"its process has ended, {why}"
    files = [File(path, length, kind=Kind.LOST, problem=problem) for path, length in sorted(lengths.items())]
    return {**folder._asdict(), "files": [row_of(file) for file in files]}


def _of_newest(snapshot: Snapshot, tables: Tables, policy: FleetPolicy) -> RowsByKind:
    """Check rows, pose the problem, assess, plan, and render manifests, as far as the snapshot allows."""
    name, rows = snapshot.folder.cluster, RowsByKind()
    try:
        rows |= check_rows(tables)
        if any(verdict["quarantines"] for verdict in rows["verdicts"]):
            return rows
        cluster = cluster_of(Path("it"), snapshot.cluster_id, tables)  # errors name no folder: its cluster is known
        terms = policy.terms(name)
        goal = terms.planner_goal()
        rows |= history_rows(tables, cluster.directories)
        try:
            problem = pose(cluster, goal)
        except PlanningError:
            rows |= assess(cluster, goal, None)
            raise
        rows |= assess(cluster, goal, problem)
        limits = terms.waves.max_partitions, terms.max_bytes, terms.rate
        plan, problem = make_of(problem, cluster, goal, *limits)
        bounds = {bound: getattr(plan.certificate, bound) for bound in ("bytes_bound", "moves_bound")}
        rows["cluster_load"][0] |= bounds  # of loads, since also an assessment without plans shows them
        rows |= {
            "manifests": render(name, cluster, plan, terms),
            "plans": [summary(cluster, problem, plan, terms.rate)],
            "planned_load": [planned_load(cluster, goal, problem, plan)],
        }
        return rows
    except PlanningError as error:
        reason, message = error.reason, error.message
    except MemoryError:
        raise  # in a process of its own it may have more
    except Exception as error:  # a bug: the other clusters go on
        traceback.print_exc()  # into Spark's log
        reason, message = Reason.PLANNING_FAILED, f"please report this: {type(error).__name__} in the planner: {error}"
    why = {"reason": reason.value, "message": printable(cut(message))}
    return rows | {"plans": [{"cluster_id": snapshot.cluster_id, "problem": why}]}


# --- open: what is wrong with files by themselves ---


def open_files(
    contents: Mapping[str, pa.Buffer], columns: Mapping[str, Sequence[str]]
) -> tuple[list[File], dict[str, pa.Table]]:
    """Return the files, with their metadata and faults, and the tables of those that are whole.

    Of a table in `columns` only the columns named there are read.
    """
    files, tables = [], {}
    for path, content in sorted(contents.items()):
        file = File(path, content.size, hashlib.sha256(content).hexdigest())
        try:
            parquet = checks.opened(path, pa.BufferReader(content))
            metadata = checks.metadata_of(path, parquet)
            file = file._replace(metadata=metadata)
            tables[file.table] = checks.table(path, file.table, parquet, metadata, columns.get(file.table))
        except checks.UnusableFileError as error:
            file = file._replace(kind=error.kind, problem=error.why)
        files.append(file)
    return files, tables


def row_of(file: File) -> Row:
    row = file._asdict()
    if metadata := row.pop("metadata"):
        row |= {**metadata._asdict(), "rows": [metadata.rows.get(name) for name in SCHEMAS]}
    return row


def file_of(row: Row) -> File:
    """Return the file that `row_of` has made a row of."""
    metadata = None
    if row["cluster_id"] is not None:
        rows = {name: rows for name, rows in zip(SCHEMAS, row["rows"], strict=True) if rows is not None}
        metadata = checks.Metadata(row["cluster_id"], row["taken_at"], rows)
    return File(row["path"], row["length"], row["sha256"], metadata, row["kind"], row["problem"])


# --- check: what is wrong with rows (`files.rules`) ---


def check_rows(tables: Tables) -> RowsByKind:
    """Return a verdict for each table and kind, and the first rows that quarantine."""
    matches = defaultdict[tuple[str, str, bool], list[rules.Match]](list)
    for match in rules.matching(tables):
        matches[match.table, match.kind, match.fault].append(match)
    verdicts, rejected = [], []
    for (table, kind, fault), of_kind in matches.items():
        one = {"table": table, "kind": kind}
        number, example = sum(match.number for match in of_kind), min(match.example for match in of_kind)
        verdicts.append(one | {"rows": number, "example": example, "quarantines": fault})
        distinct = sorted({row for match in of_kind for row in match.rows})
        rejected += [one | {"example": example, "row": row} for example, row in distinct[: rules.MOST_REJECTED]]
    return {"verdicts": verdicts, "rejected": rejected}


# --- what is planned ---


def render(name: str, cluster: Cluster, plan: Plan, terms: Terms) -> list[Row]:
    """Return a plan's manifests; raises PlanningError for what no object can hold."""
    waves = [entries(cluster, plan, those) for those in waves_of(plan)]
    manifests = [without_entries(manifest) for manifest in terms.manifests(name, waves)]
    texts = rendered(manifests, [[ENTRY.encode(entry) for entry in wave] for wave in waves])
    return [{"name": file, "text": text} for file, text in texts.items()]


def summary(cluster: Cluster, problem: PlacementProblem, plan: Plan, rate: int | None) -> Row:
    """Return the row of PLANS."""
    certificate = plan.certificate
    return {
        "cluster_id": cluster.id,
        "balance": [asdict(one) for one in certificate.balance],
        "waves": list(_waves(cluster, problem, plan, rate)),
        **{cost: getattr(certificate, cost) for cost in COSTS},
        "unmet": [{"what": one.what, "nearest": one.nearest} for one in certificate.unmet],
    }


def planned_load(cluster: Cluster, goal: PlacementGoal, problem: PlacementProblem, plan: Plan) -> Row:
    """Return the row of PLANNED_LOAD."""
    loads = {"after": problem.loads(plan.target), "target": problem.target}
    by_resource = {
        when: {by.value: load[row].tolist() for row, by in enumerate(RESOURCES)} for when, load in loads.items()
    }
    return {"racks": list(of_racks(cluster, goal, loads["after"])), **by_resource}


def _waves(cluster: Cluster, problem: PlacementProblem, plan: Plan, rate: int | None) -> Iterator[Row]:
    """Yield for each wave how many partitions change, the bytes copied, and the seconds, where there is a rate."""
    changed = np.flatnonzero(plan.wave >= 0)
    waves = int(plan.wave.max(initial=-1)) + 1
    copied = np.zeros(waves, np.int64)
    adding = added(cluster.replicas[changed], plan.target[changed]).sum(axis=1)
    np.add.at(copied, plan.wave[changed], adding * problem.size[changed])
    seconds: tuple[float | None, ...] = (None,) * waves
    if rate is not None:
        moves = moves_of(cluster.replicas, plan.target, problem.size, online_replicas(cluster))
        seconds = makespan(moves, plan.wave, rate).waves
    partitions = np.bincount(plan.wave[changed], minlength=waves)
    for each in zip(partitions.tolist(), copied.tolist(), seconds, strict=True):
        yield dict(zip(("partitions", "bytes", "seconds"), each, strict=True))
