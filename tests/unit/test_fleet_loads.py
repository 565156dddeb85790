"""What is said of clusters agrees with what the planner sees in them: clusters of all kinds, all in one fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from reassign.api.goal import Awareness, By
from reassign.errors import PlanningError
from reassign.fleet.loads import assess
from reassign.planning.problem.assignments import loads
from reassign.planning.problem.directories import volumes
from reassign.planning.problem.measures import sizes_or_means, what_counts
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories, PlacementGoal
from reassign.planning.problem.problem import PlacementProblem, pose
from reassign.planning.problem.racks import levels
from tests.spread import spread

CLUSTERS = 120
GIB = 2**30


KEYS = {
    "broker_load": ("broker",),
    "rack_load": ("level", "path"),
    "directory_load": ("broker", "path"),
    "cluster_load": (),
}
Assessed = dict[str, dict[Any, dict[str, Any]]]
"""Rows of each table, by cluster and KEYS."""


@dataclass(frozen=True)
class Case:
    name: str
    cluster: Cluster
    goal: PlacementGoal
    problem: PlacementProblem | None  # None: it cannot be planned


def case(seed: int) -> Case:
    """A small cluster with all that may be odd about one, and some goal."""
    rng = np.random.default_rng(seed)
    brokers = int(rng.integers(1, 10))
    ids = np.sort(rng.choice(2_000_000_000 if seed % 5 == 0 else 20, brokers, replace=False)).astype(np.int32)
    depth = int(rng.integers(0, 4))
    kind = rng.choice(["paths", "paths", "paths", "names", "none", "mixed", "unreadable"])
    racks = tuple(_rack(rng, kind, depth) for _ in range(brokers))
    alive = rng.random(brokers) < 0.9
    cluster = Cluster(
        id=f"id-{seed}",
        brokers=ids,
        racks=racks,
        registered=alive | (ids % 2 == 0),
        alive=alive,
        directories=_directories(rng, brokers),
        **_partitions(rng, brokers),
    )
    cluster = replace(cluster, directory=_places(rng, cluster))
    goal = PlacementGoal(
        include=tuple(rng.choice(["*", "a*", "[ab]-?", "c-1"], int(rng.integers(1, 3)))),
        exclude=tuple(rng.choice(["__*", "*-2", "[!a]*"], int(rng.integers(0, 2)))) or (None if seed % 2 else ()),
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


def _of_brokers(*racks: str) -> dict[str, Any]:
    """Brokers in these racks, without directories; on each of them lies one partition."""
    count = len(racks)
    return {
        "brokers": np.arange(1, count + 1, dtype=np.int32),
        "racks": racks,
        "registered": np.ones(count, np.bool_),
        "alive": np.ones(count, np.bool_),
        "directories": Directories(
            *(np.empty(0, np.int32), (), *(np.empty(0, np.int64),) * 2, *(np.empty(0, np.bool_),) * 2)
        ),
        "topics": ("a",),
        "topic": np.zeros(count, np.int32),
        "partition": np.arange(count, dtype=np.int32),
        "replicas": np.arange(count, dtype=np.int32)[:, None],
        "sizes": np.full(count, GIB),
        "in_flight": np.zeros(count, np.bool_),
        "directory": np.full((count, 1), UNKNOWN, np.int32),
    }


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


def _partitions(rng: np.random.Generator, brokers: int) -> dict[str, Any]:
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
def assessed(cases: list[Case]) -> Assessed:
    found: Assessed = {}
    for c in cases:
        for table, rows in assess(c.cluster, c.goal, c.problem).items():
            for row in rows:
                key = (c.name, *(row[of] for of in KEYS[table]))
                assert key not in found.setdefault(table, {}), "some rows are there twice"
                found[table][key] = row
    return found


def test_brokers_have_the_loads_that_the_planner_sees(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["broker_load"]
    assert len(rows) == sum(len(c.cluster.brokers) for c in cases)
    for c in cases:
        seen = [
            [rows[c.name, b][what] for b in c.cluster.brokers.tolist()] for what in ("bytes", "replicas", "leaders")
        ]
        assert seen == loads(c.cluster.replicas, what_counts(c.cluster), len(c.cluster.brokers)).tolist()


def test_capacities_count_each_volume_once(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["broker_load"]
    several = 0
    for c in cases:
        dirs = c.cluster.directories
        volume = volumes(dirs)
        for index, broker in enumerate(c.cluster.brokers.tolist()):
            mine = np.flatnonzero((dirs.broker == index) & dirs.online)
            first = [int(mine[volume[mine] == v][0]) for v in np.unique(volume[mine])]
            several += 1 < len(first) < len(mine)
            total = dirs.total[first]
            known = len(total) and (dirs.total[mine] != UNKNOWN).all()
            assert rows[c.name, broker]["capacity"] == (int(total.sum()) if known else None)
    assert several > 10


def test_racks_are_those_of_the_tree_at_each_level(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["rack_load"]
    deep = 0
    for c in cases:
        mine = [row for (name, *_), row in rows.items() if name == c.name]
        try:
            groups = levels(c.cluster.racks, c.goal.awareness, c.cluster.brokers)
        except PlanningError:
            assert mine == []
            continue
        load = loads(c.cluster.replicas, what_counts(c.cluster), len(c.cluster.brokers))
        for level, group in enumerate(groups, 1):
            deep += level > 1
            expected = [
                (int((group == g).sum()), *load[:, group == g].sum(axis=1).tolist()) for g in range(group.max() + 1)
            ]
            found = [(r["brokers"], r["bytes"], r["replicas"], r["leaders"]) for r in mine if r["level"] == level]
            assert sorted(found) == sorted(expected)
        assert {row["level"] for row in mine} == set(range(1, len(groups) + 1))
    assert deep > 20


def test_a_broker_that_is_a_child_by_itself_is_named_below_its_rack() -> None:
    rows = assess(Cluster("id", **_of_brokers("/a/x", "/a", "", "/b")), PlacementGoal(), None)["rack_load"]
    assert sorted((row["level"], row["path"]) for row in rows) == [
        (1, "/a"), (1, "/b"), (1, "broker 3"),
        (2, "/a/broker 2"), (2, "/a/x"), (2, "/b/broker 4"), (2, "broker 3"),
    ]  # fmt: skip


def test_directories_have_what_lies_in_them(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["directory_load"]
    for c in cases:
        size = sizes_or_means(c.cluster)
        dirs = c.cluster.directories
        expected = {(c.name, int(c.cluster.brokers[b]), p): [0, 0] for b, p in zip(dirs.broker, dirs.path, strict=True)}
        for (row, slot), index in np.ndenumerate(c.cluster.replicas):
            if index != UNKNOWN:
                at = int(c.cluster.directory[row, slot])
                key = (c.name, int(c.cluster.brokers[index]), dirs.path[at] if at != UNKNOWN else None)
                bytes_, replicas = expected.get(key, [0, 0])
                expected[key] = [bytes_ + int(size[row]), replicas + 1]
        found = {key: [row["bytes"], row["replicas"]] for key, row in rows.items() if key[0] == c.name}
        assert found == expected


def test_drains_and_replication_factors_concern_what_may_be_moved(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["cluster_load"]
    told = 0
    for c in cases:
        if c.problem is None:
            continue
        emptied = np.isin(c.cluster.brokers, sorted(c.goal.drain))
        if c.goal.brokers is not None:
            emptied |= ~np.isin(c.cluster.brokers, sorted(c.goal.brokers))
        lies = (c.cluster.replicas != UNKNOWN) & emptied[c.cluster.replicas] & c.problem.movable[:, None]
        has = (c.cluster.replicas != UNKNOWN).sum(axis=1)
        row = rows[(c.name,)]
        assert row["drain_replicas"] == lies.sum()
        assert row["drain_bytes"] == (lies.sum(axis=1) * c.problem.size).sum()
        assert row["rf_replicas"] == abs(c.problem.rf - has)[c.problem.movable].sum()
        told += row["drain_replicas"] > 0 and row["rf_replicas"] > 0
    assert told > 2


def test_a_cluster_has_its_counts_and_the_skew_of_its_fullest_broker(cases: list[Case], assessed: Assessed) -> None:
    rows = assessed["cluster_load"]
    for c in cases:
        row, size = rows[(c.name,)], sizes_or_means(c.cluster)
        load = loads(c.cluster.replicas, what_counts(c.cluster), len(c.cluster.brokers))
        counts = row["brokers"], row["topics"], row["partitions"], row["unknown_sizes"], row["in_flight"]
        unknown, in_flight = (c.cluster.sizes < 0).sum(), c.cluster.in_flight.sum()
        assert counts == (len(c.cluster.brokers), 5, len(size), unknown, in_flight)
        for what, of in zip(("bytes", "replicas", "leaders"), load, strict=True):
            assert row[f"skew_{what}"] == (pytest.approx(of.max() / of.mean()) if of.any() else None)


def test_violations_are_the_partitions_that_are_not_spread(cases: list[Case], assessed: Assessed) -> None:
    numbers = set()
    for c in cases:
        row = assessed["cluster_load"][(c.name,)]
        if c.problem is None:
            assert "violations" not in row
            continue
        wrong = int((~spread(c.problem.groups, c.cluster.replicas, c.problem.allowed)).sum())
        assert (c.name, row["violations"]) == (c.name, wrong)
        numbers.add(wrong)
    assert len(numbers) > 5


def test_shares_are_of_the_targets_that_the_planner_has(cases: list[Case], assessed: Assessed) -> None:
    compared = 0
    for c in cases:
        if c.problem is None:
            continue
        for row, what in enumerate(("bytes", "replicas")):
            for i, broker in enumerate(c.cluster.brokers.tolist()):
                of, target = assessed["broker_load"][c.name, broker], c.problem.target[row, i]
                assert of[f"share_{what}"] == (pytest.approx(of[what] / target) if target else None)
                compared += 1
    assert compared > 300
