"""Every error of a broker or a client library becomes one of ours."""

import pytest
from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException
from kafka import errors as kafka_python

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, Cancel, Elect, Outcome, Result, Step
from reassign.errors import ClusterError, Reason
from reassign.kafka.errors import cluster_error, lost, outcome

TP = TopicPartition("orders", 0)
ALTER, CANCEL, ELECT = Alter(TP, (1, 2)), Cancel(TP, (1, 2)), Elect(TP)
CODES = range(-1, 140)  # those that the protocol has, and some to come


def all_errors(kind: type[kafka_python.KafkaError]) -> list[type[kafka_python.KafkaError]]:
    return [kind, *(error for child in kind.__subclasses__() for error in all_errors(child))]


LIBRDKAFKA_CODES = sorted(
    {code for name in dir(LibrdkafkaError) if isinstance(code := getattr(LibrdkafkaError, name), int)}
)


@pytest.mark.parametrize("error", all_errors(kafka_python.KafkaError), ids=lambda error: error.__name__)
def test_errors_of_kafka_python(error: type[kafka_python.KafkaError]) -> None:
    assert cluster_error(error("what happened")).message


@pytest.mark.parametrize("code", LIBRDKAFKA_CODES)
def test_errors_of_librdkafka(code: int) -> None:
    assert cluster_error(KafkaException(LibrdkafkaError(code, "what happened"))).message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (kafka_python.SaslAuthenticationFailedError("no"), Reason.AUTHENTICATION_FAILED),
        (kafka_python.UnsupportedSaslMechanismError("no"), Reason.AUTHENTICATION_FAILED),
        (KafkaException(LibrdkafkaError(LibrdkafkaError._AUTHENTICATION, "no")), Reason.AUTHENTICATION_FAILED),
        (kafka_python.ClusterAuthorizationFailedError("no"), Reason.NOT_AUTHORIZED),
        (KafkaException(LibrdkafkaError(31, "no")), Reason.NOT_AUTHORIZED),
        (kafka_python.IncompatibleBrokerVersion("no"), Reason.CLUSTER_NOT_SUPPORTED),
        (kafka_python.KafkaConnectionError("no"), Reason.CLUSTER_UNREACHABLE),
        (kafka_python.KafkaTimeoutError("no"), Reason.CLUSTER_UNREACHABLE),
        (KafkaException(LibrdkafkaError(LibrdkafkaError._TRANSPORT, "no")), Reason.CLUSTER_UNREACHABLE),
        (OSError("no"), Reason.CLUSTER_UNREACHABLE),
        (ClusterError(Reason.INVALID_SECRET, "no"), Reason.INVALID_SECRET),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else type(value).__name__,
)
def test_why_a_cluster_cannot_be_used(error: Exception, reason: Reason) -> None:
    assert cluster_error(error).reason is reason


@pytest.mark.parametrize("step", [ALTER, CANCEL, ELECT], ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("code", CODES)
def test_every_code_for_every_step_is_applied_or_says_why_not(step: Step, code: int) -> None:
    found = outcome(step, code, None)
    assert found == APPLIED or (found.reason and found.message)
    assert (found == APPLIED) == (code == 0 or (code == 84 and step is ELECT))


@pytest.mark.parametrize(
    ("step", "code", "reason"),
    [
        (ALTER, 3, Reason.UNKNOWN_TOPIC_OR_PARTITION),
        (ALTER, 31, Reason.NOT_AUTHORIZED),
        (ALTER, 38, Reason.REPLICATION_FACTOR_CHANGE),
        (ALTER, 39, Reason.INVALID_REPLICA_ASSIGNMENT),
        (ALTER, 44, Reason.REQUEST_FAILED),
        (CANCEL, 39, Reason.CANCEL_UNSAFE),
        (CANCEL, 85, Reason.NO_REASSIGNMENT_IN_PROGRESS),
        (ELECT, 80, Reason.ELECTION_FAILED),
        (ELECT, 83, Reason.ELECTION_FAILED),
    ],
)
def test_refusals_have_a_reason(step: Step, code: int, reason: Reason) -> None:
    assert outcome(step, code, "said so") == Outcome(Result.REFUSED, reason, "said so")


@pytest.mark.parametrize("code", [-1, 7, 13, 41], ids=["server error", "timed out", "network", "not controller"])
def test_what_may_have_been_carried_out_is_unknown(code: int) -> None:
    assert outcome(ALTER, code, None).result is Result.UNKNOWN


def test_a_lost_request_is_unknown() -> None:
    assert lost(kafka_python.KafkaConnectionError("gone")).result is Result.UNKNOWN


def test_a_code_without_a_message_is_named() -> None:
    assert "POLICY_VIOLATION" in outcome(ALTER, 44, None).message
