"""What a goal asks of logs and brokers that an observation does not show.

Metadata leaves out topics that the Kafka user may not describe, without a word. So that a broker is empty is known only
where each of its logs has metadata, and where it has reported them.
"""

from __future__ import annotations

from collections.abc import Iterable

from reassign.api.goal import GoalPart
from reassign.planning.problem.model import Cluster, PlacementGoal, UnmetGoal, UnseenLogs
from reassign.planning.problem.selection import any_of
from reassign.text import amount, counted, listed


def unseen_goals(cluster: Cluster, goal: PlacementGoal) -> list[UnmetGoal]:
    """Return what no plan reaches because it was not seen; nothing where that is not known."""
    if cluster.unseen is None:
        return []
    included, excluded = any_of(goal.include), any_of(goal.excluded)
    drained = drained_brokers(cluster, goal)
    logs = [one for one in cluster.unseen.logs if included(one.topic)]
    unmet = []
    if staying := [one for one in logs if one.broker in drained]:
        unmet.append(
            UnmetGoal(
                f"{_summed(staying)} on brokers to be emptied: {_brokers(staying)}",
                "they stay; grant DESCRIBE and DESCRIBE_CONFIGS on all topics, then plan again",
                GoalPart.DRAIN,
            )
        )
    if silent := drained & cluster.unseen.silent:
        unmet.append(
            UnmetGoal(
                f"log directories that brokers to be emptied do not report: {listed(sorted(silent))}",
                "topics that metadata does not show may stay there; plan again when these brokers answer",
                GoalPart.DRAIN,
            )
        )
    counts = goal.balance or goal.replication_factor is not None
    if counts and (others := [one for one in logs if one.broker not in drained and not excluded(one.topic)]):
        unmet.append(
            UnmetGoal(
                f"{_summed(others)} on brokers {_brokers(others)}",
                "they do not count, and stay as they are; grant DESCRIBE and DESCRIBE_CONFIGS on all topics, then "
                "plan again",
            )
        )
    return unmet


def unseen_notes(cluster: Cluster) -> list[str]:
    """Return what an observation did not show, a sentence each."""
    notes = []
    if unseen := cluster.unseen:
        if unseen.logs:
            notes.append(
                f"{_summed(unseen.logs)} are left out, on brokers {_brokers(unseen.logs)}: grant DESCRIBE and "
                "DESCRIBE_CONFIGS on all topics"
            )
        if unseen.silent:
            brokers = listed(sorted(unseen.silent))
            notes.append(f"what only log directories show is left out of brokers that do not report them: {brokers}")
    return notes


def drained_brokers(cluster: Cluster, goal: PlacementGoal) -> frozenset[int]:
    """Return the ids of the brokers that a goal empties."""
    brokers = frozenset(cluster.brokers.tolist())
    return goal.drain if goal.brokers is None else goal.drain | (brokers - goal.brokers)


def _summed(logs: Iterable[UnseenLogs]) -> str:
    number, size = sum(one.logs for one in logs), sum(one.bytes for one in logs)
    return f"{counted(number, 'replica')} ({amount(size)}) of topics that may not be seen"


def _brokers(logs: Iterable[UnseenLogs]) -> str:
    return listed(sorted({one.broker for one in logs}))
