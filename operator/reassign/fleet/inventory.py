"""The files below the root of the snapshots, by name, length and time: what there is to read, before it is read.

Files of this machine, and of a volume that all executors have, are listed and read without Spark: bytes that go through
its JVM are copied several times. Files of any other storage Spark lists and reads, since it has the client and the
credentials.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from reassign.api.digest import hashed
from reassign.errors import PlanningError, Reason
from reassign.files import checks
from reassign.files.schema import SCHEMAS
from reassign.fleet.choose import FOLDER, File
from reassign.fleet.outcomes import rows_of
from reassign.fleet.storage import Storage, spark_errors_as

LOCAL = "file:"
ENDING = ".parquet"
Listed = tuple[File, datetime]
"""A file of which path and length are known, and when it was written."""
NEVER = datetime.fromtimestamp(0, UTC)
HALF_WRITTEN = (".", "_")
DAY = "date="
"""With which the names of folders begin that have snapshots' folders."""
PATTERNS = "*?[]{}\\"
LARGEST = 1 << 28
"""Bytes that a file may have in any case: about 20M replicas."""
MEMORY_PER_BYTE = 32
"""Of a JVM that reads two at once, since Spark copies each: two of 32 MiB fit into 1 GiB, and two of 64 do not."""


class Stored(NamedTuple):
    """Files that Spark reads: their content, and their URLs by path, as its metadata has them."""

    content: DataFrame
    urls: Mapping[str, str]

    def content_of(self, paths: Set[str]) -> DataFrame:
        """Return path and content of these files; Spark opens no other one, whatever is wrong with it."""
        others, url = self.urls.keys() - paths, sf.col("_metadata.file_path")
        few = min(others, paths, key=len)
        named = url.isin(*(self.urls[path] for path in few))
        content = self.content.where(named if few is paths else ~named) if few else self.content
        return content.select("path", "content")

    def listed(self, base: str) -> Iterator[Listed]:
        """Yield the files below the base."""
        cores = self.content.sparkSession.sparkContext.defaultParallelism
        rows = self.content.select("path", "length", "modificationTime").coalesce(cores).toArrow()
        statuses = {row["path"]: (row["length"], row["modificationTime"]) for row in rows_of(rows)}
        for path in self.urls:
            below = path.removeprefix(base).lstrip("/")
            if not any(part.startswith(HALF_WRITTEN) for part in below.split("/")):
                length, written = statuses.get(path, (0, NEVER))  # Spark has no row of an empty file
                yield File(below, length), written


class Inventory(NamedTuple):
    """What there is below a root; `base` is the root as paths of files begin with it."""

    spark: SparkSession
    base: str
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
            stored, most = _stored(spark, base), largest(spark)
            listed = stored.listed(base)
        found = sorted((_bounded(file, most), written) for file, written in listed)
    _refuse_none(root, [file.path for file, _ in found])
    counted = [
        [file.path, file.length, file.problem, written.isoformat()]
        for file, written in found
        if file.table in SCHEMAS  # others do not count, such as those that a run writes below the root
    ]
    return Inventory(spark, base, tuple(file for file, _ in found), hashed(counted), stored)


def _bounded(file: File, most: int) -> File:
    if file.length <= most:
        return file
    why = f"it has {file.length:,} bytes, and up to {most:,} are read"
    return file._replace(kind=checks.Kind.UNREADABLE, problem=why)


def largest(spark: SparkSession) -> int:
    """Return how many bytes a file may have that Spark reads, or else its memory might not suffice."""
    context: Any = spark.sparkContext
    memory = f"spark.{'driver' if context.master.startswith('local') else 'executor'}.memory"
    read_size = context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes
    return min(LARGEST, int(read_size(context.getConf().get(memory, "1g"))) // MEMORY_PER_BYTE)


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


def _walked(base: str, below: str = "") -> Iterator[Listed]:
    """Yield the files of a folder below the base, and of the folders in it."""
    folder = f"{base}/{below}" if below else base
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if not entry.name.startswith(HALF_WRITTEN)]
    except OSError as error:
        if FOLDER.fullmatch(below):
            for table in SCHEMAS:
                yield _unreadable(f"{below}/{table}{ENDING}", "its folder", error), NEVER
        if FOLDER.fullmatch(below) or (below and not below.startswith(DAY)):  # in others there is no snapshot of ours
            return
        reason = Reason.SPARK_FAILED if isinstance(error, FileNotFoundError) else Reason.CANNOT_BE_READ
        why = f"the folder {folder} cannot be read ({error.strerror}): check its storage, and run it again"
        raise PlanningError(reason, why) from None
    for entry in found:
        path = f"{below}/{entry.name}".lstrip("/")
        if _is_folder(entry) or FOLDER.fullmatch(path):
            if not (entry.is_symlink() and _is_around(entry.path, folder)):
                yield from _walked(base, path)
        elif entry.name.endswith(ENDING):
            text = os.fsencode(path).decode(errors="replace")
            try:
                status = entry.stat()
            except OSError as error:  # such as a link to nothing
                yield _unreadable(text, "it", error), NEVER
            else:
                yield File(text, status.st_size), datetime.fromtimestamp(status.st_mtime, UTC)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # of a link in a circle
        return entry.is_dir()
    return False


def _is_around(link: str, folder: str) -> bool:
    """Return whether a link leads to the folder that it is in, or to one around it."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(link))  # Path.resolve fails on circles


def _unreadable(path: str, what: str, error: OSError) -> File:
    return File(path, 0, kind=checks.Kind.UNREADABLE, problem=f"{what} cannot be read ({error.strerror})")


def _stored(spark: SparkSession, base: str) -> Stored:
    if set(base) & set(PATTERNS):
        why = f"{base} has one of {PATTERNS} in its name, which Spark reads as a pattern: give the folder another name"
        raise PlanningError(Reason.CANNOT_BE_READ, why)
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    content = files.option("pathGlobFilter", f"*{ENDING}").load(base)
    join: Any = spark.sparkContext._jvm.org.apache.hadoop.util.StringUtils.join  # type: ignore[union-attr]
    names = join("\n", content._jdf.inputFiles())
    plain = (re.sub(r"^(\w+):///", r"\1:/", name) for name in names.split("\n"))  # as rows have it
    return Stored(content, {path: url for url in plain if (path := unquote(url)).startswith(base)})
