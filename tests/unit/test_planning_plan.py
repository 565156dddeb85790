"""The whole way from a cluster and a goal to waves and a certificate."""

from dataclasses import replace

import numpy as np
import pytest

from reassign.api.goal import By, GoalPart
from reassign.planning.plan import evenness, make
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories, PlacementGoal, Plan

MB = 10**6
SKEWED = ([0, 1], [4, 1], [0, 3], [1, 4], [0, 1], [4, 3], [2, 1])
TOPICS = (("audit", 12, 2), ("orders", 12, 12), ("payments", 16, 5))
GOAL = PlacementGoal(drain=frozenset({4}), balance=frozenset(By))


def two_sites() -> Cluster:
    """Five brokers, 0, 2 and 4 in one site and the others in another, and most replicas on three of them."""
    rows = [(i, p, SKEWED[p % 7], size) for i, (_, count, size) in enumerate(TOPICS) for p in range(count)]
    brokers = np.arange(5, dtype=np.int32)
    unknown = np.full(5, UNKNOWN, np.int64)
    return Cluster(
        id="two sites",
        brokers=brokers,
        racks=tuple(f"/{'ab'[b % 2]}/{b // 2 + 1}" for b in range(5)),
        registered=np.ones(5, np.bool_),
        alive=np.ones(5, np.bool_),
        directories=Directories(brokers, ("/data",) * 5, unknown, unknown, np.zeros(5, np.bool_), np.ones(5, np.bool_)),
        topics=tuple(name for name, _, _ in TOPICS),
        topic=np.array([i for i, *_ in rows], np.int32),
        partition=np.array([p for _, p, *_ in rows], np.int32),
        replicas=np.array([row for *_, row, _ in rows], np.int32),
        sizes=np.array([size * MB for *_, size in rows], np.int64),
        in_flight=np.zeros(len(rows), np.bool_),
    )


def moved(cluster: Cluster, plan: Plan) -> int:
    """Bytes that are copied, counted one by one."""
    rows = zip(cluster.replicas.tolist(), plan.target.tolist(), cluster.sizes.tolist(), strict=True)
    return sum(size * len(set(new) - set(old)) for old, new, size in rows)


def test_a_drain_with_balance_takes_as_few_waves_as_the_caps_allow() -> None:
    cluster = two_sites()
    plan = make(cluster, GOAL, max_partitions=12, rate=20 * MB)
    found = plan.certificate
    assert 4 not in plan.target
    assert all({a % 2, b % 2} == {0, 1} for a, b in plan.target.tolist())
    assert found.unmet == ()
    assert found.bytes_bound <= found.bytes == moved(cluster, plan)
    assert found.waves == found.waves_bound == len(set(plan.wave.tolist()) - {UNKNOWN})
    assert max(np.bincount(plan.wave[plan.wave != UNKNOWN])) <= 12
    assert found.makespan is not None
    assert found.makespan_bound is not None
    assert found.makespan >= found.makespan_bound


def test_a_cluster_is_as_even_as_the_plan_said_once_it_is_carried_out() -> None:
    cluster = two_sites()
    cluster.replicas[0] = [0, 2]  # both on one site
    plan = make(cluster, GOAL)
    before, after = evenness(cluster, GOAL), evenness(replace(cluster, replicas=plan.target), GOAL)
    assert [part.part for part in before.unmet][:2] == [GoalPart.RACKS, GoalPart.BALANCE]
    assert before.unmet[0].what == "1 partition not spread over racks as evenly as possible: audit-0"
    assert after.unmet == ()
    assert [balance.after for balance in after.balance] == [balance.after for balance in plan.certificate.balance]


def test_a_partition_larger_than_a_wave_is_a_wave_alone_and_reported() -> None:
    plan = make(two_sites(), PlacementGoal(drain=frozenset({4})), max_bytes=10 * MB)
    assert plan.certificate.unmet[0].what == "more than a wave may copy is in orders-1 and 4 more"
    waves, counts = np.unique(plan.wave[plan.wave != UNKNOWN], return_counts=True)
    assert counts[:5].tolist() == [1] * 5
    assert len(waves) == plan.certificate.waves


def test_a_wave_is_cut_to_what_one_object_can_hold_and_the_bound_knows() -> None:
    """Each broker has two volumes, so that the plan names the directory, and their paths are very long."""
    cluster = two_sites()
    twice = np.repeat(np.arange(5, dtype=np.int32), 2)
    size, online = np.tile(np.array([10**12, 10**12 + 10**9]), 5), np.ones(10, np.bool_)
    paths = tuple(f"/{number}".ljust(30_000, "d") for number in range(10))
    named = replace(cluster, directories=Directories(twice, paths, size, size, ~online, online))
    plan = make(named, GOAL)
    counts = np.bincount(plan.wave[plan.wave != UNKNOWN])
    assert counts.sum() > counts.max()
    assert plan.certificate.waves == plan.certificate.waves_bound == len(counts)
    assert make(cluster, GOAL).certificate.waves == 1


@pytest.mark.parametrize("goal", [PlacementGoal(drain=frozenset({4})), PlacementGoal(brokers=frozenset(range(4)))])
def test_excluded_topics_that_a_drain_leaves_are_a_part_of_the_drain(goal: PlacementGoal) -> None:
    left = make(two_sites(), replace(goal, exclude=("audit",))).certificate.unmet
    assert [part.part for part in left] == [GoalPart.DRAIN]
