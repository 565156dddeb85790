"""Intermediate replicas (KIP-236): which may go, what holds a partition up, and what going back throws away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.core.checks.in_sync import cancel_problem, droppable, holding_up
from reassign.core.model.snapshot import Broker, Partition
from reassign.core.report.events import cancellations
from tests.unit.sim import SimKafka, detail, drive, partitions, ready_reason, resource, true_conditions

P0, P1 = partitions(2)


def test_the_example_of_the_proposal() -> None:
    """[1,2] is reassigned to [2,3], and that is changed to [2,4]: 3 may go, 1 and 2 stay."""
    assert droppable((2, 3, 1), 1, frozenset({1, 2}), {1: 100, 2: 100, 3: 40}, top=2) == {3}


@pytest.mark.parametrize(
    ("assigned", "leader", "isr", "sizes", "top", "goes"),
    [
        ((1, 2, 3, 4), 4, {1, 2}, {}, 2, {2, 3}),
        ((1, 2, 3, 4), 1, {1}, {1: 100, 2: 10, 3: 90, 4: 50}, 3, {2}),
        ((1, 2, 3, 4), 1, {1}, {1: 100, 3: 90}, 2, {2, 4}),
        ((1, 2, 3), 1, {1, 2, 3}, {}, 3, set()),
        ((1, 2, 3), None, set(), {1: 5, 2: 7, 3: 6}, 1, {1, 3}),
    ],
    ids=[
        "the leader stays, in the ISR or not",
        "of those out of sync the one with the least lag stays",
        "a replica whose size is not known lags by the whole",
        "the bound counts what stays",
        "with no leader the largest is measured against",
    ],
)
def test_which_replicas_may_go(
    assigned: tuple[int, ...], leader: int | None, isr: set[int], sizes: dict[int, int], top: int, goes: set[int]
) -> None:
    assert droppable(assigned, leader, frozenset(isr), sizes, top) == goes


def test_no_replica_is_removed_from_an_original_below_min_isr() -> None:
    assert droppable((1, 2, 3), 1, frozenset({1, 2}), {}, top=2, min_insync_replicas=3) == frozenset()


@st.composite
def in_flight(draw: st.DrawFn) -> tuple[Partition, tuple[int, ...], int]:
    """A partition that is being moved, its originals, and min.insync.replicas."""
    assigned = tuple(draw(st.permutations(range(8)))[: draw(st.integers(2, 8))])
    original = assigned[: draw(st.integers(1, len(assigned)))]
    isr = draw(st.sets(st.sampled_from(assigned), min_size=1))
    leader = draw(st.sampled_from(sorted(isr)))
    return Partition(assigned, frozenset(isr), leader), original, draw(st.integers(1, 3))


@given(in_flight(), st.dictionaries(st.integers(0, 8), st.integers(0, 100)))
def test_the_leader_stays_and_the_isr_stays_at_the_minimum(
    case: tuple[Partition, tuple[int, ...], int], sizes: dict[int, int]
) -> None:
    partition, original, required = case
    goes = droppable(partition.replicas, partition.leader, partition.isr, sizes, len(original), required)
    assert partition.leader not in goes
    assert len(partition.isr - goes) >= min(required, len(partition.isr), len(original))
    assert len(partition.replicas) - len(goes) >= len(original)


@given(in_flight())
def test_going_back_is_safe_where_all_that_is_being_added_may_go(case: tuple[Partition, tuple[int, ...], int]) -> None:
    partition, original, required = case
    adding = set(partition.replicas) - set(original)
    goes = droppable(partition.replicas, partition.leader, partition.isr, {}, len(original))
    if adding <= goes and len(partition.isr) >= required:
        brokers = {b: Broker(b) for b in range(8)}
        assert cancel_problem(original, partition, required, brokers) is None
        assert not holding_up(partition, original, required)


def test_a_delayed_cancel_names_the_brokers_it_waits_for_and_keeps() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=2), resource({P0: (4, 5, 3)}))
    driver.ticks(3)
    driver.kafka.isr[P0] = frozenset({3, 4, 5})
    driver.kafka.leader[P0] = 3
    driver.delete("a")
    driver.tick()
    message = detail(driver, P0).message or ""
    assert "until brokers 1 and 2 are alive and in sync again" in message
    assert "until then brokers 4 and 5 must stay" in message


def test_a_change_in_flight_names_discarded_replicas_and_bytes() -> None:
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)})
    driver = drive(kafka, resource({P0: (4, 5, 3), P1: (4, 2, 3)}))
    driver.ticks(3)
    kafka.sizes = {P0: {1: 900, 2: 900, 3: 900, 4: 200, 5: 34}}
    driver.edit("a", {P0: (0, 5, 3), P1: (4, 2, 3)})
    before = driver.resources["a"].status
    driver.tick()
    shown = detail(driver, P0)
    assert (shown.state, shown.reason) == ("Cancelling", "Cancelling")
    assert "the cancel removes the replicas on brokers 4 and 5 and discards 230 B, which broker 5 copies again" in (
        shown.message or ""
    )
    [tell] = cancellations(before, driver.resources["a"].status)
    assert tell.reason == "MovesCancelled"
    assert tell.note == f"{P0}: {shown.message}"
    assert "Stalled" not in true_conditions(driver)


def test_a_deletion_of_a_removal_in_flight_discards_no_bytes() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (1, 2)}, replicationFactorChange="Allow"))
    driver.ticks(3)
    driver.delete("a")
    driver.tick()
    assert "nothing had to be copied" in (detail(driver, P0).message or "")


def test_a_refused_cancel_names_the_next_step_and_is_sent_again() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 5, 0)}))
    driver.ticks(3)
    driver.kafka.unsafe = {P0}
    driver.delete("a")
    driver.ticks(2)
    assert (true_conditions(driver).keys(), ready_reason(driver)) == ({"Reconciling"}, "CancelUnsafe")
    assert "Start brokers 1, 2 and 3" in (detail(driver, P0).message or "")
    driver.kafka.unsafe = set()
    driver.ticks(20)
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert driver.gone == {"a"}
