"""SASL/OAUTHBEARER: brokers that take tokens which a key signed, and an endpoint over TLS that gives such tokens."""

import asyncio
import logging
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import pytest

from localplatform.brokers import USER, Brokers
from localplatform.signing import AUDIENCE, ISSUER, signed
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter
from reassign.errors import ClusterError, Reason
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection, Tls
from reassign.kafka.tokens import OAuth
from tests.endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint
from tests.kafka.harness import Kafka, eventually

pytestmark = pytest.mark.any_version

SHORT = 6
"""Seconds that a token lives; it is replaced after half of them."""


def given(brokers: Brokers, seconds: int = 300, **claims: Any) -> dict[str, Any]:
    """What the endpoint answers."""
    now = time.time()
    usual = {"sub": USER, "iss": ISSUER, "aud": AUDIENCE, "iat": int(now), "exp": ceil(now) + seconds}
    return {"access_token": signed(brokers.certificates, usual | claims), "expires_in": seconds}


@pytest.fixture
def endpoint(brokers: Brokers) -> Iterator[TokenEndpoint]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(brokers.certificates / "broker.pem")
    with token_endpoint(lambda: given(brokers), context) as found:
        yield found


@pytest.fixture
def connection(brokers: Brokers, endpoint: TokenEndpoint) -> Connection:
    authority = (brokers.certificates / "ca.crt").read_text()
    oauth = Watched(endpoint.url, CLIENT, SECRET, ca_pem=authority)
    return Connection(brokers.other_sasl_bootstrap_servers, Tls(authority), oauth)


@dataclass(slots=True)
class Watched(OAuth):
    """Takes down the tokens that were sent to brokers."""

    sent: set[str] = field(default_factory=set, init=False, repr=False)

    def token(self) -> str:
        self.sent.add(OAuth.token(self))
        return OAuth.token(self)


def watched(connection: Connection) -> Watched:
    assert isinstance(connection.sasl, Watched)
    return connection.sasl


def refusal(connection: Connection) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        asyncio.run(KafkaClient.connect(connection, timeout=5))
    return caught.value


def test_observing_and_moving(kafka: Kafka, connection: Connection, endpoint: TokenEndpoint) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    secure = Kafka(kafka.brokers, connection)
    eventually(lambda: secure.observe(tp.topic).topics == kafka.observe(tp.topic).topics)
    assert secure.perform(Alter(tp, (2, 3))) == [APPLIED]
    eventually(lambda: secure.settled(tp, [2, 3]))
    secure.close()
    assert endpoint.asked == [{"grant_type": "client_credentials"}]


def test_a_move_is_followed_with_one_short_lived_token_after_another(
    kafka: Kafka, connection: Connection, endpoint: TokenEndpoint
) -> None:
    endpoint.issue = lambda: given(kafka.brokers, SHORT)
    tp = TopicPartition(kafka.topic([0, 1], megabytes=10), 0)
    secure = Kafka(kafka.brokers, connection)
    with kafka.held(tp.topic):
        assert secure.perform(Alter(tp, (2, 3))) == [APPLIED]
        eventually(lambda: secure.in_flight(tp) and len(watched(connection).sent) >= 3)
    eventually(lambda: secure.settled(tp, [2, 3]))
    secure.close()


def test_without_the_endpoint_the_token_serves_until_it_expires(
    kafka: Kafka, connection: Connection, endpoint: TokenEndpoint
) -> None:
    endpoint.issue = lambda: given(kafka.brokers, SHORT)
    secure = Kafka(kafka.brokers, connection)

    def reason() -> Reason | None:
        try:
            secure.observe()
        except ClusterError as error:
            return error.reason
        return None

    endpoint.other = (503, "", {})
    eventually(lambda: reason() is None and len(endpoint.asked) == 2)
    eventually(lambda: reason() is Reason.TOKEN_ENDPOINT_UNREACHABLE)
    endpoint.other = None
    eventually(lambda: reason() is None)
    secure.close()


def test_a_wrong_client_secret(connection: Connection) -> None:
    wrong = replace(connection, sasl=replace(watched(connection), client_secret="not the secret"))
    error = refusal(wrong)
    assert error.reason is Reason.TOKEN_REFUSED
    assert "not the secret" not in error.message
    assert watched(wrong).sent == set()


def test_an_authority_that_did_not_sign_the_endpoints_certificate(connection: Connection) -> None:
    error = refusal(replace(connection, sasl=replace(watched(connection), ca_pem=None)))
    assert error.reason is Reason.TOKEN_ENDPOINT_UNREACHABLE
    assert "sasl.oauth.caSecretRef" in error.message


@pytest.mark.parametrize("claims", [{"aud": "others"}, {"iss": "https://others"}, {"exp": 1}], ids=str)
def test_a_token_that_the_brokers_refuse(
    brokers: Brokers, connection: Connection, endpoint: TokenEndpoint, claims: dict[str, Any]
) -> None:
    endpoint.issue = lambda: given(brokers, **claims)
    error = refusal(connection)
    assert error.reason is Reason.AUTHENTICATION_FAILED
    assert "audience" in error.message
    [sent] = watched(connection).sent
    assert sent not in error.message
    # mended there, the next connection comes with another token
    endpoint.issue = lambda: given(brokers)
    Kafka(brokers, connection).close()


def test_secrets_and_tokens_are_in_no_repr_and_no_log(
    brokers: Brokers,
    connection: Connection,
    endpoint: TokenEndpoint,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    Kafka(brokers, connection).close()
    endpoint.issue = lambda: given(brokers, aud="others")
    watched(connection).forget()
    refusal(connection)

    captured = capfd.readouterr()
    everything = caplog.text + captured.out + captured.err + repr(connection)
    tokens = watched(connection).sent
    assert len(tokens) == 2
    assert not any(secret in everything for secret in (SECRET, *tokens))
