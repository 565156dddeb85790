"""The tables of a pass in a folder of the work folder, with a marker, written last, of what they were made from.

A table that a driver has no room for is written by the executors, in parts, into a folder of its own: `pass/manifests`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from reassign.errors import PlanningError, Reason
from reassign.files.whole import alone_in
from reassign.spark.storage import Storage, spark_errors_as

FOLDER, MARKER, ENDING = "pass", "_MADE_FROM", ".parquet"
END = "whole"
"""The last line of a marker."""
PART_ROWS = 500
"""Rows of a part."""
NUMBERS = re.compile(r"^part-[0-9]+|-c[0-9]+\..*$")
"""What differs between the names of the parts of one write."""
Made = Iterator[tuple[str, pa.Table | DataFrame]]
"""Tables by name: the driver's, and those of executors."""


class Kept:
    """The work folder. A table in it is read, not made again, where the marker still fits."""

    def __init__(self, spark: SparkSession, work: str) -> None:
        self._work, self._storage = work, Storage(spark)
        self._place = f"{work.rstrip('/')}/{FOLDER}"
        self._marker = f"{self._place}/{MARKER}"
        self._digests: dict[str, str] = {}  # by file
        self.reused = False
        """Whether its tables are of a run before."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep the work folder for this run, if it is on this machine; raise PlanningError if another run has it."""
        with self._usable():
            return alone_in(self._storage.local(self._work))

    def tables(self, key: str, make: Callable[[], Made]) -> dict[str, pa.Table]:
        """Return the driver's tables; all tables are made anew unless they are there and were made from `key`."""
        with self._usable():
            if kept := self._kept(key):
                self.reused = True
                return kept
            self._storage.write(self._marker, b"")  # what cannot be written says so before the pass
        self.forget()  # first: tables that are written anew must not pass for whole
        tables, digests = {}, {}
        for table, rows in make():
            place, file = f"{self._place}/{table}", f"{table}{ENDING}"
            with self._usable():
                for old in (place, f"{self._place}/{file}"):  # a table can be the driver's now, and executors' before
                    self._storage.remove(old)
                if isinstance(rows, pa.Table):
                    tables[table], digests[file] = rows, self._write(file, rows)
                    continue
                rows.write.option("maxRecordsPerFile", PART_ROWS).parquet(place)
                parts = [name for name in self._storage.names(place) if name.endswith(ENDING)]
                if len({NUMBERS.sub("", name) for name in parts}) > 1:
                    why = f"another run writes to {place} too: wait until that has ended, and run it again"
                    raise PlanningError(Reason.CANNOT_BE_WRITTEN, why)
                digests |= {f"{table}/{part}": self._storage.sha256(f"{place}/{part}") for part in parts}
        lines = (key, *(f"{digest} {file}" for file, digest in digests.items()), END)
        with self._usable():
            self._storage.write(self._marker, "\n".join(lines).encode())
        self._digests = digests
        return tables

    def parts(self, table: str, columns: list[str]) -> Iterator[pa.Table]:
        """Read these columns of a table of executors in parts, one after another."""
        for file in self._digests:
            if not file.startswith(f"{table}/"):
                continue
            with self._usable():
                rows = self._read(file, columns)
            if rows is None:
                self.forget()
                why = f"{self._place}/{file} has changed meanwhile: run it again, which makes it anew"
                raise PlanningError(Reason.SPARK_FAILED, why)
            yield rows

    def forget(self) -> None:
        """Let the next run make all tables anew."""
        with self._usable():
            self._storage.remove(self._marker)

    def _kept(self, key: str) -> dict[str, pa.Table] | None:
        """Return the driver's tables as they are; None if they were made from another key, or a file is damaged."""
        tables = {}
        try:
            made_from, *lines, end = (self._storage.read(self._marker) or b"").decode().split("\n")
            if (made_from, end) != (key, END):
                return None
            self._digests = {file: digest for digest, file in (line.split(" ") for line in lines)}
            for file, digest in self._digests.items():
                if "/" in file:
                    if self._storage.sha256(f"{self._place}/{file}") != digest:
                        return None
                elif (rows := self._read(file)) is None:
                    return None
                else:
                    tables[file.removesuffix(ENDING)] = rows
        except (ValueError, Py4JJavaError):
            return None
        return tables

    def _read(self, file: str, columns: list[str] | None = None) -> pa.Table | None:
        """Return a file's table, or None if it was changed: Parquet's checksums are of pages, not of columns' names."""
        content = self._storage.read(f"{self._place}/{file}") or b""
        whole = hashlib.sha256(content).hexdigest() == self._digests[file]
        return pq.read_table(pa.BufferReader(content), columns=columns) if whole else None

    def _write(self, file: str, rows: pa.Table) -> str:
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd")
        written = content.getvalue().to_pybytes()
        self._storage.write(f"{self._place}/{file}", written)
        return hashlib.sha256(written).hexdigest()

    def _usable(self) -> AbstractContextManager[None]:
        todo = "fix that, or name another one, and run it again: it goes on where it was"
        return spark_errors_as(Reason.CANNOT_BE_WRITTEN, f"the work folder {self._work} cannot be used", todo)
