"""The outcomes of snapshots: a row of one schema for each, with a list of rows of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat, takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reassign.api.goal import COUNTED

TEXT, COUNT, BYTES, SHARE, YES = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
LOADS = {counted.what: BYTES for counted in COUNTED.values()}
BY_RESOURCE = pa.struct([(by.value, pa.list_(BYTES)) for by in COUNTED])

FILES = {
    "path": TEXT,
    "length": BYTES,
    "sha256": TEXT,
    "cluster_id": TEXT,
    "taken_at": TIME,
    "rows": pa.list_(BYTES),  # of each table, in the order of SCHEMAS; null: its version has none
    "kind": TEXT,  # of what is wrong with it
    "problem": TEXT,  # in a sentence
}
VERDICTS = {"table": TEXT, "kind": TEXT, "rows": BYTES, "example": TEXT, "quarantines": YES}
REJECTED = {"table": TEXT, "kind": TEXT, "example": TEXT, "row": TEXT}  # the row as JSON, with all that it says
BROKER_LOAD = {
    "broker": COUNT,
    "rack": TEXT,
    "alive": YES,
    **LOADS,
    "capacity": BYTES,
    "share_bytes": SHARE,
    "share_replicas": SHARE,
}
RACK_LOAD = {"level": COUNT, "path": TEXT, "brokers": BYTES, **LOADS}
DIRECTORY_LOAD = {
    "broker": COUNT,
    "path": TEXT,
    "bytes": BYTES,
    "replicas": BYTES,
    "total_bytes": BYTES,
    "usable_bytes": BYTES,
}
CLUSTER_LOAD = {
    **dict.fromkeys(("brokers", "topics", "partitions", "replicas", "bytes", "unknown_sizes", "in_flight"), BYTES),
    **{f"skew_{what}": SHARE for what in LOADS},
    **dict.fromkeys(
        ("violations", "drain_replicas", "drain_bytes", "rf_replicas", "bytes_bound", "moves_bound"), BYTES
    ),
    "matched": pa.list_(TEXT),  # the patterns of topics of the policy that match one here
}
COSTS = {
    **dict.fromkeys(("bytes", "bytes_bound", "moves", "moves_bound", "leaders", "waves_bound"), BYTES),
    "makespan": SHARE,
    "makespan_bound": SHARE,
}
PLANS = {
    "cluster_id": TEXT,
    "problem": pa.struct([("reason", TEXT), ("message", TEXT)]),
    "balance": pa.list_(
        pa.struct(
            [
                ("by", TEXT),
                ("before", pa.list_(SHARE)),
                ("after", pa.list_(SHARE)),
                ("reachable", SHARE),
                ("band", pa.list_(SHARE)),
            ]
        )
    ),
    "waves": pa.list_(pa.struct([("partitions", BYTES), ("bytes", BYTES), ("seconds", SHARE)])),
    **COSTS,
    "unmet": pa.list_(pa.struct([("what", TEXT), ("nearest", TEXT)])),
}
PLANNED_LOAD = {
    "racks": pa.list_(pa.struct(list(RACK_LOAD.items()))),
    "after": BY_RESOURCE,  # of each broker, in their order
    "target": BY_RESOURCE,
}
MANIFESTS = {"name": TEXT, "text": TEXT}

SIZES = {
    "broker": COUNT,  # of a log directory; a topic has none
    "name": TEXT,
    "bytes": BYTES,  # those that are used
    "total_bytes": BYTES,
    "usable_bytes": BYTES,
    "first": YES,  # the one of its volume that the report shows
}
BEGUN = {"kind": TEXT, "what": TEXT}

HISTORY = {"sizes": SIZES, "begun": BEGUN}
"""Of every snapshot, also of those before the newest: what growth and leftovers are found in."""
KINDS: dict[str, dict[str, pa.DataType]] = {
    "files": FILES,
    "verdicts": VERDICTS,
    "rejected": REJECTED,
    "broker_load": BROKER_LOAD,
    "rack_load": RACK_LOAD,
    "directory_load": DIRECTORY_LOAD,
    "cluster_load": CLUSTER_LOAD,
    "plans": PLANS,
    "planned_load": PLANNED_LOAD,
    "manifests": MANIFESTS,
    **HISTORY,
}
OF_CLUSTERS = ("cluster_load", "plans")
SMALL = ("files", "verdicts", *OF_CLUSTERS)
"""Kinds that a driver has room for."""
DETAILS = ("broker_load", "rack_load", "directory_load", "planned_load")
"""Kinds that executors write to one table, as lists in a row for each cluster."""
ROW_BYTES = 1 << 23
CHUNK = 100
"""Rows that are in Python at once: they need ten times the memory there that a table does."""
SNAPSHOT = {"cluster": TEXT, "date": TEXT}
_LISTS = {kind: pa.list_(pa.struct([*columns.items()])) for kind, columns in KINDS.items()}
OUTCOMES = pa.schema([*SNAPSHOT.items(), *_LISTS.items()])


def schema_of(kind: str) -> pa.Schema:
    """Return the columns of the rows of a kind, with those of their snapshot."""
    return pa.schema([*SNAPSHOT.items(), *KINDS[kind].items()])


Row = dict[str, Any]


def split(outcome: Row) -> Iterator[Row]:
    """Yield rows that together say what this one does, each with about ROW_BYTES of manifests: Spark copies rows."""
    manifests, size = list[Row](), 0
    for manifest in outcome.pop("manifests", ()):
        manifests.append(manifest)
        size += len(manifest["text"])
        if size >= ROW_BYTES:
            yield {**{name: outcome[name] for name in SNAPSHOT}, "manifests": manifests}
            manifests, size = [], 0
    yield outcome | {"manifests": manifests}


def batch_of(outcomes: Iterable[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(outcomes), OUTCOMES)


def of_kind(outcomes: pa.Table, kind: str) -> pa.Table:
    """Return the rows of a kind, in order, each with its snapshot; `outcomes` are rows of OUTCOMES."""
    lists = outcomes[kind].combine_chunks()
    snapshots = outcomes.select([*SNAPSHOT]).take(pc.list_parent_indices(lists))
    columns = [*snapshots.columns, *pc.list_flatten(lists).flatten()]
    return in_order(pa.Table.from_arrays(columns, names=schema_of(kind).names).cast(schema_of(kind)))


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table."""
    for batch in table.to_batches(max_chunksize=CHUNK):
        yield from batch.to_pylist()


def table_of(rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Return the table of these rows."""
    rows = iter(rows)
    parts = takewhile(bool, (list(islice(rows, CHUNK)) for _ in repeat(None)))
    return pa.Table.from_batches((pa.RecordBatch.from_pylist(part, schema) for part in parts), schema)


def in_order(rows: pa.Table) -> pa.Table:
    """Return rows sorted by their plain columns from the first on."""
    plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return rows.sort_by([(name, "ascending") for name in plain])
