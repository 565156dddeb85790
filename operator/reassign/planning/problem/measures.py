"""What a replica of each partition counts for each goal; means where that is not known."""

from __future__ import annotations

import numpy as np

from reassign.api.goal import COUNTED
from reassign.planning.problem.model import Bytes, Cluster, Ints


def what_counts(cluster: Cluster) -> Bytes:
    """Return (K, P): what a replica of each partition counts; means where that is not known (see Problem)."""
    one = np.ones(len(cluster.topic), np.int64)
    measures = (counted.measure for counted in COUNTED.values())
    of_topic = cluster.topic, len(cluster.topics)
    return np.stack([or_means(getattr(cluster, of.field), *of_topic) if of else one for of in measures])


def sizes_or_means(cluster: Cluster) -> Bytes:
    """Return (P,): bytes of a replica; means where they are not known (see Problem)."""
    return or_means(cluster.sizes, cluster.topic, len(cluster.topics))


def or_means(measured: Bytes, topic: Ints, topics: int) -> Bytes:
    """Return (P,): what is measured of partitions, whose topics are numbered; where it is negative the mean of the
    topic's known ones, else of all known ones, else 1."""
    known = measured >= 0
    if known.all():
        return measured
    total = np.zeros(topics, np.int64)
    np.add.at(total, topic[known], measured[known])
    count = np.bincount(topic[known], minlength=len(total))
    mean = int(total.sum()) // int(count.sum()) if known.any() else 1
    guess = np.where(count > 0, total // np.maximum(count, 1), mean)
    return np.where(known, measured, guess[topic])
