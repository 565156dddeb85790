"""The tables of many snapshots, one DataFrame each, as `files.schema` has them, with the folders they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructType

from reassign.files.schema import SCHEMAS

FOLDERS = ("date", "cluster")
"""Of a snapshot, below the root: `date=2026-01-31/cluster=main`."""


class Folder(NamedTuple):
    """Where a snapshot lies, below the root."""

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
    """Of one of the tables, in Spark's types; columns that have to be there may be null, or a check could not tell."""
    schema = from_arrow_schema(SCHEMAS[name])
    for field in schema.fields:
        field.nullable = True
    for folder in FOLDERS:
        schema.add(folder, StringType(), nullable=False)
    return schema


def read(spark: SparkSession, root: str, folders: Iterable[Folder]) -> Tables:
    """The tables of these snapshots; their files must be whole."""
    places = [folder.path(root) for folder in folders]

    def table(name: str) -> DataFrame:
        if not places:
            return spark.createDataFrame([], spark_schema(name))
        reader = spark.read.schema(spark_schema(name)).option("basePath", root)
        return reader.parquet(*(f"{place}/{name}.parquet" for place in places))

    return Tables(**{name: table(name) for name in Tables._fields})


def collected(tables: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of several tables that are made from the same ones, sorted by their columns from the first on.

    At once: while Spark thinks of how to make one, its cores make another.
    """

    def rows(table: DataFrame) -> pa.Table:
        found = table.toArrow()
        return found.sort_by([(name, "ascending") for name in found.column_names])

    with ThreadPoolExecutor(len(tables)) as pool:
        return dict(zip(tables, pool.map(rows, tables.values()), strict=True))
