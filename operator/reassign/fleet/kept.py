"""The tables of stages in the work folder: a folder for each, with a marker, written last, of what they were made from.

A table that a driver has no room for comes in parts, which are in a folder of their own: `plan/manifests/0.parquet`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from reassign.errors import PlanningError, Reason
from reassign.fleet.storage import Storage, spark_errors_as

MARKER = "_MADE_FROM"
Made = Mapping[str, pa.Table | Iterator[pa.Table]]
"""Tables by name, whole or in parts."""


class Kept:
    """The work folder. A stage whose marker still fits is read, not made again."""

    def __init__(self, spark: SparkSession, work: str) -> None:
        self._work, self._storage = work.rstrip("/"), Storage(spark)
        self._digests: dict[str, dict[str, str]] = {}  # by stage and file

    def stage(self, name: str, key: str, make: Callable[[], Made]) -> dict[str, pa.Table]:
        """Return a stage's tables, without those in parts; made anew unless they are there, made from the same."""
        with self._usable():
            if kept := self._kept(name, key):
                return kept
            self.forget(name)  # first: tables that are written anew must not pass for whole
        tables, digests = make(), dict[str, str]()
        for table, rows in tables.items():
            if isinstance(rows, pa.Table):
                digests[table] = self._write(name, table, rows)
                continue
            with self._usable():
                self._storage.remove(f"{self._work}/{name}/{table}")
            for number, part in enumerate(rows):
                digests[f"{table}/{number}"] = self._write(name, f"{table}/{number}", part)
        lines = (key, *(f"{digest} {file}" for file, digest in digests.items()))
        with self._usable():
            self._storage.write(self._marker(name), "\n".join(lines).encode())
        self._digests[name] = digests
        return {table: rows for table, rows in tables.items() if isinstance(rows, pa.Table)}

    def parts(self, name: str, table: str) -> Iterator[pa.Table]:
        """Read a table in parts, one after another."""
        for file, digest in self._digests[name].items():
            if not file.startswith(f"{table}/"):
                continue
            with self._usable():
                content = self._read(name, file, digest)
            if content is None:
                why = f"{self._path(name, file)} has changed meanwhile: run it again, which makes it anew"
                raise PlanningError(Reason.CANNOT_BE_WRITTEN, why)
            yield pq.read_table(content)

    def forget(self, name: str) -> None:
        """Have a stage made anew by the next run."""
        self._storage.remove(self._marker(name))

    def _kept(self, name: str, key: str) -> dict[str, pa.Table] | None:
        """None where there is no such stage, or one of its files is damaged."""
        tables, digests = {}, {}
        try:
            made_from, *lines = (self._storage.read(self._marker(name)) or b"").decode().split("\n")
            if made_from != key:
                return None
            for line in lines:
                digest, _, file = line.partition(" ")
                digests[file] = digest
                if (content := self._read(name, file, digest)) is None:
                    return None
                if "/" not in file:
                    tables[file] = pq.read_table(content)
        except (UnicodeDecodeError, Py4JJavaError):
            return None
        self._digests[name] = digests
        return tables

    def _read(self, name: str, file: str, digest: str) -> pa.BufferReader | None:
        """None where it is not what was written: Parquet's own checksums are of pages alone, not of columns' names."""
        content = self._storage.read(self._path(name, file)) or b""
        return pa.BufferReader(content) if hashlib.sha256(content).hexdigest() == digest else None

    def _write(self, name: str, file: str, rows: pa.Table) -> str:
        content = pa.BufferOutputStream()
        pq.write_table(rows, content, compression="zstd")
        written = content.getvalue().to_pybytes()
        with self._usable():
            self._storage.write(self._path(name, file), written)
        return hashlib.sha256(written).hexdigest()

    def _marker(self, name: str) -> str:
        return f"{self._work}/{name}/{MARKER}"

    def _path(self, name: str, file: str) -> str:
        return f"{self._work}/{name}/{file}.parquet"

    def _usable(self) -> AbstractContextManager[None]:
        todo = "fix that, or name another one, and run it again: it goes on where it was"
        return spark_errors_as(Reason.CANNOT_BE_WRITTEN, f"the work folder {self._work} cannot be used", todo)
