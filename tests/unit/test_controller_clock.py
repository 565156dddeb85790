"""Deadlines of deletions count by one clock: that of the API server, which told when the object was deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

import reassign.controller
from reassign.kube.clock import ServerClock
from tests.unit.world import OURS, World

DELETED = datetime(2026, 1, 2, tzinfo=UTC)
"""When `World.delete` has an object deleted, by the API server's clock."""


class Clocks:
    """The clocks of two API servers, the second `apart` from the first, and ours, which is `ahead` of the first."""

    def __init__(self, ahead: timedelta = timedelta(0), apart: timedelta = timedelta(0)) -> None:
        self.server, self.ahead, self.apart = datetime(2026, 1, 1, 12, 0, 0, 700_000, tzinfo=UTC), ahead, apart
        self.elapsed = 1000.0
        self.clock = ServerClock(lambda: self.server + self.ahead, lambda: self.elapsed)

    def wait(self, seconds: float) -> None:
        self.server += timedelta(seconds=seconds)
        self.elapsed += seconds

    def ask(self, seconds: float = 0.0, after: float = 0.0, *, second: bool = False) -> None:
        """A request that is answered after so many seconds; the answer takes `after` seconds to come."""
        sent = self.clock.sent()
        self.wait(seconds)
        date = format_datetime(self.server + (self.apart if second else timedelta(0)), usegmt=True)
        self.wait(after)
        self.clock.answered(date, sent)

    @property
    def error(self) -> timedelta:
        """By how much the clock that counts is ahead of the first API server's."""
        return self.clock.now() - self.server


SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_one_answer_brings_the_clock_to_within_a_second_of_the_servers(minutes: int) -> None:
    clocks = Clocks(timedelta(minutes=minutes))
    assert clocks.error == timedelta(minutes=minutes)
    clocks.ask()
    assert abs(clocks.error) <= SECOND


@pytest.mark.parametrize(("seconds", "after"), [(0.3, 0.0), (0.0, 8.0), (8.0, 0.0)])
def test_a_slow_answer_neither_holds_the_clock_back_nor_drives_it_on(seconds: float, after: float) -> None:
    clocks = Clocks()
    for _ in range(20):
        clocks.ask()
        clocks.ask(seconds, after)
        assert -SECOND <= clocks.error <= timedelta(0)


@pytest.mark.parametrize("date", [None, "", "yesterday", "Fri, 31 Dec 9999 23:59:59 -2300"])
def test_an_answer_without_a_date_changes_nothing(date: str | None) -> None:
    clocks = Clocks(timedelta(minutes=1))
    clocks.clock.answered(date, clocks.clock.sent())
    assert clocks.error == timedelta(minutes=1)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_of_two_servers_clocks_the_one_behind_counts_and_never_jumps(minutes: int) -> None:
    apart = timedelta(minutes=minutes)
    clocks = Clocks(apart=apart)
    clocks.ask()
    clocks.ask(second=True)
    for second in range(1800):
        before = clocks.clock.now()
        clocks.wait(1)
        clocks.ask(second=second % 60 != 0)
        assert -SECOND <= clocks.error - min(apart, timedelta(0)) <= timedelta(0)
        assert timedelta(0) <= clocks.clock.now() - before <= 2 * SECOND


def test_a_clock_set_back_counts_at_once_and_one_set_forward_later() -> None:
    clocks = Clocks()
    clocks.ask()
    clocks.server -= timedelta(minutes=5)
    clocks.ask()
    assert abs(clocks.error) <= SECOND
    clocks.server += timedelta(minutes=5)
    for minute in range(12):
        clocks.ask()
        assert abs(clocks.error + timedelta(minutes=5 if minute < 10 else 0)) <= SECOND
        clocks.wait(60)


def test_the_last_answer_counts_however_long_no_other_comes() -> None:
    clocks = Clocks(timedelta(minutes=10))
    clocks.ask()
    clocks.wait(3600)
    assert abs(clocks.error) <= SECOND


def test_no_deletion_is_given_up_early_by_a_server_that_is_ahead() -> None:
    world, clocks = World(), Clocks(apart=timedelta(hours=1))
    world.change("move", lambda obj: obj["spec"].update(deletionDeadlineSeconds=60))
    clocks.server = DELETED
    clocks.ask()
    world.kube.clock = clocks.clock.now
    world.kafka.unsafe.add(OURS)
    world.delete("move")
    for _ in range(59):
        clocks.ask(1.0, second=True)
        world.tick()
    assert "CancelAbandoned" not in world.kube.events
    clocks.wait(2)
    world.tick()
    assert "CancelAbandoned" in world.kube.events


def abandoned(world: World, after: timedelta) -> bool:
    """Whether the cancel of a resource that was deleted is abandoned so long after, by the API server's clock."""
    world.kube.clock = lambda: DELETED + after
    world.delete("move")
    world.tick()
    return "CancelAbandoned" in world.kube.events


@pytest.mark.parametrize(("minutes", "expected"), [(59, False), (61, True)])
def test_a_deletion_deadline_counts_by_the_api_servers_clock(minutes: int, expected: bool) -> None:
    world = World()
    world.change("move", lambda obj: obj["spec"].update(deletionDeadlineSeconds=3600))
    assert abandoned(world, timedelta(minutes=minutes)) is expected
    assert (OURS in world.kafka.reassignments) is expected


@pytest.mark.parametrize(("minutes", "expected"), [(59, False), (61, True)])
def test_so_does_that_of_a_resource_that_cannot_be_read(minutes: int, expected: bool) -> None:
    world = World()
    world.change("move", lambda obj: obj["spec"].update(deletionDeadlineSeconds=3600, whenInFlight="Newer"))
    assert abandoned(world, timedelta(minutes=minutes)) is expected


def test_no_decision_of_the_controller_is_made_by_another_clock() -> None:
    sources = Path(next(iter(reassign.controller.__path__))).glob("*.py")
    assert [path.name for path in sources if "datetime.now" in path.read_text()] == []
