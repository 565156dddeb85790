"""The files below the root of the snapshots, each with its faults.

Spark lists and reads, so that any file system will do that Spark knows. All bytes are read, of older snapshots too: one
damaged file of a history would end the run of a fleet where Spark meets it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.fleet.choose import FOLDER, File, wanted
from reassign.fleet.storage import Storage, spark_errors_as

PATTERNS = "*?[]{}\\"

_INSPECTED = pa.schema(
    [(name, pa.string()) for name in ("path", "sha256", "cluster_id", "taken_at", "rows", "kind", "problem")]
)


def take(spark: SparkSession, root: str) -> tuple[File, ...]:
    """Return all tables below the root, by path, with the metadata and errors of those that count.

    Folders and files whose names begin with a dot or an underscore are half-written, and do not count.
    Raises PlanningError for a root that cannot be read, or has no snapshot.
    """
    if set(root) & set(PATTERNS):
        why = f"{root} has one of {PATTERNS} in its name, which Spark reads as a pattern: give the folder another name"
        raise PlanningError(Reason.CANNOT_BE_READ, why)
    todo = "name a folder that Spark can read, and check its storage"
    with spark_errors_as(Reason.CANNOT_BE_READ, f"the snapshots below {root} cannot be read", todo):
        base = Storage(spark).qualified(root)
        listed = list(_listed(spark, base)) if base else []
        files = {file.path: file for file in listed}
        _refuse_none(root, base, files)
        if unread := sorted(wanted(listed)):
            files |= {file.path: file for file in _read(spark, base or root, [files[path] for path in unread])}
    return tuple(files[path] for path in sorted(files))


def _refuse_none(root: str, base: str | None, paths: Iterable[str]) -> None:
    take_one = f"take one with `kubectl kafka-reassign snapshot --into {root.rstrip('/')} --cluster main`"
    if base is None:
        why = f"there is no {root}: name the folder that has the snapshots, or {take_one}"
    elif not (some := sorted(paths)):
        why = f"{root} has no snapshot: {take_one}"
    elif not any(FOLDER.fullmatch(path.rpartition("/")[0]) for path in some):
        only = some[0] or root
        why = f"{root} has no folders date=2026-01-31/cluster=main, only such as {only}: name the folder above them"
    else:
        return
    raise PlanningError(Reason.INVALID_SNAPSHOT, why)


def _listed(spark: SparkSession, base: str) -> Iterator[File]:
    """Yield every file, with its name and length alone."""
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    for row in files.load(base).select("path", "length").toArrow().to_pylist():
        path = row["path"].removeprefix(base).lstrip("/")
        if not any(part.startswith((".", "_")) for part in path.split("/")):
            yield File(path, row["length"])


def _read(spark: SparkSession, base: str, files: Sequence[File]) -> Iterator[File]:
    """Yield these files, with their metadata and faults."""
    by_path = {f"{base.rstrip('/')}/{file.path}": file for file in files}
    content = spark.read.format("binaryFile").load(list(by_path)).select("path", "content")
    content = content.coalesce(spark.sparkContext.defaultParallelism)  # each task has a worker to start
    for row in content.mapInArrow(_inspected, from_arrow_schema(_INSPECTED)).toArrow().to_pylist():
        file = by_path[row["path"]]
        metadata = None
        if row["cluster_id"] is not None:
            taken_at = datetime.fromisoformat(row["taken_at"])
            metadata = checks.Metadata(row["cluster_id"], taken_at, json.loads(row["rows"]))
        yield file._replace(sha256=row["sha256"], metadata=metadata, kind=row["kind"], problem=row["problem"])


def _inspected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `path` and `content` as those of _INSPECTED; runs in Python's workers."""
    for batch in batches:
        rows = [_look(path.as_py(), content.as_buffer()) for path, content in zip(*batch.columns, strict=True)]
        yield pa.RecordBatch.from_pylist(rows, schema=_INSPECTED)


def _look(path: str, content: pa.Buffer) -> dict[str, str]:
    row = {"path": path, "sha256": hashlib.sha256(content).hexdigest()}
    try:
        file = checks.opened(path, pa.BufferReader(content))
        about = checks.metadata_of(path, file)
        row |= {
            "cluster_id": about.cluster_id,
            "taken_at": about.taken_at.isoformat(),
            "rows": json.dumps(about.rows),
        }
        checks.table(path, File(path, content.size).table, file, about)
    except checks.UnusableFileError as error:
        row |= {"kind": error.kind, "problem": error.why}
    return row
