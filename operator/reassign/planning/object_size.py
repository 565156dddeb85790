"""How many partitions of a plan one PartitionReassignment can hold."""

from __future__ import annotations

import json

import numpy as np

from reassign.api.limits import (
    MAX_DETAILS,
    MAX_OBJECT_BYTES,
    MAX_TOPIC_CHARACTERS,
    WAVE_BROKER_BYTES,
    WAVE_DETAIL_BYTES,
    WAVE_ENTRY_BYTES,
)
from reassign.api.partition_reassignment import ANY_LOG_DIR
from reassign.planning.problem.model import Cluster, Ints


def most_that_fit(cluster: Cluster, target: Ints, directories: Ints, changed: Ints) -> int:
    """Return how many of the `changed` partitions (M,) one object can hold, whichever these are; at least 1.

    Its status counts too, at its largest: the record repeats the replicas, and the directories that are named (P, R').
    """
    new, directory = target[changed], directories[changed]
    ids = (cluster.replicas[changed] >= 0).sum(axis=1) + (new >= 0).sum(axis=1)
    name = np.array([len(topic) for topic in cluster.topics], np.int64)[cluster.topic[changed]]
    path = np.array([*map(_json_bytes, cluster.directories.path), _json_bytes(ANY_LOG_DIR)], np.int64)
    named = (directory >= 0).any(axis=1) * np.where(new >= 0, path[directory], 0).sum(axis=1)
    size = WAVE_ENTRY_BYTES + 3 * name + 2 * WAVE_BROKER_BYTES * ids + 2 * named
    room = MAX_OBJECT_BYTES - MAX_DETAILS * WAVE_DETAIL_BYTES
    fit = [(np.cumsum(-np.sort(-each)) < most).sum() for each, most in ((size, room), (name, MAX_TOPIC_CHARACTERS))]
    return max(1, int(min(fit)))


def _json_bytes(text: str) -> int:
    """Return the bytes of a text in a JSON list."""
    return len(json.dumps(text, ensure_ascii=False).encode()) + 1
