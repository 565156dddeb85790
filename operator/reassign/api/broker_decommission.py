"""The BrokerDecommission resource: brokers that are to be empty, and to leave the cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from reassign.api.common import (
    BrokerId,
    Conditions,
    Count,
    CustomResource,
    EachOnce,
    Model,
    ObservedGeneration,
    Schema,
    ShortText,
    rule,
)
from reassign.api.limits import (
    MAX_DECOMMISSION_NAME_CHARACTERS,
    MAX_DECOMMISSIONED_BROKERS,
    MAX_PAST_PLANS,
)
from reassign.api.made_plan import MadePlan, OwnClusterRef
from reassign.api.reassignment_plan import Approval, Digest, Racks, Template, TopicPatterns, WaveLimits
from reassign.api.window import Windows


class CordonWish(StrEnum):
    WHERE_SUPPORTED = "WhereSupported"
    NEVER = "Never"


class UnregisterWish(StrEnum):
    NEVER = "Never"
    WHEN_DOWN = "WhenDown"


_KEEPS_REPLICAS = "unregister WhenDown cannot be with excludeTopics, whose replicas may stay on the brokers"
_NAME_TOO_LONG = (
    f"the name of a BrokerDecommission has at most {MAX_DECOMMISSION_NAME_CHARACTERS} characters: its plans are named "
    "after it"
)


class BrokerDecommissionSpec(Model):
    """The brokers, and how they are emptied."""

    RULES: ClassVar = (
        rule("self.brokers == oldSelf.brokers", "brokers cannot be changed: make another resource instead", ".brokers"),
        rule(
            "!has(self.unregister) || self.unregister != 'WhenDown' || !has(self.excludeTopics)"
            " || size(self.excludeTopics) == 0",
            _KEEPS_REPLICAS,
            ".unregister",
        ),
    )

    cluster_ref: Annotated[
        OwnClusterRef,
        Schema(rule("self == oldSelf", "clusterRef cannot be changed: make another resource instead")),
    ]
    """The KafkaCluster that the brokers belong to. It cannot be changed afterwards."""
    brokers: Annotated[
        tuple[BrokerId, ...],
        Field(min_length=1, max_length=MAX_DECOMMISSIONED_BROKERS),
        EachOnce("names a broker more than once"),
    ]
    """Ids of the brokers to empty, each once, 1 to 50. They cannot be changed afterwards."""
    exclude_topics: Annotated[TopicPatterns, EachOnce("names a pattern twice")] = ()
    """Names of topics whose replicas may stay and do not count, with * for any characters and ? for one."""
    cordon: CordonWish = CordonWish.WHERE_SUPPORTED
    """WhereSupported: the brokers get no new replicas from when this is approved, where Kafka can do that (4.3 and
    later). Never: they are not cordoned."""
    unregister: UnregisterWish = UnregisterWish.NEVER
    """WhenDown: a broker is unregistered once it is empty and down. Never: it stays registered. WhenDown cannot be with
    excludeTopics."""
    approval: Approval = Approval.REQUIRED
    """Required: nothing is cordoned or moved before approvedDigest equals status.digest. NotRequired: applying this
    resource is the approval."""
    approved_digest: Digest | None = None
    """The plan that may be carried out, and what follows from it: a copy of status.digest. Without it no further wave
    starts."""
    suspend: bool = False
    """True: no plan and no wave starts. Moves in flight are finished, and cordons stay."""
    racks: Racks = Racks()
    """How replicas are spread over racks."""
    waves: WaveLimits = WaveLimits()
    """How much one wave, a PartitionReassignment, moves at most."""
    windows: Windows = ()
    """When waves may start and moves begin; without any, at all times. A cordon waits for none. What is in flight when
    a window closes is finished."""
    template: Template = Template()
    """Options of the PartitionReassignments. ttlSecondsAfterFinished is 604800 where it is unset."""

    @model_validator(mode="after")
    def _keeps_no_replicas(self) -> Self:
        if self.unregister is UnregisterWish.WHEN_DOWN and self.exclude_topics:
            raise ValueError(_KEEPS_REPLICAS)
        return self


class DecommissionState(StrEnum):
    SERVING = "Serving"
    DRAINING = "Draining"
    EMPTY = "Empty"
    DOWN = "Down"
    GONE = "Gone"
    UNREGISTERED = "Unregistered"


class DecommissionedBroker(Model):
    """One of the brokers."""

    id: BrokerId
    """Its id."""
    state: DecommissionState
    """Serving, Draining, Empty, Down (empty and fenced), Gone (no longer registered, not by us), or Unregistered (by
    us)."""
    replicas: Count | None = None
    """Replicas that are left on it, without those of excludeTopics. Unset: not known."""
    cordoned: bool | None = None
    """Whether all its log directories are cordoned. Unset: not known."""


class BrokerDecommissionStatus(Model):
    """How far the brokers are."""

    observed_generation: ObservedGeneration = None
    """The metadata.generation that this status is about; -1 before the first one is written."""
    conditions: Conditions = ()
    """Ready always: True once the brokers can be stopped, as Empty is. Cordoned: every log directory of those that are
    up takes no new replicas. Succeeded at the end: all were empty and are no longer registered. Reconciling and Stalled
    only while True."""
    summary: ShortText | None = None
    """Progress in one line, for people."""
    replicas_left: Count | None = None
    """Replicas that are left on the brokers, without those of excludeTopics; exact. Unset: not known."""
    digest: Digest | None = None
    """Digest of the plan that waits for approval. To approve it, copy it to spec.approvedDigest."""
    brokers: Annotated[tuple[DecommissionedBroker, ...], Field(max_length=MAX_DECOMMISSIONED_BROKERS)] = ()
    """The brokers, one by one."""
    plans: Annotated[tuple[MadePlan, ...], Field(max_length=MAX_PAST_PLANS)] = ()
    """The last 10 ReassignmentPlans that were made for this, in their order."""


class BrokerDecommission(CustomResource):
    """Brokers that are to be empty, and to leave the cluster. The operator moves their replicas to other brokers by
    ReassignmentPlans, and says when the brokers can be stopped."""

    KIND = "BrokerDecommission"
    PLURAL = "brokerdecommissions"
    SHORT_NAMES = ("kbd",)

    RULES: ClassVar = (rule(f"size(self.metadata.name) <= {MAX_DECOMMISSION_NAME_CHARACTERS}", _NAME_TOO_LONG),)

    spec: BrokerDecommissionSpec
    """The brokers, and how they are emptied."""
    status: BrokerDecommissionStatus = BrokerDecommissionStatus()
    """How far the brokers are. Written by the operator."""

    @model_validator(mode="after")
    def _has_a_short_name(self) -> Self:
        if len(self.metadata.name) > MAX_DECOMMISSION_NAME_CHARACTERS:
            raise ValueError(_NAME_TOO_LONG)
        return self
