"""What is said of snapshots, as Spark has it, without files that it has to read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from reassign.files.snapshots import place, write
from reassign.files.tables import Snapshot
from reassign.fleet import choose
from reassign.fleet.history import history
from tests.fleet.judged import ask


def histories(
    spark: SparkSession, root: Path, clusters: Iterable[tuple[str, tuple[Snapshot, ...]]]
) -> dict[str, pa.Table]:
    """What the snapshots of clusters tell, of each the newest first."""
    rows, counted = [], list[choose.Snapshot]()
    for name, snapshots in clusters:
        for age, snapshot in enumerate(snapshots):
            folder = place(root, name, snapshot.taken_at)
            write(folder, snapshot)
            at = choose.Folder(folder.parent.name.removeprefix("date="), name)
            rows.append(ask(root, at, newest=not age))
            counted.append(choose.Snapshot(at, snapshot.cluster.id, snapshot.taken_at, {}))
    outcomes = pa.concat_tables(rows).combine_chunks()  # of several chunks Spark takes the first one alone
    return history(spark.createDataFrame(outcomes), counted)
