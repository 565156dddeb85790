"""Objects that the schema takes and this version of the operator cannot read: they say so, and may be deleted.

Their status stays as it is but for the conditions, unread: what another version has recorded is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import ValidationError

from reassign.api.common import Condition
from reassign.controller.reading import Unreadable
from reassign.core.model.problem import Problem
from reassign.core.report.conditions import ConditionState, conditions
from reassign.kube.client import Kind, Object, has_finalizer

ORPHAN = "deletionPolicy: Orphan releases the resource as it is"


def need_not_wait(unread: Unreadable) -> bool:
    """Whether a PartitionReassignment that is being deleted need not wait until it can be read."""
    deleted = unread.obj["metadata"].get("deletionTimestamp") and has_finalizer(unread.obj)
    return bool(deleted) and (unread.obj["spec"].get("deletionPolicy") == "Orphan" or not unread.holds)


def deletion_deadline_passed(obj: Object, now: datetime) -> bool:
    """Whether a PartitionReassignment has been deleted for as long as its deletion waits at most."""
    deleted, deadline = obj["metadata"].get("deletionTimestamp"), obj["spec"].get("deletionDeadlineSeconds")
    if not deleted or not deadline or not has_finalizer(obj):
        return False
    return now - datetime.fromisoformat(deleted) >= timedelta(seconds=deadline)


def conditions_before(obj: Object) -> tuple[Condition, ...]:
    """The conditions of an object; none where it is they that cannot be read."""
    try:
        return tuple(map(Condition.parse, obj.get("status", {}).get("conditions", ())))
    except ValidationError:
        return ()


def conditions_after(obj: Object, problem: Problem, now: datetime) -> tuple[Condition, ...]:
    """What an object says that cannot be read; observedGeneration stays, since the rest does not speak of this spec."""
    message = problem.message
    if obj["kind"] == Kind.PARTITION_REASSIGNMENT and obj["metadata"].get("deletionTimestamp"):
        message = f"the deletion waits: {message}. {ORPHAN}"
    aspects: Sequence[ConditionState] = [
        ConditionState("Ready", False, problem.reason, message),
        ConditionState("Stalled", True, problem.reason, message),
    ]
    return conditions(conditions_before(obj), aspects, obj["metadata"]["generation"], now)
