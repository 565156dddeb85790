"""Every error that a broker or a client library can answer with, as one of ours.

A broker's refusal of one partition becomes an `Outcome`; anything that keeps us from the cluster as a whole
becomes a `ClusterError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException
from kafka import errors as kafka_python

from reassign.core.model.steps import APPLIED, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.core.model.waits import NEEDS_USER
from reassign.errors import ClusterError, Reason

CODES: dict[str, int] = {e.message: e.errno for e in kafka_python.kafka_errors.values() if e.errno is not None}
"""Kafka's protocol error codes, by the names that the client has for them."""

NONE = CODES["NO_ERROR"]
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID = CODES["UNKNOWN_TOPIC_OR_PARTITION"], CODES["UNKNOWN_TOPIC_ID"]
INVALID_TOPIC = CODES["INVALID_TOPIC"]
TOPIC_AUTHORIZATION_FAILED = CODES["TOPIC_AUTHORIZATION_FAILED"]
CLUSTER_AUTHORIZATION_FAILED = CODES["CLUSTER_AUTHORIZATION_FAILED"]
INVALID_REQUEST = CODES["INVALID_REQUEST"]
BROKER_ID_NOT_REGISTERED = CODES["BROKER_ID_NOT_REGISTERED"]
ILLEGAL_SASL_STATE = CODES["ILLEGAL_SASL_STATE"]

GONE = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC, UNKNOWN_TOPIC_ID})
"""A topic that was asked for is not there."""


_VERIFY = re.compile(r"certificate verify failed: (.+?)\.? \(_ssl")
"""What Python's ssl says of a certificate, in the error's text."""
_OF_CLIENTS = re.compile(r".*(SASL authentication error|SaslAuthenticationFailedError): | \(after \d+ms in state .*\)$")
"""What the client libraries write around the brokers' words. The time would make of each attempt another message."""


class Meaning(NamedTuple):
    """What a code says. Its reason tells whether that passes, or needs a user (`core.model.waits`)."""

    reason: Reason = Reason.REQUEST_FAILED
    words: str = ""
    """What to say where the brokers send no message; else the code's name."""
    ours: bool = False
    """Whether to say that in place of the brokers' message, too."""
    ambiguous: bool = False
    """Whether the request may have been carried out all the same: only another read shows it."""


def _each(names: str, meaning: Meaning) -> dict[int, Meaning]:
    return dict.fromkeys((CODES[name] for name in names.split()), meaning)


MEANINGS: Mapping[int, Meaning] = {
    # the request may have been carried out
    CODES["UNKNOWN"]: Meaning(words="the controller met an error of its own", ambiguous=True),
    CODES["NOT_CONTROLLER"]: Meaning(words="the controller is moving to another node", ambiguous=True),
    **_each("REQUEST_TIMED_OUT NETWORK_EXCEPTION", Meaning(ambiguous=True)),
    # it was not, and a user has to act
    **_each(
        "UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID INVALID_TOPIC",
        Meaning(Reason.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic or partition"),
    ),
    CLUSTER_AUTHORIZATION_FAILED: Meaning(
        Reason.NOT_AUTHORIZED, "the Kafka user needs ALTER on the cluster", ours=True
    ),
    TOPIC_AUTHORIZATION_FAILED: Meaning(
        Reason.NOT_AUTHORIZED,
        "the Kafka user needs DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS on the topic",
        ours=True,
    ),
    **_each(
        "GROUP_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        Meaning(Reason.NOT_AUTHORIZED),
    ),
    **_each(
        "SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE",
        Meaning(Reason.AUTHENTICATION_FAILED),
    ),
    CODES["UNSUPPORTED_VERSION"]: Meaning(Reason.CLUSTER_NOT_SUPPORTED, "a broker is too old for this request"),
    CODES["INVALID_REPLICATION_FACTOR"]: Meaning(Reason.REPLICATION_FACTOR_CHANGE),
    CODES["INVALID_REPLICATION_ASSIGNMENT"]: Meaning(Reason.INVALID_REPLICA_ASSIGNMENT),
    CODES["BROKER_ID_NOT_REGISTERED"]: Meaning(Reason.UNKNOWN_BROKER, "the broker is not registered"),
    CODES["KAFKA_STORAGE_ERROR"]: Meaning(Reason.LOG_DIR_OFFLINE, "the log directory is offline"),
    CODES["LOG_DIR_NOT_FOUND"]: Meaning(Reason.UNKNOWN_LOG_DIR, "the broker has no such log directory"),
    **_each(
        "INVALID_CONFIG POLICY_VIOLATION INVALID_PARTITIONS SECURITY_DISABLED PRINCIPAL_DESERIALIZATION_FAILURE "
        "INCONSISTENT_CLUSTER_ID MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE INVALID_GROUP_ID "
        "INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT GROUP_MAX_SIZE_REACHED",
        Meaning(Reason.REQUEST_REFUSED),
    ),
    # it was not, and it goes on without
    CODES["PREFERRED_LEADER_NOT_AVAILABLE"]: Meaning(
        Reason.ELECTION_FAILED, "the preferred leader is not in sync or not alive"
    ),
    CODES["ELIGIBLE_LEADERS_NOT_AVAILABLE"]: Meaning(Reason.ELECTION_FAILED, "no replica can become the leader"),
    # it was not, and that passes; a broker refuses as INVALID_REQUEST what is for another one at its address
    CODES["NO_REASSIGNMENT_IN_PROGRESS"]: Meaning(
        Reason.NO_REASSIGNMENT_IN_PROGRESS, "nothing is in flight for the partition"
    ),
    **_each(
        "LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE INVALID_REQUEST "
        "STALE_CONTROLLER_EPOCH STALE_BROKER_EPOCH UNKNOWN_CONTROLLER_ID LISTENER_NOT_FOUND FENCED_LEADER_EPOCH "
        "UNKNOWN_LEADER_EPOCH NEW_LEADER_ELECTED INCONSISTENT_TOPIC_ID INELIGIBLE_REPLICA OPERATION_NOT_ATTEMPTED "
        "REASSIGNMENT_IN_PROGRESS ELECTION_NOT_NEEDED THROTTLING_QUOTA_EXCEEDED COORDINATOR_LOAD_IN_PROGRESS "
        "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR REBALANCE_IN_PROGRESS ILLEGAL_GENERATION UNKNOWN_MEMBER_ID "
        "MEMBER_ID_REQUIRED FENCED_INSTANCE_ID UNRELEASED_INSTANCE_ID GROUP_ID_NOT_FOUND NON_EMPTY_GROUP",
        Meaning(),
    ),
    # of requests that are never sent
    **_each(
        "OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE INVALID_FETCH_SIZE MESSAGE_SIZE_TOO_LARGE OFFSET_METADATA_TOO_LARGE "
        "RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS "
        "INVALID_COMMIT_OFFSET_SIZE INVALID_TIMESTAMP TOPIC_ALREADY_EXISTS UNSUPPORTED_FOR_MESSAGE_FORMAT "
        "OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE "
        "INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS "
        "TRANSACTION_COORDINATOR_FENCED UNKNOWN_PRODUCER_ID DELEGATION_TOKEN_AUTH_DISABLED "
        "DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_REQUEST_NOT_ALLOWED "
        "DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH "
        "TOPIC_DELETION_DISABLED UNSUPPORTED_COMPRESSION_TYPE OFFSET_NOT_AVAILABLE GROUP_SUBSCRIBED_TO_TOPIC "
        "INVALID_RECORD UNSTABLE_OFFSET_COMMIT PRODUCER_FENCED RESOURCE_NOT_FOUND DUPLICATE_RESOURCE "
        "UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED "
        "SNAPSHOT_NOT_FOUND POSITION_OUT_OF_RANGE DUPLICATE_BROKER_REGISTRATION TRANSACTIONAL_ID_NOT_FOUND "
        "FETCH_SESSION_TOPIC_ID_ERROR OFFSET_MOVED_TO_TIERED_STORAGE FENCED_MEMBER_EPOCH UNSUPPORTED_ASSIGNOR "
        "STALE_MEMBER_EPOCH UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE INVALID_REGISTRATION "
        "TRANSACTION_ABORTABLE INVALID_RECORD_STATE SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH "
        "FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND",
        Meaning(),
    ),
}
"""What each code of the client says, of whatever request. A code that it does not know passes."""

OF_STEPS: Mapping[tuple[type[Step], int], Meaning] = {
    # the only way in which a cancel can be invalid
    (Cancel, CODES["INVALID_REPLICATION_ASSIGNMENT"]): Meaning(Reason.CANCEL_UNSAFE),
    (AlterLogDirs, INVALID_TOPIC): Meaning(
        Reason.TOPIC_NAME_TOO_LONG, "the topic's name is too long for a log directory that is named", ours=True
    ),
}
"""What a code says of one kind of step, where that differs."""

DONE = frozenset(
    {
        (Elect, CODES["ELECTION_NOT_NEEDED"]),
        (AlterLogDirs, CODES["REPLICA_NOT_AVAILABLE"]),  # the broker remembers the directory for when it gets one
    }
)
"""Errors of steps after which nothing is left to do."""


def meaning_of(code: int, step: Step | None = None) -> Meaning:
    """Return what a code says, in answer to a step or to another request."""
    found = OF_STEPS.get((type(step), code)) if step else None
    return found or MEANINGS.get(code, Meaning())


def needs_user(error: Exception) -> bool:
    """Whether asking again is of no use before a user acts."""
    code = _code(error)
    return code is not None and meaning_of(code).reason in NEEDS_USER


def outcome(step: Step, code: int, message: str | None) -> Outcome:
    """Return the outcome that a broker's code means for a step; `message` is the broker's own, where it sends one."""
    if code == NONE or (type(step), code) in DONE:
        return APPLIED
    found = refusal(code, message, step)
    unexplained = found.result is Result.REFUSED and found.reason in (Reason.REQUEST_FAILED, Reason.REQUEST_REFUSED)
    return replace(found, reason=Reason.ELECTION_FAILED) if isinstance(step, Elect) and unexplained else found


def refusal(code: int, message: str | None, step: Step | None = None) -> Outcome:
    """Return the outcome of a code that is an error, with the brokers' words or ours."""
    meaning = meaning_of(code, step)
    words = meaning.words if meaning.ours else message or meaning.words
    result = Result.UNKNOWN if meaning.ambiguous else Result.REFUSED
    return Outcome(result, meaning.reason, words or f"the brokers answered {name_of(code)}")


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


def certificate_problem(said: str, ca: str) -> str:
    """Return what TLS has against a server's certificate, and what to do; `ca` is the setting that names the CA."""
    found = _VERIFY.search(said)
    why = found[1] if found else said
    if "mismatch" in why:
        return f"its certificate is for other names ({why}): connect by a name or an address that it has"
    if "expired" in why or "not yet valid" in why:
        return f"its certificate is not valid now ({why}): renew it, or correct the clock"
    return f"its certificate is not trusted ({why}): set {ca} to the CA that signed it"


def name_of(code: int) -> str:
    """Return a code's name in the protocol, such as POLICY_VIOLATION (44)."""
    known = kafka_python.for_code(code)
    return f"{getattr(known, 'message', known.__name__)} ({code})"


def _from_kafka_python(error: kafka_python.KafkaError) -> ClusterError:
    if (code := _code(error)) is not None:
        return _answered(code, _said(error))
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ClusterError(
            Reason.CLUSTER_UNREACHABLE, f"a broker: {certificate_problem(str(error), 'tls.caSecretRef')}"
        )
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the brokers do not answer: {_said(error)}")


def _from_librdkafka(error: LibrdkafkaError) -> ClusterError:
    if error.code() == LibrdkafkaError._AUTHENTICATION:
        return _authentication_failed(error.str())
    if error.code() == LibrdkafkaError._UNSUPPORTED_FEATURE:
        return ClusterError(Reason.CLUSTER_NOT_SUPPORTED, f"a broker is too old: {error.str()}")
    if error.code() > 0:
        return _answered(error.code(), error.str())
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the brokers do not answer: {error.str()}")


def _answered(code: int, message: str) -> ClusterError:
    """Return why the cluster cannot be used, where a broker has answered a request with this code."""
    match meaning_of(code).reason:
        case Reason.AUTHENTICATION_FAILED:
            return _authentication_failed(message)
        case Reason.NOT_AUTHORIZED:
            return _not_authorized(message)
        case Reason.CLUSTER_NOT_SUPPORTED:
            return ClusterError(Reason.CLUSTER_NOT_SUPPORTED, f"a broker is too old: {message}")
    return ClusterError(Reason.CLUSTER_UNREACHABLE, f"the brokers answered {name_of(code)}: {message}")


def _code(error: Exception) -> int | None:
    """Return the code that a broker answered with; None for an error of the client alone."""
    code: int | None = getattr(error, "errno", None) if isinstance(error, kafka_python.BrokerResponseError) else None
    return code


def _authentication_failed(message: str) -> ClusterError:
    return ClusterError(
        Reason.AUTHENTICATION_FAILED, f"the brokers refuse the credentials: {_OF_CLIENTS.sub('', message)}"
    )


def _not_authorized(message: str) -> ClusterError:
    needs = "DESCRIBE, ALTER, DESCRIBE_CONFIGS and ALTER_CONFIGS on the cluster"
    return ClusterError(Reason.NOT_AUTHORIZED, f"the Kafka user needs {needs}: {message}")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
