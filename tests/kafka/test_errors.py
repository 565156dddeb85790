"""Every error of a broker or a client library becomes one of ours."""

import pytest
from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import KafkaException
from kafka import errors as kafka_python

from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.core.model.waits import NEEDS_USER, PASSES
from reassign.errors import ClusterError, Reason
from reassign.kafka.errors import CODES, MEANINGS, NONE, OF_STEPS, cluster_error, lost, meaning_of, needs_user, outcome

TP = TopicPartition("orders", 0)
ALTER, CANCEL, ELECT = Alter(TP, (1, 2)), Cancel(TP, (1, 2)), Elect(TP)
DIRECT = AlterLogDirs(TP, ((1, "/a"),))
NUMBERS = range(-1, 140)  # those that the protocol has, and some to come


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


def test_every_code_of_the_client_has_one_meaning() -> None:
    errors = [error for error in vars(kafka_python).values() if isinstance(error, type)]
    codes = {error.errno for error in errors if issubclass(error, kafka_python.BrokerResponseError)}
    assert codes - {None} == MEANINGS.keys() | {NONE}


@pytest.mark.parametrize("name", [name for name in CODES if name != "NO_ERROR"])
def test_only_a_code_that_passes_leaves_in_doubt_what_was_done(name: str) -> None:
    meaning, error = MEANINGS[CODES[name]], kafka_python.for_code(CODES[name])("what happened")
    assert meaning.reason in NEEDS_USER | PASSES | {Reason.ELECTION_FAILED}
    assert not meaning.ambiguous or meaning.reason in PASSES
    assert needs_user(error) is (meaning.reason in NEEDS_USER)
    assert meaning.words or not meaning.ours


def test_what_differs_for_a_step_has_a_meaning_for_others() -> None:
    assert all(code in MEANINGS and meaning != meaning_of(code) for (_, code), meaning in OF_STEPS.items())


def test_a_code_that_the_client_does_not_know_passes() -> None:
    found = outcome(ALTER, 999, None)
    assert (found.reason, found.message) == (Reason.REQUEST_FAILED, "the brokers answered UNKNOWN (999)")


@pytest.mark.parametrize("step", [ALTER, CANCEL, ELECT, DIRECT], ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("code", NUMBERS)
def test_every_code_for_every_step_is_applied_or_says_why_not(step: Step, code: int) -> None:
    found = outcome(step, code, None)
    assert found == APPLIED or (found.reason and found.message)
    assert (found == APPLIED) == (code == 0 or (step, code) in ((ELECT, 84), (DIRECT, 9)))


@pytest.mark.parametrize(
    ("step", "code", "reason"),
    [
        (ALTER, 3, Reason.UNKNOWN_TOPIC_OR_PARTITION),
        (ALTER, 38, Reason.REPLICATION_FACTOR_CHANGE),
        (ALTER, 39, Reason.INVALID_REPLICA_ASSIGNMENT),
        (ALTER, 17, Reason.UNKNOWN_TOPIC_OR_PARTITION),
        (ALTER, 42, Reason.REQUEST_FAILED),
        (ALTER, 44, Reason.REQUEST_REFUSED),
        (ALTER, 102, Reason.UNKNOWN_BROKER),
        (CANCEL, 39, Reason.CANCEL_UNSAFE),
        (CANCEL, 85, Reason.NO_REASSIGNMENT_IN_PROGRESS),
        (ELECT, 80, Reason.ELECTION_FAILED),
        (ELECT, 83, Reason.ELECTION_FAILED),
        (ELECT, 44, Reason.ELECTION_FAILED),
        (DIRECT, 56, Reason.LOG_DIR_OFFLINE),
        (DIRECT, 57, Reason.UNKNOWN_LOG_DIR),
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


@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        (ALTER, 31, "the Kafka user needs ALTER on the cluster"),
        (DIRECT, 17, "the topic's name is too long for a log directory that is named"),
    ],
)
def test_our_words_replace_those_of_the_brokers_where_they_say_what_to_do(step: Step, code: int, words: str) -> None:
    assert outcome(step, code, "said so").message == words


def test_a_broker_that_answers_with_an_error_is_not_called_silent() -> None:
    for error in (kafka_python.PolicyViolationError("no"), KafkaException(LibrdkafkaError(44, "no"))):
        assert "the brokers answered POLICY_VIOLATION (44)" in cluster_error(error).message
