"""The words of a goal, apart from the models of the resources, so that whoever only plans loads none of those.

What is balanced: bytes on disk, number of replicas, number of preferred leaders. How far racks count: paths level by
level (KIP-879), as plain names, or not at all (forceSimpleAssignment).
"""

from __future__ import annotations

from enum import StrEnum


class By(StrEnum):
    DISK = "Disk"
    REPLICAS = "Replicas"
    LEADERS = "Leaders"


class Awareness(StrEnum):
    TREE = "Tree"
    FLAT = "Flat"
    NONE = "None"
