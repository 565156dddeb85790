"""Conditions: what is not ready is Reconciling, Stalled or neither, by its reason; and the bookkeeping of all of them.

A wait that ends by itself is Stalled, too, once it has lasted for a timeout. It lasts since the last transition of
Reconciling, which the beginning and the end of a wait are as well: nothing has to be remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from reassign.api.common import Condition, ConditionStatus
from reassign.api.partition_reassignment import STALL_TIMEOUT_SECONDS
from reassign.core.model.waits import BRAKE, NEEDS_USER, PASSES, WISHED
from reassign.errors import Reason

STATUSES = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}


class ConditionState(NamedTuple):
    """A condition without its bookkeeping."""

    type: str
    status: bool | None
    """None: it is not known."""
    reason: str
    message: str


def unready(reason: str, message: str) -> list[ConditionState]:
    """Return the conditions of what is not ready; a reason that is no Reason says what is being done."""
    reason = Reason.SUSPENDED if reason in BRAKE else reason
    states = [ConditionState("Ready", False, reason, message)]
    if reason in NEEDS_USER:
        states.append(ConditionState("Stalled", True, reason, message))
    elif reason not in WISHED:
        states.append(ConditionState("Reconciling", True, reason, message))
    return states


def unsettled(reason: str, message: str) -> list[ConditionState]:
    """Return the conditions of what is not at its end: those of `unready`, and Succeeded."""
    ready, *others = unready(reason, message)
    return [ready, ready._replace(type="Succeeded"), *others]


def conditions(
    before: Sequence[Condition],
    states: Sequence[ConditionState],
    generation: int,
    now: datetime,
    stall_timeout_seconds: int = STALL_TIMEOUT_SECONDS,
) -> tuple[Condition, ...]:
    """Return the conditions with the times of their last transitions, and Stalled where a wait has lasted too long."""
    old, new = {c.type: c for c in before}, {s.type: s for s in states}
    reconciling = _reconciling_since(old, new, generation, now)
    overdue = _passes(new.get("Ready")) and now - reconciling >= timedelta(seconds=stall_timeout_seconds)
    if overdue and "Reconciling" in new and "Stalled" not in new:
        states = [*states, new["Ready"]._replace(type="Stalled", status=True)]
    result = []
    # kstatus takes the first of Stalled and Reconciling
    for state in sorted(states, key=lambda s: s.type == "Reconciling"):
        status = STATUSES[state.status]
        last = old.get(state.type)
        since = last.last_transition_time if last and last.status is status else now
        result.append(
            Condition(
                type=state.type,
                status=status,
                observed_generation=generation,
                last_transition_time=reconciling if state.type == "Reconciling" else since,
                reason=state.reason,
                message=state.message,
            )
        )
    return tuple(result)


def _reconciling_since(
    old: Mapping[str, Condition], new: Mapping[str, ConditionState], generation: int, now: datetime
) -> datetime:
    """Return since when an object is reconciled, or waits; another spec has another wait."""
    last = old.get("Reconciling")
    waits = _passes(new.get("Ready"))
    if last is None or last.status is not ConditionStatus.TRUE or _passes(old.get("Ready")) is not waits:
        return now
    return now if waits and last.observed_generation != generation else min(last.last_transition_time, now)


def _passes(ready: Condition | ConditionState | None) -> bool:
    return ready is not None and ready.status in (False, ConditionStatus.FALSE) and ready.reason in PASSES
