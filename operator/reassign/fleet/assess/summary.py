"""Load per broker, rack, directory and cluster, from the sums of `loads`."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.api.goal import COUNTED
from reassign.fleet.assess.loads import REPLICAS
from reassign.fleet.tables import Tables

LOADS = tuple(counted.what for counted in COUNTED.values())


def by_broker(places: DataFrame, replicas: DataFrame) -> DataFrame:
    """Return places with their load."""
    sums = replicas.groupBy("cluster", "broker").agg(*(sf.try_sum(name).alias(name) for name in REPLICAS))
    return (
        places.join(sums, ["cluster", "broker"], "left")
        .withColumns(_nothing_as_zero(REPLICAS))
        .withColumn("room", sf.expr("try_add(bytes, free)"))
    )


def _nothing_as_zero(sums: Iterable[str]) -> dict[str, Column]:
    """Where there are no replicas at all; a sum that is null beside replicas is one that no number can hold."""
    return {name: sf.expr(f"if(replicas is null, 0L, {name})") for name in sums}


def broker_load(brokers: DataFrame) -> DataFrame:
    shares = (sf.expr(f"{what} / nullif(share_{what}, 0)").alias(f"share_{what}") for what in ("bytes", "replicas"))
    return brokers.select("cluster", "broker", "rack", "alive", *LOADS, "capacity", *shares)


def rack_load(brokers: DataFrame) -> DataFrame:
    """One row for each rack of each level; a broker that is a child by itself is one too."""
    step = brokers.select("cluster", *LOADS, sf.explode("steps").alias("step"))
    path = sf.expr("concat_ws('/', nullif(step.path, ''), concat('broker ', step.alone))")
    return step.groupBy(
        "cluster",
        (sf.col("step.level") + 1).alias("level"),
        sf.when(sf.col("step.alone").isNull(), sf.col("step.path")).otherwise(path).alias("path"),
    ).agg(sf.count("*").alias("brokers"), *(sf.try_sum(name).alias(name) for name in LOADS))


def directory_load(newest: Tables, replicas: DataFrame) -> DataFrame:
    """One row for each log directory, and one without a path for what lies in some that is not known."""
    sums = replicas.select("cluster", "broker", "path", "bytes", "replicas")
    return (
        newest.log_dirs.select("cluster", "broker", "path", "total_bytes", "usable_bytes")
        .join(sums, ["cluster", "broker", "path"], "full")
        .withColumns(_nothing_as_zero(("bytes", "replicas")))
        .select("cluster", "broker", "path", "bytes", "replicas", "total_bytes", "usable_bytes")
    )


def cluster_load(brokers: DataFrame, topics: DataFrame, partitions: DataFrame, least: DataFrame) -> DataFrame:
    named = topics.where("newest").groupBy("cluster").agg(sf.count("*").alias("topics"))
    counts = ("partitions", "unknown_sizes", "in_flight", "violations", "rf_replicas")
    sums = partitions.groupBy("cluster").agg(*(sf.sum(name).alias(name) for name in counts))
    loads = brokers.groupBy("cluster").agg(
        sf.count("*").alias("brokers"),
        sf.first("readable").alias("readable"),
        *(sf.try_sum(name).alias(name) for name in LOADS),
        *(
            sf.try_sum(sf.expr(f"if(emptied, {what} - fixed_{what}, 0L)")).alias(f"drain_{what}")
            for what in ("replicas", "bytes")
        ),
        *(sf.expr(f"1D * max({name}) * count(*) / nullif(try_sum({name}), 0)").alias(f"skew_{name}") for name in LOADS),
    )
    return (
        loads.join(named, "cluster", "left")
        .join(sums, "cluster", "left")
        .join(least, "cluster", "left")
        .fillna(0, ["topics", *counts])
        .withColumn("violations", sf.when(sf.col("readable"), sf.col("violations")))
        .select(
            "cluster", "brokers", "topics", "partitions", "replicas", "bytes", "unknown_sizes", "in_flight",
            *(f"skew_{name}" for name in LOADS), "violations", "drain_replicas", "drain_bytes", "rf_replicas",
            "bytes_bound", "moves_bound",
        )
    )  # fmt: skip
