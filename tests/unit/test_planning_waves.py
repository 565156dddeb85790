"""A plan is split into as few waves as its caps allow, evenly over the brokers, whose barriers cost little."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.errors import PlanningError, Reason
from reassign.planning.problem.model import UNKNOWN, Bytes, Ints
from reassign.planning.waves.moves import Moves, moves_of
from reassign.planning.waves.split import Makespan, Waves, makespan, split


class Case(NamedTuple):
    current: Ints
    target: Ints
    sizes: Bytes

    @property
    def moves(self) -> Moves:
        return moves_of(*self, self.current >= 0)

    def split(self, max_partitions: int | None = None, max_bytes: int | None = None) -> Waves:
        return split(self.moves, max_partitions, max_bytes)

    def makespan(self, wave: Ints, rate: int) -> Makespan:
        return makespan(self.moves, wave, rate)


def case(*moves: tuple[list[int], list[int], int]) -> Case:
    """Partitions as old replicas, new replicas and size."""
    width = max(max(len(old), len(new)) for old, new, _ in moves)
    old, new = (
        np.array([row + [UNKNOWN] * (width - len(row)) for row in rows], np.int32)
        for rows in ([m[0] for m in moves], [m[1] for m in moves])
    )
    return Case(old, new, np.array([m[2] for m in moves], np.int64))


BROKERS = 6
replicas = st.lists(st.integers(0, BROKERS - 1), min_size=1, max_size=4, unique=True)
caps = st.none() | st.integers(1, 12)
byte_caps = st.none() | st.integers(1, 300)


@st.composite
def any_case(draw: st.DrawFn) -> Case:
    return case(*draw(st.lists(st.tuples(replicas, replicas, st.integers(0, 100)), min_size=1, max_size=40)))


@st.composite
def single_adds(draw: st.DrawFn) -> Case:
    """Each partition stays, changes its order, or has one replica replaced."""
    moves = []
    for old, size, kind in draw(
        st.lists(
            st.tuples(
                st.lists(st.integers(0, BROKERS - 1), min_size=2, max_size=3, unique=True), *[st.integers(0, 99)] * 2
            ),
            min_size=1,
            max_size=60,
        )
    ):
        new = old[::-1] if kind % 8 == 7 else old[:]
        if kind % 8 < 6:
            outside = [b for b in range(BROKERS) if b not in old]
            new[kind % len(new)] = outside[kind % len(outside)]
        moves.append((old, new, size))
    return case(*moves)


def degrees(case: Case, wave: Ints, number: int) -> tuple[Ints, Ints]:
    """Copies given and taken by each broker (ports) in each wave, counted apart from the code under test."""
    given_, taken = np.zeros((2, BROKERS, number), np.int32)
    for old, new, at in zip(case.current.tolist(), case.target.tolist(), wave.tolist(), strict=True):
        for broker in set(new) - set(old) - {UNKNOWN}:
            taken[broker, at] += 1
            given_[old[0], at] += 1
    return given_, taken


def copied(case: Case) -> Bytes:
    added = [len(set(n) - set(o) - {UNKNOWN}) for o, n in zip(case.current.tolist(), case.target.tolist(), strict=True)]
    return case.sizes * np.array(added)


@given(any_case(), caps, byte_caps)
def test_what_changes_is_in_one_wave_and_the_caps_hold(case: Case, max_partitions: int, max_bytes: int) -> None:
    waves = case.split(max_partitions, max_bytes)
    changed = np.array([o != n for o, n in zip(case.current.tolist(), case.target.tolist(), strict=True)])
    assert ((waves.wave != UNKNOWN) == changed).all()
    assert set(waves.wave[changed].tolist()) == set(range(waves.number))
    assert waves.bound <= waves.number
    for number in range(waves.number):
        those = waves.wave == number
        assert those.sum() <= (max_partitions or len(those))
        if max_bytes is not None and copied(case)[those].sum() > max_bytes:
            [alone] = np.flatnonzero(those)
            assert alone in waves.alone


@given(any_case(), caps)
def test_by_partitions_there_are_as_many_waves_as_the_bound(case: Case, max_partitions: int) -> None:
    waves = case.split(max_partitions)
    assert waves.number == waves.bound == -(-(waves.wave != UNKNOWN).sum() // (max_partitions or 1000))


@given(single_adds(), caps, byte_caps)
def test_each_broker_gives_and_takes_its_share_in_each_wave(case: Case, max_partitions: int, max_bytes: int) -> None:
    waves = case.split(max_partitions, max_bytes)
    together = waves.number - len(waves.alone)
    if together:
        wave = np.where(waves.wave >= 0, waves.wave - len(waves.alone), UNKNOWN)
        rest = Case(*(array[wave >= 0] for array in case))
        for counts in degrees(rest, wave[wave >= 0], together):
            assert (counts.max(axis=1) <= -(-counts.sum(axis=1) // together)).all()


@given(any_case(), caps, byte_caps)
def test_no_split_is_faster_than_the_busiest_broker(case: Case, max_partitions: int, max_bytes: int) -> None:
    waves = case.split(max_partitions, max_bytes)
    found = case.makespan(waves.wave, rate=1)
    assert found.seconds >= found.bound
    assert found.bound == case.makespan(np.minimum(waves.wave, 0), rate=1).seconds
    assert case.makespan(waves.wave, rate=2).seconds == found.seconds / 2


def test_a_wave_lasts_as_long_as_its_busiest_broker() -> None:
    """Broker 0 gives 10 in the first wave, then broker 4 takes 7; in one wave each had been busy for no longer."""
    moves = case(([0, 1], [2, 1], 10), ([3, 1], [4, 1], 7), ([1, 0], [0, 1], 99), ([5, 4], [5], 99))
    assert moves.makespan(np.array([0, 1, 0, 1], np.int32), rate=2) == ((5.0, 3.5), 8.5, 5.0)
    assert moves.makespan(np.array([0, 0, 0, 0], np.int32), rate=2) == ((5.0,), 5.0, 5.0)


def test_every_added_replica_is_copied_from_the_preferred_leader() -> None:
    moves = case(([2, 0], [2, 0, 1, 3], 10), ([1, 0], [0, 1], 5), ([1, 0], [1], 5), ([1], [1], 5)).moves
    assert moves.partition.tolist() == [0, 1, 2]
    assert moves.ports.tolist() == [[2, 5, 7], [UNKNOWN] * 3, [UNKNOWN] * 3]
    assert moves.bytes.tolist() == [20, 0, 0]


def test_replicas_of_a_broker_that_is_down_are_copied_from_the_next() -> None:
    """Three of broker 0, which is down, and one of broker 1: all from broker 1, or two of them from broker 2."""
    down = case(([0, 1], [3, 1], 10), ([0, 1], [4, 1], 10), ([0, 2], [5, 2], 10), ([1, 0], [1, 3], 10))
    online = down.current > 0
    moves = moves_of(*down, online)
    assert moves.ports[:, 0].tolist() == [1, 1, 2, 1]
    assert makespan(moves, np.zeros(4, np.int32), rate=1).seconds == 30
    waves = split(moves, max_partitions=2)
    assert sorted(moves.ports[waves.wave == waves.wave[2], 0]) == [1, 2]


def test_one_that_is_larger_than_a_wave_is_a_wave_alone() -> None:
    waves = case(*[([0], [1], size) for size in (60, 101, 40, 300)]).split(max_bytes=100)
    assert waves.alone.tolist() == [1, 3]
    assert waves.wave.tolist() == [2, 1, 2, 0]
    assert waves.number == waves.bound == 3


@pytest.mark.parametrize(
    ("sizes", "number"), [([60, 60, 60], 3), ([34] * 6, 3), ([26] * 9, 3), ([50] * 6, 3), ([100], 1), ([0] * 9, 1)]
)
def test_of_large_partitions_the_bound_counts_how_many_fit_into_a_wave(sizes: list[int], number: int) -> None:
    waves = case(*[([0], [1], size) for size in sizes]).split(max_bytes=100)
    assert waves.number == waves.bound == number


def test_those_that_are_alike_go_together() -> None:
    """Four brokers give to four others; by chance pairing a wave would wait for one of 100 almost every time."""
    sizes = [100, 1, 100, 1, 1, 100, 1, 100]
    waves = case(*[([n % 4], [4 + n % 4], size) for n, size in enumerate(sizes)]).split(max_partitions=4)
    assert [sorted(np.array(sizes)[waves.wave == w].tolist()) for w in (0, 1)] == [[100] * 4, [1] * 4]


@pytest.mark.parametrize("cap", [{"max_partitions": 60}, {"max_bytes": 120_000}])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_barriers_cost_little_though_some_partitions_add_two_replicas(seed: int, cap: dict[str, int]) -> None:
    """Half of the brokers give one of three replicas, or two, to the others; sizes are lognormal."""
    random = np.random.default_rng(seed)
    halves = [np.array([random.permutation(6)[:3] + first for _ in range(400)], np.int32) for first in (0, 6)]
    current, target = halves[0], halves[0].copy()
    target[:, 2] = halves[1][:, 0]
    two = random.random(400) < 0.2
    target[two, 1] = halves[1][two, 1]
    moves = Case(current, target, (random.lognormal(0, 1, 400) * 1000).astype(np.int64))
    waves = moves.split(**cap)
    found = moves.makespan(waves.wave, rate=1)
    assert waves.number == waves.bound
    assert found.seconds <= 1.02 * found.bound


def test_nothing_to_move_makes_no_wave() -> None:
    waves = case(([0, 1], [0, 1], 5)).split(max_partitions=10, max_bytes=10)
    assert (waves.number, waves.bound, waves.wave.tolist()) == (0, 0, [UNKNOWN])
    assert case(([0, 1], [0, 1], 5)).makespan(waves.wave, rate=1) == ((), 0, 0)


@pytest.mark.parametrize(("partitions", "size"), [(0, None), (None, 0), (-1, 5)])
def test_caps_below_one_are_refused(partitions: int | None, size: int | None) -> None:
    with pytest.raises(PlanningError, match="below 1") as refusal:
        case(([0], [1], 5)).split(partitions, size)
    assert refusal.value.reason is Reason.INVALID_GOAL


def test_the_same_plan_is_split_the_same() -> None:
    random = np.random.default_rng(5)
    moves = case(*[([int(a)], [int(b)], int(s)) for a, b, s in random.integers([0, 3, 0], [3, 6, 1000], (300, 3))])
    first, again = (moves.split(max_partitions=20) for _ in range(2))
    assert (first.wave == again.wave).all()
    shuffled = random.permutation(300)
    assert (Case(*(array[shuffled] for array in moves)).split(max_partitions=20).number) == first.number
