"""Conditions with their bookkeeping: the time of the last transition and the observed generation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from reassign.api.common import Condition, ConditionStatus


class ConditionState(NamedTuple):
    """A condition without its bookkeeping."""

    type: str
    status: bool
    reason: str
    message: str


def conditions(
    before: Sequence[Condition], aspects: Sequence[ConditionState], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """The conditions, each with the time of its last transition."""
    old = {c.type: c for c in before}
    result = []
    for aspect in aspects:
        status = ConditionStatus.TRUE if aspect.status else ConditionStatus.FALSE
        last = old.get(aspect.type)
        since = last.last_transition_time if last and last.status is status else now
        result.append(
            Condition(
                type=aspect.type,
                status=status,
                observed_generation=generation,
                last_transition_time=since,
                reason=aspect.reason,
                message=aspect.message,
            )
        )
    return tuple(result)
