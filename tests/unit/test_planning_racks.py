"""Racks, paths of racks and brokers without one, read as nested groups; and what counts as spread over them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import Awareness
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import UNKNOWN, Ints, PlacementGoal
from reassign.planning.problem.problem import pose
from reassign.planning.problem.racks import levels
from tests.spread import spread
from tests.unit.planner_clusters import cluster

FOUR = ["/a/1", "/a/2", "/b/1", "/b/2"]

name = st.sampled_from("abc")
paths = st.lists(name, max_size=3).map(lambda names: "".join(f"/{n}" for n in names))
racks_of_brokers = st.lists(paths, min_size=1, max_size=9)


def grouped(racks: list[str], awareness: Awareness = Awareness.TREE) -> list[list[int]]:
    return levels(racks, awareness, range(1, len(racks) + 1)).tolist()


def test_a_path_has_a_level_for_each_of_its_names() -> None:
    assert grouped(FOUR) == [[0, 0, 1, 1], [0, 1, 2, 3]]


def test_the_same_name_under_another_parent_is_another_rack() -> None:
    assert grouped(["/b/x", "/a/x"]) == [[1, 0], [1, 0]]


def test_plain_names_are_one_level() -> None:
    assert grouped(["r2", "r1", "r2"]) == [[1, 0, 1]]


def test_brokers_without_a_rack_are_children_of_the_root_each_by_itself() -> None:
    assert grouped(["", "/a/1", "", "/a/1"]) == [[1, 0, 2, 0], [1, 0, 2, 0]]


def test_brokers_of_an_inner_node_are_children_of_it_each_by_itself() -> None:
    assert grouped(["/a", "/a/1", "/a", "/a/1", "/b"]) == [[0, 0, 0, 0, 1], [1, 0, 2, 0, 3]]


def test_flat_takes_a_path_for_a_name_and_reads_nothing_in_it() -> None:
    assert grouped(["/a/1", "//", "/a/1", "r1", ""], Awareness.FLAT) == [[1, 0, 1, 2, 3]]


def test_without_awareness_or_without_any_rack_there_is_no_level() -> None:
    assert levels(["/a", "b", "//"], Awareness.NONE, [1, 2, 3]).shape == (0, 3)
    assert levels(["", ""], Awareness.TREE, [1, 2]).shape == (0, 2)


@pytest.mark.parametrize("rack", ["/", "//a", "/a/", "/a//b", "/ /b", "/a/ b", "/a\t/b", " ", " a", "a "])
def test_a_rack_that_cannot_be_read_is_refused_with_its_broker(rack: str) -> None:
    with pytest.raises(PlanningError) as refused:
        levels(["/a/1", rack, "/b"], Awareness.TREE, [10, 11, 12])
    assert refused.value.reason is Reason.INVALID_RACKS
    assert f"{rack!r} of broker 11)" in refused.value.message


def test_a_rack_path_that_is_too_long_is_refused_with_its_broker() -> None:
    assert levels(["/a" * 11, "/b"], Awareness.TREE, [1, 2]).shape == (11, 2)
    with pytest.raises(PlanningError, match=r"more than 11 names .*of broker 1") as refused:
        levels(["/a" * 12, "/b"], Awareness.TREE, [1, 2])
    assert refused.value.reason is Reason.INVALID_RACKS


def test_paths_beside_plain_names_are_refused_with_the_brokers_of_both() -> None:
    with pytest.raises(PlanningError) as refused:
        levels(["/a", "b", "", "/c/d"], Awareness.TREE, [1, 2, 3, 4])
    assert refused.value.reason is Reason.INVALID_RACKS
    assert "paths ('/a' of broker 1, '/c/d' of broker 4)" in refused.value.message
    assert "plain names ('b' of broker 2)" in refused.value.message


def test_of_many_brokers_some_are_named_and_the_others_counted() -> None:
    with pytest.raises(PlanningError, match="of broker 4 and 295 more"):
        levels(["/"] * 300, Awareness.TREE, range(300))


@given(racks_of_brokers)
def test_groups_are_dense_and_nested_and_in_the_order_of_their_parents(racks: list[str]) -> None:
    groups = levels(racks, Awareness.TREE, range(len(racks)))
    above = np.zeros(len(racks), np.int32)
    for level in groups:
        assert sorted(set(level.tolist())) == list(range(level.max() + 1))
        parents = [{int(p) for p in above[level == g]} for g in range(level.max() + 1)]
        assert [p for one in parents for p in one] == sorted(p for one in parents for p in one)
        assert all(len(one) == 1 for one in parents)
        above = level


@given(racks_of_brokers, st.randoms(use_true_random=False))
def test_the_order_in_which_brokers_come_changes_nothing(racks: list[str], random: Random) -> None:
    order = list(range(len(racks)))
    random.shuffle(order)
    shuffled = levels([racks[i] for i in order], Awareness.TREE, order)
    assert (shuffled == levels(racks, Awareness.TREE, range(len(racks)))[:, order]).all()


def one_is_spread(groups: Ints, replicas: list[int], usable: Collection[int] | None = None) -> bool:
    mask = None if usable is None else np.isin(np.arange(groups.shape[1]), list(usable))
    return bool(spread(groups, np.array([replicas], np.int32), mask)[0])


@pytest.mark.parametrize(
    ("replicas", "is_spread"),
    [
        ([0, 2], True),
        ([0, 1], False),  # both in /a
        ([0, 2, 1], True),
        ([0, 1, 2, 3], True),
        ([0, UNKNOWN, UNKNOWN], True),
        ([0, 0], False),  # twice on a broker
        ([], True),
    ],
)
def test_replicas_are_spread_when_siblings_differ_by_at_most_one(replicas: list[int], is_spread: bool) -> None:
    assert one_is_spread(levels(FOUR, Awareness.TREE, range(4)), replicas) is is_spread


def test_deeper_levels_count_as_well() -> None:
    groups = levels(["/a/1", "/a/1", "/a/2", "/b/1", "/b/1"], Awareness.TREE, range(5))
    assert one_is_spread(groups, [0, 2, 3])
    assert not one_is_spread(groups, [0, 1, 3])


def test_a_subtree_with_fewer_brokers_than_its_share_takes_what_it_can() -> None:
    groups = levels(["/a", "/b", "/b", "/b", "/c"], Awareness.TREE, range(5))
    assert one_is_spread(groups, [0, 1, 2, 4])
    assert one_is_spread(groups, [0, 1, 2, 3, 4])
    assert not one_is_spread(groups, [0, 1, 2])


def test_a_broker_that_is_not_usable_is_not_counted_as_left() -> None:
    groups = levels(["/a", "/b", "/b"], Awareness.TREE, range(3))
    assert not one_is_spread(groups, [1, 2])
    assert one_is_spread(groups, [1, 2], usable=[1, 2])
    assert one_is_spread(groups, [1, 2], usable=[])


def test_without_levels_all_that_counts_is_that_no_broker_comes_twice() -> None:
    groups = levels(FOUR, Awareness.NONE, range(4))
    assert spread(groups, np.array([[0, 1, -1], [2, 1, 2], [3, 1, 0]], np.int32)).tolist() == [True, False, True]
    assert spread(groups, np.empty((0, 3), np.int32)).tolist() == []


def by_definition(groups: Ints, replicas: Collection[int], usable: Collection[int]) -> bool:
    path = [tuple(map(int, column)) for column in groups.T]
    nodes = {p[: n + 1] for p in path for n in range(len(p))}
    has = {node: sum(path[b][: len(node)] == node for b in replicas) for node in nodes}
    room = {node: any(path[b][: len(node)] == node for b in usable if b not in replicas) for node in nodes}
    return not any(
        has[one] > has[other] + 1 and room[other] for one in nodes for other in nodes if one[:-1] == other[:-1]
    )


@given(racks_of_brokers, st.data())
def test_spread_equals_its_definition_for_every_choice_of_brokers(racks: list[str], data: st.DataObject) -> None:
    brokers = range(len(racks))
    groups = levels(racks, Awareness.TREE, brokers)
    usable = data.draw(st.sets(st.sampled_from(brokers)))
    choices = list(combinations(brokers, data.draw(st.integers(1, len(racks)))))
    found = spread(groups, np.array(choices, np.int32), np.isin(brokers, list(usable)))
    assert found.tolist() == [by_definition(groups, replicas, usable) for replicas in choices]


@given(racks_of_brokers, st.data())
def test_some_choice_of_brokers_is_always_spread(racks: list[str], data: st.DataObject) -> None:
    groups = levels(racks, Awareness.TREE, range(len(racks)))
    choices = list(combinations(range(len(racks)), data.draw(st.integers(1, len(racks)))))
    assert spread(groups, np.array(choices, np.int32)).any()


def test_many_partitions_are_judged_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.spread.AT_ONCE", 8)  # two partitions of four brokers
    replicas = np.array([[0, 2], [0, 1], [1, 1], [3, 1], [2, 3]], np.int32)
    assert spread(levels(FOUR, Awareness.TREE, range(4)), replicas).tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("racks", [("/a//1", "/b", "/c"), ("/a", "b", "/c"), ("/a" * 12, "/b", "/c")])
def test_racks_that_cannot_be_read_are_refused_in_the_words_of_a_resource(racks: tuple[str, ...]) -> None:
    with pytest.raises(PlanningError) as refused:
        pose(cluster([[0, 1]], racks=racks), PlacementGoal())
    assert refused.value.message.endswith("or use `racks: {awareness: Flat}`")


SOME = ("a", "b", "", "")


@pytest.mark.parametrize("awareness", [Awareness.TREE, Awareness.FLAT])
def test_a_broker_without_a_rack_beside_others_is_refused(awareness: Awareness) -> None:
    with pytest.raises(PlanningError) as refused:
        pose(cluster([[0, 1]], racks=SOME), PlacementGoal(awareness=awareness))
    assert refused.value.reason is Reason.INVALID_RACKS
    assert "brokers 102 and 103 have no rack" in refused.value.message
    assert "`racks: {awareness: None}`" in refused.value.message


@pytest.mark.parametrize(
    ("racks", "dead", "goal"),
    [
        (SOME, (), PlacementGoal(awareness=Awareness.NONE)),
        (SOME, (2, 3), PlacementGoal()),
        (SOME, (2,), PlacementGoal(drain=frozenset({103}))),
        (SOME, (), PlacementGoal(brokers=frozenset({100, 101}))),
        (SOME, (), PlacementGoal(brokers=frozenset({102, 103}))),
        (SOME, (0, 1), PlacementGoal()),
        (("",) * 4, (), PlacementGoal()),
    ],
)
def test_racks_count_only_of_live_brokers_that_may_have_replicas(
    racks: tuple[str, ...], dead: tuple[int, ...], goal: PlacementGoal
) -> None:
    assert pose(cluster([[0, 2]], racks=racks, dead=dead), goal).movable.all()
