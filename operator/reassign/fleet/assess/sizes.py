"""The bytes of each topic over time, and what replicas count as whose bytes are not known."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from reassign.fleet.tables import Tables
from reassign.planning.problem.problem import MOST_REPLICA_BYTES


def topic_sizes(newest: Tables, history: Tables) -> DataFrame:
    """One row for each topic of each snapshot. `newest` tells those of the newest one; `bytes` are of all replicas,
    those that are not known counted as the mean of those that are, null where none is."""
    times = newest.brokers.groupBy("cluster").agg(sf.max("taken_at").alias("newest_at"))
    return (
        history.partitions.withColumn(
            "size_bytes", sf.expr(f"if(size_bytes > {MOST_REPLICA_BYTES}, {MOST_REPLICA_BYTES}, size_bytes)")
        )
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
            sf.expr("try_add(replica_bytes, if(known > 0, try_multiply(unknown_replicas, known_bytes div known), 0L))"),
        )
    )


def newest_topics(sizes: DataFrame, terms: DataFrame) -> DataFrame:
    """Of each topic of the newest snapshots whether it is `chosen` to be planned, and what a replica counts as whose
    bytes are not known: as in `problem.problem`."""
    of_cluster = Window.partitionBy("cluster")
    return (
        sizes.where("newest")
        .withColumn("all_bytes", sf.try_sum("known_bytes").over(of_cluster))
        .withColumn("all_known", sf.sum("known").over(of_cluster))
        .join(sf.broadcast(terms.select("cluster", "included", "excluded")), "cluster")
        .selectExpr(
            "cluster",
            "topic",
            "topic rlike included and not topic rlike excluded as chosen",
            "case when known > 0 then known_bytes div known when all_known > 0 then all_bytes div all_known else 1 end "
            "as mean_bytes",
        )
    )
