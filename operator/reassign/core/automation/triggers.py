"""Triggers: whether each is true, by what is observed and by timers.

They are levels, never edges: each is judged from what is there now, and nothing is queued. So an outage is followed by
no burst.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.reassignment_policy import PlanTemplate, Trigger
from reassign.core.automation.model import BrokersSeen
from reassign.core.automation.schedule import ScheduleState
from reassign.core.automation.timers import Timer
from reassign.core.automation.watch import Few, Watched
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from reassign.text import counted, named_brokers

NOT_SUPPORTED = "NotSupported"
LOST_SECONDS = 1800
"""After how long a broker that is down counts as lost, where no trigger says it."""

TOO_MANY_SECONDS = 600
"""After how long too many brokers that are down are a matter for a user."""


@dataclass(frozen=True, slots=True)
class Level:
    """Whether a trigger is true."""

    true: bool = False
    brokers: frozenset[int] = frozenset()
    """The brokers that it is true for; while it waits, those that it waits for."""
    message: str = "nothing to do"
    waits: bool = False
    """Whether it becomes true unless something changes."""
    reason: str | None = None
    """Why it cannot become true, as one word."""
    moment: datetime | None = None
    """The moment of the schedule that is due."""


def level_of(trigger: Trigger, seen: BrokersSeen, watched: Watched, schedule: ScheduleState | None) -> Level:
    """Return the level of a trigger; `schedule` is what its schedule has come to, where it has one."""
    if trigger.broker_lost:
        return broker_lost(trigger.broker_lost.after_seconds, seen, watched)
    if trigger.brokers_cordoned:
        return brokers_cordoned(trigger.brokers_cordoned.after_seconds, watched)
    if trigger.brokers_added:
        return brokers_added(trigger.brokers_added.after_seconds, watched)
    return on_schedule(schedule)


def broker_lost(after_seconds: int, seen: BrokersSeen, watched: Watched) -> Level:
    """Whether brokers that have replicas have been down for so long. Before Kafka 4.0 that cannot be seen."""
    if not seen.lists_fenced:
        message = "the brokers do not list those that are fenced: Kafka 4.0 and later do"
        return Level(message=message, reason=NOT_SUPPORTED)
    return _lasting(watched.down, after_seconds, "down")


def brokers_cordoned(after_seconds: int, watched: Watched) -> Level:
    """Whether brokers that are up and have replicas have been cordoned by others for so long."""
    return _lasting(watched.cordoned, after_seconds, "cordoned")


def _lasting(timers: Mapping[int, Timer], after_seconds: int, how: str) -> Level:
    if true := sorted(lasting(timers, after_seconds)):
        first = true[:MAX_PLAN_BROKERS]
        more = f"; a plan empties {MAX_PLAN_BROKERS} at most" if true != first else ""
        return Level(True, frozenset(first), f"{named_brokers(first, 'has')} been {how} for {after_seconds} s{more}")
    if not timers:
        return Level(message=f"no broker that has replicas is {how}")
    message = f"{named_brokers(timers, 'is')} {how}, for less than {after_seconds} s"
    return Level(False, frozenset(timers), message, waits=True)


def lasting(timers: Mapping[int, Timer], after_seconds: int) -> frozenset[int]:
    """Return the brokers whose timers have come so far."""
    return frozenset(broker for broker, timer in timers.items() if timer.seconds >= after_seconds)


def brokers_added(after_seconds: int, watched: Watched) -> Level:
    """Whether the same brokers have had few replicas for so long."""
    if not watched.added or watched.added_for is None:
        return Level(message="no broker has few replicas")
    which = f"{named_brokers(watched.added, 'has')} few replicas"
    if watched.added_for.seconds >= after_seconds:
        return Level(True, watched.added, f"{which}, the same ones for {after_seconds} s")
    return Level(False, watched.added, f"{which}, the same ones for less than {after_seconds} s", waits=True)


def on_schedule(state: ScheduleState | None) -> Level:
    """Whether a moment of a schedule is due."""
    if state is None:
        return Level()
    if state.problem:
        return Level(message=state.problem.message, reason=state.problem.reason)
    if state.due:
        return Level(True, message=f"due since {state.due:%Y-%m-%d %H:%M} UTC", moment=state.due)
    return Level(message=f"next at {state.following:%Y-%m-%d %H:%M} UTC" if state.following else "never due")


def few_of(trigger: Trigger | None, template: PlanTemplate | None) -> Few | None:
    """Return which brokers count as having few replicas: none that the goal keeps empty."""
    if trigger is None or trigger.brokers_added is None:
        return None
    goal = template.goal if template else None
    among = frozenset(goal.brokers) if goal and goal.brokers is not None else None
    without = frozenset(goal.avoid_brokers or ()) if goal else frozenset[int]()
    return Few(trigger.brokers_added.below_percent, among, without)


# --- What is wrong with the cluster as a whole ---


def down_now(seen: BrokersSeen, ignored: Set[int]) -> frozenset[int]:
    """Return the brokers that have replicas and are fenced or missing now, those aside that are to be emptied."""
    return frozenset(b for b, found in seen.brokers.items() if found.holds and not found.up and b not in ignored)


def lost_racks(seen: BrokersSeen, lost: Set[int]) -> dict[str, frozenset[int]]:
    """Return the racks of lost brokers that have two brokers or more, all of which are down, with these brokers."""
    racks = dict.fromkeys(rack for broker in sorted(lost) if (rack := _rack(seen, broker)))
    members = {
        rack: frozenset(b for b, found in seen.brokers.items() if found.rack == rack and (found.up or found.holds))
        for rack in racks
    }
    return {
        rack: brokers
        for rack, brokers in members.items()
        if len(brokers) > 1 and not any(seen.brokers[broker].up for broker in brokers)
    }


def rack_down(seen: BrokersSeen, lost: Set[int]) -> str | None:
    """Say that all of a lost broker's rack is down."""
    rack, brokers = next(iter(lost_racks(seen, lost).items()), (None, frozenset[int]()))
    return f"{named_brokers(brokers, 'is')} down, all of rack {rack}" if rack else None


def _rack(seen: BrokersSeen, broker: int) -> str | None:
    return seen.brokers[broker].rack if broker in seen.brokers else None


def too_many(down: Set[int], most: int) -> str | None:
    """Say that more brokers are down than may be replaced."""
    if len(down) <= most:
        return None
    return f"{named_brokers(down, 'is')} down, and maxBrokers is {most}: a user decides what becomes of them"


def problem_of(schedules: Mapping[str, ScheduleState]) -> Problem | None:
    """Return why schedules cannot be read, of all triggers that have one."""
    problems = [state.problem for state in schedules.values() if state.problem]
    if not problems:
        return None
    more = f"; so it is with {counted(len(problems) - 1, 'other trigger')}" if len(problems) > 1 else ""
    return Problem(Reason.INVALID_SCHEDULE, f"{problems[0].message}{more}")
