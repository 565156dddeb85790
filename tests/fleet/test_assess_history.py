"""What history tells: how topics and disks grow, and what somebody began and left."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from reassign.api.throttle_configs import BROKER_RATES
from reassign.files.tables import Config, Snapshot
from reassign.fleet.assess import Assessed, assess
from reassign.fleet.assess.terms import terms_of
from reassign.fleet.tables import collected
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories, Goal
from reassign.planning.problem.problem import MOST_REPLICA_BYTES
from tests.fleet.made import tables_of
from tests.fleet.rows import by
from tests.snapshots import in_sync

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
GIB = 2**30
DAY = timedelta(days=1)
RATE = Config("broker", "1", "leader.replication.throttled.rate", "1000000")
LIST = Config("topic", "a", "follower.replication.throttled.replicas", "0:2")


def seen(
    back: timedelta = 0 * DAY, size: int = GIB, in_flight: bool = False, configs: tuple[Config, ...] = ()
) -> Snapshot:
    """Topic a has two partitions of this size on brokers 1 and 2; broker 1 has three directories on two volumes."""
    usable = 100 * GIB - 2 * size
    whole = Cluster(
        id="id",
        brokers=np.array([1, 2], np.int32),
        racks=("", ""),
        alive=np.ones(2, np.bool_),
        directories=Directories(
            broker=np.array([0, 0, 0, 1], np.int32),
            path=("/a", "/b", "/c", "/a"),
            total=np.array([100, 100, 200, 100]) * GIB,
            usable=np.array([usable, usable + 5, 200 * GIB, usable]),
            cordoned=np.zeros(4, np.bool_),
            online=np.ones(4, np.bool_),
        ),
        topics=("a",),
        topic=np.zeros(2, np.int32),
        partition=np.arange(2, dtype=np.int32),
        replicas=np.array([[0, 1], [1, 0]], np.int32),
        sizes=np.array([size, size]),
        in_flight=np.array([in_flight, False]),
    )
    return in_sync(whole, NOW - back)._replace(configs=tuple(sorted(configs)))


def assess_history(spark: SparkSession, folder: Path, *snapshots: Snapshot) -> Assessed:
    """The first is the newest."""
    newest = tables_of(spark, folder / "newest", [("main", snapshots[0])])
    history = tables_of(spark, folder / "history", [("main", snapshot) for snapshot in snapshots])
    return assess(newest, history, terms_of(spark, {"main": Goal()}))


def test_a_topic_grows_by_the_slope_of_all_its_replicas(spark: SparkSession, tmp_path: Path) -> None:
    days, sizes = (0, 1, 2.5, 7), (9 * GIB, 7 * GIB, 6 * GIB, GIB)
    history = [seen(day * DAY, size) for day, size in zip(days, sizes, strict=True)]
    row = by(assess_history(spark, tmp_path, *history).topic_growth, "topic")["a"]
    expected = np.polyfit([-day for day in days], [4 * size for size in sizes], 1)[0]
    assert row["bytes_per_day"] == pytest.approx(expected)
    assert (row["bytes"], row["days_observed"]) == (4 * 9 * GIB, 7)


def test_of_one_snapshot_there_is_no_growth(spark: SparkSession, tmp_path: Path) -> None:
    assessed = assess_history(spark, tmp_path, seen())
    row = by(assessed.topic_growth, "topic")["a"]
    assert (row["bytes_per_day"], row["days_observed"]) == (None, 0)
    assert {row["days_until_full"] for row in by(assessed.disk_growth, "broker", "path").values()} == {None}


def test_a_size_that_was_not_known_is_the_mean_of_those_that_were(spark: SparkSession, tmp_path: Path) -> None:
    before = seen(DAY, 3 * GIB)
    unsure = replace(before.cluster, sizes=np.array([3 * GIB, UNKNOWN]))
    unknown = replace(before.cluster, sizes=np.array([UNKNOWN, UNKNOWN]))
    history = seen(size=4 * GIB), before._replace(cluster=unsure), seen(2 * DAY)._replace(cluster=unknown)
    row = by(assess_history(spark, tmp_path, *history).topic_growth, "topic")["a"]
    assert (row["bytes_per_day"], row["days_observed"]) == (4 * GIB, 1)


def test_disks_fill_once_for_each_volume(spark: SparkSession, tmp_path: Path) -> None:
    disks = by(assess_history(spark, tmp_path, seen(size=10 * GIB), seen(DAY, 8 * GIB)).disk_growth, "broker", "path")
    assert sorted(disks) == [(1, "/a"), (1, "/c"), (2, "/a")]
    row = disks[1, "/a"]
    assert (row["used_bytes"], row["total_bytes"], row["bytes_per_day"]) == (20 * GIB, 100 * GIB, 4 * GIB)
    assert row["days_until_full"] == 20
    assert disks[1, "/c"]["days_until_full"] is None


def test_growth_that_no_number_can_hold_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    full, before = seen(), seen(timedelta(hours=13))
    for snapshot, usable in ((full, 0), (before, 2**63 - 1)):
        snapshot.cluster.directories.total[:] = 2**63 - 1
        snapshot.cluster.directories.usable[:] = usable
    rows = assess_history(spark, tmp_path, full, before).disk_growth.collect()
    assert {row.bytes_per_day for row in rows} == {None}


def too_large(back: timedelta) -> Snapshot:
    """The size of one partition is the greatest there is, those of all others are not known."""
    number = 2**63 // MOST_REPLICA_BYTES
    many = replace(
        seen().cluster,
        topic=np.zeros(number, np.int32),
        partition=np.arange(number, dtype=np.int32),
        replicas=np.tile(np.array([0, 1], np.int32), (number, 1)),
        sizes=np.array([MOST_REPLICA_BYTES, *(UNKNOWN,) * (number - 1)]),
        in_flight=np.zeros(number, np.bool_),
    )
    return in_sync(many, NOW - back)


def test_a_size_that_no_number_can_hold_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    row = by(assess_history(spark, tmp_path, seen(), too_large(DAY)).topic_growth, "topic")["a"]
    assert (row["bytes"], row["bytes_per_day"]) == (4 * GIB, None)


def test_loads_that_no_number_can_hold_are_not_known(spark: SparkSession, tmp_path: Path) -> None:
    tables = collected(assess_history(spark, tmp_path, too_large(0 * DAY))._asdict())
    [row] = tables["cluster_load"].to_pylist()
    assert (row["bytes"], row["skew_bytes"], row["partitions"]) == (None, None, 2**13)


def test_a_topic_that_is_gone_does_not_grow(spark: SparkSession, tmp_path: Path) -> None:
    renamed = seen(DAY)
    gone = renamed._replace(cluster=replace(renamed.cluster, topics=("b",)))
    assert list(by(assess_history(spark, tmp_path, seen(), gone).topic_growth, "topic")) == ["a"]


def test_throttles_are_left_over_where_nothing_is_in_flight(spark: SparkSession, tmp_path: Path) -> None:
    history = [
        seen(configs=(RATE, LIST)),
        seen(DAY, configs=(RATE,)),
        seen(2 * DAY, in_flight=True, configs=(RATE,)),
        seen(3 * DAY, configs=(RATE, LIST)),
    ]
    assertDataFrameEqual(
        assess_history(spark, tmp_path, *history).leftovers,
        spark.createDataFrame(
            [
                ("main", "Throttle", "leader.replication.throttled.rate of broker 1", NOW - DAY),
                ("main", "Throttle", "follower.replication.throttled.replicas of topic a", NOW),
            ],
            "cluster string, kind string, what string, since timestamp",
        ),
    )


@pytest.mark.parametrize("rate", BROKER_RATES)
def test_a_forgotten_rate_of_every_kind_is_left_over(spark: SparkSession, tmp_path: Path, rate: str) -> None:
    history = seen(configs=(Config("broker", "1", rate, "1000000"),))
    (row,) = assess_history(spark, tmp_path, history).leftovers.collect()
    assert row["what"] == f"{rate} of broker 1"


def test_throttles_of_what_is_in_flight_are_none(spark: SparkSession, tmp_path: Path) -> None:
    history = seen(in_flight=True, configs=(RATE, LIST)), seen(DAY, configs=(RATE, LIST))
    assert assess_history(spark, tmp_path, *history).leftovers.count() == 0


@pytest.mark.parametrize(("hours", "left"), [((0, 12, 24), True), ((0, 12, 23), False)])
def test_a_reassignment_is_left_over_after_a_day(
    spark: SparkSession, tmp_path: Path, hours: tuple[int, ...], left: bool
) -> None:
    history = [seen(timedelta(hours=h), in_flight=True) for h in hours]
    rows = assess_history(
        spark, tmp_path, *history, seen(3 * DAY, in_flight=False), seen(4 * DAY, in_flight=True)
    ).leftovers
    expected = [("main", "Reassignment", "a-0 to 1, 2", NOW - timedelta(hours=hours[-1]))] if left else []
    assert [tuple(row) for row in rows.select("cluster", "kind", "what").collect()] == [row[:3] for row in expected]


def test_a_reassignment_to_other_replicas_is_another_one(spark: SparkSession, tmp_path: Path) -> None:
    before = seen(2 * DAY, in_flight=True)
    other = before._replace(cluster=replace(before.cluster, replicas=np.array([[1, 0], [1, 0]], np.int32)))
    assert assess_history(spark, tmp_path, seen(in_flight=True), other).leftovers.count() == 0
