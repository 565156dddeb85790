"""Timers: how long something has been seen to hold, such as that a broker is fenced.

A timer counts the seconds between observations that count, and nothing else. Within a process they are those of its
monotonic clock. A restart keeps what was counted, and adds nothing: the API server's clock tells only whether the gap
was short. So no timer is early but for what changed and changed back within one gap, and an outage, a restart or a
clock that is set makes it late at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import floor

from reassign.api.reassignment_record import RecordedTimer
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
