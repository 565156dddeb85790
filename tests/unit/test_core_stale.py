"""Metadata that is older than the list, by broker: what has ended is not shown as lost, nor compared with the past."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.awaited import Awaited
from reassign.core.model.forwarding import SETTLE_SECONDS, Forwarded, MetadataOffsets
from reassign.core.model.memory import LAGS_SECONDS, Recent
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.tick import doubts
from reassign.errors import Reason
from tests.unit.examples import examples
from tests.unit.sim import Driver, SimKafka, detail, drive, partitions, resource, without_record

[P0, P1] = partitions(2)
SETTLED = int(SETTLE_SECONDS) + 1
LONG = 60
ALL = range(6)
LAGS = int(LAGS_SECONDS)


def moving() -> Driver:
    """P0 is in flight from 1, 2, 3 to 4, 2, 3, and everything has settled."""
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)})
    driver = drive(kafka, resource({P0: (4, 2, 3)}))
    driver.ticks(2 * SETTLED)
    assert P0 in kafka.reassignments
    return driver


def expecting(replicas: tuple[int, ...], uid: str = "b", target: tuple[int, ...] = (4, 5, 3)) -> Resource:
    """A younger resource that moves P0 from these replicas."""
    base = resource({P0: target}, uid)
    entries = tuple(e.model_copy(update={"expected_replicas": replicas}) for e in base.spec.partitions)
    return replace(base, spec=base.spec.model_copy(update={"partitions": entries}))


def read(end: int, fetched: int | None, reader: int = 0) -> Forwarded:
    """`fetched` is None where DescribeQuorum tells of no broker."""
    brokers = {} if fetched is None else {reader: fetched}
    return Forwarded(reader, {reader}, MetadataOffsets(end, brokers, complete=fetched is not None), reader)


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_a_completed_move_is_followed_while_its_brokers_metadata_lags(killed: bool) -> None:
    driver = moving()
    driver.stand_still(*ALL)
    driver.kafka.copy(P0)
    if killed:
        driver.restart()
    for _ in range(LONG):
        driver.tick()
        assert detail(driver, P0).state is PartitionState.IN_FLIGHT
    driver.standing.clear()
    driver.tick()
    assert detail(driver, P0).state is PartitionState.COMPLETED


@pytest.mark.parametrize("lag", [0, 2])
def test_a_foreign_cancel_is_told_three_seconds_after_metadata_is_fetched(lag: int) -> None:
    driver = moving()
    driver.stand_still(*ALL)
    driver.kafka.perform_as_another(P0)
    driver.ticks(LONG)
    assert driver.resources["a"].record[P0].state is State.IN_FLIGHT
    driver.standing.clear()
    driver.lag = lag
    driver.ticks(SETTLED - 1)
    assert detail(driver, P0).state is PartitionState.CANCELLED


def test_metadata_settles_as_soon_as_before_where_it_does_not_lag() -> None:
    for tells in (True, False):
        driver = moving()
        driver.tells_offsets = tells
        driver.kafka.perform_as_another(P0)
        driver.ticks(SETTLED - 2)
        assert detail(driver, P0).state is PartitionState.IN_FLIGHT
        driver.tick()
        assert detail(driver, P0).state is PartitionState.CANCELLED


def test_without_offsets_only_time_counts() -> None:
    driver = moving()
    driver.tells_offsets = False
    driver.stand_still(*ALL)
    driver.kafka.perform_as_another(P0)
    driver.ticks(SETTLED)
    assert detail(driver, P0).state is PartitionState.CANCELLED


def test_a_broker_that_is_read_anew_is_behind_for_all_partitions() -> None:
    driver = moving()
    driver.stand_still(*ALL[1:])
    driver.kafka.copy(P0)
    driver.ticks(2 * SETTLED)
    driver.silent = {0}  # broker 1 lists now, and shows P0 where it was
    driver.resources["b"] = expecting((4, 2, 3))
    for _ in range(LONG):
        driver.tick()
        assert detail(driver, P0, "b").state is PartitionState.PENDING
    assert P0 not in driver.kafka.reassignments
    driver.standing.clear()
    driver.ticks(SETTLED)
    assert driver.kafka.reassignments[P0].adding == (5,)


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_a_reader_that_stands_still_is_left_for_one_that_is_well(killed: bool) -> None:
    driver = moving()
    driver.stand_still(0)
    driver.kafka.copy(P0)
    if killed:
        driver.restart()
    driver.ticks(LAGS)
    assert (driver.recent.forwarded.reader, detail(driver, P0).state) == (0, PartitionState.IN_FLIGHT)
    driver.ticks(2)
    assert (driver.recent.forwarded.reader, detail(driver, P0).state) == (1, PartitionState.COMPLETED)


@pytest.mark.parametrize("lag", [0, 2])
def test_a_change_of_the_reader_claims_nothing_too_early(lag: int) -> None:
    driver = moving()
    driver.lag = lag
    driver.stand_still(0)
    driver.kafka.perform_as_another(P0)
    driver.ticks(LAGS + 1)
    assert driver.recent.forwarded.reader == 0
    driver.tick()
    assert driver.recent.forwarded.reader == 1
    driver.ticks(SETTLED - 2)
    assert detail(driver, P0).state is PartitionState.IN_FLIGHT
    driver.tick()
    assert detail(driver, P0).state is PartitionState.CANCELLED


def test_a_reader_that_was_left_is_read_again_only_when_another_lags() -> None:
    driver = moving()
    read: list[int | None] = []

    def go_on(seconds: int) -> None:
        for _ in range(seconds):
            driver.tick()
            if read[-1:] != [driver.recent.forwarded.reader]:
                read.append(driver.recent.forwarded.reader)

    driver.stand_still(0)
    driver.kafka.copy(P0)
    go_on(2 * LAGS)
    driver.standing.clear()
    go_on(2 * LAGS)
    assert read == [0, 1], "it has caught up, and the other one does not lag"
    driver.stand_still(*ALL[1:])
    driver.resources["b"] = resource({P1: (4, 2, 3)}, "b")
    go_on(SETTLED)
    driver.kafka.copy(P1)
    go_on(2 * LAGS)
    assert read == [0, 1, 0]
    assert detail(driver, P1, "b").state is PartitionState.COMPLETED


def test_where_all_brokers_lag_the_one_that_is_least_behind_is_read() -> None:
    driver = moving()
    for broker in (0, 1, 3, 2):
        driver.stand_still(broker)
        driver.ticks(1)
    driver.silent = {4, 5}
    driver.kafka.copy(P0)
    driver.ticks(2 * LAGS)
    assert driver.recent.forwarded.reader == 2
    driver.ticks(4 * LAGS)
    assert driver.recent.forwarded.reader == 2
    assert detail(driver, P0).state is PartitionState.IN_FLIGHT


def test_a_broker_that_is_read_anew_and_does_not_lag_delays_nothing() -> None:
    driver = moving()
    driver.kafka.copy(P0)
    driver.ticks(2 * SETTLED)
    driver.silent = {0}
    driver.resources["b"] = expecting((4, 2, 3))
    driver.tick()
    assert driver.kafka.reassignments[P0].adding == (5,)


def test_expected_replicas_that_are_not_shown_yet_are_no_mismatch() -> None:
    driver = moving()
    driver.stand_still(*ALL)
    driver.kafka.copy(P0)
    driver.delete("a")
    driver.resources["b"] = expecting((4, 2, 3))
    for _ in range(LONG):
        driver.tick()
        assert detail(driver, P0, "b").reason != Reason.EXPECTED_REPLICAS_MISMATCH
    driver.standing.clear()
    driver.ticks(2 * SETTLED)
    assert driver.kafka.reassignments[P0].adding == (5,)


def test_expected_replicas_that_are_gone_are_a_mismatch_once_it_settles() -> None:
    driver = moving()
    driver.kafka.copy(P0)
    driver.resources["b"] = expecting((1, 2, 3))
    driver.ticks(2 * SETTLED)
    assert detail(driver, P0, "b").reason == Reason.EXPECTED_REPLICAS_MISMATCH


def test_a_replication_factor_is_not_compared_with_that_of_a_moment_ago() -> None:
    driver = moving()
    driver.kafka.copy(P0)
    driver.stand_still(*ALL)
    driver.kafka.move_as_another(P0, (4, 2))
    driver.tick()
    driver.kafka.copy(P0)
    driver.resources["b"] = resource({P0: (5, 2)}, "b")
    for _ in range(LONG):
        driver.tick()
        assert detail(driver, P0, "b").reason != Reason.REPLICATION_FACTOR_CHANGE
    driver.standing.clear()
    driver.ticks(2 * SETTLED)
    assert driver.kafka.reassignments[P0].adding == (5,)


def test_offsets_are_needed_only_while_a_named_partition_was_busy() -> None:
    driver = moving()

    def asked() -> tuple[bool, set[object]]:
        found = doubts(list(driver.resources.values()), None, driver.memory)
        assert found.reader == 0
        return found.offsets, set(found.lately)

    assert asked() == (False, {P0}), "only where it is not listed any more"
    driver.kafka.move_as_another(P1, (5, 2, 3))
    driver.tick()
    assert asked() == (False, {P0}), "no resource names P1"
    driver.kafka.copy(P0)
    driver.tick()
    assert asked() == (False, {P0})
    driver.ticks(SETTLED)
    assert asked() == (False, set())


def test_a_new_process_needs_offsets_once() -> None:
    driver = moving()
    driver.restart()
    resources = list(driver.resources.values())
    assert doubts(resources, None, driver.memory).offsets
    driver.tick()
    assert not doubts(resources, None, driver.memory).offsets


def test_an_end_that_was_read_just_now_is_not_late_yet() -> None:
    begun = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    met = begun.observe(10.0, 10.0, (), (), read(105, 104)).observe(11.0, 11.0, (), (), read(110, 108))
    assert [met.observe(at, at, (), (), read(115, 115)).settled(P0) for at in (11.9, 12.0)] == [False, True]


def test_a_broker_counts_from_when_it_was_last_seen_behind() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    for at in (10.0, 11.0, 30.0):
        recent = recent.observe(at, at, (), (), read(105, 104))
        assert not recent.settled(P0)
    later = [recent.observe(at, at, (), (), read(110, 105)).settled(P0) for at in (31.0, 32.9, 33.0)]
    assert later == [False, False, True]
    assert recent.observe(33.0, 33.0, ()).settled(P0), "without an answer"


def test_a_reader_that_is_left_out_while_others_are_told_is_behind() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    left_out = Forwarded(0, {0}, MetadataOffsets(105, {1: 105}), 0)
    for at in (10.0, 11.0, 900.0):
        recent = recent.observe(at, at, (), (), left_out)
        assert not recent.settled(P0)


def test_where_no_broker_is_told_of_only_time_counts() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    recent = recent.observe(10.0, 10.0, (), (), read(105, None))
    assert [recent.observe(at, at, (), (), read(110, None)).settled(P0) for at in (11.9, 12.0)] == [False, True]


def test_a_lost_answer_makes_no_metadata_count_that_was_seen_behind() -> None:
    recent = Recent(started=-1000.0).observe(0.0, 0.1, (), (), read(100, 50))
    for at in (0.2, 2.9):
        recent = recent.observe(at, at, (), (), Forwarded(0, {0}, None, 0))
        assert recent.is_stale(P0)
        assert recent.doubts_about((), (), [{P0}]).offsets
    assert not recent.observe(3.0, 3.0, (), (), read(110, 110)).is_stale(P0)


def test_a_lost_answer_counts_for_a_partition_too() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100), reading=Awaited(0.0, 50))
    recent = recent.observe(10.0, 10.0, (), (), read(105, 104))
    settled = [recent.observe(at, at, (), (), Forwarded(0, {0}, None, 0)).settled(P0) for at in (12.0, 12.9, 13.0)]
    assert settled == [False, False, True]


def test_a_broker_that_time_has_shown_is_late_no_longer() -> None:
    recent = Recent().observe(0.0, 0.0, (), (), read(100, 50)).observe(3.0, 3.0, (), (), read(100, 50))
    late = [
        (recent := recent.observe(at, at, (), (), Forwarded(0, {0}, None, 0))).lagging(P0) for at in (5.9, 6.0, 40.0)
    ]
    assert late == [0, None, None]
    assert not recent.is_stale(P0)


def test_another_reader_settles_three_seconds_after_it_was_seen_behind() -> None:
    recent = Recent(now=9.0, started=-100.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    for at in (10.0, 25.0, 41.0):
        recent = recent.observe(at, at, (), (), Forwarded(0, {0}, MetadataOffsets(150, {0: 104, 1: 140, 2: 90}), 0))
    assert recent.doubts_about((), (), ()).first == (1, 0, 2)
    recent = recent.observe(42.0, 42.0, (), (), read(150, 145, 1))
    settled = [recent.observe(at, at, (), (), read(160, 150, 1)).settled(P1) for at in (43.0, 44.9, 45.0)]
    assert settled == [False, False, True]


def test_the_topic_of_a_move_counts_anew_for_another_reader() -> None:
    move = (P0, "id")
    recent = Recent(now=9.0, started=-100.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100)).awaiting([move])
    for at in (10.0, 41.0):
        recent = recent.observe(at, at, {P0}, (), Forwarded(0, {0}, MetadataOffsets(150, {0: 104, 1: 140}), 0))
    assert (recent.lagging(P0), recent.doubts_about((), (), ()).first) == (0, (1, 0))
    behind = recent.observe(42.0, 42.0, {P0}, (), read(150, 145, 1))
    assert (behind.lagging(P0), behind.doubts_about((), (), ()).first) == (None, (1,))
    recent = recent.observe(42.0, 42.0, {P0}, (), read(150, 150, 1))
    later = [recent.observe(at, at, {P0}, (), read(160, 150, 1)).awaiting([move]) for at in (44.9, 45.0)]
    assert [move in found.unshown for found in later] == [True, False]


@pytest.mark.parametrize(
    ("brokers", "first"),
    [
        ({0: 104, 1: 150, 2: 149}, (1, 2, 0)),
        ({0: 104, 1: 104, 2: 104}, (0, 1, 2)),
        ({1: 150, 2: 150}, (1, 2)),
        ({0: 104, 1: 90}, (0, 1)),
    ],
    ids=["others are well", "all lag alike", "left out", "least behind"],
)
def test_brokers_are_read_in_the_order_of_what_they_have(brokers: dict[int, int], first: tuple[int, ...]) -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    for at in (10.0, 39.9):
        recent = recent.observe(at, at, (), (), Forwarded(0, {0}, MetadataOffsets(150, brokers), 0))
        assert recent.doubts_about((), (), ()).first == (0,)
    recent = recent.observe(40.0, 40.0, (), (), Forwarded(0, {0}, MetadataOffsets(150, brokers), 0))
    assert recent.doubts_about((), (), ()).first == first


def test_a_reader_that_comes_nearer_is_not_left() -> None:
    recent = Recent(now=9.0, forwarded=read(100, 100), reading=Awaited(0.0, 50))
    for second in range(10, 100):
        ended = TopicPartition("orders", second)
        recent = replace(recent, busy={**recent.busy, ended: Awaited(float(second))})
        recent = recent.observe(float(second), float(second), (), (), read(10 * second, 10 * second - 5))
        assert recent.doubts_about((), (), ()).first == (0,)
        assert recent.lagging(ended) is None


def test_an_end_that_was_odd_is_not_waited_for() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    recent = recent.observe(10.0, 10.0, (), (), read(10**18, 105)).observe(11.0, 11.0, (), (), read(110, 110))
    assert recent.observe(12.0, 12.0, (), (), read(115, 115)).settled(P0)


def test_a_partition_that_settled_late_is_forgotten() -> None:
    recent = Recent(now=9.0, busy={P0: Awaited(9.0)}, forwarded=read(100, 100))
    recent = recent.observe(20.0, 20.0, (), (), read(105, 104))
    assert recent.observe(21.0, 21.0, (), (), read(106, 105)).busy == {}


def held_while_the_topic_is_made_again() -> Driver:
    """The alter of P0 has landed on a topic that no broker's metadata shows yet."""
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=2), resource({P0: (4, 2, 3)}))
    driver.tick(lands_after=12)
    driver.stand_still(*ALL)
    driver.kafka.topic_ids["orders"] = "made again"
    driver.ticks(12)
    assert P0 in driver.kafka.reassignments
    return driver


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_what_landed_on_a_topic_made_again_is_ours_once_metadata_shows_it(killed: bool) -> None:
    driver = held_while_the_topic_is_made_again()
    for _ in range(LONG):
        driver.tick()
        entry = driver.resources["a"].record[P0]
        assert (entry.state, entry.topic_id) == (State.SUBMITTING, "id-orders")
        assert detail(driver, P0).state is PartitionState.IN_FLIGHT
    assert detail(driver, P0).reason == Reason.MOVE_STALLED
    if killed:
        driver.restart()
    driver.standing.clear()
    driver.tick()
    assert driver.resources["a"].record[P0].topic_id == "made again"
    driver.ticks(SETTLED)
    assert driver.resources["a"].record[P0].state is State.IN_FLIGHT
    driver.delete("a")
    driver.ticks(2 * SETTLED)
    assert driver.gone == {"a"}
    assert not driver.kafka.reassignments


@pytest.mark.parametrize("lag", [0, 2])
def test_a_reader_is_left_that_does_not_show_the_topic_of_a_move(lag: int) -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lands_after=4)
    driver.lag = lag
    driver.ticks(2)
    driver.stand_still(0)
    driver.kafka.topic_ids["orders"] = "made again"
    driver.ticks(LAGS)
    assert (driver.recent.forwarded.reader, driver.resources["a"].record[P0].topic_id) == (0, "id-orders")
    assert detail(driver, P0).reason == Reason.MOVE_STALLED
    driver.ticks(SETTLED + 1)
    assert (driver.recent.forwarded.reader, driver.resources["a"].record[P0].topic_id) == (1, "made again")


def test_a_cancel_that_brokers_refuse_leaves_the_topic_of_a_move_open() -> None:
    driver = held_while_the_topic_is_made_again()
    driver.ticks(2 * SETTLED)
    driver.kafka.unsafe = {P0}
    driver.delete("a")
    driver.ticks(2 * SETTLED)
    driver.standing.clear()
    driver.tick()
    assert driver.resources["a"].record[P0].topic_id == "made again"
    driver.kafka.unsafe = set()
    driver.ticks(LONG)
    assert driver.gone == {"a"}
    assert not driver.kafka.reassignments


def test_a_record_that_is_lost_leaves_the_topic_of_a_move_open() -> None:
    driver = held_while_the_topic_is_made_again()
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.ticks(2)
    driver.restart()
    driver.standing.clear()
    driver.tick()
    assert driver.resources["a"].record[P0].topic_id == "made again"
    driver.delete("a")
    driver.ticks(2 * LONG)
    assert driver.gone == {"a"}
    assert not driver.kafka.reassignments


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_the_same_move_of_another_client_on_a_topic_made_again_stays(killed: bool) -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lose_answers=True)
    driver.tick()
    entry = driver.resources["a"].record[P0]
    assert (entry.state, detail(driver, P0).state) == (State.SUBMITTING, PartitionState.IN_FLIGHT)
    driver.ticks(SETTLED - 1)
    assert driver.resources["a"].record[P0].state is State.IN_FLIGHT, "metadata shows the topic"
    driver.kafka.topic_ids["orders"] = "made again"
    driver.kafka.reassignments.clear()
    driver.kafka.add(P0, (1, 2, 3))
    driver.kafka.move_as_another(P0, (4, 2, 3))
    if killed:
        driver.restart()
    driver.ticks(LONG)
    assert detail(driver, P0).reason == Reason.TOPIC_RECREATED
    driver.delete("a")
    driver.ticks(LONG)
    assert driver.gone == {"a"}
    assert driver.kafka.reassignments[P0].adding == (4,)


@given(
    st.lists(st.tuples(st.sampled_from(("stand", "go on", "copy", "kill", "silence")), st.integers(1, 6)), max_size=6),
    st.integers(0, 2),
)
@examples(30)
def test_no_completed_move_is_lost_or_mistaken_by_old_metadata(happens: list[tuple[str, int]], lag: int) -> None:
    """B waits for what a has moved: whatever broker is read, a ends as Completed, and what b expects is no mismatch."""
    driver = moving()
    driver.lag = lag
    driver.resources["b"] = expecting((4, 2, 3))
    has_ended = False
    for what, seconds in happens:
        match what:
            case "stand":
                driver.stand_still(0, 1)
            case "go on":
                driver.standing.clear()
            case "copy" if not has_ended:
                driver.kafka.copy(P0)
                has_ended = True
            case "kill":
                driver.restart()
            case "silence":
                driver.silent = {0} - driver.silent
        for _ in range(seconds):
            driver.tick()
            record = driver.resources["a"].record
            assert record[P0].state in (State.IN_FLIGHT, State.COMPLETED)
            if has_ended:
                assert detail(driver, P0, "b").reason != Reason.EXPECTED_REPLICAS_MISMATCH
    driver.standing.clear()
    if not has_ended:
        driver.kafka.copy(P0)
    driver.ticks(4 * SETTLED)
    assert driver.kafka.reassignments[P0].adding == (5,)
