"""From a cluster and a goal to a plan: where the replicas go, in which waves, and how far from the optimum that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.api.goal import GoalPart
from reassign.planning.bounds.certificates import balances, certify
from reassign.planning.object_size import most_that_fit
from reassign.planning.problem import directories
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import Balance, Cluster, Ints, PlacementGoal, Plan, UnmetGoal
from reassign.planning.problem.names import partitions_named
from reassign.planning.problem.problem import PlacementProblem, online_replicas, pose
from reassign.planning.solve import outside_bands, solve
from reassign.planning.waves.moves import moves_of
from reassign.planning.waves.split import makespan, split
from reassign.text import counted


def make(
    cluster: Cluster,
    goal: PlacementGoal,
    max_partitions: int | None = None,
    max_bytes: int | None = None,
    rate: int | None = None,
) -> Plan:
    """Return the plan that reaches a goal, or comes as near as it can and lists what it does not reach.

    Waves have at most `max_partitions`, no more than fit into one object, and copy at most `max_bytes`. `rate` is the
    bytes per second that a broker may send, and receive; it only serves to estimate the time. The same input gives
    the same plan.

    Raises PlanningError: InvalidGoal, InvalidRacks, InvalidSnapshot, NothingSelected, NotEnoughBrokers.
    """
    return make_of(pose(cluster, goal), cluster, goal, max_partitions, max_bytes, rate)


def make_of(
    problem: PlacementProblem,
    cluster: Cluster,
    goal: PlacementGoal,
    max_partitions: int | None = None,
    max_bytes: int | None = None,
    rate: int | None = None,
) -> Plan:
    """Return the plan as `make` does, for a caller that has the problem already."""
    solution = solve(problem)
    target = solution.target
    named, without_room = directories.name(cluster, target, problem.size, goal.min_free)
    moves = moves_of(cluster.replicas, target, problem.size, online_replicas(cluster))
    fit = most_that_fit(cluster, target, named, moves.partition)
    cut = split(moves, fit if max_partitions is None else min(fit, max_partitions), max_bytes)
    took = None if rate is None else makespan(moves, cut.wave, rate)
    certificate = certify(
        problem,
        target,
        waves=cut.number,
        waves_bound=cut.bound,
        makespan=took and took.seconds,
        makespan_bound=took and took.bound,
        unmet=(
            *solution.unmet,
            *outside_bands(problem, target),
            *_without_room(cluster, without_room),
            *_alone(cluster, cut.alone),
        ),
    )
    return Plan(target, named, cut.wave, certificate)


class Evenness(NamedTuple):
    """How even a cluster is as it is."""

    balance: tuple[Balance, ...]
    unmet: tuple[UnmetGoal, ...]
    """What of racks and balance a goal is short of."""


def evenness(cluster: Cluster, goal: PlacementGoal) -> Evenness:
    """Return how even the cluster is, and where it is not as the goal wants it; raises PlanningError as `make` does."""
    problem = pose(cluster, goal)
    held = (cluster.replicas >= 0).sum(axis=1, dtype=np.int32)
    everywhere = np.ones(len(cluster.brokers), np.bool_)
    tree = problem.tree
    even = done(cluster.replicas, held, everywhere, tree.path, tree.level, tree.extra)
    uneven = (problem.movable | problem.held) & ~even
    return Evenness(
        balances(problem, problem.loads(cluster.replicas)),
        (*_beside(cluster, np.flatnonzero(uneven).tolist()), *outside_bands(problem, cluster.replicas)),
    )


def _beside(cluster: Cluster, partitions: list[int]) -> list[UnmetGoal]:
    if not partitions:
        return []
    what = f"{counted(len(partitions), 'partition')} not spread over racks as evenly as possible: "
    return [UnmetGoal(what + partitions_named(cluster, partitions), "another plan spreads them", GoalPart.RACKS)]


def _without_room(cluster: Cluster, partitions: list[int]) -> list[UnmetGoal]:
    if not partitions:
        return []
    what = f"no single volume of a broker has room for {partitions_named(cluster, partitions)}"
    return [UnmetGoal(what, "the broker chooses the directory, and the move waits until there is room")]


def _alone(cluster: Cluster, partitions: Ints) -> list[UnmetGoal]:
    if not len(partitions):
        return []
    what = f"more than a wave may copy is in {partitions_named(cluster, partitions.tolist())}"
    return [UnmetGoal(what, "each of them is a wave of its own")]
