"""The planner's kernel on small clusters: each case a sentence, then properties on made clusters.

Racks are checked with `tests.spread`, which shares no code with the kernel.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import Awareness, By
from reassign.errors import PlanningError, Reason
from reassign.planning.kernel.local_search import GAIN
from reassign.planning.problem.assignments import added
from reassign.planning.problem.model import UNKNOWN, Bytes, Cluster, Directories, Ints, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, around_evicted, pose
from reassign.planning.solve import Solution, outside_bands, solve
from tests.spread import spread
from tests.unit.examples import examples
from tests.unit.planner_clusters import NEVER, cluster, directories, made_clusters

ALL = frozenset(By)
GB = 10**9


def plan(made: Cluster, **goal: object) -> list[list[int]]:
    rows = solve(pose(made, PlacementGoal(**goal))).target.tolist()  # type: ignore[arg-type]
    return [[b for b in row if b >= 0] for row in rows]


def test_nothing_moves_that_need_not() -> None:
    rows = [[0, 1], [0, 1], [0, 2]]
    assert plan(cluster(rows)) == rows


def test_a_drained_broker_ends_empty_and_the_others_keep_their_places() -> None:
    assert plan(cluster([[0, 1, 2], [1, 0, 2]]), drain=frozenset({100})) == [[3, 1, 2], [1, 3, 2]]


def test_what_leaves_goes_to_the_emptiest_broker() -> None:
    assert plan(cluster([[0, 1], [2, 1]], sizes=[10, 99]), drain=frozenset({100}))[0] == [3, 1]


def test_what_leaves_goes_to_the_emptiest_broker_by_weight() -> None:
    disks = replace(directories(4, usable=NEVER), total=np.array([100, 100, 1000, 100], np.int64))
    made = cluster([[0], [2], [3]], sizes=[10, 20, 5], disks=disks)
    assert plan(made, drain=frozenset({100, 101})) == [[2], [2], [3]]


def test_a_higher_replication_factor_adds_replicas_behind_the_ones_there() -> None:
    rows = plan(cluster([[0, 1], [1, 0]]), replication_factor=3)
    assert [row[:2] for row in rows] == [[0, 1], [1, 0]]
    assert sorted(row[2] for row in rows) == [2, 3]


def test_a_higher_replication_factor_goes_to_racks_that_have_none() -> None:
    assert plan(cluster([[0, 2]], racks=("x", "x", "y", "z")), replication_factor=3) == [[0, 2, 3]]


def test_a_lower_replication_factor_takes_from_the_crowded_rack() -> None:
    assert plan(cluster([[0, 1, 2]], racks=("x", "x", "y", "z")), replication_factor=2) in ([[0, 2]], [[1, 2]])


def test_a_lower_replication_factor_never_removes_the_last_live_replica() -> None:
    assert plan(cluster([[1, 0, 2]], dead=(1, 2)), replication_factor=1) == [[0]]


def test_a_lower_replication_factor_balances_by_what_it_removes() -> None:
    chance = np.random.default_rng(1)
    rows = [chance.choice(5, 3, False, [0.24, 0.22, 0.2, 0.18, 0.16]).tolist() for _ in range(200)]
    sizes = [int(size) for size in chance.lognormal(0, 1, 200) * 1000]
    made = cluster(rows, sizes, racks=("",) * 5)
    solution = solve(pose(made, PlacementGoal(replication_factor=2, balance=ALL)))
    assert solution.unmet == ()
    after = [[b for b in row if b >= 0] for row in solution.target.tolist()]
    assert all(set(row) <= set(before) for row, before in zip(after, rows, strict=True)), "nothing is copied"


def test_a_lower_replication_factor_keeps_the_preferred_leader() -> None:
    rows = plan(cluster([[0, 1, 2], [0, 2, 3], [0, 3, 1]]), replication_factor=2)
    assert [row[0] for row in rows] == [0, 0, 0], "though its broker is the fullest"


def test_a_follower_moves_to_another_rack_before_the_preferred_leader() -> None:
    assert plan(cluster([[0, 1]], racks=("x", "x", "y", "y"))) == [[0, 2]]


def test_replicas_of_a_dead_broker_are_made_anew_in_their_place() -> None:
    assert plan(cluster([[1, 0]], dead=(1, 3))) == [[2, 0]]


def test_a_partition_without_a_live_replica_stays_and_is_reported() -> None:
    problem = pose(cluster([[1], [0]], dead=(1,)), PlacementGoal())
    solution = solve(problem)
    assert solution.target.tolist() == [[1], [0]]
    assert solution.unmet[0].what == "a-0 has no replica on a live broker or directory"


def test_the_only_replica_on_a_drained_broker_moves() -> None:
    assert plan(cluster([[0], [1], [2]]), drain=frozenset({100}))[0] == [3]


def test_a_row_that_its_racks_do_not_allow_is_put_right_with_one_move() -> None:
    row = plan(cluster([[0, 1]], racks=("x", "x", "y", "y")))[0]
    assert len({0, 1} & set(row)) == 1
    assert len({2, 3} & set(row)) == 1


def test_a_rack_of_racks_is_put_right_below_as_well() -> None:
    racks = ("/p/1", "/p/1", "/p/2", "/q/1", "/q/2")
    assert plan(cluster([[0, 1, 3]], racks=racks))[0] in ([2, 1, 3], [0, 2, 3])


def test_racks_do_not_count_with_awareness_none() -> None:
    assert plan(cluster([[0, 1]], racks=("x", "x", "y", "y")), awareness=Awareness.NONE) == [[0, 1]]


def test_replicas_end_on_the_brokers_that_are_named() -> None:
    rows = plan(cluster([[0, 1], [2, 3], [1, 3]]), brokers=frozenset({100, 101, 102}))
    assert rows[0] == [0, 1]
    assert all(set(row) <= {0, 1, 2} for row in rows)


def test_leaders_are_balanced_by_reordering_alone() -> None:
    made = cluster([[0, 1], [0, 2], [0, 3], [0, 1]])
    rows = plan(made, balance=frozenset({By.LEADERS}))
    assert [sorted(row) for row in rows] == [[0, 1], [0, 2], [0, 3], [0, 1]]
    assert sorted(row[0] for row in rows) == [0, 1, 2, 3]


def test_leaders_are_balanced_along_a_chain_of_changes() -> None:
    made = cluster([[0, 1], [0, 1], [1, 2], [2, 0]], racks=("",) * 3)
    only = replace(made, replicas=np.array([[0, 1], [0, 1], [1, 2], [1, 2]], np.int32))
    rows = plan(only, balance=frozenset({By.LEADERS}))
    assert sorted(np.bincount([row[0] for row in rows], minlength=3).tolist()) == [1, 1, 2]


def test_disk_is_balanced_with_the_fewest_bytes() -> None:
    made = cluster([[0], [0], [0], [1]], sizes=[40, 30, 20, 30], racks=("", ""))
    assert plan(made, balance=frozenset({By.DISK})) == [[0], [1], [0], [1]]


def test_sizes_that_do_not_fit_into_a_number_are_refused() -> None:
    for sizes in ([2**62, 1], [2**50 + 1, 1]):
        with pytest.raises(PlanningError, match=f"a-0 has {sizes[0]} bytes") as refusal:
            pose(cluster([[0, 1], [1, 2]], sizes), PlacementGoal(balance=ALL))
        assert refusal.value.reason is Reason.INVALID_SNAPSHOT
    with pytest.raises(PlanningError, match=r"all replicas together have 1.689e\+18 bytes"):
        pose(cluster([[0, 1]] * 500, [2**50] * 500), PlacementGoal(replication_factor=3, balance=ALL))
    unknown = replace(cluster([[0, 1]] * 3), sizes=np.array([2**63 - 1, 2**63 - 1, UNKNOWN]))
    with pytest.raises(PlanningError, match="bytes, more than"):
        pose(unknown, PlacementGoal())


def test_the_largest_sizes_that_are_planned_do_not_wrap() -> None:
    rows = [[p % 3] for p in range(1000)]
    problem = pose(cluster(rows, [2**50] * 1000), PlacementGoal(balance=ALL, tolerance=1.0))
    solution = solve(replace(problem, low=problem.target, high=problem.target))
    assert np.bincount(solution.target[:, 0]).tolist() == [250] * 4


def test_volumes_of_the_largest_number_count_for_the_same() -> None:
    several = Directories(
        np.array([0, 0, 1, 2, 3], np.int32), ("/a", "/b", "/a", "/a", "/a"),
        np.array([2**63 - 1] * 5), np.array([2**63 - 1, 2**62, *[2**63 - 1] * 3]),
        np.zeros(5, bool), np.ones(5, bool),
    )  # fmt: skip
    problem = pose(cluster([[0]] * 10, disks=several), PlacementGoal(balance=ALL))
    assert problem.weight.tolist() == [2 * problem.weight[1], *[problem.weight[1]] * 3]
    assert problem.target[1].tolist() == [4, 2, 2, 2]


def test_topics_that_are_not_selected_stay_where_they_are() -> None:
    made = cluster([[0], [0]], topics=("__offsets", "a"), topic=[0, 1])
    assert plan(made, drain=frozenset({100}), exclude=("__*",))[0] == [0]


def test_a_partition_in_flight_is_planned_around_and_reported() -> None:
    made = replace(cluster([[0], [0]]), in_flight=np.array([True, False]))
    solution = solve(pose(made, PlacementGoal(drain=frozenset({100}))))
    assert solution.target[0].tolist() == [0]
    assert solution.target[1].tolist() != [0]
    assert solution.unmet[0].what == "1 partition in flight to brokers that the goal does not allow"


def test_a_disk_takes_no_more_than_leaves_the_share_free() -> None:
    made = cluster([[0], [0]], sizes=[50, 40], disks=directories(4, 100, [0, 55, 49, 49]))
    assert plan(made, drain=frozenset({100}), min_free=0.05) == [[1], [2]]


def test_a_replica_without_room_elsewhere_stays_and_is_reported() -> None:
    made = cluster([[0], [0]], sizes=[50, 40], disks=directories(4, 100, [0, 45, 10, 10]))
    solution = solve(pose(made, PlacementGoal(drain=frozenset({100}), min_free=0.0)))
    assert solution.target.tolist() == [[0], [1]]
    assert solution.unmet[0].what == "no place with room on disk that racks allow for 1 partition"


def test_a_cordoned_directory_takes_nothing() -> None:
    made = cluster([[0], [3]], disks=directories(4, 100, 90, cordoned=(1,)))
    assert plan(made, drain=frozenset({100})) == [[2], [3]]


def two_each(totals: list[int], usable: list[int], **fields: object) -> Directories:
    """Two directories on each broker, with these gigabytes."""
    count = len(totals)
    made = Directories(
        broker=np.repeat(np.arange(count // 2, dtype=np.int32), 2),
        path=("/a", "/b") * (count // 2),
        total=np.array(totals, np.int64) * GB,
        usable=np.array(usable, np.int64) * GB,
        cordoned=np.zeros(count, bool),
        online=np.ones(count, bool),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def test_the_room_of_directories_on_one_volume_counts_once() -> None:
    made = cluster([[0]], racks=("",) * 2, disks=two_each([100, 100, 100, 100], [40, 40, 40, 60]))
    problem = pose(made, PlacementGoal(min_free=0.1))
    assert (problem.room - problem.load[0]).tolist() == [30 * GB, 30 * GB + 50 * GB]
    assert problem.weight.tolist() == [100 * GB, 200 * GB]


def test_a_volume_takes_replicas_when_one_of_its_directories_does() -> None:
    cordoned = np.array([True, False, True, True])
    disks = two_each([100, 100, 100, 100], [40, 40, 40, 40], cordoned=cordoned)
    problem = pose(cluster([[0]], racks=("",) * 2, disks=disks), PlacementGoal(min_free=0.0))
    assert (problem.room - problem.load[0]).tolist() == [40 * GB, 0]


def test_an_offline_directory_is_no_capacity_and_hides_that_of_no_other() -> None:
    disks = two_each([100, -1, 100, 300], [40, -1, 40, 60], online=np.array([True, False, True, True]))
    disks = replace(disks, total=np.where(disks.total < 0, UNKNOWN, disks.total))
    problem = pose(cluster([[0]], racks=("",) * 2, disks=disks), PlacementGoal())
    assert problem.weight.tolist() == [100 * GB, 400 * GB]


def test_topics_are_selected_by_name_and_by_pattern() -> None:
    made = cluster([[0]] * 4, topics=("a", "ab", "b", "c"), topic=[0, 1, 2, 3])
    assert pose(made, PlacementGoal(include=("a", "b*"))).movable.tolist() == [True, False, True, False]
    assert pose(made, PlacementGoal(exclude=("?b", "c"))).movable.tolist() == [True, False, True, False]


def test_a_size_that_is_not_known_is_the_mean_of_its_topic_or_of_all() -> None:
    made = cluster([[0]] * 5, [10, 30, -1, -1, 200], topics=("a", "b", "c"), topic=[0, 0, 0, 1, 2])
    problem = pose(made, PlacementGoal())
    assert problem.size.tolist() == [10, 30, 20, 80, 200]


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (PlacementGoal(replication_factor=5), Reason.NOT_ENOUGH_BROKERS),
        (PlacementGoal(drain=frozenset({100, 101}), replication_factor=3), Reason.NOT_ENOUGH_BROKERS),
        (PlacementGoal(brokers=frozenset({100}), replication_factor=2), Reason.NOT_ENOUGH_BROKERS),
        (PlacementGoal(include=("b*",)), Reason.NOTHING_SELECTED),
        (PlacementGoal(exclude=("*",)), Reason.NOTHING_SELECTED),
        (PlacementGoal(drain=frozenset({7})), Reason.INVALID_GOAL),
        (PlacementGoal(brokers=frozenset({7})), Reason.INVALID_GOAL),
        (PlacementGoal(drain=frozenset({100, 101, 102, 103})), Reason.INVALID_GOAL),
        (PlacementGoal(replication_factor=0), Reason.INVALID_GOAL),
        (PlacementGoal(tolerance=0.0), Reason.INVALID_GOAL),
        (PlacementGoal(tolerance=1.01), Reason.INVALID_GOAL),
        (PlacementGoal(min_free=1.0), Reason.INVALID_GOAL),
    ],
)
def test_a_goal_that_cannot_be_planned_is_refused(goal: PlacementGoal, reason: Reason) -> None:
    with pytest.raises(PlanningError) as refused:
        pose(cluster([[0, 1]]), goal)
    assert refused.value.reason is reason


def test_a_goal_that_leaves_only_dead_brokers_is_refused() -> None:
    with pytest.raises(PlanningError, match=r"none of the brokers that the goal leaves is alive \(100\):") as refused:
        pose(cluster([[0]], dead=(0,)), PlacementGoal(brokers=frozenset({100}), balance=ALL))
    assert refused.value.reason is Reason.NOT_ENOUGH_BROKERS


def test_a_tolerance_of_all_lets_a_broker_have_nothing_or_twice_its_share() -> None:
    problem = pose(cluster([[0, 1], [2, 3]]), PlacementGoal(balance=ALL, tolerance=1.0))
    assert (problem.low[1].tolist(), problem.high[1].tolist()) == ([0] * 4, [2] * 4)


def test_targets_follow_what_racks_force() -> None:
    """With as many racks as replicas each rack holds one of each, however few brokers it has."""
    rows = [[0, 1 + i % 2, 3 + i % 4] for i in range(40)]
    problem = pose(cluster(rows, racks=("x", "y", "y", "z", "z", "z", "z")), PlacementGoal(balance=ALL))
    assert problem.target[1].tolist() == [40, 20, 20, 10, 10, 10, 10]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Cluster, PlacementGoal]:
    made = draw(made_clusters())
    ids = made.brokers.tolist()
    return made, PlacementGoal(
        exclude=draw(st.sampled_from([None, ("__*",), (), ("a",)])),
        drain=frozenset(draw(st.lists(st.sampled_from(ids), max_size=1))),
        brokers=draw(st.sampled_from([None, frozenset(ids[1:])])),
        replication_factor=draw(st.sampled_from([None, None, 1, 2, 3])),
        balance=draw(
            st.sampled_from([frozenset[By](), ALL, frozenset({By.DISK}), frozenset({By.REPLICAS, By.LEADERS})])
        ),
        min_free=0.0,
    )


def posed(made: Cluster, goal: PlacementGoal) -> tuple[PlacementProblem, Solution] | None:
    """None when the goal is refused."""
    try:
        problem = pose(made, goal)
    except PlanningError:
        return None
    return problem, solve(problem)


def row_of(rows: np.ndarray[tuple[int, ...], np.dtype[np.int32]], p: int) -> list[int]:
    return [b for b in rows[p].tolist() if b >= 0]


def emptied(made: Cluster, goal: PlacementGoal) -> set[int]:
    """The ids of the brokers that are drained."""
    return set(goal.drain) | (set() if goal.brokers is None else set(made.brokers.tolist()) - goal.brokers)


def stuck(solution: Solution) -> bool:
    return any("no place with room" in unmet.what for unmet in solution.unmet)


@examples(300)
@given(problems())
def test_every_plan_is_sound(given_: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = given_
    if (found := posed(made, goal)) is None:
        return
    problem, solution = found
    even = spread(problem.groups, solution.target, problem.allowed)
    added = np.zeros(len(made.brokers), np.int64)
    for p in range(len(made.topic)):
        before, after = row_of(made.replicas, p), row_of(solution.target, p)
        assert len(set(after)) == len(after), "no broker twice"
        drained = goal.exclude is None and {made.brokers[b] for b in before} & emptied(made, goal)
        if made.topics[made.topic[p]] == "__own" and "__*" in goal.excluded and not drained:
            assert after == before, "excluded"
        if not problem.movable[p]:
            assert after == before, "untouched"
            continue
        new = set(after) - set(before)
        assert all(problem.allowed[b] for b in new), "only where it may go"
        assert any(made.alive[b] for b in after)
        if after != before or not stuck(solution):
            assert len(after) == problem.rf[p], "the wanted replication factor"
            assert all(problem.allowed[b] for b in after)
            assert even[p], "racks"
        added[list(new)] += problem.size[p]
    load = problem.loads(solution.target)
    grown = added > 0
    assert (load[0, grown] <= problem.room[grown]).all(), "room"
    for k, by in enumerate((By.DISK, By.REPLICAS, By.LEADERS)):
        if by in goal.balance:
            inside = (problem.low[k] <= load[k]) & (load[k] <= problem.high[k])
            assert inside.all() or any(by in unmet.what for unmet in outside_bands(problem, solution.target)), (
                "in its band, or said"
            )


def carried_out(made: Cluster, problem: PlacementProblem, solution: Solution) -> Cluster:
    """The cluster that a plan makes."""
    again = replace(made, replicas=solution.target, sizes=problem.size)
    disks = made.directories
    if disks.usable[0] == UNKNOWN:
        return again
    grown = problem.loads(solution.target)[0] - problem.load[0]
    return replace(again, directories=replace(disks, usable=disks.usable - grown))


@examples(200, derandomize=False, print_blob=True)
@given(problems())
def test_a_second_plan_moves_nothing(given_: tuple[Cluster, PlacementGoal]) -> None:
    """On fresh examples in every run: what the bands are made from differs before and after a plan."""
    made, goal = given_
    if (found := posed(made, goal)) is None:
        return
    problem, solution = found
    if solution.unmet or outside_bands(problem, solution.target):
        return
    again = carried_out(made, problem, solution)
    assert solve(pose(again, goal)).target.tolist() == solution.target.tolist()


def test_a_broker_leaves_its_band_where_others_come_nearer_to_theirs() -> None:
    made = cluster([[0], [0], [1], [1], [2], [2]], [32] * 6)
    goal = PlacementGoal(balance=frozenset({By.DISK}))
    problem = pose(made, goal)
    solution = solve(problem)
    assert sorted(problem.loads(solution.target)[0].tolist()) == [32, 32, 64, 64]
    [unmet] = outside_bands(problem, solution.target)
    assert unmet.nearest == "from 66.7% to 133.3% of a broker's share"
    again = carried_out(made, problem, solution)
    assert solve(pose(again, goal)).target.tolist() == solution.target.tolist()


def distance(problem: PlacementProblem, load: Bytes) -> int:
    """How far the bytes of all brokers together are outside their bands."""
    low, high = problem.low[0], problem.high[0]
    return int((np.maximum(load - high, 0) + np.maximum(low - load, 0)).sum())


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(28, 36)), min_size=3, max_size=12),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_no_single_move_brings_bytes_much_nearer_to_their_bands(
    placed: list[tuple[int, int]], avoided: list[bool]
) -> None:
    made = cluster([[broker] for broker, _ in placed], [size for _, size in placed])
    avoid = frozenset(made.brokers[np.flatnonzero(avoided)[:2]].tolist())
    problem = pose(made, PlacementGoal(balance=frozenset({By.DISK}), avoid=avoid))
    solution = solve(problem)
    load = problem.loads(solution.target)[0]
    before = distance(problem, load)
    for p, giver in enumerate(solution.target[:, 0].tolist()):
        for taker in np.flatnonzero(~problem.closed).tolist():
            after = load.copy()
            after[giver] -= problem.size[p]
            after[taker] += problem.size[p]
            assert (before - distance(problem, after)) * GAIN < problem.size[p]


def one_replica_each() -> Cluster:
    """Six partitions of one replica on nine brokers; two brokers have two of them."""
    return cluster([[0], [0], [0], [1], [1], [2]], [900, 310, 290, 420, 180, 220], racks=("",) * 9)


def test_a_second_plan_of_few_large_partitions_moves_nothing() -> None:
    problem = pose(one_replica_each(), PlacementGoal(balance=ALL))
    solution = solve(problem)
    again = carried_out(one_replica_each(), problem, solution)
    assert outside_bands(problem, solution.target) == []
    assert solve(pose(again, PlacementGoal(balance=ALL))).target.tolist() == solution.target.tolist()


@examples(200)
@given(problems())
def test_no_leader_leaves_where_a_follower_could(given_: tuple[Cluster, PlacementGoal]) -> None:
    """Each plan that has the preferred leader in place of one other replica is tried: all would copy no more bytes."""
    if (found := posed(*given_)) is None:
        return
    problem, target = around_evicted(found[0]), found[1].target
    load = problem.loads(target)
    for p in np.flatnonzero(problem.movable & problem.keep[:, 0]).tolist():
        leader, row = int(problem.current[p, 0]), row_of(target, p)
        if leader in row:
            assert row[0] == leader or By.LEADERS in given_[1].balance
            continue
        for b in row:
            other = target.copy()
            other[p, : len(row)] = [leader, *(stays for stays in row if stays != b)]
            after = problem.loads(other)
            worse = ((after > load) & (after > problem.high)) | ((after < load) & (after < problem.low))
            legal = spread(problem.groups, other[p : p + 1], problem.allowed)[0]
            assert not legal or after[0, leader] > problem.room[leader] or worse[problem.balanced].any()


@examples(100)
@given(problems())
def test_keeping_leaders_costs_neither_bytes_nor_balance(given_: tuple[Cluster, PlacementGoal]) -> None:
    if (found := posed(*given_)) is None:
        return
    problem, solution = found
    with patch("reassign.planning.solve.keep_leaders", return_value=0):
        other = solve(problem).target
    assert copied(problem, solution.target) <= copied(problem, other)
    assert (outside(problem, solution.target) <= outside(problem, other)).all()


def copied(problem: PlacementProblem, target: Ints) -> int:
    return int((added(problem.current, target).sum(axis=1) * problem.size).sum())


def outside(problem: PlacementProblem, target: Ints) -> Bytes:
    """How far what is balanced is outside its band, over all brokers."""
    load = problem.loads(target)
    beyond: Bytes = np.maximum(load - problem.high, 0) + np.maximum(problem.low - load, 0)
    far: Bytes = beyond[problem.balanced].sum(axis=1)
    return far


@examples(30)
@given(problems())
def test_the_same_problem_gives_the_same_plan(given_: tuple[Cluster, PlacementGoal]) -> None:
    first, second = posed(*given_), posed(*given_)
    if first is not None and second is not None:
        assert first[1].target.tobytes() == second[1].target.tobytes()


def test_replicas_of_excluded_topics_on_a_drained_broker_are_reported() -> None:
    made = cluster([[0, 1], [0, 1]], racks=("",) * 3, topics=("__a", "b"), topic=[0, 1])
    solution = solve(pose(made, PlacementGoal(exclude=("__*",), drain=frozenset({100}))))
    assert solution.target[0].tolist() == [0, 1]
    assert solution.unmet[0].what == "1 replica of excluded topics on brokers to be emptied: 100 (topics: __a)"
    assert solve(pose(made, PlacementGoal(include=("b",), drain=frozenset({100})))).unmet == ()


def test_of_many_excluded_topics_on_a_drained_broker_some_are_named() -> None:
    made = cluster([[0, 1]] * 8 + [[1, 2]], topics=tuple("abcdefghi"), topic=list(range(9)))
    solution = solve(pose(made, PlacementGoal(exclude=tuple("abcdefg"), drain=frozenset({100}))))
    assert solution.unmet[0].what == (
        "7 replicas of excluded topics on brokers to be emptied: 100 (topics: a, b, c, d, e and 2 more)"
    )


INTERNAL = ("__consumer_offsets", "orders")


def test_topics_excluded_by_default_leave_a_drained_broker() -> None:
    made = cluster([[0, 1], [2, 1], [0, 1]], topics=INTERNAL, topic=[0, 0, 1])
    problem = pose(made, PlacementGoal(drain=frozenset({100})))
    solution = solve(problem)
    assert solution.target[:2].tolist() == [[3, 1], [2, 1]], "one replica moves, into its slot"
    assert 0 not in solution.target
    assert solution.unmet == ()


def test_topics_excluded_by_default_leave_brokers_that_are_not_listed() -> None:
    made = cluster([[0, 1], [2, 1]], topics=INTERNAL, topic=[0, 1])
    assert plan(made, brokers=frozenset({101, 102, 103})) == [[3, 1], [2, 1]]


def test_topics_excluded_by_default_keep_their_factor_and_balance() -> None:
    rows = [[0, 1]] * 8 + [[2, 3]]
    made = cluster(rows, topics=INTERNAL, topic=[0] * 8 + [1])
    after = plan(made, replication_factor=3, balance=ALL)
    assert after[:8] == rows[:8]
    assert len(after[8]) == 3


def test_a_drain_keeps_the_racks_of_topics_excluded_by_default() -> None:
    made = cluster([[0, 2], [0, 2]], racks=("x", "x", "y", "y"), topics=INTERNAL[:1])
    assert plan(made, drain=frozenset({100})) == [[1, 2], [1, 2]]


def test_small_internal_partitions_do_not_all_go_to_one_broker() -> None:
    made = cluster([[0]] * 12, [0] * 12, topics=INTERNAL[:1])
    assert np.bincount(np.array(plan(made, drain=frozenset({100}))).ravel()).tolist() == [0, 4, 4, 4]


def test_a_drain_balances_around_topics_excluded_by_default() -> None:
    made = cluster([[0, 1]] * 6 + [[0, 1]] * 30, racks=("",) * 4, topics=INTERNAL, topic=[0] * 6 + [1] * 30)
    problem = pose(made, PlacementGoal(drain=frozenset({100}), balance=ALL))
    solution = solve(problem)
    assert outside_bands(problem, solution.target) == []
    assert (solution.target[:6] == 1).any(axis=1).all(), "what need not move stays"


def test_an_internal_topic_without_room_elsewhere_stays_and_is_reported() -> None:
    made = cluster([[0]], [50], topics=INTERNAL[:1], disks=directories(4, total=100, usable=[100, 10, 10, 10]))
    solution = solve(pose(made, PlacementGoal(drain=frozenset({100}), min_free=0.0)))
    assert solution.target.tolist() == [[0]]
    assert [unmet.what for unmet in solution.unmet] == ["no place with room on disk that racks allow for 1 partition"]


@examples(200)
@given(problems())
def test_a_drain_leaves_nothing_that_is_not_excluded(given_: tuple[Cluster, PlacementGoal]) -> None:
    made, goal = given_
    if (found := posed(made, goal)) is None or stuck(found[1]):
        return
    _, solution = found
    drained = np.isin(made.brokers, list(emptied(made, goal)))
    for p in range(len(made.topic)):
        excluded = goal.exclude is not None and any(fnmatch(made.topics[made.topic[p]], x) for x in goal.exclude)
        if not excluded and not made.in_flight[p] and made.alive[row_of(made.replicas, p)].any():
            assert not drained[row_of(solution.target, p)].any()
