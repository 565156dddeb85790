"""Which clusters can be planned: the verdict on files, then on the rows of those whose files are whole.

What is wrong with one cluster says nothing of another. All rows are looked at in one job; only of a cluster with faults
they are read once more, for the table of what was rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from reassign.fleet.choose import Chosen, Snapshot, Verdict
from reassign.fleet.rules import FAULTS, found
from reassign.fleet.storage import told
from reassign.fleet.tables import collected, read

_TEXTS = [pa.field(name, pa.string(), nullable=False) for name in ("cluster", "date", "table", "kind", "example")]
VERDICTS = pa.schema([*_TEXTS, pa.field("rows", pa.int64()), pa.field("quarantines", pa.bool_())])
REJECTED = pa.schema([*_TEXTS, pa.field("row", pa.string())])


class Checked(NamedTuple):
    """What a fleet's snapshots are good for. All in the order of clusters."""

    newest: tuple[Snapshot, ...]  # of each cluster that can be planned
    history: tuple[Snapshot, ...]  # older ones of the same clusters
    quarantine: tuple[Verdict, ...]  # why the other clusters are left out
    notes: tuple[Verdict, ...]  # what else is worth knowing


def check(spark: SparkSession, root: str, chosen: Chosen) -> dict[str, pa.Table]:
    """`verdicts`: rows of VERDICTS, all that is wrong with the snapshots that are `chosen` from the files below the
    root; `rejected`: the rows that quarantine clusters, as REJECTED.

    A PlanningError where the storage fails meanwhile.
    """
    by_rows = _verdicts(spark, root, chosen.newest)
    left_out = {one.cluster for one in by_rows if one.quarantines}
    return {
        "verdicts": pa.Table.from_pylist([one._asdict() for one in sorted((*chosen.verdicts, *by_rows))], VERDICTS),
        "rejected": _rejected(spark, root, [one for one in chosen.newest if one.folder.cluster in left_out]),
    }


def checked(chosen: Chosen, verdicts: pa.Table) -> Checked:
    """What is left of the chosen ones by these verdicts."""
    rows = sorted(Verdict(**row | {"example": _printable(row["example"])}) for row in verdicts.to_pylist())
    left_out = {one.cluster for one in rows if one.quarantines}
    return Checked(
        tuple(one for one in chosen.newest if one.folder.cluster not in left_out),
        tuple(one for one in chosen.history if one.folder.cluster not in left_out),
        tuple(one for one in rows if one.quarantines),
        tuple(one for one in rows if not one.quarantines),
    )


def _printable(text: str) -> str:
    """Examples have names in them that anybody has given, and go to terminals."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _verdicts(spark: SparkSession, root: str, snapshots: Iterable[Snapshot]) -> list[Verdict]:
    folders = [one.folder for one in snapshots]
    if not folders:
        return []
    with told(f"the snapshots below {root} cannot be read", "look at their storage, and run it again"):
        rows = found(read(spark, root, folders)).groupBy("cluster", "date", "table", "kind")
        counted = rows.agg(sf.count("*").alias("rows"), sf.min("example").alias("example")).toArrow().to_pylist()
    return [Verdict(**row, quarantines=row["kind"] in FAULTS) for row in counted]


def _rejected(spark: SparkSession, root: str, snapshots: Iterable[Snapshot]) -> pa.Table:
    folders = [one.folder for one in snapshots]
    if not folders:
        return REJECTED.empty_table()
    rows = found(read(spark, root, folders)).where(sf.col("kind").isin(*sorted(FAULTS)))
    return collected({"rejected": rows.select(*REJECTED.names).distinct()})["rejected"]
