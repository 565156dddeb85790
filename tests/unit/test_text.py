"""Lists that messages cut short, numbers of things, plurals, and what pydantic says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import ValidationError

from reassign.api.partition_reassignment import PartitionReassignment
from reassign.text import counted, listed, named_brokers, own_words, plural


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


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([3], "broker 3 is"),
        ([2, 1], "brokers 1 and 2 are"),
        ([3, 1, 2], "brokers 1, 2 and 3 are"),
        (range(20), f"brokers {', '.join(map(str, range(19)))} and 19 are"),
        (range(23), f"brokers {', '.join(map(str, range(20)))} and 3 more are"),
    ],
)
def test_brokers_are_named_in_order_and_agree_with_the_verb(ids: Iterable[int], said: str) -> None:
    assert named_brokers(ids, "is") == said
    assert named_brokers(ids) == said.removesuffix(" is").removesuffix(" are")


def test_words_are_plural_for_all_numbers_but_one() -> None:
    assert [plural(range(number), "it", "them") for number in (1, 2, 0)] == ["it", "them", "them"]


def test_no_words_of_pydantic_reach_a_user() -> None:
    wrong: dict[str, Any] = {
        "apiVersion": [],
        "metadata": {"name": 1, "namespace": "A"},
        "spec": {
            "clusterRef": {},
            "partitions": [
                {"topic": "a b", "partition": -1, "replicas": []},
                {"topic": "", "partition": "x", "replicas": [1.5, 2**40], "logDirs": ["here"]},
                {"topic": "t" * 250, "partition": 0, "replicas": 1, "expectedReplicas": list(range(17))},
                7,
            ],
            "throttle": "fast",
            "mode": "Perhaps",
            "suspend": "perhaps",
            "deadlineSeconds": 0,
        },
        "status": {"completionTime": "yesterday", "conditions": [{"type": "-"}]},
    }
    with pytest.raises(ValidationError) as raised:
        PartitionReassignment.parse(wrong)
    found = {error["msg"]: own_words(error["msg"]) for error in raised.value.errors()}
    assert len(found) > 12
    assert [theirs for theirs, ours in found.items() if re.search("nput|[Ss]hould|String|Tuple|Field", ours)] == []
