"""Snapshots as the tables of a fleet, without a folder for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from reassign.files.schema import SCHEMAS
from reassign.files.snapshots import write
from reassign.files.tables import Snapshot
from reassign.fleet.tables import Tables


def tables_of(spark: SparkSession, folder: Path, snapshots: Iterable[tuple[str, Snapshot]]) -> Tables:
    """The tables of these snapshots, each of the cluster that is named beside it."""
    found: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
    for number, (cluster, snapshot) in enumerate(snapshots):
        write(folder / str(number), snapshot)
        for name, tables in found.items():
            table = pq.read_table(folder / str(number) / f"{name}.parquet").replace_schema_metadata(None)
            rows = len(table)
            date = pa.repeat(pa.scalar(str(snapshot.taken_at.date())), rows)
            tables.append(
                table.append_column("date", date).append_column("cluster", pa.repeat(pa.scalar(cluster), rows))
            )
    for name, tables in found.items():
        pq.write_table(pa.concat_tables(tables), folder / f"{name}.parquet")
    return Tables(**{name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in found})
