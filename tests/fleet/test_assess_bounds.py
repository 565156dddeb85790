"""Targets are those of the planner, and what every plan must copy is no more than the planner proves, or does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from pyspark.sql import SparkSession

from reassign.api.goal import Awareness, By
from reassign.files.snapshots import in_sync
from reassign.fleet.assess import Assessed, assess
from reassign.fleet.assess.terms import terms_of
from reassign.planning.bounds import certificates
from reassign.planning.problem.model import Cluster, Goal
from reassign.planning.problem.problem import RESOURCES, Problem, pose
from tests.benchmarks.instances import Made, cluster
from tests.fleet.made import tables_of
from tests.fleet.rows import by

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
KINDS = (
    Made(3_000, 12, violations=0.1),
    Made(3_000, 12, racks=(3,), unequal_racks=True),
    Made(3_000, 12, racks=(2, 3), unequal_capacities=True),
    Made(3_000, 30, racks=(), gamma=0.3),
    Made(900, 10, replication_factor=2, racks=(3,)),
    Made(60, 6, racks=(3,)),
    Made(2_000, 9, replication_factor=4, racks=(3, 2), unequal_racks=True),
)
GOALS = (
    Goal(balance=frozenset(By)),
    Goal(balance=frozenset({By.DISK}), drain=frozenset({2}), tolerance=0.05),
    Goal(balance=frozenset({By.REPLICAS}), replication_factor=2, awareness=Awareness.FLAT),
    Goal(balance=frozenset(By), replication_factor=3, brokers=frozenset(range(1, 7)), exclude=("*1",)),
    Goal(drain=frozenset({1}), awareness=Awareness.NONE),
)


@dataclass(frozen=True)
class Case:
    name: str
    cluster: Cluster
    goal: Goal
    problem: Problem


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found = []
    for number, kind in enumerate(KINDS):
        made = cluster(replace(kind, seed=number))
        for of, goal in enumerate(GOALS):
            found.append(Case(f"c-{number}-{of}", made, goal, pose(made, goal)))
    return found


@pytest.fixture(scope="module")
def assessed(spark: SparkSession, cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Assessed:
    newest = tables_of(spark, tmp_path_factory.mktemp("fleet"), [(c.name, in_sync(c.cluster, NOW)) for c in cases])
    return assess(newest, newest, terms_of(spark, {c.name: c.goal for c in cases}))


def test_shares_are_of_the_targets_that_the_planner_has(cases: list[Case], assessed: Assessed) -> None:
    rows = by(assessed.broker_load, "cluster", "broker")
    compared = 0
    for c in cases:
        for row, what in enumerate(("bytes", "replicas")):
            if (
                RESOURCES[row] not in c.goal.balance
                or c.problem.size.max() > c.problem.target[0, c.problem.allowed].min()
            ):
                continue  # where a replica is larger than what a broker should hold, the planner takes it for fixed
            for i in np.flatnonzero(c.problem.allowed).tolist():
                of = rows[c.name, int(c.cluster.brokers[i])]
                assert of[what] == pytest.approx(of[f"share_{what}"] * c.problem.target[row, i], rel=1e-6, abs=3)
                compared += 1
    assert compared > 300


def test_no_plan_inside_the_bands_copies_less(cases: list[Case], assessed: Assessed) -> None:
    rows = by(assessed.cluster_load, "cluster")
    told = 0
    for c in cases:
        proven = certificates.bound(c.problem)
        found = rows[c.name]["bytes_bound"], rows[c.name]["moves_bound"]
        assert 0 <= found[0] <= proven.bytes
        assert 0 <= found[1] <= proven.moves
        told += found[0] > 0.8 * proven.bytes > 0
    assert told > len(cases) / 2
