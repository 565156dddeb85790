"""The exact optimum of tiny clusters is the best of all their plans; polishing makes no plan worse."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reassign.api.goal import By
from reassign.errors import PlanningError
from reassign.planning.bounds import certificates, exact
from reassign.planning.problem.model import Goal
from reassign.planning.problem.problem import Problem, pose
from tests.benchmarks.instances import Made, cluster, goal
from tests.spread import spread
from tests.unit.examples import examples
from tests.unit.tiny_clusters import as_target, choices, every_plan, problems, tiny


@examples(60)
@given(problems())
def test_the_optimum_is_the_best_of_all_legal_plans_inside_the_bands(problem: Problem) -> None:
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


@examples(60)
@given(problems(), st.data())
def test_a_polished_plan_balances_as_well_and_costs_no_more(problem: Problem, data: st.DataObject) -> None:
    target = as_target(tuple(data.draw(st.sampled_from(sets)) for sets in choices(problem)))
    polished = exact.polish(problem, target)
    before, after = (problem.loads(plan) for plan in (target, polished))
    low, high = certificates.limits(problem, before)
    assert ((after >= low) & (after <= high)).all()
    one, other = certificates.cost(problem, polished), certificates.cost(problem, target)
    low, high = certificates.limits(problem)
    mended = ((after >= low) & (after <= high)).all() and not ((before >= low) & (before <= high)).all()
    assert mended or (one.bytes, one.moves) <= (other.bytes, other.moves)


def test_leaders_are_brought_inside_their_band_by_reordering() -> None:
    made = tiny(("a", "b", "c"), [[0, 1], [0, 1], [0, 2], [0, 2], [0, 1], [0, 2]], [1] * 6, [1, 1, 1])
    found = exact.optimum(pose(made, Goal(balance=frozenset({By.LEADERS}), tolerance=0.01)))
    assert found.target is not None
    assert np.bincount(found.target[:, 0]).max() <= 3
    assert found.bytes_bound == 0


def test_polishing_the_same_plan_twice_gives_the_same_plan() -> None:
    made = Made(120, 6, racks=(3,))
    problem = pose(cluster(made), goal(made))
    first, second = (exact.optimum(problem, nodes=20) for _ in range(2))
    assert first.target is not None
    assert second.target is not None
    assert first.target.tobytes() == second.target.tobytes()


def test_a_plan_that_is_too_large_stays_as_it_is() -> None:
    made = Made(9_000, 30)
    problem = pose(cluster(made), goal(made))
    assert exact.polish(problem, problem.current) is problem.current


def test_without_highs_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    made = Made(120, 6, racks=(3,))
    problem = pose(cluster(made), goal(made))
    with pytest.raises(PlanningError, match=r"install kafka-reassign-operator\[exact\]"):
        exact.polish(problem, problem.current)
