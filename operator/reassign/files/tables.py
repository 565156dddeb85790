"""A snapshot of a cluster as Arrow tables, one for each of `schema`, and tables as a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reassign.api.goal import MEASURES
from reassign.errors import PlanningError, Reason
from reassign.files.schema import SCHEMAS
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Cluster, Directories, Ints
from reassign.planning.unseen import Unseen, UnseenLogs

_TIMES = ["cluster_id", "taken_at"]


class Config(NamedTuple):
    """One configuration that is set."""

    kind: str
    """`broker` or `topic`."""
    name: str
    """A broker's id or a topic's name."""
    key: str
    value: str


class Snapshot(NamedTuple):
    """A cluster at a time. Letters of the shapes as in `planning.model`; brokers are indices."""

    cluster: Cluster
    taken_at: datetime
    leader: Ints  # (P,) UNKNOWN where there is none
    isr: Ints  # (P, R') ascending; UNKNOWN fills rows
    configs: tuple[Config, ...] = ()  # sorted


def tables_of(snapshot: Snapshot) -> dict[str, pa.Table]:
    cluster, directories = snapshot.cluster, snapshot.cluster.directories
    there, ends = cluster.replicas >= 0, _ends(cluster.replicas)
    places = cluster.directory[there] if cluster.directory.shape == there.shape else np.full(ends[-1], UNKNOWN)
    columns = {
        "brokers": [
            cluster.brokers,
            pa.array([rack or None for rack in cluster.racks], pa.string()),
            cluster.alive,
            cluster.registered,
        ],
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
            *(_nullable(getattr(cluster, measure.field)) for measure in MEASURES),
            cluster.in_flight,
            _ids(cluster.brokers, snapshot.leader),
            pa.ListArray.from_arrays(_ends(snapshot.isr), _ids(cluster.brokers, snapshot.isr[snapshot.isr >= 0])),
        ],
        "configs": [pa.array([row[i] for row in snapshot.configs], pa.string()) for i in range(len(Config._fields))],
        "unseen": _unseen_columns(cluster.unseen),
    }
    return {name: _with_times(snapshot, SCHEMAS[name], arrays) for name, arrays in columns.items()}


def _unseen_columns(unseen: Unseen | None) -> list[list[Any]]:
    assert unseen is not None  # it is not known only of what an earlier version took
    rows: list[tuple[Any, ...]] = [
        *unseen.logs,
        *((None, topic, None, None) for topic in sorted(unseen.unread)),
        *((broker, None, None, None) for broker in sorted(unseen.silent)),
    ]
    return [[row[i] for row in rows] for i in range(len(UnseenLogs._fields))]


def unseen_of(table: pa.Table) -> Unseen:
    """Return what a snapshot did not see, by its table of that."""
    rows: list[dict[str, Any]] = table.drop(_TIMES).to_pylist()
    return Unseen(
        tuple(UnseenLogs(**row) for row in rows if None not in row.values()),
        frozenset(row["topic"] for row in rows if row["broker"] is None and row["topic"] is not None),
        frozenset(row["broker"] for row in rows if row["topic"] is None and row["broker"] is not None),
    )


def _ends(rows: Ints) -> Ints:
    """Return where each of these rows ends in the list of all their values."""
    ends: Ints = np.concatenate([[0], np.cumsum((rows >= 0).sum(axis=1))]).astype(np.int32)
    return ends


def _ids(brokers: Ints, index: Ints) -> pa.Array:
    return pa.array(brokers.take(index, mode="clip"), pa.int32(), mask=index < 0)


def _with_times(snapshot: Snapshot, schema: pa.Schema, columns: list[Any]) -> pa.Table:
    rows = len(columns[0])
    taken = [
        pa.repeat(pa.scalar(snapshot.cluster.id, schema.field(0).type), rows),
        pa.repeat(pa.scalar(snapshot.taken_at.astimezone(UTC), schema.field(1).type), rows),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip([*taken, *columns], schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _nullable(values: Bytes) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values < 0)


def _named(names: tuple[str, ...], index: Ints) -> pa.Array:
    """Return the names at these indices; null where an index is negative."""
    return pa.array([*names], pa.string()).take(pa.array(index, pa.int32(), mask=index < 0))


def snapshot_of(folder: Path, id: str, taken_at: datetime, tables: Mapping[str, pa.Table]) -> Snapshot:
    """Return the snapshot that these tables hold; errors name `folder`, and are those of `cluster_of`."""
    cluster = cluster_of(folder, id, tables)
    brokers, partitions = cluster.brokers, tables["partitions"]
    in_sync = partitions["isr"]
    return Snapshot(
        cluster,
        taken_at,
        leader=_leaders(folder, partitions["leader"], brokers),
        isr=_rows(
            _numpy(pc.list_value_length(in_sync), np.int64), _broker_index(folder, pc.list_flatten(in_sync), brokers)
        ),
        configs=tuple(Config(*row.values()) for row in tables["configs"].drop(_TIMES).to_pylist()),
    )


def cluster_of(folder: Path, id: str, tables: Mapping[str, pa.Table]) -> Cluster:
    """Return the cluster that the tables of one snapshot hold; errors name `folder`.

    Raises PlanningError for tables that contradict each other.
    """
    brokers, log_dirs, partitions = (tables[name] for name in ("brokers", "log_dirs", "partitions"))
    if any(pc.any(pc.not_equal(table["cluster_id"], id)).as_py() for table in tables.values()):
        refuse(folder, "it has rows of several clusters; name the folder of one")
    for table in tables.values():
        if any(table[field.name].null_count for field in table.schema if not field.nullable):
            refuse(folder, "a value is missing; take it again")
    broker_ids = _numpy(brokers["broker"], np.int32)
    if (np.diff(broker_ids) <= 0).any():
        refuse(folder, "its brokers are not each there once, in order; take it again")
    topics = tuple(pc.unique(partitions["topic"]).to_pylist())
    topic = _index_in(partitions["topic"], topics)
    partition = _numpy(partitions["partition"], np.int32)
    order = topic.astype(np.int64) << 32 | partition
    if topics != tuple(sorted(topics)) or (np.diff(order) <= 0).any():
        refuse(folder, "its partitions are not each there once, in order; take it again")
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
        refuse(folder, "of some partitions it has more log directories than replicas, or fewer; take it again")
    replicas = _broker_index(folder, pc.list_flatten(partitions["replicas"]), broker_ids)
    rows = _rows(counts, replicas)
    by_broker = np.sort(rows, axis=1)
    if ((np.diff(by_broker, axis=1) == 0) & (by_broker[:, 1:] >= 0)).any():
        refuse(folder, "a broker holds two replicas of one partition; take it again")
    measured: dict[str, Any] = {measure.field: _bytes(partitions[measure.column]) for measure in MEASURES}
    return Cluster(
        id=id,
        brokers=broker_ids,
        racks=tuple(rack or "" for rack in brokers["rack"].to_pylist()),
        registered=_bools(brokers["registered"]),
        alive=_bools(brokers["alive"]),
        directories=directories,
        topics=topics,
        topic=topic,
        partition=partition,
        replicas=rows,
        **measured,
        in_flight=_bools(partitions["in_flight"]),
        directory=_rows(
            counts, _directory_index(folder, replicas, pc.list_flatten(partitions["log_dirs"]), directories)
        ),
        unseen=unseen_of(tables["unseen"]) if "unseen" in tables else None,
    )


def _broker_index(folder: Path, ids: pa.ChunkedArray, brokers: Ints) -> Ints:
    if ids.null_count:
        refuse(folder, "a broker is missing; take it again")
    numbers = _numpy(ids, np.int32)
    index: Ints = np.searchsorted(brokers, numbers).astype(np.int32)
    if (brokers.take(index, mode="clip") != numbers).any() if brokers.size else numbers.size:
        refuse(folder, "it names brokers that it does not describe; take it again")
    return index


def _leaders(folder: Path, ids: pa.ChunkedArray, brokers: Ints) -> Ints:
    leads = _numpy(pc.is_valid(ids), np.bool_)
    leader = np.full(len(leads), UNKNOWN, np.int32)
    leader[leads] = _broker_index(folder, pc.drop_null(ids), brokers)
    return leader


def _directory_index(folder: Path, replicas: Ints, paths: pa.ChunkedArray, directories: Directories) -> Ints:
    """Return each replica's directory, the one of its path on its broker."""
    names = tuple(sorted(set(directories.path)))
    code = {name: i for i, name in enumerate(names)}
    keys = directories.broker.astype(np.int64) * max(len(names), 1) + [code[path] for path in directories.path]
    if (np.diff(keys) <= 0).any():
        refuse(folder, "its log directories are not each there once, in order; take it again")
    known = _numpy(pc.is_valid(paths), np.bool_)
    path = _index_in(paths, names)
    wanted = replicas.astype(np.int64) * max(len(names), 1) + path
    index = np.searchsorted(keys, wanted).astype(np.int32)
    matches = keys.take(index, mode="clip") == wanted if keys.size else np.zeros(wanted.shape, np.bool_)
    if (known & ~(matches & (path >= 0))).any():
        refuse(folder, "it names log directories that it does not describe; take it again")
    return np.where(known, index, UNKNOWN).astype(np.int32)


def _index_in(column: pa.ChunkedArray, names: tuple[str, ...]) -> Ints:
    """Return the index of each value among the names; -1 for null and for unknown values."""
    index: Ints = _numpy(pc.fill_null(pc.index_in(column, pa.array([*names], pa.string())), UNKNOWN), np.int32)
    return index


def _rows(counts: Bytes, values: Ints) -> Ints:
    """Return the values in rows of these lengths, as wide as the longest."""
    width = int(counts.max(initial=0))
    rows = np.full((len(counts), width), UNKNOWN, np.int32)
    rows[np.arange(width) < counts[:, None]] = values
    return rows


def _numpy(column: Any, dtype: Any) -> Any:
    return column.to_numpy(zero_copy_only=False).astype(dtype)


def _bytes(column: pa.ChunkedArray) -> Bytes:
    sizes: Bytes = _numpy(pc.fill_null(column, UNKNOWN), np.int64)
    return np.maximum(sizes, UNKNOWN)


def _bools(column: pa.ChunkedArray) -> Bools:
    values: Bools = _numpy(column, np.bool_)
    return values


def refuse(path: Path, why: str) -> Never:
    raise PlanningError(Reason.INVALID_SNAPSHOT, f"{path} is no snapshot that can be used: {why}")
