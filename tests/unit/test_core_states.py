"""The states of a partition: every transition is taken, any other one is noticed, and old records are read."""

from __future__ import annotations

from collections import Counter

import pytest

from reassign.api.partition_reassignment import RecordPartition, RecordState, RecordTopic
from reassign.core.model.record import Entry, read_record, write_record
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import ACTIVE, ENDED, TRANSITIONS, State
from reassign.errors import Reason
from tests.benchmarks.histories import History
from tests.unit import stages
from tests.unit.log_dirs import P0, asking, with_dirs
from tests.unit.sim import SimKafka, drive, resource, states

SEEDS = (3, 9, 43, 60, 112, 150, 205)
"""Histories that together take every transition but those that have a test of their own."""
ON_THEIR_OWN = {
    (State.SUBMITTING, State.RESTORING),
    (State.SUBMITTING, State.SETTLING),
    (State.IN_FLIGHT, State.SETTLING),
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Counter[stages.Pair]:
    """The transitions that are taken in a test."""
    seen: Counter[stages.Pair] = Counter()
    monkeypatch.setattr(stages, "SEEN", seen)
    return seen


def test_every_transition_of_the_table_is_taken(taken: Counter[stages.Pair]) -> None:
    for seed in SEEDS:
        assert [line for line in History(seed).lived() if "raised" in line] == []
    assert taken.keys() == {(was, now) for was, after in TRANSITIONS.items() for now in after} - ON_THEIR_OWN


def test_an_alter_that_never_landed_restores_a_changed_order(taken: Counter[stages.Pair]) -> None:
    for seconds in range(100):  # the deletion is seen in the reconciliation in which metadata has just settled
        driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
        driver.tick(die_after=0)
        driver.kafka.replicas[P0] = (3, 2, 1)
        driver.ticks(seconds)
        driver.delete("a")
        driver.ticks(100)
        assert driver.kafka.replicas[P0] == (1, 2, 3)
        assert driver.gone == {"a"}
        if (State.SUBMITTING, State.RESTORING) in taken:
            return
    raise AssertionError("never taken")


@pytest.mark.parametrize("before", [State.SUBMITTING, State.IN_FLIGHT])
def test_an_entry_without_its_log_dirs_only_waits_to_be_in_sync(taken: Counter[stages.Pair], before: State) -> None:
    driver = asking((0, 1), ("/b", "any"))
    driver.tick(lose_answers=True)
    if before is State.IN_FLIGHT:
        driver.ticks(8)
    driver.kafka.isr[P0] = frozenset({0})
    assert driver.resources["a"].record[P0].state is before
    driver.resources["a"] = with_dirs(driver.resources["a"], None)
    driver.ticks(40)
    assert taken[before, State.SETTLING] == 1
    assert states(driver) == {P0: "InFlight"}
    driver.kafka.isr[P0] = frozenset({0, 1})
    driver.ticks(2)
    assert states(driver) == {P0: "Completed"}


@pytest.mark.parametrize("state", State)
def test_a_transition_that_the_table_lacks_is_noticed(state: State) -> None:
    for other in (*State, None):
        if other not in TRANSITIONS[state] and other is not state:
            with pytest.raises(AssertionError, match=f"from {state} to {other}"):
                stages.assert_taken("a stage", {P0: state}, {P0: other})


def test_a_record_has_every_state_but_restoring() -> None:
    assert {State(state) for state in RecordState} == set(State) - {State.RESTORING}
    assert frozenset(State) == ACTIVE | ENDED


@pytest.mark.parametrize(
    ("state", "target", "reason", "now"),
    [
        ("Cancelling", (4, 2, 3), Reason.SUPERSEDING, State.SUPERSEDING),
        ("Cancelling", (4, 2, 3), Reason.ORDER_UNKNOWN, State.CANCELLING),
        ("InFlight", (1, 2, 3), None, State.SETTLING),
        ("InFlight", (1, 2, 3), Reason.ORDER_UNKNOWN, State.IN_FLIGHT),
        ("InFlight", (3, 2, 1), None, State.IN_FLIGHT),
    ],
)
def test_states_that_had_no_name_are_read(
    state: str, target: tuple[int, ...], reason: Reason | None, now: State
) -> None:
    partition = RecordPartition(
        partition=0, original_replicas=(1, 2, 3), target_replicas=target, state=RecordState(state), reason=reason
    )
    record = read_record([RecordTopic(topic="orders", topic_id="id", partitions=(partition,))])
    assert record[TopicPartition("orders", 0)].state is now
    assert read_record(write_record(record)) == record


def test_a_copy_between_directories_in_flight_is_not_settling() -> None:
    entry = Entry("id", (1, 2), (1, 2), State.IN_FLIGHT, log_dirs=((1, "/b"),))
    assert read_record(write_record({P0: entry}))[P0].state is State.IN_FLIGHT
