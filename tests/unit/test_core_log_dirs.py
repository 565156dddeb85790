"""Replicas get into the log directories that entries name, alone and together with a move between brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from reassign.api.kafka_cluster import Execution
from reassign.core.model.snapshot import Broker, LogDir, TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel
from tests.unit.log_dirs import P0, asking, forgetful, kafka, with_dirs
from tests.unit.sim import Driver, SimKafka, detail, drive, pull, ready_reason, resource, states, true_conditions

Asked = Mapping[TopicPartition, tuple[Sequence[int], Sequence[str] | None]]


def edit(driver: Driver, replicas: Sequence[int], dirs: Sequence[str] | None) -> None:
    driver.edit("a", {P0: replicas})
    driver.resources["a"] = with_dirs(driver.resources["a"], dirs)


def sent(driver: Driver) -> list[tuple[tuple[int, str], ...]]:
    """What was sent about directories, repetitions left out."""
    found: list[tuple[tuple[int, str], ...]] = []
    for step in driver.kafka.writes:
        if isinstance(step, AlterLogDirs) and step.dirs not in found[-1:]:
            found.append(step.dirs)
    return found


def told(driver: Driver) -> list[AlterLogDirs]:
    return [step for step in driver.kafka.writes if isinstance(step, AlterLogDirs)]


def futures(driver: Driver) -> set[tuple[int, str]]:
    return {(b, path) for b, dirs in driver.kafka.log_dirs.items() for path, d in dirs.items() if P0 in d.futures}


def test_a_replica_is_copied_to_another_directory_of_its_broker() -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.ticks(8)
    assert (states(driver), futures(driver)) == ({P0: "InFlight"}, {(0, "/b")})
    driver.kafka.copy_between_dirs(P0)
    driver.finish()
    assert states(driver) == {P0: "Completed"}
    assert (driver.kafka.directory(P0, 0), driver.kafka.directory(P0, 1)) == ("/b", "/a")
    assert sent(driver) == [((0, "/b"),)]


def test_a_missing_log_dir_is_stalled_at_once_and_fixed_by_an_edit() -> None:
    driver = asking((2, 1), ("/b", "any"))
    driver.ticks(4)
    edit(driver, (2, 1), ("/no", "any"))
    driver.ticks(3)
    said = detail(driver, P0)
    assert (said.reason, said.message) == (
        "UnknownLogDir",
        "broker 2 has no log directory /no, only /a, /b; correct the entry",
    )
    assert true_conditions(driver)["Stalled"] == "UnknownLogDir"
    edit(driver, (2, 1), ("/a", "any"))
    driver.finish()
    assert driver.kafka.directory(P0, 2) in ("/a", "/b")
    driver.kafka.copy_between_dirs(P0)
    driver.finish()
    assert (driver.kafka.directory(P0, 2), states(driver)) == ("/a", {P0: "Completed"})


def test_a_log_dir_is_requested_before_the_broker_gets_the_replica() -> None:
    driver = asking((2, 1), ("/b", "any"))
    driver.ticks(4)
    assert driver.kafka.writes == [AlterLogDirs(P0, ((2, "/b"),)), Alter(P0, (2, 1))]
    assert driver.kafka.directory(P0, 2) == "/b"
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}
    assert driver.kafka.writes == [AlterLogDirs(P0, ((2, "/b"),)), Alter(P0, (2, 1))]


def test_what_a_broker_forgot_is_made_good_once_the_replica_is_there() -> None:
    driver = asking((2, 1), ("/b", "any"))
    driver.kafka.perform = forgetful(driver.kafka)  # type: ignore[method-assign]
    driver.ticks(4)
    assert driver.kafka.directory(P0, 2) == "/a"
    assert futures(driver) == {(2, "/b")}
    driver.finish()
    assert (driver.kafka.directory(P0, 2), states(driver)) == ("/b", {P0: "Completed"})


def test_what_is_in_its_directory_already_is_done_without_a_write() -> None:
    driver = asking((0, 1), ("/a", "/a"))
    driver.ticks(5)
    assert (states(driver), driver.kafka.writes) == ({P0: "Completed"}, [])


def test_nothing_starts_before_a_broker_described_its_log_dirs() -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.kafka.silent = {0}
    driver.ticks(5)
    assert (states(driver), driver.kafka.writes) == ({P0: "Pending"}, [])
    driver.kafka.silent = set()
    driver.finish()
    assert driver.kafka.directory(P0, 0) == "/b"


@pytest.mark.parametrize(
    ("directories", "reason"),
    [
        ({"/a": LogDir(logs={P0: 1})}, "UnknownLogDir"),
        ({"/a": LogDir(logs={P0: 1}), "/b": LogDir(online=False)}, "LogDirOffline"),
        ({"/a": LogDir(logs={P0: 1}), "/b": LogDir(cordoned=True)}, "LogDirCordoned"),
        ({"/a": LogDir(logs={P0: 1}), "/b": LogDir(total=1000, usable=150)}, "InsufficientDisk"),
    ],
)
def test_a_directory_that_cannot_take_it_blocks(directories: dict[str, LogDir], reason: str) -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.kafka.log_dirs[0] = directories
    driver.ticks(5)
    assert true_conditions(driver) == {"Stalled": reason}
    assert driver.kafka.writes == []


@pytest.mark.parametrize("replicas", [(0, 1), (2, 1)])
def test_deleting_the_resource_ends_the_copy_where_the_replica_is(replicas: tuple[int, int]) -> None:
    driver = asking(replicas, ("any", "/b"))
    driver.ticks(6)
    assert futures(driver) == {(1, "/b")}
    driver.delete("a")
    driver.ticks(15)
    assert driver.gone == {"a"}
    assert futures(driver) == set()
    assert driver.kafka.replicas[P0] == (0, 1)
    assert driver.kafka.directory(P0, 1) == "/a"


def begun(replicas: tuple[int, int], **fields: object) -> Driver:
    """A copy of broker 1's replica from /a to /b has just begun."""
    driver = asking(replicas, ("any", "/b"), **fields)
    while not futures(driver):
        driver.tick()
    return driver


@pytest.mark.parametrize("replicas", [(0, 1), (2, 1)])
@pytest.mark.parametrize("silent_for", [2, 15])
def test_a_deletion_waits_until_the_broker_shows_no_copy(replicas: tuple[int, int], silent_for: int) -> None:
    driver = begun(replicas)
    driver.kafka.silent = {1}
    driver.delete("a")
    driver.ticks(silent_for)
    assert driver.gone == set()
    driver.kafka.silent = set()
    driver.ticks(15)
    assert (driver.gone, futures(driver)) == ({"a"}, set())
    assert driver.kafka.replicas[P0] == (0, 1)


@pytest.mark.parametrize("dirs", [None, ("any", "/a"), ("/a", "any")])
@pytest.mark.parametrize("silent_for", [2, 15])
def test_an_edit_back_in_flight_completes_only_after_the_copy_ended(
    dirs: Sequence[str] | None, silent_for: int
) -> None:
    driver = begun((0, 1))
    driver.kafka.silent = {1}
    edit(driver, (0, 1), dirs)
    driver.ticks(silent_for)
    assert states(driver) == {P0: "InFlight"}
    driver.kafka.silent = set()
    driver.ticks(15)
    assert (states(driver), futures(driver)) == ({P0: "Completed"}, set())


def test_a_log_dir_removed_from_the_spec_holds_until_described() -> None:
    driver = begun((2, 1))
    driver.kafka.silent = {1}
    edit(driver, (2, 1), None)
    driver.ticks(2)
    driver.kafka.copy(P0)
    driver.ticks(10)
    assert states(driver) == {P0: "InFlight"}
    driver.kafka.silent = set()
    driver.ticks(10)
    assert (states(driver), futures(driver)) == ({P0: "Completed"}, set())


@pytest.mark.parametrize("replicas", [(0, 1), (2, 1)])
def test_a_new_process_reads_log_dirs_before_it_removes_the_finalizer(replicas: tuple[int, int]) -> None:
    driver = begun(replicas)
    driver.delete("a")
    driver.kafka.silent = {1}
    driver.restart()
    driver.ticks(30)
    assert driver.gone == set()
    driver.kafka.silent = set()
    driver.ticks(15)
    assert (driver.gone, futures(driver)) == ({"a"}, set())


@pytest.mark.parametrize("before", range(6))
def test_a_request_that_lands_after_a_kill_leaves_no_copy(before: int) -> None:
    driver = asking((0, 1), ("any", "/b"))
    driver.ticks(before)
    driver.tick(lands_after=5)
    driver.restart()
    driver.delete("a")
    driver.ticks(2)
    driver.kafka.silent = {1}
    driver.ticks(20)
    driver.kafka.silent = set()
    driver.ticks(15)
    assert (driver.gone, futures(driver)) == ({"a"}, set())


def test_a_log_dir_is_requested_once_until_its_result_is_described() -> None:
    driver = begun((0, 1))
    driver.kafka.silent = {1}
    driver.ticks(60)
    assert told(driver) == [AlterLogDirs(P0, ((1, "/b"),))]
    driver.kafka.silent = set()
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 1)) == ({P0: "Completed"}, "/b")


def test_a_refused_log_dir_is_retried_with_backoff_and_reported() -> None:
    driver = asking((0, 1), ("/b", "any"), stallTimeoutSeconds=60)
    while not told(driver):
        driver.tick()
        driver.kafka.denied = {P0} if states(driver) == {P0: "InFlight"} else set()
    said = driver.resources["a"].status
    assert [(p.state, p.reason) for p in said.partitions] == [("InFlight", "NotAuthorized")]
    driver.ticks(50)
    assert len(told(driver)) == 3
    assert driver.resources["a"].status == said
    driver.ticks(20)
    assert true_conditions(driver)["Stalled"] == "NotAuthorized"
    driver.kafka.denied = set()
    edit(driver, (0, 1), ("any", "/b"))
    driver.ticks(3)
    assert futures(driver) == {(1, "/b")}
    edit(driver, (0, 1), ("/b", "any"))
    driver.ticks(60)
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 0)) == ({P0: "Completed"}, "/b")


def test_a_refused_end_of_a_copy_is_retried_with_backoff_and_reported() -> None:
    driver = begun((0, 1))
    driver.kafka.denied = {P0}
    driver.delete("a")
    driver.ticks(3)
    said = driver.resources["a"].status
    assert [(p.state, p.reason) for p in said.partitions] == [("Cancelling", "NotAuthorized")]
    before = len(told(driver))
    driver.ticks(50)
    assert len(told(driver)) == before + 2
    assert driver.resources["a"].status == said
    driver.kafka.denied = set()
    driver.ticks(70)
    assert (driver.gone, futures(driver)) == ({"a"}, set())


def test_an_end_sent_too_late_leaves_no_copy_back() -> None:
    driver = begun((0, 1))
    driver.tick()
    driver.kafka.silent = {1}
    driver.kafka.copy_between_dirs(P0)
    driver.delete("a")
    driver.tick()
    assert futures(driver) == {(1, "/a")}
    driver.kafka.silent = set()
    driver.ticks(15)
    assert (driver.gone, futures(driver), driver.kafka.directory(P0, 1)) == ({"a"}, set(), "/b")


def test_a_broker_down_with_a_copy_does_not_delay_the_cancel_of_a_move() -> None:
    driver = begun((2, 1))
    stop(driver, 1)
    driver.delete("a")
    driver.tick()
    assert driver.kafka.reassignments == {}
    driver.ticks(30)
    assert (driver.kafka.replicas[P0], driver.gone, states(driver)) == ((0, 1), set(), {P0: "Cancelling"})
    assert len([step for step in driver.kafka.writes if isinstance(step, AlterLogDirs)]) == 1
    start(driver, 1)
    driver.ticks(10)
    assert (driver.gone, futures(driver)) == ({"a"}, set())


@pytest.mark.parametrize("deleted", [True, False])
def test_a_cancel_that_waits_for_a_broker_is_stalled_and_names_it(deleted: bool) -> None:
    driver = begun((2, 1), stallTimeoutSeconds=60)
    stop(driver, 1)
    if deleted:
        driver.delete("a")
    else:
        pull(driver, Execution.CANCEL_OURS)
    driver.ticks(50)
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(20)
    assert true_conditions(driver)["Stalled"] == "BrokerFenced"
    assert "broker 1 is fenced" in (detail(driver, P0).message or "")
    start(driver, 1)
    driver.ticks(10)
    assert deleted == bool(driver.gone)
    assert deleted or (true_conditions(driver), ready_reason(driver)) == ({}, "Suspended")


def test_a_broker_that_is_not_registered_any_more_holds_no_deletion() -> None:
    driver = begun((2, 1))
    driver.kafka.isr[P0] = frozenset({0})
    del driver.kafka.brokers[1]
    driver.delete("a")
    driver.ticks(15)
    assert (driver.gone, driver.kafka.reassignments) == ({"a"}, {})


def stop(driver: Driver, broker: int) -> None:
    driver.kafka.brokers[broker] = Broker(broker, fenced=True)
    driver.kafka.isr[P0] -= {broker}


def start(driver: Driver, broker: int) -> None:
    driver.kafka.brokers[broker] = Broker(broker)
    driver.kafka.isr[P0] |= {broker}


@pytest.mark.parametrize("execution", [Execution.CANCEL_OURS, Execution.CANCEL_ALL])
def test_the_brake_ends_a_copy_at_the_next_tick_and_run_starts_it_again(execution: Execution) -> None:
    driver = begun((0, 1))
    pull(driver, execution)
    driver.tick()
    assert futures(driver) == set()
    driver.ticks(15)
    assert (futures(driver), driver.kafka.directory(P0, 1)) == (set(), "/a")
    assert (true_conditions(driver), ready_reason(driver)) == ({}, "Suspended")
    pull(driver, Execution.RUN)
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 1)) == ({P0: "Completed"}, "/b")


def test_the_brake_leaves_a_copy_that_is_complete() -> None:
    driver = asking((0, 1), ("any", "/b"), preferredLeader="Keep")
    driver.ticks(6)
    driver.kafka.copy_between_dirs(P0)
    pull(driver, Execution.CANCEL_OURS)
    driver.ticks(15)
    assert (states(driver), driver.kafka.directory(P0, 1)) == ({P0: "Completed"}, "/b")


def test_another_log_dir_in_flight_replaces_the_first_without_a_cancel() -> None:
    driver = asking((2, 1), ("any", "/b"))
    driver.ticks(6)
    edit(driver, (2, 1), ("/b", "/a"))
    driver.finish()
    assert not any(isinstance(step, Cancel) for step in driver.kafka.writes)
    assert (driver.kafka.directory(P0, 2), driver.kafka.directory(P0, 1)) == ("/b", "/a")
    assert states(driver) == {P0: "Completed"}


def test_a_directory_that_is_named_no_longer_is_not_copied_to() -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.ticks(6)
    edit(driver, (0, 1), None)
    driver.ticks(10)
    assert (futures(driver), states(driver)) == (set(), {P0: "Completed"})
    assert driver.kafka.directory(P0, 0) == "/a"


def test_a_completed_entry_moves_again_when_its_directory_is_edited() -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.finish()
    edit(driver, (0, 1), ("/a", "any"))
    driver.finish()
    assert driver.kafka.directory(P0, 0) == "/a"
    assert states(driver) == {P0: "Completed"}


@pytest.mark.parametrize("dies", range(4))
def test_a_process_that_is_killed_at_any_step_ends_in_the_same_place(dies: int) -> None:
    driver = asking((2, 1), ("/b", "/b"))
    for _ in range(5):
        driver.tick(die_after=dies)
        driver.ticks(4)
    driver.ticks(10)  # what may still be on its way is waited for
    driver.finish()
    assert (driver.kafka.replicas[P0], states(driver)) == ((2, 1), {P0: "Completed"})
    assert (driver.kafka.directory(P0, 2), driver.kafka.directory(P0, 1)) == ("/b", "/b")


def copied_by_others() -> SimKafka:
    """Return a cluster where another client copies broker 0's replica from /a to /c."""
    sim = kafka()
    sim.log_dirs[0]["/c"] = LogDir(logs={}, futures={P0: 60})
    return sim


@pytest.mark.parametrize("named", ["/a", "/b"])
@pytest.mark.parametrize("replicas", [(0, 1), (0, 2)])
def test_a_foreign_copy_is_waited_for(replicas: tuple[int, int], named: str) -> None:
    driver = drive(copied_by_others(), with_dirs(resource({P0: replicas}), (named, "any")))
    driver.ticks(10)
    assert (driver.kafka.writes, futures(driver)) == ([], {(0, "/c")})
    said = detail(driver, P0)
    assert (said.state, said.reason) == ("Blocked", "InFlightElsewhere")
    assert "broker 0 from /a to /c" in (said.message or "")
    driver.kafka.copy_between_dirs(P0)
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 0)) == ({P0: "Completed"}, named)


def test_a_foreign_copy_fails_the_entry_that_does_not_wait() -> None:
    driver = drive(copied_by_others(), with_dirs(resource({P0: (0, 1)}, whenInFlight="Fail"), ("/b", "any")))
    driver.ticks(10)
    assert (driver.kafka.writes, futures(driver)) == ([], {(0, "/c")})
    assert true_conditions(driver) == {"Failed": "InFlightElsewhere", "Stalled": "InFlightElsewhere"}


def test_an_entry_that_came_too_late_for_its_directory_has_failed() -> None:
    driver = asking((0, 1), ("/b", "any"), deadlineSeconds=5)
    driver.kafka.log_dirs[0]["/b"] = LogDir(online=False)
    driver.ticks(15)
    assert true_conditions(driver) == {"Failed": "DeadlineExceeded", "Stalled": "DeadlineExceeded"}


@pytest.mark.parametrize("named", ["/a", "/b"])
def test_a_foreign_copy_is_superseded(named: str) -> None:
    driver = drive(copied_by_others(), with_dirs(resource({P0: (0, 1)}, whenInFlight="Supersede"), (named, "any")))
    driver.finish()
    assert (states(driver), driver.kafka.directory(P0, 0)) == ({P0: "Completed"}, named)


def test_a_foreign_copy_that_replaces_ours_is_left_alone_and_reported() -> None:
    driver = begun((0, 1))
    driver.kafka.log_dirs[1]["/b"].futures.clear()  # type: ignore[attr-defined]
    driver.kafka.log_dirs[1]["/c"] = LogDir(logs={}, futures={P0: 60})
    driver.ticks(10)
    assert (detail(driver, P0).reason, futures(driver)) == ("InFlightElsewhere", {(1, "/c")})
    driver.delete("a")
    driver.ticks(10)
    assert (driver.gone, futures(driver)) == ({"a"}, {(1, "/c")})


def long_named(characters: int, partition: int = 0) -> TopicPartition:
    return TopicPartition("t" * characters, partition)


def of_a_long_name(tp: TopicPartition, replicas: Sequence[int], dirs: Sequence[str]) -> Driver:
    """The partition is on brokers 0 and 1, which have it in /a."""
    log_dirs = {b: {p: LogDir(logs={tp: 100} if b < 2 and p == "/a" else {}) for p in ("/a", "/b")} for b in range(6)}
    sim = SimKafka({tp: (0, 1)}, log_dirs=log_dirs, sizes={tp: {0: 100, 1: 100}}, topic_ids={tp.topic: "id"})
    return drive(sim, with_dirs(resource({tp: replicas}), dirs))


@pytest.mark.parametrize(
    ("tp", "possible"),
    [
        (long_named(213), True),
        (long_named(214), False),
        (long_named(212, 10), True),
        (long_named(213, 10), False),
        (long_named(249), False),
    ],
)
@pytest.mark.parametrize(("replicas", "dirs"), [((0, 1), ("/b", "any")), ((2, 1), ("/b", "any"))])
def test_no_directory_is_named_for_a_topic_with_too_long_a_name(
    tp: TopicPartition, possible: bool, replicas: tuple[int, int], dirs: tuple[str, str]
) -> None:
    driver = of_a_long_name(tp, replicas, dirs)
    driver.ticks(3)
    if possible:
        assert states(driver) == {tp: "InFlight"}
    else:
        assert (states(driver), driver.kafka.writes) == ({tp: "Blocked"}, [])
        assert true_conditions(driver) == {"Stalled": "TopicNameTooLong"}
        assert "at most 214 are possible; write any in logDirs" in (detail(driver, tp).message or "")


def test_a_replica_with_a_long_name_may_stay_where_it_is_named() -> None:
    tp = long_named(249)
    driver = of_a_long_name(tp, (1, 0), ("/a", "/a"))
    driver.finish()
    assert states(driver) == {tp: "Completed"}
    assert not told(driver)


def test_a_long_name_directed_in_flight_is_stalled_until_an_edit() -> None:
    tp = long_named(214)
    driver = of_a_long_name(tp, (2, 1), ("any", "any"))
    driver.ticks(3)
    driver.edit("a", {tp: (2, 1)})
    driver.resources["a"] = with_dirs(driver.resources["a"], ("/b", "any"))
    driver.ticks(3)
    assert true_conditions(driver)["Stalled"] == "TopicNameTooLong"
    assert not told(driver)
    driver.edit("a", {tp: (2, 1)})
    driver.finish()
    assert (states(driver), told(driver)) == ({tp: "Completed"}, [])


def test_progress_comes_from_the_future_log() -> None:
    driver = asking((0, 1), ("/b", "/b"))
    driver.ticks(6)
    for broker, copied in ((0, 100), (1, 20)):
        driver.kafka.log_dirs[broker]["/b"].futures[P0] = copied  # type: ignore[index]
    driver.tick()
    shown = driver.resources["a"].status.progress
    assert shown is not None
    assert (shown.bytes_copied, shown.bytes_total, shown.percent) == (119, 200, 59)
    driver.finish()
    shown = driver.resources["a"].status.progress
    assert shown is not None
    assert shown.percent == 100


def test_a_copy_between_directories_that_stands_still_is_stalled() -> None:
    driver = asking((0, 1), ("/b", "any"), stallTimeoutSeconds=60)
    driver.ticks(70)
    assert true_conditions(driver)["Stalled"] == "MoveStalled"
    driver.kafka.log_dirs[0]["/b"].futures[P0] = 50  # type: ignore[index]
    driver.tick()
    assert "Stalled" not in true_conditions(driver)


def test_a_dry_run_reports_copies_between_log_dirs() -> None:
    driver = asking((0, 1), ("/b", "/a"), mode="DryRun")
    driver.ticks(3)
    message = driver.resources["a"].status.partitions[0].message
    assert message == "would be copied to another log directory of broker 0"
    assert driver.kafka.writes == []
