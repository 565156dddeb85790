"""The ReassignmentPlan resource: a goal, the PartitionReassignments that it was worked out into, and their approval."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from reassign.api.common import (
    INT32_MAX,
    BrokerId,
    Bytes,
    Conditions,
    Count,
    Model,
    Resource,
    Schema,
    Seconds,
    ShortText,
    TopicPattern,
    rule,
)
from reassign.api.goal import Awareness, By
from reassign.api.partition_reassignment import (
    Admission,
    ClusterRef,
    Concurrency,
    DeletionPolicy,
    PreferredLeader,
    Throttle,
    WhenInFlight,
)

PLAN_LABEL = "kafka.reassign.dev/plan"
"""Name of the plan that a PartitionReassignment is a wave of."""
PLAN_UID_LABEL = "kafka.reassign.dev/plan-uid"
"""Its uid: a plan made again under the same name is another plan."""
MAX_NAME_CHARACTERS = 63
"""What the value of a label can have."""
MAX_WAVES = 1000
"""What a status can list, and still be well under the size of an object."""
MAX_BROKERS = 300
MAX_UNMET = 100


class Approval(StrEnum):
    REQUIRED = "Required"
    NOT_REQUIRED = "NotRequired"


_EACH_ONCE = "self.all(x, self.exists_one(y, y == x))"
TopicPatterns = Annotated[tuple[TopicPattern, ...], Field(max_length=100)]
Brokers = Annotated[
    tuple[BrokerId, ...],
    Field(min_length=1, max_length=MAX_BROKERS),
    Schema(rule(_EACH_ONCE, "names a broker more than once")),
]
Digest = Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]


class Topics(Model):
    """The topics whose replicas may be moved: those that one of include matches, and none of exclude."""

    include: Annotated[TopicPatterns, Field(min_length=1), Schema(rule(_EACH_ONCE, "names a pattern twice"))] = ("*",)
    """Names of topics, with * for any characters and ? for one. Default: all."""
    exclude: Annotated[TopicPatterns, Schema(rule(_EACH_ONCE, "names a pattern twice"))] = ("__*",)
    """Names of topics that stay as they are, likewise. Default: those that begin with two underscores, such as
    __consumer_offsets. An empty list leaves none out."""


class BalanceGoal(Model):
    """What is to lie evenly on the brokers."""

    by: Annotated[
        tuple[By, ...], Field(min_length=1, max_length=3), Schema(rule(_EACH_ONCE, "names a resource more than once"))
    ] = (By.DISK, By.REPLICAS, By.LEADERS)
    """What is balanced: Disk (bytes), Replicas (their number), Leaders (partitions whose first replica it is).
    Default: all three."""
    tolerance_percent: Annotated[int, Field(ge=1, le=100)] = 10
    """How far a broker's share may be from the best that can be reached, in percent."""


class Goal(Model):
    """What is wanted of the cluster, at least one thing. Whatever it is, replicas on brokers that are gone are placed
    anew, and no two replicas of a partition are left on one rack where that can be."""

    RULES: ClassVar = (
        rule(
            "has(self.drainBrokers) || has(self.brokers) || has(self.replicationFactor) || has(self.balance)",
            "goal needs at least one of drainBrokers, brokers, replicationFactor and balance",
        ),
        rule(
            "!has(self.drainBrokers) || !has(self.brokers) || !self.drainBrokers.exists(x, x in self.brokers)",
            "a broker that is drained cannot be one of brokers, which may have replicas",
        ),
    )

    drain_brokers: Brokers | None = None
    """Ids of brokers that no replica stays on."""
    brokers: Brokers | None = None
    """Ids of the brokers that may have replicas: the others are drained. Unset: all."""
    replication_factor: Annotated[int, Field(ge=1, le=16)] | None = None
    """How many replicas each partition has. Unset: as many as it has now."""
    balance: BalanceGoal | None = None
    """What is to lie evenly on the brokers. Unset: only what has to move moves."""


class Racks(Model):
    """How replicas are spread over racks."""

    awareness: Awareness = Awareness.TREE
    """Tree: a broker.rack such as /dc1/row2/rack7 is a path, and replicas are spread at each level, from the top; a
    plain name is one level. Flat: each broker.rack is one rack, whatever its name. None: racks do not count."""


class Waves(Model):
    """How much one PartitionReassignment of the plan moves at most; they run one after the other."""

    max_partitions: Annotated[int, Field(ge=1, le=500)] = 200
    """Partitions of one wave."""
    max_bytes: Bytes | None = None
    """Bytes that one wave copies, from 1Ki to 1Pi, such as 500Gi; a partition that has more is a wave of its own.
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
    """What becomes of the wave in flight when the plan is deleted. Unset: Cancel."""
    deletion_deadline_seconds: Seconds | None = None
    """How long the deletion of a wave waits for its cancel to be confirmed. Unset: for ever."""
    stall_timeout_seconds: Seconds | None = None
    """After how long a wait that ends by itself, or a move that does not come nearer to its end, is reported as
    Stalled. Unset: 600."""
    deadline_seconds: Seconds | None = None
    """After how many seconds since its start a wave starts no new move. Unset: no deadline."""


class ReassignmentPlanSpec(Model):
    """What is wanted, and when it may be carried out."""

    cluster_ref: Annotated[
        ClusterRef,
        Schema(rule("self == oldSelf", "clusterRef cannot be changed: make another resource instead")),
    ]
    """The KafkaCluster that is planned for. It cannot be changed afterwards."""
    topics: Topics = Topics()
    """The topics whose replicas may be moved."""
    goal: Goal
    """What is wanted of the cluster. When it changes, as when topics, racks, waves or template do, what is in flight
    is finished, the waves that are not done are deleted, and it is planned anew."""
    racks: Racks = Racks()
    """How replicas are spread over racks."""
    waves: Waves = Waves()
    """How much one PartitionReassignment of the plan moves at most."""
    approval: Approval = Approval.REQUIRED
    """Required: nothing moves before approvedDigest is status.digest. NotRequired: the first wave begins as soon as
    the plan is made."""
    approved_digest: Digest | None = None
    """The plan that may be carried out: a copy of status.digest. Anything else holds back the waves that have not
    begun."""
    suspend: bool = False
    """True: no wave is begun, and the one that has begun starts no new moves. What is in flight goes on to its end."""
    template: Template = Template()
    """Options of the PartitionReassignments that the plan makes."""


class WaveState(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    MISSING = "Missing"


class Moves(Model):
    """What the plan changes."""

    replicas: Count
    """Replicas that are put on another broker, or added."""
    bytes: Count
    """Bytes that are copied for that."""
    leaders: Count
    """Partitions that get another preferred leader."""
    seconds: Count | None = None
    """How long that takes, wave after wave, at the rate of the throttle. Unset: without one."""


class LowerBound(Model):
    """What any plan for this goal must cost, so that it can be seen how far from the optimum this one is."""

    bytes: Count
    """Bytes to copy, at least."""
    replicas: Count
    """Replicas to put elsewhere, at least."""
    waves: Count
    """Waves, at least."""
    seconds: Count | None = None
    """Time at the rate of the throttle, at least. Unset: without one."""


Share = Annotated[int, Field(ge=0, le=INT32_MAX)]


class Shares(Model):
    """How evenly one resource lies on the brokers: 100 is just a broker's share."""

    by: By
    """Disk, Replicas or Leaders."""
    least_percent: Share
    """The broker that has least, in percent of its share."""
    greatest_percent: Share
    """The broker that has most, in percent of its share."""


ShareList = Annotated[tuple[Shares, ...], Field(max_length=3), Schema(list_map_keys=("by",))]


class BalanceStatus(Model):
    """How evenly the cluster is loaded."""

    before: ShareList = ()
    """When it was planned."""
    after: ShareList = ()
    """When all waves are done."""


class Wave(Model):
    """One PartitionReassignment of the plan."""

    name: Annotated[str, Field(max_length=253)]
    """Its name, in the plan's namespace."""
    partitions: Count
    """Partitions that it moves."""
    bytes: Count
    """Bytes that it copies."""
    state: WaveState
    """Pending (suspended, and nothing of it has begun), Running, Succeeded, Failed, or Missing (somebody deleted
    it)."""
    digest: Digest
    """Of its spec as it was planned, but for suspend."""


class Unmet(Model):
    """Something of the goal that the plan does not reach."""

    what: ShortText
    """What it is."""
    nearest: ShortText
    """The nearest to it that the plan reaches."""


class ReassignmentPlanStatus(Model):
    """The plan, and how far it has come."""

    observed_generation: Count | None = None
    """The metadata.generation that this status is about."""
    conditions: Conditions = ()
    """Ready and Succeeded always: whether the plan is carried out. GoalMet from when it is made: whether its goal is
    reached. Reconciling, Stalled and PlanStale only while True."""
    summary: ShortText | None = None
    """How far it is in one line, for people."""
    digest: Digest | None = None
    """Of all the PartitionReassignments of the plan but for suspend. Copied to spec.approvedDigest it is the
    approval."""
    planned_input_hash: Digest | None = None
    """Of the part of the spec that the plan was made from: goal, topics, racks, waves and template."""
    stale_digest: Digest | None = None
    """The approved digest whose plan no longer fitted the cluster: it has to be approved again."""
    moves: Moves | None = None
    """What the plan changes."""
    lower_bound: LowerBound | None = None
    """What any plan for this goal must cost."""
    balance: BalanceStatus | None = None
    """How evenly the cluster is loaded, before and after."""
    unmet: Annotated[tuple[Unmet, ...], Field(max_length=MAX_UNMET)] = ()
    """What of the goal the plan does not reach; at most 100 parts."""
    waves: Annotated[tuple[Wave, ...], Field(max_length=MAX_WAVES)] = ()
    """The PartitionReassignments of the plan, in their order."""


class ReassignmentPlan(Resource):
    """A goal for a Kafka cluster, worked out into PartitionReassignments that can be read before they run, one after
    the other, when the plan is approved."""

    KIND = "ReassignmentPlan"
    PLURAL = "reassignmentplans"
    SHORT_NAME = "krp"

    RULES: ClassVar = (
        rule(
            f"size(self.metadata.name) <= {MAX_NAME_CHARACTERS}",
            f"the name of a plan has at most {MAX_NAME_CHARACTERS} characters: its waves are labelled with it",
        ),
    )

    spec: ReassignmentPlanSpec
    """What is wanted, and when it may be carried out."""
    status: ReassignmentPlanStatus = ReassignmentPlanStatus()
    """The plan, and how far it has come. Written by the operator."""
