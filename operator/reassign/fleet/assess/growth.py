"""The growth of topics and disks: the slope of a straight line through their history."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.fleet.tables import Tables

DAY = 86_400

FIRST_OF_VOLUME = "transform(filter(volumes, (d, i) -> d.volume = i and d.says), d -> d.path)"


def topic_growth(sizes: DataFrame) -> DataFrame:
    """Return the growth of the topics of `sizes.topic_sizes` that still exist."""
    return (
        sizes.groupBy("cluster", "topic")
        .agg(
            sf.max(sf.when(sf.col("newest"), sf.struct("bytes"))).alias("now"),
            slope("bytes").alias("bytes_per_day"),
            days_observed("bytes").alias("days_observed"),
        )
        .where("now is not null")
        .select("cluster", "topic", "now.bytes", "bytes_per_day", "days_observed")
    )


def disk_growth(history: Tables, places: DataFrame) -> DataFrame:
    """One row for each volume that says how full it is, by the first of its directories."""
    volumes = places.select("cluster", "broker", sf.explode(sf.expr(FIRST_OF_VOLUME)).alias("path"))
    return (
        history.log_dirs.join(sf.broadcast(volumes), ["cluster", "broker", "path"])
        .withColumn("used_bytes", sf.when(sf.col("online"), sf.try_subtract("total_bytes", "usable_bytes")))
        .groupBy("cluster", "broker", "path")
        .agg(
            sf.max_by(sf.struct("used_bytes", "total_bytes", "usable_bytes"), "taken_at").alias("now"),
            slope("used_bytes").alias("bytes_per_day"),
        )
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


def slope(what: str) -> Column:
    """Of `what` over `taken_at`, per day, in whole bytes: sums of whole numbers, which no order of rows changes, where
    `regr_slope` adds fractions. Null where there are no two times, and where none can tell so much."""
    at = sf.unix_seconds("taken_at")
    x, y = (sf.when(sf.col(what).isNotNull(), value).cast("decimal(20,0)") for value in (at, sf.col(what)))
    n, xs, ys, xys, xxs = (sf.sum(v).cast("decimal(38,0)") for v in (x * 0 + 1, x, y, x * y, x * x))
    spread = n * xxs - xs * xs
    per_day = sf.round((n * xys - xs * ys).cast("double") / spread.cast("double") * DAY)
    return sf.when(spread > 0, per_day).try_cast("bigint")


def days_observed(what: str) -> Column:
    seen = sf.unix_seconds(sf.when(sf.col(what).isNotNull(), sf.col("taken_at")))
    return sf.coalesce((sf.max(seen) - sf.min(seen)) / DAY, sf.lit(0.0))
