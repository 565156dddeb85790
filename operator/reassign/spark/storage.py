"""Small files on whatever file system Spark knows, by its own client (Hadoop's FileSystem)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.spark.executors import LOST

PIECE = 1 << 20
"""Bytes of a file that the JVM hands over at once: JVM and Python hold ten times as much of them meanwhile."""
UNREADABLE = "FAILED_READ_FILE"
"""What Spark says where a task cannot read a file."""
CALLS = 16
"""Files or folders of a storage that are tried at the same time."""
FAILURES: Mapping[tuple[str, ...], str] = {
    ("spark.driver.maxResultSize",): (
        "the fleet is too large for Spark's driver: raise spark.driver.maxResultSize, and spark.driver.memory with it"
    ),
    ("Java heap space", "GC overhead limit exceeded", "Cannot reserve"): (
        "Spark's JVM has too little memory: raise spark.driver.memory, and with executors spark.executor.memory"
    ),
    (UNREADABLE,): "a snapshot cannot be read: check the storage of the snapshots",
    (*LOST, "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"): "a worker of Spark's has ended: see Spark's log",
}
"""By what Spark says: what is wrong with Spark, or with what it reads, and what to do. Another run may succeed."""


def failure(error: Exception) -> PlanningError | None:
    """Return this error as one of FAILURES; None where it is none of them."""
    for texts, what in FAILURES.items():
        if any(text in str(error) for text in texts):
            message = f"{what}, and run it again: it goes on where it was ({first_cause(error)})"
            return PlanningError(Reason.SPARK_FAILED, message)
    return None


def is_unreadable(error: Exception) -> bool:
    """Whether a task could not read a file."""
    return UNREADABLE in str(error)


@contextmanager
def spark_errors_as(reason: Reason, what: str, todo: str) -> Iterator[None]:
    """Turn an exception of Spark, not the end of its JVM, into a PlanningError: `what` failed, its cause, `todo`."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise failure(error) or PlanningError(reason, f"{what} ({first_cause(error)}); {todo}") from None


def first_cause(error: Exception) -> str:
    """Return one line, of the exception that all others were raised from: they only name Spark's task."""
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        message = cause.getMessage() or cause.getClass().getSimpleName()
    else:
        message = str(error)
    return str(message).strip().partition("\n")[0].rstrip(".")


def _failures(call: Callable[[str], object], paths: Sequence[str]) -> dict[str, str]:
    """Return by path why a call of it fails."""

    def why(path: str) -> str | None:
        try:
            call(path)
        except Py4JJavaError as error:
            return first_cause(error)
        return None

    with ThreadPoolExecutor(CALLS) as pool:
        return {path: cause for path, cause in zip(paths, pool.map(why, paths), strict=True) if cause is not None}


class Storage:
    """Files by path or URL, on any file system that Spark knows; raises what py4j raises."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None where there is none."""
        files, place = self._at(path)
        if not files.exists(place):
            return None
        length, read = files.getFileStatus(place).getLen(), self._jvm.org.apache.commons.io.IOUtils.toByteArray
        with closing(files.open(place)) as stream:
            return b"".join(read(stream, min(PIECE, length - at)) for at in range(0, length, PIECE))

    def sha256(self, path: str) -> str:
        """Return a hash of a file's content; the JVM reads it, and not this process."""
        files, place = self._at(path)
        with closing(files.open(place)) as stream:
            return str(self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))

    def unreadable(self, base: str, files: Sequence[str]) -> dict[str, str]:
        """Read these files below a folder, and return why some of them cannot be read."""
        return _failures(lambda file: self.sha256(f"{base}/{file}"), files)

    def unlisted(self, base: str, folders: Sequence[str]) -> dict[str, str]:
        """List these folders below a folder, and return why some of them cannot be listed."""
        return _failures(lambda folder: self.names(f"{base}/{folder}"), folders)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files and folders in a folder, in order."""
        files, place = self._at(folder)
        return sorted(str(each.getPath().getName()) for each in files.listStatus(place))

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Return the paths below a folder that match a pattern of Hadoop's, by one call."""
        files, place = self._at(folder)
        statuses = files.globStatus(self._jvm.org.apache.hadoop.fs.Path(place, pattern))
        paths = self._jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(statuses)
        found = str(self._jvm.scala.Predef.genericWrapArray(paths).mkString("\n"))
        base = str(files.makeQualified(place).toString()).rstrip("/")
        return [path.removeprefix(f"{base}/") for path in found.split("\n") if path]

    def write(self, path: str, content: bytes) -> None:
        """Write a file, whole or not at all where the file system renames."""
        files, place = self._at(path)
        unfinished = place.suffix(".unfinished")
        with closing(files.create(unfinished, True)) as stream:
            for at in range(0, len(content), PIECE):
                stream.write(bytearray(content[at : at + PIECE]))
        files.delete(place, True)
        if not files.rename(unfinished, place):
            raise PlanningError(Reason.CANNOT_BE_WRITTEN, f"{unfinished} cannot be renamed: check its storage")

    def remove(self, path: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""
        files, place = self._at(path)
        if not files.delete(place, True) and files.exists(place):
            raise PlanningError(Reason.CANNOT_BE_WRITTEN, f"{place} cannot be removed: check its storage")

    def qualified(self, path: str) -> str | None:
        """Return a path as the tables of files have it, or None where nothing is there."""
        files, place = self._at(path)
        return str(files.makeQualified(place).toString()) if files.exists(place) else None

    def local(self, path: str) -> Path | None:
        """Return a path on this machine; None where it is elsewhere."""
        files, place = self._at(path)
        is_local = files.getUri().getScheme() == "file"
        return Path(files.makeQualified(place).toUri().getPath()) if is_local else None

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._conf), place
