"""What is said of clusters agrees with what the planner sees in them: clusters of all kinds, all in one fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from reassign.api.goal import Awareness, By
from reassign.errors import PlanningError
from reassign.files.snapshots import in_sync
from reassign.fleet.assess import Assessed, assess
from reassign.fleet.assess.terms import terms_of
from reassign.planning.assignments import loads
from reassign.planning.model import UNKNOWN, Cluster, Directories, Goal
from reassign.planning.problem import Problem, pose, sizes_or_means
from reassign.planning.racks import levels, spread
from tests.fleet.made import tables_of

CLUSTERS = 120
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GIB = 2**30


@dataclass(frozen=True)
class Case:
    name: str
    cluster: Cluster
    goal: Goal
    problem: Problem | None  # None: it cannot be planned


def case(seed: int) -> Case:
    """A small cluster with all that may be odd about one, and some goal."""
    rng = np.random.default_rng(seed)
    brokers = int(rng.integers(1, 10))
    ids = np.sort(rng.choice(2_000_000_000 if seed % 5 == 0 else 20, brokers, replace=False)).astype(np.int32)
    depth = int(rng.integers(0, 4))
    kind = rng.choice(["paths", "paths", "paths", "names", "none", "mixed", "unreadable"])
    racks = tuple(_rack(rng, kind, depth) for _ in range(brokers))
    cluster = Cluster(
        id=f"id-{seed}",
        brokers=ids,
        racks=racks,
        alive=rng.random(brokers) < 0.9,
        directories=_directories(rng, brokers),
        **_partitions(rng, brokers),
    )
    cluster = replace(cluster, directory=_places(rng, cluster))
    goal = Goal(
        include=tuple(rng.choice(["*", "a*", "[ab]-?", "c-1"], int(rng.integers(1, 3)))),
        exclude=tuple(rng.choice(["__*", "*-2", "[!a]*"], int(rng.integers(0, 2)))),
        drain=frozenset(rng.choice(ids, int(rng.integers(0, 2))).tolist()),
        brokers=None if rng.random() < 0.8 else frozenset(ids[: max(1, brokers - 1)].tolist()),
        replication_factor=None if rng.random() < 0.6 else int(rng.integers(1, 4)),
        balance=frozenset(By) if rng.random() < 0.7 else frozenset(),
        awareness=Awareness(rng.choice([*Awareness, Awareness.TREE, Awareness.TREE])),
    )
    try:
        problem = pose(cluster, goal)
    except PlanningError:
        problem = None
    return Case(f"c-{seed:03}", cluster, goal, problem)


def _rack(rng: np.random.Generator, kind: str, depth: int) -> str:
    names = "".join(f"/{rng.choice(['a', 'b', 'c'])}" for _ in range(rng.integers(max(0, depth - 1), depth + 1)))
    plain = str(rng.choice(["", "r1", "r2", "r3"]))
    odd = str(rng.choice(["/", "//a", "/a/", " a", "/a/ b", "/a" * 12, "/a"]))
    return {"paths": names, "names": plain, "none": "", "mixed": names or plain, "unreadable": odd}[kind]


def _directories(rng: np.random.Generator, brokers: int) -> Directories:
    count = rng.integers(0 if rng.random() < 0.3 else 1, 4, brokers)
    broker = np.repeat(np.arange(brokers), count).astype(np.int32)
    total = rng.choice([100, 100, 200], len(broker)) * GIB
    usable = rng.choice([40, 40, 70], len(broker)) * GIB + rng.integers(0, 24, len(broker)) * 2**20
    silent = rng.random() < 0.3
    return Directories(
        broker=broker,
        path=tuple(f"/d{i}" for n in count for i in range(n)),
        total=np.where(silent & (rng.random(len(broker)) < 0.3), UNKNOWN, total),
        usable=np.where(silent & (rng.random(len(broker)) < 0.3), UNKNOWN, usable),
        cordoned=rng.random(len(broker)) < 0.1,
        online=rng.random(len(broker)) < 0.9,
    )


def _partitions(rng: np.random.Generator, brokers: int) -> dict[str, object]:
    topics = ("__t-1", "a-1", "a-2", "b-1", "c-1")
    topic = np.repeat(np.arange(5), rng.integers(1, 6, 5)).astype(np.int32)
    partition = np.concatenate([np.arange(n) for n in np.bincount(topic)]).astype(np.int32)
    replicas = np.full((len(topic), min(4, brokers)), UNKNOWN, np.int32)
    for row in replicas:
        has = rng.integers(1, replicas.shape[1] + 1)
        row[:has] = rng.choice(brokers, has, replace=False)
    unknown = rng.random(len(topic)) < rng.choice([0, 0.3, 1], p=[0.6, 0.3, 0.1])
    return {
        "topics": topics,
        "topic": topic,
        "partition": partition,
        "replicas": replicas,
        "sizes": np.where(unknown, UNKNOWN, rng.integers(0, GIB, len(topic))),
        "in_flight": rng.random(len(topic)) < 0.1,
    }


def _places(rng: np.random.Generator, cluster: Cluster) -> np.ndarray:
    found = np.full(cluster.replicas.shape, UNKNOWN, np.int32)
    for (row, slot), broker in np.ndenumerate(cluster.replicas):
        mine = np.flatnonzero(cluster.directories.broker == broker)
        if broker != UNKNOWN and len(mine) and rng.random() < 0.9:
            found[row, slot] = rng.choice(mine)
    return found


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case(seed) for seed in range(CLUSTERS)]


@pytest.fixture(scope="module")
def assessed(spark: SparkSession, cases: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Assessed:
    newest = tables_of(spark, tmp_path_factory.mktemp("fleet"), [(c.name, in_sync(c.cluster, NOW)) for c in cases])
    return assess(newest, newest, terms_of(spark, {c.name: c.goal for c in cases}))


def by(table: DataFrame, *keys: str) -> dict[object, dict[str, object]]:
    rows = [row.asDict() for row in table.collect()]
    found = {row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_brokers_have_the_loads_that_the_planner_sees(cases: list[Case], assessed: Assessed) -> None:
    rows = by(assessed.broker_load, "cluster", "broker")
    assert len(rows) == sum(len(c.cluster.brokers) for c in cases)
    for c in cases:
        seen = [
            [rows[c.name, b][what] for b in c.cluster.brokers.tolist()] for what in ("bytes", "replicas", "leaders")
        ]
        size, _ = sizes_or_means(c.cluster)
        assert seen == loads(c.cluster.replicas, size, len(c.cluster.brokers)).tolist()


def test_violations_are_the_partitions_that_are_not_spread(cases: list[Case], assessed: Assessed) -> None:
    rows = by(assessed.cluster_load, "cluster")
    numbers = set()
    for c in cases:
        named = c.goal.brokers or set(c.cluster.brokers.tolist())
        allowed = c.cluster.alive & np.isin(c.cluster.brokers, sorted(named - c.goal.drain))
        try:
            groups = levels(c.cluster.racks, c.goal.awareness, c.cluster.brokers)
        except PlanningError:
            assert rows[c.name]["violations"] is None
            continue
        wrong = int((~spread(groups, c.cluster.replicas, allowed)).sum())
        assert (c.name, rows[c.name]["violations"]) == (c.name, wrong)
        numbers.add(wrong)
    assert len(numbers) > 5
