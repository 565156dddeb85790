"""Progress that users can trust: whatever sizes do, it does not go back, nor is it done before it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.partition_reassignment import Progress
from reassign.core.model.progress import CopyProgress, completion_time, together
from reassign.core.report.statuses import report
from tests.unit.examples import examples
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, states

PARTITIONS = partitions(3)
P0, P1, P2 = PARTITIONS


def moving(**fields: object) -> Driver:
    kafka = SimKafka(dict.fromkeys(PARTITIONS, (0, 1)), sizes={tp: {0: 1000, 1: 1000} for tp in PARTITIONS})
    return drive(kafka, resource(dict.fromkeys(PARTITIONS, (2, 1)), **fields))


def progress(driver: Driver) -> Progress:
    shown = driver.resources["a"].status.progress
    assert shown is not None
    return shown


def happens(driver: Driver, what: str, number: int, amount: int) -> None:
    kafka, tp = driver.kafka, PARTITIONS[number]
    assert kafka.sizes is not None
    sizes = kafka.sizes.setdefault(tp, {0: 1000, 1: 1000})
    if what == "copies":
        sizes[2] = sizes.get(2, 0) + amount
    elif what == "is written to":
        sizes[0] = sizes.get(0, 1000) + amount
    elif what == "is cut by retention":
        kafka.sizes[tp] = {broker: max(size - amount, 0) for broker, size in sizes.items()}
    elif what == "loses the sizes of a broker":
        sizes.pop(amount % 3, None)
    elif what == "loses its sizes":
        del kafka.sizes[tp]
    elif what == "is in sync" and tp in kafka.reassignments:
        kafka.copy(tp)
    elif what == "is killed":
        driver.restart()


HAPPENS = st.sampled_from(
    [
        "copies",
        "is written to",
        "is cut by retention",
        "loses the sizes of a broker",
        "loses its sizes",
        "is in sync",
        "is killed",
    ]
)


@examples(300)
@given(st.lists(st.tuples(HAPPENS, st.integers(0, 2), st.integers(0, 2000)), max_size=40))
def test_copied_bytes_never_decrease_and_are_whole_only_in_sync(
    story: list[tuple[str, int, int]],
) -> None:
    driver = moving()
    driver.ticks(4)
    copied = 0
    for what, number, amount in story:
        happens(driver, what, number, amount)
        driver.tick()
        shown = progress(driver)
        assert (shown.bytes_copied or 0) >= copied
        assert shown.bytes_copied is None or shown.bytes_copied <= (shown.bytes_total or 0)
        assert (shown.percent == 100) is (set(states(driver).values()) == {"Completed"})
        copied = shown.bytes_copied or 0


@given(
    st.lists(st.builds(lambda a, b: CopyProgress(min(a, b), max(a, b)), st.integers(0, 9), st.integers(0, 9))),
    st.integers(0, 99),
)
def test_remaining_bytes_do_not_depend_on_reported_copied_bytes(parts: list[CopyProgress], said: int) -> None:
    shown = together(parts, said)
    assert shown.copied >= said
    assert shown.total - shown.copied == sum(part.total - part.copied for part in parts)


def test_a_partition_that_is_cancelled_takes_its_bytes_with_it() -> None:
    driver = moving()
    assert driver.kafka.sizes is not None
    driver.ticks(4)
    driver.kafka.sizes[P0][2] = 600
    driver.kafka.sizes[P1][2] = 100
    driver.tick()
    assert (progress(driver).bytes_copied, progress(driver).bytes_total) == (700, 3000)
    driver.kafka.perform_as_another(P0)
    driver.ticks(10)
    assert (progress(driver).bytes_copied, progress(driver).bytes_total) == (100, 2000)


def test_progress_without_sizes_is_a_share_of_the_partitions() -> None:
    driver = moving()
    driver.kafka.sizes = None
    driver.ticks(4)
    driver.kafka.copy(P0)
    driver.tick()
    assert (progress(driver).bytes_total, progress(driver).bytes_copied, progress(driver).percent) == (None, None, 33)


def test_while_nothing_moves_growing_topics_change_no_status() -> None:
    driver = moving(suspend=True)
    assert driver.kafka.sizes is not None
    driver.ticks(4)
    before = driver.resources["a"].status
    assert progress(driver).bytes_total == 3000
    driver.kafka.sizes[P0][0] = 5000
    driver.ticks(3)
    assert replace(driver.resources["a"], status=before) == driver.resources["a"]


def test_what_is_added_and_removed_shows_with_what_is_in_flight() -> None:
    driver = moving(throttle=None)
    shown = []
    for _ in range(8):
        driver.tick()
        status = driver.resources["a"].status
        in_flight = progress(driver).partitions_in_flight
        shown.append(in_flight)
        assert (status.adding, status.removing) == (in_flight, in_flight)
    assert 3 in shown
    for tp in PARTITIONS:
        driver.kafka.copy(tp)
    driver.tick()
    assert (driver.resources["a"].status.adding, driver.resources["a"].status.removing) == (0, 0)


@pytest.mark.parametrize(
    ("waits", "left"), [(False, "about 5 min left"), (True, "about 3 min left for what does not wait, 1 blocked")]
)
def test_what_waits_for_others_is_not_part_of_the_time_left(waits: bool, left: str) -> None:
    driver = moving(concurrency={"partitions": 2})
    assert driver.kafka.sizes is not None
    if waits:
        driver.kafka.move_as_another(P0, (4, 0))
    driver.ticks(4)
    moved = sorted(driver.kafka.reassignments.keys() - ({P0} if waits else set()))
    for tp in moved:
        driver.kafka.sizes[tp][2] = 100
    driver.tick()
    verdict, snapshot = driver.verdicts["a"], driver.kafka.snapshot()
    summary = report(verdict, snapshot, [(0.0, 0), (10.0, 100)], driver.time).summary or ""
    assert summary.endswith(left)


def test_an_estimate_too_far_in_the_future_is_omitted() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert completion_time(7200, 1, now) == datetime(2026, 1, 1, 2, tzinfo=UTC)
    assert completion_time(10**15, 1, now) is None
