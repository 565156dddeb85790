"""When a cron comes, and whether a window is open: functions of the time that they are given.

A moment of a cron is what the clock in its time zone shows. It comes once, as soon as that clock shows it or is past
it: the first time where an hour comes twice, and right after an hour that is skipped. What is kept of a search says
nothing but what another search would find, so neither an outage nor a clock that jumps leaves anything behind.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from reassign.api.window import Window
from reassign.core.model.problem import Problem
from reassign.errors import Reason

SECOND = timedelta(seconds=1)
LONGEST_WAIT = timedelta(days=4 * 366)
"""Four years: `0 0 29 2 *` comes every four years, and `0 0 30 2 *` never."""
DAY = timedelta(days=1)
MAX_KEPT = 10_000
"""Crons whose moments around a time are kept: to search for them takes up to a millisecond."""
FIELDS = {
    Field.MINUTE: ("minute", "0 to 59"),
    Field.HOUR: ("hour", "0 to 23"),
    Field.DAY: ("day of the month", "1 to 31, or L"),
    Field.MONTH: ("month", "1 to 12, or JAN to DEC"),
    Field.DOW: ("day of the week", "0 to 7, or SUN to SAT"),
}
"""The fields of a cron in their order, and what each may have."""


class _Moments(CronSim):
    """The times of a cron on a clock, up to four years from `start`; cronsim itself searches 50 years."""

    def __init__(self, cron: str, start: datetime, *, reverse: bool = False) -> None:
        super().__init__(cron, start, reverse=reverse)
        self._from, self._to = (start - LONGEST_WAIT - DAY).date(), (start + LONGEST_WAIT + DAY).date()

    def match_day(self, d: date) -> bool:
        if not self._from <= d <= self._to:
            raise StopIteration
        return super().match_day(d)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The moments of a cron, in UTC."""

    cron: str
    zone: ZoneInfo

    def last(self, now: datetime) -> datetime | None:
        """Return the last moment that is not after `now`; None where there is none within four years."""
        local = now.astimezone(self.zone)
        wall = _wall(local)
        if local.fold:  # an hour comes again: the clock has shown later moments already
            wall += _offset(local.replace(fold=0)) - _offset(local)
        moments = map(self._moment, _Moments(self.cron, wall + SECOND, reverse=True))
        return next((moment for moment in moments if moment <= now), None)

    def next(self, now: datetime) -> datetime | None:
        """Return the first moment after `now`; None where there is none within four years."""
        moments = map(self._moment, _Moments(self.cron, _wall(now.astimezone(self.zone))))
        found = next((moment for moment in moments if moment > now), None)
        return found if found and found - now <= LONGEST_WAIT else None

    def _moment(self, wall: datetime) -> datetime:
        """Return when the clock first shows this time, or one past it."""
        found, early = (wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if self._shown(found) == wall:
            return found
        skipped = range(int((found - early) / SECOND))
        return early + bisect_left(skipped, True, key=lambda n: self._shown(early + n * SECOND) > wall) * SECOND

    def _shown(self, moment: datetime) -> datetime:
        return _wall(moment.astimezone(self.zone))


def _wall(local: datetime) -> datetime:
    """Return what a clock shows, in whole seconds."""
    return local.replace(tzinfo=None, microsecond=0, fold=0)


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()


def schedule_of(cron: str, time_zone: str, where: str, now: datetime) -> Schedule | Problem:
    """Return the schedule of a cron that stands `where`; a Problem where it cannot be read."""
    try:
        schedule = Schedule(cron, ZoneInfo(time_zone))
        _Moments(cron, _wall(now))
        return schedule
    except (ZoneInfoNotFoundError, OSError, ValueError):
        wrong = f"there is no time zone {time_zone!r}; name one of the IANA database, such as Europe/Berlin"
        return Problem(Reason.INVALID_SCHEDULE, f"{where}: {wrong}")
    except CronSimError:
        unreadable = _unreadable(cron)
    if unreadable is None:
        return _never(cron, where)
    return Problem(Reason.INVALID_SCHEDULE, f"{where}: the cron {cron!r} cannot be read: {unreadable}")


def _never(cron: str, where: str) -> Problem:
    return Problem(Reason.INVALID_SCHEDULE, f"{where}: the cron {cron!r} has no time within four years")


def _unreadable(cron: str) -> str | None:
    """Return which field cannot be read, with what it has and what it may have; None where each can be."""
    for (field, (name, range)), part in zip(FIELDS.items(), cron.split(), strict=True):
        for item in part.split(","):
            try:
                field.parse(item.upper())
            except CronSimError:
                a_range = ", in a range the lesser one first" if "-" in item else ""
                a_step = ", with a step of at least 1" if "/" in item else ""
                return f"its {name} has {item!r}; write {range}{a_range}{a_step}"
    return None


@dataclass(frozen=True, slots=True)
class WindowState:
    """What the windows of a spec come to at one time."""

    is_open: bool = True
    opens: datetime | None = None
    """When a window opens next, once those that are open have closed; None without windows, while one cannot be read,
    and where another opens before that."""
    changes: datetime | None = None
    """When a window opens or closes next."""
    problem: Problem | None = None
    """Why one cannot be read: then none is open."""
    zone: str = "Etc/UTC"
    """The time zone of the window that opens next."""

    @property
    def opens_text(self) -> str:
        """When a window opens next, in UTC, and as the clock in its own time zone shows it where that differs."""
        assert self.opens
        utc, local = (f"{self.opens.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" for zone in ("Etc/UTC", self.zone))
        return f"{utc} UTC" if local == utc else f"{utc} UTC ({local} in {self.zone})"


def windows_at(windows: Sequence[Window], now: datetime) -> WindowState:
    """Return whether a window is open, and when to look again; without windows it always is."""
    if not windows:
        return WindowState()
    opens, closes = list[tuple[datetime, str]](), list[datetime]()
    for number, window in enumerate(windows):
        found = moments_around(window.cron, window.time_zone, f"spec.windows[{number}]", now)
        if isinstance(found, Problem):
            return WindowState(is_open=False, problem=found)
        last, following = found
        end = last + timedelta(seconds=window.duration_seconds) if last else now
        closes += [end] if end > now else []
        if not isinstance(following, Problem):
            opens.append((following, window.time_zone))
        elif end <= now:
            return WindowState(is_open=False, problem=following)
    open_until = max(closes, default=None)
    first, zone = min(opens, default=(None, "Etc/UTC"))
    changes = min(filter(None, [first, open_until]))
    if first and open_until and first <= open_until:
        first = None
    return WindowState(open_until is not None, first, changes, zone=zone)


def times_closed(windows: Sequence[Window], since: datetime, now: datetime, most: int) -> int:
    """Return how often the windows have closed between two times, at most `most`; 0 where one cannot be read."""
    found = [schedule_of(w.cron, w.time_zone, f"spec.windows[{n}]", now) for n, w in enumerate(windows)]
    schedules = [schedule for schedule in found if not isinstance(schedule, Problem)]
    if len(schedules) < len(found):
        return 0
    lasting = [
        (schedule, timedelta(seconds=w.duration_seconds)) for schedule, w in zip(schedules, windows, strict=True)
    ]
    ends = {end for schedule, long in lasting for end in islice(_ends(schedule, long, since, now), most)}
    alone = [end for end in ends if not any(_is_open(schedule, long, end) for schedule, long in lasting)]
    return min(len(alone), most)


def _ends(schedule: Schedule, long: timedelta, since: datetime, now: datetime) -> Iterator[datetime]:
    """Yield when a window closed between two times, the last time first."""
    moment = schedule.last(now - long)
    while moment and moment + long > since:
        yield moment + long
        moment = schedule.last(moment - SECOND)


def _is_open(schedule: Schedule, long: timedelta, at: datetime) -> bool:
    moment = schedule.last(at)
    return moment is not None and moment + long > at


Moments = tuple[datetime | None, datetime | Problem]
"""The last moment of a cron, and the next one; a Problem where that is too far away."""


class _Kept(NamedTuple):
    since: datetime
    until: datetime
    found: Moments | Problem
    """What is found at each time from `since` until before `until`; a Problem is at least for a day."""


_kept: dict[tuple[str, str, str], _Kept] = {}


def moments_around(cron: str, time_zone: str, where: str, now: datetime) -> Moments | Problem:
    """Return the moments around `now` of a cron that stands `where`."""
    key = cron, time_zone, where
    kept = _kept.get(key)
    if kept is None or not kept.since <= now < kept.until:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        kept = _kept[key] = _searched(cron, time_zone, where, now)
    return kept.found


def _searched(cron: str, time_zone: str, where: str, now: datetime) -> _Kept:
    schedule = schedule_of(cron, time_zone, where, now)
    if isinstance(schedule, Problem):
        return _Kept(now, now + DAY, schedule)
    last, following = schedule.last(now), schedule.next(now)
    if following is None:
        return _Kept(now, now + DAY, (last, _never(cron, where)))
    return _Kept(max(last or now, following - LONGEST_WAIT), following, (last, following))
