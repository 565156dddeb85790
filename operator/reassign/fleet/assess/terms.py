"""What is wanted of each cluster, as rows that expressions can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import translate

from pyspark.sql import DataFrame, SparkSession

from reassign.planning.model import Goal

TERMS = (
    "cluster string, included string, excluded string, drain array<int>, brokers array<int>, replication_factor int, "
    "balance array<string>, tolerance double, awareness string, min_free double"
)
"""`included` and `excluded` are regular expressions of whole names of topics; `brokers` null: all of them."""


def terms_of(spark: SparkSession, goals: Mapping[str, Goal]) -> DataFrame:
    """Rows of TERMS, from the goals of the clusters by name."""
    rows = [
        (
            cluster,
            _any_of(goal.include),
            _any_of(goal.exclude),
            sorted(goal.drain),
            None if goal.brokers is None else sorted(goal.brokers),
            goal.replication_factor,
            sorted(by.value for by in goal.balance),
            goal.tolerance,
            goal.awareness.value,
            goal.min_free,
        )
        for cluster, goal in sorted(goals.items())
    ]
    return spark.createDataFrame(rows, TERMS)


def _any_of(patterns: Iterable[str]) -> str:
    """One regular expression for shell-like patterns; without any it matches nothing that is a name."""
    return rf"\A(?:{'|'.join(map(translate, patterns)) or '(?!)'})"
