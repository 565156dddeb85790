"""The ReassignmentRecord resource: what the operator resumes from. Only the operator writes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from reassign.api.common import (
    BrokerId,
    Count,
    CustomResource,
    Model,
    NamespaceName,
    ObjectName,
    ObservedTopic,
    PartitionId,
    Seconds,
)
from reassign.api.kafka_cluster import ClusterId, ThrottleStatus
from reassign.api.limits import (
    MAX_COPIED_PARTITIONS,
    MAX_PART_PARTITIONS,
    MAX_PARTS,
    MAX_STORED_CONFIG_CHARACTERS,
    MAX_THROTTLE_CONFIGS,
    MAX_THROTTLED_BROKERS,
    MAX_THROTTLED_TOPICS,
    MAX_TOPIC_NAME_CHARACTERS,
)
from reassign.api.partition_reassignment import DeletionPolicy, RecordTopic


class RecordedClusterRef(Model):
    """The KafkaCluster that a record is about."""

    name: ObjectName
    """Its name."""
    namespace: NamespaceName
    """Its namespace."""


ConfigText = Annotated[str, Field(max_length=MAX_STORED_CONFIG_CHARACTERS)]


class RecordedConfig(Model):
    """One configuration that was set, and its prior value."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_TOPIC_NAME_CHARACTERS)]
    """Name of the configuration."""
    value: ConfigText
    """What was set, or for a list of replicas what was appended to it."""
    prior: ConfigText | None = None
    """The value before: absent if none was set, empty if it was explicitly empty."""
    replacing: ConfigText | None = None
    """The value set for the rate before this one, until this one has been seen on the broker."""


ConfigList = Annotated[tuple[RecordedConfig, ...], Field(max_length=MAX_THROTTLE_CONFIGS)]


class CopiedTopic(Model):
    """Partitions of one topic that are copied from one log directory of a broker to another."""

    topic: ObservedTopic
    """Name of the topic."""
    partitions: Annotated[tuple[PartitionId, ...], Field(max_length=MAX_COPIED_PARTITIONS)]
    """Numbers of the partitions."""


class BrokerConfigs(Model):
    """The throttle configurations, and the cordon, set on one broker."""

    broker: BrokerId
    """The broker's id."""
    configs: ConfigList
    """What is set, and what was there before."""
    copying: Annotated[tuple[CopiedTopic, ...], Field(max_length=MAX_THROTTLED_TOPICS)] = ()
    """What the rate between log directories is set for."""
    cordon_removals: Count | None = None
    """How often another client removed our cordon. After the third time it is not set again."""


class TopicConfigs(Model):
    """The throttle configurations set on one topic."""

    topic: ObservedTopic
    """Name of the topic."""
    configs: ConfigList
    """What is set, and what was there before."""


class RecordedConfigs(ThrottleStatus):
    """Throttles and cordons that are set on the cluster, for which resources, and the values to restore afterwards.
    Written before they are set."""

    brokers: Annotated[tuple[BrokerConfigs, ...], Field(max_length=MAX_THROTTLED_BROKERS)] = ()
    """Set on brokers."""
    topics: Annotated[tuple[TopicConfigs, ...], Field(max_length=MAX_THROTTLED_TOPICS)] = ()
    """Set on topics."""

    @property
    def shown(self) -> ThrottleStatus:
        """The throttles that the status of the KafkaCluster shows."""
        return ThrottleStatus.model_construct(**{name: getattr(self, name) for name in ThrottleStatus.model_fields})


class ReassignmentRecordSpec(Model):
    """One part of what was done for one resource: enough to continue, or to undo it, after a crash."""

    cluster_ref: RecordedClusterRef
    """The KafkaCluster of the owner, or the owner itself."""
    part: Annotated[int, Field(ge=0, le=MAX_PARTS - 1)]
    """The number of this part, from 0."""
    parts: Annotated[int, Field(ge=1, le=MAX_PARTS)] | None = None
    """Of part 0: how many parts there are, written after a new part. Absent in records of earlier versions."""
    deletion_policy: DeletionPolicy = DeletionPolicy.CANCEL
    """The deletionPolicy of the owner: it holds as well when the owner is gone."""
    deletion_deadline_seconds: Seconds | None = None
    """The deletionDeadlineSeconds of the owner."""
    topics: Annotated[tuple[RecordTopic, ...], Field(max_length=MAX_PART_PARTITIONS)] = ()
    """What was done to at most 100 partitions; written before the alter."""
    cluster_id: ClusterId | None = None
    """Of a KafkaCluster: Kafka's id of the cluster, pinned at the first connection: when it changes, nothing more is
    done."""
    foreign_cancels: bool = False
    """Of a KafkaCluster: whether cancels of other clients' moves may be under way. Written before CancelAll sends
    them."""
    throttle: RecordedConfigs | None = None
    """Of a KafkaCluster: the throttles and cordons that are set, and what was there before; written before they are
    set."""


class ReassignmentRecord(CustomResource):
    """The operator's own record of a PartitionReassignment or KafkaCluster. The operator writes it and believes it:
    do not edit it."""

    KIND = "ReassignmentRecord"
    PLURAL = "reassignmentrecords"

    spec: ReassignmentRecordSpec
    """What was done."""
