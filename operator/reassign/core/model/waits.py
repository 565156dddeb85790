"""Waits: who ends what a reason says, time, a user, or the user who wished for it. Every Reason is in one of the sets.

The conditions follow from it. What passes is Reconciling, and also Stalled once it has lasted stallTimeoutSeconds. What
needs a user is Stalled at once. What is wished for is neither.
"""

from __future__ import annotations

from reassign.errors import Reason

GOES_ON = frozenset(
    {
        Reason.CANCELLING,
        Reason.SUPERSEDING,
        Reason.PLANNING,
        Reason.RESTORING_THROTTLES,
        Reason.WOULD_MOVE,
        Reason.ORDER_UNKNOWN,  # the move goes on, with less known of where it came from
        Reason.ELECTION_FAILED,  # the move is completed, without its preferred leader
        Reason.THROTTLE_DRIFT,  # it is set anew at the next reconciliation
    }
)
"""No wait: something is being done."""

PASSES = frozenset(
    {
        Reason.IN_FLIGHT_ELSEWHERE,
        Reason.PARTITION_CLAIMED,
        Reason.BROKER_FENCED,  # a restart, most of the time
        Reason.NO_LEADER,  # likewise, of all its in-sync replicas
        Reason.CANCEL_UNSAFE,  # until enough of the originals are in sync
        Reason.NO_REASSIGNMENT_IN_PROGRESS,
        Reason.REQUEST_FAILED,  # asked again
        Reason.THROTTLE_NOT_SET,  # set before the next reconciliation, or once another one's moves are done
        Reason.WAITING_FOR_BUDGET,
        Reason.WAITING_FOR_IDLE,
        Reason.CLUSTER_UNDER_MIN_ISR,
        Reason.CLUSTER_UNDER_REPLICATED,
        Reason.CONNECTING,
        Reason.CLUSTER_CLAIMED,  # until the other installation has ended
        Reason.CLUSTER_UNREACHABLE,
        Reason.TOKEN_ENDPOINT_UNREACHABLE,
        Reason.API_SERVER_UNAVAILABLE,
        Reason.CONFLICT,
        Reason.PLANNING_FAILED,  # the process ended, and is started again
        Reason.INVALID_SNAPSHOT,  # observed again
        Reason.DRAIN_INCOMPLETE,  # planned again
        Reason.NOT_OBSERVED,
    }
)
"""Waits that end by themselves."""

WISHED = frozenset(
    {
        Reason.SUSPENDED,
        Reason.OUTSIDE_WINDOW,
        Reason.PAUSED,
        Reason.CANCELLED_BY_BRAKE,
        Reason.AWAITING_APPROVAL,
        Reason.RETIRED,  # it waits for nothing
    }
)
"""Waits that a user asked for: they never time out."""

BRAKE = frozenset({Reason.PAUSED, Reason.CANCELLED_BY_BRAKE})
"""Waits that spec.execution of the KafkaCluster asks for; a condition says Suspended."""

NEEDS_USER = frozenset(
    {
        Reason.UNKNOWN_TOPIC_OR_PARTITION,
        Reason.TOPIC_RECREATED,
        Reason.UNKNOWN_BROKER,
        Reason.BELOW_MIN_IN_SYNC_REPLICAS,
        Reason.REPLICATION_FACTOR_CHANGE,
        Reason.EXPECTED_REPLICAS_MISMATCH,
        Reason.INVALID_REPLICA_ASSIGNMENT,
        Reason.CANCELLED_EXTERNALLY,
        Reason.REQUEST_REFUSED,
        Reason.NOT_AUTHORIZED,
        Reason.NAMESPACE_NOT_ALLOWED,
        Reason.UNKNOWN_LOG_DIR,
        Reason.TOPIC_NAME_TOO_LONG,
        Reason.LOG_DIR_OFFLINE,  # a broker takes a directory back only when it is restarted
        Reason.LOG_DIR_CORDONED,
        Reason.INSUFFICIENT_DISK,  # what retention frees is no plan
        Reason.THROTTLE_RECORD_LOST,
        Reason.THROTTLE_BELOW_PRODUCE_RATE,  # has lasted stallTimeoutSeconds
        Reason.MOVE_STALLED,  # likewise
        Reason.CANNOT_BE_READ,
        Reason.RESOURCE_TOO_LARGE,
        Reason.THROTTLE_ABOVE_MAXIMUM,
        Reason.THROTTLE_BELOW_MINIMUM,
        Reason.INVALID_SCHEDULE,
        Reason.DEADLINE_EXCEEDED,
        Reason.INVALID_RACKS,
        Reason.INVALID_GOAL,
        Reason.NOT_ENOUGH_BROKERS,
        Reason.NOTHING_SELECTED,
        Reason.PLAN_TOO_LARGE,
        Reason.SPARK_FAILED,
        Reason.CANNOT_BE_WRITTEN,
        Reason.INVALID_ARGUMENT,
        Reason.INSUFFICIENT_MEMORY,
        Reason.APPROVED_DIGEST_MISMATCH,
        Reason.PLAN_STALE,
        Reason.WAVE_EDITED,
        Reason.WAVE_FAILED,
        Reason.PLAN_FAILED,
        Reason.DUPLICATE_POLICY,
        Reason.TOO_MANY_BROKERS_LOST,
        Reason.RACK_LOST,
        Reason.CLUSTER_NOT_FOUND,
        Reason.CLUSTER_DELETED,
        Reason.CLUSTER_ID_CHANGED,
        Reason.CLUSTER_NOT_SUPPORTED,
        Reason.DUPLICATE_CLUSTER,
        Reason.AUTHENTICATION_FAILED,
        Reason.SECRET_NOT_FOUND,
        Reason.SECRET_KEY_NOT_FOUND,
        Reason.INVALID_SECRET,
        Reason.TOKEN_REFUSED,
        Reason.INVALID_TOKEN_RESPONSE,
        Reason.INTERNAL_ERROR,
    }
)
"""Nothing goes on until a user acts."""

QUEUES = frozenset(
    {
        Reason.CONNECTING,
        Reason.WAITING_FOR_BUDGET,
        Reason.WAITING_FOR_IDLE,
        Reason.CLUSTER_UNDER_MIN_ISR,
        Reason.CLUSTER_UNDER_REPLICATED,
        Reason.REQUEST_FAILED,
        Reason.THROTTLE_NOT_SET,
    }
)
"""What passes in the ordinary course of things: no event before it is Stalled."""
