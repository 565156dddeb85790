"""Partitions that a goal would plan and that stay as they are, because of a broker that has a replica of them.

A fenced broker is down or still starting, most of the time for a restart. To evacuate it would copy all that it has.
Kafka refuses a target that names a broker which is not registered. From 4.3.2 and 4.4.0 on it refuses one that names a
broker whose log directories are all cordoned (KAFKA-20832), also where its replica is there already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reassign.api.goal import FencedBrokers, GoalPart, Scope
from reassign.planning.problem.model import Bools, Cluster, Ints, PlacementGoal, UnmetGoal
from reassign.planning.problem.names import partitions_named
from reassign.text import counted, named_brokers, plural

REPLACE = "`fencedBrokers: Replace`, on the command line `--fenced-brokers replace`"


def held_back(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Bools:
    """Return (P,): which partitions stay, whatever is planned; `drained` (B,) brokers hold nothing in the end."""
    return on(cluster.replicas, _fenced(cluster, goal, drained) | _missing(cluster, goal, drained))


def _fenced(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Bools:
    """Return (B,): the fenced brokers that keep what they have."""
    keeps = goal.fenced_brokers is FencedBrokers.KEEP or goal.scope is Scope.DRAINED
    return np.asarray(cluster.registered & ~cluster.alive & ~drained & keeps)


def _missing(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Bools:
    """Return (B,): the brokers that are not registered, and whose replicas the goal's scope leaves alone."""
    return np.asarray(~cluster.registered & ~cluster.alive & ~drained & (goal.scope is Scope.DRAINED))


def on(replicas: Ints, brokers: Bools) -> Bools:
    """Return (P,): which partitions have one of their `replicas` (P, R) on one of these brokers (B,)."""
    return np.asarray(((replicas >= 0) & brokers[replicas]).any(axis=1))


def held_goals(
    cluster: Cluster, goal: PlacementGoal, drained: Bools, held: Bools, refused: Bools, cordoned: Bools
) -> Iterator[UnmetGoal]:
    """Yield what is not planned of the partitions `held` (P,) back.

    Of them `refused` (P,) would keep a replica on the brokers that are `cordoned` (B,).
    """
    others, drains = held & ~refused, on(cluster.replicas, drained)

    def unmet(rows: Bools, brokers: Bools, why: str, todo: str) -> Iterator[UnmetGoal]:
        rows = rows & on(cluster.replicas, brokers)
        if not rows.any():
            return
        ids = cluster.brokers[brokers & np.isin(np.arange(len(brokers)), cluster.replicas[rows])].tolist()
        names = partitions_named(cluster, np.flatnonzero(rows).tolist())
        yield UnmetGoal(
            f"{counted(int(rows.sum()), 'partition')} not moved, since {named_brokers(ids, 'is')} {why}: {names}",
            f"they stay as they are; {todo}, or drain {plural(ids, 'that broker', 'those brokers')} too",
            GoalPart.DRAIN if (rows & drains).any() else None,
        )

    restarts = "plan again when all are back"
    replace = restarts if goal.scope is Scope.DRAINED else f"{restarts}, replace what fenced brokers have ({REPLACE})"
    missing = "let the goal move their replicas there (`scope: All`, on the command line `--scope all`)"
    lift = "Kafka 4.3.2 and later refuses such moves: lift the cordon"
    yield from unmet(others, _fenced(cluster, goal, drained), "fenced (down or still starting)", replace)
    yield from unmet(others, _missing(cluster, goal, drained), "not registered", missing)
    yield from unmet(refused, cordoned, "cordoned (all log directories)", lift)
