"""Partitions by name, for messages."""

from __future__ import annotations

from collections.abc import Iterable

from reassign.planning.problem.model import Cluster
from reassign.text import listed


def partition_name(cluster: Cluster, row: int) -> str:
    return f"{cluster.topics[cluster.topic[row]]}-{cluster.partition[row]}"


def partitions_named(cluster: Cluster, rows: Iterable[int]) -> str:
    """Return the first of these partitions by name, and the number of the others."""
    return listed((partition_name(cluster, row) for row in rows), most=1)
