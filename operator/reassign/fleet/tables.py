"""The tables of many snapshots, one DataFrame each, as `files.schema` has them, with the folders they came from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructType

from reassign.errors import Reason
from reassign.files.schema import SCHEMAS
from reassign.fleet.storage import spark_errors_as

FOLDERS = ("date", "cluster")
"""Of a snapshot, below the root: `date=2026-01-31/cluster=main`."""


class Folder(NamedTuple):
    """The folder of a snapshot below the root."""

    date: str
    cluster: str

    def path(self, root: str) -> str:
        return f"{root.rstrip('/')}/date={self.date}/cluster={self.cluster}"


class Tables(NamedTuple):
    """Rows of any number of snapshots; each has the columns `date` and `cluster` beside those of its schema."""

    brokers: DataFrame
    log_dirs: DataFrame
    configs: DataFrame
    partitions: DataFrame


def spark_schema(name: str) -> StructType:
    """Return a table's schema in Spark's types. Required columns may be null, so that a check can report it."""
    schema = from_arrow_schema(SCHEMAS[name])
    for field in schema.fields:
        field.nullable = True
    for folder in FOLDERS:
        schema.add(folder, StringType(), nullable=False)
    return schema


def reading(root: str) -> AbstractContextManager[None]:
    """Raise PlanningError where a snapshot disappears meanwhile, or its storage fails."""
    what = f"the snapshots below {root} cannot be read any more"
    return spark_errors_as(Reason.SPARK_FAILED, what, "check their storage, and run it again: it goes on where it was")


def read(spark: SparkSession, root: str, folders: Iterable[Folder]) -> Tables:
    """The tables of these snapshots; their files must be whole. A PlanningError where they are gone."""
    places = [folder.path(root) for folder in folders]

    def table(name: str) -> DataFrame:
        if not places:
            return spark.createDataFrame([], spark_schema(name))
        reader = spark.read.schema(spark_schema(name)).option("basePath", root)
        return reader.parquet(*(f"{place}/{name}.parquet" for place in places))

    with reading(root):
        return Tables(**{name: table(name) for name in Tables._fields})


def of_clusters(tables: Tables, clusters: Collection[str]) -> Tables:
    """Return the rows of these clusters; the files of others are not opened."""
    return Tables(*(rows.where(rows["cluster"].isin(*clusters)) for rows in tables))


def gathered(*tables: DataFrame) -> list[DataFrame]:
    """The same rows, held by the driver: what is made of them then is not made of files, each time anew.

    For what is little beside partitions.
    """
    found = collected({str(index): table for index, table in enumerate(tables)})
    return [table.sparkSession.createDataFrame(rows) for table, rows in zip(tables, found.values(), strict=True)]


def collected(tables: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of several tables that are made from the same ones, sorted by their plain columns from the first on.

    At once: while Spark thinks of how to make one, its cores make another.
    """

    def rows(table: DataFrame) -> pa.Table:
        found = table.toArrow()
        plain = [field.name for field in found.schema if not pa.types.is_nested(field.type)]
        return found.sort_by([(name, "ascending") for name in plain])

    with ThreadPoolExecutor(len(tables)) as pool:
        return dict(zip(tables, pool.map(rows, tables.values()), strict=True))
