"""What a policy has watched of brokers: its timers, of the process and in its record.

A broker that is down and has no replica counts nowhere, nor does one that a BrokerDecommission empties. An observation
that did not reach a controller changes nothing, nor does a count of replicas that is too old: gaps make timers late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from math import inf

from reassign.api.limits import MAX_BROKERS, MAX_PLAN_BROKERS
from reassign.api.reassignment_record import (
    RecordedAdded,
    RecordedBrokerTimers,
    RecordedPolicy,
    RecordedSettled,
)
from reassign.core.automation.arbiter import Hold
from reassign.core.automation.model import BrokerSeen, BrokersSeen
from reassign.core.automation.timers import (
    COUNT_HOLDS_SECONDS,
    GREATEST_GAP_SECONDS,
    GREATEST_RECORDED_SECONDS,
    Timer,
    observed,
    read_timer,
    recorded,
)
from reassign.core.model.forwarding import Clock


@dataclass(frozen=True, slots=True)
class Unmade:
    """That no plan could be made for a trigger."""

    hold: Hold
    """Why."""
    terms: str
    """Digest of what it was to be made for: of anything else it is not known."""
    at: float
    """When it was tried last, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What has been watched of the brokers of a cluster."""

    down: Mapping[int, Timer] = field(default_factory=dict)
    """How long brokers that have replicas have been fenced, or missing."""
    cordoned: Mapping[int, Timer] = field(default_factory=dict)
    """How long brokers that are up and have replicas have been cordoned by others."""
    added: frozenset[int] = frozenset()
    """Brokers that have few replicas."""
    added_for: Timer | None = None
    """How long these have been the same."""
    settled: Timer | None = None
    """How long no broker has come, gone or been fenced."""
    up: frozenset[int] = frozenset()
    """Brokers that were up when the cluster was observed last."""
    fenced: frozenset[int] = frozenset()
    """Brokers that were registered and fenced then."""
    returned: Timer | None = None
    """How long a broker that the plan under way empties has been up again, or not cordoned any more."""
    idle: Mapping[str, Timer] = field(default_factory=dict)
    """How long triggers have been neither true nor about to be, by name."""
    asked: str | None = None
    """Digest of the spec of the plan that was asked for last."""
    unmade: Mapping[str, Unmade] = field(default_factory=dict)
    """The triggers that are true and for which no plan could be made, by name."""


@dataclass(frozen=True, slots=True)
class Few:
    """Which brokers count as having few replicas."""

    below_percent: int
    """Of the mean."""
    among: frozenset[int] | None = None
    """The brokers that the goal gives replicas; None: all."""
    without: frozenset[int] = frozenset()
    """Brokers that the goal gives none."""


def read_watched(record: RecordedPolicy) -> Watched:
    """Return what an earlier process has recorded."""
    timers = {broker.id: (read_timer(broker.down), read_timer(broker.cordoned)) for broker in record.brokers}
    return Watched(
        down={broker: down for broker, (down, _) in timers.items() if down},
        cordoned={broker: cordoned for broker, (_, cordoned) in timers.items() if cordoned},
        added=frozenset(record.added.brokers) if record.added else frozenset(),
        added_for=read_timer(record.added.timer if record.added else None),
        settled=read_timer(record.settled.timer if record.settled else None),
        up=frozenset(record.settled.up) if record.settled else frozenset(),
        fenced=frozenset(record.settled.fenced) if record.settled else frozenset(),
    )


def _is_recent(at: float | None, now: Clock, seconds: float) -> bool:
    return at is None or 0 <= now.monotonic - at <= seconds


def is_counted(seen: BrokersSeen, now: Clock) -> bool:
    """Whether the count of replicas is recent enough."""
    return _is_recent(seen.counted_at, now, COUNT_HOLDS_SECONDS)


def cordons_read(seen: BrokersSeen, now: Clock) -> Clock | None:
    """Return when it was read which brokers are cordoned; None where that is too long ago.

    Between two readings a cordon may be lifted or set: for timers the time of the last one counts.
    """
    if not _is_recent(seen.cordons_at, now, GREATEST_GAP_SECONDS):
        return None
    return now if seen.cordons_at is None else Clock(seen.cordons_at, now.time)


def watch(
    before: Watched, seen: BrokersSeen, ours: Set[int], ignored: Set[int], few: Few | None, now: Clock
) -> Watched:
    """Return what has been watched after an observation.

    `ours` are brokers with our cordon, `ignored` those that BrokerDecommissions empty.
    """
    if not seen.forwarded or not is_counted(seen, now):
        return before
    count = {broker: found for broker, found in seen.brokers.items() if broker not in ignored}
    down = {broker for broker, found in count.items() if found.holds and not found.up}
    as_read = cordons_read(seen, now)
    cordoned = {
        broker: found.cordoned if as_read else None
        for broker, found in count.items()
        if found.holds and found.up and broker not in ours
    }
    added = added_brokers(count, few) if few else frozenset[int]()
    same = added == before.added
    up = frozenset(broker for broker, found in seen.brokers.items() if found.up)
    fenced = frozenset(broker for broker, found in seen.brokers.items() if found.registered and found.fenced)
    changed = before.settled is None or _unsettles(before, up, fenced, seen, ignored)
    return Watched(
        down=_timers(before.down, dict.fromkeys(down, True), now),
        cordoned=_timers(before.cordoned, cordoned, as_read or now),
        added=added,
        added_for=observed(before.added_for if same else None, bool(added), now),
        settled=observed(None if changed else before.settled, True, now),
        up=up,
        fenced=fenced,
    )


def _timers(before: Mapping[int, Timer], holds: Mapping[int, bool | None], now: Clock) -> dict[int, Timer]:
    timers = {broker: observed(before.get(broker), known, now) for broker, known in holds.items()}
    return {broker: timer for broker, timer in timers.items() if timer}


def added_brokers(count: Mapping[int, BrokerSeen], few: Few) -> frozenset[int]:
    """Return the brokers with few replicas, among those that are up, not cordoned, and may get some."""
    hosts = {
        broker: sum(found.replicas.values())
        for broker, found in count.items()
        if found.up and not found.cordoned and broker not in few.without
        if few.among is None or broker in few.among
    }
    total = sum(hosts.values())
    return frozenset(
        broker for broker, replicas in hosts.items() if replicas * len(hosts) * 100 < few.below_percent * total
    )


def _unsettles(before: Watched, up: Set[int], fenced: Set[int], seen: BrokersSeen, ignored: Set[int]) -> bool:
    """Whether a broker has come, gone or been fenced; one without replicas that is fenced or returns does not count."""
    were, are = before.up | before.fenced, up | fenced
    if (were ^ are) - ignored:
        return True
    return any(seen.brokers[broker].holds for broker in (before.up ^ up) - ignored)


def recorded_watch(before: RecordedPolicy, watched: Watched, settle_seconds: float) -> dict[str, object]:
    """Return what the record of a policy should have of the timers.

    Where one of them is due all are written, so that those which began apart cost no more writes than one does.
    """
    # a restart is not to take its trigger from a plan that waits
    most = inf if before.waiting else GREATEST_RECORDED_SECONDS
    found = _recorded(before, watched, settle_seconds, most)
    same = all(getattr(before, field) == value for field, value in found.items())
    return found if same else _recorded(RecordedPolicy(), watched, settle_seconds, most)


def _recorded(before: RecordedPolicy, watched: Watched, settle_seconds: float, most: float) -> dict[str, object]:
    known = {broker.id: broker for broker in before.brokers}
    brokers = (
        RecordedBrokerTimers(
            id=broker,
            down=recorded(known[broker].down if broker in known else None, watched.down.get(broker), most),
            cordoned=recorded(known[broker].cordoned if broker in known else None, watched.cordoned.get(broker), most),
        )
        for broker in sorted(watched.down.keys() | watched.cordoned.keys())[:MAX_BROKERS]
    )
    return {
        "brokers": tuple(brokers),
        "added": _of_added(before.added, watched),
        "settled": _of_settled(before.settled, watched, settle_seconds),
    }


def _of_added(before: RecordedAdded | None, watched: Watched) -> RecordedAdded | None:
    brokers = _first(watched.added, MAX_PLAN_BROKERS)
    timer = recorded(before.timer if before and before.brokers == brokers else None, watched.added_for)
    return RecordedAdded(brokers=brokers, timer=timer) if timer else None


def _of_settled(before: RecordedSettled | None, watched: Watched, settle_seconds: float) -> RecordedSettled | None:
    timer = recorded(before.timer if before else None, watched.settled, settle_seconds)
    up, fenced = _first(watched.up, MAX_BROKERS), _first(watched.fenced, MAX_BROKERS)
    return RecordedSettled(timer=timer, up=up, fenced=fenced) if timer else None


def _first(brokers: Iterable[int], most: int) -> tuple[int, ...]:
    return tuple(sorted(brokers)[:most])
