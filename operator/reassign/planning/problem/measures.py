"""What a replica of each partition counts for each goal; means where that is not known."""

from __future__ import annotations

import numpy as np

from reassign.api.goal import COUNTED
from reassign.planning.problem.model import Bytes, Cluster


def what_counts(cluster: Cluster) -> Bytes:
    """Return (K, P): what a replica of each partition counts; means where that is not known (see Problem)."""
    one = np.ones(len(cluster.topic), np.int64)
    measures = (counted.measure for counted in COUNTED.values())
    return np.stack([_or_means(cluster, getattr(cluster, of.field)) if of else one for of in measures])


def sizes_or_means(cluster: Cluster) -> Bytes:
    """Return (P,): bytes of a replica; means where they are not known (see Problem)."""
    return _or_means(cluster, cluster.sizes)


def _or_means(cluster: Cluster, measured: Bytes) -> Bytes:
    known = measured >= 0
    if known.all():
        return measured
    total = np.zeros(len(cluster.topics), np.int64)
    np.add.at(total, cluster.topic[known], measured[known])
    count = np.bincount(cluster.topic[known], minlength=len(total))
    mean = int(total.sum()) // int(count.sum()) if known.any() else 1
    guess = np.where(count > 0, total // np.maximum(count, 1), mean)
    return np.where(known, measured, guess[cluster.topic])
