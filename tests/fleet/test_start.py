"""The start of a run: the archive of the JVM's classes, and the daemon of Python's workers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from reassign.caches import of_user
from reassign.planning import machine_code
from reassign.spark import class_archive, session
from tests.fleet.program import program

STARTS = """
import sys
from pathlib import Path
from pyspark import SparkContext
from reassign.errors import Reason, ReassignError
from reassign.spark import session
with session.started("local[2]") as spark:
    maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
    print(spark.range(3).count(), "spark-classes" in maps)
    if len(sys.argv) > 1:
        raise ReassignError(Reason.SPARK_FAILED, "as a test wants it")
"""


@pytest.fixture
def without_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a cache with only the planner's machine code in it, which takes long to compile. The archive that is made
    goes into the user's cache: the tests after this one start with it."""
    [cache] = of_user()
    (code := cache / machine_code.NAME).mkdir(parents=True, exist_ok=True)
    (tmp_path / machine_code.NAME).symlink_to(code)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield
    if (made := tmp_path / class_archive.NAME).exists():
        shutil.copytree(made, cache / class_archive.NAME, dirs_exist_ok=True)


def said_by_a_start(*failing: str) -> str:
    """What a process that starts Spark says."""
    ran = program("-c", STARTS, *failing)
    assert bool(ran.code) == bool(failing)
    assert failing or not ran.err
    return ran.out.strip()


@pytest.mark.usefixtures("without_archive")
def test_the_first_whole_run_makes_an_archive_of_classes_for_later_ones() -> None:
    assert said_by_a_start("fails") == "3 False"
    assert said_by_a_start() == "3 False"
    session.LOG.write_bytes(long := b"long\n" * session.LOG_BYTES)
    assert said_by_a_start() == "3 True"
    assert long not in session.LOG.read_bytes()


def test_workers_are_forked_by_a_daemon_that_has_loaded_the_planner(spark: SparkSession) -> None:
    def look(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        list(rows)
        parent = Path(f"/proc/{os.getppid()}/cmdline").read_text()
        has = "reassign.fleet.cluster" in sys.modules and "reassign.fleet.daemon" in parent
        yield pa.RecordBatch.from_pydict({"has": [has]})

    assert [row.has for row in spark.range(0, 1, 1, 1).mapInArrow(look, "has boolean").collect()] == [True]


def test_a_start_keeps_what_another_run_logs_until_that_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # where no Java is, a start fails soon, and says so in the log
    for written, kept in ((b"of another run\n", True), (b"long\n" * session.LOG_BYTES, False)):
        with session.LOG.open("ab") as log:
            log.write(written)
        ran = program("-c", STARTS)
        assert (ran.code, "Spark does not start" in ran.err) == (1, True)
        logged = session.LOG.read_bytes()
        assert ((written in logged), str(tmp_path).encode() in logged) == (kept, True)


WANTS_MORE = """
from reassign.errors import ReassignError
from reassign.spark import session
try:
    with session.started("local[1]") as spark:
        spark._jvm.java.nio.ByteBuffer.allocate(2**31 - 9)
except ReassignError as error:
    print(error.message)
"""


def test_want_of_memory_in_the_jvm_is_a_sentence_that_names_the_setting() -> None:
    code, told, _ = program("-c", WANTS_MORE)
    assert code == 0
    assert told.startswith("Spark's JVM has too little memory: raise spark.driver.memory")
    assert told.count("\n") == 1
