"""The ReassignmentPlan resource: a goal, the PartitionReassignments that reach it, and their approval."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from reassign.api.common import (
    INT32_MAX,
    BrokerId,
    ByteQuantity,
    Conditions,
    Count,
    CustomResource,
    EachOnce,
    Model,
    ObservedGeneration,
    Schema,
    Seconds,
    ShortText,
    Time,
    TopicPattern,
    TtlSeconds,
    rule,
)
from reassign.api.goal import COUNTED, EXCLUDED_BY_DEFAULT, Awareness, By, FencedBrokers, GoalPart, Scope
from reassign.api.limits import (
    MAX_LABEL_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_PATTERNS,
    MAX_PLAN_BROKERS,
    MAX_REPLICAS,
    MAX_UNMET,
    MAX_WAVE_PARTITIONS,
    MAX_WAVES,
    WAVE_PARTITIONS,
)
from reassign.api.partition_reassignment import (
    Admission,
    ClusterRef,
    Concurrency,
    DeletionPolicy,
    PreferredLeader,
    Throttle,
    WhenInFlight,
)
from reassign.api.window import Windows

PLAN_LABEL = "kafka.reassign.dev/plan"
"""Name of the plan that a PartitionReassignment is a wave of."""
PLAN_UID_LABEL = "kafka.reassign.dev/plan-uid"
"""Its uid: a plan made again under the same name is another plan."""


class Approval(StrEnum):
    REQUIRED = "Required"
    NOT_REQUIRED = "NotRequired"


TopicPatterns = Annotated[tuple[TopicPattern, ...], Field(max_length=MAX_PATTERNS)]
Brokers = Annotated[
    tuple[BrokerId, ...],
    Field(min_length=1, max_length=MAX_PLAN_BROKERS),
    EachOnce("names a broker more than once"),
]
Digest = Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]


class Topics(Model):
    """The topics whose replicas may be moved: those that one of include matches, and none of exclude."""

    include: Annotated[TopicPatterns, Field(min_length=1), EachOnce("names a pattern twice")] = ("*",)
    """Names of topics, with * for any characters and ? for one. Default: all."""
    exclude: Annotated[TopicPatterns, EachOnce("names a pattern twice")] | None = None
    """Names of topics that stay as they are, likewise. Unset: those that begin with two underscores, such as
    __consumer_offsets, are not balanced and keep their replication factor, but leave brokers that are drained. An empty
    list leaves none out."""

    @property
    def excluded(self) -> tuple[str, ...]:
        """The patterns of exclude, or those that hold where it is unset."""
        return EXCLUDED_BY_DEFAULT if self.exclude is None else self.exclude


class BalanceGoal(Model):
    """What is balanced over the brokers."""

    by: Annotated[
        tuple[By, ...],
        Field(
            min_length=1,
            max_length=len(By),
            description=f"What is balanced: {', '.join(f'{by} ({of.meaning})' for by, of in COUNTED.items())}. "
            "Default: all.",
        ),
        EachOnce("names a resource more than once"),
    ] = tuple(COUNTED)
    tolerance_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """How far a broker's share may be from the best possible one, in percent."""


NARROW_GOAL = "scope Drained needs drainBrokers, and excludes balance and replicationFactor"
DRAINED_AVOIDED = "a broker that is drained cannot be one of avoidBrokers, which may keep what they have"


class Goal(Model):
    """The goal: at least one of drainBrokers, brokers, replicationFactor and balance. Unless scope is Drained, replicas
    on brokers that are not registered get another broker, and replicas of one partition are spread over racks where
    possible."""

    RULES: ClassVar = (
        rule(
            "has(self.drainBrokers) || has(self.brokers) || has(self.replicationFactor) || has(self.balance)",
            "goal needs at least one of drainBrokers, brokers, replicationFactor and balance",
        ),
        rule(
            "!has(self.drainBrokers) || !has(self.brokers) || !self.drainBrokers.exists(x, x in self.brokers)",
            "a broker that is drained cannot be one of brokers, which may have replicas",
        ),
        rule(
            "self.scope != 'Drained' || (has(self.drainBrokers) && !has(self.balance) && !has(self.replicationFactor))",
            NARROW_GOAL,
        ),
        rule(
            "!has(self.avoidBrokers) || !has(self.drainBrokers) || "
            "!self.drainBrokers.exists(x, x in self.avoidBrokers)",
            DRAINED_AVOIDED,
        ),
        rule(
            "!has(self.avoidBrokers) || !has(self.brokers) || self.avoidBrokers.all(x, x in self.brokers)",
            DRAINED_AVOIDED,
        ),
    )

    drain_brokers: Brokers | None = None
    """Ids of brokers to drain: no replica stays on them."""
    brokers: Brokers | None = None
    """Ids of the brokers that may have replicas: the others are drained. Unset: all."""
    replication_factor: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """How many replicas each partition has. Unset: as many as it has now."""
    balance: BalanceGoal | None = None
    """What is balanced over the brokers. Unset: only replicas that have to move are moved."""
    scope: Scope = Scope.ALL
    """All: every replica may be moved for the goal. Drained: only partitions with a replica on a drained broker are
    touched, and of these only the replicas there."""
    avoid_brokers: Brokers | None = None
    """Ids of brokers that get no new replica. What they have may stay. A drained broker is not listed."""
    fenced_brokers: FencedBrokers = FencedBrokers.KEEP
    """What becomes of replicas on a broker that is fenced: down, or still starting. Keep: they stay, and no partition
    with a replica there is moved. Replace: they get another broker. A broker that is drained is drained either way.
    Before Kafka 4.0 brokers that are fenced are not listed, and count as not registered."""

    @model_validator(mode="after")
    def _is_no_contradiction(self) -> Self:
        narrow = self.drain_brokers is not None and self.balance is None and self.replication_factor is None
        if self.scope is Scope.DRAINED and not narrow:
            raise ValueError(NARROW_GOAL)
        avoided = set(self.avoid_brokers or ())
        if avoided & set(self.drain_brokers or ()) or (self.brokers is not None and avoided - set(self.brokers)):
            raise ValueError(DRAINED_AVOIDED)
        return self

    @property
    def asks(self) -> bool:
        """Whether it is a goal: the other fields only say how one is reached."""
        return self.drains or self.replication_factor is not None or self.balance is not None

    @property
    def drains(self) -> bool:
        """Whether it names brokers that have no replicas in the end."""
        return self.drain_brokers is not None or self.brokers is not None


class Racks(Model):
    """How replicas are spread over racks."""

    awareness: Awareness = Awareness.TREE
    """Tree: a broker.rack such as /dc1/row2/rack7 is a path, and replicas are spread at each level, from the top; a
    plain name is one level. Flat: each broker.rack is one rack, whatever its name. None: racks do not count."""


class WaveLimits(Model):
    """The largest PartitionReassignment that the plan makes. Waves run one after the other."""

    max_partitions: Annotated[int, Field(ge=1, le=MAX_WAVE_PARTITIONS)] = WAVE_PARTITIONS
    """Partitions of one wave, at most."""
    max_bytes: ByteQuantity | None = None
    """Bytes that one wave copies, at most: from 1Ki to 1Pi, such as 500Gi. A larger partition is a wave of its own.
    Unset: no bound."""


class Template(Model):
    """Options of the PartitionReassignments that the plan makes: each as in a PartitionReassignment, with the same
    default."""

    throttle: Throttle | None = None
    """Rates for the moves. Unset: the KafkaCluster's."""
    concurrency: Concurrency | None = None
    """How much may move at once. Unset: no bound but the KafkaCluster's limits."""
    when_in_flight: WhenInFlight | None = None
    """What to do with a partition that someone else is moving. Unset: Wait."""
    admission: Admission | None = None
    """When a wave starts. Unset: Always."""
    preferred_leader: PreferredLeader | None = None
    """Whether the first replica of a partition is made its leader. Unset: Elect."""
    deletion_policy: DeletionPolicy | None = None
    """What happens to the wave in flight when the plan is deleted. Unset: Cancel."""
    deletion_deadline_seconds: Seconds | None = None
    """How long the deletion of a wave waits for its cancel to be confirmed. Unset: without limit."""
    stall_timeout_seconds: Seconds | None = None
    """After how long a wait that ends by itself, or a move without progress, is reported as Stalled. Unset: 600."""
    deadline_seconds: Seconds | None = None
    """After how many seconds since its start a wave starts no new move. Unset: no deadline."""
    ttl_seconds_after_finished: TtlSeconds | None = None
    """After how many seconds since its end a wave is deleted. A wave that failed stays while its plan does. Unset:
    waves stay, also after the plan."""


class ReassignmentPlanSpec(Model):
    """The goal, and when it may be carried out."""

    cluster_ref: Annotated[
        ClusterRef,
        Schema(rule("self == oldSelf", "clusterRef cannot be changed: make another resource instead")),
    ]
    """The KafkaCluster that is planned for. It cannot be changed afterwards."""
    topics: Topics = Topics()
    """The topics whose replicas may be moved."""
    goal: Goal
    """What the plan should reach. When goal, topics, racks, waves or template change, the operator plans again: moves
    in flight are finished, and waves that are not done are deleted."""
    racks: Racks = Racks()
    """How replicas are spread over racks."""
    waves: WaveLimits = WaveLimits()
    """How much one wave, a PartitionReassignment of the plan, moves at most."""
    approval: Approval = Approval.REQUIRED
    """Required: nothing moves before approvedDigest equals status.digest. NotRequired: the first wave starts as soon as
    the plan is made."""
    approved_digest: Digest | None = None
    """The plan that may be carried out: a copy of status.digest. With any other value, no further wave starts."""
    suspend: bool = False
    """True: no further wave starts, and the running one starts no new moves. Moves in flight are finished."""
    windows: Windows = ()
    """When moves may start. While none of these is open, no further wave starts, and the running one starts no new
    moves. Moves in flight are finished. Empty: at any time."""
    template: Template = Template()
    """Options of the PartitionReassignments that the plan makes."""
    ttl_seconds_after_finished: TtlSeconds | None = None
    """After how many seconds since it was carried out this plan is deleted, as a Job is. Its waves stay: template has a
    field for them. A plan that Argo CD tracks is not deleted: Argo CD would make it again. Unset: it stays."""


class WaveState(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    MISSING = "Missing"


class PlanMoves(Model):
    """What the plan changes."""

    replicas: Count
    """Replicas that are moved to another broker, or added."""
    bytes: Count
    """Bytes that are copied for that."""
    leaders: Count
    """Partitions that get another preferred leader."""
    seconds: Count | None = None
    """How long that takes, wave after wave, at the rate of the throttle. Unset: there is no throttle."""


class LowerBound(Model):
    """The least that any plan for this goal costs. It shows how far this plan is from the optimum."""

    bytes: Count
    """Bytes to copy, at least."""
    replicas: Count
    """Replicas to move, at least."""
    waves: Count
    """Waves, at least."""
    seconds: Count | None = None
    """Time at the rate of the throttle, at least. Unset: there is no throttle."""


Share = Annotated[int, Field(ge=0, le=INT32_MAX)]


class Shares(Model):
    """How evenly one resource is spread over the brokers: 100 is exactly a broker's share."""

    by: Annotated[By, Field(description=f"One of {', '.join(By)}.")]
    least_percent: Share
    """The least loaded broker, in percent of its share."""
    greatest_percent: Share
    """The most loaded broker, in percent of its share."""


ShareList = Annotated[tuple[Shares, ...], Field(max_length=len(By)), Schema(list_map_keys=("by",))]


class BalanceStatus(Model):
    """How evenly the cluster is loaded."""

    before: ShareList = ()
    """When it was planned."""
    after: ShareList = ()
    """When all waves are done: a forecast, until goalObservedTime is set."""


class Wave(Model):
    """One PartitionReassignment of the plan."""

    name: Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
    """Its name, in the plan's namespace."""
    partitions: Count
    """Partitions that it moves."""
    bytes: Count
    """Bytes that it copies."""
    state: WaveState
    """Pending (suspended, and nothing of it has begun), Running, Succeeded, Failed, or Missing (it was
    deleted)."""
    digest: Digest
    """Digest of its spec as planned, without suspend."""


class Unmet(Model):
    """A part of the goal that is not reached."""

    what: ShortText
    """What it is."""
    nearest: ShortText
    """The closest that the plan comes to it."""
    part: GoalPart | None = None
    """Drain, ReplicationFactor, Racks or Balance. Unset: it is about the plan as a whole."""


class ReassignmentPlanStatus(Model):
    """The plan, and how far it has come."""

    observed_generation: ObservedGeneration = None
    """The metadata.generation that this status is about; -1 before the first one is written."""
    conditions: Conditions = ()
    """Ready and Succeeded always: whether the plan is carried out. GoalMet from when it is made: whether its goal is
    reached, Unknown while that cannot be observed. Reconciling, Stalled and PlanStale only while True."""
    summary: ShortText | None = None
    """Progress in one line, for people."""
    digest: Digest | None = None
    """Digest of all PartitionReassignments of the plan, without suspend. To approve the plan, copy it to
    spec.approvedDigest."""
    planned_input_hash: Digest | None = None
    """Digest of the part of the spec that the plan was made from: goal, topics, racks, waves and template."""
    window_open: bool | None = None
    """Whether a window is open. Unset: the plan has no windows, was carried out, or is being deleted."""
    next_window_time: Time | None = None
    """When a window opens next. Unset: likewise, a window cannot be read, or another one opens before the one that is
    open has closed."""
    stale_digest: Digest | None = None
    """The approved digest whose plan no longer fits the cluster: approve it again."""
    moves: PlanMoves | None = None
    """What the plan changes."""
    lower_bound: LowerBound | None = None
    """The least that any plan for this goal costs."""
    balance: BalanceStatus | None = None
    """How evenly the cluster is loaded, before and after."""
    unmet: Annotated[tuple[Unmet, ...], Field(max_length=MAX_UNMET)] = ()
    """Parts of the goal that are not reached; at most 100. A forecast, until goalObservedTime is set."""
    goal_observed_time: Time | None = None
    """When the cluster was seen to be as unmet and balance.after say, after the last wave. A drain and a replication
    factor are observed again every five minutes; this changes when they do. Unset, also while a wave is under way
    again: unmet and balance.after are a forecast."""
    unregistered_brokers: Annotated[tuple[BrokerId, ...], Field(max_length=MAX_PLAN_BROKERS)] = ()
    """Brokers of drainBrokers that were empty and not registered any more, after the last wave: what gets their ids
    later is no part of the goal."""
    waves: Annotated[tuple[Wave, ...], Field(max_length=MAX_WAVES)] = ()
    """The PartitionReassignments of the plan, in their order."""


class ReassignmentPlan(CustomResource):
    """A goal for a Kafka cluster. The operator plans PartitionReassignments that reach it. They can be read before the
    plan is approved, and then run one after the other."""

    KIND = "ReassignmentPlan"
    PLURAL = "reassignmentplans"
    SHORT_NAMES = ("krp",)

    RULES: ClassVar = (
        rule(
            f"size(self.metadata.name) <= {MAX_LABEL_CHARACTERS}",
            f"the name of a plan has at most {MAX_LABEL_CHARACTERS} characters: its waves are labelled with it",
        ),
    )

    spec: ReassignmentPlanSpec
    """The goal, and when it may be carried out."""
    status: ReassignmentPlanStatus = ReassignmentPlanStatus()
    """The plan, and how far it has come. Written by the operator."""
