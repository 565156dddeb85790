"""No plan that is legal costs less than its certificate says: all the plans of tiny clusters are tried."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import By
from reassign.planning.bounds import certificates, counting, exchange
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import Floats, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, pose
from reassign.planning.problem.tree import grow
from reassign.planning.solve import outside_bands, solve
from tests.benchmarks import exact
from tests.benchmarks.instances import Made, cluster, goal
from tests.unit.examples import examples
from tests.unit.planner_clusters import cluster as made_cluster
from tests.unit.tiny_clusters import as_target, choices, every_plan, problems, tiny


@examples(300)
@given(problems(), st.data())
def test_no_legal_plan_that_balances_as_well_costs_less_than_the_bounds(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    target = as_target(tuple(data.draw(st.sampled_from(sets)) for sets in choices(problem)))
    after = problem.loads(target)
    load, bytes_, moves = every_plan(problem)
    for low, high, least in (
        (*certificates.limits(problem, after), certificates.bound(problem, after)),
        (*certificates.limits(problem), certificates.bound(problem)),
    ):
        inside = ((load >= low[:2]) & (load <= high[:2])).all(axis=(1, 2))
        if inside.any():
            assert least.bytes <= bytes_[inside].min()
            assert least.moves <= moves[inside].min()


@examples(300)
@given(problems())
def test_no_legal_plan_has_a_smaller_greatest_share_than_the_bound(problem: PlacementProblem) -> None:
    of, (load, _, _) = problem.allowed, every_plan(problem)
    share = load[:, :, of] / np.maximum(problem.target[:2, of], 1)
    for greatest, least in zip(share.max(axis=2).T, certificates.reachable(problem)[:2], strict=True):
        assert not len(greatest) or greatest.min() >= float(least) * (1 - 1e-12)


def test_what_no_plan_does_better_is_certified() -> None:
    problem = pose(
        made_cluster([[0], [0], [0]], [30, 30, 30], racks=("", "")), PlacementGoal(balance=frozenset({By.DISK}))
    )
    even = certificates.certify(problem, np.array([[0], [0], [1]], np.int32))
    assert (even.unbeaten, even.balance[0].reachable) == ((By.DISK,), 4 / 3)
    assert certificates.certify(problem, problem.current).unbeaten == ()


@examples(200)
@given(problems(), st.data())
def test_no_legal_plan_costs_less_than_what_any_prices_prove(problem: PlacementProblem, data: st.DataObject) -> None:
    price = st.sampled_from([-100.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.7, 100.0])
    drawn = data.draw(st.lists(price, min_size=10, max_size=10))
    load, bytes_, _ = every_plan(problem)
    low, high = certificates.limits(problem)
    inside = ((load >= low[:2]) & (load <= high[:2])).all(axis=(1, 2))

    def at_these_prices(have: Floats, *of: object) -> tuple[Floats, Floats, Floats]:
        return np.array(drawn).reshape(2, 5)[:, : len(have)], have, have

    with patch.object(exchange, "interior_point", at_these_prices):
        least = certificates.bound(problem)
    if inside.any():
        assert least.bytes <= bytes_[inside].min()


@pytest.mark.parametrize("racks", [(), (3,)])
def test_prices_prove_what_bytes_and_replicas_alone_do_not(racks: tuple[int, ...]) -> None:
    made = Made(120, 6, racks=racks, gamma=0.8)
    problem = pose(cluster(made), goal(made))
    best = exact.optimum(problem)
    assert best.target is not None
    apart, together = certificates.bound(problem, paid=0).bytes, certificates.bound(problem).bytes
    assert apart < together <= certificates.cost(problem, best.target).bytes


@examples(200)
@given(problems())
def test_no_legal_plan_has_a_smaller_greatest_share_than_is_reachable(problem: PlacementProblem) -> None:
    of = problem.allowed
    aim = np.maximum(problem.target[:, of], 1)
    least = certificates.reachable(problem)
    load = every_plan(problem)[0][:, :, of]
    for row in (0, 1):
        greatest = [max(map(Fraction, some, aim[row].tolist())) for some in np.unique(load[:, row], axis=0).tolist()]
        assert least[row] <= min(greatest)
    leaders = [sorted({b for s in sets for b in s}) if m else [int(row[0])]
               for sets, m, row in zip(choices(problem), problem.movable, problem.current, strict=True)]  # fmt: skip
    counts = {tuple(np.bincount(some, minlength=len(of))[of].tolist()) for some in product(*leaders)}
    assert least[2] <= min(max(map(Fraction, some, aim[2].tolist())) for some in counts)


def test_a_partition_that_also_lies_where_it_may_not_is_not_done() -> None:
    allowed = np.array([True, True, False])
    tree = grow(np.zeros((0, 3), np.int32), allowed, 3)
    rows, rf = np.array([[2, 0, 1], [0, 1, -1]], np.int32), np.array([2, 2], np.int32)
    assert done(rows, rf, allowed, tree.path, tree.level, tree.extra).tolist() == [False, True]


def test_what_can_stay_is_counted_from_nothing_that_was_in_memory_before() -> None:
    tree = grow(np.zeros((1, 2), np.int32), np.ones(2, np.bool_), 2)
    kept = np.full((3, 2, 4), -99, np.int32)
    counting._keepable(np.arange(2, dtype=np.int32), tree.path, tree.cap, tree.level, tree.extra, kept)
    assert kept[0, 0, :3].tolist() == [0, 1, 2]


def test_what_balancing_one_broker_costs_is_its_excess() -> None:
    made = tiny(("", "", ""), [[0], [0], [0], [0], [1], [2]], [10] * 6, [1, 1, 1])
    problem = pose(made, PlacementGoal(balance=frozenset({By.DISK, By.REPLICAS}), tolerance=0.1))
    assert certificates.bound(problem) == certificates.Cost(bytes=20, moves=2)
    assert problem.target.tolist()[:2] == [[20, 20, 20], [2, 2, 2]]
    target = np.array([[1], [2], [0], [0], [1], [2]], np.int32)
    certificate = certificates.certify(problem, target)
    assert (certificate.bytes, certificate.moves, certificate.leaders) == (20, 2, 2)
    assert certificate.balance[0].before == (0.5, 2.0)
    assert certificate.balance[0].after == (1.0, 1.0)
    assert certificate.balance[0].reachable == 1.0


def test_what_a_plan_leaves_undone_is_not_counted_in_its_bounds() -> None:
    made = tiny(("a", "b", "c"), [[0], [1]], [5, 7], [1] * 3)
    problem = pose(made, PlacementGoal(drain=frozenset({1, 2})))
    certificate = certificates.certify(problem, np.array([[2], [1]], np.int32))
    assert (certificate.bytes, certificate.bytes_bound) == (5, 5)


def test_a_drained_broker_costs_all_that_lies_on_it() -> None:
    made = tiny(("a", "b", "c", "c"), [[0, 1, 2], [3, 0, 1]], [5, 7], [1] * 4)
    problem = pose(made, PlacementGoal(drain=frozenset({4})))
    assert certificates.bound(problem) == certificates.Cost(bytes=7, moves=1)


def test_more_replicas_cost_their_bytes_and_fewer_cost_nothing() -> None:
    made = tiny(("a", "b", "c"), [[0, 1], [1, 2]], [5, 7], [1] * 3)
    assert certificates.bound(pose(made, PlacementGoal(replication_factor=3))) == certificates.Cost(bytes=12, moves=2)
    assert certificates.bound(pose(made, PlacementGoal(replication_factor=1))) == certificates.Cost(bytes=0, moves=0)


def test_unspread_replicas_cost_those_that_no_legal_placement_keeps() -> None:
    made = tiny(("a", "a", "b", "c"), [[0, 1, 2], [0, 2, 3]], [5, 7], [1] * 4)
    assert certificates.bound(pose(made, PlacementGoal())) == certificates.Cost(bytes=5, moves=1)


def test_racks_with_a_replica_each_are_bounded_one_by_one() -> None:
    made = tiny(("a", "a", "b", "b"), [[0, 2], [0, 2], [1, 3], [0, 3], [0, 2], [1, 2]], [10] * 6, [1] * 4)
    problem = pose(made, PlacementGoal(balance=frozenset({By.DISK}), tolerance=0.01))
    assert problem.load[0].tolist() == [40, 20, 40, 20]
    assert certificates.bound(problem).moves == 2


@pytest.mark.parametrize("made", [Made(360, 12), Made(9_000, 30, unequal_racks=True, violations=0.1, drained=True)])
def test_bounds_of_made_clusters_are_no_less_than_their_plain_excess(made: Made) -> None:
    problem = pose(cluster(made), goal(made))
    low, high = certificates.limits(problem)
    plain = max(np.maximum(problem.load - high, 0)[0].sum(), np.maximum(low - problem.load, 0)[0].sum())
    assert certificates.bound(problem).bytes >= plain > 0


@pytest.mark.parametrize(("seed", "gamma", "factor"), [(7, 0.6, 3), (7, 0.0, 2), (8, 0.0, 4)])
def test_a_plan_is_near_its_bound_where_sizes_must_be_exchanged(seed: int, gamma: float, factor: int) -> None:
    made = Made(9_000, 30, seed=seed, gamma=gamma, replication_factor=factor)
    problem = pose(cluster(made), goal(made))
    solution = solve(problem)
    certificate = certificates.certify(problem, solution.target)
    assert not outside_bands(problem, solution.target)
    assert certificate.bytes <= 1.01 * certificate.bytes_bound
