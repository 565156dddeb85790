"""What lies where, and what is wrong with it: one pass over the partitions, which leaves some sums for each directory.

A partition is judged in its row, by what its cluster's row in a broadcast table says of its brokers; replicas come out
as rows only to be summed at once, before anything is shuffled.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.fleet.tables import Tables
from reassign.planning.problem import MOST_REPLICA_BYTES

BY = ("cluster", "broker", "path", "rf")
"""`rf` is the replication factor that is wanted."""

SUMS = {
    "replicas": "if(broker is null, 0L, 1L)",
    "bytes": "if(broker is null, 0L, size)",
    "leaders": "if(slot = 0, 1L, 0L)",
    "fixed_replicas": "if(movable or broker is null, 0L, 1L)",
    "fixed_bytes": "if(movable or broker is null, 0L, size)",
    "drain_replicas": "if(movable and emptied, 1L, 0L)",
    "drain_bytes": "if(movable and emptied, size, 0L)",
    "partitions": "if(first, 1L, 0L)",
    "in_flight": "if(first and in_flight, 1L, 0L)",
    "unknown_sizes": "if(first and not known, 1L, 0L)",
    "violations": "if(first and not spread, 1L, 0L)",
    "movable": "if(first and movable, 1L, 0L)",
    "movable_bytes": "if(first and movable, size, 0L)",
    "rf_replicas": "if(first and movable, abs(rf - has), 0L)",
    "change": "if(first and movable, rf - has, 0L)",
    "change_bytes": "if(first and movable, (rf - has) * size, 0L)",
    "added": "if(first and movable, greatest(rf - stay, 0), 0L)",
    "added_bytes": "if(first and movable, greatest(rf - stay, 0) * size, 0L)",
}
"""Of replicas, and where they are those of the partition, of its `first` row; sums that overflow are null."""

COUNTED = """
transform(at, s -> struct(
  if(l > 0, s.steps[l - 1].node, 0) as parent,
  s.steps[l].node as node,
  s.steps[l].usable as usable,
  s.steps[l].open as open,
  size(filter(at, t -> t.steps[l].node = s.steps[l].node)) as has,
  s.steps[l].usable - size(filter(at, t -> t.allowed and t.steps[l].node = s.steps[l].node)) as left
))"""

UNEVEN = """
exists(counted, s -> s.has > 1 and (
  exists(counted, t -> t.parent = s.parent and t.left > 0 and t.has < s.has - 1)
  or s.open > size(array_distinct(transform(
    filter(counted, t -> t.parent = s.parent and t.usable > 0), t -> t.node
  )))
))"""
"""As `planning.racks.spread` says: some child of a node has two replicas more than one that has a broker left; those
without a replica are the ones by which the racks beside it that are open are more than those with replicas."""

SPREAD = f"""
size(array_distinct(replicas)) = size(replicas)
and coalesce(not exists(
  transform(at[0].steps, (x, l) -> if(
    size(array_distinct(transform(at, s -> s.steps[l].node))) = size(at), false,
    exists(array({COUNTED}), counted -> {UNEVEN})
  )), uneven -> uneven
), true)"""


def lying(newest: Tables, places: DataFrame, terms: DataFrame, means: DataFrame, width: int) -> DataFrame:
    """SUMS by BY, and `largest`, the bytes of the largest movable replica; `path` is null where it is not known.

    `means` are the bytes that replicas of some topics count as where theirs are not known; `width` are the most
    replicas that a partition has.
    """
    return (
        newest.partitions.select("cluster", "topic", "replicas", "log_dirs", "size_bytes", "in_flight")
        .join(sf.broadcast(_clusters(places, terms)), "cluster")
        .join(sf.broadcast(means), ["cluster", "topic"], "left")
        .select(*_of_partition(width))
        .select("*", sf.expr(SPREAD).alias("spread"))
        .select(
            "*",
            sf.expr("if(movable, coalesce(replication_factor, has), has)").alias("rf"),
            sf.posexplode_outer("replicas").alias("slot", "broker"),
        )
        .select(
            "*",
            sf.expr("get(log_dirs, slot)").alias("path"),
            sf.expr("coalesce(slot, 0) = 0").alias("first"),
            sf.expr("coalesce(get(at, slot).emptied, false)").alias("emptied"),
        )
        .groupBy(*BY)
        .agg(
            *(sf.try_sum(sf.expr(what)).alias(name) for name, what in SUMS.items()),
            sf.max(sf.expr("if(movable, size, 0L)")).alias("largest"),
        )
    )


def _clusters(places: DataFrame, terms: DataFrame) -> DataFrame:
    """One row for each cluster, with what a partition has to know of its brokers."""
    about = sf.struct(
        "alive",
        "allowed",
        "emptied",
        sf.expr("coalesce(transform(filter(volumes, d -> not d.online), d -> d.path), array())").alias("offline"),
        sf.expr("transform(steps, s -> struct(s.node, s.usable, s.open))").alias("steps"),
    )
    return (
        places.groupBy("cluster")
        .agg(sf.map_from_entries(sf.collect_list(sf.struct("broker", about))).alias("brokers"))
        .join(sf.broadcast(terms.select("cluster", "included", "excluded", "replication_factor")), "cluster")
    )


def _of_partition(width: int) -> list[Column]:
    """Looked up slot by slot, without a lambda: Spark would copy the whole row of the cluster for each partition."""
    brokers = [sf.expr(f"brokers[get(replicas, {slot})]") for slot in range(width)]
    online = [
        sf.coalesce(
            at["alive"] & ~sf.array_contains(at["offline"], sf.expr(f"coalesce(get(log_dirs, {slot}), '')")),
            sf.lit(False),
        )
        for slot, at in enumerate(brokers)
    ]
    stay = [sf.coalesce(at["allowed"], sf.lit(False)).cast("int") for at in brokers]
    living = reduce(Column.__or__, online, sf.lit(False))
    chosen = sf.expr("topic rlike included and not topic rlike excluded")
    at = sf.array(
        *(
            sf.struct(at["allowed"].alias("allowed"), at["emptied"].alias("emptied"), at["steps"].alias("steps"))
            for at in brokers
        )
    )
    return [
        *(sf.col(name) for name in ("cluster", "replicas", "log_dirs", "in_flight", "replication_factor")),
        sf.size("replicas").alias("has"),
        sf.col("size_bytes").isNotNull().alias("known"),
        sf.least(sf.coalesce("size_bytes", "mean_bytes", sf.lit(1)), sf.lit(MOST_REPLICA_BYTES)).alias("size"),
        (chosen & ~sf.col("in_flight") & living).alias("movable"),
        reduce(Column.__add__, stay, sf.lit(0)).alias("stay"),
        sf.slice(at, 1, sf.size("replicas")).alias("at"),
    ]
