"""The columns of a snapshot's files: plain ones, which Spark reads as they are.

Each row has its cluster and the time it was taken, so that files of many snapshots can be read as one table,
with folders such as `date=2026-01-31/cluster=main` above them. A change here is another version.
"""

from __future__ import annotations

import pyarrow as pa

from reassign.api.goal import MEASURES

METADATA_KEY = b"kafka.reassign.dev/snapshot"
"""Of each file's key-value metadata; its value is JSON: version, cluster_id, taken_at, and rows by table."""

_TAKEN = [
    pa.field("cluster_id", pa.string(), nullable=False),
    pa.field("taken_at", pa.timestamp("us", tz="UTC"), nullable=False),
]
SCHEMAS = {
    "brokers": pa.schema(
        [
            *_TAKEN,
            pa.field("broker", pa.int32(), nullable=False),
            pa.field("rack", pa.string()),
            pa.field("alive", pa.bool_(), nullable=False),
            pa.field("registered", pa.bool_(), nullable=False),  # alive, or fenced
        ]
    ),
    "log_dirs": pa.schema(
        [
            *_TAKEN,
            pa.field("broker", pa.int32(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("total_bytes", pa.int64()),  # of the volume; null where the broker does not say
            pa.field("usable_bytes", pa.int64()),
            pa.field("cordoned", pa.bool_(), nullable=False),
            pa.field("online", pa.bool_(), nullable=False),
        ]
    ),
    "partitions": pa.schema(
        [
            *_TAKEN,
            pa.field("topic", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("replicas", pa.list_(pa.int32()), nullable=False),  # the first is the preferred leader
            pa.field("log_dirs", pa.list_(pa.string()), nullable=False),  # of each replica; null: not known
            *(pa.field(measure.column, pa.int64()) for measure in MEASURES),  # of one replica; null: not known
            pa.field("in_flight", pa.bool_(), nullable=False),  # then the replicas are those of its target
            pa.field("leader", pa.int32()),  # null: none
            pa.field("isr", pa.list_(pa.int32()), nullable=False),
        ]
    ),
    "configs": pa.schema(
        [
            *_TAKEN,
            pa.field("kind", pa.string(), nullable=False),  # broker or topic
            pa.field("name", pa.string(), nullable=False),  # a broker's id, or a topic's name
            pa.field("key", pa.string(), nullable=False),
            pa.field("value", pa.string(), nullable=False),
        ]
    ),
    # what the other tables leave out: logs of a topic on a broker; a topic alone, which could not be read, or not its
    # configuration; or a broker alone, which did not report all of its log directories online
    "unseen": pa.schema(
        [
            *_TAKEN,
            pa.field("broker", pa.int32()),
            pa.field("topic", pa.string()),
            pa.field("logs", pa.int64()),
            pa.field("bytes", pa.int64()),  # of all these logs
        ]
    ),
}
VERSION = 4
TABLES = {2: frozenset(SCHEMAS) - {"unseen"}, 3: frozenset(SCHEMAS), VERSION: frozenset(SCHEMAS)}
"""The tables of a snapshot of each version that is read. What was not seen is not known of one of version 2."""

REGISTERED_SINCE = 4
"""The version that tells registered brokers from those that are alive. Of an earlier snapshot it is not known, and a
broker that was down counts as not registered: so it gives the plan that it gave before."""


def schema_of(name: str, version: int) -> pa.Schema:
    """Return the columns of a table as snapshots of a version have them."""
    schema = SCHEMAS[name]
    return schema.remove(schema.get_field_index("registered")) if _lacks_registered(name, version) else schema


def as_of_now(name: str, version: int, rows: pa.Table) -> pa.Table:
    """Return all columns of a table of that version, with those that later versions have beside them."""
    if not _lacks_registered(name, version):
        return rows
    return rows.append_column(SCHEMAS[name].field("registered"), rows["alive"])


def _lacks_registered(name: str, version: int) -> bool:
    return name == "brokers" and version < REGISTERED_SINCE
