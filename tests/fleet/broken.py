"""Clusters whose snapshots are broken, each in one way: what is wrong with it is the name that it has in `BROKEN`.

Each maker writes a snapshot of a cluster below a root, and breaks it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reassign.files.schema import METADATA_KEY, SCHEMAS
from reassign.files.snapshots import write
from reassign.files.tables import Config
from reassign.fleet.choose import Kind
from reassign.planning.problem.model import Cluster, Directories
from reassign.planning.unseen import ALL_SEEN, Unseen
from tests.snapshots import in_sync

TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAY = "2026-01-31"
NOTES = frozenset({Kind.NEW_ID, Kind.NO_PARTITIONS, Kind.OLD})
"""Of `choose.Kind` those that quarantine nothing."""
BROKEN: dict[str, Callable[[Path, str], None]] = {}


def whole(name: str, partitions: int = 12) -> Cluster:
    """Four brokers in two racks, with two log directories each, and two topics on three of them each."""
    numbers = np.arange(partitions, dtype=np.int32)
    replicas = np.stack([(numbers + step) % 4 for step in range(3)], axis=1).astype(np.int32)
    return Cluster(
        id=f"id-of-{name}",
        brokers=np.array([1, 2, 3, 4], np.int32),
        racks=("/a/1", "/a/2", "/b/1", "/b/2"),
        registered=np.ones(4, np.bool_),
        alive=np.ones(4, np.bool_),
        directories=Directories(
            broker=np.repeat(np.arange(4, dtype=np.int32), 2),
            path=("/d1", "/d2") * 4,
            total=np.full(8, 10**12, np.int64),
            usable=np.full(8, 9 * 10**11, np.int64),
            cordoned=np.zeros(8, np.bool_),
            online=np.ones(8, np.bool_),
        ),
        topics=("orders", "payments"),
        topic=(numbers // (partitions // 2)).astype(np.int32),
        partition=numbers % (partitions // 2),
        replicas=replicas,
        sizes=numbers.astype(np.int64) * 10**9,
        in_flight=np.zeros(partitions, np.bool_),
        directory=replicas * 2,
    )


def good(
    root: Path,
    name: str,
    days_ago: int = 0,
    hours_ago: int = 0,
    id: str | None = None,
    unseen: Unseen = ALL_SEEN,
) -> Path:
    """A snapshot with which all is well; its folder."""
    taken_at = TAKEN - timedelta(days=days_ago, hours=hours_ago)
    folder = root / f"date={taken_at.date()}" / f"cluster={name}"
    configs = (Config("broker", "1", "log.retention.ms", "1000"), Config("topic", "orders", "retention.ms", "1000"))
    cluster = replace(whole(id or name), unseen=unseen)
    write(folder, in_sync(cluster, taken_at)._replace(configs=configs))
    return folder


def edited(folder: Path, table: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """The snapshot with other rows in one table, and that number of rows said in every one."""
    rows = change(pq.read_table(folder / f"{table}.parquet", partitioning=None).to_pylist())
    for name in SCHEMAS:
        file = folder / f"{name}.parquet"
        found = pq.read_table(file, partitioning=None)
        about = json.loads(found.schema.metadata[METADATA_KEY])
        about["rows"][table] = len(rows)
        if name == table:
            found = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
        pq.write_table(found.replace_schema_metadata({METADATA_KEY: json.dumps(about)}), file, write_page_checksum=True)


def saying(file: Path, **about: Any) -> None:
    """The file with other metadata."""
    found = pq.read_table(file, partitioning=None)
    said = json.loads(found.schema.metadata[METADATA_KEY]) | about
    pq.write_table(found.replace_schema_metadata({METADATA_KEY: json.dumps(said)}), file, write_page_checksum=True)


def breaks(kind: str) -> Callable[[Callable[[Path, str], None]], Callable[[Path, str], None]]:
    """The maker of what has this kind of fault."""

    def register(maker: Callable[[Path, str], None]) -> Callable[[Path, str], None]:
        assert kind not in BROKEN
        BROKEN[kind] = maker
        return maker

    return register


# --- files ---


@breaks("MissingTable")
def without_a_table(root: Path, name: str) -> None:
    (good(root, name) / "log_dirs.parquet").unlink()


@breaks("UnreadableFile")
def half_written(root: Path, name: str) -> None:
    file = good(root, name) / "partitions.parquet"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@breaks("DamagedPage")
def with_a_damaged_page(root: Path, name: str) -> None:
    file = good(root, name) / "partitions.parquet"
    content = bytearray(file.read_bytes())
    page = pq.ParquetFile(file).metadata.row_group(0).column(6)
    content[page.dictionary_page_offset + page.total_compressed_size - 3] ^= 0xFF
    file.write_bytes(content)


@breaks("ForeignFile")
def of_another_program(root: Path, name: str) -> None:
    file = good(root, name) / "configs.parquet"
    pq.write_table(pq.read_table(file, partitioning=None).replace_schema_metadata(None), file)


@breaks("OtherVersion")
def of_another_version(root: Path, name: str) -> None:
    for file in good(root, name).iterdir():
        saying(file, version=1)


@breaks("IncompleteMetadata")
def with_half_its_metadata(root: Path, name: str) -> None:
    saying(good(root, name) / "configs.parquet", rows=dict.fromkeys(SCHEMAS, 10**30))


@breaks("OtherColumns")
def without_a_column(root: Path, name: str) -> None:
    file = good(root, name) / "partitions.parquet"
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["isr"]), file, write_page_checksum=True)


@breaks("OtherRowCount")
def with_fewer_rows_than_it_says(root: Path, name: str) -> None:
    file = good(root, name) / "partitions.parquet"
    pq.write_table(pq.read_table(file, partitioning=None).slice(0, 5), file, write_page_checksum=True)


# --- folders ---


@breaks("FolderName")
def of_a_name_that_no_object_can_have(root: Path, name: str) -> None:
    good(root, f"{name}_Old")


@breaks("FolderDate")
def on_a_date_that_is_none(root: Path, name: str) -> None:
    shutil.move(good(root, name), root / "date=2026-02-30" / f"cluster={name}")


@breaks("FutureSnapshot")
def on_a_date_that_has_not_come(root: Path, name: str) -> None:
    shutil.move(good(root, name), root / "date=9999-12-31" / f"cluster={name}")


@breaks("OtherDate")
def in_the_folder_of_another_date(root: Path, name: str) -> None:
    (root / "date=2026-01-30").mkdir(exist_ok=True)
    good(root, name).rename(root / "date=2026-01-30" / f"cluster={name}")


@breaks("MixedSnapshot")
def of_files_of_two_snapshots(root: Path, name: str) -> None:
    older = good(root, name, days_ago=1)
    (older / "log_dirs.parquet").rename(good(root, name) / "log_dirs.parquet")
    shutil.rmtree(older)


@breaks("DuplicateSnapshot")
def under_the_name_of_two_clusters(root: Path, name: str) -> None:
    good(root, name)
    shutil.copytree(root / f"date={DAY}" / f"cluster={name}", root / f"date={DAY}" / f"cluster={name}-copy")


@breaks("SharedClusterId")
def with_the_id_of_another(root: Path, name: str) -> None:
    good(root, name)
    good(root, f"{name}-twin", id=name, hours_ago=1)


@breaks("OtherSnapshotRows")
def with_rows_of_another_cluster(root: Path, name: str) -> None:
    _each(root, name, "log_dirs", lambda row: row | {"cluster_id": "another"})


# --- rows ---


def _each(root: Path, name: str, table: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """The last row of a table changed."""
    edited(good(root, name), table, lambda rows: [*rows[:-1], change(rows[-1])])


def _last(kind: str, table: str, **values: Any) -> None:
    """Broken by other values in the last row of a table."""
    breaks(kind)(lambda root, name: _each(root, name, table, lambda row: row | values))


@breaks("NoBrokers")
def without_brokers(root: Path, name: str) -> None:
    edited(good(root, name), "brokers", lambda rows: [])


@breaks("BrokerTwice")
def with_a_broker_twice(root: Path, name: str) -> None:
    edited(good(root, name), "brokers", lambda rows: [*rows, rows[0]])


@breaks("DirectoryTwice")
def with_a_directory_twice(root: Path, name: str) -> None:
    edited(good(root, name), "log_dirs", lambda rows: [*rows, rows[0]])


@breaks("PartitionTwice")
def with_a_partition_twice(root: Path, name: str) -> None:
    edited(good(root, name), "partitions", lambda rows: [*rows, rows[0]])


@breaks("UnseenTwice")
def with_a_silent_broker_twice(root: Path, name: str) -> None:
    silent = Unseen((), frozenset(), frozenset({2}))
    edited(good(root, name, unseen=silent), "unseen", lambda rows: [*rows, *rows])


@breaks("PartitionGap")
def without_a_partition(root: Path, name: str) -> None:
    edited(good(root, name), "partitions", lambda rows: [*rows[:2], *rows[3:]])


# the last partition has replicas [4, 1, 2], in /d1 each, and is led by 4
_last("UsableAboveTotal", "log_dirs", usable_bytes=10**12 + 1)
_last("NegativeNumber", "log_dirs", total_bytes=-5, usable_bytes=None)
_last("AbsurdSize", "partitions", size_bytes=2**50 + 1)
_last("NoReplicas", "partitions", replicas=[], log_dirs=[], isr=[], leader=None)
_last("BrokerTwiceInPartition", "partitions", replicas=[4, 1, 4], isr=[1, 4])
_last("DirectoryCount", "partitions", log_dirs=["/d1"])
_last("LeaderOutsideIsr", "partitions", isr=[1, 2])
_last("LeaderOutsideReplicas", "partitions", leader=3, isr=[1, 2, 3])
_last("IsrOutsideReplicas", "partitions", isr=[1, 2, 3, 4])
_last("MissingValue", "partitions", replicas=[4, None, 2], isr=[2, 4])
_last("UnknownBroker", "partitions", replicas=[4, 9, 2], isr=[2, 4])
_last("UnknownIsrBroker", "partitions", isr=[2, 4, 9], in_flight=True)
_last("UnknownDirectory", "partitions", log_dirs=["/d1", "/d3", None])
_last("TopicName", "partitions", topic="no/topic", partition=0)


@breaks("TooManyReplicas")
def with_a_partition_on_33_brokers(root: Path, name: str) -> None:
    folder, ids = good(root, name), range(5, 38)
    edited(folder, "brokers", lambda rows: rows + [rows[-1] | {"broker": id} for id in ids])
    edited(folder, "log_dirs", lambda rows: rows + [rows[-1] | {"broker": id, "path": "/d1"} for id in ids])
    wide = {"replicas": [*ids], "log_dirs": ["/d1"] * len(ids), "isr": [*ids], "leader": ids[0]}
    edited(folder, "partitions", lambda rows: [*rows[:-1], rows[-1] | wide])


@breaks("TooManyBytes")
def with_more_bytes_than_there_can_be(root: Path, name: str) -> None:
    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        sizes = {0: 2**50, 1: None}  # which counts as the mean of the others
        return [rows[0] | {"partition": number, "size_bytes": sizes[number % 2]} for number in range(342)]

    edited(good(root, name), "partitions", change)
