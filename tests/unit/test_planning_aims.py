"""Targets of brokers: no more than they can hold, and bands that can be met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reassign.api.goal import By
from reassign.planning.problem.model import Bytes, Cluster, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, pose
from reassign.planning.problem.shares import DISK, LEADERS, REPLICAS
from reassign.planning.solve import outside_bands, solve
from tests.unit.planner_clusters import NEVER, cluster, directories

COUNTED = frozenset({By.DISK, By.REPLICAS})
SKEWED = [0.1, 0.5, 0.3, 0.1]


def planned(made: Cluster, *balance: By, **goal: object) -> tuple[PlacementProblem, Bytes, list[str]]:
    """The problem, the loads (3, B) after it is solved, and which bands are missed."""
    problem = pose(made, PlacementGoal(balance=frozenset(balance), **goal))  # type: ignore[arg-type]
    solution = solve(problem)
    assert solution.unmet == ()
    missed = [unmet.what.split()[0] for unmet in outside_bands(problem, solution.target)]
    return problem, problem.loads(solution.target), missed


def skewed(partitions: int, replicas: int = 1, seed: int = 3) -> list[list[int]]:
    chance = np.random.default_rng(seed)
    return [chance.choice(4, replicas, False, SKEWED).tolist() for _ in range(partitions)]


def lognormal(partitions: int, seed: int = 3) -> list[int]:
    return [int(size) for size in np.random.default_rng(seed).lognormal(0, 1, partitions) * 10]


# --- leaders ---


def test_a_broker_without_replicas_has_no_leader_target_if_nothing_moves() -> None:
    problem, after, missed = planned(cluster([[0, 1], [0, 2], [0, 1], [0, 2], [0, 1], [0, 2]]), By.LEADERS)
    assert problem.target[LEADERS].tolist() == [2, 2, 2, 0]
    assert (after[LEADERS].tolist(), missed) == ([2, 2, 2, 0], [])


def test_what_has_one_replica_is_led_where_it_lies() -> None:
    problem, after, missed = planned(cluster([[0]] * 6 + [[1, 2]] * 6), By.LEADERS)
    assert problem.target[LEADERS].tolist() == [6, 3, 3, 0]
    assert (after[LEADERS].tolist(), missed) == ([6, 3, 3, 0], [])


def test_what_a_drained_broker_gives_can_be_led_by_who_gets_it() -> None:
    problem, after, missed = planned(cluster([[0, 1]] * 6), By.LEADERS, drain=frozenset({100}))
    assert problem.target[LEADERS].tolist() == [0, 2, 2, 2]
    assert (after[LEADERS].tolist(), missed) == ([0, 2, 2, 2], [])


def test_a_broker_of_fixed_followers_leads_no_more_than_it_gets() -> None:
    rows = [[1, 0], [2, 0], [3, 0]] * 4 + [[0], [1], [2], [3]] * 3
    made = cluster(rows, topics=("__fixed", "free"), topic=[0] * 12 + [1] * 12)
    problem, after, missed = planned(made, By.REPLICAS, By.LEADERS)
    assert problem.target[REPLICAS].tolist() == [12, 8, 8, 8]
    assert problem.target[LEADERS].tolist() == [0, 8, 8, 8]
    assert (after[REPLICAS].tolist(), missed) == ([12, 8, 8, 8], [])


# --- counts ---


def test_whichever_broker_has_the_one_that_is_left_over_nothing_moves() -> None:
    made = cluster([[0]] * 3 + [[1]] * 4 + [[2]] * 3, racks=("",) * 3)
    problem, after, missed = planned(made, By.REPLICAS, tolerance=0.1)
    assert problem.target[REPLICAS].tolist() == [4, 3, 3]
    assert (after[REPLICAS].tolist(), missed) == ([3, 4, 3], [])


def test_replicas_that_are_fewer_than_brokers_are_balanced() -> None:
    _, after, missed = planned(cluster([[0, 1], [1, 0]], [1, 2], racks=("",) * 6), By.DISK, By.REPLICAS)
    assert (after[REPLICAS].sum(), missed) == (4, [])


def test_a_broker_is_asked_for_no_more_replicas_than_it_has_room_for() -> None:
    disks = directories(4, NEVER, [9, NEVER, NEVER, NEVER])
    made = cluster([[1], [2], [3]] * 8, disks=disks)
    problem, after, missed = planned(made, By.REPLICAS, By.LEADERS, min_free=0.0)
    assert problem.target[REPLICAS].tolist() == problem.target[LEADERS].tolist() == [0, 8, 8, 8]
    assert (after[REPLICAS].tolist(), missed) == ([0, 8, 8, 8], [])


# --- bytes ---


def test_beside_one_huge_partition_the_others_share_the_rest() -> None:
    problem, after, missed = planned(cluster([[0], *skewed(100)], [1000] + [1] * 100), *COUNTED)
    assert problem.target[DISK].tolist() == [1023, 26, 26, 25]  # as many small ones as the count of broker 0 calls for
    assert after[DISK, 0] >= 1000
    assert missed == []


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_balanced_beside_a_huge_partition_of_two_replicas(seed: int) -> None:
    made = cluster([[0, 1], *skewed(100, 2, seed)], [10_000, *lognormal(100, seed)])
    problem, after, missed = planned(made, *COUNTED)
    assert ((problem.low[REPLICAS] <= after[REPLICAS]) & (after[REPLICAS] <= problem.high[REPLICAS])).all()
    assert "Replicas" not in missed


def test_a_huge_partition_of_a_drained_broker_fills_another_one_by_itself() -> None:
    made = cluster([[0], *skewed(100)], [1000] + [1] * 100)
    problem, after, missed = planned(made, *COUNTED, drain=frozenset({100}))
    assert (problem.low[DISK, 1:] > 30).all()
    assert (after[DISK, 0], missed) == (0, [])


def test_of_two_huge_partitions_on_a_broker_one_goes() -> None:
    _, after, missed = planned(cluster([[0], [0], *skewed(100)], [1000, 900] + [1] * 100), *COUNTED)
    assert sorted(after[DISK] // 100) == [0, 0, 9, 10]
    assert missed == []


def test_a_broker_with_a_huge_replica_has_no_target_of_a_second_one() -> None:
    made = cluster([[2, 0], [4], [5, 4]], [425_888, 1_532_266, 457_200], racks=("",) * 6)
    problem, after, missed = planned(made, *COUNTED, tolerance=0.01, drain=frozenset({100}))
    assert problem.target[DISK].sum() <= problem.load[DISK].sum()
    assert after[DISK].tolist() == [0, 425_888, 425_888, 457_200, 1_532_266, 457_200]
    assert missed == []


def test_brokers_are_asked_for_no_more_bytes_together_than_there_are() -> None:
    for seed in range(300):
        random = np.random.default_rng(seed)
        brokers = int(random.integers(4, 8))
        rows = [random.permutation(brokers)[: random.integers(1, 4)].tolist() for _ in range(random.integers(1, 8))]
        sizes = random.lognormal(14, random.choice([1, 3]), len(rows)).astype(int).tolist()
        drained = frozenset({100}) if seed % 2 else frozenset[int]()
        problem = pose(
            cluster(rows, sizes, ("",) * brokers), PlacementGoal(balance=COUNTED, tolerance=0.1, drain=drained)
        )
        assert problem.low[DISK].sum() <= problem.target[DISK].sum() <= problem.load[DISK].sum(), seed


def test_a_broker_is_asked_for_no_more_bytes_than_it_has_room_for() -> None:
    disks = directories(4, NEVER, [200, *[NEVER] * 3])
    made = cluster(skewed(200), lognormal(200), disks=disks)
    problem, after, missed = planned(made, By.DISK, min_free=0.0)
    assert problem.target[DISK, 0] == problem.room[0] < problem.target[DISK, 1] // 2
    assert problem.target[DISK].sum() == problem.size.sum()
    assert after[DISK, 0] <= problem.room[0]
    assert missed == []


def test_what_is_fixed_and_huge_leaves_the_rest_to_the_others() -> None:
    fixed = cluster(
        [[0]] * 3 + skewed(200), [3000] * 3 + lognormal(200), topics=("__a", "b"), topic=[0] * 3 + [1] * 200
    )
    assert planned(fixed, *COUNTED)[2] == []


def test_racks_count_in_what_the_others_share() -> None:
    rows = [[0, 2]] + [[p % 2, 2 + p // 2 % 2] for p in range(100)]
    made = cluster(rows, [10_000, *lognormal(100)], racks=("a", "a", "b", "b"))
    target = planned(made, By.DISK)[0].target[DISK].tolist()
    assert (target[0], target[2]) == (10_000, 10_000)
    assert target[1] == target[3] == sum(lognormal(100))


def test_ordinary_sizes_are_asked_of_each_broker_alike() -> None:
    problem = pose(replace(cluster(skewed(400, 2), lognormal(400))), PlacementGoal(balance=COUNTED, tolerance=0.1))
    mean = 2 * problem.size.sum() // 4
    assert (np.abs(problem.target[DISK] - mean) <= 1).all()
    assert (np.abs(problem.low[DISK] - 0.9 * mean) <= 1).all()
    assert (np.abs(problem.high[DISK] - 1.1 * mean) <= 2).all()
