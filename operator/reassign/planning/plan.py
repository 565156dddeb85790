"""From a cluster and a goal to a plan: where the replicas go, in which waves, and how far from the optimum that is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reassign.api.goal import GoalPart
from reassign.planning.bounds.certificates import balances, certify
from reassign.planning.object_size import most_that_fit
from reassign.planning.problem import directories
from reassign.planning.problem.directories import cordoned_brokers
from reassign.planning.problem.held import on
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import UNKNOWN, Balance, Bools, Cluster, Ints, PlacementGoal, Plan, UnmetGoal
from reassign.planning.problem.names import partitions_named
from reassign.planning.problem.problem import PlacementProblem, online_replicas, pose
from reassign.planning.solve import Solution, outside_bands, solve
from reassign.planning.waves.moves import moves_of
from reassign.planning.waves.split import makespan, split
from reassign.text import counted

ATTEMPTS = 3
"""To find what a cordoned broker holds back. Then all that would keep a replica there stays."""


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
    return make_of(pose(cluster, goal), cluster, goal, max_partitions, max_bytes, rate).plan


class Made(NamedTuple):
    """A plan, and the problem that it solves."""

    plan: Plan
    problem: PlacementProblem


def make_of(
    problem: PlacementProblem,
    cluster: Cluster,
    goal: PlacementGoal,
    max_partitions: int | None = None,
    max_bytes: int | None = None,
    rate: int | None = None,
) -> Made:
    """Return the plan as `make` does, for a caller that has the problem already.

    Of partitions that would keep a replica on a cordoned broker it is solved again, with these as they are.
    """
    problem, solution = _solved(problem, cluster, goal)
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
            *_beside(cluster, problem.leaving & _changed(cluster, target) & ~_even(problem, target)),
            *_without_room(cluster, without_room),
            *_alone(cluster, cut.alone),
        ),
    )
    return Made(Plan(target, named, cut.wave, certificate), problem)


def _solved(problem: PlacementProblem, cluster: Cluster, goal: PlacementGoal) -> tuple[PlacementProblem, Solution]:
    cordoned = cordoned_brokers(cluster.directories, len(cluster.brokers)) & ~problem.drained
    refused = np.zeros(len(cluster.replicas), np.bool_)
    for attempt in range(ATTEMPTS + 1):
        solution = solve(problem)
        kept = _changed(cluster, solution.target) & on(solution.target, cordoned)
        if not kept.any():
            break
        refused |= kept if attempt < ATTEMPTS - 1 else on(cluster.replicas, cordoned)
        problem = pose(cluster, goal, refused)
    return problem, solution


def _changed(cluster: Cluster, target: Ints) -> Bools:
    """Return (P,): which partitions have another row of replicas in `target` (P, R')."""
    width = max(target.shape[1], cluster.replicas.shape[1])
    before, after = (
        np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=UNKNOWN)
        for rows in (cluster.replicas, target)
    )
    return np.asarray((before != after).any(axis=1))


class Evenness(NamedTuple):
    """How even a cluster is as it is."""

    balance: tuple[Balance, ...]
    unmet: tuple[UnmetGoal, ...]
    """What of racks and balance a goal is short of."""


def evenness(cluster: Cluster, goal: PlacementGoal) -> Evenness:
    """Return how even the cluster is, and where it is not as the goal wants it; raises PlanningError as `make` does."""
    problem = pose(cluster, goal)
    uneven = (problem.movable | problem.held) & ~_even(problem, cluster.replicas)
    return Evenness(
        balances(problem, problem.loads(cluster.replicas)),
        (*_beside(cluster, uneven), *outside_bands(problem, cluster.replicas)),
    )


def _even(problem: PlacementProblem, replicas: Ints) -> Bools:
    """Return (P,): which of these rows (P, R') are spread over racks as evenly as possible, on whatever brokers."""
    number, everywhere = (replicas >= 0).sum(axis=1, dtype=np.int32), np.ones(len(problem.brokers), np.bool_)
    return done(replicas, number, everywhere, problem.tree.path, problem.tree.level, problem.tree.extra)


def _beside(cluster: Cluster, uneven: Bools) -> list[UnmetGoal]:
    if not uneven.any():
        return []
    what = f"{counted(int(uneven.sum()), 'partition')} not spread over racks as evenly as possible: "
    names = partitions_named(cluster, np.flatnonzero(uneven).tolist())
    return [UnmetGoal(what + names, "another plan spreads them", GoalPart.RACKS)]


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
