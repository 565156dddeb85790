"""The files below the root of the snapshots, by name, length and time: what there is to read, before it is read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Set
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
EMPTY = 0, datetime.fromtimestamp(0, UTC)
"""Length and time of a file of which neither is known."""
PATTERNS = "*?[]{}\\"
LARGEST = 1 << 28
"""Bytes that a file may have in any case: about 20M replicas."""
MEMORY_PER_BYTE = 32
"""Of a JVM that reads two at once, since Spark copies each: two of 32 MiB fit into 1 GiB, and two of 64 do not."""


class Inventory(NamedTuple):
    """What there is below a root; `base` is the root as paths of files begin with it."""

    base: str
    files: tuple[File, ...]  # by path
    digest: str  # by which a change of a file is noticed without reading it
    content: DataFrame  # of all that is below the root
    urls: Mapping[str, str]  # by these paths, as Spark's metadata has them

    def content_of(self, paths: Set[str]) -> DataFrame:
        """Return path and content of these files; Spark opens no other one, whatever is wrong with it."""
        others, url = self.urls.keys() - paths, sf.col("_metadata.file_path")
        few = min(others, paths, key=len)
        named = url.isin(*(self.urls[path] for path in few))
        content = self.content.where(named if few is paths else ~named) if few else self.content
        return content.select("path", "content")


def take(spark: SparkSession, root: str) -> Inventory:
    """Return all tables below the root.

    Folders and files whose names begin with a dot or an underscore are half-written, and do not count.
    Raises PlanningError for a root that cannot be read, or has no snapshot.
    """
    if set(root) & set(PATTERNS):
        why = f"{root} has one of {PATTERNS} in its name, which Spark reads as a pattern: give the folder another name"
        raise PlanningError(Reason.CANNOT_BE_READ, why)
    todo = "name a folder that Spark can read, and check its storage"
    with spark_errors_as(Reason.CANNOT_BE_READ, f"the snapshots below {root} cannot be read", todo):
        base = Storage(spark).qualified(root)
        if base is None:
            why = f"there is no {root}: name the folder that has the snapshots, or {take_one(root)}"
            raise PlanningError(Reason.INVALID_SNAPSHOT, why)
        files = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        content = files.option("pathGlobFilter", "*.parquet").load(base)
        listed, urls = _listed(content, base)
        _refuse_none(root, listed)
    paths = sorted(listed)
    read, most = [], largest(spark)
    for file in paths:
        problem = _unreadable(f"{base}/{file.path}", file.length, most)
        read.append(file._replace(kind=checks.Kind.UNREADABLE, problem=problem) if problem else file)
    counted = [
        [file.path, file.length, file.problem, listed[path].isoformat()]
        for path, file in zip(paths, read, strict=True)
        if file.table in SCHEMAS  # others do not count, such as those that a run writes below the root
    ]
    return Inventory(base, tuple(read), hashed(counted), content, urls)


def largest(spark: SparkSession) -> int:
    """Return how many bytes a file may have, or else Spark's memory might not suffice."""
    context: Any = spark.sparkContext
    memory = f"spark.{'driver' if context.master.startswith('local') else 'executor'}.memory"
    read_size = context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes
    return min(LARGEST, int(read_size(context.getConf().get(memory, "1g"))) // MEMORY_PER_BYTE)


def _unreadable(path: str, length: int, most: int) -> str | None:
    """Return why a file is not read; of rights to files elsewhere Spark alone knows."""
    if length > most:
        return f"it has {length:,} bytes, and with its memory Spark reads up to {most:,}"
    if path.startswith(LOCAL) and not os.access(path.removeprefix(LOCAL), os.R_OK):
        return "it may not be read"
    return None


def take_one(root: str) -> str:
    return f"take one with `kubectl kafka-reassign snapshot --into {root.rstrip('/')} --cluster main`"


def _refuse_none(root: str, files: Iterable[File]) -> None:
    if not (some := sorted(file.path for file in files)):
        why = f"{root} has no snapshot: {take_one(root)}"
    elif not any(FOLDER.fullmatch(path.rpartition("/")[0]) for path in some):
        only = some[0] or root
        why = f"{root} has no folders date=2026-01-31/cluster=main, only such as {only}: name the folder above them"
    else:
        return
    raise PlanningError(Reason.INVALID_SNAPSHOT, why)


def _listed(content: DataFrame, base: str) -> tuple[dict[File, datetime], dict[str, str]]:
    """Return every file that counts, with its name and length alone, and when it was written; and all URLs by path."""
    context: Any = content.sparkSession.sparkContext
    names = context._jvm.org.apache.hadoop.util.StringUtils.join("\n", content._jdf.inputFiles())
    plain = (re.sub(r"^(\w+):///", r"\1:/", name) for name in names.split("\n"))  # as rows have it
    urls = {path: url for url in plain if (path := unquote(url)).startswith(base)}
    if base.startswith(LOCAL):
        statuses = {path: _status(path.removeprefix(LOCAL)) for path in urls}
    else:
        rows = content.select("path", "length", "modificationTime").coalesce(context.defaultParallelism)
        statuses = {row["path"]: (row["length"], row["modificationTime"]) for row in rows_of(rows.toArrow())}
    found = {}
    for path in urls:
        below = path.removeprefix(base).lstrip("/")
        if not any(part.startswith((".", "_")) for part in below.split("/")):
            length, time = statuses.get(path, EMPTY)  # Spark has no row of an empty file
            found[File(below, length)] = time
    return found, urls


def _status(path: str) -> tuple[int, datetime]:
    """The same as Spark says, without a job."""
    try:
        status = Path(path).stat()
    except OSError:  # it has gone meanwhile
        return EMPTY
    return status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)
