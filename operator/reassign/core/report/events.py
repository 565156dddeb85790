"""Events: the changes of a status that are worth recording."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from enum import StrEnum
from typing import NamedTuple

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.common import Condition, ConditionStatus
from reassign.api.kafka_cluster import KafkaClusterStatus
from reassign.api.made_plan import PlanOutcome
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import ReassignmentPlanStatus, WaveState
from reassign.api.reassignment_policy import ReassignmentPolicyStatus, TriggerState, TriggerStatus
from reassign.core.configs.cordons import CordonChange, CordonNews
from reassign.core.model.read_back import (
    DecommissionStatusReadBack,
    PlanStatusReadBack,
    PolicyStatusReadBack,
    StatusReadBack,
)
from reassign.core.model.record import Record, active, recorded_problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.waits import PASSES, QUEUES
from reassign.errors import Reason
from reassign.text import amount, counted, listed, named_brokers, plural

IN_FLIGHT, CANCELLING = "PartitionsInFlight", "Cancelling"
"""Reasons of Reconciling."""
COSTS = (Reason.CANCELLING, Reason.SUPERSEDING)
"""Reasons of cancels, in details that say what a cancel discards."""


class Happened(StrEnum):
    """What has happened. A resource that begins to wait or to stall has an event with the reason of its condition."""

    REASSIGNMENT_STARTED = "ReassignmentStarted"
    """Partitions of a PartitionReassignment are in flight."""
    REASSIGNMENT_COMPLETED = "ReassignmentCompleted"
    """Every partition has its target replicas, in order and in sync."""
    REASSIGNMENT_FAILED = "ReassignmentFailed"
    """All that is not settled has failed. The note says why."""
    REASSIGNMENT_DRIFTED = "ReassignmentDrifted"
    """After its completion another client moved partitions away."""
    CANCEL_STARTED = "CancelStarted"
    """Partitions go back to their original replicas."""
    MOVES_CANCELLED = "MovesCancelled"
    """The cancel of these moves has begun. The note has what that discards."""
    CANCEL_ABANDONED = "CancelAbandoned"
    """`deletionDeadlineSeconds` has passed before all was undone. The note names what goes on."""
    ORDER_NOT_RESTORED = "OrderNotRestored"
    """After a cancel the brokers refused the original order of some replicas, such as because one of them is cordoned.
    The note has the order: restore it with a PartitionReassignment when the broker takes replicas again."""
    REASSIGNMENT_ORPHANED = "ReassignmentOrphaned"
    """The resource was deleted, and the moves that the note names go on."""
    REASSIGNMENT_RELEASED = "ReassignmentReleased"
    """The resource was deleted, and none of its moves is in flight."""
    RECORD_REBUILT = "RecordRebuilt"
    """Its ReassignmentRecords were removed. Moves in flight count as another client's, unless the process has seen that
    they are the resource's own. `whenInFlight: Supersede` takes them over. Find out who removed the records."""
    NOT_DELETED = "NotDeleted"
    """`ttlSecondsAfterFinished` is set on what Argo CD tracks: remove the resource from Git, or the field."""
    PLAN_MADE = "PlanMade"
    """A plan was worked out. The note has the number of its waves and its digest."""
    WAVE_STARTED = "WaveStarted"
    """A wave of a plan was resumed."""
    WAVE_COMPLETED = "WaveCompleted"
    """A wave of a plan has succeeded."""
    PLAN_COMPLETED = "PlanCompleted"
    """All waves of a plan have succeeded, or nothing had to move."""
    PLAN_RETIRED = "PlanRetired"
    """A plan has ended before it was carried out, because its owner ended it."""
    FURTHER_PLAN = "FurtherPlan"
    """Replicas have landed on brokers that are to be empty, and another plan moves them."""
    TRIGGER_FIRED = "TriggerFired"
    """A trigger of a ReassignmentPolicy has had a plan made. The note names both."""
    SCHEDULE_MISSED = "ScheduleMissed"
    """A schedule was due, and was held for longer than `startingDeadlineSeconds`. The status says what held it."""
    BROKER_LOST = "BrokerLost"
    """Brokers that have replicas have been down for `afterSeconds` of the trigger that the note names."""
    BROKER_RETURNED = "BrokerReturned"
    """Brokers that were lost are up again. One whose replicas have all been replaced is not lost any more."""
    BROKER_EMPTY = "BrokerEmpty"
    """The brokers of a BrokerDecommission are empty, and can be stopped."""
    BROKER_UNREGISTERED = "BrokerUnregistered"
    """The brokers of a BrokerDecommission were empty, and are no longer registered."""
    BUDGET_HALVED = "BudgetHalved"
    """Partitions that are not being moved lost in-sync replicas, so fewer may be in flight."""
    CLUSTER_UNCLAIMED = "ClusterUnclaimed"
    """Another installation would not be noticed: grant the right that the note names, or end what it names."""
    THROTTLE_DRIFT_REPEATED = "ThrottleDriftRepeated"
    """Another client changed throttles in use three times or more: find it. The waits between changes grow, and no
    throttled move begins before its throttle stands."""
    BROKER_CORDONED = "BrokerCordoned"
    """A broker takes no new replicas any more, by the operator."""
    BROKER_UNCORDONED = "BrokerUncordoned"
    """The operator has lifted its cordon of a broker, or taken back one that had no effect. The note says which."""
    CORDON_DRIFT = "CordonDrift"
    """Another client removed the operator's cordon of a broker. After the third time it is not set again: find that
    client."""
    CORDONS_LEFT = "CordonsLeft"
    """A KafkaCluster is gone, and brokers that are down still have its cordons. The note has what to do."""
    THROTTLES_ORPHANED = "ThrottlesOrphaned"
    """A KafkaCluster was deleted with `deletionPolicy: Orphan` while throttles or cordons were set: restore them on the
    brokers and topics that the note names."""


WARNINGS = (
    ("Failed", Happened.REASSIGNMENT_FAILED),
    ("Drifted", Happened.REASSIGNMENT_DRIFTED),
    ("Unclaimed", Happened.CLUSTER_UNCLAIMED),
    ("ThrottleDrift", Happened.THROTTLE_DRIFT_REPEATED),
)
"""Conditions whose beginning is a warning, and its reason."""
WAVE_EVENTS = {WaveState.RUNNING: Happened.WAVE_STARTED, WaveState.SUCCEEDED: Happened.WAVE_COMPLETED}
"""Events of a wave's states; Stalled says what has gone wrong with a wave."""


class Event(NamedTuple):
    """An event about an object."""

    warning: bool
    """Whether it is a warning, or else normal."""
    reason: str
    """A `Happened`, or the reason of a condition."""
    note: str


def cancellations(before: StatusReadBack, after: PartitionReassignmentStatus) -> list[Event]:
    """Return one event for all moves whose cancel has begun, with what it discards."""
    known = {(d.topic, d.partition) for d in before.partitions if d.reason in COSTS}
    new = [d for d in after.partitions if d.reason in COSTS and (d.topic, d.partition) not in known]
    if not new:
        return []
    moves = [f"{d.topic}-{d.partition}: {d.message}" for d in new]
    return [Event(False, Happened.MOVES_CANCELLED, listed(moves, most=3, separator="; "))]


def rebuilt(record: Record) -> Event:
    """Return the event of a record that was lost, with what counts as the resource's own since."""
    adopted = [e for e in active(record).values() if e.problem == recorded_problem(Reason.ORDER_UNKNOWN)]
    note = (
        f"its ReassignmentRecords were lost; {counted(len(adopted), 'partition')} in flight to the replicas asked for "
        f"{plural(adopted, 'counts', 'count')} as its own now, and the original order is not known"
    )
    return Event(True, Happened.RECORD_REBUILT, note)


def cordon_events(news: Iterable[CordonNews]) -> list[Event]:
    """Return the events of what has become of cordons."""
    return [Event(what is CordonChange.REMOVED, Happened(what), message) for what, message in news]


def order_not_restored(orders: Mapping[TopicPartition, Sequence[int]]) -> Event:
    """Return the event of partitions whose original order the brokers refused, with that order."""
    note = f"the brokers refused the original order of {counted(len(orders), 'partition')}: "
    were = (f"{tp} had {list(replicas)}" for tp, replicas in sorted(orders.items()))
    return Event(True, Happened.ORDER_NOT_RESTORED, note + listed(were, most=20, separator="; "))


def transitions(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """Return the events of a change of conditions; none where nothing changed."""
    old, new = _true(before), _true(after)
    events = []
    now, then = new.get("Reconciling"), old.get("Reconciling")
    started = now.reason if now and not (then and then.reason == now.reason) else None
    # the same words each time, so that one that starts again counts in one event
    if started == CANCELLING:
        note = "partitions go back to their original replicas; status says how far they are"
        events.append(Event(False, Happened.CANCEL_STARTED, note))
    if started == IN_FLIGHT:
        events.append(
            Event(False, Happened.REASSIGNMENT_STARTED, "partitions are in flight; status says how far they are")
        )
    if "Succeeded" in new and "Succeeded" not in old:
        events.append(Event(False, Happened.REASSIGNMENT_COMPLETED, new["Succeeded"].message))
    for kind, reason in WARNINGS:
        if kind in new and kind not in old:
            events.append(Event(True, reason, new[kind].message))
    if "Paused" in new and ("Paused" not in old or old["Paused"].reason != new["Paused"].reason):
        events.append(Event(False, new["Paused"].reason, new["Paused"].message))
    return events + _standstills(before, after)


def plan_transitions(before: PlanStatusReadBack, after: ReassignmentPlanStatus) -> list[Event]:
    """Return the events of a change of a plan's status."""
    events = []
    if after.digest and after.digest != before.digest:
        events.append(Event(False, Happened.PLAN_MADE, f"waves: {len(after.waves)}; {after.digest}"))
    were = {wave.name: wave.state for wave in before.waves}
    for wave in after.waves:
        if wave.state is not were.get(wave.name, WaveState.PENDING) and wave.state in WAVE_EVENTS:
            events.append(Event(False, WAVE_EVENTS[wave.state], wave.name))
    old, new = _true(before.conditions), _true(after.conditions)
    if "Succeeded" in new and "Succeeded" not in old:
        events.append(Event(False, Happened.PLAN_COMPLETED, new["Succeeded"].message))
    if (retired := _retired(after.conditions)) and not _retired(before.conditions):
        events.append(Event(False, Happened.PLAN_RETIRED, retired.message))
    return events + _standstills(before.conditions, after.conditions)


def decommission_transitions(before: DecommissionStatusReadBack, after: BrokerDecommissionStatus) -> list[Event]:
    """Return the events of a change of a BrokerDecommission's status."""
    events = []
    were = {plan.name: plan.outcome for plan in before.plans}
    for number, plan in enumerate(after.plans):
        if plan.name not in were and number:
            events.append(Event(False, Happened.FURTHER_PLAN, f"{plan.name}: {counted(plan.replicas, 'replica')}"))
        if plan.outcome is PlanOutcome.RETIRED and were.get(plan.name) is not PlanOutcome.RETIRED:
            events.append(Event(True, Happened.PLAN_RETIRED, f"{plan.name} could not go on"))
    old, new = _true(before.conditions), _true(after.conditions)
    for kind, reason in (("Empty", Happened.BROKER_EMPTY), ("Succeeded", Happened.BROKER_UNREGISTERED)):
        if kind in new and kind not in old:
            events.append(Event(False, reason, new[kind].message))
    return (
        events + _approval_awaited(before.conditions, after.conditions) + _stalled(before.conditions, after.conditions)
    )


def policy_transitions(
    before: PolicyStatusReadBack,
    after: ReassignmentPolicyStatus,
    of_lost: Container[str],
    up: Set[int] = frozenset(),
) -> list[Event]:
    """Return the events of a change of a ReassignmentPolicy's status.

    `of_lost` names its triggers for lost brokers, and `up` are the brokers that are up.
    """
    events = []
    were = {plan.name: plan.outcome for plan in before.plans}
    for plan in after.plans:
        if plan.name not in were:
            note = f"{plan.trigger}: {plan.name} copies {amount(plan.bytes)}"
            events.append(Event(False, Happened.TRIGGER_FIRED, note))
        if plan.outcome is PlanOutcome.RETIRED and were.get(plan.name) is not PlanOutcome.RETIRED:
            events.append(Event(True, Happened.PLAN_RETIRED, f"{plan.name} starts nothing more"))
    known = {trigger.name: trigger for trigger in before.triggers}
    for trigger in after.triggers:
        was = known.get(trigger.name)
        if trigger.reason == Happened.SCHEDULE_MISSED and not (was and was.message == trigger.message):
            events.append(Event(True, Happened.SCHEDULE_MISSED, f"{trigger.name}: {trigger.message}"))
        if trigger.name not in of_lost:
            continue
        if lost := _fired_for(trigger) - _fired_for(was):
            events.append(Event(True, Happened.BROKER_LOST, f"{trigger.name}: {named_brokers(lost, 'is')} lost"))
        if back := (_fired_for(was) - _fired_for(trigger)) & up:
            note = f"{trigger.name}: {named_brokers(back, 'is')} up again"
            events.append(Event(False, Happened.BROKER_RETURNED, note))
    return (
        events + _approval_awaited(before.conditions, after.conditions) + _stalled(before.conditions, after.conditions)
    )


def _fired_for(trigger: TriggerStatus | None) -> frozenset[int]:
    """Return the brokers for which a trigger is true."""
    fired = trigger is not None and trigger.state in (TriggerState.HELD, TriggerState.ACTIVE)
    return frozenset(trigger.brokers) if trigger and fired else frozenset()


def _approval_awaited(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """Return the event of a plan that waits for an approval, unless it waited before."""
    now, then = (next((c for c in each if c.type == "Ready"), None) for each in (after, before))
    if now is None or now.reason != Reason.AWAITING_APPROVAL or (then and then.message == now.message):
        return []
    return [Event(False, Reason.AWAITING_APPROVAL, now.message)]


def _stalled(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """Return the event of a standstill that a user has to end."""
    stalled, was = _true(after).get("Stalled"), _true(before).get("Stalled")
    if stalled is None or (was and was.reason == stalled.reason):
        return []
    return [Event(True, stalled.reason, stalled.message)]


def _standstills(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """Return the event that says why nothing goes on: a user has to act, or a wait has begun. A failure has its own."""
    if "Failed" in _true(after):
        return []
    old, new = _standing(before), _standing(after)
    return [Event(True, new.reason, new.message)] if new and (old is None or old.reason != new.reason) else []


def _standing(conditions: Sequence[Condition]) -> Condition | None:
    true = _true(conditions)
    waits = next((c for c in conditions if c.type == "Ready" and c.reason in PASSES - QUEUES), None)
    return true.get("Stalled") or (waits if "Reconciling" in true else None)


def halvings(before: KafkaClusterStatus, after: KafkaClusterStatus) -> list[Event]:
    """Return the event of a halving; that the budget grows is in the status alone."""
    then, now = before.pacing, after.pacing
    if now is None or now.last_halved_time is None or (then and then.last_halved_time == now.last_halved_time):
        return []
    return [Event(True, Happened.BUDGET_HALVED, f"the budget of partitions in flight was {now.message}")]


def _retired(conditions: Sequence[Condition]) -> Condition | None:
    return next((c for c in conditions if c.type == "Succeeded" and c.reason == Reason.RETIRED), None)


def _true(conditions: Sequence[Condition]) -> dict[str, Condition]:
    return {c.type: c for c in conditions if c.status is ConditionStatus.TRUE}
