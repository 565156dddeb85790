"""Whether anything may begin now, whatever the partition: wishes to wait, and metadata that has not settled."""

from __future__ import annotations

from reassign.api.partition_reassignment import Admission
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.errors import Reason

HOLDS = (Reason.DUPLICATE_CLUSTER, Reason.CLUSTER_DELETED, Reason.INTERNAL_ERROR)
"""Why the cluster lets nothing start until a user acts."""

UNSETTLED = Problem(Reason.CONNECTING, "metadata may still show the partition as it was a moment ago")


def served(i: Input) -> Problem | None:
    """Hold the partition back while the cluster starts nothing until a user acts, whatever else is wrong with it."""
    problem = hold(i)
    return problem if problem and problem.reason in HOLDS else None


def hold(i: Input) -> Problem | None:
    """Hold the partition back while its resource is suspended or cannot be done, or the cluster starts nothing new."""
    return i.resource.unsupported or _suspended(i.resource) or i.rules.unseen(i.resource) or i.rules.hold_of(i.resource)


def idle(i: Input) -> Problem | None:
    """Wait for an idle cluster if the resource starts on one only; once it has moves in flight, it goes on."""
    if i.resource.spec.admission is Admission.ALWAYS or not i.budget.partitions or i.moving:
        return None
    return Problem(Reason.WAITING_FOR_IDLE, "others have partitions in flight on the cluster; it starts when none is")


def settled(i: Input) -> Problem | None:
    """Wait while metadata may be stale, or the resource is not ours to serve yet. What is in flight is never stale."""
    sure = i.in_flight is not None or i.recent.settled(i.tp)
    return None if sure and i.resource.has_finalizer and not i.resource.record_lost else UNSETTLED


def _suspended(resource: Resource) -> Problem | None:
    if not resource.spec.suspend:
        return None
    if resource.plan:
        what = f"the ReassignmentPlan {resource.plan} starts it in its turn, once it is approved"
    else:
        what = "set it to false to start what is pending"
    return Problem(Reason.SUSPENDED, f"spec.suspend is true; {what}")
