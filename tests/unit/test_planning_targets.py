"""How much should lie on each broker, and how far from that it may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reassign.api.goal import By
from reassign.planning.plan import make
from reassign.planning.problem.model import UNKNOWN, PlacementGoal
from reassign.planning.problem.problem import pose
from reassign.planning.problem.shares import LEADERS
from tests.unit.planner_clusters import NEVER, cluster, directories

ALL = frozenset(By)


@pytest.mark.parametrize(
    ("totals", "counts"), [([100, 100, 200], [10, 10, 20]), ([100, UNKNOWN, 200], [14, 13, 13])], ids=["all", "not all"]
)
def test_twice_the_disk_gets_twice_of_each_where_all_sizes_are_known(totals: list[int], counts: list[int]) -> None:
    disks = replace(directories(3, usable=NEVER), total=np.array(totals, np.int64))
    problem = pose(cluster([[0]] * 40, sizes=[1] * 40, racks=("",) * 3, disks=disks), PlacementGoal(balance=ALL))
    assert problem.target.tolist() == [counts] * 3


@pytest.mark.parametrize("partitions", [1, 5, 6, 40])
def test_a_band_of_counts_is_never_narrower_than_one_replica(partitions: int) -> None:
    problem = pose(cluster([[0]] * partitions), PlacementGoal(balance=ALL, tolerance=0.01))
    assert (problem.high[1:] - problem.low[1:]).min() >= 1


def test_a_band_of_leaders_has_the_share_rounded_down_and_up() -> None:
    problem = pose(cluster([[0, 1, 2], [1, 2, 0]], racks=("",) * 3), PlacementGoal(balance=ALL))
    assert (problem.low[LEADERS].tolist(), problem.high[LEADERS].tolist()) == ([0] * 3, [1] * 3)


@pytest.mark.parametrize(("brokers", "reached"), [(4, True), (5, False)])
def test_the_readmes_partitions_are_even_on_three_brokers_not_on_four(brokers: int, reached: bool) -> None:
    racks = tuple(f"/{'ab'[broker % 2]}/{broker // 2 + 1}" for broker in range(brokers))
    orders = cluster([[0, 1, 2], [1, 2, 3]], racks=racks)
    found = make(orders, PlacementGoal(drain=frozenset({103}), balance=ALL)).certificate
    assert (found.unmet == ()) is reached


def test_the_readmes_plan_after_its_first_move_spreads_the_leaders() -> None:
    moved = cluster([[3, 1, 2], [0, 2, 3]], racks=("/a/1", "/b/1", "/a/2", "/b/2"))
    plan = make(moved, PlacementGoal(drain=frozenset({103}), balance=ALL))
    assert np.unique(plan.target[:, 0]).size == 2
    assert plan.certificate.unmet == ()
