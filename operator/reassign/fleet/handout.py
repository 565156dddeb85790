"""Spark hands out snapshots: the files of each, as bytes, to the one function that answers for it (`cluster.answer`).

One shuffle brings the files of a snapshot together. They are packed into tasks by size, the largest first, since the
largest cluster's plan is one task, whatever there are of cores.
"""

from __future__ import annotations

import heapq
import os
import re
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from reassign.errors import PlanningError, Reason
from reassign.fleet.answers import ANSWERS, SNAPSHOT, Row, batch_of, split
from reassign.fleet.apart import LostError, apart
from reassign.fleet.choose import File, Folder
from reassign.fleet.cluster import answer, lost
from reassign.fleet.inventory import Inventory
from reassign.fleet.policy import Policy
from reassign.fleet.storage import first_cause

LARGE = 1 << 22
"""Bytes of files from which on a snapshot has a process of its own: about 300k replicas."""
SECONDS, SECONDS_PER_MIB = 600, 100
"""What a snapshot may take, by its bytes: a hundred times what a plan does, and ten minutes. Then it hangs."""
UNREAD = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "FileNotFoundException")
"""What Spark says where it cannot read a file."""
TOO_MUCH = "spark.driver.maxResultSize"
"""A setting that Spark names where its tasks return more to the driver."""
CRASHED = ("Python worker exited unexpectedly", "ExecutorLostFailure", "Connection reset")
"""What Spark says where a worker has died, one of many whose snapshots it had, or the whole executor."""
ASKED = pa.schema(
    [
        *((name, pa.string()) for name in ("path", "file", "cluster", "date")),
        ("newest", pa.bool_()),
        ("task", pa.int32()),  # as it is, without a cast, the id of a partition: or Spark partitions once more
    ]
)
"""What goes with each file."""
AT_ONCE = 1 << 20
"""Bytes of files that are answered for in one batch: each batch costs Spark a millisecond."""
PLANNED = 16
"""How many times as long a snapshot takes that is planned as one that only history is told from."""
TASKS_PER_CORE = 4
"""Few, since each takes 0.1 s of its own, and enough that what is left at the end is little."""


@contextmanager
def reading(root: str) -> Iterator[None]:
    """Raise PlanningError where a snapshot disappears meanwhile, its storage fails, or what is said is too much."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if TOO_MUCH in str(error):
            raise PlanningError(
                Reason.SPARK_FAILED,
                f"the fleet is too large for Spark's driver ({first_cause(error)}): raise {TOO_MUCH}, and "
                "spark.driver.memory with it, and run it again",
            ) from None
        if not any(text in str(error) for text in UNREAD):
            raise
        raise PlanningError(
            Reason.SPARK_FAILED,
            f"the snapshots below {root} cannot be read any more ({first_cause(error)}); check their storage, and run "
            "it again: it goes on where it was",
        ) from None


def answers(
    there: Inventory,
    snapshots: Mapping[Folder, Sequence[File]],
    newest: Collection[Folder],
    policy: Policy,
    apart_from: int = LARGE,
) -> DataFrame:
    """Return what is said of these snapshots, of the `newest` all of it, as rows of ANSWERS that Spark keeps.

    One of `apart_from` bytes or more has a process of its own.
    """
    spark = there.content.sparkSession
    sizes = {folder: sum(file.length for file in files) for folder, files in snapshots.items()}
    if not any(sizes.values()):
        return spark.createDataFrame(ANSWERS.empty_table())
    tasks = min(len(sizes), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    task_of = packed({folder: size * (PLANNED if folder in newest else 1) for folder, size in sizes.items()}, tasks)
    asked = [
        {
            **folder._asdict(),
            "path": f"{there.base.rstrip('/')}/{file.path}",
            "file": file.path,
            "newest": folder in newest,
            "task": task_of[folder],
        }
        for folder in sizes
        for file in snapshots[folder]
        if file.length
    ]
    content = there.content_of({each["path"] for each in asked})
    content = content.join(sf.broadcast(spark.createDataFrame(pa.Table.from_pylist(asked, ASKED))), "path")
    packed_rows = content.repartitionById(tasks, "task").sortWithinPartitions(*SNAPSHOT)
    at_once = min(slots(spark.sparkContext), max(sum(size >= apart_from for size in sizes.values()), 1))
    ask = _answerer(policy.model_dump_json(by_alias=True, exclude_unset=True), apart_from, at_once)
    return packed_rows.mapInArrow(ask, from_arrow_schema(ANSWERS)).persist(StorageLevel.DISK_ONLY)


def slots(context: SparkContext) -> int:
    """Return how many tasks an executor runs at once, or more where Spark does not say."""
    conf, master, cores = context.getConf(), context.master or "", str(context.defaultParallelism)
    if here := re.match(r"local(?:\[(\d+|\*))?", master):
        cores = str(os.cpu_count()) if here[1] == "*" else here[1] or "1"
    else:
        cores = conf.get("spark.executor.cores", "1" if master.startswith(("k8s", "yarn")) else cores)
    return max(int(cores) // int(conf.get("spark.task.cpus", "1")), 1)


def has_crashed(error: Exception) -> bool:
    """Return whether a worker has died, or failed. Then each snapshot is asked apart, to tell which one it was of."""
    return isinstance(error, PythonException) or any(text in str(error) for text in CRASHED)


def said_of(found: DataFrame, kind: str) -> DataFrame:
    """Return the rows of a kind with its own columns, each with its snapshot."""
    return found.select(*SNAPSHOT, sf.inline(kind))


def packed(work: Mapping[Folder, int], tasks: int) -> dict[Folder, int]:
    """Return a task for each snapshot: the largest first, each to the task that has least so far."""
    heap = [(0, task) for task in range(tasks)]
    task_of = {}
    for folder, size in sorted(work.items(), key=lambda item: (-item[1], item[0])):
        load, task = heapq.heappop(heap)
        task_of[folder] = task
        heapq.heappush(heap, (load + size + 1, task))
    return task_of


def _answerer(
    policy: str, apart_from: int, at_once: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that answers for the snapshots of a task, in Python's workers; it carries the policy as text.

    Of those that have processes of their own, so many may run `at_once` beside each other.
    """

    def of_task(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, size = list[Row](), 0
        for folder, newest, contents in snapshots_of(files):
            of_one = sum(content.size for content in contents.values())
            ask = partial(answer, folder, contents, _begun(policy), newest)
            seconds = SECONDS + SECONDS_PER_MIB * (of_one >> 20)
            if of_one >= apart_from:
                try:
                    yield from apart(partial(_asked, ask), seconds, at_once).to_batches()
                except LostError as error:
                    yield batch_of([lost(folder, contents, str(error))])
                continue
            signal.alarm(seconds)  # which ends this worker, and all of its snapshots are asked for apart
            try:
                rows += split(ask())
            finally:
                signal.alarm(0)
            size += of_one
            if size >= AT_ONCE:
                yield batch_of(rows)
                rows, size = [], 0
        yield batch_of(rows)

    return of_task


def _asked(ask: Callable[[], Row]) -> pa.Table:
    return pa.Table.from_batches([batch_of([each]) for each in split(ask())])


def snapshots_of(files: Iterable[pa.RecordBatch]) -> Iterator[tuple[Folder, bool, dict[str, pa.Buffer]]]:
    """Yield each snapshot, whether it is its cluster's newest, and its files by path; all files of one are in a row."""
    columns = ("date", "cluster", "newest", "file", "content")
    rows = (row for batch in files for row in zip(*(batch[name] for name in columns), strict=True))
    for (date, cluster, newest), of_one in groupby(rows, key=lambda row: tuple(each.as_py() for each in row[:3])):
        yield Folder(date, cluster), newest, {file.as_py(): content.as_buffer() for *_, file, content in of_one}


@cache
def _begun(policy: str) -> Policy:
    """Prepare a worker, once."""
    return Policy.model_validate_json(policy)
