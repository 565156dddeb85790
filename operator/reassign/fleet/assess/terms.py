"""The goal of each cluster, as rows that expressions can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import translate

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reassign.planning.problem.model import Goal

TERMS = pa.schema(
    [
        ("cluster", pa.string()),
        ("included", pa.string()),
        ("excluded", pa.string()),
        ("by_default", pa.bool_()),
        ("drain", pa.list_(pa.int32())),
        ("brokers", pa.list_(pa.int32())),
        ("replication_factor", pa.int32()),
        ("balance", pa.list_(pa.string())),
        ("tolerance", pa.float64()),
        ("awareness", pa.string()),
        ("min_free", pa.float64()),
    ]
)
"""`included` and `excluded` are regular expressions of whole names of topics; what is excluded `by_default` leaves
drained brokers all the same. `brokers` null: all of them."""


def terms_of(spark: SparkSession, goals: Mapping[str, Goal]) -> DataFrame:
    """Return rows of TERMS for the goals of the clusters by name."""
    rows = [
        {
            "cluster": cluster,
            "included": _any_of(goal.include),
            "excluded": _any_of(goal.excluded),
            "by_default": goal.exclude is None,
            "drain": sorted(goal.drain),
            "brokers": None if goal.brokers is None else sorted(goal.brokers),
            "replication_factor": goal.replication_factor,
            "balance": sorted(by.value for by in goal.balance),
            "tolerance": goal.tolerance,
            "awareness": goal.awareness.value,
            "min_free": goal.min_free,
        }
        for cluster, goal in sorted(goals.items())
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, TERMS))


def _any_of(patterns: Iterable[str]) -> str:
    """One regular expression for shell-like patterns; without any it matches nothing that is a name."""
    return rf"\A(?:{'|'.join(map(translate, patterns)) or '(?!)'})"
