"""The files below the root of the snapshots, by name, length and time: what there is to read, before it is read.

Files of this machine, and of a volume that all executors have, are listed and read without Spark: bytes that go through
its JVM are copied several times. Files of any other storage Spark lists and reads, since it has the client and the
credentials.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from reassign.api.digest import hashed
from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.files.schema import SCHEMAS
from reassign.files.snapshots import REPLACED
from reassign.fleet.choose import FOLDER, File, Kind
from reassign.spark.storage import Storage, spark_errors_as
from reassign.spark.stored import Stored, find, largest

LOCAL = "file:"
ENDING = ".parquet"
Listed = tuple[File, str]
"""A file whose path and length are known, and when it was written."""
HALF_WRITTEN = (".", "_")
DAY = re.compile(r"date=[^/]+")
FOLDERS = "date=*/cluster=*"
LARGEST = 1 << 28
"""Bytes that a file may have in any case: about 20M replicas."""


class Inventory(NamedTuple):
    """The files below a root."""

    spark: SparkSession
    base: str
    """The root as the paths of files begin with it; a URL where Spark reads."""
    files: tuple[File, ...]  # by path
    digest: str  # by which a change of a file is noticed without reading it
    stored: Stored | None  # None: workers read the files themselves


def take(spark: SparkSession, root: str) -> Inventory:
    """Return all tables below the root.

    Folders and files whose names begin with a dot or an underscore are half-written, and do not count.
    Raises PlanningError for a root that cannot be read, or has no snapshot.
    """
    todo = "name a folder that Spark can read, and check its storage"
    with spark_errors_as(Reason.CANNOT_BE_READ, f"the snapshots below {root} cannot be read", todo):
        base = Storage(spark).qualified(root)
        if base is None:
            why = f"there is no {root}: name the folder that has the snapshots, or {take_one(root)}"
            raise PlanningError(Reason.INVALID_SNAPSHOT, why)
        if base.startswith(LOCAL):
            base, stored, most = base.removeprefix(LOCAL), None, LARGEST
            listed = _walked(base)
        else:
            stored, most = find(spark, base, ENDING), min(LARGEST, largest(spark))
            listed = _stored(stored.listed(base), Storage(spark).matching(base, FOLDERS))
        found = sorted((_bounded(file, most), written) for file, written in listed)
    _refuse_none(root, [file.path for file, _ in found])
    counted = [
        [file.path, file.length, file.problem, written]
        for file, written in found
        if file.table in SCHEMAS  # others do not count, such as those that a run writes below the root
    ]
    return Inventory(spark, base, tuple(file for file, _ in found), hashed(counted), stored)


def _stored(listed: Iterable[tuple[str, int, str]], folders: Iterable[str]) -> Iterator[Listed]:
    """Yield the files that Spark lists, and a missing table for each cluster's folder that has none."""
    with_table = set()
    for path, length, written in listed:
        if any(part.startswith(HALF_WRITTEN) for part in path.split("/")):
            continue
        file = File(path, length)
        if file.table in SCHEMAS:
            with_table.add(path.rpartition("/")[0])
        yield file, written
    yield from (_empty(folder) for folder in folders if FOLDER.fullmatch(folder) and folder not in with_table)


def _bounded(file: File, most: int) -> File:
    if file.length <= most:
        return file
    why = f"it has {file.length:,} bytes, and up to {most:,} are read"
    return file._replace(kind=checks.Kind.UNREADABLE, problem=why)


def take_one(root: str) -> str:
    return f"take one with `kubectl kafka-reassign snapshot --into {root.rstrip('/')} --cluster main`"


def _refuse_none(root: str, paths: Sequence[str]) -> None:
    if not paths:
        why = f"{root} has no snapshot: {take_one(root)}"
    elif not any(FOLDER.fullmatch(path.rpartition("/")[0]) for path in paths):
        only = paths[0]
        why = f"{root} has no folders date=2026-01-31/cluster=main, only such as {only}: name the folder above them"
    else:
        return
    raise PlanningError(Reason.INVALID_SNAPSHOT, why)


def _walked(base: str, below: str = "", around: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Listed]:
    """Yield the files of a folder below the base, and of the folders in it; `around` are the folders that it is in."""
    folder = f"{base}/{below}" if below else base
    try:
        status = Path(folder).stat()
        this = status.st_dev, status.st_ino
        if this in around:
            raise OSError(errno.ELOOP, "it is a link to a folder around it")
        with os.scandir(folder) as entries:
            everything = [*entries]
    except OSError as error:
        yield from _unlisted(folder, below, error)
        return
    found = [entry for entry in everything if not entry.name.startswith(HALF_WRITTEN)]
    names = {entry.name for entry in found}
    if DAY.fullmatch(below):
        earlier = filter(None, (REPLACED.fullmatch(entry.name) for entry in everything))
        gone = {match["folder"] for match in earlier} - names
        yield from (_empty(f"{below}/{name}", "it was about to be replaced") for name in sorted(gone))
    if FOLDER.fullmatch(below) and not names & {f"{table}{ENDING}" for table in SCHEMAS}:
        yield _empty(below)
    for entry in found:
        path = f"{below}/{entry.name}".lstrip("/")
        if entry.name.endswith(ENDING):
            try:
                status = entry.stat()
            except OSError as error:  # such as of a link to nothing
                yield _unread(path, "it", error)
            else:
                yield File(_text(path), status.st_size), str(status.st_mtime_ns)
        elif entry.is_symlink() or entry.is_dir():
            yield from _walked(base, path, around | {this})


def _empty(folder: str, why: str = "its folder has no table") -> Listed:
    return File(_text(f"{folder}/brokers{ENDING}"), 0, kind=checks.Kind.MISSING, problem=why), ""


def _unlisted(folder: str, below: str, error: OSError) -> Iterator[Listed]:
    """Yield the files of a cluster's folder that cannot be listed; raise PlanningError for the root, and for a day.

    Any other folder has no snapshot.
    """
    has_gone = isinstance(error, FileNotFoundError) and not Path(folder).is_symlink()
    if FOLDER.fullmatch(below) and not has_gone:
        yield from (_unread(f"{below}/{table}{ENDING}", "its folder", error) for table in SCHEMAS)
    elif not below or DAY.fullmatch(below) or FOLDER.fullmatch(below):
        why = f"the folder {folder} cannot be read ({error.strerror}): check its storage, and run it again"
        raise PlanningError(Reason.SPARK_FAILED if has_gone else Reason.CANNOT_BE_READ, why)


def _unread(path: str, what: str, error: OSError) -> Listed:
    return File(_text(path), 0, kind=Kind.NOT_READ, problem=f"{what} cannot be read ({error.strerror})"), ""


def _text(path: str) -> str:
    """Return a path as text; bytes that are no text are replaced."""
    return os.fsencode(path).decode(errors="replace")
