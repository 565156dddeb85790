"""The load of a cluster now, by the rules of the planner: on brokers, racks and directories, and in all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reassign.api.goal import COUNTED, Awareness
from reassign.errors import PlanningError
from reassign.fleet.outcomes import Row
from reassign.planning.problem.assignments import loads
from reassign.planning.problem.directories import capacities
from reassign.planning.problem.measures import what_counts
from reassign.planning.problem.model import UNKNOWN, Bytes, Cluster, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem
from reassign.planning.problem.racks import levels, names_of
from reassign.planning.problem.selection import any_of
from reassign.planning.problem.shares import DISK, REPLICAS
from reassign.planning.problem.spread import spread

WHATS = tuple(counted.what for counted in COUNTED.values())


def assess(cluster: Cluster, goal: PlacementGoal, problem: PlacementProblem | None) -> dict[str, list[Row]]:
    """Return rows of loads; without a problem, columns that need it are null."""
    load = loads(cluster.replicas, what_counts(cluster), len(cluster.brokers))
    return {
        "broker_load": list(_brokers(cluster, load, problem)),
        "rack_load": list(of_racks(cluster, goal, load)),
        "directory_load": list(_directories(cluster)),
        "cluster_load": [_whole(cluster, load) | {"matched": _matched(cluster, goal)} | _of_goal(goal, problem)],
    }


def _lying(load: Bytes) -> Row:
    """Return a load (K,) by the names of what is counted."""
    return dict(zip(WHATS, load.tolist(), strict=True))


def _brokers(cluster: Cluster, load: Bytes, problem: PlacementProblem | None) -> Iterator[Row]:
    capacity, known = capacities(cluster.directories, len(cluster.brokers))
    for i, broker in enumerate(cluster.brokers.tolist()):
        shares = {}
        for name, row in (("share_bytes", DISK), ("share_replicas", REPLICAS)):
            target = int(problem.target[row, i]) if problem else 0
            shares[name] = int(load[row, i]) / target if target else None
        yield {
            "broker": broker,
            "rack": cluster.racks[i] or None,
            "alive": bool(cluster.alive[i]),
            **_lying(load[:, i]),
            "capacity": int(capacity[i]) if known[i] else None,
            **shares,
        }


def of_racks(cluster: Cluster, goal: PlacementGoal, load: Bytes) -> Iterator[Row]:
    """Yield a row for each rack of each level and each broker that is a child itself; none if racks are unreadable."""
    try:
        groups = levels(cluster.racks, goal.awareness, cluster.brokers)
    except PlanningError:
        return
    for level, group in enumerate(groups, 1):
        for number in range(int(group.max(initial=-1)) + 1):
            mine = np.flatnonzero(group == number)
            yield {
                "level": level,
                "path": _path(cluster, goal, level, int(mine[0])),
                "brokers": len(mine),
                **_lying(load[:, mine].sum(axis=1)),
            }


def _path(cluster: Cluster, goal: PlacementGoal, level: int, broker: int) -> str:
    rack = cluster.racks[broker]
    names = names_of(rack) if goal.awareness is Awareness.TREE else (rack,)
    alone = f"broker {cluster.brokers[broker]}"
    if not rack:
        return alone
    path = f"/{'/'.join(names[:level])}" if names != (rack,) else rack
    return path if level <= len(names) else f"{path}/{alone}"


def _directories(cluster: Cluster) -> Iterator[Row]:
    """Yield a row for each log directory, and one without a path for a broker's replicas whose directory is unknown."""
    directories, each = cluster.directories, what_counts(cluster)
    place = cluster.directory if cluster.directory.size else np.full_like(cluster.replicas, UNKNOWN)
    inside = loads(place, each, len(directories.path))
    for i, (broker, path) in enumerate(zip(directories.broker.tolist(), directories.path, strict=True)):
        total, usable = int(directories.total[i]), int(directories.usable[i])
        yield {
            "broker": int(cluster.brokers[broker]),
            "path": path,
            "bytes": int(inside[DISK, i]),
            "replicas": int(inside[REPLICAS, i]),
            "total_bytes": None if total == UNKNOWN else total,
            "usable_bytes": None if usable == UNKNOWN else usable,
        }
    elsewhere = loads(np.where(place == UNKNOWN, cluster.replicas, UNKNOWN), each, len(cluster.brokers))
    for i in np.flatnonzero(elsewhere[REPLICAS]).tolist():
        what = {"bytes": int(elsewhere[DISK, i]), "replicas": int(elsewhere[REPLICAS, i])}
        yield {"broker": int(cluster.brokers[i]), "path": None, **what, "total_bytes": None, "usable_bytes": None}


def _whole(cluster: Cluster, load: Bytes) -> Row:
    lies = load.sum(axis=1)
    fullest = load.max(axis=1, initial=0)
    return {
        "brokers": len(cluster.brokers),
        "topics": len(cluster.topics),
        "partitions": len(cluster.partition),
        "replicas": int(lies[REPLICAS]),
        "bytes": int(lies[DISK]),
        "unknown_sizes": int((cluster.sizes < 0).sum()),
        "in_flight": int(cluster.in_flight.sum()),
        **{
            f"skew_{what}": int(most) * len(cluster.brokers) / int(all_of) if all_of else None
            for what, most, all_of in zip(WHATS, fullest, lies, strict=True)
        },
    }


def _matched(cluster: Cluster, goal: PlacementGoal) -> list[str]:
    """Return the patterns of the goal that match a topic."""
    patterns = dict.fromkeys((*goal.include, *(goal.exclude or ())))
    return [pattern for pattern in patterns if any(map(any_of((pattern,)), cluster.topics))]


def _of_goal(goal: PlacementGoal, problem: PlacementProblem | None) -> Row:
    if problem is None:
        return {}
    emptied = np.isin(problem.brokers, sorted(goal.drain))
    if goal.brokers is not None:
        emptied |= ~np.isin(problem.brokers, sorted(goal.brokers))
    leaves = problem.loads(problem.current, problem.movable)[:, emptied]
    has = (problem.current >= 0).sum(axis=1)
    return {
        "violations": int((~spread(problem.groups, problem.current, problem.allowed)).sum()),
        "drain_replicas": int(leaves[REPLICAS].sum()),
        "drain_bytes": int(leaves[DISK].sum()),
        "rf_replicas": int(np.abs(problem.rf - has)[problem.movable].sum()),
    }
