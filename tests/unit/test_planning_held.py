"""What stays where it is, though a goal would move it: because of brokers that are fenced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import By, FencedBrokers, GoalPart
from reassign.errors import PlanningError
from reassign.planning.plan import evenness, make
from reassign.planning.problem.model import Cluster, PlacementGoal, Plan
from tests.unit.examples import examples
from tests.unit.planner_clusters import cluster, made_clusters

ALL = frozenset(By)
DRAIN = PlacementGoal(drain=frozenset({100}))
BALANCE = PlacementGoal(balance=ALL)
ROWS = [[0, 1], [1, 2], [2, 3], [0, 3]]


def rows(plan: Plan) -> list[list[int]]:
    return [[b for b in row if b >= 0] for row in plan.target.tolist()]


def said(plan: Plan) -> list[tuple[str, GoalPart | None]]:
    return [(unmet.what, unmet.part) for unmet in plan.certificate.unmet]


# --- Fenced brokers ---


def test_a_broker_that_restarts_keeps_its_replicas() -> None:
    made = cluster([[0, 1], [1, 2], [2, 0]], racks=("",) * 4, fenced=(1,))
    plan = make(made, replace(DRAIN, drain=frozenset({103})))
    assert rows(plan) == [[0, 1], [1, 2], [2, 0]]
    assert said(plan) == [
        ("2 partitions not moved, since broker 101 is fenced (down or still starting): a-0 and 1 more", None)
    ]


def test_replicas_on_a_fenced_broker_are_replaced_when_asked_for() -> None:
    made = cluster([[0, 1], [1, 2], [2, 0]], racks=("",) * 4, fenced=(1,))
    plan = make(made, replace(DRAIN, drain=frozenset({103}), fenced_brokers=FencedBrokers.REPLACE))
    assert 1 not in plan.target
    assert said(plan) == []


def test_a_broker_that_is_not_registered_is_replaced() -> None:
    plan = make(cluster([[0, 1], [1, 2], [2, 0]], racks=("",) * 4, dead=(1,)), BALANCE)
    assert 1 not in plan.target


@pytest.mark.parametrize(
    "goal", [replace(DRAIN, drain=frozenset({101})), PlacementGoal(brokers=frozenset({100, 102, 103}))]
)
def test_a_drained_broker_is_drained_though_it_is_fenced(goal: PlacementGoal) -> None:
    plan = make(cluster([[0, 1], [1, 2], [2, 0]], fenced=(1,)), goal)
    assert 1 not in plan.target
    assert said(plan) == []


def test_a_drain_is_incomplete_where_a_fenced_broker_holds_its_partitions() -> None:
    plan = make(cluster(ROWS, fenced=(3,), racks=("",) * 5), DRAIN)
    assert rows(plan)[3] == [0, 3]
    assert 0 not in rows(plan)[0]
    assert [part for _, part in said(plan)] == [GoalPart.DRAIN]
    assert "a-2 and 1 more" in said(plan)[0][0]


def test_what_a_fenced_broker_holds_counts_as_load() -> None:
    """Broker 0 holds four partitions with the fenced one, so it gets none of the others."""
    plan = make(cluster([[0, 3]] * 4 + [[1]] * 8, fenced=(3,)), BALANCE)
    assert rows(plan)[:4] == [[0, 3]] * 4
    assert np.bincount(plan.target[4:, 0]).tolist() == [0, 4, 4]


def test_partitions_that_a_fenced_broker_holds_are_judged_for_racks() -> None:
    made = cluster([[0, 1], [2, 3]], racks=("x", "x", "x", "y", "y"), fenced=(1,))
    assert [unmet.part for unmet in evenness(made, DRAIN).unmet] == [GoalPart.RACKS]


def test_a_partition_with_a_fenced_broker_alone_is_named_once() -> None:
    [(what, _)] = said(make(cluster([[3], [0]], fenced=(3,)), BALANCE))
    assert what.endswith("starting): a-0")


# --- Whatever is asked ---


@st.composite
def goals(draw: st.DrawFn, made: Cluster) -> PlacementGoal:
    ids = made.brokers.tolist()
    return PlacementGoal(
        exclude=draw(st.sampled_from([None, ("__*",), (), ("a",)])),
        drain=draw(st.frozensets(st.sampled_from(ids), max_size=2)),
        brokers=draw(st.sampled_from([None, None, frozenset(ids[1:])])),
        replication_factor=draw(st.sampled_from([None, None, 1, 2, 3])),
        balance=draw(st.sampled_from([frozenset[By](), ALL, frozenset({By.DISK})])),
        min_free=0.0,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Cluster, PlacementGoal]:
    made = draw(made_clusters())
    fenced = np.isin(np.arange(len(made.brokers)), draw(st.lists(st.integers(0, len(made.brokers) - 1), max_size=2)))
    made = replace(made, alive=made.alive & ~fenced)
    return made, draw(goals(made))


def made_plan(made: Cluster, goal: PlacementGoal) -> Plan | None:
    """None when the goal is refused."""
    try:
        return make(made, goal)
    except PlanningError:
        return None


def row_of(replicas: np.ndarray[tuple[int, ...], np.dtype[np.int32]], p: int) -> list[int]:
    return [b for b in replicas[p].tolist() if b >= 0]


def emptied(made: Cluster, goal: PlacementGoal) -> set[int]:
    """The indices of the brokers that are drained."""
    out = set(goal.drain) | (set() if goal.brokers is None else set(made.brokers.tolist()) - goal.brokers)
    return {b for b, id in enumerate(made.brokers.tolist()) if id in out}


@examples(200)
@given(cases())
def test_no_partition_with_a_replica_on_a_fenced_broker_moves(case: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = case
    if (plan := made_plan(made, goal)) is None:
        return
    keeps = set(np.flatnonzero(made.registered & ~made.alive).tolist()) - emptied(made, goal)
    moved = False
    for p in range(len(made.topic)):
        before, after = row_of(made.replicas, p), row_of(plan.target, p)
        assert not (set(after) - set(before)) & keeps, "gets none"
        if set(before) & keeps:
            assert after == before
            moved = moved or plan.wave[p] >= 0
    assert not moved


@examples(200)
@given(cases())
def test_a_drained_broker_that_keeps_replicas_is_said_to(case: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = case
    if (plan := made_plan(made, goal)) is None:
        return
    if set(plan.target[plan.target >= 0].tolist()) & emptied(made, goal):
        assert GoalPart.DRAIN in {unmet.part for unmet in plan.certificate.unmet}
