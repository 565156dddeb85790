"""Parts of the planner's kernel on their own, beside plainer code that does the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reassign.planning.kernel.rows import close_up, greatest_first

sizes = st.lists(st.integers(0, 3) | st.integers(0, 1 << 62), max_size=20)
rows = st.lists(st.lists(st.integers(-1, 3), min_size=4, max_size=4), min_size=1, max_size=5)


@given(sizes)
def test_partitions_are_sorted_by_size_and_by_number_among_equals(given_: list[int]) -> None:
    order = greatest_first(np.array(given_, np.int64))
    assert order.tolist() == sorted(range(len(given_)), key=lambda p: -given_[p])


@given(rows)
def test_what_a_row_holds_comes_to_its_front_in_its_order(given_: list[list[int]]) -> None:
    row = np.array(given_, np.int32)
    held = [[b for b in brokers if b >= 0] for brokers in given_]
    assert close_up(row) == max(map(len, held))
    assert row.tolist() == [brokers + [-1] * (4 - len(brokers)) for brokers in held]
