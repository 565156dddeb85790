"""How many partitions of a plan one PartitionReassignment can hold."""

from __future__ import annotations

import json

import numpy as np

from reassign.api.partition_reassignment import ANY_LOG_DIR, MAX_DETAILS, MAX_TOPIC_CHARACTERS
from reassign.planning.problem.model import Cluster, Ints

MAX_BYTES = 1_400_000
"""Of an object with its status: etcd takes 1.5 MiB, and conditions and metadata need some of that."""
DETAIL_BYTES = 3_000
"""What status.partitions has of one partition at most, with a topic name and a message as long as can be."""
ENTRY_BYTES = 640
ID_BYTES = 11
"""An entry in the spec, in managedFields and in the record, without names and ids; and a broker's id."""


def most_that_fit(cluster: Cluster, target: Ints, directories: Ints, changed: Ints) -> int:
    """How many of the `changed` partitions (M,) one object can hold, whichever of them these are; at least 1.

    Its status counts too, at its largest: the record repeats the replicas, and the directories that are named (P, R').
    """
    new, directory = target[changed], directories[changed]
    ids = (cluster.replicas[changed] >= 0).sum(axis=1) + (new >= 0).sum(axis=1)
    name = np.array([len(topic) for topic in cluster.topics], np.int64)[cluster.topic[changed]]
    path = np.array([*map(_json_bytes, cluster.directories.path), _json_bytes(ANY_LOG_DIR)], np.int64)
    named = (directory >= 0).any(axis=1) * np.where(new >= 0, path[directory], 0).sum(axis=1)
    size = ENTRY_BYTES + 3 * name + 2 * ID_BYTES * ids + 2 * named
    room = MAX_BYTES - MAX_DETAILS * DETAIL_BYTES
    fit = [(np.cumsum(-np.sort(-each)) < most).sum() for each, most in ((size, room), (name, MAX_TOPIC_CHARACTERS))]
    return max(1, int(min(fit)))


def _json_bytes(text: str) -> int:
    """Of a text in a list."""
    return len(json.dumps(text, ensure_ascii=False).encode()) + 1
