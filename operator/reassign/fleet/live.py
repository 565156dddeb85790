"""Live clusters as a data source of Spark, one partition each, in place of snapshots that were taken before.

A partition holds a cluster's address, and no secret: the executor that observes it reads the KafkaCluster
and its Secrets itself, with the rights of its pod or its kubeconfig. A cluster is observed once for all tables, so that
they fit each other: its rows come in one table as wide as all of them, with the name of theirs in the column `table`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from reassign.errors import PlanningError, Reason, ReassignError
from reassign.files import tables as snapshot_tables
from reassign.files.schema import SCHEMAS
from reassign.fleet.tables import FOLDERS, Tables, spark_schema
from reassign.inspect import cluster as live
from reassign.inspect.snapshot import snapshot
from reassign.kafka.connection import Connection

FORMAT = "kafka_clusters"
BATCH_ROWS = 20_000
TABLE, PROBLEM = "table", "problem"
WIDE = pa.schema(
    [pa.field(name, pa.string()) for name in (TABLE, PROBLEM, *FOLDERS)]
    + list({field.name: field.with_nullable(True) for schema in SCHEMAS.values() for field in schema}.values())
)
"""Of a row that has a problem, that and the cluster's name are all that is there."""


@dataclass(frozen=True)
class LiveCluster(InputPartition):
    """A cluster's address, a KafkaCluster or plain bootstrap servers; `name` is what the fleet calls it."""

    name: str
    namespace: str = ""
    kafka_cluster: str = ""
    bootstrap_servers: str = ""


class KafkaClusters(DataSource):
    """`spark.read.format("kafka_clusters")`; its option `clusters` is a JSON list with the fields of LiveCluster."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(WIDE)

    def reader(self, schema: StructType) -> Reader:
        return Reader([LiveCluster(**where) for where in json.loads(self.options["clusters"])])


class Reader(DataSourceReader):
    """Observes each cluster; the error of one is a row, and fails no other."""

    def __init__(self, clusters: Sequence[LiveCluster]) -> None:
        self._clusters = clusters

    def partitions(self) -> Sequence[InputPartition]:
        return list(self._clusters)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, LiveCluster):  # there are none, and Spark reads one that is None all the same
            return
        try:
            taken, notes = asyncio.run(_take(partition))
        except ReassignError as error:
            yield _problem(partition, f"{error.message} ({error.reason})")
            return
        except Exception as error:  # a bug that one cluster shows leaves the others alone
            yield _problem(partition, f"{type(error).__name__}: {error}")
            return
        for note in notes:
            yield _problem(partition, note)
        day = taken.taken_at.astimezone(UTC).date().isoformat()
        for name, table in snapshot_tables.tables_of(taken).items():
            yield from _wide(table, {TABLE: name, "date": day, "cluster": partition.name})


async def _take(where: LiveCluster) -> tuple[snapshot_tables.Snapshot, list[str]]:
    if where.bootstrap_servers:
        connection, by = Connection(where.bootstrap_servers), None
    else:
        connection, by = await live.resolve(where.namespace, where.kafka_cluster)
    async with live.read_only(connection) as client:
        return await snapshot(client, by)


def _problem(cluster: LiveCluster, problem: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"cluster": cluster.name, PROBLEM: problem}], schema=WIDE)


def _wide(table: pa.Table, same: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        rows = batch.num_rows
        columns = {name: pa.repeat(value, rows) for name, value in same.items()}
        columns |= dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in WIDE]
        yield pa.RecordBatch.from_arrays(arrays, schema=WIDE)


def observe(spark: SparkSession, clusters: Sequence[LiveCluster]) -> DataFrame:
    """Return all rows of these clusters. Each is observed once, now, whatever is made of the rows later."""
    names = [cluster.name for cluster in clusters]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PlanningError(Reason.INVALID_SNAPSHOT, f"two clusters are called {twice[0]}; call one of them otherwise")
    spark.dataSource.register(KafkaClusters)
    where = json.dumps([asdict(cluster) for cluster in clusters])
    return spark.read.format(FORMAT).option("clusters", where).load().localCheckpoint()


def split(rows: DataFrame) -> Tables:
    """Return the rows of `observe` as the tables of snapshots."""
    return Tables(
        **{name: rows.where(sf.col(TABLE) == name).select(spark_schema(name).names) for name in Tables._fields}
    )


def problems(rows: DataFrame) -> DataFrame:
    """Return what could not be observed, of a cluster or all of it, with the columns `cluster` and `problem`."""
    return rows.where(sf.col(PROBLEM).isNotNull()).select("cluster", PROBLEM)
