"""Partitions that a goal would plan and that stay as they are, because of a broker that has a replica of them.

A fenced broker is down or still starting, most of the time for a restart. To evacuate it would copy all that it has.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reassign.api.goal import FencedBrokers, GoalPart
from reassign.planning.problem.model import Bools, Cluster, PlacementGoal, UnmetGoal
from reassign.planning.problem.names import partitions_named
from reassign.text import counted, named_brokers, plural

REPLACE = "`fencedBrokers: Replace`, on the command line `--fenced-brokers replace`"


def held_back(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Bools:
    """Return (P,): which partitions stay; `drained` (B,) are the brokers that hold nothing in the end."""
    return on(cluster, _keeping(cluster, goal, drained))


def _keeping(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Bools:
    """Return (B,): the fenced brokers that keep what they have."""
    if goal.fenced_brokers is FencedBrokers.REPLACE:
        return np.zeros_like(drained)
    return np.asarray(cluster.registered & ~cluster.alive & ~drained)


def on(cluster: Cluster, brokers: Bools) -> Bools:
    """Return (P,): which partitions have a replica on one of these brokers (B,)."""
    return np.asarray(((cluster.replicas >= 0) & brokers[cluster.replicas]).any(axis=1))


def held_goals(cluster: Cluster, goal: PlacementGoal, drained: Bools, rows: Bools) -> Iterator[UnmetGoal]:
    """Yield what is not planned: the partitions `rows` (P,) that are held back."""
    if not rows.any():
        return
    keeps = _keeping(cluster, goal, drained)
    has = keeps & np.isin(np.arange(len(keeps)), cluster.replicas[rows])
    brokers, names = cluster.brokers[has].tolist(), partitions_named(cluster, np.flatnonzero(rows).tolist())
    why = f"since {named_brokers(brokers, 'is')} fenced (down or still starting)"
    yield UnmetGoal(
        f"{counted(int(rows.sum()), 'partition')} not moved, {why}: {names}",
        f"they stay as they are; plan again when {plural(brokers, 'it is', 'they are')} back, drain "
        f"{plural(brokers, 'it', 'them')}, or replace what fenced brokers have ({REPLACE})",
        GoalPart.DRAIN if (on(cluster, drained) & rows).any() else None,
    )
