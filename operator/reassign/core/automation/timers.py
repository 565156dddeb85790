"""Timers: how long something has been seen to hold, such as that a broker is fenced.

A timer counts the seconds between observations that count, and nothing else. Within a process they are those of its
monotonic clock. A restart keeps what was counted, and adds nothing: the API server's clock tells only whether the gap
was short. So no timer is early but for what changed and changed back within one gap, and an outage, a restart or a
clock that is set makes it late at most.

A recorded wait ends some time after it began. Within a process that is counted by the monotonic clock, too, whatever
the API server's is set to. After a restart that one tells what has passed, and no wait is longer than it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor

from reassign.api.reassignment_record import RecordedTimer, RecordedWait
from reassign.core.model.forwarding import Clock
from reassign.core.model.snapshot import Snapshot
from reassign.core.plans.model import ObservedCluster

GREATEST_GAP_SECONDS = 120.0
"""After a longer gap between observations, or a negative one, a timer begins anew."""
COUNT_HOLDS_SECONDS = 600.0
"""How long a count of replicas is good for."""
GREATEST_RECORDED_SECONDS = 86_400
"""No trigger asks for more."""
RECORD_SECONDS = 60.0
"""How old a record of a timer gets. With a restart in between it has to be less than the greatest gap."""
CLOCK_SET_SECONDS = 5.0
"""By how much the API server's clock is set before the times of waits are recorded anew."""
Waits = Mapping[datetime, float]
"""When recorded waits began by the monotonic clock, by what is recorded of that."""


@dataclass(frozen=True, slots=True)
class Timer:
    """How long something has been seen to hold."""

    seconds: float
    observed_at: datetime
    """When it was seen last, by the API server's clock."""
    monotonic: float | None = None
    """The same by the monotonic clock; None where an earlier process saw it."""


def read_timer(record: RecordedTimer | None) -> Timer | None:
    """Return the timer that an earlier process has recorded."""
    return Timer(record.seconds, record.observed_at) if record else None


def observed(timer: Timer | None, holds: bool | None, now: Clock) -> Timer | None:
    """Return the timer after an observation; None where what it measures does not hold.

    `holds` is None where that is not known, and where the observation does not count.
    """
    if holds is None:
        return timer
    if not holds:
        return None
    if timer is None:
        return Timer(0, now.time, now.monotonic)
    if timer.monotonic is None:
        gap, counted = (now.time - timer.observed_at).total_seconds(), 0.0
    else:
        gap = counted = now.monotonic - timer.monotonic
    seconds = timer.seconds + counted if 0 <= gap <= GREATEST_GAP_SECONDS else 0
    return Timer(seconds, now.time, now.monotonic)


def counts(seen: ObservedCluster) -> bool:
    """Return whether an observation counts: a broker has forwarded ListPartitionReassignments to a controller.

    A broker that is cut off from the controllers goes on to tell which others were fenced when it heard of them last.
    """
    return isinstance(seen, Snapshot) and bool(seen.forwarded.brokers)


def recorded(
    before: RecordedTimer | None, timer: Timer | None, most: float = GREATEST_RECORDED_SECONDS
) -> RecordedTimer | None:
    """Return what the record should have of a timer: another one where it begins, begins anew or ends, and each minute.

    It has whole seconds, cut, so that it never says more than was counted. No decision asks for more than `most`.
    """
    if timer is None:
        return None
    if before and timer.seconds >= before.seconds >= most:
        return before
    if before and timer.seconds >= before.seconds:
        age = (timer.observed_at - before.observed_at).total_seconds()
        if 0 <= age < RECORD_SECONDS:
            return before
    return RecordedTimer(seconds=floor(timer.seconds), observed_at=timer.observed_at)


# --- Recorded waits ---


def remembered(
    known: Waits, before: Sequence[RecordedWait | datetime], after: Sequence[RecordedWait | datetime], now: Clock
) -> dict[datetime, float]:
    """Return when waits began: those that are recorded, and those that are to be recorded `after` a decision.

    One that is recorded is in `after` as the same object. Both are returned, since that may not be written.
    """
    new = [wait for wait in after if all(wait is not one for one in before)]
    found = {_began(wait): now.monotonic - passed(wait, known, now) for wait in before}
    return found | {_began(wait): now.monotonic - passed(wait, {}, now) for wait in new}


def passed(wait: RecordedWait | datetime, known: Waits, now: Clock) -> float:
    """Return the seconds since a wait began; those that this process has not counted are by the API server's clock."""
    began = _began(wait)
    if began in known:
        return now.monotonic - known[began]
    return max(floor((now.time - began).total_seconds()), 0)


def left(wait: RecordedWait | None, known: Waits, now: Clock) -> float:
    """Return the seconds until a wait ends: 0 without one, and less after its end."""
    return wait.seconds - passed(wait, known, now) if wait else 0.0


def by_clock(wait: RecordedWait, known: Waits, now: Clock) -> RecordedWait:
    """Return a wait as it is to be recorded: with another end where the API server's clock was set since it began."""
    began = began_by_clock(_began(wait), known, now)
    return wait if began == _began(wait) else wait.model_copy(update={"until": began + timedelta(seconds=wait.seconds)})


def began_by_clock(began: datetime, known: Waits, now: Clock) -> datetime:
    """Return the begin of a wait as it is to be recorded: another one where that clock was set since."""
    since = passed(began, known, now)
    if abs((now.time - began).total_seconds() - since) <= CLOCK_SET_SECONDS:
        return began
    return whole(now.time) - timedelta(seconds=floor(since))


def _began(wait: RecordedWait | datetime) -> datetime:
    return wait if isinstance(wait, datetime) else wait.until - timedelta(seconds=wait.seconds)


def whole(now: datetime) -> datetime:
    """Return a time as records have it, in whole seconds."""
    return now.replace(microsecond=0)
