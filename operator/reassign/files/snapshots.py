"""A snapshot of a cluster as a folder of Parquet files, the planner's input, kept: one for each table of `schema`.

Each file's metadata says the version of the schema, and how many rows each table has: a snapshot that was cut short, or
put together from two, is noticed, and by checksums one that is damaged. The folder is written under another name and
renamed when it is whole.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.files.schema import METADATA_KEY, SCHEMAS, VERSION
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Cluster, Directories, Ints

ROW_GROUP = 65_536
"""Rows: what reads one file of a large cluster with several processes at once gives each some of these groups."""
_TIMES = ["cluster_id", "taken_at"]


class Config(NamedTuple):
    """One configuration that is set: `kind` is broker or topic, `name` a broker's id or a topic's name."""

    kind: str
    name: str
    key: str
    value: str


class Snapshot(NamedTuple):
    """A cluster as it was at a time. Letters of the shapes as in `problem.model`; brokers are indices."""

    cluster: Cluster
    taken_at: datetime
    leader: Ints  # (P,) UNKNOWN where there is none
    isr: Ints  # (P, R') ascending; UNKNOWN fills rows
    configs: tuple[Config, ...] = ()  # sorted


def in_sync(cluster: Cluster, taken_at: datetime) -> Snapshot:
    """The snapshot of a cluster in which all is well: preferred leaders lead, and all replicas are in sync."""
    unknown_last = np.where(cluster.replicas == UNKNOWN, np.iinfo(np.int32).max, cluster.replicas)
    isr = np.sort(unknown_last, axis=1)
    leader = cluster.replicas[:, 0] if cluster.replicas.shape[1] else np.full(len(cluster.replicas), UNKNOWN, np.int32)
    return Snapshot(cluster, taken_at, leader, np.where(isr == np.iinfo(np.int32).max, UNKNOWN, isr).astype(np.int32))


def place(root: Path, name: str, taken_at: datetime) -> Path:
    """Where the snapshot of a cluster lies among those of a fleet: one for each day (UTC)."""
    return root / f"date={taken_at.astimezone(UTC):%Y-%m-%d}" / f"cluster={name}"


def write(folder: Path, snapshot: Snapshot, *, replace: bool = False) -> None:
    """Write a snapshot into a folder that is not there yet, or that has an earlier one of the cluster to replace.

    A PlanningError when it is there and must not be replaced, or when it cannot be written.
    """
    tables = tables_of(snapshot)
    metadata = {METADATA_KEY: _metadata({name: table.num_rows for name, table in tables.items()}, snapshot)}
    try:
        if folder.exists() and (why := _must_stay(folder, snapshot) if replace else "is there already"):
            raise PlanningError(Reason.INVALID_SNAPSHOT, f"{folder} {why}; choose another name, or remove it")
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, table in tables.items():
                pq.write_table(
                    table.replace_schema_metadata(metadata),
                    unfinished / f"{name}.parquet",
                    row_group_size=ROW_GROUP,
                    compression="zstd",
                    write_page_checksum=True,
                )
            unfinished.chmod(0o755)
            _put(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as error:
        raise PlanningError(Reason.INVALID_SNAPSHOT, f"{folder} cannot be written: {error.strerror or error}") from None


def _must_stay(folder: Path, snapshot: Snapshot) -> str | None:
    """Why what is there is not replaced; a snapshot that is broken always is."""
    try:
        brokers = folder / "brokers.parquet"
        other = checks.said(brokers, checks.opened(brokers, brokers)).cluster_id
    except PlanningError:
        return None
    return f"has a snapshot of another cluster ({other})" if other != snapshot.cluster.id else None


def _put(unfinished: Path, folder: Path) -> None:
    """In the place of an earlier one, if any; for an instant there is neither, and never half of each."""
    if not folder.exists():
        unfinished.rename(folder)
        return
    earlier = unfinished.with_name(f"{unfinished.name}.earlier")
    folder.rename(earlier)
    try:
        unfinished.rename(folder)
    except OSError:
        earlier.rename(folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def read(folder: Path) -> Snapshot:
    """Read a snapshot. A PlanningError says what is wrong with one that is not whole, or not ours."""
    paths = {name: folder / f"{name}.parquet" for name in SCHEMAS}
    files = {name: checks.opened(path, path) for name, path in paths.items()}
    about, *others = (checks.said(paths[name], file) for name, file in files.items())
    if any(other != about for other in others):
        _refuse(folder, "its files are of different snapshots; take it again")
    tables = {name: checks.table(paths[name], name, file, about) for name, file in files.items()}
    cluster = cluster_of(folder, about.cluster_id, tables)
    brokers, partitions = cluster.brokers, tables["partitions"]
    in_sync = partitions["isr"]
    return Snapshot(
        cluster,
        about.taken_at,
        leader=_leaders(folder, partitions["leader"], brokers),
        isr=_rows(
            _numpy(pc.list_value_length(in_sync), np.int64), _broker_index(folder, pc.list_flatten(in_sync), brokers)
        ),
        configs=tuple(Config(*row.values()) for row in tables["configs"].drop(_TIMES).to_pylist()),
    )


def _refuse(path: Path, why: str) -> Never:
    raise PlanningError(Reason.INVALID_SNAPSHOT, f"{path} is no snapshot that can be used: {why}")


# --- metadata ---


def _metadata(rows: dict[str, int], snapshot: Snapshot) -> bytes:
    about = {
        "version": VERSION,
        "cluster_id": snapshot.cluster.id,
        "taken_at": _utc(snapshot).isoformat(),
        "rows": rows,
    }
    return json.dumps(about, sort_keys=True).encode()


def _utc(snapshot: Snapshot) -> datetime:
    return snapshot.taken_at.astimezone(UTC)


# --- a cluster as tables ---


def tables_of(snapshot: Snapshot) -> dict[str, pa.Table]:
    cluster, directories = snapshot.cluster, snapshot.cluster.directories
    there, ends = cluster.replicas >= 0, _ends(cluster.replicas)
    places = cluster.directory[there] if cluster.directory.shape == there.shape else np.full(ends[-1], UNKNOWN)
    columns = {
        "brokers": [cluster.brokers, pa.array([rack or None for rack in cluster.racks], pa.string()), cluster.alive],
        "log_dirs": [
            cluster.brokers[directories.broker],
            pa.array(directories.path, pa.string()),
            _nullable(directories.total),
            _nullable(directories.usable),
            directories.cordoned,
            directories.online,
        ],
        "partitions": [
            _named(cluster.topics, cluster.topic),
            cluster.partition,
            pa.ListArray.from_arrays(ends, _ids(cluster.brokers, cluster.replicas[there])),
            pa.ListArray.from_arrays(ends, _named(directories.path, places)),
            _nullable(cluster.sizes),
            cluster.in_flight,
            _ids(cluster.brokers, snapshot.leader),
            pa.ListArray.from_arrays(_ends(snapshot.isr), _ids(cluster.brokers, snapshot.isr[snapshot.isr >= 0])),
        ],
        "configs": [pa.array([row[i] for row in snapshot.configs], pa.string()) for i in range(len(Config._fields))],
    }
    return {name: _with_times(snapshot, SCHEMAS[name], found) for name, found in columns.items()}


def _ends(rows: Ints) -> Ints:
    """Where each of these rows ends, in the list of all their values."""
    ends: Ints = np.concatenate([[0], np.cumsum((rows >= 0).sum(axis=1))]).astype(np.int32)
    return ends


def _ids(brokers: Ints, index: Ints) -> pa.Array:
    return pa.array(brokers.take(index, mode="clip"), pa.int32(), mask=index < 0)


def _with_times(snapshot: Snapshot, schema: pa.Schema, columns: list[Any]) -> pa.Table:
    rows = len(columns[0])
    taken = [
        pa.repeat(pa.scalar(snapshot.cluster.id, schema.field(0).type), rows),
        pa.repeat(pa.scalar(_utc(snapshot), schema.field(1).type), rows),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip([*taken, *columns], schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _nullable(values: Bytes) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values < 0)


def _named(names: tuple[str, ...], index: Ints) -> pa.Array:
    """The names at these places; null where there is none."""
    return pa.array([*names], pa.string()).take(pa.array(index, pa.int32(), mask=index < 0))


# --- tables as a cluster ---


def cluster_of(folder: Path, id: str, tables: Mapping[str, pa.Table]) -> Cluster:
    """The cluster that the tables of one snapshot show; `folder` is what errors name.

    A PlanningError for tables that contradict each other: what is planned from must be one cluster.
    """
    brokers, log_dirs, partitions = (tables[name] for name in ("brokers", "log_dirs", "partitions"))
    if any(pc.any(pc.not_equal(table["cluster_id"], id)).as_py() for table in tables.values()):
        _refuse(folder, "it has rows of several clusters; name the folder of one")
    for table in tables.values():
        if any(table[field.name].null_count for field in table.schema if not field.nullable):
            _refuse(folder, "a value is missing; take it again")
    broker_ids = _numpy(brokers["broker"], np.int32)
    if (np.diff(broker_ids) <= 0).any():
        _refuse(folder, "its brokers are not each there once, in order; take it again")
    topics = tuple(pc.unique(partitions["topic"]).to_pylist())
    topic = _index_in(partitions["topic"], topics)
    partition = _numpy(partitions["partition"], np.int32)
    order = topic.astype(np.int64) << 32 | partition
    if topics != tuple(sorted(topics)) or (np.diff(order) <= 0).any():
        _refuse(folder, "its partitions are not each there once, in order; take it again")
    directories = Directories(
        broker=_broker_index(folder, log_dirs["broker"], broker_ids),
        path=tuple(log_dirs["path"].to_pylist()),
        total=_bytes(log_dirs["total_bytes"]),
        usable=_bytes(log_dirs["usable_bytes"]),
        cordoned=_bools(log_dirs["cordoned"]),
        online=_bools(log_dirs["online"]),
    )
    counts = _numpy(pc.list_value_length(partitions["replicas"]), np.int64)
    if (counts != _numpy(pc.list_value_length(partitions["log_dirs"]), np.int64)).any():
        _refuse(folder, "of some partitions it has more log directories than replicas, or fewer; take it again")
    replicas = _broker_index(folder, pc.list_flatten(partitions["replicas"]), broker_ids)
    rows = _rows(counts, replicas)
    by_broker = np.sort(rows, axis=1)
    if ((np.diff(by_broker, axis=1) == 0) & (by_broker[:, 1:] >= 0)).any():
        _refuse(folder, "a broker holds two replicas of one partition; take it again")
    return Cluster(
        id=id,
        brokers=broker_ids,
        racks=tuple(rack or "" for rack in brokers["rack"].to_pylist()),
        alive=_bools(brokers["alive"]),
        directories=directories,
        topics=topics,
        topic=topic,
        partition=partition,
        replicas=rows,
        sizes=_bytes(partitions["size_bytes"]),
        in_flight=_bools(partitions["in_flight"]),
        directory=_rows(
            counts, _directory_index(folder, replicas, pc.list_flatten(partitions["log_dirs"]), directories)
        ),
    )


def _broker_index(folder: Path, ids: pa.ChunkedArray, brokers: Ints) -> Ints:
    if ids.null_count:
        _refuse(folder, "a broker is missing; take it again")
    found = _numpy(ids, np.int32)
    index: Ints = np.searchsorted(brokers, found).astype(np.int32)
    if (brokers.take(index, mode="clip") != found).any() if brokers.size else found.size:
        _refuse(folder, "it names brokers that it does not describe; take it again")
    return index


def _leaders(folder: Path, ids: pa.ChunkedArray, brokers: Ints) -> Ints:
    leads = _numpy(pc.is_valid(ids), np.bool_)
    leader = np.full(len(leads), UNKNOWN, np.int32)
    leader[leads] = _broker_index(folder, pc.drop_null(ids), brokers)
    return leader


def _directory_index(folder: Path, replicas: Ints, paths: pa.ChunkedArray, directories: Directories) -> Ints:
    """Of each replica, the directory of that path on its broker."""
    names = tuple(sorted(set(directories.path)))
    code = {name: i for i, name in enumerate(names)}
    keys = directories.broker.astype(np.int64) * max(len(names), 1) + [code[path] for path in directories.path]
    if (np.diff(keys) <= 0).any():
        _refuse(folder, "its log directories are not each there once, in order; take it again")
    known = _numpy(pc.is_valid(paths), np.bool_)
    path = _index_in(paths, names)
    wanted = replicas.astype(np.int64) * max(len(names), 1) + path
    index = np.searchsorted(keys, wanted).astype(np.int32)
    found = keys.take(index, mode="clip") == wanted if keys.size else np.zeros(wanted.shape, np.bool_)
    if (known & ~(found & (path >= 0))).any():
        _refuse(folder, "it names log directories that it does not describe; take it again")
    return np.where(known, index, UNKNOWN).astype(np.int32)


def _index_in(column: pa.ChunkedArray, names: tuple[str, ...]) -> Ints:
    """The place of each value among the names; -1 for null and for what is not there."""
    found: Ints = _numpy(pc.fill_null(pc.index_in(column, pa.array([*names], pa.string())), UNKNOWN), np.int32)
    return found


def _rows(counts: Bytes, values: Ints) -> Ints:
    """Values in rows of these lengths, as wide as the longest."""
    width = int(counts.max(initial=0))
    rows = np.full((len(counts), width), UNKNOWN, np.int32)
    rows[np.arange(width) < counts[:, None]] = values
    return rows


def _numpy(column: Any, dtype: Any) -> Any:
    return column.to_numpy(zero_copy_only=False).astype(dtype)


def _bytes(column: pa.ChunkedArray) -> Bytes:
    found: Bytes = _numpy(pc.fill_null(column, UNKNOWN), np.int64)
    return np.maximum(found, UNKNOWN)


def _bools(column: pa.ChunkedArray) -> Bools:
    found: Bools = _numpy(column, np.bool_)
    return found
