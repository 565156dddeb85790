"""ttlSecondsAfterFinished: when what has come to its end is deleted, as a Kubernetes Job is.

A plan goes on by what has become of its waves. So it keeps each of them until its own status says that it succeeded.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from reassign.api.common import ConditionStatus
from reassign.api.reassignment_plan import WaveState
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.model import PlanResource
from reassign.errors import Reason


def expired(resource: Resource | Settled, now: datetime) -> bool:
    """Whether a PartitionReassignment has been settled for its time to live."""
    if isinstance(resource, Settled):
        return _passed(resource.completion_time, resource.ttl_seconds_after_finished, now)
    ended = resource.status.completion_time if resource.settled else None
    return _passed(ended, resource.spec.ttl_seconds_after_finished, now)


def plan_expired(plan: PlanResource, now: datetime) -> bool:
    """Whether a ReassignmentPlan has been carried out or retired, and released, for its time to live."""
    done = plan.status.observed_generation == plan.generation and not plan.has_finalizer and not plan.deleted
    succeeded = (c for c in plan.status.conditions if c.type == "Succeeded")
    ends = (c for c in succeeded if c.status is ConditionStatus.TRUE or c.reason == Reason.RETIRED)
    ended = next((condition.last_transition_time for condition in ends), None) if done else None
    return _passed(ended, plan.spec.ttl_seconds_after_finished, now)


def needs(plan: PlanResource, wave: str) -> bool:
    """Whether a plan has still to see that a wave succeeded, or waits until it has."""
    return any(known.name == wave and known.state is not WaveState.SUCCEEDED for known in plan.status.waves)


def _passed(ended: datetime | None, seconds: int | None, now: datetime) -> bool:
    return ended is not None and seconds is not None and now - ended >= timedelta(seconds=seconds)
