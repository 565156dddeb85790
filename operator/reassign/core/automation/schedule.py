"""When a schedule is due: a moment of its cron has come, and was neither served nor missed.

What is recorded is the last moment that is over. So moments that were missed count as one, a clock that is set back
brings none again, and an hour that comes twice has each moment once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from reassign.api.reassignment_policy import OnSchedule
from reassign.api.reassignment_record import RecordedSchedule
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import DAY, moments_around


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """What a schedule comes to at one time."""

    record: RecordedSchedule | None
    """What is to be recorded of it."""
    due: datetime | None = None
    """The moment to be served now."""
    missed: datetime | None = None
    """A moment that has just been missed: it came longer ago than the starting deadline."""
    following: datetime | None = None
    """When the next moment comes."""
    problem: Problem | None = None
    """Why the schedule cannot be read."""


def schedule_at(schedule: OnSchedule, before: RecordedSchedule | None, where: str, now: datetime) -> ScheduleState:
    """Return whether a schedule that stands `where` is due. One that is seen first begins after `now`."""
    found = moments_around(schedule.cron, schedule.time_zone, where, now)
    if isinstance(found, Problem):
        return ScheduleState(before, problem=found)
    last, following = found
    if isinstance(following, Problem):
        return ScheduleState(before, problem=following)
    same = before and (before.cron, before.time_zone) == (schedule.cron, schedule.time_zone)
    if before is None or not same or before.last - now > DAY:  # a clock that was wrong by more is no reason to wait
        record = RecordedSchedule(cron=schedule.cron, time_zone=schedule.time_zone, last=now)
        return ScheduleState(record, following=following)
    if last is None or last <= before.last:
        return ScheduleState(before, following=following)
    if is_overdue(schedule, last, now):
        return ScheduleState(served(before, last), missed=last, following=following)
    return ScheduleState(before, due=last, following=following)


def is_overdue(schedule: OnSchedule, moment: datetime, now: datetime) -> bool:
    """Whether a moment came longer ago than the starting deadline, or was one of a clock that was wrong by a day."""
    return not -DAY <= now - moment <= timedelta(seconds=schedule.starting_deadline_seconds)


def unserved(record: RecordedSchedule, moment: datetime) -> RecordedSchedule:
    """Return the record of a schedule the last moment of which is to be served again."""
    return record.model_copy(update={"last": moment - timedelta(seconds=1)}) if record.last == moment else record


def served(record: RecordedSchedule, moment: datetime) -> RecordedSchedule:
    """Return the record of a schedule once a moment is over."""
    return record.model_copy(update={"last": max(record.last, moment)})
