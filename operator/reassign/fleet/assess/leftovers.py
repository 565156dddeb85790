"""What was begun and not finished: throttles that slow nothing down, reassignments in flight for days."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from reassign.api.throttle_configs import BROKER_RATES, LISTS
from reassign.fleet.assess.growth import DAY
from reassign.fleet.tables import Tables

THROTTLE, REASSIGNMENT = "Throttle", "Reassignment"


def leftovers(history: Tables, sizes: DataFrame) -> DataFrame:
    """`since` is the first snapshot from which on it was so in each one up to the newest.

    A throttle is left over where nothing is in flight in its cluster; a reassignment where the same replicas are its
    target for a day or more.
    """
    times = (
        sizes.groupBy("cluster", "taken_at")
        .agg(sf.sum("in_flight").alias("in_flight"))
        .withColumn("age", sf.row_number().over(Window.partitionBy("cluster").orderBy(sf.desc("taken_at"))) - 1)
        .withColumn("newest_at", sf.max("taken_at").over(Window.partitionBy("cluster")))
    )
    is_set = (sf.col("kind") == "broker") & sf.col("key").isin(*BROKER_RATES)
    is_set |= (sf.col("kind") == "topic") & sf.col("key").isin(*LISTS)
    throttles = history.configs.where(is_set & (sf.col("value") != "")).select(
        "cluster",
        "taken_at",
        sf.lit(THROTTLE).alias("kind"),
        sf.concat_ws(" ", "key", sf.lit("of"), "kind", "name").alias("what"),
    )
    reassignments = history.partitions.where("in_flight").select(
        "cluster",
        "taken_at",
        sf.lit(REASSIGNMENT).alias("kind"),
        sf.expr("concat(topic, '-', partition, ' to ', array_join(replicas, ', '))").alias("what"),
    )
    rows = throttles.unionByName(reassignments).join(sf.broadcast(times), ["cluster", "taken_at"])
    in_a_row = "filter(array_sort(collect_list(struct(age, taken_at))), (x, i) -> x.age = i)"
    return (
        rows.where((sf.col("kind") == REASSIGNMENT) | (sf.col("in_flight") == 0))
        .groupBy("cluster", "kind", "what")
        .agg(
            sf.first("newest_at").alias("newest_at"), sf.expr(f"try_element_at({in_a_row}, -1).taken_at").alias("since")
        )
        .where(
            sf.col("since").isNotNull()
            & ((sf.col("kind") == THROTTLE) | (sf.unix_seconds("newest_at") - sf.unix_seconds("since") >= DAY))
        )
        .select("cluster", "kind", "what", "since")
    )
