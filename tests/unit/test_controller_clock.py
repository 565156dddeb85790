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
    """The API server's clock, and ours, which is `ahead` of it."""

    def __init__(self, ahead: timedelta) -> None:
        self.server, self.ahead = datetime(2026, 1, 1, 12, 0, 0, 700_000, tzinfo=UTC), ahead
        self.clock = ServerClock(lambda: self.server + self.ahead, lambda: self.server.timestamp())

    def wait(self, seconds: float) -> None:
        self.server += timedelta(seconds=seconds)

    def ask(self, seconds: float = 0.0) -> None:
        """A request that takes so long, and is answered in the end."""
        sent = self.clock.sent()
        self.wait(seconds)
        self.clock.answered(format_datetime(self.server, usegmt=True), sent)

    @property
    def error(self) -> timedelta:
        return self.clock.now() - self.server


@pytest.mark.parametrize("minutes", [-10, 10])
def test_one_answer_brings_the_clock_to_within_a_second_of_the_servers(minutes: int) -> None:
    clocks = Clocks(timedelta(minutes=minutes))
    clocks.ask()
    assert abs(clocks.error) <= timedelta(seconds=1)


def test_a_clock_that_agrees_with_the_servers_is_left_alone() -> None:
    clocks = Clocks(timedelta(0))
    for _ in range(20):
        clocks.ask(0.3)
        assert clocks.error == timedelta(0)


def test_a_slow_answer_moves_the_clock_no_further_than_it_proves() -> None:
    clocks = Clocks(timedelta(0))
    sent = clocks.clock.sent()
    date = format_datetime(clocks.server, usegmt=True)
    clocks.wait(8)
    clocks.clock.answered(date, sent)
    assert clocks.error == timedelta(0)


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_an_answer_without_a_date_changes_nothing(date: str | None) -> None:
    clocks = Clocks(timedelta(minutes=1))
    clocks.clock.answered(date, clocks.clock.sent())
    assert clocks.error == timedelta(minutes=1)


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
