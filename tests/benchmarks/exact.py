"""The exact optimum of small plans, by mixed-integer programming (HiGHS): the planner's yardstick.

There is a binary variable for each partition and broker that may hold it. A node of the tree holds `tree.least` or
`tree.most` replicas of a partition. These differ by at most one, so such bounds, node by node, are all that legality
asks.

The solver has one thread, a fixed seed, and a limit of nodes rather than of seconds: the same input gives the same
plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np

from reassign.planning.bounds.certificates import bound, limits
from reassign.planning.problem.model import UNKNOWN, Bytes, Floats, Ints
from reassign.planning.problem.problem import PlacementProblem
from reassign.planning.problem.shares import DISK, LEADERS, REPLICAS

NODES = 300
GAP = 1e-4
FEASIBLE = 1e-9  # of the mean size
MOVE = 1e-5
"""What a move costs beside its bytes, in mean sizes: fewest bytes first, then fewest moves."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best plan known, None if there is none, and the bytes that every plan must copy."""

    target: Ints | None
    bytes_bound: int


def optimum(problem: PlacementProblem, nodes: int = NODES) -> Optimum:
    """Return the plan of fewest bytes inside all bands. The bound holds whether or not the nodes sufficed."""
    if not problem.movable.any():
        return Optimum(problem.current, 0)
    low, high = limits(problem)
    high[DISK] = np.minimum(high[DISK], problem.room)
    values, dual = _solve(_replicas(problem, low, high), nodes)
    beside = MOVE * int(problem.rf[problem.movable].sum())
    least = max(int((dual - beside) * _scale(problem)), bound(problem).bytes)
    target = None if values is None else _target(problem, values)
    if target is not None and problem.balanced[LEADERS]:
        values, _ = _solve(_leaders(problem, target, low, high), nodes)
        target = None if values is None else _led(problem, target, values)
    return Optimum(target, least)


class _Row(NamedTuple):
    columns: Bytes
    values: Floats
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Program:
    """Binary columns, what each costs, and rows of sums between a low and a high."""

    cost: Floats
    rows: list[_Row]


def _replicas(problem: PlacementProblem, low: Bytes, high: Bytes) -> _Program:
    """Return the program with a column for each movable partition and allowed broker: whether it holds a replica."""
    movable, allowed = np.flatnonzero(problem.movable), np.flatnonzero(problem.allowed)
    low, high = _left(problem, low), _left(problem, high)
    tree, scale = problem.tree, _scale(problem)
    size = problem.size[movable] / scale
    place = np.arange(len(movable) * len(allowed)).reshape(len(movable), len(allowed))
    here = (problem.current[movable][:, :, None] == allowed).any(axis=1)
    rows = []
    for node in range(len(tree.parent)):
        below = np.flatnonzero((tree.path[allowed] == node).any(axis=1)) if node else np.arange(len(allowed))
        for i, r in enumerate(problem.rf[movable].tolist()):
            least, most = int(tree.least[node, r]), int(tree.most[node, r])
            if least > 0 or most < min(len(below), r):
                rows.append(_Row(place[i, below], np.ones(len(below)), least, most))
    for b in range(len(allowed)):
        rows.append(_Row(place[:, b], size, low[DISK, b] / scale, high[DISK, b] / scale))
        rows.append(_Row(place[:, b], np.ones(len(movable)), float(low[REPLICAS, b]), float(high[REPLICAS, b])))
    return _Program(np.where(here, 0, size[:, None] + MOVE).ravel(), rows)


def _leaders(problem: PlacementProblem, target: Ints, low: Bytes, high: Bytes) -> _Program:
    """Return the program with a column for each slot of each movable partition: whether the leader is there.

    As few leaders as possible change.
    """
    rows_of = target[problem.movable]
    place = np.arange(rows_of.size).reshape(rows_of.shape)
    low, high = _left(problem, low), _left(problem, high)
    rows = [_Row(places[held], np.ones(held.sum()), 1, 1) for places, held in zip(place, rows_of >= 0, strict=True)]
    for b, broker in enumerate(np.flatnonzero(problem.allowed).tolist()):
        there = place[rows_of == broker]
        rows.append(_Row(there, np.ones(len(there)), float(low[LEADERS, b]), float(high[LEADERS, b])))
    return _Program((rows_of != problem.current[problem.movable, :1]).ravel().astype(np.float64), rows)


def _left(problem: PlacementProblem, band: Bytes) -> Bytes:
    """Return (K, allowed): a band without what is fixed."""
    fixed = problem.loads(problem.current, ~problem.movable)
    left: Bytes = (band - fixed)[:, problem.allowed]
    return left


def _solve(program: _Program, nodes: int) -> tuple[Floats | None, float]:
    """Return the columns' values, None without a feasible solution, and a lower bound of the cost."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.rows)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, np.zeros(lp.num_col_), np.ones(lp.num_col_)
    lp.row_lower_, lp.row_upper_ = (np.array([row[i] for row in program.rows], np.float64) for i in (2, 3))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.columns) for row in program.rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate([row.columns for row in program.rows]).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([row.values for row in program.rows])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    solver = highspy.Highs()
    for name, value in (
        ("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_max_nodes", nodes), ("mip_rel_gap", GAP),
        ("mip_feasibility_tolerance", FEASIBLE), ("primal_feasibility_tolerance", FEASIBLE),
    ):  # fmt: skip
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return None, max(0.0, info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else 0.0
    return np.array(solver.getSolution().col_value), info.mip_dual_bound


def _target(problem: PlacementProblem, values: Floats) -> Ints:
    """Return the plan of these columns: what stays in its order, then what comes, by broker."""
    movable, allowed = np.flatnonzero(problem.movable), np.flatnonzero(problem.allowed)
    width = max(problem.current.shape[1], int(problem.rf[movable].max(initial=0)))
    target = np.full((len(problem.rf), width), UNKNOWN, np.int32)
    target[:, : problem.current.shape[1]] = problem.current
    for p, holds in zip(movable.tolist(), values.reshape(len(movable), len(allowed)) > 0.5, strict=True):
        before = problem.current[p].tolist()
        chosen = allowed[holds].tolist()
        chosen.sort(key=lambda b: before.index(b) if b in before else len(before))
        target[p] = chosen + [UNKNOWN] * (width - len(chosen))
    return target


def _led(problem: PlacementProblem, target: Ints, values: Floats) -> Ints:
    """Return the plan with the leaders of these columns first."""
    target = target.copy()
    rows = target[problem.movable]
    leads = values.reshape(rows.shape) > 0.5
    target[problem.movable] = np.take_along_axis(rows, np.argsort(~leads, axis=1, kind="stable"), axis=1)
    return target


def _scale(problem: PlacementProblem) -> float:
    """Return the mean size, in which the program counts bytes."""
    return max(1.0, float(problem.size[problem.movable].mean()))
