"""What history tells: how topics and disks grow, and what was begun and not finished."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from reassign.api.config_keys import BROKER_RATES
from reassign.files.tables import Config, Snapshot
from reassign.planning.problem.model import UNKNOWN, Cluster, Directories
from reassign.planning.problem.problem import MOST_REPLICA_BYTES
from tests.fleet.made import histories
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
        registered=np.ones(2, np.bool_),
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


Told = dict[str, dict[str, list[dict[str, Any]]]]
"""Rows by table and cluster."""


def renamed(snapshot: Snapshot) -> Snapshot:
    return snapshot._replace(cluster=replace(snapshot.cluster, topics=("b",)))


def sized(snapshot: Snapshot, *sizes: int) -> Snapshot:
    return snapshot._replace(cluster=replace(snapshot.cluster, sizes=np.array(sizes)))


def filled(back: timedelta, usable: int) -> Snapshot:
    """Volumes of the greatest size there is."""
    snapshot = seen(back)
    snapshot.cluster.directories.total[:] = 2**63 - 1
    snapshot.cluster.directories.usable[:] = usable
    return snapshot


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


def to_other_replicas(snapshot: Snapshot) -> Snapshot:
    return snapshot._replace(cluster=replace(snapshot.cluster, replicas=np.array([[1, 0], [1, 0]], np.int32)))


GROWING = {0: 9 * GIB, 1: 7 * GIB, 2.5: 6 * GIB, 7: GIB}
"""Sizes by days ago."""
RATES = {rate: Config("broker", "1", rate, "1000000") for rate in BROKER_RATES}
CASES = {
    "grows": tuple(seen(days * DAY, size) for days, size in GROWING.items()),
    "alone": (seen(),),
    "unsure": (
        seen(size=4 * GIB),
        sized(seen(DAY), 3 * GIB, UNKNOWN),
        sized(seen(2 * DAY), UNKNOWN, UNKNOWN),
    ),
    "fills": (seen(size=10 * GIB), seen(DAY, 8 * GIB)),
    "filled": (filled(0 * DAY, 0), filled(timedelta(hours=13), 2**63 - 1)),
    "huge": tuple(filled(days * DAY, 2**62 + days * GIB) for days in range(4)),
    "was-too-large": (seen(), too_large(DAY)),
    "renamed": (seen(), renamed(seen(DAY))),
    "throttled": (
        seen(configs=(RATE, LIST)),
        seen(DAY, configs=(RATE,)),
        seen(2 * DAY, in_flight=True, configs=(RATE,)),
        seen(3 * DAY, configs=(RATE, LIST)),
    ),
    "every-rate": (seen(configs=tuple(RATES.values())),),
    "in-flight": (seen(in_flight=True, configs=(RATE, LIST)), seen(DAY, configs=(RATE, LIST))),
    "a-day": (seen(in_flight=True), seen(DAY, in_flight=True), seen(3 * DAY)),
    "no-day": (seen(in_flight=True), seen(DAY * 23 / 24, in_flight=True), seen(3 * DAY), seen(4 * DAY, in_flight=True)),
    "gone": (seen(), seen(DAY, configs=(RATE, RATE)), seen(2 * DAY, configs=(RATE, RATE))),
    "to-others": (seen(in_flight=True), to_other_replicas(seen(2 * DAY, in_flight=True))),
}
"""The snapshots of a cluster each, the newest first; one a day, as their folders have it."""


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What they tell."""
    found: Told = {}
    for name, table in histories(spark, tmp_path_factory.mktemp("history"), CASES.items()).items():
        of_table = found.setdefault(name, {cluster: [] for cluster in CASES})
        for row in table.to_pylist():
            of_table[row.pop("cluster")].append(row)
    return found


def growth(told: Told, cluster: str) -> tuple[int | None, int | None, float]:
    [row] = told["topic_growth"][cluster]
    assert row["topic"] == "a"
    return row["bytes"], row["bytes_per_day"], row["days_observed"]


def left(told: Told, cluster: str) -> dict[str, datetime]:
    return {f"{row['kind']}: {row['what']}": row["since"] for row in told["leftovers"][cluster]}


def test_a_topic_grows_by_the_slope_of_all_its_replicas(told: Told) -> None:
    expected = np.polyfit([-days for days in GROWING], [4 * size for size in GROWING.values()], 1)[0]
    assert growth(told, "grows") == (4 * 9 * GIB, pytest.approx(expected), 7)


def test_of_one_snapshot_there_is_no_growth(told: Told) -> None:
    assert growth(told, "alone") == (4 * GIB, None, 0)
    assert {row["days_until_full"] for row in told["disk_growth"]["alone"]} == {None}


def test_a_size_that_was_not_known_is_the_mean_of_those_that_were(told: Told) -> None:
    assert growth(told, "unsure") == (16 * GIB, 4 * GIB, 1)


def test_disks_fill_once_for_each_volume(told: Told) -> None:
    disks = {(row["broker"], row["path"]): row for row in told["disk_growth"]["fills"]}
    assert sorted(disks) == [(1, "/a"), (1, "/c"), (2, "/a")]
    row = disks[1, "/a"]
    assert (row["used_bytes"], row["total_bytes"], row["bytes_per_day"]) == (20 * GIB, 100 * GIB, 4 * GIB)
    assert row["days_until_full"] == 20
    assert disks[1, "/c"]["days_until_full"] is None


def test_growth_that_no_number_can_hold_is_not_known(told: Told) -> None:
    assert {row["bytes_per_day"] for row in told["disk_growth"]["filled"]} == {None}


def test_growth_is_exact_however_large_a_volume_is(told: Told) -> None:
    assert {row["bytes_per_day"] for row in told["disk_growth"]["huge"]} == {GIB}


def test_a_size_that_no_number_can_hold_is_not_known(told: Told) -> None:
    assert growth(told, "was-too-large") == (4 * GIB, None, 0)


def test_a_topic_that_is_gone_does_not_grow(told: Told) -> None:
    assert growth(told, "renamed") == (4 * GIB, None, 0)


def test_throttles_are_left_over_where_nothing_is_in_flight(told: Told) -> None:
    assert left(told, "throttled") == {
        "Throttle: leader.replication.throttled.rate of broker 1": NOW - DAY,
        "Throttle: follower.replication.throttled.replicas of topic a": NOW,
    }
    assert left(told, "alone") == {}


def test_a_forgotten_rate_of_every_kind_is_left_over(told: Told) -> None:
    assert left(told, "every-rate") == {f"Throttle: {rate} of broker 1": NOW for rate in BROKER_RATES}


def test_what_is_gone_is_not_left_over_even_if_it_was_there_twice(told: Told) -> None:
    assert left(told, "gone") == {}


def test_throttles_of_what_is_in_flight_are_none(told: Told) -> None:
    assert left(told, "in-flight") == {}


def test_a_reassignment_is_left_over_after_a_day(told: Told) -> None:
    assert left(told, "a-day") == {"Reassignment: a-0 to 1, 2": NOW - DAY}
    assert left(told, "no-day") == {}


def test_a_reassignment_to_other_replicas_is_another_one(told: Told) -> None:
    assert left(told, "to-others") == {}
