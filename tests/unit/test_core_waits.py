"""Recorded waits: as long as they are within a process, whatever the API server's clock is set to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.reassignment_record import RecordedWait
from reassign.core.automation.timers import Waits, began_by_clock, by_clock, left, passed, remembered
from reassign.core.model.forwarding import Clock
from tests.unit.examples import examples
from tests.unit.sim import START

LENGTH, YEAR = 600, 365 * 86_400
JUMPS = [sign * seconds for seconds in (60, 3600, YEAR) for sign in (1, -1)]


class Waiting:
    """A wait that begins at 0, in a process that decides again and again."""

    def __init__(self) -> None:
        self.now, self.offset, self.booted, self.length = 0.0, 0.0, -7919.0, LENGTH
        self.record = RecordedWait(seconds=LENGTH, until=START + timedelta(seconds=LENGTH))
        self.known: Waits = remembered({}, [], [self.record], self.clock)
        self.ends = float(LENGTH)

    @property
    def clock(self) -> Clock:
        return Clock(self.now - self.booted, START + timedelta(seconds=self.now + self.offset))

    def decide(self, *, written: bool = True) -> None:
        known = remembered(self.known, [self.record], [self.record], self.clock)
        assert left(self.record, known, self.clock) == self.ends - self.now
        after = by_clock(self.record, known, self.clock)
        assert left(after, known, self.clock) == self.ends - self.now
        self.known = remembered(known, [self.record], [after], self.clock)
        if written:
            self.record = after

    def restart(self, jump: float) -> None:
        """Another process, and where the clock was set meanwhile, it tells what is left."""
        self.offset, self.known, self.booted = self.offset + jump, {}, self.now + 13
        if jump:
            self.ends = self.now + left(self.record, {}, self.clock)
            assert self.ends - self.now <= LENGTH


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["decide", "jump", "unwritten", "restart", "failover"]),
        st.integers(1, 200),
        st.sampled_from(JUMPS),
    ),
    max_size=30,
)


@examples(300)
@given(STEPS)
def test_no_clock_makes_a_wait_longer_or_shorter_in_a_process(steps: list[tuple[str, int, int]]) -> None:
    wait = Waiting()
    for what, seconds, jump in steps:
        wait.now += seconds
        if what in ("restart", "failover"):
            wait.decide()
            wait.restart(jump if what == "failover" else 0)
        wait.offset += jump if what in ("jump", "unwritten") else 0
        wait.decide(written=what != "unwritten")


@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_was_set_is_no_matter_after_a_restart(jump: int) -> None:
    wait = Waiting()
    wait.now, wait.offset = 300, jump
    wait.decide()
    assert wait.record.until == START + timedelta(seconds=LENGTH + jump)
    wait.restart(0)
    wait.decide()


@pytest.mark.parametrize(("seconds", "written"), [(0, False), (5, False), (-5, False), (6, True), (-6, True)])
def test_a_wait_is_recorded_anew_when_the_clock_is_set_by_more(seconds: int, written: bool) -> None:
    wait = Waiting()
    wait.now, wait.offset = 300, seconds
    before = wait.record
    wait.decide()
    assert (wait.record is not before) is written


def test_a_wait_begun_in_the_same_second_of_a_clock_set_back_is_a_new_one() -> None:
    wait = Waiting()
    wait.now, wait.offset = 900, -900
    again = wait.record.model_copy()
    known = remembered(wait.known, [wait.record], [again], wait.clock)
    assert left(again, known, wait.clock) == LENGTH
    assert left(again, remembered(wait.known, [again], [again], wait.clock), wait.clock) == LENGTH - 900


def test_what_a_cooldown_begins_with_counts_likewise() -> None:
    clock = Clock(50, START)
    known = remembered({}, [], [START], clock)
    later = Clock(350, START - timedelta(days=1))
    assert passed(START, known, later) == 300
    assert began_by_clock(START, known, later) == later.time - timedelta(seconds=300)
    assert passed(START, {}, later) == 0
