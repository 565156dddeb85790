"""The errors of this package: one small tree, each with the reason that becomes a condition's reason.

ReassignError
├── ClusterError     the Kafka cluster as a whole cannot be used now
├── PlanningError    a goal that cannot be planned: contradictory, too large, or from an unusable snapshot
├── MissingReferenceError something that a resource names (a KafkaCluster, a Secret, a key in it) is missing
└── ConflictError    an object of the API server changed since it was last read; it is read again

A problem of one partition is not an exception but an `Outcome` or a `Problem`: the others go on.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is as it is, in the words of conditions, events and per-partition status."""

    # one partition cannot be moved, or not now
    UNKNOWN_TOPIC_OR_PARTITION = "UnknownTopicOrPartition"
    TOPIC_RECREATED = "TopicRecreated"
    UNKNOWN_BROKER = "UnknownBroker"
    BROKER_FENCED = "BrokerFenced"
    BELOW_MIN_IN_SYNC_REPLICAS = "BelowMinInSyncReplicas"
    REPLICATION_FACTOR_CHANGE = "ReplicationFactorChange"
    EXPECTED_REPLICAS_MISMATCH = "ExpectedReplicasMismatch"
    IN_FLIGHT_ELSEWHERE = "InFlightElsewhere"
    PARTITION_CLAIMED = "PartitionClaimed"
    INVALID_REPLICA_ASSIGNMENT = "InvalidReplicaAssignment"
    NO_REASSIGNMENT_IN_PROGRESS = "NoReassignmentInProgress"
    CANCELLED_EXTERNALLY = "CancelledExternally"
    CANCEL_UNSAFE = "CancelUnsafe"
    SUPERSEDING = "Superseding"
    CANCELLING = "Cancelling"
    ORDER_UNKNOWN = "OrderUnknown"
    ELECTION_FAILED = "ElectionFailed"
    REQUEST_FAILED = "RequestFailed"
    NOT_AUTHORIZED = "NotAuthorized"
    UNKNOWN_LOG_DIR = "UnknownLogDir"
    LOG_DIR_OFFLINE = "LogDirOffline"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    LOG_DIR_CORDONED = "LogDirCordoned"
    INSUFFICIENT_DISK = "InsufficientDisk"
    WAITING_FOR_BUDGET = "WaitingForBudget"
    WAITING_FOR_IDLE = "WaitingForIdle"
    THROTTLE_NOT_SET = "ThrottleNotSet"
    THROTTLE_DRIFT = "ThrottleDrift"
    THROTTLE_RECORD_LOST = "ThrottleRecordLost"

    # a move in flight does not come nearer
    NO_LEADER = "NoLeader"
    THROTTLE_BELOW_PRODUCE_RATE = "ThrottleBelowProduceRate"
    MOVE_STALLED = "MoveStalled"

    # a dry run
    WOULD_MOVE = "WouldMove"

    # the resource as a whole
    CANNOT_BE_READ = "CannotBeRead"
    RESOURCE_TOO_LARGE = "ResourceTooLarge"
    THROTTLE_ABOVE_MAXIMUM = "ThrottleAboveMaximum"
    THROTTLE_BELOW_MINIMUM = "ThrottleBelowMinimum"
    SUSPENDED = "Suspended"
    DEADLINE_EXCEEDED = "DeadlineExceeded"

    # a goal that cannot be planned, or a plan that does not go on
    INVALID_RACKS = "InvalidRacks"
    INVALID_GOAL = "InvalidGoal"
    NOT_ENOUGH_BROKERS = "NotEnoughBrokers"
    NOTHING_SELECTED = "NothingSelected"
    INVALID_SNAPSHOT = "InvalidSnapshot"
    PLAN_TOO_LARGE = "PlanTooLarge"
    PLANNING_FAILED = "PlanningFailed"
    SPARK_FAILED = "SparkFailed"
    CANNOT_BE_WRITTEN = "CannotBeWritten"
    INSUFFICIENT_MEMORY = "InsufficientMemory"
    PLANNING = "Planning"
    AWAITING_APPROVAL = "AwaitingApproval"
    APPROVED_DIGEST_MISMATCH = "ApprovedDigestMismatch"
    PLAN_STALE = "PlanStale"
    WAVE_EDITED = "WaveEdited"
    WAVE_FAILED = "WaveFailed"

    # the cluster, or what leads to it
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    CONNECTING = "Connecting"
    CLUSTER_DELETED = "ClusterDeleted"
    RESTORING_THROTTLES = "RestoringThrottles"
    PAUSED = "Paused"
    CANCELLED_BY_BRAKE = "CancelledByBrake"
    CLUSTER_UNDER_MIN_ISR = "ClusterUnderMinIsr"
    CLUSTER_UNDER_REPLICATED = "ClusterUnderReplicated"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CLUSTER_ID_CHANGED = "ClusterIdChanged"
    CLUSTER_NOT_SUPPORTED = "ClusterNotSupported"
    DUPLICATE_CLUSTER = "DuplicateCluster"
    CLUSTER_CLAIMED = "ClusterClaimed"
    AUTHENTICATION_FAILED = "AuthenticationFailed"
    SECRET_NOT_FOUND = "SecretNotFound"
    SECRET_KEY_NOT_FOUND = "SecretKeyNotFound"
    INVALID_SECRET = "InvalidSecret"
    TOKEN_REFUSED = "TokenRefused"
    TOKEN_ENDPOINT_UNREACHABLE = "TokenEndpointUnreachable"
    INVALID_TOKEN_RESPONSE = "InvalidTokenResponse"

    # the API server
    API_SERVER_UNAVAILABLE = "ApiServerUnavailable"
    CONFLICT = "Conflict"

    # a bug in this program
    INTERNAL_ERROR = "InternalError"


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
