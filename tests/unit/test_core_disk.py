"""No move starts that a volume has no room for, or a log directory cannot take."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.kafka_cluster import Limits
from reassign.core.model.problem import Problem
from reassign.core.model.room import volumes
from reassign.core.model.snapshot import LogDir, TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs, Outcome, Result
from reassign.errors import Reason
from tests.unit.examples import examples
from tests.unit.sim import LOST, Driver, SimKafka, detail, drive, partitions, resource, states, true_conditions

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


def jbod(
    *usable: int, sizes: tuple[int, ...] = (100,), min_free: int = 10, topic: str = "orders", **fields: object
) -> Driver:
    """Partitions of these sizes, to be moved to broker 2. Its directories are volumes of about 1000 bytes, of which so
    many are usable. It chooses the first one, as a broker that has the fewest partitions there."""
    asked = partitions(len(sizes), topic)
    kafka = SimKafka(
        dict.fromkeys(asked, (0, 1)),
        sizes={tp: {0: size, 1: size} for tp, size in zip(asked, sizes, strict=True)},
        log_dirs={2: {f"/{n}": volume(free, 1000 + n, logs={}, futures={}) for n, free in enumerate(usable)}},
        topic_ids={topic: "id"},
    )
    driver = drive(kafka, resource(dict.fromkeys(asked, (2, 0)), **fields))
    driver.limits = Limits(min_free_disk_percent=min_free)
    return driver


def named(driver: Driver) -> list[str]:
    """The directories that broker 2 was told."""
    return [path for step in driver.kafka.writes if isinstance(step, AlterLogDirs) for _, path in step.dirs]


def test_the_broker_chooses_where_each_directory_has_room() -> None:
    driver = jbod(300, 900)
    driver.ticks(2)
    assert (states(driver), named(driver)) == ({P0: "InFlight"}, [])


def test_the_roomiest_directory_is_named_where_another_has_no_room() -> None:
    driver = jbod(50, 400, 900, 700)
    driver.ticks(2)
    assert driver.kafka.writes == [AlterLogDirs(P0, ((2, "/2"),)), Alter(P0, (2, 0))]
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 2)) == ({P0: "Completed"}, "/2")
    assert named(driver) == ["/2"], "the entry names none, so nothing is copied"


def test_a_cordoned_directory_is_neither_named_nor_in_the_way() -> None:
    driver = jbod(900, 50)
    driver.kafka.log_dirs[2]["/0"] = volume(900, cordoned=True)
    driver.ticks(2)
    assert true_conditions(driver) == {"Stalled": "InsufficientDisk"}
    driver.kafka.log_dirs[2] |= {"/0": volume(0, cordoned=True), "/1": volume(900, 1001, logs={})}
    driver.ticks(2)
    assert (states(driver), named(driver)) == ({P0: "InFlight"}, [])


def test_a_directory_of_known_room_is_named_before_one_of_unknown_size() -> None:
    driver = jbod(50, 400, 400)
    driver.kafka.log_dirs[2]["/2"] = LogDir(logs={})
    driver.ticks(2)
    assert named(driver) == ["/1"]
    driver = jbod(50, 50)
    driver.kafka.log_dirs[2]["/1"] = LogDir(logs={})
    driver.ticks(2)
    assert named(driver) == ["/1"]


def test_a_topic_with_too_long_a_name_waits_for_room_in_each_directory() -> None:
    driver = jbod(50, 900, topic="t" * 214)
    [tp] = driver.kafka.replicas
    driver.ticks(2)
    said = detail(driver, tp)
    assert (said.reason, driver.kafka.writes) == ("InsufficientDisk", [])
    assert "in each log directory, and it chooses one itself for a topic with so long a name" in (said.message or "")
    driver.kafka.log_dirs[2]["/0"] = volume(500, logs={})
    driver.ticks(2)
    assert (states(driver), named(driver)) == ({tp: "InFlight"}, [])


def test_what_the_broker_has_yet_to_place_is_waited_for() -> None:
    driver = jbod(200, 200, sizes=(60, 60, 60))
    driver.ticks(1)
    assert list(driver.kafka.reassignments) == [P0]
    assert (detail(driver, P1).state, detail(driver, P1).reason) == ("Pending", "RequestFailed")
    driver.ticks(1)
    assert (list(driver.kafka.reassignments), named(driver)) == ([P0, P1], ["/1"])
    assert (detail(driver, P2).state, detail(driver, P2).reason) == ("Blocked", "InsufficientDisk")


def test_a_dry_run_spreads_over_the_directories() -> None:
    driver = jbod(200, 200, sizes=(60, 60, 60), mode="DryRun")
    driver.ticks(1)
    assert sorted(states(driver).values()) == ["Blocked", "Pending", "Pending"]


@pytest.mark.parametrize("refusal", ["denied", "lost"])
def test_no_replica_is_added_where_the_broker_did_not_take_its_directory(refusal: str) -> None:
    driver = jbod(50, 900)
    perform = driver.kafka._alter_log_dirs
    met = Outcome(Result.REFUSED, Reason.NOT_AUTHORIZED, "no") if refusal == "denied" else LOST
    driver.kafka._alter_log_dirs = lambda step: met  # type: ignore[method-assign]
    driver.ticks(3)
    assert named(driver)
    assert driver.kafka.reassignments == {}
    if refusal == "denied":
        assert (states(driver), true_conditions(driver)) == ({P0: "Blocked"}, {"Stalled": "NotAuthorized"})
    driver.kafka._alter_log_dirs = perform  # type: ignore[method-assign]
    driver.ticks(90)
    assert (states(driver), driver.kafka.directory(P0, 2)) == ({P0: "InFlight"}, "/1")


@examples(100)
@given(
    usable=st.lists(st.integers(0, 1000), min_size=1, max_size=4),
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=8),
    min_free=st.integers(0, 50),
    first=st.integers(0, 3),
)
def test_no_volume_falls_below_its_free_share_whatever_a_broker_chooses(
    usable: list[int], sizes: list[int], min_free: int, first: int
) -> None:
    driver = jbod(*usable, sizes=tuple(sizes), min_free=min_free)
    of_broker = driver.kafka.log_dirs[2]
    chosen = f"/{first % len(usable)}"
    driver.kafka.log_dirs[2] = {chosen: of_broker.pop(chosen), **of_broker}
    for _ in range(4):
        driver.ticks(1)
        for path, directory in driver.kafka.log_dirs[2].items():
            coming = sum((driver.kafka.sizes or {})[tp][0] for tp in directory.logs)
            assert coming == 0 or (directory.usable - coming) * 100 >= directory.total * min_free, path  # type: ignore[operator]
