"""The enumerations of a goal. They are apart from the resource models, so that the planner does not load those.

A goal balances bytes on disk, the number of replicas, or the number of preferred leaders. Racks count as paths level by
level (KIP-879), as plain names, or not at all (forceSimpleAssignment).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

EXCLUDED_BY_DEFAULT = ("__*",)
"""Internal topics. They are not balanced and keep their replication factor, but leave brokers that are drained."""


class GoalPart(StrEnum):
    """What of a goal is not reached."""

    DRAIN = "Drain"
    REPLICATION_FACTOR = "ReplicationFactor"
    RACKS = "Racks"
    BALANCE = "Balance"


class Scope(StrEnum):
    """Which replicas a goal may move."""

    ALL = "All"
    DRAINED = "Drained"


class FencedBrokers(StrEnum):
    """What becomes of replicas on brokers that are registered and fenced, and not drained."""

    KEEP = "Keep"
    REPLACE = "Replace"


class By(StrEnum):
    DISK = "Disk"
    REPLICAS = "Replicas"
    LEADERS = "Leaders"


class Measure(NamedTuple):
    """What is measured of each partition; -1 or null where it is not known."""

    field: str  # of the planner's Cluster
    column: str  # of the partitions of a snapshot


class Counted(NamedTuple):
    """What a balance goal counts on each broker: a sum over the partitions that have a replica there."""

    what: str  # a plural; the column of a fleet's tables too
    meaning: str
    measure: Measure | None = None  # None: each partition counts as one
    unit: str = ""  # of bytes: B, or B/s
    leaders: bool = False  # only partitions whose first replica is there


COUNTED = {
    By.DISK: Counted("bytes", "bytes", Measure("sizes", "size_bytes"), "B"),
    By.REPLICAS: Counted("replicas", "their number"),
    By.LEADERS: Counted("leaders", "partitions whose first replica it is", leaders=True),
}
"""The balance goals, in the order of the planner's rows. The planner's search is for bytes and replicas, and its last
step for leaders. It balances any goal below these by `planning.kernel.further`, as far as these leave room for it."""

MEASURES = tuple(dict.fromkeys(counted.measure for counted in COUNTED.values() if counted.measure))


class Awareness(StrEnum):
    TREE = "Tree"
    FLAT = "Flat"
    NONE = "None"
