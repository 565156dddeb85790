"""Events: what a change of a status is worth recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reassign.api.common import Condition, ConditionStatus
from reassign.api.kafka_cluster import KafkaClusterStatus
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import ReassignmentPlanStatus, WaveState
from reassign.core.model.record import Record, active, recorded
from reassign.core.report.waits import PASSES, QUEUES
from reassign.errors import Reason
from reassign.text import listed

IN_FLIGHT, CANCELLING = "PartitionsInFlight", "Cancelling"
"""Reasons of Reconciling."""
COSTS = (Reason.CANCELLING, Reason.SUPERSEDING)
"""Why a move is being cancelled, in details that say what that throws away."""


WARNINGS = (
    ("Failed", "ReassignmentFailed"),
    ("Drifted", "ReassignmentDrifted"),
    ("Unclaimed", "ClusterUnclaimed"),
    ("ThrottleDrift", "ThrottleDriftRepeated"),
)
"""Conditions whose beginning is a warning, and its reason."""
WAVE_EVENTS = {WaveState.RUNNING: "WaveStarted", WaveState.SUCCEEDED: "WaveCompleted"}
"""Stalled says what has gone wrong with a wave."""


class Event(NamedTuple):
    """An event: `warning` or normal, a reason in the past tense, a note."""

    warning: bool
    reason: str
    note: str


def cancellations(before: PartitionReassignmentStatus, after: PartitionReassignmentStatus) -> list[Event]:
    """One event for all moves whose cancel has begun, with what that throws away."""
    known = {(d.topic, d.partition) for d in before.partitions if d.reason in COSTS}
    new = [d for d in after.partitions if d.reason in COSTS and (d.topic, d.partition) not in known]
    if not new:
        return []
    moves = [f"{d.topic}-{d.partition}: {d.message}" for d in new]
    return [Event(False, "MovesCancelled", listed(moves, most=3, separator="; "))]


def rebuilt(record: Record) -> Event:
    """The event of a record that was lost, with what counts as the resource's own since."""
    adopted = [e for e in active(record).values() if e.problem == recorded(Reason.ORDER_UNKNOWN)]
    note = (
        f"its ReassignmentRecords were lost; {len(adopted)} partitions that are in flight to the replicas asked for "
        "count as its own now, and the order that they came from is not known"
    )
    return Event(True, "RecordRebuilt", note)


def transitions(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """The events of a change of conditions; none where nothing changed."""
    old, new = _true(before), _true(after)
    events = []
    now, then = new.get("Reconciling"), old.get("Reconciling")
    started = now.reason if now and not (then and then.reason == now.reason) else None
    # the same words each time, so that one that starts again counts in one event
    if started == CANCELLING:
        note = "partitions go back to their original replicas; status says how far they are"
        events.append(Event(False, "CancelStarted", note))
    if started == IN_FLIGHT:
        events.append(Event(False, "ReassignmentStarted", "partitions are in flight; status says how far they are"))
    if "Succeeded" in new and "Succeeded" not in old:
        events.append(Event(False, "ReassignmentCompleted", new["Succeeded"].message))
    for kind, reason in WARNINGS:
        if kind in new and kind not in old:
            events.append(Event(True, reason, new[kind].message))
    if "Paused" in new and ("Paused" not in old or old["Paused"].reason != new["Paused"].reason):
        events.append(Event(False, new["Paused"].reason, new["Paused"].message))
    return events + _standstills(before, after)


def plan_transitions(before: ReassignmentPlanStatus, after: ReassignmentPlanStatus) -> list[Event]:
    """The events of a change of a plan's status."""
    events = []
    if after.digest and after.digest != before.digest:
        events.append(Event(False, "PlanMade", f"waves: {len(after.waves)}; {after.digest}"))
    were = {wave.name: wave.state for wave in before.waves}
    for wave in after.waves:
        if wave.state is not were.get(wave.name, WaveState.PENDING) and wave.state in WAVE_EVENTS:
            events.append(Event(False, WAVE_EVENTS[wave.state], wave.name))
    old, new = _true(before.conditions), _true(after.conditions)
    if "Succeeded" in new and "Succeeded" not in old:
        events.append(Event(False, "PlanCompleted", new["Succeeded"].message))
    return events + _standstills(before.conditions, after.conditions)


def _standstills(before: Sequence[Condition], after: Sequence[Condition]) -> list[Event]:
    """The event that says why nothing goes on: a user has to act, or a wait has begun. A failure has its own."""
    if "Failed" in _true(after):
        return []
    old, new = _standing(before), _standing(after)
    return [Event(True, new.reason, new.message)] if new and (old is None or old.reason != new.reason) else []


def _standing(conditions: Sequence[Condition]) -> Condition | None:
    true = _true(conditions)
    waits = next((c for c in conditions if c.type == "Ready" and c.reason in PASSES - QUEUES), None)
    return true.get("Stalled") or (waits if "Reconciling" in true else None)


def halvings(before: KafkaClusterStatus, after: KafkaClusterStatus) -> list[Event]:
    """The event of a halving; that the budget grows is in the status alone."""
    then, now = before.pacing, after.pacing
    if now is None or now.last_halved_time is None or (then and then.last_halved_time == now.last_halved_time):
        return []
    return [Event(True, "BudgetHalved", f"the budget of partitions in flight was {now.message}")]


def _true(conditions: Sequence[Condition]) -> dict[str, Condition]:
    return {c.type: c for c in conditions if c.status is ConditionStatus.TRUE}
