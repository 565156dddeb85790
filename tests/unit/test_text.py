"""Lists that messages cut short, and numbers of things."""

from __future__ import annotations

from reassign.text import counted, listed


def test_listed_names_all_items_up_to_the_limit() -> None:
    assert listed([]) == ""
    assert listed([1, 2, 3, 4, 5]) == "1, 2, 3, 4, 5"


def test_listed_counts_the_items_beyond_the_limit() -> None:
    assert listed(range(6)) == "0, 1, 2, 3, 4 and 1 more"
    assert listed("abc", most=1, separator="; ") == "a and 2 more"


def test_listed_counts_items_that_are_not_given() -> None:
    assert listed(["a"], 1) == "a"
    assert listed(["a"], 3) == "a and 2 more"


def test_one_thing_is_counted_in_the_singular() -> None:
    assert [counted(number, "partition") for number in (0, 1, 2)] == ["0 partitions", "1 partition", "2 partitions"]
