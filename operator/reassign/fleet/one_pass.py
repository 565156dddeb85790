"""One job of Spark's over all snapshots, and a few over what it finds of days and clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from reassign.errors import PlanningError, Reason
from reassign.fleet.choose import Chosen, File, Folder, Verdict, checked, choose, presumed, wanted
from reassign.fleet.cluster import file_of, row_of
from reassign.fleet.handout import LARGE, outcomes
from reassign.fleet.history import history
from reassign.fleet.inventory import Inventory, marked, unreadable, without_unreadable
from reassign.fleet.job import Job
from reassign.fleet.kept import Made
from reassign.fleet.outcomes import (
    DETAILS,
    FILES,
    OF_CLUSTERS,
    SMALL,
    SNAPSHOT,
    TIME,
    of_kind,
    rows_of,
    schema_of,
    table_of,
)
from reassign.spark.executors import has_crashed
from reassign.spark.storage import is_unreadable
from reassign.text import listed

NEWEST = pa.schema([("cluster", pa.string()), ("cluster_id", pa.string()), ("taken_at", TIME)])
"""The columns of the clusters that count."""

Asked = Mapping[Folder, Sequence[File]]
"""The snapshots to read, with their files."""


class Read(NamedTuple):
    """Snapshots as they were read."""

    outcomes: DataFrame  # rows of OUTCOMES that Spark keeps
    files: list[File]
    chosen: Chosen
    small: pa.Table  # of the chosen newest ones, what a driver has room for


def one_pass(job: Job, listing: Inventory, now: datetime) -> Made:
    """Yield the tables of all files and verdicts, and of the clusters that count. Executors write the large ones.

    Snapshots that are dated later than `now` do not count. Raises PlanningError where no file can be read, and what
    Spark raises.
    """
    found, files, chosen, small = _read(job, listing, now)
    by_rows = [Verdict(**row) for row in rows_of(of_kind(small, "verdicts"))]
    counts = checked(chosen, (*chosen.verdicts, *by_rows))
    yield "files", table_of(map(row_of, files), pa.schema([*FILES.items()]))
    newest = ((one.folder.cluster, one.cluster_id, one.taken_at) for one in counts.newest)
    yield "newest", table_of((dict(zip(NEWEST.names, row, strict=True)) for row in newest), NEWEST)
    verdicts = chain(counts.quarantine, counts.notes)
    yield "verdicts", table_of((one._asdict() for one in verdicts), schema_of("verdicts"))
    for kind in OF_CLUSTERS:
        yield kind, of_kind(small, kind).drop_columns(["date"])
    yield from history(found, (*counts.newest, *counts.history)).items()
    spark = found.sparkSession
    these = table_of((one.folder._asdict() for one in chosen.newest), pa.schema([*SNAPSHOT.items()]))
    newest_rows = found.join(sf.broadcast(spark.createDataFrame(these)), [*SNAPSHOT], "semi")
    parts = newest_rows.coalesce(spark.sparkContext.defaultParallelism)  # a driver takes 40 ms to read each
    yield "details", parts.select(*SNAPSHOT, *DETAILS)
    rejected = parts.select(*SNAPSHOT, sf.inline("rejected"))
    has_rejected = any(verdict.quarantines for verdict in by_rows)
    yield "rejected", rejected if has_rejected else schema_of("rejected").empty_table()
    yield "manifests", parts.select("cluster", sf.inline("manifests"))


def _read(job: Job, listing: Inventory, now: datetime) -> Read:
    """Read each snapshot; where a worker dies, read all again, each in a process of its own.

    Where Spark cannot read a file, all are read again without those that cannot be read.
    """
    own_process_from, tried = LARGE, False
    while True:
        try:
            return _read_all(job, listing, own_process_from, now)
        except (PySparkException, Py4JError) as error:
            if is_unreadable(error) and listing.stored and not tried:
                tried, listing = True, without_unreadable(listing)
                if not any(wanted(listing.files, now).values()):
                    raise
            elif has_crashed(error) and own_process_from:
                own_process_from = 0
            else:
                raise


def _read_all(job: Job, listing: Inventory, own_process_from: int, now: datetime) -> Read:
    """Read each snapshot, and once more those that are newest by their content, but not by their folder's name."""
    asked = wanted(listing.files, now)
    newest = presumed(asked)
    read = partial(outcomes, listing, policy=job.policy, own_process_from=own_process_from)
    first = _collected(job, listing, asked, read(asked, newest), now)
    late = {one.folder for one in first.chosen.newest} - newest
    if not late:
        return first
    others = first.outcomes.where(~sf.concat_ws("/", "date", "cluster").isin(*map(str, late)))
    again = read({folder: asked[folder] for folder in late}, late)
    return _collected(job, listing, asked, others.unionAll(again), now)


def _collected(job: Job, listing: Inventory, asked: Asked, found: DataFrame, now: datetime) -> Read:
    small = found.select(*SNAPSHOT, *SMALL).toArrow()
    read = {file.path: file for file in map(file_of, rows_of(of_kind(small, "files")))}
    unread = {file.path for files in asked.values() for file in files if file.length} - read.keys()
    if unread and not read:
        message = (
            f"files below {job.snapshots} have changed or gone meanwhile, or are not where executors look "
            f"({listed(sorted(unread))}); run it again"
        )
        raise PlanningError(Reason.SPARK_FAILED, message)
    why = dict.fromkeys(unread, "it has changed or gone meanwhile") | unreadable(listing, sorted(unread))
    files = [read.get(file.path, file) for file in marked(listing.files, why)]
    chosen = choose(files, now)
    folders = pa.array([str(one.folder) for one in chosen.newest], pa.string())
    is_chosen = pc.is_in(pc.binary_join_element_wise(small["date"], small["cluster"], "/"), folders)
    return Read(found, files, chosen, small.filter(is_chosen))
