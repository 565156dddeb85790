"""A record in parts: what a change writes, and that nothing is lost between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reassign.api.limits import MAX_PART_PARTITIONS
from reassign.core.model.record import Entry, Record, spread
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State

SUBMITTING = Entry("id", (0, 1), (2, 1), State.SUBMITTING)


def entries(*numbers: int) -> dict[TopicPartition, Entry]:
    return {TopicPartition("orders", number): SUBMITTING for number in numbers}


def test_a_change_touches_the_part_of_its_entry_alone() -> None:
    record = entries(*range(250))
    parts = spread(record, {})
    assert [len(part) for part in parts.values()] == [100, 100, 50]
    moved = TopicPartition("orders", 120)
    after = spread({**record, moved: SUBMITTING.to(State.IN_FLIGHT)}, parts)
    assert [number for number in after if after[number] != parts[number]] == [1]


def test_a_part_that_was_lost_is_there_again() -> None:
    parts = spread(entries(*range(250)), {})
    del parts[1]
    left: Record = {**parts[0], **parts[2]}
    assert spread(left, parts) == {0: parts[0], 1: {}, 2: parts[2]}


numbers = st.sets(st.integers(0, 40), max_size=30)


@given(st.lists(numbers, min_size=1, max_size=6))
def test_parts_hold_the_record_whole_and_each_entry_stays_where_it_is(steps: list[set[int]]) -> None:
    parts: dict[int, Record] = {}
    places: dict[TopicPartition, int] = {}
    for step in steps:
        record = entries(*(number * 37 for number in step))
        parts = spread(record, parts)
        found = {tp: number for number, part in parts.items() for tp in part}
        assert found.keys() == record.keys()
        assert all(found[tp] == number for tp, number in places.items() if tp in found)
        assert [*parts] == [*range(len(parts))]
        assert all(len(part) <= MAX_PART_PARTITIONS for part in parts.values())
        places = found
