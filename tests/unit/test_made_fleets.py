"""Made fleets: what the fleet's tests and benchmarks stand on."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from reassign.files.snapshots import read
from reassign.planning.problem.assignments import loads
from tests.benchmarks.fleets import write_fleet


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.parquet"))}


def test_a_fleet_is_made_alike_again_and_its_clusters_differ(tmp_path: Path) -> None:
    assert write_fleet(tmp_path / "one", 15) == write_fleet(tmp_path / "two", 15)
    one = files(tmp_path / "one")
    assert one == files(tmp_path / "two")
    partitions = [bytes for name, bytes in one.items() if name.endswith("partitions.parquet")]
    assert len(set(partitions)) == 15


def test_clusters_are_as_large_as_is_wanted(tmp_path: Path) -> None:
    (name,) = write_fleet(tmp_path, 1, replicas=300)
    assert (read(tmp_path / "date=2026-01-31" / f"cluster={name}").cluster.replicas >= 0).sum() == 300


def test_another_seed_makes_another_fleet_of_the_same_names(tmp_path: Path) -> None:
    assert write_fleet(tmp_path / "one", 3) == write_fleet(tmp_path / "two", 3, seed=1)
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(one[name] != two[name] for name in one)


def test_day_by_day_topics_grow_and_disks_fill(tmp_path: Path) -> None:
    (name,) = write_fleet(tmp_path, 1, days=3)
    days = [read(tmp_path / f"date=2026-01-{day}" / f"cluster={name}") for day in (29, 30, 31)]
    assert [day.taken_at for day in days] == [datetime(2026, 1, day, 12, tzinfo=UTC) for day in (29, 30, 31)]
    for before, after in pairwise(days):
        assert (before.cluster.sizes < after.cluster.sizes).mean() > 0.9
        assert (before.cluster.directories.usable > after.cluster.directories.usable).all()
        assert np.array_equal(before.cluster.replicas, after.cluster.replicas)
    for cluster in (day.cluster for day in days):
        held = loads(cluster.replicas, cluster.sizes[None], len(cluster.brokers))[0]
        assert np.array_equal(held, cluster.directories.total - cluster.directories.usable)
