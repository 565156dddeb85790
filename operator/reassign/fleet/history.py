"""Tables of history: how topics and disks grow, and what was begun and not finished.

They are expressions over days and clusters, of the rows that each snapshot has (`history_rows`). So no history has to
fit into one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.fleet.choose import Snapshot
from reassign.fleet.history_rows import THROTTLE
from reassign.fleet.outcomes import SNAPSHOT, TIME, Row, in_order, table_of

DAY = 86_400
WIDE, PART_BITS = "decimal(38,0)", 21
NOW = ("bytes", "total_bytes", "usable_bytes")
AGED = pa.schema([*SNAPSHOT.items(), ("taken_at", TIME), ("age", pa.int32()), ("seconds", pa.int64())])
"""A snapshot, how many of its cluster are newer, and its time after the newest of these, so none above 0."""
TOPIC_GROWTH = {"name": "topic", "bytes": "bytes", "bytes_per_day": "bytes_per_day", "days_observed": "days_observed"}
DISK_GROWTH = {
    "broker": "broker",
    "name": "path",
    "bytes": "used_bytes",
    "total_bytes": "total_bytes",
    "bytes_per_day": "bytes_per_day",
    "days_until_full": "days_until_full",
}
"""The columns of these tables beside `cluster`, by those of `growth`."""


def history(outcomes: DataFrame, snapshots: Iterable[Snapshot]) -> dict[str, pa.Table]:
    """Return the tables of history, from the rows of HISTORY that these snapshots have."""
    aged, newest = list[Row](), dict[str, Snapshot]()
    ages = Counter[str]()
    for one in sorted(snapshots, key=lambda one: one.taken_at, reverse=True):
        cluster = one.folder.cluster
        since = one.taken_at - newest.setdefault(cluster, one).taken_at
        seconds = int(since.total_seconds())
        aged.append({**one.folder._asdict(), "taken_at": one.taken_at, "age": ages[cluster], "seconds": seconds})
        ages[cluster] += 1
    these = sf.broadcast(outcomes.sparkSession.createDataFrame(table_of(aged, AGED)))
    told = outcomes.join(these, [*SNAPSHOT])

    def rows(kind: str) -> DataFrame:
        return told.select(*AGED.names, sf.inline(kind))

    with ThreadPoolExecutor() as pool:  # cores make one while the driver thinks of how to make the other
        sizes, left = pool.map(lambda table: table.toArrow(), (growth(rows("sizes")), leftovers(rows("begun"))))
    are_topics = pc.is_null(sizes["broker"])
    return {
        "topic_growth": _named(sizes.filter(are_topics), TOPIC_GROWTH),
        "disk_growth": _named(sizes.filter(pc.invert(are_topics)), DISK_GROWTH),
        "leftovers": in_order(left),
    }


def _named(sizes: pa.Table, names: Mapping[str, str]) -> pa.Table:
    return in_order(sizes.select(["cluster", *names]).rename_columns(["cluster", *names.values()]))


def growth(sizes: DataFrame) -> DataFrame:
    """Return a row for each topic and volume whose size the newest snapshot has."""
    return (
        sizes.groupBy("cluster", "broker", "name")
        .agg(
            sf.max((sf.col("age") == 0) & sf.col("first")).alias("is_told"),
            # each for itself: of structs Spark has no hash, and would sort all rows
            *(sf.max(sf.when(sf.col("age") == 0, sf.col(name))).alias(name) for name in NOW),
            slope("bytes").alias("bytes_per_day"),
            days_observed("bytes").alias("days_observed"),
        )
        .where("is_told")
        .select(
            *("cluster", "broker", "name", *NOW, "bytes_per_day", "days_observed"),
            sf.expr("if(bytes_per_day > 0, usable_bytes / bytes_per_day, null)").alias("days_until_full"),
        )
    )


def leftovers(begun: DataFrame) -> DataFrame:
    """Return what was left over, `since` the first of the snapshots up to the newest that all have it.

    A throttle is left over where nothing is in flight in its cluster; a reassignment where its target has been the same
    replicas for a day or more.
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
    """Return the growth of `what` per day, in whole bytes; null without two times, or where no number can hold it.

    The sums are of whole numbers, which no order of rows changes, where `regr_slope` adds fractions.
    """
    x, y = sf.when(sf.col(what).isNotNull(), sf.col("seconds")), sf.col(what)
    n, xs = (value.cast(WIDE) for value in (sf.count(what), sf.try_sum(x)))
    spread = n * whole_sum(x, x) - xs * xs
    per_day = sf.round((n * whole_sum(y, x) - xs * whole_sum(y)).cast("double") / spread.cast("double") * DAY)
    return sf.when(spread > 0, per_day).try_cast("bigint")


def whole_sum(value: Column, factor: Column | None = None) -> Column:
    """Sum whole numbers, times a factor of up to 2^38 seconds; null where even the parts do not fit into 64 bits.

    The sum is made of parts: a sum of decimals takes twice as long as all else.
    """
    parts = (sf.shiftright(value, 2 * PART_BITS), _part(sf.shiftright(value, PART_BITS)), _part(value))
    total = sf.lit(0).cast(WIDE)
    for part in parts:
        of_part = sf.try_sum(part if factor is None else part * factor)
        total = total * (1 << PART_BITS) + of_part.cast(WIDE)
    return total


def _part(value: Column) -> Column:
    return value.bitwiseAND((1 << PART_BITS) - 1)


def days_observed(what: str) -> Column:
    seen = sf.when(sf.col(what).isNotNull(), sf.col("seconds"))
    return sf.coalesce((sf.max(seen) - sf.min(seen)) / DAY, sf.lit(0.0))
