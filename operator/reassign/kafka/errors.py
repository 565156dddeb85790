"""Every error that a broker or a client library can answer with, as one of ours.

A broker's refusal of one partition becomes an `Outcome`; anything that keeps us from the cluster as a whole
becomes a `ClusterError`.
"""

from __future__ import annotations

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException
from kafka import errors as kafka_python

from reassign.core.model.steps import APPLIED, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.errors import ClusterError, Reason

# Kafka's protocol error codes
UNKNOWN_SERVER_ERROR = -1
NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
NETWORK_EXCEPTION = 13
REPLICA_NOT_AVAILABLE = 9
INVALID_TOPIC = 17
TOPIC_AUTHORIZATION_FAILED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
UNKNOWN_TOPIC_ID = 100

# The request may have been carried out all the same: only another read shows it.
AMBIGUOUS = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NETWORK_EXCEPTION, NOT_CONTROLLER})

REFUSALS: dict[int, Reason] = {
    UNKNOWN_TOPIC_OR_PARTITION: Reason.UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_TOPIC: Reason.UNKNOWN_TOPIC_OR_PARTITION,
    UNKNOWN_TOPIC_ID: Reason.UNKNOWN_TOPIC_OR_PARTITION,
    TOPIC_AUTHORIZATION_FAILED: Reason.NOT_AUTHORIZED,
    CLUSTER_AUTHORIZATION_FAILED: Reason.NOT_AUTHORIZED,
    INVALID_REPLICATION_FACTOR: Reason.REPLICATION_FACTOR_CHANGE,
    INVALID_REPLICA_ASSIGNMENT: Reason.INVALID_REPLICA_ASSIGNMENT,
    PREFERRED_LEADER_NOT_AVAILABLE: Reason.ELECTION_FAILED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE: Reason.ELECTION_FAILED,
    NO_REASSIGNMENT_IN_PROGRESS: Reason.NO_REASSIGNMENT_IN_PROGRESS,
    KAFKA_STORAGE_ERROR: Reason.LOG_DIR_OFFLINE,
    LOG_DIR_NOT_FOUND: Reason.UNKNOWN_LOG_DIR,
}

# What to say where the brokers send no message.
EXPLANATIONS: dict[int, str] = {
    UNKNOWN_SERVER_ERROR: "the controller met an error of its own",
    UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    CLUSTER_AUTHORIZATION_FAILED: "the Kafka user needs ALTER on the cluster",
    TOPIC_AUTHORIZATION_FAILED: "the Kafka user needs DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS on the topic",
    NOT_CONTROLLER: "the controller is moving to another node",
    PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not in sync or not alive",
    ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica can become the leader",
    NO_REASSIGNMENT_IN_PROGRESS: "nothing is in flight for the partition",
    KAFKA_STORAGE_ERROR: "the log directory is offline",
    LOG_DIR_NOT_FOUND: "the broker has no such log directory",
}


def outcome(step: Step, code: int, message: str | None) -> Outcome:
    """Return the outcome that a broker's code means for a step; `message` is the broker's own, where it sends one."""
    done = (isinstance(step, Elect) and code == ELECTION_NOT_NEEDED) or (
        # the broker remembers the directory for when it gets the replica
        isinstance(step, AlterLogDirs) and code == REPLICA_NOT_AVAILABLE
    )
    if code == NONE or done:
        return APPLIED
    explanation = message or EXPLANATIONS.get(code) or f"the brokers answered {name_of(code)}"
    if code in AMBIGUOUS:
        return Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, explanation)
    reason = REFUSALS.get(code, Reason.REQUEST_FAILED)
    if isinstance(step, Cancel) and code == INVALID_REPLICA_ASSIGNMENT:
        reason = Reason.CANCEL_UNSAFE  # the only way in which a cancel can be invalid
    elif isinstance(step, Elect) and reason is Reason.REQUEST_FAILED:
        reason = Reason.ELECTION_FAILED
    return Outcome(Result.REFUSED, reason, explanation)


def lost(error: Exception) -> Outcome:
    """Return the outcome of a step whose request or answer was lost on the way."""
    return Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, cluster_error(error).message)


def not_sent(error: Exception) -> Outcome:
    """Return the outcome of a step whose request was not sent."""
    return Outcome(Result.NOT_SENT, Reason.REQUEST_FAILED, cluster_error(error).message)


def cluster_error(error: Exception) -> ClusterError:
    """Return why the cluster as a whole cannot be used, from an error of either library."""
    if isinstance(error, ClusterError):
        return error
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], LibrdkafkaError):
        return _from_librdkafka(error.args[0])
    if isinstance(error, kafka_python.KafkaError):
        return _from_kafka_python(error)
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the cluster does not answer: {_said(error)}")


def name_of(code: int) -> str:
    """Return a code's name in the protocol, such as POLICY_VIOLATION (44)."""
    known = kafka_python.for_code(code)
    return f"{getattr(known, 'message', known.__name__)} ({code})"


def _from_kafka_python(error: kafka_python.KafkaError) -> ClusterError:
    authentication = (
        kafka_python.SaslAuthenticationFailedError,
        kafka_python.UnsupportedSaslMechanismError,
        kafka_python.IllegalSaslStateError,
    )
    if isinstance(error, authentication):
        return _authentication_failed(_said(error))
    if isinstance(error, kafka_python.AuthorizationError):
        return _not_authorized(_said(error))
    if isinstance(error, kafka_python.IncompatibleBrokerVersion):
        return ClusterError(Reason.CLUSTER_NOT_SUPPORTED, f"a broker is too old: {_said(error)}")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ClusterError(
            Reason.CLUSTER_UNREACHABLE,
            f"the brokers' certificate is not trusted: set the CA that signed it ({_said(error)})",
        )
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the brokers do not answer: {_said(error)}")


def _from_librdkafka(error: LibrdkafkaError) -> ClusterError:
    if error.code() in (LibrdkafkaError._AUTHENTICATION, LibrdkafkaError.SASL_AUTHENTICATION_FAILED):
        return _authentication_failed(error.str())
    if error.code() in (CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
        return _not_authorized(error.str())
    if error.code() in (LibrdkafkaError._UNSUPPORTED_FEATURE, LibrdkafkaError.UNSUPPORTED_VERSION):
        return ClusterError(Reason.CLUSTER_NOT_SUPPORTED, f"a broker is too old: {error.str()}")
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the brokers do not answer: {error.str()}")


def _authentication_failed(message: str) -> ClusterError:
    return ClusterError(Reason.AUTHENTICATION_FAILED, f"the brokers refuse the credentials: {message}")


def _not_authorized(message: str) -> ClusterError:
    needs = "DESCRIBE, ALTER, DESCRIBE_CONFIGS and ALTER_CONFIGS on the cluster"
    return ClusterError(Reason.NOT_AUTHORIZED, f"the Kafka user needs {needs}: {message}")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
