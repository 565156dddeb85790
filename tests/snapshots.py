"""Snapshots of made clusters."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from reassign.files.schema import METADATA_KEY
from reassign.files.tables import Snapshot
from reassign.planning.problem.model import UNKNOWN, Cluster


def in_sync(cluster: Cluster, taken_at: datetime) -> Snapshot:
    """The snapshot of a cluster in which all is well: preferred leaders lead, and all replicas are in sync."""
    unknown_last = np.where(cluster.replicas == UNKNOWN, np.iinfo(np.int32).max, cluster.replicas)
    isr = np.sort(unknown_last, axis=1)
    leader = cluster.replicas[:, 0] if cluster.replicas.shape[1] else np.full(len(cluster.replicas), UNKNOWN, np.int32)
    return Snapshot(cluster, taken_at, leader, np.where(isr == np.iinfo(np.int32).max, UNKNOWN, isr).astype(np.int32))


def as_of_version_3(folder: Path) -> None:
    """Make of a snapshot one that does not tell registered brokers from those that are alive."""
    _as_of(folder, 3)


def as_of_version_2(folder: Path) -> None:
    """Make of a snapshot one that does not say what was not seen, either."""
    (folder / "unseen.parquet").unlink()
    _as_of(folder, 2)


def _as_of(folder: Path, version: int) -> None:
    for file in folder.iterdir():
        rows = pq.ParquetFile(file).read()
        about = json.loads(rows.schema.metadata[METADATA_KEY]) | {"version": version}
        about["rows"] = {name: number for name, number in about["rows"].items() if version > 2 or name != "unseen"}
        if "registered" in rows.column_names:
            rows = rows.drop_columns("registered")
        pq.write_table(rows.replace_schema_metadata({METADATA_KEY: json.dumps(about)}), file, write_page_checksum=True)
