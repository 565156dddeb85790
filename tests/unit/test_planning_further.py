"""What further goals count is balanced beside the others, compiled as it runs (see `test_another_goal.py` too)."""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.further import Loads, exchange_leaders, exchange_replicas
from reassign.planning.kernel.rows import greatest_first
from reassign.planning.problem.assignments import OF_LEADERS, loads
from reassign.planning.problem.model import Bools, Bytes, Ints
from reassign.planning.problem.problem import PlacementProblem, pose
from reassign.planning.solve import _state, solve
from tests.benchmarks.instances import Made, cluster, goal
from tests.spread import spread

BROKERS = 12


def balanced() -> tuple[PlacementProblem, Ints, Bytes]:
    """A problem whose bytes, replicas and leaders are inside their bands, its replicas, and another measure (P,)."""
    made = Made(900, BROKERS)
    problem = pose(cluster(made), goal(made))
    target = solve(problem).target
    order = greatest_first(problem.size)
    measure = np.rint(1e5 * np.random.default_rng(7).lognormal(0, 1, len(order))).astype(np.int64)
    return problem, target[order], measure


def of(problem: PlacementProblem, row: Ints, measure: Bytes, leaders: bool) -> Loads:
    """The loads of the problem's rows, and of the measure below them, which is to be within 10 % of its mean."""
    order = greatest_first(problem.size)
    rows = np.flatnonzero(leaders == OF_LEADERS)
    each = np.concatenate((problem.each[rows][:, order], measure[None]))
    load = loads(row, problem.each[:, order], BROKERS)[rows]
    last = np.zeros((1, BROKERS), np.int64)
    slots = row[:, :1] if leaders else row
    for column in slots.T:
        np.add.at(last[0], column, measure)
    mean = last.mean()
    low, high = (
        np.concatenate((band[rows], np.full((1, BROKERS), int(mean * share))))
        for band, share in ((problem.low, 0.9), (problem.high, 1.1))
    )
    return Loads(each, np.concatenate((load, last)), low, high)


def inside(found: Loads) -> Bools:
    """Which rows are inside their bands."""
    held: Bools = ((found.low <= found.load) & (found.load <= found.high)).all(axis=1)
    return held


def test_replicas_are_exchanged_until_all_bands_are_met() -> None:
    problem, row, measure = balanced()
    order = greatest_first(problem.size)
    found = of(problem, row, measure, leaders=False)
    assert inside(found).tolist() == [True, True, False]
    state = _state(problem, row.copy(), ~problem.movable[order], problem.size[order])
    state.load[:] = found.load[:2]
    exchange_replicas(state, found, 2)
    assert inside(found).all()
    assert (state.load == found.load[:2]).all()
    assert (of(problem, state.row, measure, leaders=False).load == found.load).all()
    assert spread(problem.groups, state.row, problem.allowed).all()


def test_leaders_are_handed_over_until_all_bands_are_met() -> None:
    problem, row, measure = balanced()
    found = of(problem, row, measure, leaders=True)
    assert inside(found).tolist() == [True, False]
    led = row.copy()
    exchange_leaders(led, np.zeros(len(row), np.bool_), found, 1)
    assert inside(found).all()
    assert (of(problem, led, measure, leaders=True).load == found.load).all()
    assert (np.sort(led, axis=1) == np.sort(row, axis=1)).all()


def test_partitions_that_are_not_movable_are_not_exchanged() -> None:
    problem, row, measure = balanced()
    order = greatest_first(problem.size)
    found, led = of(problem, row, measure, leaders=False), row.copy()
    still = np.ones(len(row), np.bool_)
    exchange_replicas(_state(problem, led, still, problem.size[order]), found, 2)
    exchange_leaders(led, still, of(problem, row, measure, leaders=True), 1)
    assert (led == row).all()
