"""What resources that make plans have in common: the KafkaCluster beside them, and the plans in their status."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from reassign.api.common import Count, Model, ObjectName, Time
from reassign.api.limits import MAX_NAME_CHARACTERS
from reassign.api.reassignment_plan import Digest


class OwnClusterRef(Model):
    """The KafkaCluster that the brokers belong to, in the namespace of the resource."""

    name: ObjectName
    """Name of the KafkaCluster."""


class PlanOutcome(StrEnum):
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    RETIRED = "Retired"
    DELETED = "Deleted"


class MadePlan(Model):
    """A ReassignmentPlan that was made for this resource."""

    name: Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
    """Its name, in the same namespace."""
    digest: Digest
    """The digest that approved it. Where none had to: the one that an approval would name."""
    bytes: Count
    """Bytes that it copies."""
    lower_bound_bytes: Count
    """Bytes that any plan for this has to copy, at least."""
    replicas: Count
    """Replicas that it moves."""
    start_time: Time | None = None
    """When its first wave began."""
    completion_time: Time | None = None
    """When it ended."""
    outcome: PlanOutcome
    """Running, Succeeded, Retired (it starts nothing more), or Deleted."""
