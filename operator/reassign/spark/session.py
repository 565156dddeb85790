"""The Spark session of a run: the settings of `spark-submit` win, and the others suit short jobs."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import reassign
from reassign.errors import Reason, ReassignError
from reassign.spark import class_archive
from reassign.spark.class_archive import ClassArchive
from reassign.spark.storage import failure, first_cause

LOG = Path(tempfile.gettempdir(), f"kafka-reassign-spark-{os.getuid()}.log")
LOG_BYTES = 1 << 20
"""A run empties a log that is longer than this."""

SHOWN = 300

INTERRUPTED = threading.Event()
"""Set by a Ctrl-C, which has also ended the JVM: an error that follows is no failure of Spark."""

STARTED_BY_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""An environment variable, for programs that a JVM has started."""

C1 = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
"""C1 alone: the better code of C2 is ready when a run has ended, and making it takes a third of the processor time. One
thread collects garbage: the heap is half as large as with G1."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # listing files one by one takes less than a job that lists them
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.python.daemon.module": "reassign.fleet.daemon",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",  # or SQL would start another daemon
    # the other one looks for a file of checksums beside each file
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.shuffle.compress": "false",  # the files are compressed
}
"""On one machine nothing listens on its network, and what pays in hours does not in seconds."""

SHUFFLES = "spark.sql.shuffle.partitions"
MOST_READERS, READERS_PER_CORE = "spark.sql.files.maxPartitionNum", 16
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # it would end a job at each shuffle to measure sizes that we know
    # a snapshot's files have some kilobytes, and those of a large cluster some megabytes: both are split evenly
    "spark.sql.files.openCostInBytes": "32768",
    "spark.sql.files.maxPartitionBytes": "2097152",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",  # of files that a worker holds
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a cluster may be called 0012
}


def start(master: str | None, archive: ClassArchive | None = None) -> SparkSession:
    """Start the session at `master`, or where spark-submit says (None), else on all cores of this machine.

    On one machine the JVM's output goes into a file, not between the output of a command, and the JVM reads or makes
    the archive of classes. Raises ReassignError where there is no JVM to start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if STARTED_BY_SUBMIT in os.environ:
        SparkContext._ensure_initialized()  # a SparkConf has the settings of spark-submit only from then on
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    conf.setAppName("kafka-reassign-fleet")
    conf.setIfMissing("spark.master", "local[*]")
    local = _is_local(conf.get("spark.master"))
    java = {JAVA_OPTIONS: f"{C1} {archive.options}" if archive else C1}
    for key, value in (DEFAULTS | (LOCAL | java if local else {})).items():
        conf.setIfMissing(key, value)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if os.environ.get("LC_ALL") in ("C", "POSIX"):
            os.environ["LC_ALL"] = "C.UTF-8"  # or a JVM finds no file that has another letter in its name
        paths = (str(Path(reassign.__file__).parents[1]), os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for the workers, however this was found
    try:
        with _output_of_children() if local else nullcontext():
            with _uninterrupted():
                SparkContext._ensure_initialized(conf=conf)
            _end_on_ctrl_c()
            context = SparkContext.getOrCreate(conf)
            if local:
                threading.Thread(target=_begin_daemon, args=(context,), daemon=True).start()
            _end_on_ctrl_c()  # PySpark has set its own, which asks a JVM that is in the middle of an answer
            session = SparkSession.builder.config(conf=conf).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        if not session.sparkContext.getConf().contains(SHUFFLES):  # a fleet is small beside what Spark reckons with
            session.conf.set(SHUFFLES, session.sparkContext.defaultParallelism)
        if not session.sparkContext.getConf().contains(MOST_READERS):
            session.conf.set(MOST_READERS, READERS_PER_CORE * session.sparkContext.defaultParallelism)
    except (PySparkException, Py4JError, OSError) as error:
        raise ReassignError(
            Reason.SPARK_FAILED,
            f"Spark does not start ({first_cause(error)[:SHOWN]}): it needs Java 17 or 21, on the PATH or at "
            "JAVA_HOME, a --master that it knows and can reach, and a folder for its own files (SPARK_LOCAL_DIRS); see "
            f"{_log(conf.get('spark.master'))}",
        ) from None
    return session


def _begin_daemon(context: SparkContext) -> None:
    """Have the daemon of Python's workers load what it needs while the session starts and the driver lists files."""
    with suppress(Exception):  # what is wrong is told where it is asked for, and the session may end meanwhile
        context.parallelize([0], 1).foreach(lambda _: None)


for _logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    PySparkLogger.getLogger(_logger).disabled = True  # they print an error, with Java's stack, before it is raised
for _server in (AccumulatorTCPServer, AccumulatorUnixServer):
    _server.handle_error = lambda *_: None  # type: ignore[method-assign]  # or a page, when the JVM ends before them

FULL = ("No space left on device", "Disk quota exceeded")
DENIED = ("Permission denied", "AccessControlException", "Read-only file system")


@contextmanager
def started(master: str | None) -> Iterator[SparkSession]:
    """Run a session for the block; an error of Spark becomes one of ours, since its own has a page of Java."""
    try:
        own = STARTED_BY_SUBMIT not in os.environ and _is_local(master or "local")
        archive = class_archive.find() if own else None
        spark = start(master, archive)
        whole = False
        try:
            yield spark
            whole = True
        except (PySparkException, Py4JError, OSError) as error:
            raise _told(error, _log(spark.sparkContext.master)) from None
        finally:
            if not INTERRUPTED.is_set():
                _stop(spark, archive if whole else None)
    except Exception as error:
        if INTERRUPTED.is_set():  # and this is what became of it
            raise KeyboardInterrupt from None
        if isinstance(error, ReassignError):
            raise
        with open(_log_file(), "a") as log:
            traceback.print_exc(file=log)
        why = f"{type(error).__name__}: {error}"[:SHOWN]
        raise ReassignError(
            Reason.SPARK_FAILED, f"this program has failed ({why}); please report it, with the end of {LOG}"
        ) from None


def _is_local(master: str | None) -> bool:
    return (master or "").startswith("local")


def _log(master: str | None) -> str:
    return str(LOG) if _is_local(master) else "its output above"


def _told(error: Exception, log: str) -> ReassignError:
    for known in (*FULL, *DENIED):
        if known in str(error):
            return ReassignError(
                Reason.CANNOT_BE_WRITTEN,
                f"Spark cannot go on: {known}; fix that for the work folder, the snapshots and Spark's own "
                "(SPARK_LOCAL_DIRS), and run it again: it goes on where it was",
            )
    cause = "its JVM has ended" if isinstance(error, ConnectionError) else first_cause(error)[:SHOWN]
    return failure(error) or ReassignError(
        Reason.SPARK_FAILED,
        f"Spark has failed: {cause}; see {log}, and run it again: it goes on where it was",
    )


def _stop(spark: SparkSession, archive: ClassArchive | None) -> None:
    """Stop the session, and finish the archive of a whole run; PySpark would warn where the JVM has ended before."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm:
        _end_daemon(jvm.pid)
    with suppress(Py4JError, OSError), warnings.catch_warnings(action="ignore"):
        spark.stop()
        if archive and jvm:
            archive.finish(jvm)


def _end_daemon(jvm: int) -> None:
    """End the daemon of Python's workers, for which Spark would wait as long as it compiles the planner."""
    for children in Path(f"/proc/{jvm}/task").glob("*/children"):
        with suppress(OSError):  # of a thread or a process that has ended meanwhile
            for child in children.read_text().split():
                os.kill(int(child), signal.SIGTERM)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay a Ctrl-C to the end of the block, when there is a JVM that can be stopped."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_on_ctrl_c() -> None:
    """Let a Ctrl-C end the JVM, so that no thread waits for it any longer."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None or threading.current_thread() is not threading.main_thread():
        return  # spark-submit's, which ends us

    def end(*_: Any) -> NoReturn:
        INTERRUPTED.set()
        sys.unraisablehook = lambda _: None  # inside a finalizer, Python would print the interrupt and drop it
        jvm.terminate()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end)


@contextmanager
def _output_of_children() -> Iterator[None]:
    """Have processes that are started in the block write their output to the log."""
    sys.stdout.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    log = _log_file()
    if os.fstat(log).st_size > LOG_BYTES:
        os.ftruncate(log, 0)
    try:
        for number in kept:
            os.dup2(log, number)
        yield
    finally:
        for number, own in kept.items():
            os.dup2(own, number)
            os.close(own)
        os.close(log)


def _log_file() -> int:
    """Open the log of all our runs, for us alone; it may be no link, since its folder may be open to all."""
    return os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_APPEND, 0o600)
