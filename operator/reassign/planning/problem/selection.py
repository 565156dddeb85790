"""The topics of a goal: which partitions are planned, and which only leave the brokers that are drained.

Topics that the goal itself excludes stay where they are. Topics that are excluded by default are not balanced and keep
their replication factor, but a drain moves them too. With the scope Drained all topics do no more than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reassign.api.goal import Scope
from reassign.api.names import matches
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import Bools, Cluster, PlacementGoal


class Selection(NamedTuple):
    """Each (P,)."""

    planned: Bools
    leaving: Bools  # with a replica on a drained broker, and excluded by default or by the goal's scope
    kept: Bools  # included, and excluded all the same


def select(cluster: Cluster, goal: PlacementGoal, drained: Bools) -> Selection:
    """Return what the goal selects; `drained` (B,) are the brokers that hold nothing in the end.

    Raises PlanningError: NothingSelected.
    """
    included, excluded = any_of(goal.include), any_of(goal.excluded)
    topics = np.array([included(topic) for topic in cluster.topics], bool)
    spared = np.array([excluded(topic) for topic in cluster.topics], bool)
    of = cluster.topic
    planned, kept = (topics & ~spared)[of], (topics & spared)[of]
    leaves = goal.exclude is None and drained.any()
    if not (planned.any() or (leaves and kept.any())):
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"no topic of {len(cluster.topics)} matches: included are {', '.join(goal.include) or 'none'}, "
            f"excluded are {', '.join(goal.excluded) or 'none'}; change the patterns",
        )
    on_drained = ((cluster.replicas >= 0) & drained[cluster.replicas]).any(axis=1)
    leaving: Bools = kept & on_drained if leaves else np.zeros_like(planned)
    kept = kept & ~leaving
    if goal.scope is Scope.DRAINED:
        return Selection(np.zeros_like(planned), leaving | (planned & on_drained), kept)
    return Selection(planned, leaving, kept)


def any_of(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Return whether one of the patterns matches a topic. There may be one pattern for each topic, its name."""
    names = frozenset(patterns)
    wild = [pattern for pattern in patterns if set(pattern) & set("*?[")]
    return lambda topic: topic in names or matches(topic, wild)
