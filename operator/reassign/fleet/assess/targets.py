"""What each broker should hold, and what any plan must copy: in proportion to weight, as far as racks and disks allow.

The same shares as those of `problem.targets`, as expressions: one row for each cluster with the nodes of its tree, gone
through from the root down. Fractions where the planner has whole numbers: bands are widened by more than they can be
off, so that what follows from them holds. They are added up in one order always.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

WHOLE = "decimal(20,0)"
"""As which what may be 2^62 is added up."""

LEVEL = """
array_max(filter(
  sequence(0, {n}), level -> aggregate(kids, 0, (sum, k) -> sum + least(k.cap, level)) <= {n}
))"""
"""How many of {n} replicas each of these children has at least, where it has brokers for them (`problem.tree`)."""

RANGES = f"""
transform(p.ranges, r -> struct(
  {LEVEL.format(n="r.least")} as least,
  {LEVEL.format(n="r.most")} as most,
  r.most as below,
  r.replicas as replicas,
  r.bytes as bytes
))"""

BOUNDED = """
transform(kids, k -> struct(
  k.node as node,
  k.weight as weight,
  transform(ranges, r -> struct(
    least(k.cap, r.least) as least,
    least(k.cap, r.most + if(
      aggregate(kids, 0, (sum, o) -> sum + least(o.cap, r.most)) < r.below, 1, 0
    )) as most,
    r.replicas as replicas,
    r.bytes as bytes
  )) as ranges,
  k.fixed_bytes as fixed_bytes,
  k.fixed_replicas as fixed_replicas,
  k.room as room
))"""
"""The children with how many replicas of a partition lie on them, by replication factor."""

LIMITED = """
transform(bounded, k -> struct(
  k.node as node,
  k.weight as weight,
  k.ranges as ranges,
  k.fixed_bytes + aggregate(k.ranges, 0D, (sum, r) -> sum + r.least * r.bytes) as least_bytes,
  least(k.fixed_bytes + aggregate(k.ranges, 0D, (sum, r) -> sum + r.most * r.bytes), k.room) as most_bytes,
  k.fixed_replicas + aggregate(k.ranges, 0D, (sum, r) -> sum + r.least * r.replicas) as least_replicas,
  k.fixed_replicas + aggregate(k.ranges, 0D, (sum, r) -> sum + r.most * r.replicas) as most_replicas
))"""


def _sum(what: str, at: str) -> str:
    """What all children have at a level of water."""
    return f"aggregate(limited, 0D, (sum, k) -> sum + {_part(what, at)})"


def _part(what: str, at: str) -> str:
    return f"greatest(k.least_{what}, least(k.most_{what}, {at} * k.weight))"


def _split(what: str) -> str:
    """The level to which the children are filled: a share is it times their weight, within what racks allow."""
    low, high = f"k.least_{what} / k.weight", f"greatest(k.least_{what}, k.most_{what}) / k.weight"
    reached = f"""
      coalesce(array_max(filter(
        flatten(transform(filter(limited, k -> k.weight > 0), k -> array({low}, {high}))),
        at -> {_sum(what, "at")} <= p.{what}
      )), 0D)"""
    return f"""
      transform(array({reached}), at -> at + coalesce(
        (p.{what} - {_sum(what, "at")})
        / nullif(aggregate(filter(limited, k -> k.weight > 0), 0D,
            (sum, k) -> sum + if({low} <= at and {high} > at, k.weight, 0D)), 0D),
        0D
      ))[0]"""


def _let(name: str, value: str, then: str) -> str:
    return f"transform(array({value}), {name} -> {then})[0]"


CHILDREN = _let(
    "kids",
    "filter(nodes, n -> n.level = l and n.parent = p.node)",
    _let(
        "ranges",
        RANGES,
        _let(
            "bounded",
            BOUNDED,
            _let(
                "limited",
                LIMITED,
                _let(
                    "bytes",
                    _split("bytes"),
                    _let(
                        "replicas",
                        _split("replicas"),
                        f"""
transform(limited, k -> struct(
  k.node as node, k.ranges as ranges, {_part("bytes", "bytes")} as bytes, {_part("replicas", "replicas")} as replicas
))""",
                    ),
                ),
            ),
        ),
    ),
)

SHARES = f"""
aggregate(
  sequence(1, depth + 1),
  array(struct(
    0 as node,
    transform(amounts, a -> struct(a.rf as least, a.rf as most, a.replicas as replicas, a.bytes as bytes)) as ranges,
    total_bytes as bytes,
    total_replicas as replicas
  )),
  (level, l) -> flatten(transform(level, p -> {CHILDREN}))
)"""


def targets(brokers: DataFrame, partitions: DataFrame) -> DataFrame:
    """`share_bytes` and `share_replicas` of each broker: what it should hold.

    None for clusters that no plan can be made for: their racks cannot be read, or their brokers are too few.
    """
    steps = """concat(
      transform(steps, s -> struct(s.level + 1 as level, s.node as node)),
      array(struct(size(steps) + 1 as level, broker as node))
    )"""
    nodes = (
        brokers.where("readable")
        .withColumn("steps", sf.expr(steps))
        .selectExpr("*", "posexplode(steps) as (above, step)")
        .groupBy("cluster", "step.level", "step.node")
        .agg(
            sf.first(sf.expr("if(above = 0, 0, steps[above - 1].node)")).alias("parent"),
            sf.sum(sf.expr(f"cast(if(allowed, weight, 0L) as {WHOLE})")).cast("double").alias("weight"),
            sf.count_if("allowed").cast("int").alias("cap"),
            sf.sum(sf.col("fixed_bytes").cast(WHOLE)).cast("double").alias("fixed_bytes"),
            sf.sum("fixed_replicas").cast("double").alias("fixed_replicas"),
            sf.sum(sf.greatest("fixed_bytes", "room").cast(WHOLE)).cast("double").alias("room"),
        )
    )
    node = sf.struct("level", "node", "parent", "weight", "cap", "fixed_bytes", "fixed_replicas", "room")
    amounts = (
        partitions.where("movable > 0")
        .groupBy("cluster", "rf")
        .agg(sf.sum("movable").cast("double").alias("replicas"), sf.sum("movable_bytes").cast("double").alias("bytes"))
        .groupBy("cluster")
        .agg(sf.array_sort(sf.collect_list(sf.struct("rf", "replicas", "bytes"))).alias("amounts"))
    )
    return (
        nodes.groupBy("cluster")
        .agg(sf.array_sort(sf.collect_list(node)).alias("nodes"), (sf.max("level") - 1).alias("depth"))
        .join(amounts, "cluster", "left")
        .withColumn("amounts", sf.expr("coalesce(amounts, array())"))
        .withColumn("top", sf.expr("filter(nodes, n -> n.level = 1)"))
        .where("aggregate(top, 0, (sum, n) -> sum + n.cap) >= greatest(1, array_max(transform(amounts, a -> a.rf)))")
        .withColumns(
            {
                f"total_{what}": sf.expr(
                    f"aggregate(top, 0D, (sum, n) -> sum + n.fixed_{what})"
                    f" + aggregate(amounts, 0D, (sum, a) -> sum + a.rf * a.{what})"
                )
                for what in ("bytes", "replicas")
            }
        )
        .selectExpr("cluster", f"inline({SHARES})")
        .selectExpr("cluster", "node as broker", "bytes as share_bytes", "replicas as share_replicas")
    )
