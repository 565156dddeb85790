"""The bytes of each topic over time, and the size that stands for an unknown one."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from reassign.fleet.tables import Tables
from reassign.planning.problem.problem import MOST_REPLICA_BYTES

SIZE = f"if(size_bytes > {MOST_REPLICA_BYTES}, {MOST_REPLICA_BYTES}, size_bytes)"
TOPIC_MEAN = "known_bytes div known"
MEAN = f"case when known > 0 then {TOPIC_MEAN} when all_known > 0 then all_bytes div all_known else 1 end"
"""Bytes of a replica of unknown size, as `planning.problem.measures` has it. `known` and `known_bytes` are of the
partitions of its topic whose sizes are known, `all_known` and `all_bytes` those of its cluster."""


def topic_sizes(newest: Tables, history: Tables) -> DataFrame:
    """Return one row for each topic of each snapshot; `newest` marks those of the newest one.

    `bytes` are of all replicas, with the topic's mean for those of unknown size; null where no size is known.
    """
    times = newest.brokers.groupBy("cluster").agg(sf.max("taken_at").alias("newest_at"))
    return (
        history.partitions.withColumn("size_bytes", sf.expr(SIZE))
        .groupBy("cluster", "topic", "taken_at")
        .agg(
            sf.max(sf.size("replicas")).alias("width"),
            sf.count_if("in_flight").alias("in_flight"),
            sf.count("size_bytes").alias("known"),
            sf.count_if(sf.col("size_bytes").isNull()).alias("unknown"),
            sf.try_sum("size_bytes").alias("known_bytes"),
            sf.try_sum(sf.expr("try_multiply(size_bytes, size(replicas))")).alias("replica_bytes"),
            sf.sum(sf.expr("if(size_bytes is null, size(replicas), 0)")).alias("unknown_replicas"),
        )
        .join(sf.broadcast(times), "cluster")
        .withColumn("newest", sf.col("taken_at") == sf.col("newest_at"))
        .withColumn(
            "bytes",
            sf.expr(f"try_add(replica_bytes, if(known > 0, try_multiply(unknown_replicas, {TOPIC_MEAN}), 0L))"),
        )
    )


def newest_topics(sizes: DataFrame, terms: DataFrame) -> DataFrame:
    """Return whether each topic of the newest snapshots is `chosen` to be planned, or only `leaves` drained brokers
    (see `problem.selection`), and its MEAN as `mean_bytes`."""
    of_cluster = Window.partitionBy("cluster")
    return (
        sizes.where("newest")
        .withColumn("all_bytes", sf.try_sum("known_bytes").over(of_cluster))
        .withColumn("all_known", sf.sum("known").over(of_cluster))
        .join(sf.broadcast(terms.select("cluster", "included", "excluded", "by_default")), "cluster")
        .selectExpr(
            "cluster",
            "topic",
            "topic rlike included and not topic rlike excluded as chosen",
            "by_default and topic rlike included and topic rlike excluded as leaves",
            f"{MEAN} as mean_bytes",
        )
    )
