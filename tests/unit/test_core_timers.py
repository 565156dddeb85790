"""Timers: never early but for flaps shorter than the gap, and none missed, whatever becomes of process and clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.reassignment_record import RecordedTimer
from reassign.core.automation.timers import (
    Timer,
    counts,
    observed,
    read_timer,
    recorded,
)
from reassign.core.model.forwarding import NOT_FORWARDED, Clock
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from tests.unit.examples import examples
from tests.unit.sim import SimKafka

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GAP, RECORD = 120.0, 60.0
"""The contract's numbers."""


def at(seconds: float, monotonic: float | None = None) -> Clock:
    return Clock(seconds if monotonic is None else monotonic, START + timedelta(seconds=seconds))


def seconds(timer: Timer | None) -> float | None:
    return timer and timer.seconds


# --- Sentences ---


@pytest.mark.parametrize(("gap", "counted"), [(0, 10), (15, 25), (120, 130), (120.1, 0), (3600, 0), (-0.1, 0)])
def test_a_gap_counts_up_to_two_minutes(gap: float, counted: float) -> None:
    assert seconds(observed(Timer(10, START, 50), True, at(0, 50 + gap))) == pytest.approx(counted)


@pytest.mark.parametrize("clock", [-3600, 0, 3600])
def test_a_clock_that_is_set_means_nothing_within_a_process(clock: float) -> None:
    assert seconds(observed(Timer(10, START, 50), True, at(clock, 65))) == 25


@pytest.mark.parametrize(("gap", "counted"), [(0, 10), (120, 10), (121, 0), (-1, 0)])
def test_a_gap_across_a_restart_adds_nothing(gap: float, counted: float) -> None:
    read = read_timer(RecordedTimer(seconds=10, observed_at=START))
    assert seconds(observed(read, True, at(gap, 7))) == counted
    assert seconds(observed(observed(read, True, at(gap, 7)), True, at(gap, 22))) == counted + 15


def test_what_is_not_known_changes_nothing() -> None:
    timer = Timer(10, START, 50)
    assert observed(timer, None, at(15, 65)) is timer
    assert observed(None, None, at(15, 65)) is None


def test_what_does_not_hold_has_no_timer() -> None:
    assert observed(Timer(10, START, 50), False, at(15, 65)) is None


def test_an_observation_counts_that_a_controller_has_answered() -> None:
    snapshot = SimKafka({}).snapshot()
    assert counts(snapshot)
    assert not counts(replace(snapshot, forwarded=NOT_FORWARDED))
    assert not counts(Problem(Reason.CLUSTER_UNREACHABLE, "it does not answer"))


def test_a_timer_is_recorded_when_it_begins_and_ends_and_each_minute() -> None:
    begun = recorded(None, Timer(0, START, 50))
    assert begun == RecordedTimer(seconds=0, observed_at=START)
    assert recorded(begun, Timer(59.9, at(59.9).time, 109.9)) is begun
    assert recorded(begun, Timer(60.9, at(60.9).time, 110.9)) == RecordedTimer(seconds=60, observed_at=at(60).time)
    assert recorded(begun, None) is None
    assert recorded(None, None) is None


def test_a_timer_is_not_recorded_for_ever() -> None:
    day = RecordedTimer(seconds=86_400, observed_at=at(86_400).time)
    assert recorded(day, Timer(90_000, at(90_000).time, 90_000)) is day
    assert recorded(day, Timer(0, at(90_000).time, 90_000)) == RecordedTimer(seconds=0, observed_at=at(90_000).time)


def test_a_timer_that_begins_anew_is_recorded_at_once() -> None:
    before = RecordedTimer(seconds=30, observed_at=START)
    assert recorded(before, Timer(0, at(10).time, 60)) == RecordedTimer(seconds=0, observed_at=at(10).time)


def test_a_timer_is_recorded_anew_when_the_clock_was_set_back() -> None:
    before = RecordedTimer(seconds=30, observed_at=START)
    assert recorded(before, Timer(45, at(-300).time, 60)) == RecordedTimer(seconds=45, observed_at=at(-300).time)


# --- Random histories, and a model that knows the truth ---


class Seen(NamedTuple):
    """An observation that counted, in real time."""

    at: float
    clock: float
    process: int
    holds: bool
    written: bool


@dataclass
class World:
    """What really happens, beside one timer of the operator and its record."""

    now: float = 0
    holds: bool = False
    flips: list[float] = field(default_factory=list)
    process: int = 0
    offset: float = 0
    """The API server's clock less real time."""
    clock_set: bool = False
    seen: list[Seen] = field(default_factory=list)
    timer: Timer | None = None
    record: RecordedTimer | None = None

    def flip(self) -> None:
        self.holds = not self.holds
        self.flips.append(self.now)

    def restart(self) -> None:
        self.process += 1
        self.timer = read_timer(self.record)

    def set_clock(self, by: float) -> None:
        self.offset += by
        self.clock_set |= bool(by)

    def observe(self, counts: bool, written: bool) -> None:
        monotonic = self.now + 7919.0 * self.process  # of another machine, or since another start
        self.timer = observed(self.timer, self.holds if counts else None, at(self.now + self.offset, monotonic))
        if written:
            self.record = recorded(self.record, self.timer)
        if counts:
            self.seen.append(Seen(self.now, self.now + self.offset, self.process, self.holds, written))
            self.check()

    def check(self) -> None:
        if not self.holds:
            assert self.timer is None
            return
        assert self.timer is not None
        assert self.timer.seconds <= self.held() + 1e-6, "early"
        assert self.timer.seconds >= self.watched() - 1e-6, "missed"

    def held(self) -> float:
        """For how long it really holds, flaps that are shorter than the gap left out."""
        for begin, end in reversed([*zip(self.flips[1::2], self.flips[2::2], strict=False)]):
            if not self.is_flap(begin, end):
                return self.now - end
        return self.now - self.flips[0]

    def is_flap(self, begin: float, end: float) -> bool:
        """Whether no timer can be asked to notice that it did not hold in between.

        Across a restart a gap is as long as the API server's clock says, since the last observation that was recorded.
        """
        between = [seen for seen in self.seen if begin <= seen.at < end]
        if any(seen.written for seen in between):
            return False
        after = next(seen for seen in self.seen if seen.at >= end)
        before = (seen for seen in self.seen if seen.at <= begin and seen.holds and seen.process < after.process)
        if any(-1 <= after.clock - seen.clock <= GAP for seen in before):  # what is recorded is cut to whole seconds
            return True
        return not between and end - begin < GAP

    def watched(self) -> float:
        """For how long it was really watched without a gap that is too long, the record's minute left out."""
        total = 0.0
        for before, after in reversed([*pairwise(self.seen)]):
            gap = after.at - before.at
            if not before.holds:
                break
            if before.process == after.process and gap <= GAP:
                total += gap
            elif before.process != after.process and self.survives(gap):
                total -= RECORD + 1  # cut to whole seconds
            else:
                break
        return total

    def survives(self, gap: float) -> bool:
        """Whether a restart with this gap surely keeps the timer: the record is a minute old at most."""
        return gap + RECORD < GAP and not self.clock_set and all(seen.written for seen in self.seen)


Step = tuple[str, float, float]

SHORT = st.integers(1, 4 * 59).map(lambda quarters: quarters / 4)
LONG = st.integers(4 * 60, 4 * 110).map(lambda quarters: quarters / 4)
NEAR = st.integers(4 * 110, 4 * 130).map(lambda quarters: quarters / 4)
ANY = SHORT | LONG | NEAR | st.integers(130, 4000)
WATCH = st.tuples(st.just("watch"), SHORT, st.integers(1, 40))
FLIP = st.tuples(st.just("flip"), ANY, st.just(0))
RESTART = st.tuples(st.just("restart"), ANY, st.just(0))
OUTAGE = st.tuples(st.just("outage"), ANY, st.integers(1, 3))
UNWRITTEN = st.tuples(st.just("unwritten"), SHORT, st.just(0))
CLOCK = st.tuples(st.just("clock"), SHORT, st.integers(-130, 130) | st.integers(-4000, 4000))
FAILOVER = st.tuples(st.just("restart"), ANY, st.integers(-130, 130) | st.integers(-4000, 4000))
QUIET = st.lists(WATCH | FLIP | OUTAGE, max_size=30)
RESTARTING = st.lists(WATCH | FLIP | OUTAGE | RESTART, max_size=30)
ALL = st.lists(WATCH | FLIP | OUTAGE | FAILOVER | UNWRITTEN | CLOCK, max_size=40)


def live(steps: Sequence[Step]) -> World:
    """Begin where it holds and is watched, go through these steps, and watch on."""
    world = World()
    world.flip()
    world.observe(True, True)
    for what, after, number in [*steps, ("watch", 15, 20)]:
        for _ in range(int(number) if what in ("watch", "outage") else 1):
            world.now += after
            match what:
                case "watch":
                    world.observe(True, True)
                case "outage":
                    world.observe(False, True)
                case "unwritten":
                    world.observe(True, False)
                case "flip":
                    world.flip()
                case "restart":
                    world.restart()
                    world.set_clock(number)
                case "clock":
                    world.set_clock(number)
    return world


@examples(1000)
@given(QUIET)
def test_no_outage_and_no_flap_makes_a_timer_early_or_missed(steps: list[Step]) -> None:
    live(steps)


@examples(1000)
@given(RESTARTING)
def test_no_restart_makes_a_timer_early_or_missed(steps: list[Step]) -> None:
    live(steps)


@examples(1000)
@given(ALL)
def test_no_clock_and_no_lost_write_makes_a_timer_early_or_missed(steps: list[Step]) -> None:
    live(steps)


@pytest.mark.parametrize("restarts", range(10))
def test_a_process_that_ends_each_minute_still_comes_to_the_end(restarts: int) -> None:
    steps: list[Step] = [step for _ in range(restarts) for step in (("watch", 10, 12), ("restart", 5, 0))]
    world = live([*steps, ("watch", 10, 6)])
    assert world.timer is not None
    assert world.timer.seconds >= 60 * restarts
