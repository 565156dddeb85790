"""The enumerations of a goal. They are apart from the resource models, so that the planner does not load those.

A goal balances bytes on disk, the number of replicas, or the number of preferred leaders. Racks count as paths level by
level (KIP-879), as plain names, or not at all (forceSimpleAssignment).
"""

from __future__ import annotations

from enum import StrEnum

EXCLUDED_BY_DEFAULT = ("__*",)
"""Internal topics. They are not balanced and keep their replication factor, but leave brokers that are drained."""


class By(StrEnum):
    DISK = "Disk"
    REPLICAS = "Replicas"
    LEADERS = "Leaders"


COUNTED = {By.DISK: "bytes", By.REPLICAS: "replicas", By.LEADERS: "leaders"}
"""The balance goals, in the order of the planner's rows, with what is counted for each. Of them only bytes are of any
unit; the others are whole numbers."""


class Awareness(StrEnum):
    TREE = "Tree"
    FLAT = "Flat"
    NONE = "None"
