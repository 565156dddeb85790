"""deadlineSeconds: from when it counts, and what it does to partitions that have not begun by then.

It counts from status.startTime, as a Kubernetes Job's does: the first reconciliation in which the resource may start.
Suspending stops the clock, and it starts anew afterwards; so it does when an edit after the end adds or changes an
entry. A partition that failed at the deadline is judged again once the deadline of the spec lies ahead.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reassign.api.partition_reassignment import Mode
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.record import recorded_problem
from reassign.core.model.resource import Resource
from reassign.errors import Reason


def deadline(i: Input) -> Problem | None:
    return recorded_problem(Reason.DEADLINE_EXCEEDED) if i.expired else None


def start_time(resource: Resource, now: datetime) -> datetime | None:
    """Return since when the resource may start moves; None while it may not."""
    status = resource.status
    if begins_anew(resource):
        return now if _may_start(resource) else None
    if status.completion_time or resource.deleted:
        return status.start_time
    return (status.start_time or now) if _may_start(resource) else None


def begins_anew(resource: Resource) -> bool:
    """Whether all was settled, and an edit has added or changed an entry since."""
    if not resource.status.completion_time or resource.up_to_date:
        return False
    record = resource.record
    return any(tp not in record or record[tp].target != target for tp, target in resource.wanted.items())


def deadline_passed(resource: Resource, now: datetime) -> bool:
    """Whether the deadline has passed, so that nothing new starts."""
    seconds, started = resource.spec.deadline_seconds, start_time(resource, now)
    return seconds is not None and started is not None and now - started >= timedelta(seconds=seconds)


def _may_start(resource: Resource) -> bool:
    spec = resource.spec
    return not spec.suspend and spec.mode is Mode.EXECUTE and resource.unsupported is None
