"""Snapshots of made clusters."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from reassign.files.tables import Snapshot
from reassign.planning.problem.model import UNKNOWN, Cluster


def in_sync(cluster: Cluster, taken_at: datetime) -> Snapshot:
    """The snapshot of a cluster in which all is well: preferred leaders lead, and all replicas are in sync."""
    unknown_last = np.where(cluster.replicas == UNKNOWN, np.iinfo(np.int32).max, cluster.replicas)
    isr = np.sort(unknown_last, axis=1)
    leader = cluster.replicas[:, 0] if cluster.replicas.shape[1] else np.full(len(cluster.replicas), UNKNOWN, np.int32)
    return Snapshot(cluster, taken_at, leader, np.where(isr == np.iinfo(np.int32).max, UNKNOWN, isr).astype(np.int32))
