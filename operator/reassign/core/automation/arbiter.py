"""What holds a plan of automation, and which plan goes first.

The order of precedence is that of `Rank`. One automated plan of a KafkaCluster runs at a time. Only the first three
retire a plan of a lower rank, once nothing else holds them and their own plan is approved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from math import floor
from typing import NamedTuple

from reassign.api.reassignment_policy import TriggerKind
from reassign.core.automation.timers import Timer
from reassign.errors import Reason
from reassign.text import listed, named_brokers


class Rank(IntEnum):
    """Whose plan goes first: the least one."""

    BROKER_LOST = 0
    DECOMMISSION = 1
    BROKERS_CORDONED = 2
    BROKERS_ADDED = 3
    SCHEDULE = 4


RANKS: Mapping[TriggerKind, Rank] = {
    TriggerKind.BROKER_LOST: Rank.BROKER_LOST,
    TriggerKind.BROKERS_CORDONED: Rank.BROKERS_CORDONED,
    TriggerKind.BROKERS_ADDED: Rank.BROKERS_ADDED,
    TriggerKind.SCHEDULE: Rank.SCHEDULE,
}
EVACUATING = frozenset({Rank.BROKER_LOST, Rank.DECOMMISSION, Rank.BROKERS_CORDONED})
"""Plans that empty brokers: these alone retire another plan."""


class HoldReason(StrEnum):
    """Why a trigger that is true starts no plan."""

    SUSPENDED = Reason.SUSPENDED.value
    TOO_MANY_BROKERS_LOST = Reason.TOO_MANY_BROKERS_LOST.value
    RACK_LOST = Reason.RACK_LOST.value
    CLUSTER_UNSETTLED = "ClusterUnsettled"
    PLAN_IN_PROGRESS = "PlanInProgress"
    FOREIGN_IN_FLIGHT = "ForeignInFlight"
    COOLDOWN = "Cooldown"
    BACKOFF = "Backoff"
    GAIN_TOO_SMALL = "GainTooSmall"


class Hold(NamedTuple):
    """Why a trigger starts no plan, and what ends that."""

    reason: str
    message: str
    until: datetime | None = None
    """When it ends by the time alone."""


@dataclass(frozen=True, slots=True)
class Running:
    """An automated plan that is approved and has not ended, or that is made or waits to begin."""

    plan: str
    rank: Rank
    owner: str
    """The uid of the object that it was made for."""
    approved: bool = True
    stage: str = "is under way"
    """How far it is, as a message says it."""
    moving: bool = True
    """Whether it may have something in flight."""


@dataclass(frozen=True, slots=True)
class PlanCase:
    """All that holds or does not hold a trigger that is true."""

    rank: Rank
    brokers: frozenset[int]
    """The brokers that its plan empties."""
    owner: str
    suspended: str | None = None
    """Why nothing is to start: suspend, or the brake."""
    too_many: str | None = None
    """That too many brokers are down."""
    rack_lost: str | None = None
    """That all of a lost broker's rack is down."""
    settled: Timer | None = None
    settle_seconds: int = 0
    fenced: frozenset[int] = frozenset()
    """Brokers that have replicas, and are fenced and not lost."""
    running: Sequence[Running] = ()
    users: Sequence[str] = ()
    """Users' plans that have moves in flight, or have advanced lately."""
    unread: Sequence[str] = ()
    """BrokerDecommissions that cannot be read: their plans may be under way."""
    foreign: frozenset[int] = frozenset()
    """Brokers that get or lose replicas by moves of other clients."""
    foreign_from: frozenset[int] = frozenset()
    """Brokers that lose replicas by these."""
    cooldown: Hold | None = None
    backoff: Hold | None = None
    gain: Hold | None = None


HoldCheck = Callable[[PlanCase], str | Hold | None]


def _suspended(it: PlanCase) -> str | None:
    return it.suspended


def _too_many(it: PlanCase) -> str | None:
    return it.too_many if it.rank is Rank.BROKER_LOST else None


def _rack_lost(it: PlanCase) -> str | None:
    if it.rank is not Rank.BROKER_LOST or it.rack_lost is None:
        return None
    return f"{it.rack_lost}: a user decides what becomes of it"


def _unsettled(it: PlanCase) -> str | None:
    if it.rank is Rank.BROKER_LOST:
        return None
    if fenced := it.fenced - it.brokers:
        return f"{named_brokers(fenced, 'is')} fenced, and may come back"
    if it.settled is None or floor(it.settled.seconds) < it.settle_seconds:
        return f"a broker has come, gone or been fenced within {it.settle_seconds} s"
    return None


def _in_progress(it: PlanCase) -> str | None:
    for other in it.running:
        if (other.approved or other.owner == it.owner) and not retires(it.rank, other.rank):
            return f"{other.plan} {other.stage}"
    if it.unread and it.rank is not Rank.BROKER_LOST:
        return f"the BrokerDecommission {min(it.unread)} cannot be read, and may have a plan; its status says why"
    if it.users and it.rank not in (Rank.BROKER_LOST, Rank.BROKERS_CORDONED):
        return f"plans of users are under way: {listed(sorted(it.users))}"
    return None


def _foreign(it: PlanCase) -> str | None:
    if it.rank is Rank.BROKER_LOST or not it.foreign:
        return None
    if it.rank is Rank.BROKERS_CORDONED:
        leaving = it.foreign_from & it.brokers
        return f"other clients move replicas away from {named_brokers(leaving)}" if leaving else None
    return f"other clients move partitions of {named_brokers(it.foreign)}"


def _cooldown(it: PlanCase) -> Hold | None:
    return it.cooldown if it.rank not in EVACUATING else None


def _backoff(it: PlanCase) -> Hold | None:
    return it.backoff


def _gain(it: PlanCase) -> Hold | None:
    return it.gain if it.rank is not Rank.SCHEDULE else None


HOLDS: Mapping[HoldReason, HoldCheck] = {
    HoldReason.SUSPENDED: _suspended,
    HoldReason.TOO_MANY_BROKERS_LOST: _too_many,
    HoldReason.RACK_LOST: _rack_lost,
    HoldReason.CLUSTER_UNSETTLED: _unsettled,
    HoldReason.PLAN_IN_PROGRESS: _in_progress,
    HoldReason.FOREIGN_IN_FLIGHT: _foreign,
    HoldReason.COOLDOWN: _cooldown,
    HoldReason.BACKOFF: _backoff,
    HoldReason.GAIN_TOO_SMALL: _gain,
}
"""The holds, in their order; the first one is what a trigger says. While its KafkaCluster is not served, a policy says
that, and no trigger is judged."""
OF_PLANS_TO_COME = frozenset({HoldReason.COOLDOWN, HoldReason.BACKOFF, HoldReason.GAIN_TOO_SMALL})
"""Holds that keep a plan from being made, and not one that is there from being begun."""


def hold_of(it: PlanCase, but: frozenset[HoldReason] = frozenset()) -> Hold | None:
    """Return what holds a trigger that is true, if anything, some holds left out."""
    for reason, check in HOLDS.items():
        if reason in but:
            continue
        found = check(it)
        if isinstance(found, Hold):
            return found
        if found:
            return Hold(reason, found)
    return None


def retires(rank: Rank, running: Rank) -> bool:
    """Whether a plan of a rank retires one of another rank that runs."""
    return rank in EVACUATING and rank < running
