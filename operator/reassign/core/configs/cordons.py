"""Cordons: brokers that are to take no new replicas (KIP-1066), by one more configuration that is set and restored.

Which are wanted is decided elsewhere. A cordon that others have set is theirs: nothing is set or recorded while it is
there. What a broker reports of its log directories says whether it is cordoned; the configuration alone does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import NamedTuple

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Observed, Op
from reassign.core.model.memory import LONGEST_RETRY_SECONDS, Recent, Refusal, refused_again
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot, cordoned, live_brokers
from reassign.core.model.steps import Outcome, Result
from reassign.errors import Reason

ALL_LOG_DIRS = "*"
EFFECT_SECONDS = 60.0
"""How long a cordon may take until its broker reports that it is in force. Once that was down, it counts anew."""
MOST_REMOVALS = 3
LIFTING_SECONDS = 10.0
"""How long after a cordon was lifted the controllers may not know: they learn of it by heartbeats, every 2 s."""
GIVEN_UP_SECONDS = 600.0
"""How long a broker is fenced when its cordon does not hold the deletion of a KafkaCluster any more."""


class CordonReason(StrEnum):
    """Whether the cordon of a broker is in force, or why it is not."""

    IN_FORCE = "InForce"
    NOT_YET = "NotYet"
    NOT_SUPPORTED = "NotSupported"
    NOT_EFFECTIVE = "NotEffective"
    CORDON_DRIFT = "CordonDrift"
    NOT_AUTHORIZED = "NotAuthorized"
    BROKER_FENCED = "BrokerFenced"


class CordonState(NamedTuple):
    """How far the cordon of a broker is that is wanted."""

    reason: CordonReason
    message: str
    held: bool = False
    """Whether the cordon is to be ours: it is set, or stays. One of another client, or a hopeless one, is not."""
    left: bool = False
    """Whether the configuration is left as it is until the broker has reported its directories once more."""
    removals: int = 0
    """How often others removed it."""


class CordonChange(StrEnum):
    """What has become of a cordon."""

    CORDONED = "BrokerCordoned"
    UNCORDONED = "BrokerUncordoned"
    REMOVED = "CordonDrift"


class CordonNews(NamedTuple):
    """A change of a cordon, as a sentence."""

    change: CordonChange
    message: str


@dataclass(frozen=True, slots=True)
class WantedCordon:
    """What this process remembers of a cordon that is wanted. Losing it costs a wait."""

    reason: CordonReason | None = None
    """Its last state."""
    waiting: float | None = None
    """Since when it is set, or may be, and not in force."""
    ineffective: bool = False
    """Whether it was not in force in time. Then it is not set again until its broker was down."""
    stood: bool = False
    """Whether it was ours for certain, so that it was removed if another value is there."""
    replaced: float | None = None
    """Since when another value than ours is there."""
    refused: Refusal | None = None
    """Why the broker refused it, and when it is asked again."""


@dataclass(frozen=True, slots=True)
class CordonMemory:
    """What this process remembers of cordons, by broker and a monotonic clock."""

    wanted: Mapping[int, WantedCordon] = field(default_factory=dict)
    lifting: Mapping[int, float] = field(default_factory=dict)
    """When a cordon was last seen that is being lifted."""
    fenced: Mapping[int, float] = field(default_factory=dict)
    """Since when a broker that has our cordon is fenced."""
    unlifted: Mapping[int, Problem] = field(default_factory=dict)
    """Why a cordon that is to be lifted could not be read or changed."""

    def observe(
        self,
        wanted: Set[int],
        record: RecordedConfigs | None,
        snapshot: Snapshot,
        problems: Mapping[ConfigResource, Problem],
        now: float,
    ) -> CordonMemory:
        """Return the memory after an observation; `problems` are what reads and changes have met.

        A cordon is not being lifted where the broker is down, or we may not.
        """
        ours, live = recorded_cordons(record), live_brokers(snapshot.brokers)
        due = {broker: problems.get(cordon_key(broker).resource) for broker in sorted((ours - wanted) & live)}
        lifted = {b for b, problem in due.items() if problem is None or problem.reason is not Reason.NOT_AUTHORIZED}
        return CordonMemory(
            {b: self.wanted.get(b, WantedCordon()) for b in wanted},
            {**{b: self.lifting[b] for b in self.lifted_lately(now)}, **dict.fromkeys(lifted, now)},
            {b: self.fenced.get(b, now) for b in ours - live},
            {b: problem for b, problem in due.items() if problem},
        )

    def lifted_lately(self, now: float) -> frozenset[int]:
        """Return the brokers whose cordon is being lifted, or was until just now."""
        return frozenset(broker for broker, at in self.lifting.items() if now - at < LIFTING_SECONDS)

    def given_up(self, now: float) -> frozenset[int]:
        """Return the brokers that have been fenced for so long that no deletion waits for their cordons."""
        return frozenset(broker for broker, since in self.fenced.items() if now - since >= GIVEN_UP_SECONDS)

    def remember(self, outcomes: Mapping[Change, Outcome], at: float) -> CordonMemory:
        """Return the memory after these changes, which ended at this moment."""
        wanted = dict(self.wanted)
        for change, outcome in outcomes.items():
            if change.key.config != CORDONED_LOG_DIRS or (change.op, change.value) != (Op.SET, ALL_LOG_DIRS):
                continue
            broker = int(change.key.resource.name)
            if (known := wanted.get(broker)) is None:
                continue
            if outcome.result is Result.REFUSED:
                refused = refused_again(known.refused, outcome.problem, at, LONGEST_RETRY_SECONDS)
                wanted[broker] = replace(known, refused=refused)
                continue
            since = at if known.waiting is None else known.waiting
            applied = outcome.result is Result.APPLIED
            wanted[broker] = replace(
                known, stood=known.stood or applied, refused=None if applied else known.refused, waiting=since
            )
        return replace(self, wanted=wanted)


def cordon_key(broker: int) -> ConfigKey:
    """Return the configuration that cordons a broker."""
    return ConfigKey(ConfigResource(ConfigResourceType.BROKER, str(broker)), CORDONED_LOG_DIRS)


def recorded_cordons(record: RecordedConfigs | None) -> frozenset[int]:
    """Return the brokers that have our cordon, by a record."""
    brokers = record.brokers if record else ()
    return frozenset(b.broker for b in brokers if any(c.name == CORDONED_LOG_DIRS for c in b.configs))


class ReadCordons(NamedTuple):
    """What a read of configurations shows of cordons."""

    began: float
    seen: Observed
    """With the confirmed changes since laid over it."""
    settled: Set[ConfigKey]
    """Configurations that it shows as they are."""
    problems: Mapping[ConfigResource, Problem]
    """Why others could not be read."""


class _Broker(NamedTuple):
    """What is seen of a broker that is to be cordoned."""

    number: int
    live: bool
    ours: bool
    """Whether our cordon is recorded."""
    removals: int
    cordoned: bool | None
    """As it reported last; None where its version does not say."""
    reported: float
    """When it did; -inf for never."""

    def state(self, reason: CordonReason, message: str, *, held: bool | None = None) -> CordonState:
        """Return a state in which our cordon stays if it is there, or as `held` says."""
        held = self.ours if held is None else held
        return CordonState(reason, f"broker {self.number} {message}", held, removals=self.removals)


def judge_cordons(
    memory: CordonMemory, record: RecordedConfigs | None, snapshot: Snapshot, read: ReadCordons, recent: Recent
) -> tuple[Mapping[int, CordonState], CordonMemory]:
    """Return the state of each cordon that is wanted, by broker, and the memory from now on."""
    ours, live = recorded_cordons(record), live_brokers(snapshot.brokers)
    removals = {b.broker: b.cordon_removals or 0 for b in (record.brokers if record else ())}
    states: dict[int, CordonState] = {}
    wanted: dict[int, WantedCordon] = {}
    for number, known in memory.wanted.items():
        directories = snapshot.log_dirs.get(number)
        broker = _Broker(
            number,
            number in live,
            number in ours,
            removals.get(number, 0),
            cordoned(directories or {}),
            -inf if directories is None else recent.reports.read.get(number, -inf),
        )
        state, after = _judge(broker, known, read, recent.now)
        states[number], wanted[number] = state, replace(after, reason=state.reason)
    return states, replace(memory, wanted=wanted)


def _judge(b: _Broker, known: WantedCordon, read: ReadCordons, now: float) -> tuple[CordonState, WantedCordon]:
    if not b.live:
        message = "is down or not registered, and only the broker itself can be told that it is cordoned"
        return b.state(CordonReason.BROKER_FENCED, message), WantedCordon(stood=known.stood)
    if b.cordoned is None:
        return _unreported(b), known
    if known.waiting is not None and b.reported - known.waiting >= EFFECT_SECONDS and not b.cordoned:
        known = replace(known, ineffective=True)
    if known.ineffective and (b.ours or not b.cordoned):
        return _without_effect(b), known
    key, refusal = cordon_key(b.number), known.refused
    if refusal and refusal.until > now and not b.cordoned:
        message = f"refuses to be cordoned: {refusal.problem.message}"
        return b.state(_reason_of(refusal.problem), message, held=False), known
    configs = read.seen.get(key.resource)
    text = (configs or {}).get(CORDONED_LOG_DIRS)
    if configs is not None:
        if b.ours and text != ALL_LOG_DIRS and key in read.settled:
            return _replaced(b, known, read.began)
        known = replace(known, replaced=None, stood=known.stood or (b.ours and text == ALL_LOG_DIRS))
    if b.cordoned:
        by = "by the operator" if b.ours else "by another client"
        return b.state(CordonReason.IN_FORCE, f"is cordoned {by}"), replace(known, waiting=None)
    if problem := read.problems.get(key.resource):
        return b.state(_reason_of(problem), f"cannot be cordoned: {problem.message}"), known
    if configs is None:
        return b.state(CordonReason.NOT_YET, "has not told its configurations yet"), known
    return _awaited(b, known, text, now)


def _unreported(b: _Broker) -> CordonState:
    if b.reported == -inf:
        return b.state(CordonReason.NOT_YET, "has not reported its log directories yet")
    message = "does not say which of its log directories are cordoned: that takes Kafka 4.3"
    return b.state(CordonReason.NOT_SUPPORTED, message, held=False)


def _awaited(b: _Broker, known: WantedCordon, text: str | None, now: float) -> tuple[CordonState, WantedCordon]:
    """Judge a broker that is not cordoned: it is to be, unless that was tried often enough."""
    if text == ALL_LOG_DIRS and known.waiting is None:
        known = replace(known, waiting=now)
    if b.removals >= MOST_REMOVALS:
        return _drifted(b, b.removals), known
    return b.state(CordonReason.NOT_YET, "is being cordoned", held=True), known


def _without_effect(b: _Broker) -> CordonState:
    message = (
        f"was not cordoned within {EFFECT_SECONDS:.0f} s by {CORDONED_LOG_DIRS}={ALL_LOG_DIRS}: "
        "see its log, and whether its log.dirs are absolute paths"
    )
    return b.state(CordonReason.NOT_EFFECTIVE, message, held=False)


def _replaced(b: _Broker, known: WantedCordon, read_at: float) -> tuple[CordonState, WantedCordon]:
    """Judge a broker that has another value than ours, when it has reported its directories since.

    It may be cordoned all the same: then that cordon is the other client's, and ours is gone.
    """
    since = read_at if known.replaced is None else known.replaced
    if b.reported <= since:
        message = f"broker {b.number} has another {CORDONED_LOG_DIRS} than it was given, and is asked what that does"
        reason = CordonReason.IN_FORCE if b.cordoned else CordonReason.NOT_YET
        return CordonState(reason, message, held=True, left=True, removals=b.removals), replace(known, replaced=since)
    after = WantedCordon(refused=known.refused, waiting=None if known.stood else known.waiting)
    if b.cordoned:
        message = f"broker {b.number} is cordoned by another client"
        return CordonState(CordonReason.IN_FORCE, message, removals=b.removals), after
    removals = b.removals + known.stood
    if removals >= MOST_REMOVALS:
        return _drifted(b, removals), after
    message = f"broker {b.number} is being cordoned"
    if known.stood:
        message += f" again: another client has removed its {CORDONED_LOG_DIRS}"
    return CordonState(CordonReason.NOT_YET, message, held=True, removals=removals), after


def _drifted(b: _Broker, removals: int) -> CordonState:
    message = (
        f"broker {b.number} is not cordoned: another client has removed its {CORDONED_LOG_DIRS} {removals} times, "
        "so it is not set again; find that client"
    )
    return CordonState(CordonReason.CORDON_DRIFT, message, removals=removals)


def _reason_of(problem: Problem) -> CordonReason:
    """Return what a refusal, or a failed read, says of a cordon."""
    match problem.reason:
        case Reason.NOT_AUTHORIZED:
            return CordonReason.NOT_AUTHORIZED
        case Reason.REQUEST_REFUSED | Reason.CLUSTER_NOT_SUPPORTED:
            return CordonReason.NOT_SUPPORTED
        case _:
            return CordonReason.NOT_YET


def news(
    before: RecordedConfigs | None,
    after: RecordedConfigs | None,
    states: Mapping[int, CordonState],
    memory: CordonMemory,
) -> tuple[CordonNews, ...]:
    """Return what has become of cordons since the last reconciliation, by the records and the memory of it."""
    removals = {b.broker: b.cordon_removals or 0 for b in (before.brokers if before else ())}
    ours = recorded_cordons(before)
    found: list[CordonNews] = []
    for broker, state in states.items():
        last = memory.wanted[broker].reason
        if state.removals > removals.get(broker, 0):
            found.append(CordonNews(CordonChange.REMOVED, state.message))
        elif state.reason is CordonReason.IN_FORCE and state.held and last is CordonReason.NOT_YET:
            found.append(CordonNews(CordonChange.CORDONED, state.message))
    for broker in sorted(ours - recorded_cordons(after)):
        lifted = states.get(broker)
        if lifted is None:
            message = f"{CORDONED_LOG_DIRS} of broker {broker} is what it was before it was cordoned"
            found.append(CordonNews(CordonChange.UNCORDONED, message))
        elif lifted.reason in (CordonReason.NOT_EFFECTIVE, CordonReason.NOT_SUPPORTED):
            found.append(CordonNews(CordonChange.UNCORDONED, lifted.message))
    return tuple(found)
