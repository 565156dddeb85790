"""The load of each directory, and partitions that break rules: sums over replicas, and over partitions.

A partition is judged in its row, by what its cluster's row in a broadcast table says of its brokers. How it is spread
over racks is judged once for all partitions of a cluster that lie on the same racks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from reassign.api.goal import COUNTED, MEASURES, Counted
from reassign.fleet.tables import Tables
from reassign.planning.problem.problem import MOST_REPLICA_BYTES

SIZE = "size_bytes"
COLUMNS = [measure.column for measure in MEASURES]


def _sum_of(counted: Counted) -> str:
    """Return the sum of what a goal counts. Where a size is not known, `size` has a mean; other measures count as 0."""
    if counted.measure is None:
        return "count_if(slot = 0)" if counted.leaders else "count(*)"
    column = counted.measure.column
    amount = "size" if column == SIZE else f"coalesce({column}, 0L)"
    return f"try_sum(if(slot = 0, {amount}, 0L))" if counted.leaders else f"try_sum({amount})"


REPLICAS = {
    **{counted.what: _sum_of(counted) for counted in COUNTED.values()},
    "fixed_replicas": "count_if(not movable)",
    "fixed_bytes": "try_sum(if(movable, 0L, size))",
}
"""By directory; sums that overflow are null."""

SAME = ("cluster", "rf", "has", "stay", "movable", "in_flight", "known", "racks")
"""Partitions that are alike, but for their bytes: `rf` is the replication factor that is wanted, `has` is theirs, and
`stay` of their replicas may."""

PARTITIONS = {
    "partitions": "sum(partitions)",
    "in_flight": "sum(if(in_flight, partitions, 0L))",
    "unknown_sizes": "sum(if(known, 0L, partitions))",
    "violations": "sum(if(spread, 0L, partitions))",
    "movable": "sum(if(movable, partitions, 0L))",
    "movable_bytes": "try_sum(if(movable, bytes, 0L))",
    "rf_replicas": "sum(if(movable, abs(rf - has) * partitions, 0L))",
    "change": "sum(if(movable, (rf - has) * partitions, 0L))",
    "change_bytes": "try_sum(if(movable, try_multiply(rf - has, bytes), 0L))",
    "added": "sum(if(movable, greatest(rf - stay, 0) * partitions, 0L))",
    "added_bytes": "try_sum(if(movable, try_multiply(greatest(rf - stay, 0), bytes), 0L))",
    "largest": "max(if(movable, largest, 0L))",
}
"""By replication factor that is wanted."""

OF_NODE = """
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
"""Not spread (`tests/spread.py`): some child of a node has two replicas more than one that has a broker left; those
without a replica are the ones by which the racks beside it that are open are more than those with replicas."""

SPREAD = f"""
coalesce(not exists(
  transform(at[0].steps, (x, l) -> if(
    size(array_distinct(transform(at, s -> s.steps[l].node))) = size(at), false,
    exists(array({OF_NODE}), counted -> {UNEVEN})
  )), uneven -> uneven
), true)"""
"""`at` has the broker of each replica, or another one of the same rack, of which is `allowed` what of this one is."""


class Lying(NamedTuple):
    """Sums over the newest snapshots."""

    replicas: DataFrame  # REPLICAS by cluster, broker, path, which is null where it is not known
    partitions: DataFrame  # PARTITIONS by cluster, rf


def lying(newest: Tables, places: DataFrame, terms: DataFrame, topics: DataFrame, width: int) -> Lying:
    """`topics` are `sizes.newest_topics`; `width` are the most replicas that a partition has."""
    rows = (
        newest.partitions.select("cluster", "topic", "replicas", "log_dirs", "in_flight", *COLUMNS)
        .join(sf.broadcast(_clusters(places, terms)), "cluster")
        .join(sf.broadcast(topics), ["cluster", "topic"])
        .select("*", _movable(width).alias("movable"))
        .withColumn("size", sf.expr(f"least(coalesce({SIZE}, mean_bytes), {MOST_REPLICA_BYTES})"))
    )
    by_replica = rows.select(
        *("cluster", "log_dirs", "size", "movable", *COLUMNS), sf.posexplode("replicas").alias("slot", "broker")
    )
    by_partition = rows.select(
        *("cluster", "movable", "in_flight", "size"),
        sf.size("replicas").alias("has"),
        sf.expr("if(movable and chosen, coalesce(replication_factor, size(replicas)), size(replicas))").alias("rf"),
        _number(width, "not array_contains(barred, {broker})").alias("stay"),
        sf.expr(f"{SIZE} is not null").alias("known"),
        sf.sort_array(sf.array(*(sf.expr(f"like_of[get(replicas, {slot})]") for slot in range(width)))).alias("racks"),
    )
    alike = by_partition.groupBy(*SAME).agg(
        sf.count("*").alias("partitions"), sf.try_sum("size").alias("bytes"), sf.max("size").alias("largest")
    )
    return Lying(
        by_replica.groupBy("cluster", "broker", sf.expr("get(log_dirs, slot)").alias("path")).agg(*_sums(REPLICAS)),
        _spread(alike, places, width).groupBy("cluster", "rf").agg(*_sums(PARTITIONS)),
    )


def _sums(of: Mapping[str, str]) -> Iterator[Column]:
    return (sf.expr(what).alias(name) for name, what in of.items())


def _clusters(places: DataFrame, terms: DataFrame) -> DataFrame:
    """One row for each cluster, with what a partition has to know of its brokers; most of these lists are empty."""
    offline = "transform(filter(volumes, d -> not d.online), d -> concat(broker, ' ', d.path))"
    return (
        places.groupBy("cluster")
        .agg(
            sf.expr("collect_list(broker) filter (where not alive)").alias("down"),
            sf.expr("collect_list(broker) filter (where not allowed)").alias("barred"),
            sf.expr("collect_list(broker) filter (where emptied)").alias("emptied"),
            sf.expr(f"flatten(collect_list({offline}))").alias("offline"),
            sf.expr("map_from_entries(collect_list(struct(broker, like)))").alias("like_of"),
        )
        .join(sf.broadcast(terms.select("cluster", "replication_factor")), "cluster")
    )


def _movable(width: int) -> Column:
    directory = "concat({broker}, ' ', coalesce(get(log_dirs, {slot}), ''))"
    online = f"not array_contains(down, {{broker}}) and (size(offline) = 0 or not array_contains(offline, {directory}))"
    moves = "(chosen or leaves and arrays_overlap(replicas, emptied)) and not in_flight"
    return sf.expr(moves) & (_number(width, online) > 0)


def _number(width: int, condition: str) -> Column:
    """Of how many replicas this is true. Slot by slot: with a lambda Spark would copy the whole row of the cluster."""
    slots = (
        f"if(size(replicas) > {slot} and {condition.format(slot=slot, broker=f'get(replicas, {slot})')}, 1, 0)"
        for slot in range(width)
    )
    return sf.expr(" + ".join(("0", *slots)))


def _spread(alike: DataFrame, places: DataFrame, width: int) -> DataFrame:
    """Whether these partitions are: `spread`."""
    about = sf.struct("allowed", sf.expr("transform(steps, s -> struct(s.node, s.usable, s.open))").alias("steps"))
    brokers = places.where("broker = like").groupBy("cluster")
    known = brokers.agg(sf.map_from_entries(sf.collect_list(sf.struct("broker", about))).alias("brokers"))
    at = sf.array(*(sf.expr(f"brokers[get(racks, {slot})]") for slot in range(width)))
    return (
        alike.join(sf.broadcast(known), "cluster", "left")
        .withColumn("at", sf.array_compact(at))
        .withColumn("spread", sf.expr(SPREAD))
    )
