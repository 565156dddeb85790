"""The files below the root of the snapshots, by name, length and time: what there is to read, before it is read.

Files of this machine, and of a volume that all executors have, are listed and read without Spark: bytes that go through
its JVM are copied several times. Files of any other storage Spark lists and reads, since it has the client and the
credentials.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reassign.api.digest import hashed
from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.files.schema import SCHEMAS
from reassign.files.snapshots import REPLACED
from reassign.fleet.choose import DAY, FOLDER, File, Kind
from reassign.fleet.job import not_there, take_one
from reassign.spark.storage import Storage, is_unreadable, spark_errors_as
from reassign.spark.stored import PATTERNS, Stored, find, is_pattern, largest

LOCAL = "file:"
ENDING = ".parquet"
Listed = tuple[File, str]
"""A file whose path and length are known, and when it was written."""
HALF_WRITTEN = (".", "_")
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
            raise not_there(root)
        if base.startswith(LOCAL):
            base, stored, most = base.removeprefix(LOCAL), None, LARGEST
            listed = _walked(base)
        else:
            stored, folders, unread = _found(spark, base)
            files, others = _files(spark, base, stored)
            most, listed = min(LARGEST, largest(spark)), chain(unread, others, _stored(files, folders))
        found = sorted((_bounded(file, most), written) for file, written in listed)
    _refuse_none(root, [file for file, _ in found])
    counted = [
        [file.path, file.length, file.problem, written]
        for file, written in found
        if file.table in SCHEMAS or file.kind  # others do not count, such as those that a run writes below the root
    ]
    return Inventory(spark, base, tuple(file for file, _ in found), hashed(counted), stored)


def unreadable(listing: Inventory, paths: Sequence[str]) -> dict[str, str]:
    """Return why some of these files cannot be read, by path, in a sentence each; none where workers read them."""
    if listing.stored is None:
        return {}
    why = Storage(listing.spark).unreadable(listing.base.rstrip("/"), paths)
    return {path: f"it cannot be read ({cause})" for path, cause in why.items()}


def without_unreadable(listing: Inventory) -> Inventory:
    """Return the inventory with why files cannot be read that Spark reads; each is tried."""
    why = unreadable(listing, [file.path for file in listing.files if file.table in SCHEMAS and file.kind is None])
    return listing._replace(files=tuple(marked(listing.files, why)))


def marked(files: Iterable[File], why: Mapping[str, str]) -> Iterator[File]:
    """Yield the files, those in `why` as ones that cannot be read."""
    for file in files:
        yield file._replace(kind=Kind.NOT_READ, problem=why[file.path]) if file.path in why else file


def _found(spark: SparkSession, base: str) -> tuple[Stored, list[str], list[Listed]]:
    """Return the files that Spark finds, the folders of clusters, and what stands for folders that cannot be listed.

    Spark lists all folders at once. Only where that fails, each is listed by itself.
    """
    storage, root = Storage(spark), base.rstrip("/")
    try:
        return find(spark, base, ENDING), storage.matching(base, FOLDERS), []
    except (PySparkException, Py4JJavaError):
        days = [name for name in storage.names(base) if DAY.fullmatch(name)]
        unread = storage.unlisted(root, days)
        below = (f"{day}/{name}" for day in days if day not in unread for name in storage.names(f"{root}/{day}"))
        clusters = [folder for folder in below if FOLDER.fullmatch(folder)]
        unread |= storage.unlisted(root, clusters)
        unread |= dict.fromkeys(filter(is_pattern, clusters), f"its name has one of {PATTERNS}")
        folders = [folder for folder in clusters if folder not in unread]
        if not unread or not folders:
            raise
        listed = [each for folder, why in unread.items() for each in _unlisted(folder, why)]
        return find(spark, base, ENDING, folders), folders, listed


def _files(spark: SparkSession, base: str, stored: Stored) -> tuple[list[tuple[str, int, str]], list[Listed]]:
    """Return the files that Spark can read, and what stands for the others; these are looked for where it fails."""
    try:
        return [*stored.listed(base)], []
    except (PySparkException, Py4JJavaError) as error:
        if not is_unreadable(error):
            raise
        below = {path.removeprefix(base).lstrip("/"): path for path in stored.urls}
        why = Storage(spark).unreadable(base.rstrip("/"), [*below])
        readable = {path for name, path in below.items() if name not in why}
        if not why or not readable:
            raise
        return [*stored.only(readable).listed(base)], [_unread(name, "it", cause) for name, cause in why.items()]


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


def _refuse_none(root: str, files: Sequence[File]) -> None:
    """Raise PlanningError where no cluster has a folder; where a day cannot be read, they may be there."""
    if any(file.cluster for file in files):
        return
    if closed := next((file for file in files if file.day), None):
        why = f"{root}/{closed.path}: {closed.problem}; check its storage, and run it again"
        raise PlanningError(Reason.CANNOT_BE_READ, why)
    if not files:
        why = f"{root} has no snapshot: {take_one(root)}"
    else:
        only = files[0].path
        why = f"{root} has no folders date=2026-01-31/cluster=main, only such as {only}: name the folder above them"
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
        if not below:
            why = f"the folder {folder} cannot be read ({error.strerror}): check its storage, and run it again"
            raise PlanningError(Reason.CANNOT_BE_READ, why) from None
        yield from _unlisted(below, error.strerror)
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
                yield _unread(path, "it", error.strerror)
            else:
                yield File(_text(path), status.st_size), str(status.st_mtime_ns)
        elif _leads_on(entry):
            yield from _walked(base, path, around | {this})


def _empty(folder: str, why: str = "its folder has no table") -> Listed:
    return File(_text(f"{folder}/brokers{ENDING}"), 0, kind=checks.Kind.MISSING, problem=why), ""


def _leads_on(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() or entry.is_dir()
    except OSError:
        return True  # what is wrong with it is said where it is listed


def _unlisted(folder: str, why: str | None) -> Iterator[Listed]:
    """Yield what stands for a folder that cannot be listed: a cluster's tables, or a day. Others have no snapshot."""
    if FOLDER.fullmatch(folder):
        yield from (_unread(f"{folder}/{table}{ENDING}", "its folder", why) for table in SCHEMAS)
    elif DAY.fullmatch(folder):
        yield _unread(folder, "it", why)


def _unread(path: str, what: str, why: str | None) -> Listed:
    return File(_text(path), 0, kind=Kind.NOT_READ, problem=f"{what} cannot be read ({why})"), ""


def _text(path: str) -> str:
    """Return a path as text; bytes that are no text are replaced."""
    return os.fsencode(path).decode(errors="replace")
