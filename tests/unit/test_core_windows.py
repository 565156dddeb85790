"""When a window is open, beside a calculation that walks through every minute of two years and knows no cron."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from reassign.api.window import Window
from reassign.core.model.problem import Problem
from reassign.core.plans import windows
from reassign.core.plans.windows import WindowState, schedule_of, times_closed, windows_at
from reassign.errors import Reason
from reassign.text import first_error
from tests.unit.examples import examples

BERLIN, LORD_HOWE, SANTIAGO = "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"
ZONES = (BERLIN, LORD_HOWE, SANTIAGO)
"""Whose clocks leap by an hour in the night, by half an hour, and by an hour at midnight."""
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BEGIN, END = datetime(2025, 12, 20, tzinfo=UTC), datetime(2028, 1, 10, tzinfo=UTC)
FROM, MINUTES = datetime(2026, 1, 1, tzinfo=UTC), 2 * 365 * 24 * 60
"""The two years that are compared."""


def window(cron: str, seconds: int = 3600, zone: str = "Etc/UTC") -> Window:
    return Window(cron=cron, duration_seconds=seconds, time_zone=zone)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def opens(cron: str, zone: str, since: str, number: int = 3) -> list[str]:
    """The next moments of a cron, as the clock in its zone shows them, with its offset."""
    found, now = list[str](), at(since)
    for _ in range(number):
        schedule = schedule_of(cron, zone, "spec.windows[0]", now)
        assert not isinstance(schedule, Problem)
        moment = schedule.next(now)
        assert moment
        found, now = [*found, f"{moment.astimezone(ZoneInfo(zone)):%d %H:%M%z}"], moment
    return found


# --- Open and closed ---


def test_without_windows_it_is_always_open() -> None:
    assert windows_at((), at("2026-06-01T00:00Z")) == WindowState(True, None, None, None)


def test_a_window_is_open_from_its_time_for_as_long_as_it_says() -> None:
    nightly = [window("0 22 * * *", 6 * 3600)]
    for now, is_open, opens, changes in (
        ("2026-06-01T21:59:59.9Z", False, "2026-06-01T22:00Z", "2026-06-01T22:00Z"),
        ("2026-06-01T22:00Z", True, "2026-06-02T22:00Z", "2026-06-02T04:00Z"),
        ("2026-06-02T03:59:59.9Z", True, "2026-06-02T22:00Z", "2026-06-02T04:00Z"),
        ("2026-06-02T04:00Z", False, "2026-06-02T22:00Z", "2026-06-02T22:00Z"),
    ):
        assert windows_at(nightly, at(now)) == WindowState(is_open, at(opens), at(changes))


def test_a_time_zone_shifts_the_window_with_its_summer_time() -> None:
    assert opens("0 22 * * *", BERLIN, "2026-03-28T12:00Z", 2) == ["28 22:00+0100", "29 22:00+0200"]


def test_overlapping_windows_are_open_until_the_last_of_them_closes() -> None:
    both = [window("0 22 * * *", 2 * 3600), window("0 23 * * *", 4 * 3600)]
    state = windows_at(both, at("2026-06-01T23:30Z"))
    assert (state.is_open, state.changes) == (True, at("2026-06-02T03:00Z"))
    assert state.opens == at("2026-06-02T22:00Z")


def test_a_window_longer_than_its_period_never_closes() -> None:
    daily = [window("0 0 * * *", 7 * 24 * 3600)]
    for hours in range(0, 400, 7):
        now = at("2026-06-01T00:00Z") + hours * HOUR
        state = windows_at(daily, now)
        assert state.is_open
        assert state.changes
        assert now < state.changes <= now + 24 * HOUR


def test_a_window_that_opens_again_before_it_has_closed_has_no_next_time() -> None:
    """Else it would be written into the status each minute, for ever."""
    found = [windows_at([window("* * * * *", 300)], FROM + n * MINUTE) for n in range(10)]
    assert {(state.is_open, state.opens) for state in found} == {(True, None)}
    both = [window("0 22 * * *", 3600), window("0 23 * * *", 3600)]
    assert windows_at(both, at("2026-06-01T22:30Z")).opens is None
    assert windows_at(both, at("2026-06-01T23:30Z")).opens == at("2026-06-02T22:00Z")


@pytest.mark.parametrize(
    ("windows", "closed"),
    [
        ([window("0 22 * * *")], 10),
        ([window("0 22 * * *"), window("30 22 * * *")], 10),  # one goes on where the other ends
        ([window("0 22 * * *"), window("0 4 * * *")], 20),
        ([window("0 22 * * 6")], 2),
        ([window("0 22 * * *"), window("*/10 * * * *", 3600)], 0),  # it never closes
        ([window("0 22 * * *"), window("0 25 * * *")], 0),
    ],
)
def test_how_often_windows_have_closed(windows: list[Window], closed: int) -> None:
    since = at("2026-01-01T22:30+00:00")
    assert times_closed(windows, since, since + timedelta(days=9, hours=12), 100) == closed
    assert times_closed(windows, since, since, 100) == 0
    assert times_closed(windows, since, since + timedelta(days=9, hours=12), 3) == min(closed, 3)


def test_a_clock_that_jumps_leaves_nothing_behind() -> None:
    nightly = [window("0 22 * * *", 3600)]
    before, within, after = (at(f"2026-06-01T{time}Z") for time in ("21:00", "22:30", "23:30"))
    found = [windows_at(nightly, now).is_open for now in (before, after, within, before, within, after)]
    assert found == [False, False, True, False, True, False]


# --- Summer time ---


def test_a_time_that_the_clock_skips_comes_right_after() -> None:
    assert opens("30 2 * * *", BERLIN, "2026-03-28T12:00Z", 2) == ["29 03:00+0200", "30 02:30+0200"]
    assert opens("0 0 * * *", SANTIAGO, "2026-09-05T12:00Z", 2) == ["06 01:00-0300", "07 00:00-0300"]
    assert opens("15 2 * * *", LORD_HOWE, "2026-10-03T12:00Z", 2) == ["04 02:30+1100", "05 02:15+1100"]


def test_times_skipped_together_come_once() -> None:
    assert opens("*/20 2,3 * * *", BERLIN, "2026-03-28T12:00Z", 3) == [
        "29 03:00+0200",
        "29 03:20+0200",
        "29 03:40+0200",
    ]


def test_a_time_that_the_clock_shows_twice_comes_the_first_time() -> None:
    assert opens("30 2 * * *", BERLIN, "2026-10-24T12:00Z", 2) == ["25 02:30+0200", "26 02:30+0100"]
    assert opens("*/30 2 * * *", BERLIN, "2026-10-24T23:00Z", 3) == ["25 02:00+0200", "25 02:30+0200", "26 02:00+0100"]


def test_in_the_second_of_two_equal_hours_the_window_of_the_first_counts() -> None:
    found = [windows_at([window("30 2 * * *", 3600, BERLIN)], at(f"2026-10-25T{time}Z")) for time in ("00:30", "01:29")]
    assert [state.is_open for state in found] == [True, True]
    assert not windows_at([window("30 2 * * *", 3600, BERLIN)], at("2026-10-25T01:30Z")).is_open


def test_time_zones_are_known_where_the_system_brings_none() -> None:
    try:
        zoneinfo.reset_tzpath(to=())
        ZoneInfo.clear_cache()
        assert opens("0 22 * * *", BERLIN, "2026-06-01T12:00Z", 1) == ["01 22:00+0200"]
    finally:
        zoneinfo.reset_tzpath()


# --- What a cron can say ---


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 0 13 * 5", [3, 10, 13, 17, 24, 31]),  # July 2026 begins on a Wednesday
        ("0 0 * * FRI", [3, 10, 17, 24, 31]),
        ("0 0 */2 * 5", [3, 17, 31]),
        ("0 0 13 jul *", [13]),
        ("0 0 L * *", [31]),
        ("0 0 * * SUN#1", [5]),
        ("0 0 1-7/3,30 * *", [1, 4, 7, 30]),
    ],
)
def test_days_are_chosen_as_in_debians_cron(cron: str, days: list[int]) -> None:
    schedule = schedule_of(cron, "Etc/UTC", "spec.windows[0]", at("2026-06-30T23:59Z"))
    assert not isinstance(schedule, Problem)
    found = [schedule.next(at(f"2026-07-{day:02}T00:00Z") - MINUTE) for day in range(1, 32)]
    assert sorted({moment.day for moment in found if moment and moment.month == 7}) == days


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Etc/UTC", "2026-06-01 22:00 UTC"),
        (BERLIN, "2026-06-01 20:00 UTC (2026-06-01 22:00 in Europe/Berlin)"),
        ("Pacific/Auckland", "2026-06-01 10:00 UTC (2026-06-01 22:00 in Pacific/Auckland)"),
        ("America/Los_Angeles", "2026-06-01 05:00 UTC (2026-05-31 22:00 in America/Los_Angeles)"),
    ],
)
def test_the_next_time_is_also_that_of_the_windows_own_clock(zone: str, text: str) -> None:
    others = [window("0 0 1 1 *"), window("0 0 1 1 *", zone=LORD_HOWE)]
    assert windows_at([*others, window("0 22 * * *", zone=zone)], at("2026-06-01T00:00Z")).opens_text == text


# --- Bad input ---


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        (
            "60 22 * * *",
            "Etc/UTC",
            "spec.windows[1]: the cron '60 22 * * *' cannot be read: its minute has '60'; write 0 to 59",
        ),
        ("0 1,25 * * *", "Etc/UTC", "its hour has '25'; write 0 to 23"),
        ("0 22 * * Moon", "Etc/UTC", "its day of the week has 'Moon'; write 0 to 7, or SUN to SAT"),
        ("0 22 * JULY *", "Etc/UTC", "its month has 'JULY'; write 1 to 12, or JAN to DEC"),
        (
            "0 22 5-1 * *",
            "Etc/UTC",
            "its day of the month has '5-1'; write 1 to 31, or L, in a range the lesser one first",
        ),
        ("0 22 */0 * *", "Etc/UTC", "its day of the month has '*/0'; write 1 to 31, or L, with a step of at least 1"),
        ("0 0 30 2 *", "Etc/UTC", "the cron '0 0 30 2 *' has no time within four years"),
        ("0 0 29 2 */7", "Etc/UTC", "the cron '0 0 29 2 */7' has no time within four years"),
        ("0 0 */31 * 1#5", "Etc/UTC", "has no time within four years"),
        ("0 22 * * *", "Europe/Nowhere", "there is no time zone 'Europe/Nowhere'; name one of the IANA database"),
        ("0 22 * * *", "europe/berlin", "there is no time zone 'europe/berlin'"),
        ("0 22 * * *", "Europe", "there is no time zone 'Europe'"),
    ],
)
def test_a_window_that_cannot_be_read_keeps_all_closed_and_says_why(cron: str, zone: str, words: str) -> None:
    state = windows_at([window("* * * * *"), window(cron, 3600, zone)], at("2026-06-01T00:00Z"))
    assert (state.is_open, state.opens, state.changes) == (False, None, None)
    assert state.problem
    assert state.problem.reason is Reason.INVALID_SCHEDULE
    assert words in state.problem.message


def test_a_leap_day_comes_within_four_years() -> None:
    for now in ("2024-02-29T00:00Z", "2026-06-01T00:00Z"):
        assert windows_at([window("0 0 29 2 *")], at(now)).opens == at("2028-02-29T00:00Z")


def test_a_window_is_open_at_its_time_though_the_next_one_is_too_far_away() -> None:
    """Leap days that are Sundays are 28 years apart."""
    seldom = [window("0 0 29 2 */7", 3600)]
    open_ = windows_at(seldom, at("2032-02-29T00:59:59Z"))
    assert open_ == WindowState(True, None, at("2032-02-29T01:00Z"))
    assert windows_at([*seldom, window("0 22 * * *")], at("2032-02-29T00:30Z")).opens == at("2032-02-29T22:00Z")
    closed = windows_at(seldom, at("2032-02-29T01:00Z"))
    assert not closed.is_open
    assert closed.problem
    assert closed.problem.reason is Reason.INVALID_SCHEDULE


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[date]:
    """The days that are searched for a time."""
    found, match = list[date](), CronSim.match_day

    def counted(self: CronSim, day: date) -> bool:
        found.append(day)
        return match(self, day)

    monkeypatch.setattr(CronSim, "match_day", counted)
    monkeypatch.setattr(windows, "_kept", {})
    return found


@pytest.mark.parametrize("cron", ["0 0 */30 * 1#2", "0 0 */30,LW * 0#2,1#2,2#2,3#2,4#2,5#2,6#2", "0 0 29 2 *"])
def test_a_search_ends_after_four_years_and_is_not_made_again(cron: str, looked_at: list[date]) -> None:
    now = at("2026-06-01T00:00Z")
    first = windows_at([window(cron)], now)
    assert 0 < len(looked_at) < 3 * 4 * 366
    before = len(looked_at)
    for minutes in range(0, 24 * 60, 7):
        assert windows_at([window(cron)], now + minutes * MINUTE) == first
    assert len(looked_at) == before


def test_what_a_search_found_is_not_taken_for_another_time(looked_at: list[date]) -> None:
    nightly = [window("0 22 * * *", 3600)]
    for now, is_open in (("01T21:59", False), ("01T22:00", True), ("01T21:59", False), ("09T22:59", True)):
        assert windows_at(nightly, at(f"2026-06-{now}Z")).is_open is is_open
    never = [window("0 0 29 2 */7")]
    for now, is_read in (("2028-02-25", False), ("2028-02-29", True), ("2028-02-25", False)):
        assert (windows_at(never, at(f"{now}T00:00Z")).problem is None) is is_read


def test_only_so_many_searches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_KEPT", 20)
    for minute in range(60):
        windows_at([window(f"{minute} * * * *")], FROM)
    assert len(windows._kept) <= 20


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 0 22 * * *"},
        {"cron": "0 22 * *"},
        {"cron": "@daily"},
        {"cron": "TZ=Europe/Berlin 22 * * *"},
        {"cron": "CRON_TZ=Europe/Berlin 0 22 * * *"},
        {"cron": "0 22 ? * *"},
        {"cron": "0 22 * * *\n"},
        {"cron": f"{'1,' * 100}1 * * * *"},
        {"timeZone": "../../etc/passwd"},
        {"timeZone": "/etc/localtime"},
        {"timeZone": ""},
        {"durationSeconds": 299},
        {"durationSeconds": 604_801},
    ],
)
def test_what_the_schema_can_judge_is_refused_there(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Window.parse({"cron": "0 22 * * *", "durationSeconds": 300} | fields)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("cron", "cron: must be five fields with spaces between, such as 0 22 * * 1-5"),
        ("timeZone", "timeZone: must be the name of a time zone in the IANA database, such as Europe/Berlin"),
    ],
)
def test_what_has_another_form_is_told_so_in_words(field: str, words: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Window.parse({"cron": "0 22 * * *", "durationSeconds": 300} | {field: "@daily"})
    assert first_error(refusal.value).startswith(words)


LETTERS = st.text("0123456789ALJNFEBMRWSU*/,#-", min_size=1, max_size=8)


@given(st.lists(LETTERS, min_size=5, max_size=5), st.datetimes(FROM.replace(tzinfo=None), END.replace(tzinfo=None)))
@examples(300)
def test_whatever_the_schema_accepts_is_read_or_named(fields: list[str], now: datetime) -> None:
    state = windows_at([window(" ".join(fields), zone=BERLIN)], now.replace(tzinfo=UTC))
    assert (state.problem is None) is (state.opens is not None)
    assert not (state.problem and state.is_open)
    assert state.problem is None or " has " in state.problem.message


# --- Every minute of two years, without a cron ---


@cache
def walls(zone: str) -> NDArray[np.int64]:
    """What the clock shows at each minute from BEGIN to END, in minutes."""
    first, last, info = int(BEGIN.timestamp()), int(END.timestamp()), ZoneInfo(zone)
    offsets = [
        int((datetime.fromtimestamp(second, info).utcoffset() or timedelta()).total_seconds())
        for second in range(first, last, 60)
    ]
    return (np.arange(first, last, 60) + np.array(offsets)) // 60


@dataclass(frozen=True)
class Fields:
    """A cron as sets; None is every one. Both kinds of days need not be given."""

    minutes: frozenset[int] | None
    hours: frozenset[int] | None
    days: frozenset[int] | None
    months: frozenset[int] | None
    weekdays: frozenset[int] | None

    @property
    def cron(self) -> str:
        fields = (self.minutes, self.hours, self.days, self.months, self.weekdays)
        return " ".join("*" if each is None else ",".join(map(str, sorted(each))) for each in fields)

    def match(self, wall: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these minutes on a clock it names."""
        day = wall // (24 * 60)
        dates = day.astype("datetime64[D]")
        months = dates.astype("datetime64[M]")
        of_day = _among((dates - months.astype("datetime64[D]")).astype(int) + 1, self.days)
        of_week = _among((day + 4) % 7, self.weekdays)  # 1970-01-01 was a Thursday
        either = of_day | of_week if self.days and self.weekdays else of_day & of_week
        at_time = _among(wall % 60, self.minutes) & _among(wall // 60 % 24, self.hours)
        return at_time & either & _among(months.astype(int) % 12 + 1, self.months)

    def opened(self, zone: str) -> NDArray[np.int64]:
        """The minutes since BEGIN at which the clock shows, or has skipped, one that it had not shown before."""
        shown = walls(zone)
        latest = np.maximum.accumulate(shown)
        clock = np.arange(shown.min(), shown.max() + 1)
        upto = np.concatenate(([0], np.cumsum(self.match(clock))))[latest - clock[0] + 1]
        return np.flatnonzero(np.diff(upto, prepend=0))


def _among(values: NDArray[Any], allowed: frozenset[int] | None) -> NDArray[np.bool_]:
    return np.ones(len(values), bool) if allowed is None else np.isin(values, list(allowed))


@cache
def opened(fields: Fields, zone: str) -> NDArray[np.int64]:
    return fields.opened(zone)


def expected(windows: Sequence[tuple[Fields, int, str]]) -> NDArray[np.bool_]:
    """Whether one of the windows is open, at each minute of the two years."""
    is_open = np.zeros(len(walls(ZONES[0])) + 1, int)
    for fields, minutes, zone in windows:
        begins = opened(fields, zone)
        np.add.at(is_open, begins, 1)
        np.add.at(is_open, np.minimum(begins + minutes, len(is_open) - 1), -1)
    first = (FROM - BEGIN) // MINUTE
    return np.cumsum(is_open)[first : first + MINUTES] > 0


def some(least: int, greatest: int, most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(least, greatest), min_size=1, max_size=most)


FIELDS = st.builds(
    Fields,
    minutes=some(0, 59, 2),
    hours=some(0, 3, 2) | some(0, 23, 3),
    days=st.none() | some(1, 28, 4),
    months=st.none() | some(1, 12, 6),
    weekdays=st.none() | some(0, 6, 3),
)
WINDOWS = st.lists(
    st.tuples(FIELDS, st.integers(5, 12 * 60) | st.integers(5, 7 * 24 * 60), st.sampled_from(ZONES)),
    min_size=1,
    max_size=2,
)


def daily(minute: int, hours: set[int]) -> Fields:
    return Fields(frozenset({minute}), frozenset(hours), None, None, None)


@given(WINDOWS)
@example([(daily(30, {2}), 60, BERLIN), (daily(45, {1}), 20, LORD_HOWE)])
@example([(daily(0, {0, 23}), 45, SANTIAGO)])
@examples(10, deadline=None)
def test_windows_are_open_as_a_walk_through_every_minute_says(windows: list[tuple[Fields, int, str]]) -> None:
    spec = [window(fields.cron, 60 * minutes, zone) for fields, minutes, zone in windows]
    is_open, minute = expected(windows), 0
    while minute < MINUTES:
        now = FROM + minute * MINUTE
        state = windows_at(spec, now)
        assert state.problem is None
        assert state.changes
        assert state.changes > now
        until = (state.changes - FROM) // MINUTE
        assert (is_open[minute:until] == state.is_open).all(), f"{spec} at {now}"
        minute = until


DENSE = st.builds(
    Fields,
    minutes=st.none() | some(0, 59, 6),
    hours=st.none() | some(0, 4, 3) | some(0, 23, 3),
    days=st.none() | some(1, 28, 4),
    months=st.none() | some(1, 12, 6),
    weekdays=st.none() | some(0, 6, 3),
)


@cache
def leaps(zone: str) -> list[int]:
    """The minutes of the two years at which the clock is set forward or back."""
    return [int(minute) for minute in np.flatnonzero(np.diff(walls(zone)) != 1) + 1 - (FROM - BEGIN) // MINUTE]


@given(st.data(), DENSE, st.integers(5, 600), st.sampled_from(ZONES))
@examples(60, deadline=None)
def test_any_moment_is_as_that_walk_says(data: st.DataObject, fields: Fields, minutes: int, zone: str) -> None:
    near = st.builds(int.__add__, st.sampled_from(leaps(zone)), st.integers(-180, 180))
    is_open, begins = expected([(fields, minutes, zone)]), opened(fields, zone)
    for minute in data.draw(st.lists(near | st.integers(0, MINUTES - 1), min_size=1, max_size=50)):
        now = FROM + minute * MINUTE
        state = windows_at([window(fields.cron, 60 * minutes, zone)], now)
        assert state.is_open == is_open[minute], f"{fields.cron} in {zone} at {now}"
        later = begins[np.searchsorted(begins, (now - BEGIN) // MINUTE, side="right") :]
        if len(later):
            following = BEGIN + int(later[0]) * MINUTE
            assert state.opens == (None if state.is_open and is_open[(following - FROM) // MINUTE - 1] else following)
