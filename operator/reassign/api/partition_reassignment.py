"""The PartitionReassignment resource: target replicas, options, and progress."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from reassign.api.common import (
    BrokerId,
    Conditions,
    Count,
    CustomResource,
    Model,
    NamespaceName,
    ObjectName,
    ObservedGeneration,
    ObservedReplicas,
    ObservedTopic,
    PartitionId,
    Rate,
    RecordedTime,
    Replicas,
    Schema,
    Seconds,
    ShortText,
    Time,
    TopicName,
    TtlSeconds,
    rule,
)
from reassign.api.limits import (
    MAX_DETAILS,
    MAX_DIRECTED_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_LOG_DIR_CHARACTERS,
    MAX_MOVES_PER_BROKER,
    MAX_PART_PARTITIONS,
    MAX_PARTITIONS,
    MAX_PARTITIONS_IN_FLIGHT,
    MAX_REASON_CHARACTERS,
    MAX_REPLICAS,
    MAX_SAMPLES,
    MAX_TOPIC_CHARACTERS,
)

ANY_LOG_DIR = "any"
STALL_TIMEOUT_SECONDS = 600
"""The default of stallTimeoutSeconds, and what holds for a KafkaCluster."""


class ReplicationFactorChange(StrEnum):
    FORBID = "Forbid"
    ALLOW = "Allow"


class WhenInFlight(StrEnum):
    WAIT = "Wait"
    FAIL = "Fail"
    SUPERSEDE = "Supersede"


class Admission(StrEnum):
    ALWAYS = "Always"
    WHEN_IDLE = "WhenIdle"


class PreferredLeader(StrEnum):
    ELECT = "Elect"
    KEEP = "Keep"


class DeletionPolicy(StrEnum):
    CANCEL = "Cancel"
    ORPHAN = "Orphan"


class Mode(StrEnum):
    EXECUTE = "Execute"
    DRY_RUN = "DryRun"


class ClusterRef(Model):
    """The KafkaCluster whose partitions these are."""

    name: ObjectName
    """Name of the KafkaCluster."""
    namespace: NamespaceName | None = None
    """Namespace of the KafkaCluster; by default the namespace of this resource. Another namespace must be
    allowed by the KafkaCluster's spec.allowedNamespaces."""


LogDirPath = Annotated[str, Field(min_length=1, max_length=MAX_LOG_DIR_CHARACTERS, pattern=r"^(any|/.*)$")]


class PartitionEntry(Model):
    """One partition and the brokers that should hold its replicas."""

    RULES: ClassVar = (
        rule(
            "!has(self.logDirs) || size(self.logDirs) == size(self.replicas)",
            "logDirs must have as many items as replicas",
            ".logDirs",
        ),
    )

    topic: TopicName
    """Name of the topic."""
    partition: PartitionId
    """Number of the partition within the topic."""
    replicas: Replicas
    """Ids of the brokers that should hold a replica, each once. The first is the preferred leader."""
    expected_replicas: Replicas | None = None
    """Guard: the partition is moved only if it is on exactly these brokers, in any order, when its move
    begins. Replicas that are still being added do not count. Compared once; a mismatch blocks this partition
    alone."""
    log_dirs: Annotated[tuple[LogDirPath, ...], Field(min_length=1, max_length=MAX_REPLICAS)] | None = None
    """Log directory for each replica, in the order of replicas: an absolute path, or any to let the broker
    choose, or leave it where it is. A replica that is in another directory of its broker is copied."""

    @property
    def named(self) -> tuple[tuple[int, str], ...]:
        """The directories that are named, as broker and path."""
        return named_log_dirs(self.replicas, self.log_dirs)


def named_log_dirs(replicas: Sequence[int], log_dirs: Sequence[str] | None) -> tuple[tuple[int, str], ...]:
    """Return the log directories that are not left to the broker, as broker and path."""
    if log_dirs is None:
        return ()
    pairs = zip(replicas, log_dirs, strict=False)
    return tuple(sorted((broker, path) for broker, path in pairs if path != ANY_LOG_DIR))


def can_be_directed(topic: str, partition: int) -> bool:
    """Return whether brokers put replicas of a partition into a directory that is named; else its name is too long."""
    return len(topic) + len(str(partition)) <= MAX_DIRECTED_CHARACTERS


class Throttle(Model):
    """Upper bounds on the bytes per second that moving replicas may use."""

    inter_broker: Rate | None = None
    """Between brokers: bytes per second on each broker involved, from 1Ki to 1Ti, such as 50Mi."""
    log_dir: Rate | None = None
    """Between log directories: bytes per second on each broker that copies a replica from one to another, from 1Ki to
    1Ti, such as 20Mi."""


class Concurrency(Model):
    """How much of this resource may move at once, within the limits of the KafkaCluster."""

    partitions: Annotated[int, Field(ge=1, le=MAX_PARTITIONS_IN_FLIGHT)] | None = None
    """Partitions of this resource in flight at once. Unset: no bound but the KafkaCluster's."""
    moves_per_broker: Annotated[int, Field(ge=1, le=MAX_MOVES_PER_BROKER)] | None = None
    """Replicas that this resource adds to any one broker at once. Unset: no bound but the KafkaCluster's."""


class PartitionReassignmentSpec(Model):
    """Where replicas should be, and how to move them there."""

    cluster_ref: Annotated[
        ClusterRef,
        Schema(rule("self == oldSelf", "clusterRef cannot be changed: make another resource instead")),
    ]
    """The KafkaCluster whose partitions these are. It cannot be changed afterwards."""
    partitions: Annotated[
        tuple[PartitionEntry, ...],
        Field(min_length=1, max_length=MAX_PARTITIONS),
        Schema(
            rule(
                f"self.map(p, size(p.topic)).sum() < {MAX_TOPIC_CHARACTERS}",
                f"the topic names in partitions together have {MAX_TOPIC_CHARACTERS} characters or more:"
                " split them over several resources",
            ),
            list_map_keys=("topic", "partition"),
        ),
    ]
    """The partitions to move, each once, 1 to 2000. It can be edited at any time. An entry that is added is
    moved. An entry that is removed while in flight is cancelled. An entry whose replicas change is cancelled, and
    moved to its new replicas."""
    replication_factor_change: ReplicationFactorChange = ReplicationFactorChange.FORBID
    """Whether an entry may have more or fewer replicas than its partition has now: Forbid blocks such an
    entry, Allow moves it."""
    when_in_flight: WhenInFlight = WhenInFlight.WAIT
    """What to do with a partition that someone else is moving: Wait until that move ends; Fail the entry; or
    Supersede the other move. That is cancelled once every check of this one holds, and this one starts when that is
    confirmed.
    What was cancelled so is not resubmitted when this entry or resource is removed. A move to the same replicas in
    the same order is taken over as it is. The same holds for a replica that someone else is copying to another log
    directory than the one named in logDirs."""
    admission: Admission = Admission.ALWAYS
    """When to start: Always, or WhenIdle, which waits until nothing else is in flight on the cluster (copies that
    others make between log directories do not count). Once it has something in flight it goes on, whatever else
    begins. It comes before whenInFlight."""
    throttle: Throttle | None = None
    """Rates for this resource's moves; they can be changed in flight. Brokers have one rate of each kind for all
    moves, so the lowest that any active resource asks for counts. It is set before a move begins, and what was set
    there before is restored after the last one. Unset: the KafkaCluster's."""
    concurrency: Concurrency | None = None
    """How much may move at once. Unset: no bound but the KafkaCluster's limits."""
    preferred_leader: PreferredLeader = PreferredLeader.ELECT
    """When a partition is done: Elect makes its first replica the leader, Keep leaves leadership as it is."""
    deletion_policy: DeletionPolicy = DeletionPolicy.CANCEL
    """What deleting this resource does to what is still in flight: Cancel brings those partitions back to
    their original replicas in their original order, Orphan leaves them moving. It can be changed while the
    resource is being deleted, to orphan moves that cannot be cancelled."""
    deletion_deadline_seconds: Seconds | None = None
    """How long a deletion waits for its cancel to be confirmed. After that the finalizer is removed, with a warning.
    Unset: without limit."""
    mode: Annotated[
        Mode,
        Schema(rule("self == oldSelf || self == 'Execute'", "mode cannot be changed from Execute to DryRun")),
    ] = Mode.EXECUTE
    """Execute moves replicas. DryRun makes every check, reports what would be copied where, and writes nothing to
    Kafka. DryRun can be changed to Execute, not the reverse."""
    suspend: bool = False
    """True: no new moves start. Moves in flight are finished."""
    stall_timeout_seconds: Seconds = STALL_TIMEOUT_SECONDS
    """After how long a wait that ends by itself, or a move or cancel without progress, is reported as Stalled, with
    the reason. It goes on by itself when the cause is fixed."""
    deadline_seconds: Seconds | None = None
    """After how many seconds since status.startTime no new move is started, and what is pending or blocked fails
    with DeadlineExceeded. Moves in flight are finished. When it is raised or unset later, partitions that it
    failed are checked again. Unset: no deadline."""
    ttl_seconds_after_finished: TtlSeconds | None = None
    """After how many seconds since status.completionTime this resource is deleted, whether it succeeded or failed, as a
    Job is. A wave stays until its plan has seen it succeed. A resource that Argo CD tracks is not deleted: Argo CD
    would make it again. Unset: it stays."""


class PartitionState(StrEnum):
    PENDING = "Pending"
    BLOCKED = "Blocked"
    IN_FLIGHT = "InFlight"
    COMPLETED = "Completed"
    CANCELLING = "Cancelling"
    CANCELLED = "Cancelled"
    FAILED = "Failed"


class RecordState(StrEnum):
    SUPERSEDING = "Superseding"
    SUBMITTING = "Submitting"
    IN_FLIGHT = "InFlight"
    SETTLING = "Settling"
    CANCELLING = "Cancelling"
    COMPLETED = "Completed"
    CANCELLED = "Cancelled"
    FAILED = "Failed"


Percent = Annotated[int, Field(ge=0, le=100)]
ReasonText = Annotated[str, Field(max_length=MAX_REASON_CHARACTERS)]


class Progress(Model):
    """Counts over all partitions, and the bytes that their added replicas have copied."""

    partitions_total: Count = 0
    """Partitions that this resource names."""
    partitions_completed: Count = 0
    """Partitions that are on their target replicas, in order and in sync."""
    partitions_in_flight: Count = 0
    """Partitions that are moving."""
    partitions_pending: Count = 0
    """Partitions that wait for their turn."""
    partitions_blocked: Count = 0
    """Partitions that a check blocks; it is made again at each reconciliation."""
    partitions_failed: Count = 0
    """Partitions that will not be moved any more."""
    partitions_cancelled: Count = 0
    """Partitions that are being brought back to their original replicas, or have been."""
    bytes_total: Count | None = None
    """Bytes that the replicas being added have to copy, all together."""
    bytes_copied: Count | None = None
    """Bytes of these that are copied already."""
    percent: Percent | None = None
    """bytesCopied in percent of bytesTotal; 100 only when every added replica is in sync."""
    bytes_per_second: Count | None = None
    """Bytes copied per second, lately."""
    estimated_completion_time: Time | None = None
    """When everything that does not wait for others, or for a user, is copied at this rate."""


class CopiedSample(Model):
    """How much was copied at one moment."""

    time: Time
    """The moment."""
    bytes_copied: Count
    """progress.bytesCopied then."""


class PartitionDetail(Model):
    """One partition's move."""

    topic: ObservedTopic
    """Name of the topic."""
    partition: PartitionId
    """Number of the partition."""
    state: PartitionState
    """Pending, Blocked, InFlight, Completed, Cancelling, Cancelled or Failed."""
    original_replicas: ObservedReplicas | None = None
    """Where the replicas were before the first alter, in order."""
    current_replicas: ObservedReplicas | None = None
    """Where they are now, those being added and removed included."""
    target_replicas: ObservedReplicas | None = None
    """Where they should be."""
    adding_replicas: ObservedReplicas | None = None
    """Brokers whose replica is being added now."""
    removing_replicas: ObservedReplicas | None = None
    """Brokers whose replica is being removed now."""
    bytes_copied: Count | None = None
    """Bytes that the replicas being added hold."""
    bytes_total: Count | None = None
    """Bytes that they will hold."""
    start_time: Time | None = None
    """When its move began, or began again; absent while it waits, and where it had nothing to move."""
    completion_time: Time | None = None
    """When it was settled."""
    waited_for: ReasonText | None = None
    """What it waited for last before it began, as one word."""
    reason: ReasonText | None = None
    """Why the partition is in this state, as one word."""
    message: ShortText | None = None
    """Why, as a sentence."""


class RecordPartition(Model):
    """What was done to one partition: enough to continue, or roll back, after a crash."""

    partition: PartitionId
    """Number of the partition."""
    original_replicas: ObservedReplicas
    """Where the replicas were before the first alter, in order."""
    target_replicas: ObservedReplicas
    """The replicas that were submitted."""
    state: RecordState
    """The last step that was begun or confirmed."""
    reason: ReasonText | None = None
    """Why it ended other than completed, as one word."""
    log_dirs: Annotated[tuple[LogDirPath, ...], Field(max_length=MAX_REPLICAS)] | None = None
    """The log directories that were named for the target replicas, or any."""
    via: BrokerId | None = None
    """The broker that the last request for it went to."""
    sent_at: RecordedTime | None = None
    """When that was."""
    start_time: RecordedTime | None = None
    """When the alter was sent that began this move. One that begins again, after a cancel, an edit or an alter that
    did not land, has the new time."""
    completion_time: RecordedTime | None = None
    """When it was settled."""
    waited_for: ReasonText | None = None
    """What it waited for last before that alter, as one word."""


class RecordTopic(Model):
    """What was done to the partitions of one topic."""

    topic: ObservedTopic
    """Name of the topic."""
    topic_id: Annotated[str, Field(max_length=MAX_ID_CHARACTERS)]
    """Kafka's id of the topic: a topic that was deleted and created again has another."""
    partitions: Annotated[tuple[RecordPartition, ...], Field(max_length=MAX_PART_PARTITIONS)]
    """The partitions that were altered."""


class PartitionReassignmentStatus(Model):
    """Progress of the moves."""

    observed_generation: ObservedGeneration = None
    """The metadata.generation that this status is about; -1 before the first one is written."""
    conditions: Conditions = ()
    """Ready always; Reconciling and Stalled only while True; Succeeded or Failed at the end, Failed with Stalled;
    Checked after a dry run; Drifted when replicas were moved elsewhere afterwards. Stalled: nothing goes on until a
    user acts, or a wait has lasted stallTimeoutSeconds."""
    start_time: Time | None = None
    """When the resource was first reconciled while it may start: not suspended, not a dry run, supported. Suspending
    clears it. An edit after the end that adds or changes an entry sets it again. deadlineSeconds counts from it."""
    completion_time: Time | None = None
    """When the last partition was settled."""
    summary: ShortText | None = None
    """Progress in one line, for people."""
    progress: Progress | None = None
    """Counts and bytes over all partitions; always exact."""
    samples: Annotated[tuple[CopiedSample, ...], Field(max_length=MAX_SAMPLES)] = ()
    """Bytes copied over time, since the first move began. At most 30 samples are kept, spread over that time."""
    adding: Count | None = None
    """Replicas being added now, over all partitions."""
    removing: Count | None = None
    """Replicas being removed now, over all partitions."""
    partitions: Annotated[tuple[PartitionDetail, ...], Field(max_length=MAX_DETAILS)] = ()
    """Details of at most 100 partitions: failed and in flight first."""


class PartitionReassignment(CustomResource):
    """Moves the replicas of partitions to the brokers that it names, and follows them until they are in sync. When it
    is deleted, what is still in flight goes back to its original replicas."""

    KIND = "PartitionReassignment"
    PLURAL = "partitionreassignments"
    SHORT_NAMES = ("kpr",)

    spec: PartitionReassignmentSpec
    """Where replicas should be, and how to move them there."""
    status: PartitionReassignmentStatus = PartitionReassignmentStatus()
    """Progress of the moves. Written by the operator."""
