"""The ReassignmentPolicy resource: plans that are made by themselves, each for a trigger."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from reassign.api.common import (
    BrokerId,
    ByteQuantity,
    Conditions,
    CustomResource,
    Model,
    ObservedGeneration,
    Schema,
    ShortText,
    Time,
    rule,
)
from reassign.api.limits import (
    MAX_BROKERS,
    MAX_COOLDOWN_SECONDS,
    MAX_LOST_BROKERS,
    MAX_NAME_CHARACTERS,
    MAX_PAST_PLANS,
    MAX_POLICY_NAME_CHARACTERS,
    MAX_REASON_CHARACTERS,
    MAX_SETTLE_SECONDS,
    MAX_TRIGGER_NAME_CHARACTERS,
    MAX_TRIGGER_SECONDS,
    MAX_TRIGGERS,
    MIN_TRIGGER_SECONDS,
)
from reassign.api.made_plan import MadePlan, OwnClusterRef
from reassign.api.reassignment_plan import Approval, Digest, Goal, Racks, Template, Topics, WaveLimits
from reassign.api.window import Cron, TimeZone, Windows

TriggerSeconds = Annotated[int, Field(ge=MIN_TRIGGER_SECONDS, le=MAX_TRIGGER_SECONDS)]
TriggerName = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TRIGGER_NAME_CHARACTERS, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
]


class TriggerKind(StrEnum):
    """The kinds of triggers, by their fields, in the order of precedence."""

    BROKER_LOST = "brokerLost"
    BROKERS_CORDONED = "brokersCordoned"
    BROKERS_ADDED = "brokersAdded"
    SCHEDULE = "schedule"


class BrokerLost(Model):
    """Brokers that hold replicas are down."""

    after_seconds: TriggerSeconds = 1800
    """For how long a broker is observed to be down, without a gap, before it counts as lost: 60 to 86400."""
    max_brokers: Annotated[int, Field(ge=1, le=MAX_LOST_BROKERS)] = 1
    """While more brokers than this are down, nothing is replaced, and a user has to decide: 1 to 10."""


class BrokersCordoned(Model):
    """Another client has cordoned all log directories of brokers that are up."""

    after_seconds: TriggerSeconds = 300
    """For how long a broker is observed to be cordoned before it is emptied: 60 to 86400."""


class BrokersAdded(Model):
    """Brokers that are up have few replicas."""

    after_seconds: TriggerSeconds = 600
    """For how long the set of these brokers does not change before a plan is made: 60 to 86400."""
    below_percent: Annotated[int, Field(ge=1, le=80)] = 20
    """A broker counts that has less than this share of the mean number of replicas: 1 to 80."""


class OnSchedule(Model):
    """A time that comes again."""

    cron: Cron
    """When: minute, hour, day of the month, month and day of the week, such as 0 2 * * 6, as the clock in timeZone
    shows it. A time that this clock skips counts right after, and one that it shows twice counts the first time."""
    time_zone: TimeZone = "Etc/UTC"
    """The time zone of cron, by its name in the IANA database, such as Europe/Berlin."""
    starting_deadline_seconds: TriggerSeconds = 3600
    """How long after its time a plan may still begin: 60 to 86400. Times that were missed count as one."""


_KINDS = [f"has(self.{kind})" for kind in TriggerKind]
_ONE_KIND = f"a trigger has exactly one of {', '.join(TriggerKind)}"


class Trigger(Model):
    """When a plan is made, and what kind of plan."""

    RULES: ClassVar = (rule(f"[{', '.join(_KINDS)}].exists_one(x, x)", _ONE_KIND),)

    name: TriggerName
    """Its name within the policy, of at most 15 characters; its plans are named after it."""
    broker_lost: BrokerLost | None = None
    """Its plan moves the replicas on brokers that are lost to other brokers."""
    brokers_cordoned: BrokersCordoned | None = None
    """Its plan empties brokers that another client has cordoned."""
    brokers_added: BrokersAdded | None = None
    """Its plan has the goal of planTemplate, which needs balance."""
    schedule: OnSchedule | None = None
    """Its plan has the goal of planTemplate."""
    approval: Approval | None = None
    """Whether its plans need approval. Unset: as the policy says."""
    windows: Windows | None = None
    """When waves of its plans may start, and moves begin. Unset: as the policy says; of brokerLost at all times."""

    @model_validator(mode="after")
    def _has_one_kind(self) -> Self:
        if len(self._kinds) != 1:
            raise ValueError(_ONE_KIND)
        return self

    @property
    def kind(self) -> TriggerKind:
        """Its kind."""
        return self._kinds[0]

    @property
    def _kinds(self) -> list[TriggerKind]:
        fields = {
            TriggerKind.BROKER_LOST: self.broker_lost,
            TriggerKind.BROKERS_CORDONED: self.brokers_cordoned,
            TriggerKind.BROKERS_ADDED: self.brokers_added,
            TriggerKind.SCHEDULE: self.schedule,
        }
        return [kind for kind, field in fields.items() if field is not None]


_DRAINS = "the goal of planTemplate cannot have drainBrokers: make a BrokerDecommission instead"


class PlanTemplate(Model):
    """What plans for schedule and brokersAdded are made from: each field as in a ReassignmentPlan."""

    RULES: ClassVar = (rule("!has(self.goal.drainBrokers)", _DRAINS, ".goal"),)

    topics: Topics = Topics()
    """The topics whose replicas may be moved."""
    goal: Goal
    """What the plans should reach. It has no drainBrokers."""
    racks: Racks = Racks()
    """How replicas are spread over racks; also by plans of the other triggers."""
    waves: WaveLimits = WaveLimits()
    """How much one wave moves at most; also of plans of the other triggers."""
    template: Template = Template()
    """Options of the PartitionReassignments, also of plans of the other triggers. ttlSecondsAfterFinished is 604800
    where it is unset."""

    @model_validator(mode="after")
    def _drains_nothing(self) -> Self:
        if self.goal.drain_brokers is not None:
            raise ValueError(_DRAINS)
        return self


_SINGLE = tuple(kind for kind in TriggerKind if kind is not TriggerKind.SCHEDULE)
_NEEDS_TEMPLATE = "schedule and brokersAdded need planTemplate"
_NEEDS_BALANCE = "brokersAdded needs a planTemplate whose goal has balance"
_NAME_TOO_LONG = (
    f"the name of a ReassignmentPolicy has at most {MAX_POLICY_NAME_CHARACTERS} characters: its plans are named after "
    "it"
)


def _too_many(kind: TriggerKind) -> str:
    return f"at most one trigger has {kind}"


class ReassignmentPolicySpec(Model):
    """The triggers, and what holds for their plans."""

    RULES: ClassVar = (
        rule(
            "!self.triggers.exists(t, has(t.schedule) || has(t.brokersAdded)) || has(self.planTemplate)",
            _NEEDS_TEMPLATE,
            ".triggers",
        ),
        rule(
            "!self.triggers.exists(t, has(t.brokersAdded)) || !has(self.planTemplate)"
            " || has(self.planTemplate.goal.balance)",
            _NEEDS_BALANCE,
            ".planTemplate",
        ),
    )

    cluster_ref: Annotated[
        OwnClusterRef,
        Schema(rule("self == oldSelf", "clusterRef cannot be changed: make another resource instead")),
    ]
    """The KafkaCluster that plans are made for. It cannot be changed afterwards."""
    suspend: bool = False
    """True: no plan is made, and the one under way starts nothing more. Moves in flight are finished."""
    triggers: Annotated[
        tuple[Trigger, ...],
        Field(min_length=1, max_length=MAX_TRIGGERS),
        Schema(
            *(rule(f"self.filter(t, has(t.{kind})).size() <= 1", _too_many(kind)) for kind in _SINGLE),
            list_map_keys=("name",),
        ),
    ]
    """When plans are made, 1 to 10; at most one of each kind but schedule."""
    approval: Approval = Approval.REQUIRED
    """Required: no plan moves anything before approvedDigest equals status.digest. NotRequired: plans start by
    themselves. A trigger can say otherwise for its own plans."""
    windows: Windows = ()
    """When waves may start and moves begin; without any, at all times. Plans of brokerLost wait only for the windows of
    their trigger. What is in flight when a window closes is finished."""
    approved_digest: Digest | None = None
    """The plan that may be carried out, and no other: a copy of status.digest."""
    max_bytes: ByteQuantity | None = None
    """A plan that copies more than this needs approval, whatever approval says: from 1Ki to 1Pi, such as 2Ti. Unset: no
    bound."""
    plan_template: PlanTemplate | None = None
    """What plans for schedule and brokersAdded are made from; these need it."""
    settle_seconds: Annotated[int, Field(ge=MIN_TRIGGER_SECONDS, le=MAX_SETTLE_SECONDS)] = 600
    """For how long no broker may have come, gone or been fenced before a plan begins: 60 to 3600. brokerLost does not
    wait for this."""
    cooldown_seconds: Annotated[int, Field(ge=0, le=MAX_COOLDOWN_SECONDS)] = 3600
    """For how long after the end of a plan of schedule or brokersAdded none of these begins: 0 to 604800."""

    @model_validator(mode="after")
    def _triggers_fit(self) -> Self:
        kinds = [trigger.kind for trigger in self.triggers]
        for kind in _SINGLE:
            if kinds.count(kind) > 1:
                raise ValueError(_too_many(kind))
        if self.plan_template is None and {TriggerKind.SCHEDULE, TriggerKind.BROKERS_ADDED} & set(kinds):
            raise ValueError(_NEEDS_TEMPLATE)
        if self.plan_template and self.plan_template.goal.balance is None and TriggerKind.BROKERS_ADDED in kinds:
            raise ValueError(_NEEDS_BALANCE)
        return self


class TriggerState(StrEnum):
    IDLE = "Idle"
    WAITING = "Waiting"
    HELD = "Held"
    ACTIVE = "Active"


class TriggerStatus(Model):
    """One trigger, as it stands."""

    name: TriggerName
    """Its name."""
    state: TriggerState
    """Idle, Waiting (what it waits for has not lasted long enough), Held (a plan would be made but for reason), or
    Active (its plan waits for approval, or runs)."""
    since: Time | None = None
    """Since when it is in this state."""
    brokers: Annotated[tuple[BrokerId, ...], Field(max_length=MAX_BROKERS)] = ()
    """The brokers that it is about, or, while it is Waiting, may come to be."""
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARACTERS)] | None = None
    """Why it is in this state, as one word."""
    message: ShortText | None = None
    """Why, as a sentence for people."""


class PolicyPlan(MadePlan):
    """A ReassignmentPlan that was made for a trigger."""

    trigger: TriggerName
    """The name of its trigger."""


class CurrentPlan(Model):
    """The plan that waits or runs."""

    name: Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
    """Its name, in the same namespace."""
    trigger: TriggerName
    """The name of its trigger."""


class ReassignmentPolicyStatus(Model):
    """What the triggers wait for, and what their plans have come to."""

    observed_generation: ObservedGeneration = None
    """The metadata.generation that this status is about; -1 before the first one is written."""
    conditions: Conditions = ()
    """Ready always: True while the policy is in force. ApprovalNeeded, Reconciling and Stalled only while True."""
    summary: ShortText | None = None
    """What happens, in one line, for people."""
    plan: CurrentPlan | None = None
    """The plan that waits or runs. Unset: there is none."""
    digest: Digest | None = None
    """Digest of the plan that waits for approval. To approve it, copy it to spec.approvedDigest."""
    last_schedule_time: Time | None = None
    """The last time of a schedule for which a plan was made, or was not needed."""
    next_schedule_time: Time | None = None
    """When a time of a schedule comes next."""
    triggers: Annotated[tuple[TriggerStatus, ...], Field(max_length=MAX_TRIGGERS), Schema(list_map_keys=("name",))] = ()
    """The triggers, one by one."""
    plans: Annotated[tuple[PolicyPlan, ...], Field(max_length=MAX_PAST_PLANS)] = ()
    """The last 10 ReassignmentPlans that were made, in their order."""


class ReassignmentPolicy(CustomResource):
    """Plans that are made by themselves, when a broker is lost, cordoned or added, or at times of a schedule. What
    CronJob is to Job, this is to ReassignmentPlan."""

    KIND = "ReassignmentPolicy"
    PLURAL = "reassignmentpolicies"
    SHORT_NAMES = ("krpol",)

    RULES: ClassVar = (rule(f"size(self.metadata.name) <= {MAX_POLICY_NAME_CHARACTERS}", _NAME_TOO_LONG),)

    spec: ReassignmentPolicySpec
    """The triggers, and what holds for their plans."""
    status: ReassignmentPolicyStatus = ReassignmentPolicyStatus()
    """What the triggers wait for, and what their plans have come to. Written by the operator."""

    @model_validator(mode="after")
    def _has_a_short_name(self) -> Self:
        if len(self.metadata.name) > MAX_POLICY_NAME_CHARACTERS:
            raise ValueError(_NAME_TOO_LONG)
        return self
