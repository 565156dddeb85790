"""Which clusters can be planned: the verdict on files, then on the rows of those whose files are whole.

A fault of one cluster does not affect another. All rows are checked in one job; only of a cluster with faults
they are read once more, for the table of what was rejected.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import functions as sf

from reassign.fleet.choose import Chosen, Snapshot, Verdict
from reassign.fleet.rules import FAULTS, matching
from reassign.fleet.tables import Tables, collected, of_clusters, reading
from reassign.text import printable

_TEXTS = [pa.field(name, pa.string(), nullable=False) for name in ("cluster", "date", "table", "kind", "example")]
VERDICTS = pa.schema([*_TEXTS, pa.field("rows", pa.int64()), pa.field("quarantines", pa.bool_())])
SHOWN = ("cluster", "date", "example")
REJECTED = pa.schema([*_TEXTS, pa.field("row", pa.string())])


class Checked(NamedTuple):
    """The usable snapshots of a fleet, and its verdicts; all in the order of clusters."""

    newest: tuple[Snapshot, ...]  # of each cluster that can be planned
    history: tuple[Snapshot, ...]  # older ones of the same clusters
    quarantine: tuple[Verdict, ...]  # why the other clusters are left out
    notes: tuple[Verdict, ...]  # what else is worth knowing


def check(root: str, tables: Tables, chosen: Chosen) -> dict[str, pa.Table]:
    """`verdicts`: rows of VERDICTS, all that is wrong with the snapshots that are `chosen` from the files below the
    root, of which the newest have these `tables`; `rejected`: the rows that quarantine clusters, as REJECTED.

    A PlanningError where the storage fails meanwhile.
    """
    with reading(root):
        by_rows = _verdicts(tables) if chosen.newest else []
    verdicts = [one._asdict() for one in sorted((*chosen.verdicts, *by_rows))]
    left_out = {one.cluster for one in by_rows if one.quarantines}
    return {
        "verdicts": pa.Table.from_pylist(verdicts, VERDICTS),
        "rejected": _rejected(tables, left_out) if left_out else REJECTED.empty_table(),
    }


def checked(chosen: Chosen, verdicts: pa.Table) -> Checked:
    """Return the chosen snapshots that these verdicts leave."""
    rows = sorted(Verdict(**row | {text: printable(row[text]) for text in SHOWN}) for row in verdicts.to_pylist())
    left_out = {one.cluster for one in rows if one.quarantines}
    return Checked(
        tuple(one for one in chosen.newest if one.folder.cluster not in left_out),
        tuple(one for one in chosen.history if one.folder.cluster not in left_out),
        tuple(one for one in rows if one.quarantines),
        tuple(one for one in rows if not one.quarantines),
    )


def _verdicts(tables: Tables) -> list[Verdict]:
    rows = matching(tables).groupBy("cluster", "date", "table", "kind")
    counted = rows.agg(sf.count("*").alias("rows"), sf.min("example").alias("example")).toArrow().to_pylist()
    return [Verdict(**row, quarantines=row["kind"] in FAULTS) for row in counted]


def _rejected(tables: Tables, clusters: Collection[str]) -> pa.Table:
    rows = matching(of_clusters(tables, clusters)).where(sf.col("kind").isin(*sorted(FAULTS)))
    return collected({"rejected": rows.select(*REJECTED.names).distinct()})["rejected"]
