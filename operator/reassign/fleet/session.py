"""The Spark session of a run: whatever `spark-submit` was told wins, and what it was not told suits short jobs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

import reassign
from reassign.errors import Reason, ReassignError
from reassign.fleet.storage import first_cause

LOG = Path(tempfile.gettempdir(), f"kafka-reassign-spark-{os.getuid()}.log")

SHOWN = 300

STARTED_BY_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""An environment variable, for programs that a JVM has started."""

LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # C1 alone: the better code of C2 is ready when a run is over, and making it takes a third of the processor time;
    # one thread that collects garbage: a heap half as large as G1's
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    # looking at files one by one takes less than a job does that looks at them
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}
"""On one machine nothing listens on its network, and what pays in hours does not in seconds."""

SHUFFLES = "spark.sql.shuffle.partitions"
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # it would end a job at each shuffle to look at sizes that we know
    # a snapshot's files have some kilobytes, and those of a large cluster some megabytes: both are split evenly
    "spark.sql.files.openCostInBytes": "32768",
    "spark.sql.files.maxPartitionBytes": "2097152",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a cluster may be called 0012
}


def start(master: str | None) -> SparkSession:
    """The session; `master` is Spark's master URL, None what spark-submit says, else all cores of this machine.

    On one machine all that the JVM has to say goes into a file, and not between what a command says. Raises
    ReassignError where there is no JVM to start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if STARTED_BY_SUBMIT in os.environ:
        SparkContext._ensure_initialized()  # a SparkConf knows what spark-submit was told only from then on
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    conf.setIfMissing("spark.master", "local[*]")
    local = (conf.get("spark.master") or "").startswith("local")
    for key, value in (DEFAULTS | (LOCAL if local else {})).items():
        conf.setIfMissing(key, value)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        paths = (str(Path(reassign.__file__).parents[1]), os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for the workers, however this was found
    try:
        with _stderr_of_children(LOG) if local else nullcontext():
            session = SparkSession.builder.appName("kafka-reassign-fleet").config(conf=conf).getOrCreate()
    except (PySparkRuntimeError, Py4JError, OSError) as error:
        raise ReassignError(
            Reason.SPARK_FAILED,
            f"Spark does not start ({first_cause(error)[:SHOWN]}): it needs Java 17 or 21, on the PATH or at "
            f"JAVA_HOME, a --master that it knows, and a folder for its own files (SPARK_LOCAL_DIRS); see {LOG}",
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    if SHUFFLES not in dict(session.sparkContext.getConf().getAll()):  # a fleet is small beside what Spark reckons with
        session.conf.set(SHUFFLES, session.sparkContext.defaultParallelism)
    return session


FULL = ("No space left on device", "Disk quota exceeded")
DENIED = ("Permission denied", "AccessControlException", "Read-only file system")


@contextmanager
def started(master: str | None) -> Iterator[SparkSession]:
    """A session while the block runs; what Spark raises becomes an error of ours: its own has a page of Java."""
    spark = start(master)
    try:
        yield spark
    except (PySparkException, Py4JError, OSError) as error:
        text = str(error)
        for known in (*FULL, *DENIED):
            if known in text:
                raise ReassignError(
                    Reason.CANNOT_BE_WRITTEN,
                    f"Spark cannot go on: {known}; mend that for the work folder, the snapshots and Spark's own "
                    "(SPARK_LOCAL_DIRS), and run it again: it goes on where it was",
                ) from None
        raise ReassignError(
            Reason.SPARK_FAILED,
            f"Spark has failed: {first_cause(error)[:SHOWN]}; see {LOG}, and run it again: it goes on where it was",
        ) from None
    finally:
        with suppress(Py4JError, OSError):  # of a JVM that has ended
            spark.stop()


@contextmanager
def _stderr_of_children(file: Path) -> Iterator[None]:
    """Processes that are started meanwhile write to this file what they write to stderr."""
    kept = os.dup(2)
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)
