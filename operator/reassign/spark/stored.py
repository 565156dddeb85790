"""Whole files that Spark reads, from any storage of which it has the client and the credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from reassign.errors import PlanningError, Reason

PATTERNS = "*?[]{}\\"
MEMORY_PER_BYTE = 32
"""The memory of a JVM for each byte of a file; it reads two files at once, and Spark copies each. Two of 32 MiB fit
into 1 GiB, and two of 64 do not."""


class Stored(NamedTuple):
    """The content of files, and their URLs by path, as Spark's metadata has them."""

    content: DataFrame
    urls: Mapping[str, str]

    def only(self, paths: Set[str]) -> Stored:
        """Return these files alone; Spark opens no other one, whatever is wrong with it."""
        others, url = self.urls.keys() - paths, sf.col("_metadata.file_path")
        few = min(others, paths, key=len)
        named = url.isin(*(self.urls[path] for path in few))
        content = self.content.where(named if few is paths else ~named) if few else self.content
        return Stored(content, {path: url for path, url in self.urls.items() if path in paths})

    def content_of(self, paths: Set[str]) -> DataFrame:
        """Return path and content of these files."""
        return self.only(paths).content.select("path", "content")

    def listed(self, base: str) -> Iterator[tuple[str, int, str]]:
        """Yield each file's path below the base, its length, and when it was written."""
        cores = self.content.sparkSession.sparkContext.defaultParallelism
        rows = self.content.select("path", "length", "modificationTime").coalesce(cores).toArrow().to_pydict()
        written = (time.isoformat() for time in rows["modificationTime"])
        statuses = dict(zip(rows["path"], zip(rows["length"], written, strict=True), strict=True))
        for path in self.urls:
            yield path.removeprefix(base).lstrip("/"), *statuses.get(path, (0, ""))  # Spark has no row of an empty file


def is_pattern(path: str) -> bool:
    """Whether Spark reads a path as a pattern, so that it cannot be given to it."""
    return not set(path).isdisjoint(PATTERNS)


def find(spark: SparkSession, base: str, ending: str, folders: Sequence[str] | None = None) -> Stored:
    """Return the files below a folder with this ending, or below those `folders` in it alone.

    Raises PlanningError for a base whose name is a pattern; no folder's may be one (`is_pattern`).
    """
    places = [base] if folders is None else [f"{base.rstrip('/')}/{folder}" for folder in folders]
    if is_pattern(base):
        why = f"{base} has one of {PATTERNS} in its name, which Spark reads as a pattern"
        raise PlanningError(Reason.CANNOT_BE_READ, f"{why}: give the folder another name")
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").option("ignoreMissingFiles", "true")
    content = files.option("pathGlobFilter", f"*{ending}").load(places)
    join: Any = spark.sparkContext._jvm.org.apache.hadoop.util.StringUtils.join  # type: ignore[union-attr]
    names = join("\n", content._jdf.inputFiles())
    plain = (re.sub(r"^(\w+):///", r"\1:/", name) for name in names.split("\n"))  # as rows have it
    return Stored(content, {path: url for url in plain if (path := unquote(url)).startswith(base)})


def largest(spark: SparkSession) -> int:
    """Return how many bytes a file may have, for the memory of the process that reads it to suffice."""
    context: Any = spark.sparkContext
    memory = f"spark.{'driver' if context.master.startswith('local') else 'executor'}.memory"
    read_size = context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes
    return int(read_size(context.getConf().get(memory, "1g"))) // MEMORY_PER_BYTE
