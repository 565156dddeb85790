"""The yardstick of the planner: the exact optimum of tiny clusters is the best of all their plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given

from reassign.api.goal import By
from reassign.planning.bounds import certificates
from reassign.planning.problem.model import PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, pose
from tests.benchmarks import exact
from tests.benchmarks.instances import Made, cluster, goal
from tests.spread import spread
from tests.unit.examples import examples
from tests.unit.tiny_clusters import every_plan, problems, tiny


@examples(60)
@given(problems())
def test_the_optimum_is_the_best_of_all_legal_plans_inside_the_bands(problem: PlacementProblem) -> None:
    assume(problem.movable.any())
    problem = replace(problem, balanced=problem.balanced & [True, True, False])
    found = exact.optimum(problem)
    load, bytes_, moves = every_plan(problem)
    low, high = certificates.limits(problem)
    inside = ((load >= low[:2]) & (load <= high[:2])).all(axis=(1, 2))
    assert (found.target is not None) == inside.any()
    if found.target is not None:
        best = min(zip(bytes_[inside].tolist(), moves[inside].tolist(), strict=True))
        cost = certificates.cost(problem, found.target)
        assert (cost.bytes, cost.moves) == best
        assert found.bytes_bound <= cost.bytes
        assert spread(problem.groups, found.target, problem.allowed)[problem.movable].all()


def test_leaders_are_brought_inside_their_band_by_reordering() -> None:
    made = tiny(("a", "b", "c"), [[0, 1], [0, 1], [0, 2], [0, 2], [0, 1], [0, 2]], [1] * 6, [1, 1, 1])
    found = exact.optimum(pose(made, PlacementGoal(balance=frozenset({By.LEADERS}), tolerance=0.01)))
    assert found.target is not None
    assert np.bincount(found.target[:, 0]).max() <= 3
    assert found.bytes_bound == 0


def test_the_optimum_is_the_same_plan_each_time() -> None:
    made = Made(120, 6, racks=(3,))
    problem = pose(cluster(made), goal(made))
    first, second = (exact.optimum(problem, nodes=20) for _ in range(2))
    assert first.target is not None
    assert second.target is not None
    assert first.target.tobytes() == second.target.tobytes()
