"""The ReassignmentRecord resource: what the operator resumes from. Only the operator writes it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
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
    RecordedTime,
    Seconds,
    ShortText,
)
from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.kafka_cluster import ClusterId, ThrottleStatus
from reassign.api.limits import (
    MAX_BROKERS,
    MAX_COPIED_PARTITIONS,
    MAX_DECOMMISSIONED_BROKERS,
    MAX_ID_CHARACTERS,
    MAX_PART_PARTITIONS,
    MAX_PARTS,
    MAX_PLAN_BROKERS,
    MAX_STORED_CONFIG_CHARACTERS,
    MAX_THROTTLE_CONFIGS,
    MAX_THROTTLED_BROKERS,
    MAX_THROTTLED_TOPICS,
    MAX_TOPIC_NAME_CHARACTERS,
    MAX_TRIGGERS,
    MAX_WAVES,
)
from reassign.api.partition_reassignment import DeletionPolicy, RecordTopic
from reassign.api.reassignment_plan import Digest
from reassign.api.reassignment_policy import TriggerKind, TriggerName
from reassign.api.window import Cron, TimeZone


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
    def shown(self) -> ThrottleStatus | None:
        """The throttles that the status of the KafkaCluster shows; None where cordons are all that is set."""
        on_brokers = {config.name for broker in self.brokers for config in broker.configs}
        if on_brokers == {CORDONED_LOG_DIRS} and not (self.topics or self.users or self.reason):
            return None
        return ThrottleStatus.model_construct(**{name: getattr(self, name) for name in ThrottleStatus.model_fields})


class OwnerKind(StrEnum):
    KAFKA_CLUSTER = "KafkaCluster"
    PARTITION_REASSIGNMENT = "PartitionReassignment"
    BROKER_DECOMMISSION = "BrokerDecommission"
    REASSIGNMENT_POLICY = "ReassignmentPolicy"


class RecordedTimer(Model):
    """How long something was seen to hold."""

    seconds: Count
    """For how many seconds, those in which nothing was observed aside."""
    observed_at: RecordedTime
    """When it was seen last, by the API server's clock."""


class RecordedWaves(Model):
    """The waves of a plan, as they were worked out before it was created."""

    digest: Digest
    """Digest of what they do."""
    bytes: Annotated[tuple[Count, ...], Field(max_length=MAX_WAVES)]
    """Bytes that each of them copies."""


class RecordedPlan(Model):
    """A ReassignmentPlan of the owner; written before it is created."""

    number: Annotated[int, Field(ge=1)]
    """Its number: how many the owner has made, names that were taken included."""
    name: ObjectName
    """Its name."""
    uid: Annotated[str, Field(max_length=MAX_ID_CHARACTERS)] | None = None
    """Its uid, once it was created. A plan of that name with another uid is not the owner's."""
    spec_digest: Digest
    """Digest of its spec as it is created."""
    waves: RecordedWaves | None = None
    """Its waves. What they copy counts while the plan has just these."""
    approved: bool = False
    """Whether the approval covers it."""
    digest: Digest | None = None
    """Digest of what its waves do, as the approval covers it."""
    begun_waves: Count = 0
    """How many of its waves, from the first, are in begunBytes of the approval."""
    retired: bool = False
    """Whether it starts nothing more."""


class RecordedApproval(Model):
    """What was approved last."""

    digest: Digest | None = None
    """The spec.approvedDigest that gave it. Unset: approval NotRequired gave it."""
    bytes: Count
    """Bytes of the plan that was approved."""
    begun_bytes: Count = 0
    """Bytes of the waves that began under it, of all plans; written before a wave starts."""


class RecordedWait(Model):
    """A wait before the next attempt."""

    seconds: Seconds
    """How long it is. The next wait is longer."""
    until: RecordedTime
    """When it ends, by the API server's clock."""


class RecordedBroker(Model):
    """What was seen of one broker that is to be empty."""

    id: BrokerId
    """Its id."""
    down: RecordedTimer | None = None
    """How long it was fenced, or missing."""
    seen_empty: bool = False
    """Whether it was empty while it was up, and nothing has landed on it since."""
    seen_unregistered: bool = False
    """Whether it was empty and no longer registered."""
    unregister_sent_at: RecordedTime | None = None
    """When UnregisterBroker was sent; written before it is. Unset again where that has not taken the broker away."""
    unregister_via: BrokerId | None = None
    """The broker that it was sent to."""


class RecordedDecommission(Model):
    """How far a BrokerDecommission is."""

    plan: RecordedPlan | None = None
    """Its last plan."""
    approval: RecordedApproval | None = None
    """What was approved last."""
    next_plan: RecordedWait | None = None
    """The wait until a further plan."""
    failures: Count = 0
    """How many plans in a row could not go on."""
    last_failure: ShortText | None = None
    """Why the last of them could not."""
    next_attempt: RecordedWait | None = None
    """The wait after those."""
    generation: Count | None = None
    """The generation of the BrokerDecommission that these waits are for.

    Another one ends them, but for next_plan while it is approved.
    """
    brokers: Annotated[tuple[RecordedBroker, ...], Field(max_length=MAX_DECOMMISSIONED_BROKERS)] = ()
    """What was seen of each broker."""
    excluded: Digest | None = None
    """Digest of the spec.excludeTopics that was not counted when these were seen. Unset: all topics were."""

    @property
    def waits(self) -> tuple[RecordedWait, ...]:
        """The waits that it has."""
        return tuple(wait for wait in (self.next_plan, self.next_attempt) if wait)


PlanBrokers = Annotated[tuple[BrokerId, ...], Field(max_length=MAX_PLAN_BROKERS)]
SeenBrokers = Annotated[tuple[BrokerId, ...], Field(max_length=MAX_BROKERS)]


class RecordedPolicyPlan(RecordedPlan):
    """A ReassignmentPlan of a policy."""

    trigger: TriggerName
    """The name of its trigger."""
    kind: TriggerKind
    """The kind of its trigger."""
    brokers: PlanBrokers = ()
    """The brokers that it empties."""
    returned: RecordedTimer | None = None
    """How long one of these was back: up again where it was lost, else not cordoned any more."""
    moment: RecordedTime | None = None
    """The time of the schedule that it was made for."""


class RecordedPolicyApproval(RecordedApproval):
    """What was approved last of a policy."""

    trigger: TriggerName
    """The trigger of the plan that was approved."""
    brokers: PlanBrokers = ()
    """The brokers that the plan empties: what follows from the approval empties no other."""


class RecordedBrokerTimers(Model):
    """How long one broker that has replicas was seen as triggers ask."""

    id: BrokerId
    """Its id."""
    down: RecordedTimer | None = None
    """How long it was fenced, or missing."""
    cordoned: RecordedTimer | None = None
    """How long it was up, and cordoned by another client."""


class RecordedAdded(Model):
    """Brokers that have few replicas."""

    brokers: PlanBrokers
    """Their ids."""
    timer: RecordedTimer
    """How long these have been the same."""


class RecordedSettled(Model):
    """How long no broker has come, gone or been fenced."""

    timer: RecordedTimer
    """How long."""
    up: SeenBrokers = ()
    """Brokers that were up."""
    fenced: SeenBrokers = ()
    """Brokers that were registered, and fenced."""


class RecordedSchedule(Model):
    """How far a schedule has been served."""

    cron: Cron
    """Its cron. Another one begins anew."""
    time_zone: TimeZone
    """Its time zone, likewise."""
    last: RecordedTime
    """The last time that was served or missed; at first, when the schedule was seen first."""


class RecordedTrigger(Model):
    """How far one trigger is."""

    name: TriggerName
    """Its name."""
    schedule: RecordedSchedule | None = None
    """Of a schedule: how far it has been served."""
    failures: Count = 0
    """How many plans in a row could not go on."""
    last_failure: ShortText | None = None
    """Why the last of them could not."""
    next_attempt: RecordedWait | None = None
    """The wait after those, or until a plan is made anew."""
    generation: Count | None = None
    """The generation of the ReassignmentPolicy that they were made for. Another one ends the wait."""
    next_plan: RecordedWait | None = None
    """The wait until a plan for what has landed since the last one."""
    saw: Digest | None = None
    """Digest of what its last plan left, where it succeeded: brokers, racks, and what was not met."""


class RecordedPolicy(Model):
    """How far a ReassignmentPolicy is."""

    number: Count = 0
    """How many plans it has made, names that were taken included."""
    plan: RecordedPolicyPlan | None = None
    """The last plan that was approved."""
    waiting: RecordedPolicyPlan | None = None
    """The plan that is being made, or waits for its approval."""
    approval: RecordedPolicyApproval | None = None
    """What was approved last."""
    ended_at: RecordedTime | None = None
    """When the last plan of schedule or brokersAdded ended."""
    brokers: Annotated[tuple[RecordedBrokerTimers, ...], Field(max_length=MAX_BROKERS)] = ()
    """Timers of brokers."""
    added: RecordedAdded | None = None
    """The brokers that have few replicas."""
    settled: RecordedSettled | None = None
    """Since when the cluster is settled."""
    triggers: Annotated[tuple[RecordedTrigger, ...], Field(max_length=MAX_TRIGGERS)] = ()
    """Its triggers, by name."""
    lifts_cordons: bool = False
    """Whether our cordons are lifted, since a lost broker cannot be replaced otherwise."""

    @property
    def plans(self) -> tuple[RecordedPolicyPlan, ...]:
        """The plans that it names."""
        return tuple(plan for plan in (self.plan, self.waiting) if plan)

    @property
    def waits(self) -> tuple[RecordedWait | datetime, ...]:
        """The waits that it has, and the end of the plan that the cooldown begins with."""
        waits = (wait for trigger in self.triggers for wait in (trigger.next_attempt, trigger.next_plan))
        return tuple(wait for wait in (self.ended_at, *waits) if wait)


class ReassignmentRecordSpec(Model):
    """One part of what was done for one resource: enough to continue, or to undo it, after a crash."""

    cluster_ref: RecordedClusterRef
    """The KafkaCluster of the owner, or the owner itself."""
    owner_kind: OwnerKind | None = None
    """The kind of the owner. Unset: its owner reference has it, and without one its fields tell."""
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
    done. Of a ReassignmentPolicy: the one that its timers, plans and approval are of; they count in no other."""
    foreign_cancels: bool = False
    """Of a KafkaCluster: whether cancels of other clients' moves may be under way. Written before CancelAll sends
    them."""
    throttle: RecordedConfigs | None = None
    """Of a KafkaCluster: the throttles and cordons that are set, and what was there before; written before they are
    set."""
    decommission: RecordedDecommission | None = None
    """Of a BrokerDecommission: its plan, its approval, and what was seen of its brokers."""
    policy: RecordedPolicy | None = None
    """Of a ReassignmentPolicy: its plan, its approval, its timers, and how far its triggers are."""


class ReassignmentRecord(CustomResource):
    """The operator's own record of one of its resources. The operator writes it and believes it:
    do not edit it."""

    KIND = "ReassignmentRecord"
    PLURAL = "reassignmentrecords"

    spec: ReassignmentRecordSpec
    """What was done."""
