"""Lists that messages cut short."""

from __future__ import annotations

from reassign.text import listed


def test_listed_names_all_items_up_to_the_limit() -> None:
    assert listed([]) == ""
    assert listed([1, 2, 3, 4, 5]) == "1, 2, 3, 4, 5"


def test_listed_counts_the_items_beyond_the_limit() -> None:
    assert listed(range(6)) == "0, 1, 2, 3, 4 and 1 more"
    assert listed("abc", most=1, separator="; ") == "a and 2 more"


def test_listed_counts_items_that_are_not_given() -> None:
    assert listed(["a"], 1) == "a"
    assert listed(["a"], 3) == "a and 2 more"
