"""Goals of the API as goals of the planner."""

from __future__ import annotations

from reassign.api import reassignment_plan as api
from reassign.planning.problem.model import PlacementGoal


def goal_of(goal: api.Goal, topics: api.Topics, racks: api.Racks, min_free_percent: int) -> PlacementGoal:
    """Return the planner's goal; `min_free_percent` of each volume stays free."""
    balance = goal.balance
    return PlacementGoal(
        include=topics.include,
        exclude=topics.exclude,
        drain=frozenset(goal.drain_brokers or ()),
        brokers=None if goal.brokers is None else frozenset(goal.brokers),
        replication_factor=goal.replication_factor,
        balance=frozenset(balance.by) if balance else frozenset(),
        tolerance=balance.tolerance_percent / 100 if balance else 0.10,
        awareness=racks.awareness,
        min_free=min_free_percent / 100,
        avoid=frozenset(goal.avoid_brokers or ()),
        scope=goal.scope,
        fenced_brokers=goal.fenced_brokers,
    )
