"""The errors of this package: one small tree, each with the reason that becomes a condition's reason.

ReassignError
├── ClusterError           the Kafka cluster as a whole cannot be used now
├── PlanningError          a goal that cannot be planned: contradictory, too large, or from an unusable snapshot
├── MissingReferenceError  something that a resource names (a KafkaCluster, a Secret, a key in it) is missing
├── ApiServerError         the API server did not answer, or not now: unreachable, too slow, overloaded, failing
└── ConflictError          an object of the API server changed since it was last read; it is read again

A problem of one partition is not an exception but an `Outcome` or a `Problem`: the others go on.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is as it is, in the words of conditions, events and per-partition status, and what to do."""

    # one partition cannot be moved, or not now
    UNKNOWN_TOPIC_OR_PARTITION = "UnknownTopicOrPartition"
    """Create the topic, or correct the entry. If the topic was deleted while it moved, remove the entry."""
    TOPIC_RECREATED = "TopicRecreated"
    """The topic was deleted and created again while it moved: remove the entry and add it again."""
    UNKNOWN_BROKER = "UnknownBroker"
    """Correct the entry, or start the broker. A move in flight, or its cancel, waits for the broker that the message
    names."""
    BROKER_FENCED = "BrokerFenced"
    """Start the broker. A move in flight, its cancel, or the next wave of a plan waits for the broker that the message
    names."""
    BELOW_MIN_IN_SYNC_REPLICAS = "BelowMinInSyncReplicas"
    """Name more replicas, or lower min.insync.replicas."""
    REPLICATION_FACTOR_CHANGE = "ReplicationFactorChange"
    """Set `replicationFactorChange: Allow` if you want the change."""
    EXPECTED_REPLICAS_MISMATCH = "ExpectedReplicasMismatch"
    """The partition is not where the manifest expects it: correct the entry."""
    IN_FLIGHT_ELSEWHERE = "InFlightElsewhere"
    """Another client moves the partition, or copies its replica to another log directory. It starts after that. With
    `whenInFlight: Fail` it has failed, with `Supersede` it does not wait."""
    PARTITION_CLAIMED = "PartitionClaimed"
    """Another resource moves the partition, or an older one that waits for no user goes first. It starts after that."""
    INVALID_REPLICA_ASSIGNMENT = "InvalidReplicaAssignment"
    """The brokers refused. The message has their words. Kafka 4.4 refuses a target that names a cordoned broker, also
    where its replica stays: remove the cordon, or choose another broker."""
    NO_REASSIGNMENT_IN_PROGRESS = "NoReassignmentInProgress"
    """The brokers have nothing to cancel: the move has ended meanwhile. The next reconciliation sees how."""
    CANCELLED_EXTERNALLY = "CancelledExternally"
    """Another client cancelled or changed our move: edit the entry to move it again."""
    CANCEL_UNSAFE = "CancelUnsafe"
    """Bring the named brokers back and in sync. The cancel is then sent by itself."""
    SUPERSEDING = "Superseding"
    """Another client's move is being cancelled. Ours begins when the cancel is confirmed."""
    CANCELLING = "Cancelling"
    """The partition goes back to its original replicas. The message says which ones go, and how many copied bytes."""
    ORDER_UNKNOWN = "OrderUnknown"
    """A cancel brings the same replicas back, but perhaps in another order."""
    ELECTION_FAILED = "ElectionFailed"
    """The move is done, but its first replica did not become leader: elect it by hand."""
    REQUEST_FAILED = "RequestFailed"
    """The brokers did not answer, and are asked again. The message has their words. A broker that does not report its
    log directories gets nothing, because its free space is unknown."""
    REQUEST_REFUSED = "RequestRefused"
    """The brokers refuse it whenever they are asked: remove what the message names, such as a policy of theirs."""
    NOT_AUTHORIZED = "NotAuthorized"
    """Grant the right that the message names."""
    UNKNOWN_LOG_DIR = "UnknownLogDir"
    """Name a log directory that the broker has."""
    TOPIC_NAME_TOO_LONG = "TopicNameTooLong"
    """Name no log directory for this partition: brokers refuse it for topics with such long names."""
    LOG_DIR_OFFLINE = "LogDirOffline"
    """Repair the disk and restart the broker, or choose another directory or broker. A move in flight waits for it."""
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    """Check that the KafkaCluster of `clusterRef` exists, and list the namespace and the topic in its
    `allowedNamespaces`."""
    LOG_DIR_CORDONED = "LogDirCordoned"
    """Remove the cordon, or choose another directory or broker."""
    INSUFFICIENT_DISK = "InsufficientDisk"
    """Free some disk on the broker, choose another, or lower `limits.minFreeDiskPercent`."""
    WAITING_FOR_BUDGET = "WaitingForBudget"
    """`limits` of the KafkaCluster or `concurrency` of the resource delay it."""
    WAITING_FOR_IDLE = "WaitingForIdle"
    """`admission: WhenIdle` delays it until nothing else is in flight on the cluster."""
    THROTTLE_NOT_SET = "ThrottleNotSet"
    """The move waits for its throttle. The message says what prevents it, such as the throttles of another KafkaCluster
    for the same brokers."""
    THROTTLE_DRIFT = "ThrottleDrift"
    """Another client changed a throttle in use, and the operator set it again. Find that client. It is an event."""
    THROTTLE_RECORD_LOST = "ThrottleRecordLost"
    """The ReassignmentRecord of the throttles was removed. The message names what stays in Kafka. The page on throttles
    says how to remove it. It is an event."""

    # a move in flight does not come nearer
    NO_LEADER = "NoLeader"
    """A move in flight has no leader to copy from: start one of the brokers that the message names."""
    THROTTLE_BELOW_PRODUCE_RATE = "ThrottleBelowProduceRate"
    """Producers write as fast as the move copies: raise the throttle, or find another bottleneck."""
    MOVE_STALLED = "MoveStalled"
    """Nothing is copied, and no broker reports why, or the end of a move cannot be seen: read the log of the named
    broker."""

    # a dry run
    WOULD_MOVE = "WouldMove"
    """Of a dry run: the partition would move."""

    # the resource as a whole
    CANNOT_BE_READ = "CannotBeRead"
    """The schema accepts a field that the operator cannot read: correct what the message names. In-flight moves
    continue. A deletion waits for them, at most `deletionDeadlineSeconds`. With `deletionPolicy: Orphan` it does not
    wait. A plan begins no further wave."""
    RESOURCE_TOO_LARGE = "ResourceTooLarge"
    """Split the resource. A throttled partition with this reason waits until others are done."""
    THROTTLE_ABOVE_MAXIMUM = "ThrottleAboveMaximum"
    """Lower the rate that the message names, or raise `limits.maxThrottle` of the KafkaCluster. A plan is not made, and
    begins no wave."""
    THROTTLE_BELOW_MINIMUM = "ThrottleBelowMinimum"
    """Raise the rate that the message names, or lower `limits.minThrottle` of the KafkaCluster. A plan is not made, and
    begins no wave."""
    SUSPENDED = "Suspended"
    """`suspend`, or the brake of the KafkaCluster, stops it: change either when you want it to continue."""
    OUTSIDE_WINDOW = "OutsideWindow"
    """None of `windows` is open, so nothing new starts. The message says when one opens next."""
    INVALID_SCHEDULE = "InvalidSchedule"
    """A `cron` or a `timeZone` cannot be read, or the cron has no time within four years. The message says which. No
    window is open until you correct it."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """`deadlineSeconds` expired before the move began: raise it, or remove it. The message says what the move waited
    for."""

    # a goal that cannot be planned, or a plan that does not go on
    INVALID_RACKS = "InvalidRacks"
    """The racks of the brokers cannot be read as the goal asks, or some brokers have none beside others that have one.
    Correct `broker.rack`, or change `racks`."""
    INVALID_GOAL = "InvalidGoal"
    """The goal contradicts itself, or names what is not there: correct what the message names."""
    NOT_ENOUGH_BROKERS = "NotEnoughBrokers"
    """The goal leaves fewer brokers than replicas: allow more brokers, or ask for fewer replicas."""
    NOTHING_SELECTED = "NothingSelected"
    """No partition fits `topics` of the plan: correct the patterns."""
    INVALID_SNAPSHOT = "InvalidSnapshot"
    """What was observed contradicts itself, as during a change. It is observed again after a minute."""
    PLAN_TOO_LARGE = "PlanTooLarge"
    """More than 20,000 partitions would move, or in more than 1000 waves. Select fewer topics, raise `waves`, or plan
    with `kubectl kafka-reassign plan` and keep the reassignments in Git."""
    PLANNING_FAILED = "PlanningFailed"
    """The planning process took more than five minutes, met a bug, or was killed from outside. The operator tries again
    after a minute, in its turn."""
    SPARK_FAILED = "SparkFailed"
    """Of the command line: Spark has failed or does not start. Run the command again: it continues where it was."""
    CANNOT_BE_WRITTEN = "CannotBeWritten"
    """Of the command line: a file cannot be written. Correct that, and run the command again."""
    INVALID_ARGUMENT = "InvalidArgument"
    """Of the command line: correct the option or the argument that the message names."""
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    """The planning process was ended, because the operator's memory was nearly used up: give the operator more. It
    tries again after a restart, or when an input of the plan changes."""
    PLANNING = "Planning"
    """The plan is being made, its waves are being written, or moves of the former plan come to their end first. The
    message says which."""
    AWAITING_APPROVAL = "AwaitingApproval"
    """The plan waits for you: read it, and copy `status.digest` to `spec.approvedDigest`."""
    APPROVED_DIGEST_MISMATCH = "ApprovedDigestMismatch"
    """`spec.approvedDigest` names another plan. The message has both digests: read this plan and approve it."""
    PLAN_STALE = "PlanStale"
    """The cluster is not as the next wave expects: replicas are elsewhere, or a topic or a broker is gone. The page on
    plans names the ways out."""
    WAVE_EDITED = "WaveEdited"
    """The spec of a wave was changed, so it is not what was approved. The current wave continues, and no further one
    begins. Restore the spec, or have it planned again."""
    WAVE_FAILED = "WaveFailed"
    """A wave failed, or was deleted. Make it succeed, as its status says, or have it planned again."""
    RETIRED = "Retired"
    """The plan has ended before it was carried out, because its owner ended it. What has moved stays moved, and the
    owner has another plan made where one is needed. Nothing to do."""
    DRAIN_INCOMPLETE = "DrainIncomplete"
    """Brokers that are to be emptied would keep the replicas that the message names. It is planned again when the
    cluster has changed."""
    PLAN_FAILED = "PlanFailed"
    """Three plans in a row could not go on: see what became of them. The message says when the next one is made. A
    change of the spec has it made at once."""
    DUPLICATE_POLICY = "DuplicatePolicy"
    """An older ReassignmentPolicy of the same KafkaCluster is in force: delete one of the two."""
    TOO_MANY_BROKERS_LOST = "TooManyBrokersLost"
    """More brokers are down than `maxBrokers` of the trigger, so nothing is replaced: bring them back, or raise it."""
    RACK_LOST = "RackLost"
    """All brokers of the rack that the message names are down, so nothing is replaced: see to the rack, or plan by
    hand."""
    NOT_OBSERVED = "NotObserved"
    """It is not known whether brokers are empty: start the brokers that the message names, which do not answer."""

    # the cluster, or what leads to it
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    """Create the KafkaCluster that the message names, or correct `clusterRef`."""
    CONNECTING = "Connecting"
    """The operator is connecting to the brokers."""
    CLUSTER_DELETED = "ClusterDeleted"
    """The KafkaCluster is being deleted: nothing new starts on it. Delete the resources that its message names, unless
    they are being deleted already."""
    RESTORING_THROTTLES = "RestoringThrottles"
    """Nothing to do: the KafkaCluster goes when its throttles are restored. Orphaned moves keep theirs until they end,
    and the message names these moves."""
    PAUSED = "Paused"
    """`execution` of the KafkaCluster is `Pause`, so nothing new starts."""
    CANCELLED_BY_BRAKE = "CancelledByBrake"
    """`execution` of the KafkaCluster is `CancelOurs` or `CancelAll`."""
    CLUSTER_UNDER_MIN_ISR = "ClusterUnderMinIsr"
    """Bring the brokers of the named partitions back, move these partitions too, or set `pauseWhen`."""
    CLUSTER_UNDER_REPLICATED = "ClusterUnderReplicated"
    """Bring the brokers of the named partitions back, move these partitions too, or set `pauseWhen`."""
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    """Correct what the message names: a host name, a port where no broker listens, `tls`, or a certificate. Or start
    the brokers. The page on connecting has a table of the causes."""
    CLUSTER_ID_CHANGED = "ClusterIdChanged"
    """The brokers belong to another cluster than at first. Nothing is done until you correct that."""
    CLUSTER_NOT_SUPPORTED = "ClusterNotSupported"
    """Kafka 3.9 or later in KRaft mode is needed."""
    DUPLICATE_CLUSTER = "DuplicateCluster"
    """Use the older KafkaCluster for the same brokers. In-flight moves of this one continue with their throttles, which
    are then restored. It is served once the older one has not been `Ready` for 90 seconds."""
    CLUSTER_CLAIMED = "ClusterClaimed"
    """Another installation of the operator serves the same Kafka: delete one of the two KafkaClusters."""
    AUTHENTICATION_FAILED = "AuthenticationFailed"
    """Correct what the message names: the user, the password, the client certificate, or `sasl`. It says when a value
    of a Secret ends with a line break. With OAUTHBEARER, check that the token is what the brokers expect."""
    SECRET_NOT_FOUND = "SecretNotFound"
    """Create the Secret that the message names, or correct its name."""
    SECRET_KEY_NOT_FOUND = "SecretKeyNotFound"
    """Add the key that the message names to the Secret, or correct its name."""
    INVALID_SECRET = "InvalidSecret"
    """Correct the content of the Secret that the message names."""
    TOKEN_REFUSED = "TokenRefused"
    """Correct `sasl.oauth` or its Secret, or allow the client at the token endpoint what the message names."""
    TOKEN_ENDPOINT_UNREACHABLE = "TokenEndpointUnreachable"
    """The token endpoint does not answer, or its certificate is not trusted. The message says which."""
    INVALID_TOKEN_RESPONSE = "InvalidTokenResponse"
    """The address is not a token endpoint: correct `sasl.oauth.tokenEndpointUrl`."""

    # the API server
    API_SERVER_UNAVAILABLE = "ApiServerUnavailable"
    """The API server does not answer, or not now. It is asked again."""
    CONFLICT = "Conflict"
    """The object changed meanwhile, and is read again. Of a plan: another PartitionReassignment has the name of a wave.
    Delete that one."""

    # a bug in this program
    INTERNAL_ERROR = "InternalError"
    """A bug of the operator: report it with the log. The resource is not served. While it has in-flight moves, nothing
    else starts. `deletionPolicy: Orphan` releases the resource. On a KafkaCluster, the cluster cannot be observed or
    served."""


class ReassignError(Exception):
    """An error with a reason for machines and a sentence for people that says what to do."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class ClusterError(ReassignError):
    """The Kafka cluster cannot be used now: unreachable, refused, not the one that was pinned."""


class PlanningError(ReassignError):
    """No plan is possible: the goal cannot be reached, racks cannot be read, or the snapshot is incomplete."""


class MissingReferenceError(ReassignError):
    """Something that a resource refers to does not exist."""


class ApiServerError(ReassignError):
    """The API server did not answer, or not now: unreachable, too slow, overloaded, or failing within."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.API_SERVER_UNAVAILABLE, message)


class ConflictError(ReassignError):
    """The API server holds another version of the object than the one that was changed."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.CONFLICT, message)
