"""What stays where it is: by a goal's scope, and because of brokers that are fenced, avoided or cordoned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import By, FencedBrokers, GoalPart, Scope
from reassign.errors import PlanningError
from reassign.planning.plan import evenness, make
from reassign.planning.problem.directories import cordoned_brokers
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories, PlacementGoal, Plan
from tests.unit.examples import examples
from tests.unit.planner_clusters import cluster, directories, made_clusters

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


# --- Only what is on drained brokers ---

NARROW = replace(DRAIN, scope=Scope.DRAINED)


def test_a_narrow_drain_moves_replicas_of_drained_brokers_alone() -> None:
    crowded = cluster([[0, 1], [1, 2], [2, 0]] + [[1, 2]] * 9, racks=("x", "x", "x", "y"))
    assert rows(make(crowded, NARROW)) == [[3, 1], [1, 2], [2, 3]] + [[1, 2]] * 9
    assert rows(make(crowded, DRAIN))[3:] == [[1, 3]] * 9, "with the whole scope racks count for all"


def test_a_narrow_drain_spreads_as_far_as_other_replicas_allow() -> None:
    made = cluster([[0, 1, 2]] * 4, racks=("x", "x", "x", "x", "x", "y", "y"))
    plan = make(made, NARROW)
    assert sorted(row[0] for row in rows(plan)) == [5, 5, 6, 6]
    assert [row[1:] for row in rows(plan)] == [[1, 2]] * 4
    assert said(plan) == []


def test_a_narrow_drain_that_leaves_a_row_crowded_says_so() -> None:
    made = cluster([[0, 1, 2]], racks=("y", "x", "x", "x", "z"), dead=(4,))
    plan = make(made, NARROW)
    assert rows(plan) == [[3, 1, 2]]
    assert said(plan) == []
    other = make(
        cluster([[0, 1, 2]], racks=("y", "x", "x", "x", "z", "z")), replace(NARROW, avoid=frozenset({104, 105}))
    )
    assert rows(other) == [[3, 1, 2]]
    assert [part for _, part in said(other)] == [GoalPart.RACKS]


@pytest.mark.parametrize("fenced_brokers", FencedBrokers)
@pytest.mark.parametrize(("state", "why"), [("dead", "is not registered: a-1"), ("fenced", "still starting): a-1")])
def test_a_narrow_drain_leaves_partitions_that_kafka_would_refuse(
    state: str, why: str, fenced_brokers: FencedBrokers
) -> None:
    """A target that names such a broker is refused, or waits for it."""
    made = cluster([[0, 1], [0, 2]], **{"racks": ("",) * 5, state: (2,)})
    plan = make(made, replace(NARROW, fenced_brokers=fenced_brokers))
    assert rows(plan)[1] == [0, 2]
    assert 0 not in rows(plan)[0]
    [(what, part)] = said(plan)
    assert what.endswith(why)
    assert part is GoalPart.DRAIN


def test_a_narrow_drain_of_topics_that_are_excluded_leaves_them() -> None:
    plan = make(cluster([[0, 1]], racks=("",) * 3), replace(NARROW, exclude=("b",)))
    assert 0 not in plan.target
    plan = make(
        cluster([[0, 1], [0, 1]], racks=("",) * 3, topics=("a", "b"), topic=[0, 1]), replace(NARROW, exclude=("b",))
    )
    assert rows(plan) == [[2, 1], [0, 1]]
    assert [part for _, part in said(plan)] == [GoalPart.DRAIN]


# --- Brokers that are avoided, and cordoned ---


def test_a_broker_that_is_avoided_gets_nothing_and_keeps_what_it_has() -> None:
    made = cluster([[0, 1]] * 4 + [[0, 3]], racks=("",) * 5)
    plan = make(made, replace(DRAIN, avoid=frozenset({103, 104})))
    assert rows(plan)[:4] == [[2, 1]] * 4
    assert rows(plan)[4] in ([1, 3], [2, 3])
    assert said(plan) == []


def test_no_swap_and_no_empty_partition_brings_an_avoided_broker_another() -> None:
    made = cluster([[3]] * 6 + [[0]] * 2 + [[1]] * 2, [100] * 6 + [0, 0, 30, 30])
    plan = make(made, replace(BALANCE, avoid=frozenset({103})))
    assert all(row != [3] for row in rows(plan)[6:])


def test_an_avoided_broker_is_to_lead_no_more_than_it_holds() -> None:
    made = cluster([[i % 3, (i + 1) % 3] for i in range(30)])
    plan = make(made, PlacementGoal(balance=frozenset({By.DISK, By.LEADERS}), avoid=frozenset({103})))
    assert (said(plan), plan.certificate.moves) == ([], 0)


def test_a_broker_that_gets_nothing_does_not_have_too_little() -> None:
    """Racks would have it hold a replica of each partition."""
    made = cluster([[0, 1, 2], [0, 2, 3], [0, 4, 2]] * 5, racks=("x", "x", "y", "y", "z"))
    certificate = make(made, replace(BALANCE, avoid=frozenset({104}))).certificate
    assert not [unmet.what for unmet in certificate.unmet if "tolerance" in unmet.what and "104" in unmet.what]
    assert min(one.band[0] for one in certificate.balance) > 0


@pytest.mark.parametrize("goal", [DRAIN, BALANCE])
@pytest.mark.parametrize("cordoned", [True, False])
def test_no_rack_of_empty_brokers_that_get_nothing_is_asked_for(goal: PlacementGoal, cordoned: bool) -> None:
    made = cluster(
        [[0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 2]] * 5,
        racks=("x", "x", "y", "y", "z"),
        disks=directories(5, cordoned=(4,) if cordoned else ()),
    )
    plan = make(made, goal if cordoned else replace(goal, avoid=frozenset({104})))
    assert said(plan) == []
    assert plan.certificate.moves > 0
    assert 4 not in plan.target


def test_a_rack_that_gets_nothing_is_named_by_those_that_need_it() -> None:
    made = cluster([[0, 1, 2], [0, 2, 3], [0, 4, 2]], racks=("x", "x", "y", "y", "z"))
    plan = make(made, replace(DRAIN, avoid=frozenset({104})))
    assert rows(plan) == [[0, 1, 2], [0, 2, 3], [1, 4, 2]]
    assert said(plan) == [
        (
            "no place that racks allow for 2 partitions but on brokers that are avoided or cordoned: 104 of rack 'z'",
            GoalPart.DRAIN,
        )
    ]
    assert "`scope: Drained`" in plan.certificate.unmet[0].nearest
    narrow = make(made, replace(NARROW, avoid=frozenset({104})))
    assert 0 not in narrow.target
    assert [part for _, part in said(narrow)] == [GoalPart.RACKS]


def test_too_few_brokers_that_take_replicas_are_named_by_a_narrow_drain() -> None:
    plan = make(cluster([[0, 1], [0, 2]], racks=("",) * 3), replace(NARROW, avoid=frozenset({102})))
    assert rows(plan) == [[0, 1], [1, 2]]
    [(what, part)] = said(plan)
    assert what.endswith("1 partition but on brokers that are avoided or cordoned: 102")
    assert part is GoalPart.DRAIN


def test_a_partition_that_would_keep_a_cordoned_replica_is_not_moved() -> None:
    made = cluster([[0, 3], [0, 1]], racks=("",) * 5, disks=directories(5, cordoned=(3,)))
    plan = make(made, DRAIN)
    assert rows(plan)[0] == [0, 3]
    assert 0 not in rows(plan)[1]
    assert said(plan) == [
        ("1 partition not moved, since broker 103 is cordoned (all log directories): a-0", GoalPart.DRAIN)
    ]


def test_a_change_of_leaders_alone_is_held_by_a_cordon_too() -> None:
    made = cluster([[0, 3]] * 4, disks=directories(4, cordoned=(3,)))
    plan = make(made, PlacementGoal(balance=frozenset({By.LEADERS})))
    assert rows(plan) == [[0, 3]] * 4


def test_what_leaves_a_cordoned_broker_moves() -> None:
    made = cluster([[0, 3], [1, 3]], disks=directories(4, cordoned=(3,)))
    plan = make(made, replace(DRAIN, drain=frozenset({103})))
    assert 3 not in plan.target
    assert said(plan) == []


def test_what_leaves_one_cordoned_broker_moves_beside_another_one() -> None:
    chance = np.random.default_rng(1)
    placed = [chance.choice(6, 2, False).tolist() for _ in range(40)]
    sizes = (chance.lognormal(0, 1, 40) * 1000).astype(int).tolist()
    made = cluster(placed, sizes, racks=("",) * 6, disks=directories(6, cordoned=(4, 5)))
    plan = make(made, replace(BALANCE, drain=frozenset({105})))
    assert [row for row in rows(plan) if 5 in row] == [row for row in placed if {4, 5} == set(row)]
    assert "since broker 104 is cordoned" in said(plan)[0][0]


def test_a_broker_is_cordoned_where_all_its_directories_online_are() -> None:
    cordoned, online = np.array([1, 1, 1, 0, 1, 1], bool), np.array([1, 1, 1, 1, 1, 0], bool)
    unknown, broker = np.full(6, UNKNOWN, np.int64), np.array([0, 0, 1, 1, 2, 3], np.int32)
    found = Directories(broker, tuple("abcdef"), unknown, unknown, cordoned, online)
    assert cordoned_brokers(found, 5).tolist() == [True, False, True, False, False]


# --- Whatever is asked ---


@st.composite
def cases(draw: st.DrawFn) -> tuple[Cluster, PlacementGoal]:
    """A cluster with brokers that are fenced or cordoned, and a goal that may avoid some."""
    made = draw(made_clusters())
    count, ids = len(made.brokers), made.brokers.tolist()
    some = st.lists(st.integers(0, count - 1), max_size=2)
    made = replace(
        made,
        alive=made.alive & ~np.isin(np.arange(count), draw(some)),
        directories=replace(made.directories, cordoned=np.isin(np.arange(count), draw(some))),
    )
    brokers = draw(st.sampled_from([None, None, frozenset(ids[1:])]))
    drain = draw(st.frozensets(st.sampled_from(ids), max_size=2))
    narrow = draw(st.booleans()) and bool(drain)
    avoid = draw(st.frozensets(st.sampled_from(ids), max_size=2)) - drain
    return made, PlacementGoal(
        exclude=draw(st.sampled_from([None, ("__*",), (), ("a",)])),
        drain=drain,
        brokers=brokers,
        replication_factor=None if narrow else draw(st.sampled_from([None, None, 1, 2, 3])),
        balance=frozenset()
        if narrow
        else draw(st.sampled_from([frozenset[By](), ALL, frozenset({By.DISK}), frozenset({By.LEADERS})])),
        min_free=0.0,
        scope=Scope.DRAINED if narrow else Scope.ALL,
        avoid=avoid if brokers is None else avoid & brokers,
        fenced_brokers=draw(st.sampled_from(FencedBrokers)),
    )


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


@examples(300)
@given(cases())
def test_no_plan_moves_what_is_to_stay(case: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = case
    if (plan := made_plan(made, goal)) is None:
        return
    drained = emptied(made, goal)
    fenced = set(np.flatnonzero(made.registered & ~made.alive).tolist()) - drained
    kept = fenced if goal.fenced_brokers is FencedBrokers.KEEP else set[int]()
    cordoned = set(np.flatnonzero(cordoned_brokers(made.directories, len(made.brokers))).tolist())
    closed = cordoned | {b for b, id in enumerate(made.brokers.tolist()) if id in goal.avoid} | fenced
    for p in range(len(made.topic)):
        before, after = row_of(made.replicas, p), row_of(plan.target, p)
        assert not (set(after) - set(before)) & closed, "these gain nothing"
        if set(before) & kept:
            assert after == before, "a partition with a replica on a fenced broker stays"
        if after == before:
            continue
        assert not set(after) & cordoned, "Kafka refuses a target with a cordoned broker"
        if goal.scope is Scope.DRAINED:
            assert set(before) & drained, "a partition without a replica on a drained broker stays"
            assert [new for old, new in zip(before, after, strict=True) if old not in drained] == [
                old for old in before if old not in drained
            ], "all replicas elsewhere stay in place"
            assert not set(after) & drained
            assert made.registered[after].all(), "Kafka refuses a target with a broker that is not registered"
    assert plan.certificate.bytes_bound <= plan.certificate.bytes
    assert plan.certificate.moves_bound <= plan.certificate.moves


@examples(200)
@given(cases())
def test_a_drained_broker_that_keeps_replicas_is_said_to(case: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = case
    if (plan := made_plan(made, goal)) is None:
        return
    if set(plan.target[plan.target >= 0].tolist()) & emptied(made, goal):
        assert GoalPart.DRAIN in {unmet.part for unmet in plan.certificate.unmet}
