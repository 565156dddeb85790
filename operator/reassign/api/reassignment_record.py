"""The ReassignmentRecord resource: what the operator resumes from. Only the operator writes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reassign.api.common import CustomResource, Model, NamespaceName, ObjectName, Seconds, ShortText
from reassign.api.kafka_cluster import ThrottleStatus
from reassign.api.limits import MAX_LEFT_IN_STATUSES, MAX_PART_PARTITIONS, MAX_PARTS
from reassign.api.partition_reassignment import DeletionPolicy, RecordTopic


class RecordedClusterRef(Model):
    """The KafkaCluster that a record is about."""

    name: ObjectName
    """Its name."""
    namespace: NamespaceName
    """Its namespace."""


class ReassignmentRecordSpec(Model):
    """One part of what was done for one resource: enough to continue, or to undo it, after a crash."""

    cluster_ref: RecordedClusterRef
    """The KafkaCluster of the owner, or the owner itself."""
    part: Annotated[int, Field(ge=0, le=MAX_PARTS - 1)]
    """The number of this part, from 0."""
    deletion_policy: DeletionPolicy = DeletionPolicy.CANCEL
    """The deletionPolicy of the owner: it holds as well when the owner is gone."""
    deletion_deadline_seconds: Seconds | None = None
    """The deletionDeadlineSeconds of the owner."""
    topics: Annotated[tuple[RecordTopic, ...], Field(max_length=MAX_PART_PARTITIONS)] = ()
    """What was done to at most 100 partitions; written before the alter."""
    throttle: ThrottleStatus | None = None
    """Of a KafkaCluster: the throttles that are set, and what was there before; written before they are set."""
    left_in_statuses: Annotated[tuple[ShortText, ...], Field(max_length=MAX_LEFT_IN_STATUSES)] = ()
    """Of a KafkaCluster: whose status.record still counts after an upgrade, because it could not be taken over yet.
    PartitionReassignments by uid, and namespace/* for all of a namespace that could not be listed."""


class ReassignmentRecord(CustomResource):
    """The operator's own record of a PartitionReassignment or KafkaCluster. The operator writes it and believes it:
    do not edit it."""

    KIND = "ReassignmentRecord"
    PLURAL = "reassignmentrecords"

    spec: ReassignmentRecordSpec
    """What was done."""
