"""What every plan copies at least that reaches the goal of a cluster; `bounds.certificates` proves more.

What brokers have more than their band must leave them, what they have less must come; and where too few replicas of a
partition are on brokers that may hold them, the others come from somewhere. Bands count where all replicas are small
than they are, so that the planner takes the same ones; else only the last does.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

SLACK = 1e-9
"""The part by which fractions can be off."""

OVER, UNDER = (
    "greatest(0L, {what} - if(allowed, cast(floor({high}) as bigint), fixed_{what}))",
    "if(allowed, greatest(0L, cast(ceil({low}) as bigint) - {what}), 0L)",
)
BANDS = {
    "bytes": (
        f"(1 + tolerance) * (greatest(share_bytes * (1 + {SLACK}), fixed_bytes + biggest + beside) + 64)",
        f"(1 - tolerance) * (share_bytes * (1 - {SLACK}) - 64)",
    ),
    "replicas": (
        "greatest((1 + tolerance) * (share_replicas + 2), share_replicas + 3, fixed_replicas + 1)",
        "least((1 - tolerance) * (share_replicas - 2), share_replicas - 2)",
    ),
}
"""(high, low): shares are fractions here, and whole in the plan, where each level of the tree rounds."""

BESIDE = """
if(biggest > tolerance * smallest and array_contains(balance, 'Replicas'), (share_replicas + 2) * mean, 0)"""
"""The planner's bands are wider where a large replica may have small ones beside it: by no more than these bytes."""


def bounds(brokers: DataFrame, partitions: DataFrame, terms: DataFrame) -> DataFrame:
    """`bytes_bound` and `moves_bound` of each cluster that has targets; `brokers` have their shares."""
    movable = partitions.groupBy("cluster").agg(
        *(sf.try_sum(name).alias(name) for name in ("change", "added", "change_bytes", "added_bytes")),
        sf.expr("coalesce(try_sum(movable_bytes) / nullif(sum(movable), 0), 0)").alias("mean"),
        sf.max("largest").alias("biggest"),
    )
    high_replicas, _ = BANDS["replicas"]
    fits = {
        "small": "biggest <= share_bytes - fixed_bytes",
        "roomy": f"room >= ({high_replicas} - fixed_replicas) * mean",
    }
    return (
        brokers.where("share_bytes is not null")
        .select("cluster", "allowed", "room", *(f"{of}{what}" for what in BANDS for of in ("", "fixed_", "share_")))
        .join(sf.broadcast(terms.select("cluster", "balance", "tolerance")), "cluster")
        .join(sf.broadcast(movable), "cluster")
        .withColumn("smallest", sf.min(sf.expr("if(allowed, share_bytes, null)")).over(Window.partitionBy("cluster")))
        .withColumn("beside", sf.expr(BESIDE))
        .groupBy("cluster")
        .agg(
            *(sf.first(name).alias(name) for name in (*movable.columns[1:], "balance")),
            *(sf.expr(f"bool_and(not allowed or {fit})").alias(name) for name, fit in fits.items()),
            *(
                sf.try_sum(sf.expr(side.format(what=what, high=high, low=low))).alias(f"{name}_{what}")
                for what, (high, low) in BANDS.items()
                for name, side in (("over", OVER), ("under", UNDER))
            ),
        )
        .withColumn(
            "bytes_bound",
            _greatest(
                "added_bytes",
                "over_bytes + change_bytes",
                "under_bytes",
                when="small and array_contains(balance, 'Disk')",
            ),
        )
        .withColumn(
            "moves_bound",
            sf.greatest(
                _greatest(
                    "added",
                    "over_replicas + change",
                    "under_replicas",
                    when="roomy and array_contains(balance, 'Replicas')",
                ),
                sf.expr("cast(ceil(bytes_bound / nullif(biggest, 0)) as bigint)"),
            ),
        )
        .select("cluster", "bytes_bound", "moves_bound")
    )


def _greatest(always: str, *others: str, when: str) -> Column:
    return sf.expr(f"if({when}, greatest({always}, {', '.join(others)}), {always})")
