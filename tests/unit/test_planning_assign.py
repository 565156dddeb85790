"""Assignments by the rings of KIP-879: how evenly they spread, and that what is there stays when replicas are added."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import ceil, floor
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.goal import Awareness
from reassign.errors import PlanningError, Reason
from reassign.planning.assign import add_replicas, assign
from reassign.planning.problem.model import UNKNOWN
from reassign.planning.problem.racks import levels
from tests.spread import spread
from tests.unit.examples import examples

Nodes = dict[int, str]

FOUR = {1: "/a/1", 2: "/a/2", 3: "/b/1", 4: "/b/2"}
FIRST = None  # every ring begins at its first child

name = st.sampled_from("abc")
racks = st.lists(name, max_size=3).map(lambda names: "".join(f"/{n}" for n in names))
some_nodes = st.lists(racks, min_size=1, max_size=12).map(lambda racks: {7 * i: rack for i, rack in enumerate(racks)})
seeds = st.none() | st.integers(0, 2**32)


def are_spread(assignment: np.ndarray, nodes: Nodes) -> list[bool]:
    ids = sorted(nodes)
    groups = levels([nodes[b] for b in ids], Awareness.TREE, ids)
    return spread(groups, np.searchsorted(ids, assignment).astype(np.int32)).tolist()


def shares(members: dict[int, tuple[str, ...]], share: Fraction) -> Iterator[tuple[set[int], Fraction]]:
    """Each node of the tree as the brokers below it, with its fair share of what the root has to take.

    A node's share is divided evenly among its children, but that none gets more than it has brokers.
    """
    yield set(members), share
    if len(members) == 1:
        return
    children: dict[str | int, dict[int, tuple[str, ...]]] = {}
    for b, path in members.items():
        children.setdefault(path[0] if path else b, {})[b] = path[1:]
    left = sorted(children.values(), key=len)
    while left:
        child = left.pop(0)
        part = min(Fraction(len(child)), share / (len(left) + 1))
        share -= part
        yield from shares(child, part)


def shares_of(nodes: Nodes, replication_factor: int) -> list[tuple[set[int], Fraction]]:
    members = {b: tuple(rack.split("/")[1:]) for b, rack in nodes.items()}
    return list(shares(members, Fraction(replication_factor)))


def test_the_worked_example_walks_the_rings_and_resumes_there() -> None:
    made = assign(2, 3, FOUR, False, FIRST)
    assert made.tolist() == [[1, 3, 2], [4, 1, 3]]
    assert add_replicas(made[:1], 4, FOUR, False, FIRST).tolist() == [[1, 3, 2, 4]]
    assert add_replicas(made, 4, FOUR, False, FIRST).tolist() == [[1, 3, 2, 4], [4, 1, 3, 2]]


@examples(500)
@given(some_nodes, st.integers(1, 40), seeds, st.data())
def test_every_node_has_its_rounded_share_of_any_run_of_partitions(
    nodes: Nodes, partitions: int, seed: int | None, data: st.DataObject
) -> None:
    replication_factor = data.draw(st.integers(1, len(nodes)))
    made = assign(partitions, replication_factor, nodes, False, seed)
    begin = data.draw(st.integers(0, partitions - 1))
    end = data.draw(st.integers(begin + 1, partitions))
    for members, share in shares_of(nodes, replication_factor):
        got = np.isin(made, list(members)).sum(axis=1)
        assert floor(share) <= got.min() <= got.max() <= ceil(share)
        for run in (got, got[begin:end]):
            assert floor(len(run) * share) <= run.sum() <= ceil(len(run) * share)


@examples(200)
@given(some_nodes, seeds, st.data())
def test_no_broker_comes_twice_and_the_replicas_are_spread_at_every_level(
    nodes: Nodes, seed: int | None, data: st.DataObject
) -> None:
    made = assign(20, data.draw(st.integers(1, len(nodes))), nodes, False, seed)
    assert all(len(set(row)) == len(row) and set(row) <= set(nodes) for row in made.tolist())
    assert are_spread(made, nodes) == [True] * 20


@examples(200)
@given(some_nodes, seeds, st.data())
def test_raising_the_replication_factor_moves_nothing_and_stays_spread(
    nodes: Nodes, seed: int | None, data: st.DataObject
) -> None:
    before = data.draw(st.integers(1, len(nodes)))
    after = data.draw(st.integers(before, len(nodes)))
    made = assign(10, before, nodes, False, seed)
    raised = add_replicas(made, after, nodes, False, seed)
    assert raised.shape == (10, after)
    assert (raised[:, :before] == made).all()
    assert are_spread(raised, nodes) == [True] * 10


@examples(200)
@given(some_nodes, seeds, st.data())
def test_a_partition_that_is_raised_gets_what_it_would_have_got_at_once(
    nodes: Nodes, seed: int | None, data: st.DataObject
) -> None:
    before = data.draw(st.integers(1, len(nodes)))
    after = data.draw(st.integers(before, len(nodes)))
    raised = add_replicas(assign(1, before, nodes, False, seed), after, nodes, False, seed)
    assert raised.tolist() == assign(1, after, nodes, False, seed).tolist()


@examples(100)
@given(st.lists(racks, min_size=1, max_size=8), st.randoms(use_true_random=False), seeds, st.data())
def test_replicas_that_came_from_elsewhere_stay_as_spread_as_they_were(
    racks: list[str], random: Random, seed: int | None, data: st.DataObject
) -> None:
    nodes = dict(enumerate(racks))
    choices = np.array(list(combinations(nodes, data.draw(st.integers(1, len(nodes))))), np.int32)
    lie_well = choices[are_spread(choices, nodes)]
    there = np.array([random.sample(row, len(row)) for row in lie_well.tolist()], np.int32)
    raised = add_replicas(there, len(nodes), nodes, False, seed)
    for replication_factor in range(there.shape[1], len(nodes) + 1):
        assert all(are_spread(raised[:, :replication_factor], nodes))


def test_badly_spread_replicas_stay_and_new_ones_go_where_fewest_are() -> None:
    nodes = {1: "/a", 2: "/a", 3: "/a", 4: "/b", 5: "/c"}
    assert add_replicas(np.array([[1, 2]], np.int32), 4, nodes, False, FIRST).tolist() == [[1, 2, 4, 5]]
    assert add_replicas(np.array([[5, 2, 1]], np.int32), 4, nodes, False, FIRST).tolist() == [[5, 2, 1, 4]]


def test_each_partition_resumes_where_it_left_the_rings() -> None:
    nodes = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c", 7: "d", 8: "d"}
    made = assign(2, 2, nodes, False, FIRST)
    assert made.tolist() == [[1, 3], [5, 7]]
    assert add_replicas(made, 3, nodes, False, FIRST).tolist() == [[1, 3, 5], [5, 7, 2]]
    one_each = assign(2, 1, nodes, False, FIRST)
    assert add_replicas(one_each, 3, nodes, False, FIRST).tolist() == [[1, 3, 5], [3, 5, 7]]


def test_a_replica_added_to_one_partition_leaves_the_next_rings_alone() -> None:
    nodes = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    made = np.array([[1, 3], [2, 4]], np.int32)
    assert add_replicas(made, 3, nodes, False, FIRST).tolist() == [[1, 3, 5], [2, 4, 5]]


@examples(200)
@given(some_nodes, st.integers(1, 40), seeds, st.data())
def test_a_raised_topic_loads_brokers_within_their_windows_on_the_rings(
    nodes: Nodes, partitions: int, seed: int | None, data: st.DataObject
) -> None:
    one_replica = shares_of(nodes, 1)
    after = data.draw(st.integers(1, floor(min(1 / share for members, share in one_replica if len(members) == 1))))
    before = data.draw(st.integers(1, after))
    raised = add_replicas(assign(partitions, before, nodes, False, seed), after, nodes, False, seed)
    for members, share in one_replica:
        visits = (partitions * before + after - before) * share
        assert np.isin(raised, list(members)).sum() <= ceil(Fraction(after, before)) * ceil(visits)


@examples(300)
@given(some_nodes, st.integers(1, 60), seeds, st.data())
def test_no_broker_leads_much_more_than_the_least_possible(
    nodes: Nodes, partitions: int, seed: int | None, data: st.DataObject
) -> None:
    made = assign(partitions, data.draw(st.integers(1, len(nodes))), nodes, False, seed).tolist()
    for first in range(max(1, partitions - len(nodes) + 1)):
        run = made[first : first + len(nodes)]
        most = max(Counter(row[0] for row in run).values())
        assert most <= 2 or most <= least_possible_maximum(run) + 1


def least_possible_maximum(rows: list[list[int]]) -> int:
    """The most partitions that a broker leads when leaders are spread as evenly as these replicas allow (matching)."""
    for most in range(1, len(rows) + 1):
        leads: dict[int, list[int]] = {b: [] for row in rows for b in row}

        def placed(p: int, seen: set[int], most: int = most, leads: dict[int, list[int]] = leads) -> bool:
            for b in set(rows[p]) - seen:
                seen.add(b)
                if len(leads[b]) < most:
                    leads[b].append(p)
                    return True
                for q in leads[b].copy():
                    if placed(q, seen):
                        leads[b][leads[b].index(q)] = p
                        return True
            return False

        if all(placed(p, set()) for p in range(len(rows))):
            return most
    raise AssertionError("each partition can be led by a broker of its own replicas")


@pytest.mark.parametrize(
    ("racks", "replication_factor", "most"),
    [
        (["a", "b", "c"], 3, 4),
        (["a", "b", "c", "a", "b", "c"], 3, 2),
        (["a", "b", "c", "a", "b", "c"], 2, 2),
        ([""] * 6, 3, 2),
        (["a", "b", "b", "b"], 2, 3),
        (["a", "b", "b", "b"], 1, 6),
    ],
)
def test_twelve_partitions_are_led_as_evenly_as_can_be(racks: list[str], replication_factor: int, most: int) -> None:
    leaders = assign(12, replication_factor, dict(enumerate(racks)), False, 7)[:, 0]
    assert np.bincount(leaders).max() == most


def test_a_third_lead_in_a_row_is_handed_over() -> None:
    nodes = dict(enumerate(RACKS_OF_A_THIRD_LEAD.split()))
    leaders = assign(100, 3, nodes, False, 901)[:, 0].tolist()
    runs = [leaders[first : first + len(nodes)] for first in range(100 - len(nodes) + 1)]
    assert max(max(Counter(run).values()) for run in runs) == 2


RACKS_OF_A_THIRD_LEAD = "/b /b/b /a/b /a/c/b /b/b/a /c /c/b /c/a/a /a /a/a/b /a"


@examples(100)
@given(some_nodes, st.randoms(use_true_random=False), seeds, st.data())
def test_raising_goes_on_from_the_rings_whoever_leads(
    nodes: Nodes, random: Random, seed: int | None, data: st.DataObject
) -> None:
    before = data.draw(st.integers(1, len(nodes)))
    after = data.draw(st.integers(before, len(nodes)))
    made = assign(10, before, nodes, False, seed)
    led_otherwise = np.array([random.sample(row, len(row)) for row in made.tolist()], np.int32)
    raised = add_replicas(made, after, nodes, False, seed)
    assert (add_replicas(led_otherwise, after, nodes, False, seed)[:, before:] == raised[:, before:]).all()


def test_partitions_with_fewer_replicas_than_others_are_filled_up() -> None:
    made = np.array([[1, 3, 2], [4, UNKNOWN, UNKNOWN]], np.int32)
    assert add_replicas(made, 3, FOUR, False, FIRST).tolist() == [[1, 3, 2], [4, 1, 3]]


def test_each_broker_of_a_rack_smaller_than_its_share_has_every_partition() -> None:
    nodes = {1: "/a", 2: "/b", 3: "/b", 4: "/b", 5: "/c", 6: "/c", 7: "/c"}
    made = assign(30, 4, nodes, False, 1)
    count = {b: int((made == b).sum()) for b in nodes}
    assert count == {1: 30, 2: 15, 3: 15, 4: 15, 5: 15, 6: 15, 7: 15}


def test_brokers_without_a_rack_are_taken_as_racks() -> None:
    nodes = {1: "/a/1", 2: "/a/2", 3: "", 4: ""}
    assert assign(2, 3, nodes, False, FIRST).tolist() == [[1, 3, 4], [2, 3, 4]]


def test_flat_takes_each_path_for_one_rack_of_its_own() -> None:
    assert assign(2, 2, FOUR, False, FIRST, Awareness.FLAT).tolist() == [[1, 2], [3, 4]]
    assert assign(2, 2, FOUR, False, FIRST, Awareness.TREE).tolist() == [[1, 3], [2, 4]]
    mixed = {1: "/a", 2: "b", 3: "b"}
    assert assign(2, 2, mixed, False, FIRST, Awareness.FLAT).tolist() == [[1, 2], [3, 1]]


def test_simple_assignment_is_the_table_in_kafkas_own_documentation() -> None:
    # AdminUtils: ten partitions of three replicas on five brokers
    made = assign(10, 3, dict.fromkeys(range(5), ""), True, FIRST)
    assert made[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert made[:, 1].tolist() == [1, 2, 3, 4, 0, 2, 3, 4, 0, 1]
    assert made[:, 2].tolist() == [2, 3, 4, 0, 1, 3, 4, 0, 1, 2]


@given(st.integers(1, 9), st.integers(1, 40), seeds, st.data())
def test_simple_assignment_follows_kafkas_formula(
    n: int, partitions: int, seed: int | None, data: st.DataObject
) -> None:
    replication_factor = data.draw(st.integers(1, n))
    made = assign(partitions, replication_factor, dict.fromkeys(range(n), "/no path/"), True, seed).tolist()

    def by_formula(start: int, shift: int) -> list[list[int]]:
        return [
            [(p + start) % n]
            + [(p + start + 1 + (shift + p // n + j) % (n - 1)) % n for j in range(replication_factor - 1)]
            for p in range(partitions)
        ]

    assert made in ([by_formula(0, 0)] if seed is None else [by_formula(made[0][0], shift) for shift in range(n)])


@given(st.integers(1, 9), seeds, st.data())
def test_raising_a_simple_assignment_gives_what_kafka_assigns_at_once(
    n: int, seed: int | None, data: st.DataObject
) -> None:
    nodes = dict.fromkeys(range(n), "")
    before = data.draw(st.integers(1, n))
    after = data.draw(st.integers(before, n))
    raised = add_replicas(assign(30, before, nodes, True, seed), after, nodes, True, seed)
    assert raised.tolist() == assign(30, after, nodes, True, seed).tolist()


def test_awareness_none_is_simple_assignment_and_reads_no_rack() -> None:
    nodes = {1: "/", 2: "//", 3: "a"}
    assert assign(9, 2, nodes, False, 5, Awareness.NONE).tolist() == assign(9, 2, nodes, True, 5).tolist()


def test_seeds_let_the_rings_begin_at_any_child() -> None:
    assert {int(assign(1, 1, FOUR, False, seed)[0, 0]) for seed in range(50)} == set(FOUR)
    assert {int(assign(1, 1, FOUR, True, seed)[0, 0]) for seed in range(50)} == set(FOUR)


DIGEST = """
from hashlib import sha256
from reassign.planning.assign import assign
nodes = {b: f"/d{b % 3}/r{b % 7}" if b % 5 else "" for b in NODES}
print(sha256(assign(500, 4, nodes, False, 42).tobytes() + assign(500, 4, nodes, True, 42).tobytes()).hexdigest())
"""


def test_a_seed_gives_the_same_bytes_in_any_process_and_order_of_nodes() -> None:
    def digest(hash_seed: str, nodes: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST.replace("NODES", nodes)], env=env, capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    assert digest("1", "range(40)") == digest("2", "reversed(range(40))")


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "nodes", "reason", "says"),
    [
        (0, 3, FOUR, Reason.INVALID_GOAL, "0 partitions"),
        (1, 0, FOUR, Reason.INVALID_GOAL, "0 replicas"),
        (1, 1, {}, Reason.INVALID_GOAL, "no broker"),
        (1, 5, FOUR, Reason.NOT_ENOUGH_BROKERS, "5 replicas need as many brokers, and there are 4"),
        (1, 1, {1: "/a", 2: "b"}, Reason.INVALID_RACKS, "'b' of broker 2"),
    ],
)
def test_what_cannot_be_assigned_is_refused(
    partitions: int, replication_factor: int, nodes: Nodes, reason: Reason, says: str
) -> None:
    with pytest.raises(PlanningError, match=says) as refused:
        assign(partitions, replication_factor, nodes, False, 0)
    assert refused.value.reason is reason


@pytest.mark.parametrize(
    ("row", "says"), [([1, 2, 3], "partition 0 has 3 replicas, more than 2"), ([9], "partition 0 .* on broker 9")]
)
def test_a_partition_with_more_or_unknown_replicas_cannot_be_raised(row: list[int], says: str) -> None:
    with pytest.raises(PlanningError, match=says) as refused:
        add_replicas(np.array([row], np.int32), 2, FOUR, False, 0)
    assert refused.value.reason is Reason.INVALID_GOAL
