"""Errors that one file of a snapshot can have by itself, given as a path or as bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reassign.errors import PlanningError, Reason
from reassign.files.schema import METADATA_KEY, SCHEMAS, TABLES, as_of_now, schema_of

UNREADABLE = (pa.ArrowException, OSError, ValueError)
"""What the library raises for a file that is damaged; a name in it that is not text is a ValueError."""

IDENTITY = ("cluster_id", "taken_at")
"""Columns that have one value in all rows."""
MANY = 100_000
"""Rows from which on threads take less time than starting them does."""
AGAIN = "; take the snapshot again"


class Kind(StrEnum):
    """What is wrong with a file."""

    MISSING = "MissingTable"
    UNREADABLE = "UnreadableFile"
    FOREIGN = "ForeignFile"
    VERSION = "OtherVersion"
    INCOMPLETE = "IncompleteMetadata"
    COLUMNS = "OtherColumns"
    DAMAGED = "DamagedPage"
    ROWS = "OtherRowCount"
    OTHER = "OtherSnapshotRows"


class UnusableFileError(PlanningError):
    """A file that is no whole table of a snapshot of ours; `why` is a sentence without its name."""

    def __init__(self, path: Path | str, kind: Kind, why: str) -> None:
        super().__init__(Reason.INVALID_SNAPSHOT, f"{path} is no snapshot that can be used: {why}")
        self.kind = kind
        self.why = why


class Metadata(NamedTuple):
    """The snapshot that a file is a table of, by the file's metadata."""

    cluster_id: str
    taken_at: datetime
    rows: dict[str, int]  # of each table that its version has


def opened(path: Path | str, source: Path | pa.BufferReader) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(source, page_checksum_verification=True)
    except (FileNotFoundError, NotADirectoryError):
        path = Path(path)
        why = f"there is no {path.name}; name a folder that `snapshot` has written"
        raise UnusableFileError(path.parent, Kind.MISSING, why) from None
    except MemoryError:  # one of the library's is among those below, and says nothing of the file
        raise
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno:  # the others are of what is in it
            why = f"it cannot be read ({os.strerror(error.errno)}); let this program read it"
            raise UnusableFileError(path, Kind.UNREADABLE, why) from None
        why = f"it is cut short or no Parquet file ({_first_line(error)}){AGAIN}"
        raise UnusableFileError(path, Kind.UNREADABLE, why) from None


def metadata_of(path: Path | str, file: pq.ParquetFile) -> Metadata:
    try:
        about = _about(file)
        version = about["version"]
    except (*UNREADABLE, KeyError, TypeError, RecursionError):
        why = f"something else has written it{AGAIN}"
        raise UnusableFileError(path, Kind.FOREIGN, why) from None
    if type(version) is not int or version not in TABLES:
        *others, newest = TABLES
        readable = f"{', '.join(map(str, others))} and {newest}"
        why = f"it is of version {version}, this program reads versions {readable}{AGAIN}"
        raise UnusableFileError(path, Kind.VERSION, why)
    try:
        metadata = Metadata(
            about["cluster_id"],
            datetime.fromisoformat(about["taken_at"]).astimezone(UTC),
            {name: about["rows"][name] for name in SCHEMAS if name in TABLES[version]},
        )
        metadata.cluster_id.encode()
        zone = datetime.fromisoformat(about["taken_at"]).tzinfo
        if zone is not None and all(type(rows) is int and 0 <= rows < 1 << 63 for rows in metadata.rows.values()):
            return metadata
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        pass
    why = f"its metadata is not complete{AGAIN}"
    raise UnusableFileError(path, Kind.INCOMPLETE, why)


def _about(file: pq.ParquetFile) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((file.metadata.metadata or {})[METADATA_KEY])
    return about


def table(
    path: Path | str, name: str, file: pq.ParquetFile, about: Metadata, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return all rows of the file, which has the table of this name, with the columns of the newest version.

    Where `columns` are given only these are read, and no row is compared with the file's metadata.
    """
    if name not in about.rows:
        why = f"snapshots of its version have no such table{AGAIN}"
        raise UnusableFileError(path, Kind.OTHER, why)
    version: int = _about(file)["version"]
    if not file.schema_arrow.remove_metadata().equals(schema_of(name, version)):
        raise UnusableFileError(path, Kind.COLUMNS, f"its columns are others{AGAIN}")
    try:
        rows = file.read(columns=columns, use_threads=file.metadata.num_rows >= MANY)
        rows.validate(full=True)  # such as of text
    except MemoryError:  # one of the library's is among those below, and says nothing of the file
        raise
    except UNREADABLE as error:
        why = f"it is damaged ({_first_line(error)}){AGAIN}"
        raise UnusableFileError(path, Kind.DAMAGED, why) from None
    if rows.num_rows != about.rows[name]:
        why = f"it has {rows.num_rows} rows of {about.rows[name]}{AGAIN}"
        raise UnusableFileError(path, Kind.ROWS, why)
    if columns is None and any(pc.any(pc.not_equal(rows[name], getattr(about, name))).as_py() for name in IDENTITY):
        why = f"it has rows of several clusters, or of several times{AGAIN}"
        raise UnusableFileError(path, Kind.OTHER, why)
    return rows if columns is not None else as_of_now(name, version, rows)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
