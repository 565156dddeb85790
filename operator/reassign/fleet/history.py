"""Tables of history: how topics and disks grow, and what was begun and not finished.

In expressions over days and clusters, of the rows that each snapshot has (`moments`): so no history has to fit into one
place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.fleet.choose import Snapshot
from reassign.fleet.handout import rows_of_kind
from reassign.fleet.moments import THROTTLE
from reassign.fleet.outcomes import SNAPSHOT, TIME

DAY = 86_400
AGED = pa.schema([*SNAPSHOT.items(), ("taken_at", TIME), ("age", pa.int32())])
"""A snapshot, and how many of its cluster are newer."""


def history(outcomes: DataFrame, snapshots: Iterable[Snapshot]) -> dict[str, DataFrame]:
    """Return its tables, from the rows of HISTORY that these snapshots have."""
    ages = defaultdict[str, Iterator[int]](count)
    latest_first = sorted(snapshots, key=lambda one: one.taken_at, reverse=True)
    aged = [
        {**one.folder._asdict(), "taken_at": one.taken_at, "age": next(ages[one.folder.cluster])}
        for one in latest_first
    ]
    these = outcomes.sparkSession.createDataFrame(pa.Table.from_pylist(aged, AGED))

    def rows(kind: str) -> DataFrame:
        return rows_of_kind(outcomes, kind).join(sf.broadcast(these), [*SNAPSHOT])

    return {
        "topic_growth": topic_growth(rows("topics")),
        "disk_growth": disk_growth(rows("volumes")),
        "leftovers": leftovers(rows("begun")),
    }


def topic_growth(topics: DataFrame) -> DataFrame:
    """Return the growth of the topics that still exist."""
    return (
        topics.groupBy("cluster", "topic")
        .agg(
            sf.max(sf.when(sf.col("age") == 0, sf.struct("bytes"))).alias("now"),
            slope("bytes").alias("bytes_per_day"),
            days_observed("bytes").alias("days_observed"),
        )
        .where("now is not null")
        .select("cluster", "topic", "now.bytes", "bytes_per_day", "days_observed")
    )


def disk_growth(volumes: DataFrame) -> DataFrame:
    """One row for each volume that says how full it is, by the first of its directories in the newest snapshot."""
    return (
        volumes.withColumn("used_bytes", sf.try_subtract("total_bytes", "usable_bytes"))
        .groupBy("cluster", "broker", "path")
        .agg(
            sf.max((sf.col("age") == 0) & sf.col("first")).alias("is_told"),
            sf.max_by(sf.struct("used_bytes", "total_bytes", "usable_bytes"), "taken_at").alias("now"),
            slope("used_bytes").alias("bytes_per_day"),
        )
        .where("is_told")
        .select(
            "cluster",
            "broker",
            "path",
            "now.used_bytes",
            "now.total_bytes",
            "bytes_per_day",
            sf.expr("if(bytes_per_day > 0, now.usable_bytes / bytes_per_day, null)").alias("days_until_full"),
        )
    )


def leftovers(begun: DataFrame) -> DataFrame:
    """`since` is the first snapshot from which on it was so in each one up to the newest.

    A throttle is left over where nothing is in flight in its cluster; a reassignment where the same replicas are its
    target for a day or more.
    """
    up_to_now = "filter(array_sort(collect_set(struct(age, taken_at))), (x, i) -> x.age = i).taken_at"
    return (
        begun.groupBy("cluster", "kind", "what")
        .agg(sf.expr(up_to_now).alias("times"))
        .where("size(times) > 0")
        .select("cluster", "kind", "what", sf.element_at("times", -1).alias("since"), sf.expr("times[0]").alias("now"))
        .where((sf.col("kind") == THROTTLE) | (sf.unix_seconds("now") - sf.unix_seconds("since") >= DAY))
        .drop("now")
    )


def slope(what: str) -> Column:
    """Of `what` over `taken_at`, per day, in whole bytes: sums of whole numbers, which no order of rows changes, where
    `regr_slope` adds fractions. Null where there are no two times, and where none can tell so much."""
    at = sf.when(sf.col(what).isNotNull(), sf.unix_seconds("taken_at"))
    x, y = at.cast("decimal(20,0)"), sf.col(what).cast("decimal(20,0)")
    n, xs = (value.cast("decimal(38,0)") for value in (sf.count(what), sf.sum(at)))  # no sum of times is too large
    ys, xys, xxs = (sf.sum(value).cast("decimal(38,0)") for value in (y, x * y, (at * at).cast("decimal(20,0)")))
    spread = n * xxs - xs * xs
    per_day = sf.round((n * xys - xs * ys).cast("double") / spread.cast("double") * DAY)
    return sf.when(spread > 0, per_day).try_cast("bigint")


def days_observed(what: str) -> Column:
    seen = sf.unix_seconds(sf.when(sf.col(what).isNotNull(), sf.col("taken_at")))
    return sf.coalesce((sf.max(seen) - sf.min(seen)) / DAY, sf.lit(0.0))
