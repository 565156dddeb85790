"""When each partition began and was settled, what it waited for, and bytes over time: at no write of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reassign.api.limits import MAX_SAMPLES
from reassign.api.partition_reassignment import CopiedSample, PartitionDetail
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from tests.unit.examples import examples
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, without_record

PARTITIONS = partitions(3)
P0, P1, P2 = PARTITIONS


def moving(**fields: object) -> Driver:
    kafka = SimKafka(dict.fromkeys(PARTITIONS, (0, 1)), sizes={tp: {0: 1000, 1: 1000} for tp in PARTITIONS})
    return drive(kafka, resource(dict.fromkeys(PARTITIONS, (2, 1)), **fields))


def details(driver: Driver) -> dict[TopicPartition, PartitionDetail]:
    return {TopicPartition(d.topic, d.partition): d for d in driver.resources["a"].status.partitions}


def samples(driver: Driver) -> tuple[CopiedSample, ...]:
    return driver.resources["a"].status.samples


def copied(driver: Driver, tp: TopicPartition, size: int) -> None:
    assert driver.kafka.sizes
    driver.kafka.sizes[tp][2] = size


def until_in_flight(driver: Driver, tp: TopicPartition) -> datetime:
    """Tick until it is in flight; the time of that tick."""
    while tp not in driver.kafka.reassignments:
        driver.tick()
    return driver.time


def test_each_partition_says_when_it_began_and_ended_and_what_it_awaited() -> None:
    driver = moving(concurrency={"partitions": 1})
    began = {}
    for tp in PARTITIONS:
        began[tp] = until_in_flight(driver, tp)
        driver.ticks(20)
        driver.kafka.copy(tp)
        driver.tick()
        shown = details(driver)[tp]
        assert (shown.start_time, shown.completion_time) == (began[tp], driver.time)
    waits = {tp: detail.waited_for for tp, detail in details(driver).items()}
    assert waits == {P0: None, P1: "WaitingForBudget", P2: "WaitingForBudget"}
    driver.restart()
    driver.ticks(20)
    assert {tp: entry.began for tp, entry in driver.resources["a"].record.items()} == began


def test_an_edited_move_in_flight_begins_again_with_no_known_wait() -> None:
    driver = moving()
    first = until_in_flight(driver, P0)
    driver.ticks(30)
    driver.edit("a", dict.fromkeys(PARTITIONS, (3, 1)))
    driver.tick()
    entry = driver.resources["a"].record[P0]
    assert (entry.state, entry.began) == (State.CANCELLING, first)
    while P0 in driver.resources["a"].record:
        driver.tick()
    while P0 not in driver.resources["a"].record:
        driver.tick()
    entry = driver.resources["a"].record[P0]
    assert (entry.target, entry.began, entry.waited_for) == ((3, 1), driver.time, None)
    driver.ticks(20)
    shown = details(driver)[P0]
    assert (shown.start_time, shown.waited_for) == (entry.began, None)


def test_a_move_whose_alter_did_not_land_began_with_the_one_that_did() -> None:
    driver = moving()
    while not driver.resources["a"].record:
        driver.tick(die_after=0)
    unsent = driver.resources["a"].record[P0]
    assert (unsent.state, unsent.began) == (State.SUBMITTING, driver.time)
    landed = until_in_flight(driver, P0)
    assert unsent.began != landed
    assert driver.resources["a"].record[P0].began == landed


def test_a_partition_that_was_at_its_target_has_an_end_and_no_beginning() -> None:
    driver = drive(SimKafka({P0: (2, 1)}), resource({P0: (2, 1)}))
    driver.finish()
    shown = details(driver)[P0]
    assert shown.start_time is None
    assert shown.completion_time == driver.resources["a"].status.completion_time


def test_what_an_old_version_or_a_lost_record_omits_is_not_made_up() -> None:
    driver = moving()
    driver.finish()
    known = driver.resources["a"]
    old = {tp: replace(entry, began=None, ended=None) for tp, entry in known.record.items()}
    for before in (replace(known, record=old), without_record(known)):
        driver.resources["a"] = before
        driver.restart()
        driver.ticks(20)
        record = driver.resources["a"].record
        assert {entry.state for entry in record.values()} == {State.COMPLETED}
        assert {(entry.began, entry.ended) for entry in record.values()} == {(None, None)}


def test_bytes_over_time_begin_with_the_first_move_and_end_with_the_last() -> None:
    driver = moving(suspend=True)
    driver.ticks(30)
    assert samples(driver) == ()
    driver.edit("a", dict.fromkeys(PARTITIONS, (2, 1)))
    began = until_in_flight(driver, P0)
    driver.tick()
    assert began <= samples(driver)[0].time <= driver.time
    assert samples(driver)[0].bytes_copied == 0
    copied(driver, P0, 500)
    driver.tick()
    assert samples(driver)[-1] == CopiedSample(time=driver.time, bytes_copied=500)
    copied(driver, P0, 1000)
    driver.finish()
    assert samples(driver)[-1].bytes_copied == 3000


def test_an_edit_after_the_end_begins_bytes_over_time_anew() -> None:
    driver = moving()
    driver.finish()
    ended = samples(driver)[-1].time
    driver.edit("a", dict.fromkeys(PARTITIONS, (3, 1)))
    driver.finish()
    assert samples(driver)[0].time > ended


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=10, max_size=120))
def test_samples_are_bounded_and_never_the_only_change_of_a_status(story: list[tuple[int, int]]) -> None:
    driver = moving()
    until_in_flight(driver, P0)
    size = 0
    for grows, ticks in story:
        size = min(size + grows, 990)
        copied(driver, P0, size)
        driver.now += ticks
        before = driver.resources["a"].status
        driver.tick()
        after = driver.resources["a"].status
        assert before == after or before.model_copy(update={"samples": after.samples}) != after
        assert len(after.samples) <= MAX_SAMPLES
        times = [sample.time for sample in after.samples]
        assert times == sorted(times)
        assert after.samples[-1].bytes_copied == (after.progress and after.progress.bytes_copied)


def test_samples_of_a_long_move_are_spread_over_its_time() -> None:
    driver = moving()
    until_in_flight(driver, P0)
    first = driver.now
    for size in range(1, 900):
        copied(driver, P0, size)
        driver.now += 9
        driver.tick()
    times = [sample.time.timestamp() for sample in samples(driver)]
    gaps = [after - before for before, after in pairwise(times)]
    assert len(times) == MAX_SAMPLES
    assert max(gaps[:-1]) <= 4 * (driver.now - first) / MAX_SAMPLES
