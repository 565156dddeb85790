"""What a goal asks of logs and brokers that an observation does not show (`planning.unseen`)."""

from __future__ import annotations

from collections.abc import Iterator

from reassign.api.goal import GoalPart
from reassign.planning.problem.model import Cluster, PlacementGoal, UnmetGoal
from reassign.planning.problem.selection import any_of
from reassign.planning.unseen import left_out, on_drained


def unseen_goals(cluster: Cluster, goal: PlacementGoal) -> Iterator[UnmetGoal]:
    """Yield what no plan reaches, or may not reach, because it was not seen."""
    included, excluded = any_of(goal.include), any_of(goal.excluded)
    drained, unseen = drained_brokers(cluster, goal), cluster.unseen
    for what, nearest in on_drained(unseen, drained, included):
        yield UnmetGoal(what, nearest, GoalPart.DRAIN)
    if unseen and (goal.balance or goal.replication_factor is not None):
        wanted = {topic for topic in unseen.topics if included(topic) and not excluded(topic)}
        logs = [one for one in unseen.logs if one.broker not in drained and one.topic in wanted]
        for what, nearest in left_out(logs, unseen.unread & wanted):
            yield UnmetGoal(what, nearest)


def drained_brokers(cluster: Cluster, goal: PlacementGoal) -> frozenset[int]:
    """Return the ids of the brokers that a goal empties."""
    brokers = frozenset(cluster.brokers.tolist())
    return goal.drain if goal.brokers is None else goal.drain | (brokers - goal.brokers)
