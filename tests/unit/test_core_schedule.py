"""When a schedule is due: sentences, and a walk that goes minute by minute and knows no cron."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.reassignment_policy import OnSchedule
from reassign.api.reassignment_record import RecordedSchedule
from reassign.core.automation.schedule import ScheduleState, schedule_at, served
from reassign.errors import Reason
from tests.unit.examples import examples

BERLIN, LORD_HOWE, SANTIAGO = "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"
MINUTE = timedelta(minutes=1)
WHERE = "spec.triggers[saturday].schedule"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def nightly(**changes: Any) -> OnSchedule:
    return OnSchedule.parse({"cron": "0 2 * * *", **changes})


def begun(schedule: OnSchedule, since: str) -> RecordedSchedule:
    record = schedule_at(schedule, None, WHERE, at(since)).record
    assert record
    return record


def runs(schedule: OnSchedule, times: Sequence[datetime]) -> list[datetime]:
    """The moments that are served when it is looked at, and each one is served at once."""
    record, found = None, list[datetime]()
    for now in times:
        state = schedule_at(schedule, record, WHERE, now)
        record = state.record
        if state.due:
            assert record
            record, found = served(record, state.due), [*found, now]
    return found


# --- Sentences ---


def test_a_schedule_begins_when_it_is_seen_first() -> None:
    state = schedule_at(nightly(), None, WHERE, at("2026-06-01T02:00:30Z"))
    assert (state.due, state.missed, state.following) == (None, None, at("2026-06-02T02:00Z"))
    assert schedule_at(nightly(), state.record, WHERE, at("2026-06-01T02:00:45Z")).due is None


def test_a_moment_is_due_until_it_is_served() -> None:
    record = begun(nightly(), "2026-06-01T12:00Z")
    assert schedule_at(nightly(), record, WHERE, at("2026-06-02T01:59:59Z")).due is None
    state = schedule_at(nightly(), record, WHERE, at("2026-06-02T02:00Z"))
    assert state == ScheduleState(record, at("2026-06-02T02:00Z"), None, at("2026-06-03T02:00Z"))
    assert schedule_at(nightly(), record, WHERE, at("2026-06-02T03:00Z")).due == state.due
    assert (
        schedule_at(nightly(), served(record, at("2026-06-02T02:00Z")), WHERE, at("2026-06-02T02:00:01Z")).due is None
    )


def test_a_moment_is_missed_once_its_deadline_is_over() -> None:
    record = begun(nightly(), "2026-06-01T12:00Z")
    state = schedule_at(nightly(), record, WHERE, at("2026-06-02T03:00:01Z"))
    assert (state.due, state.missed) == (None, at("2026-06-02T02:00Z"))
    again = schedule_at(nightly(), state.record, WHERE, at("2026-06-02T03:00:02Z"))
    assert (again.due, again.missed) == (None, None)


def test_moments_that_were_missed_count_as_one() -> None:
    hourly = nightly(cron="0 * * * *")
    record = begun(hourly, "2026-06-01T00:30Z")
    state = schedule_at(hourly, record, WHERE, at("2026-06-08T00:10Z"))
    assert state.due == at("2026-06-08T00:00Z")
    assert schedule_at(hourly, served(record, state.due), WHERE, at("2026-06-08T00:11Z")).due is None


def test_another_cron_begins_anew() -> None:
    record = begun(nightly(), "2026-06-01T12:00Z")
    edited = schedule_at(nightly(cron="0 1 * * *"), record, WHERE, at("2026-06-02T01:10Z"))
    assert (edited.due, edited.missed) == (None, None)
    assert schedule_at(nightly(timeZone=BERLIN), record, WHERE, at("2026-06-02T02:10Z")).due is None


def test_a_clock_that_is_set_back_brings_no_moment_again() -> None:
    times = ["02T02:00:10", "02T01:50:00", "02T02:00:00", "02T02:10:00", "03T01:59:00", "03T02:00:00"]
    found = runs(nightly(), [at(f"2026-06-{time}Z") for time in ["01T12:00:00", *times]])
    assert found == [at("2026-06-02T02:00:10Z"), at("2026-06-03T02:00Z")]


def test_a_clock_that_was_a_year_ahead_is_no_reason_to_wait_a_year() -> None:
    record = begun(nightly(), "2027-06-01T12:00Z")
    back = schedule_at(nightly(), record, WHERE, at("2026-06-01T12:00Z"))
    assert back.record
    assert back.record.last == at("2026-06-01T12:00Z")
    assert schedule_at(nightly(), back.record, WHERE, at("2026-06-02T02:00Z")).due


def test_an_hour_that_comes_twice_runs_once() -> None:
    times = [at("2026-10-24T22:00Z") + n * MINUTE for n in range(8 * 60)]
    assert runs(nightly(cron="30 2 * * *", timeZone=BERLIN), times) == [at("2026-10-25T02:30+02:00")]


def test_an_hour_that_is_skipped_runs_right_after() -> None:
    times = [at("2026-03-28T22:00Z") + n * MINUTE for n in range(8 * 60)]
    assert runs(nightly(cron="30 2 * * *", timeZone=BERLIN), times) == [at("2026-03-29T03:00+02:00")]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cron": "61 2 * * 6"}, "its minute has '61'"),
        ({"cron": "0 2 * * SAM"}, "its day of the week has 'SAM'"),
        ({"cron": "0 0 30 2 *"}, "has no time within four years"),
        ({"timeZone": "Europe/Berlino"}, "there is no time zone 'Europe/Berlino'"),
    ],
)
def test_what_cannot_be_read_or_never_comes_is_a_problem(changes: dict[str, str], words: str) -> None:
    record = begun(nightly(), "2026-06-01T12:00Z")
    state = schedule_at(nightly(**changes), record, WHERE, at("2026-06-02T02:00Z"))
    assert state.problem
    assert (state.problem.reason, state.due, state.record) == (Reason.INVALID_SCHEDULE, None, record)
    assert state.problem.message.startswith(WHERE)
    assert words in state.problem.message


# --- Minute by minute, without a cron ---


class Times(NamedTuple):
    """Times of a day, on some days of the week (0 is Monday)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]

    @property
    def cron(self) -> str:
        days = {(day + 1) % 7 for day in self.weekdays}
        return f"{_list(self.minutes)} {_list(self.hours)} * * {_list(days)}"

    def has(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and wall.weekday() in self.weekdays


def _list(numbers: frozenset[int] | set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def walk(times: Times, zone: str, begin: datetime, minutes: int) -> Iterator[datetime]:
    """Yield each minute at which the clock shows, or has just skipped, one of the times for the first time."""
    info = ZoneInfo(zone)
    latest = (begin - timedelta(hours=3)).astimezone(info).replace(tzinfo=None)
    for number in range(-180, minutes):
        now = begin + number * MINUTE
        wall, found = now.astimezone(info).replace(tzinfo=None), False
        while latest < wall:
            latest += MINUTE
            found |= times.has(latest)
        if found and number >= 0:
            yield now


NEAR_LEAPS = [
    (BERLIN, "2026-03-28T12:00Z"),
    (BERLIN, "2026-10-24T12:00Z"),
    (LORD_HOWE, "2026-04-04T00:00Z"),
    (LORD_HOWE, "2026-10-03T00:00Z"),
    (SANTIAGO, "2026-04-04T12:00Z"),
    (SANTIAGO, "2026-09-05T12:00Z"),
]


def some(greatest: int, most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, greatest), min_size=1, max_size=most)


TIMES = st.builds(Times, some(59, 2), some(3, 2) | some(23, 3), some(6, 7))
SHORT, LONG = st.integers(1, 20), st.integers(1, 600)
LENGTH = 2 * 24 * 60


@given(TIMES, st.sampled_from(NEAR_LEAPS), st.lists(SHORT | LONG, max_size=120), st.integers(1, 240))
@examples(60, deadline=None)
def test_what_is_due_is_as_a_walk_through_every_minute_says(
    times: Times, where: tuple[str, str], gaps: list[int], deadline: int
) -> None:
    """It is looked at now and then: the last moment since then is due within its deadline, the others are over."""
    zone, begin = where[0], at(where[1])
    moments = list(walk(times, zone, begin, LENGTH))
    schedule = nightly(cron=times.cron, timeZone=zone, startingDeadlineSeconds=60 * deadline)
    record, before = schedule_at(schedule, None, WHERE, begin).record, begin
    for gap in [*gaps, 1]:
        now = before + gap * MINUTE
        if now >= begin + LENGTH * MINUTE:
            break
        state = schedule_at(schedule, record, WHERE, now)
        record = state.record
        assert record
        come = [moment for moment in moments if before < moment <= now]
        in_time = [moment for moment in come[-1:] if now - moment <= deadline * MINUTE]
        assert ([state.due] if state.due else []) == in_time
        assert ([state.missed] if state.missed else []) == [moment for moment in come[-1:] if moment not in in_time]
        later = [moment for moment in moments if moment > now]
        assert not later or state.following == later[0]
        record = served(record, state.due) if state.due else record
        before = now
