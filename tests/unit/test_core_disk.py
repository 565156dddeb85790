"""No move starts that a volume has no room for, or a log directory cannot take."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reassign.api.kafka_cluster import Limits
from reassign.core.model.problem import Problem
from reassign.core.model.room import volumes
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.core.model.steps import Alter
from reassign.errors import Reason
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, states, true_conditions

PARTITIONS = partitions(4)
P0, P1, P2, P3 = PARTITIONS
TO_2 = dict.fromkeys(PARTITIONS, (2, 0))


def driver_of(directories: Mapping[str, LogDir], asked: dict[TopicPartition, tuple[int, ...]] = TO_2) -> Driver:
    """Partitions of 100 bytes, to be moved to broker 2, which has these directories."""
    sizes = {tp: {0: 100, 1: 100} for tp in PARTITIONS}
    kafka = SimKafka(dict.fromkeys(PARTITIONS, (0, 1)), sizes=sizes, log_dirs={2: dict(directories)})
    return drive(kafka, resource(asked))


def volume(usable: int, total: int = 1000, **fields: object) -> LogDir:
    return LogDir(total=total, usable=usable, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("usable", "starts"), [(99, 0), (199, 0), (200, 1), (299, 1), (300, 2), (500, 4)])
def test_what_is_admitted_together_leaves_the_free_share(usable: int, starts: int) -> None:
    driver = driver_of({"/a": volume(usable)})
    driver.ticks(1)
    assert len(driver.kafka.reassignments) == starts
    driver.ticks(5)
    assert len(driver.kafka.reassignments) == starts
    blocked = [p for p in driver.resources["a"].status.partitions if p.state == "Blocked"]
    assert [p.reason for p in blocked] == ["InsufficientDisk"] * (4 - starts)
    assert all("broker 2 has no room for 100 B more" in (p.message or "") for p in blocked)


def test_what_was_copied_no_longer_counts_as_to_come() -> None:
    driver = driver_of({"/a": volume(250)})
    driver.ticks(1)
    assert len(driver.kafka.reassignments) == 1
    [tp] = driver.kafka.reassignments
    assert driver.kafka.sizes is not None
    driver.kafka.sizes[tp][2] = 90
    driver.kafka.log_dirs[2] = {"/a": volume(210, logs={tp: 90})}  # 50 bytes were freed
    driver.ticks(2)
    assert len(driver.kafka.reassignments) == 2


def test_a_blocked_partition_goes_when_there_is_room() -> None:
    driver = driver_of({"/a": volume(150)}, {P0: (2, 0)})
    driver.ticks(2)
    assert true_conditions(driver) == {"Stalled": "InsufficientDisk"}
    driver.kafka.log_dirs[2] = {"/a": volume(400)}
    driver.tick()
    assert states(driver) == {P0: "InFlight"}


def test_moves_of_others_take_room_too() -> None:
    driver = driver_of({"/a": volume(250)}, {P0: (2, 0)})
    assert driver.kafka.sizes is not None
    driver.kafka.perform(Alter(P1, (2, 0)))
    driver.ticks(2)
    assert states(driver) == {P0: "Blocked"}


def test_copies_between_directories_take_room_too() -> None:
    driver = driver_of({"/a": volume(250), "/b": volume(250, 999, futures={P1: 10})}, {P0: (2, 0)})
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight"}
    driver = driver_of({"/a": volume(250, futures={P1: 10})}, {P0: (2, 0)})
    driver.ticks(2)
    assert states(driver) == {P0: "Blocked"}


@pytest.mark.parametrize("directory", [LogDir(), LogDir(total=1000), LogDir(usable=0)])
def test_a_volume_whose_size_is_not_known_has_room(directory: LogDir) -> None:
    driver = driver_of({"/a": directory})
    driver.ticks(2)
    assert len(driver.kafka.reassignments) == 4


@pytest.mark.parametrize("silent", [2, 0])
def test_a_move_waits_for_sizes_of_the_leader_and_the_destination(silent: int) -> None:
    driver = driver_of({"/a": volume(900)}, {P0: (2, 1)})
    driver.kafka.silent = {silent}
    sizes, driver.kafka.sizes = driver.kafka.sizes, {} if silent == 0 else driver.kafka.sizes
    driver.ticks(5)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Reconciling": "RequestFailed"}
    driver.kafka.silent, driver.kafka.sizes = set(), sizes
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight"}


def test_a_broker_that_never_reports_sizes_is_a_stall() -> None:
    driver = driver_of({"/a": volume(900)}, {P0: (2, 1)})
    driver.kafka.silent = {2}
    driver.ticks(40)
    assert (states(driver), true_conditions(driver)) == ({P0: "Blocked"}, {"Reconciling": "RequestFailed"})
    driver.now += 600
    driver.tick()
    assert true_conditions(driver) == {"Reconciling": "RequestFailed", "Stalled": "RequestFailed"}
    driver.hold = Problem(Reason.DUPLICATE_CLUSTER, "use the other one")
    driver.ticks(1)
    assert true_conditions(driver) == {"Stalled": "DuplicateCluster"}


def test_old_sizes_of_a_broker_are_not_used() -> None:
    driver = driver_of({"/a": volume(900)}, {P0: (2, 0)})
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight"}
    driver.kafka.silent = {2}
    driver.ticks(40)
    driver.edit("a", {P0: (2, 0), P1: (2, 0)})
    driver.ticks(8)
    assert states(driver) == {P0: "InFlight", P1: "Pending"}
    driver.kafka.silent = set()
    driver.ticks(2)
    assert states(driver)[P1] == "InFlight"


def test_a_partition_has_to_fit_on_one_volume() -> None:
    driver = driver_of({"/a": volume(99, 500), "/b": volume(99, 400)}, {P0: (2, 0)})
    driver.limits = Limits(min_free_disk_percent=0)
    driver.ticks(2)
    assert true_conditions(driver) == {"Stalled": "InsufficientDisk"}


def test_the_share_is_the_clusters() -> None:
    driver = driver_of({"/a": volume(150)}, {P0: (2, 0)})
    driver.limits = Limits(min_free_disk_percent=5)
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight"}


def test_directories_on_one_volume_count_once_and_offline_ones_not_at_all() -> None:
    found = volumes(
        {
            "/a": volume(500, 1000),
            "/b": volume(499, 1000),
            "/c": volume(500, 2000),
            "/d": volume(500, 3000, online=False),
        }
    )
    assert [(v.total, v.usable, v.paths) for v in found] == [(1000, 499, ("/a", "/b")), (2000, 500, ("/c",))]


@pytest.mark.parametrize(
    ("directories", "reason"),
    [
        ({"/a": LogDir(cordoned=True), "/b": LogDir()}, None),
        ({"/a": LogDir(cordoned=True), "/b": LogDir(cordoned=True)}, "LogDirCordoned"),
        ({"/a": LogDir(cordoned=True), "/b": LogDir(online=False)}, "LogDirCordoned"),
        ({"/a": LogDir(online=False), "/b": LogDir()}, None),
        ({"/a": LogDir(online=False)}, "LogDirOffline"),
    ],
)
def test_a_broker_needs_a_directory_that_is_online_and_not_cordoned(
    directories: dict[str, LogDir], reason: str | None
) -> None:
    driver = driver_of(directories, {P0: (2, 0)})
    driver.ticks(3)
    if reason:
        assert true_conditions(driver) == {"Stalled": reason}
    else:
        assert states(driver) == {P0: "InFlight"}


def test_directories_of_brokers_that_get_nothing_do_not_matter() -> None:
    driver = driver_of({"/a": volume(900)}, {P0: (2, 0)})
    driver.kafka.log_dirs[0] = {"/a": volume(0, cordoned=True)}
    driver.ticks(3)
    assert states(driver) == {P0: "InFlight"}
