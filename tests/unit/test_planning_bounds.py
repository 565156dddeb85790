"""No plan that is legal costs less than its certificate says: all the plans of tiny clusters are tried."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reassign.errors import PlanningError
from reassign.planning import bounds
from reassign.planning.model import By, Bytes, Cluster, Directories, Goal, Ints
from reassign.planning.problem import Problem, loads, pose
from reassign.planning.racks import spread
from tests.benchmarks.instances import Made, cluster, goal

RACKS = (
    ("", "", "", "", ""),
    ("a", "a", "b", "b", "c"),
    ("a", "a", "a", "b", "b"),
    ("a", "b", "b", "b", "b"),
    ("/x/1", "/x/2", "/y/1", "/y/1", "/y/2"),
    ("/x/1", "/x/1", "/y/1", "/y/2", "/z"),
)


def tiny(racks: tuple[str, ...], rows: list[list[int]], sizes: list[int], capacity: list[int]) -> Cluster:
    brokers = len(racks)
    width = max(map(len, rows))
    return Cluster(
        id="tiny",
        brokers=np.arange(1, brokers + 1, dtype=np.int32),
        racks=racks,
        alive=np.ones(brokers, np.bool_),
        directories=Directories(
            broker=np.arange(brokers, dtype=np.int32),
            path=("/kafka",) * brokers,
            total=np.array(capacity, np.int64) * 10_000,
            usable=np.array(capacity, np.int64) * 10_000,
            cordoned=np.zeros(brokers, np.bool_),
            online=np.ones(brokers, np.bool_),
        ),
        topics=("t",),
        topic=np.zeros(len(rows), np.int32),
        partition=np.arange(len(rows), dtype=np.int32),
        replicas=np.array([row + [-1] * (width - len(row)) for row in rows], np.int32),
        sizes=np.array(sizes, np.int64),
        in_flight=np.zeros(len(rows), np.bool_),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    racks = draw(st.sampled_from(RACKS))
    count = draw(st.integers(1, 4))
    factor = draw(st.integers(1, 3))
    replicas = st.lists(st.integers(0, 4), min_size=factor, max_size=factor, unique=True)
    rows = draw(st.lists(replicas, min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    made = tiny(racks, rows, sizes, draw(st.lists(st.sampled_from([1, 1, 2]), min_size=5, max_size=5)))
    in_flight = np.array(draw(st.lists(st.sampled_from([False, False, True]), min_size=count, max_size=count)))
    wanted = Goal(
        drain=frozenset(draw(st.sets(st.integers(1, 5), max_size=2))),
        replication_factor=draw(st.none() | st.integers(1, 4)),
        balance=draw(st.frozensets(st.sampled_from(By))),
        tolerance=draw(st.sampled_from([0.01, 0.1, 0.5])),
    )
    try:
        return pose(replace(made, in_flight=in_flight), wanted)
    except PlanningError:
        assume(False)
        raise


def choices(problem: Problem) -> list[list[tuple[int, ...]]]:
    """Per partition all legal sets of brokers."""
    found = []
    for row, movable, factor in zip(problem.current, problem.movable, problem.rf, strict=True):
        sets = list(combinations(np.flatnonzero(problem.allowed).tolist(), int(factor)))
        good = spread(problem.groups, np.array(sets, np.int32), problem.allowed) if movable else []
        found.append(
            [s for s, ok in zip(sets, good, strict=True) if ok] if movable else [tuple(row[row >= 0].tolist())]
        )
    return found


def as_target(sets: tuple[tuple[int, ...], ...]) -> Ints:
    width = max(map(len, sets))
    return np.array([[*s, *[-1] * (width - len(s))] for s in sets], np.int32)


def every_plan(problem: Problem) -> tuple[Bytes, Bytes, Bytes]:
    """Loads (N, 2, B), bytes and moves (N,) of all legal plans."""
    options = choices(problem)
    lies = [np.array([[b in s for b in range(len(problem.alive))] for s in sets], np.int64) for sets in options]
    held = np.array([[b in row for b in range(len(problem.alive))] for row in problem.current])
    pick = np.indices([len(sets) for sets in options]).reshape(len(options), -1)
    placed = np.stack([of[which] for of, which in zip(lies, pick, strict=True)])
    added = (placed * ~held[:, None]).sum(axis=2)
    load = np.stack(((placed * problem.size[:, None, None]).sum(axis=0), placed.sum(axis=0)), axis=1)
    return load, (added * problem.size[:, None]).sum(axis=0), added.sum(axis=0)


@settings(max_examples=300, deadline=None)
@given(problems(), st.data())
def test_no_legal_plan_that_balances_as_well_costs_less_than_the_bounds_of_a_plan(
    problem: Problem, data: st.DataObject
) -> None:
    target = as_target(tuple(data.draw(st.sampled_from(sets)) for sets in choices(problem)))
    after = loads(target, problem.size, len(problem.alive))
    load, bytes_, moves = every_plan(problem)
    for low, high, least in (
        (*bounds.limits(problem, after), bounds.bound(problem, after)),
        (*bounds.limits(problem), bounds.bound(problem)),
    ):
        inside = ((load >= low[:2]) & (load <= high[:2])).all(axis=(1, 2))
        if inside.any():
            assert least.bytes <= bytes_[inside].min()
            assert least.moves <= moves[inside].min()


@settings(max_examples=200, deadline=None)
@given(problems())
def test_no_legal_plan_has_a_smaller_greatest_share_than_what_is_said_to_be_reachable(problem: Problem) -> None:
    of = problem.allowed
    aim = np.maximum(problem.target[:, of], 1)
    least = bounds.reachable(problem)
    load = every_plan(problem)[0][:, :, of]
    for row in (0, 1):
        greatest = [max(map(Fraction, some, aim[row].tolist())) for some in np.unique(load[:, row], axis=0).tolist()]
        assert least[row] <= min(greatest)
    leaders = [sorted({b for s in sets for b in s}) if m else [int(row[0])]
               for sets, m, row in zip(choices(problem), problem.movable, problem.current, strict=True)]  # fmt: skip
    counts = {tuple(np.bincount(some, minlength=len(of))[of].tolist()) for some in product(*leaders)}
    assert least[2] <= min(max(map(Fraction, some, aim[2].tolist())) for some in counts)


def test_what_balancing_one_broker_costs_is_its_excess() -> None:
    made = tiny(("", "", ""), [[0], [0], [0], [0], [1], [2]], [10] * 6, [1, 1, 1])
    problem = pose(made, Goal(balance=frozenset({By.DISK, By.REPLICAS}), tolerance=0.1))
    assert bounds.bound(problem) == bounds.Cost(bytes=20, moves=2)
    assert problem.target.tolist()[:2] == [[20, 20, 20], [2, 2, 2]]
    target = np.array([[1], [2], [0], [0], [1], [2]], np.int32)
    certificate = bounds.certify(problem, target)
    assert (certificate.bytes, certificate.moves, certificate.leaders) == (20, 2, 2)
    assert certificate.balance[0].before == (0.5, 2.0)
    assert certificate.balance[0].after == (1.0, 1.0)
    assert certificate.balance[0].reachable == 1.0


def test_a_drained_broker_costs_all_that_lies_on_it() -> None:
    made = tiny(("a", "b", "c", "c"), [[0, 1, 2], [3, 0, 1]], [5, 7], [1] * 4)
    problem = pose(made, Goal(drain=frozenset({4})))
    assert bounds.bound(problem) == bounds.Cost(bytes=7, moves=1)


def test_more_replicas_cost_their_bytes_and_fewer_cost_nothing() -> None:
    made = tiny(("a", "b", "c"), [[0, 1], [1, 2]], [5, 7], [1] * 3)
    assert bounds.bound(pose(made, Goal(replication_factor=3))) == bounds.Cost(bytes=12, moves=2)
    assert bounds.bound(pose(made, Goal(replication_factor=1))) == bounds.Cost(bytes=0, moves=0)


def test_replicas_that_are_not_spread_cost_those_that_no_legal_placement_keeps() -> None:
    made = tiny(("a", "a", "b", "c"), [[0, 1, 2], [0, 2, 3]], [5, 7], [1] * 4)
    assert bounds.bound(pose(made, Goal())) == bounds.Cost(bytes=5, moves=1)


def test_racks_with_a_replica_each_are_bounded_one_by_one() -> None:
    made = tiny(("a", "a", "b", "b"), [[0, 2], [0, 2], [1, 3], [0, 3], [0, 2], [1, 2]], [10] * 6, [1] * 4)
    problem = pose(made, Goal(balance=frozenset({By.DISK}), tolerance=0.01))
    assert problem.load[0].tolist() == [40, 20, 40, 20]
    assert bounds.bound(problem).moves == 2


@pytest.mark.parametrize("made", [Made(360, 12), Made(9_000, 30, unequal_racks=True, violations=0.1, drained=True)])
def test_bounds_of_made_clusters_are_no_less_than_their_plain_excess(made: Made) -> None:
    problem = pose(cluster(made), goal(made))
    low, high = bounds.limits(problem)
    plain = max(np.maximum(problem.load - high, 0)[0].sum(), np.maximum(low - problem.load, 0)[0].sum())
    assert bounds.bound(problem).bytes >= plain > 0
