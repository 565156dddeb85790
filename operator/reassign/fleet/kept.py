"""The tables of a pass in a folder of the work folder, with a marker, written last, of what they were made from.

A table that a driver has no room for comes in parts, which are in a folder of their own: `pass/manifests/0.parquet`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.fleet.storage import Storage, spark_errors_as

FOLDER, MARKER = "pass", "_MADE_FROM"
Made = Iterator[tuple[str, pa.Table | Iterator[pa.Table]]]
"""Tables by name, whole or in parts."""


class Kept:
    """The work folder. What is there is read, not made again, where its marker still fits."""

    def __init__(self, spark: SparkSession, work: str) -> None:
        self._work, self._storage = work, Storage(spark)
        self._place = f"{work.rstrip('/')}/{FOLDER}"
        self._digests: dict[str, str] = {}  # by file

    def tables(self, key: str, make: Callable[[], Made]) -> dict[str, pa.Table]:
        """Return the tables, without those in parts; made anew unless they are there, made from the same."""
        with self._usable():
            if kept := self._kept(key):
                return kept
            self.forget()  # first: tables that are written anew must not pass for whole
        tables, digests = {}, {}
        for table, rows in make():
            if isinstance(rows, pa.Table):
                tables[table], digests[table] = rows, self._write(table, rows)
                continue
            with self._usable():
                self._storage.remove(f"{self._place}/{table}")
            for number, part in enumerate(rows):
                digests[f"{table}/{number}"] = self._write(f"{table}/{number}", part)
        lines = (key, *(f"{digest} {file}" for file, digest in digests.items()))
        with self._usable():
            self._storage.write(self._marker, "\n".join(lines).encode())
        self._digests = digests
        return tables

    def parts(self, table: str) -> Iterator[pa.Table]:
        """Read a table in parts, one after another."""
        for file, digest in self._digests.items():
            if not file.startswith(f"{table}/"):
                continue
            with self._usable():
                content = self._read(file, digest)
            if content is None:
                why = f"{self._path(file)} has changed meanwhile: run it again, which makes it anew"
                raise PlanningError(Reason.CANNOT_BE_WRITTEN, why)
            yield pq.read_table(content)

    def forget(self) -> None:
        """Have all made anew by the next run."""
        self._storage.remove(self._marker)

    def _kept(self, key: str) -> dict[str, pa.Table] | None:
        """None where there is nothing made from this, or one of its files is damaged."""
        tables, digests = {}, {}
        try:
            made_from, *lines = (self._storage.read(self._marker) or b"").decode().split("\n")
            if made_from != key:
                return None
            for line in lines:
                digest, _, file = line.partition(" ")
                digests[file] = digest
                if (content := self._read(file, digest)) is None:
                    return None
                if "/" not in file:
                    tables[file] = pq.read_table(content)
        except (UnicodeDecodeError, Py4JJavaError):
            return None
        self._digests = digests
        return tables

    def _read(self, file: str, digest: str) -> pa.BufferReader | None:
        """None where it is not what was written: Parquet's own checksums are of pages alone, not of columns' names."""
        content = self._storage.read(self._path(file)) or b""
        return pa.BufferReader(content) if hashlib.sha256(content).hexdigest() == digest else None

    def _write(self, file: str, rows: pa.Table) -> str:
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd")
        written = content.getvalue().to_pybytes()
        with self._usable():
            self._storage.write(self._path(file), written)
        return hashlib.sha256(written).hexdigest()

    @property
    def _marker(self) -> str:
        return f"{self._place}/{MARKER}"

    def _path(self, file: str) -> str:
        return f"{self._place}/{file}.parquet"

    def _usable(self) -> AbstractContextManager[None]:
        todo = "fix that, or name another one, and run it again: it goes on where it was"
        return spark_errors_as(Reason.CANNOT_BE_WRITTEN, f"the work folder {self._work} cannot be used", todo)
