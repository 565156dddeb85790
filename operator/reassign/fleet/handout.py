"""Spark hands out snapshots: the files of each to the one function that makes its outcome.

One shuffle brings the files of a snapshot together, as bytes, or as paths where workers read them. They are packed into
tasks by size, the largest first, since the largest cluster's plan is one task, whatever there are of cores.
"""

from __future__ import annotations

import heapq
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from reassign.fleet.choose import File, Folder, Kind
from reassign.fleet.cluster import lost_outcome, outcome_of
from reassign.fleet.inventory import Inventory
from reassign.fleet.outcomes import OUTCOMES, SNAPSHOT, Row, batch_of, split, table_of
from reassign.fleet.policy import FleetPolicy
from reassign.spark.executors import slots
from reassign.spark.own_process import ProcessEndedError, in_own_process

LARGE = 1 << 22
"""A planned snapshot with files of so many bytes or more has a process of its own: about 300k replicas."""
SECONDS, SECONDS_PER_MIB = 600, 100
"""A snapshot's time limit, and more for each MiB: a hundred times what a plan takes."""
HANDED_OUT = pa.schema(
    [
        *((name, pa.string()) for name in ("path", "file", "cluster", "date")),
        ("length", pa.int64()),
        ("newest", pa.bool_()),
        ("task", pa.int32()),  # no other type: Spark would cast it, and shuffle once more
    ]
)
"""The row of a file that is handed out, beside its content where Spark reads it."""

BATCH_BYTES = 1 << 20
"""Bytes of files whose outcomes are one batch: each batch costs Spark a millisecond."""
PLANNING = 16
"""How many times longer a snapshot takes that is planned than one that is only read for history."""
TASKS_PER_CORE = 4
"""Few, since each takes 0.1 s of its own, and enough that little is left at the end."""


class Handed(NamedTuple):
    """A file of a snapshot."""

    file: str  # its path below the root
    path: str
    length: int
    content: pa.Buffer | None  # None: it is read at its path


def outcomes(
    inventory: Inventory,
    snapshots: Mapping[Folder, Sequence[File]],
    newest: Collection[Folder],
    policy: FleetPolicy,
    own_process_from: int = LARGE,
) -> DataFrame:
    """Return rows of OUTCOMES that Spark keeps, of these snapshots; only the `newest` are planned.

    A snapshot that is planned has a process of its own from `own_process_from` bytes on, any other one from PLANNING
    times as many on.
    """
    spark = inventory.spark
    sizes = {folder: sum(file.length for file in files) for folder, files in snapshots.items()}
    if not any(sizes.values()):
        return spark.createDataFrame(OUTCOMES.empty_table())
    tasks = min(len(sizes), TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    work = {folder: _work(size, folder in newest) for folder, size in sizes.items()}
    task_of = packed(work, tasks)
    rows_of_files = (
        {
            **folder._asdict(),
            "path": f"{inventory.base.rstrip('/')}/{file.path}",
            "file": file.path,
            "length": file.length,
            "newest": folder in newest,
            "task": task_of[folder],
        }
        for folder in sizes
        for file in snapshots[folder]
        if file.length
    )
    files = table_of(rows_of_files, HANDED_OUT)
    rows = spark.createDataFrame(files)
    if inventory.stored:
        rows = inventory.stored.content_of({*files["path"].to_pylist()}).join(sf.broadcast(rows), "path")
    packed_rows = rows.repartitionById(tasks, "task").sortWithinPartitions(*SNAPSHOT)
    own = sum(each >= own_process_from * PLANNING for each in work.values())
    processes = min(slots(spark.sparkContext), max(own, 1))
    of_task = _function(policy.model_dump_json(by_alias=True, exclude_unset=True), own_process_from, processes)
    found = packed_rows.mapInArrow(of_task, from_arrow_schema(OUTCOMES))
    # no cache, from which a lost executor's rows would be made anew when others have been read, and might be different
    return found.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _work(size: int, newest: bool) -> int:
    return size * PLANNING if newest else size


def packed(work: Mapping[Folder, int], tasks: int) -> dict[Folder, int]:
    """Return a task for each snapshot: the largest first, each to the task that has least so far."""
    heap = [(0, task) for task in range(tasks)]
    task_of = {}
    for folder, size in sorted(work.items(), key=lambda item: (-item[1], item[0])):
        load, task = heapq.heappop(heap)
        task_of[folder] = task
        heapq.heappush(heap, (load + size + 1, task))
    return task_of


def _function(
    policy: str, own_process_from: int, processes: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that Python's workers run for a task; it carries the policy as text.

    At most `processes` of an executor's snapshots have processes of their own at the same time.
    """

    def outcome_with(terms: FleetPolicy, folder: Folder, newest: bool, handed: Iterable[Handed]) -> Row:
        contents, unread = {}, list[File]()
        for each in handed:
            try:
                content = content_at(each.path) if each.content is None else each.content
                if content.size == each.length:  # else it has changed, and the driver finds it missing
                    contents[each.file] = content
            except FileNotFoundError:
                pass  # as well
            except OSError as error:
                problem = f"it cannot be read ({error.strerror})"
                unread.append(File(each.file, each.length, kind=Kind.NOT_READ, problem=problem))
        return outcome_of(folder, contents, terms, newest, unread)

    def of_task(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, size, terms = list[Row](), 0, FleetPolicy.model_validate_json(policy)
        for folder, newest, handed in snapshots_of(files):
            outcome = partial(outcome_with, terms, folder, newest, handed)
            of_one = sum(each.length for each in handed)
            seconds = SECONDS + SECONDS_PER_MIB * (of_one >> 20)
            if _work(of_one, newest) >= own_process_from * PLANNING:
                try:
                    yield from in_own_process(partial(_table_of, outcome), seconds, processes).to_batches()
                except ProcessEndedError as error:
                    yield batch_of([lost_outcome(folder, {each.file: each.length for each in handed}, str(error))])
                continue
            signal.alarm(seconds)  # which ends this worker; then each snapshot has a process of its own
            try:
                rows += split(outcome())
            finally:
                signal.alarm(0)
            size += of_one
            if size >= BATCH_BYTES:
                yield batch_of(rows)
                rows, size = [], 0
        yield batch_of(rows)

    return of_task


def content_at(path: str) -> pa.Buffer:
    return pa.py_buffer(Path(path).read_bytes())


def _table_of(outcome: Callable[[], Row]) -> pa.Table:
    return pa.Table.from_batches([batch_of([part]) for part in split(outcome())])


def snapshots_of(files: Iterable[pa.RecordBatch]) -> Iterator[tuple[Folder, bool, list[Handed]]]:
    """Yield each snapshot, whether it is its cluster's newest, and its files; a snapshot's files follow each other."""
    for (date, cluster, newest), of_one in groupby(_rows(files), key=lambda row: row[0]):
        yield Folder(date, cluster), newest, [handed for _, handed in of_one]


def _rows(files: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, str, bool], Handed]]:
    for batch in files:
        plain = batch.select(["date", "cluster", "newest", "file", "path", "length"]).to_pydict().values()
        contents: Iterable[Any] = repeat(None)
        if "content" in batch.schema.names:
            contents = (content.as_buffer() for content in batch["content"])
        for row, content in zip(zip(*plain, strict=True), contents, strict=False):
            date, cluster, newest, file, path, length = row
            yield (date, cluster, newest), Handed(file, path, length, content)
