"""Access tokens for OAUTHBEARER: how they are asked for, how long they are kept, what is said without one."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import traceback
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError
from structlog.testing import capture_logs

from localplatform.certificates import issue, make_authority
from reassign.errors import ClusterError, Reason
from reassign.kafka import tokens
from reassign.kafka.connection import Connection
from reassign.kafka.tokens import OAuth
from tests.endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint

TOKENS = ("token-1", "token-2", "token-3")


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    """Each token that it gives is another one, and lives for five minutes."""
    numbers = count(1)
    with token_endpoint(
        lambda: {"access_token": f"token-{next(numbers)}", "token_type": "Bearer", "expires_in": 300}
    ) as found:
        yield found


@pytest.fixture
def oauth(endpoint: TokenEndpoint) -> OAuth:
    return OAuth(endpoint.url, CLIENT, SECRET)


class Clock:
    """Both clocks, in the test's hand."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    now = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now + 1_000_000)
    monkeypatch.setattr(tokens, "time", now)
    return clock


def renew(oauth: OAuth) -> None:
    asyncio.run(oauth.renew())


def refusal(oauth: OAuth) -> ClusterError:
    """Why there is no token; the secret and the tokens are nowhere in it, nor in what led to it."""
    with pytest.raises(ClusterError) as caught:
        renew(oauth)
    everything = "".join(traceback.format_exception(caught.value)) + repr(oauth)
    assert not any(word in everything for word in (SECRET, *TOKENS))
    return caught.value


def test_a_token_is_asked_for_by_the_client_credentials_grant(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    renew(oauth)
    assert oauth.token() == "token-1"
    assert endpoint.asked == [{"grant_type": "client_credentials"}]
    scoped = replace(oauth, scope="kafka admin")
    renew(scoped)
    assert scoped.token() == "token-2"
    assert endpoint.asked[1:] == [{"grant_type": "client_credentials", "scope": "kafka admin"}]


def test_both_client_libraries_are_given_the_same_token(oauth: OAuth, clock: Clock) -> None:
    renew(oauth)
    connection = Connection("b0:9092", sasl=oauth)
    assert connection.kafka_python()["sasl_oauth_token_provider"].token() == "token-1"
    assert connection.librdkafka()["oauth_cb"]("") == ("token-1", 1_001_300.0)


def test_a_token_is_kept_until_a_fifth_of_its_life_is_left(endpoint: TokenEndpoint, oauth: OAuth, clock: Clock) -> None:
    renew(oauth)
    clock.now += 239
    renew(oauth)
    assert oauth.token() == "token-1"
    clock.now += 1
    renew(oauth)
    assert oauth.token() == "token-2"
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    ("life", "kept"),
    [
        pytest.param(3600, 2880, id="four fifths"),
        pytest.param(100, 70, id="all but thirty seconds"),
        pytest.param(20, 10, id="no less than half"),
        pytest.param("3600", 2880, id="seconds as text"),
        pytest.param(None, 30, id="not said"),
        pytest.param(1e300, 69_120, id="for ever"),
    ],
)
def test_how_long_a_token_is_kept(
    endpoint: TokenEndpoint, oauth: OAuth, clock: Clock, life: object, kept: float
) -> None:
    said = {} if life is None else {"expires_in": life}
    endpoint.issue = lambda: {"access_token": "token", **said}
    renew(oauth)
    for seconds, asked in ((kept - 1, 1), (1, 2)):
        clock.now += seconds
        renew(oauth)
        assert len(endpoint.asked) == asked


def test_an_endpoint_that_goes_away_does_no_harm_while_the_token_is_good(
    endpoint: TokenEndpoint, oauth: OAuth, clock: Clock
) -> None:
    renew(oauth)
    endpoint.other = (503, "", {})
    clock.now += 250
    for _ in range(3):  # asked once, and not again at once
        renew(oauth)
    assert oauth.token() == "token-1"
    assert len(endpoint.asked) == 2
    clock.now += 30
    renew(oauth)
    assert len(endpoint.asked) == 3
    clock.now += 20
    assert refusal(oauth).reason is Reason.TOKEN_ENDPOINT_UNREACHABLE
    endpoint.other = None
    renew(oauth)
    assert oauth.token() == "token-2"


def test_an_expired_token_is_not_sent(oauth: OAuth, clock: Clock) -> None:
    with pytest.raises(KafkaConnectionError):
        oauth.token()
    renew(oauth)
    clock.now += 300
    with pytest.raises(KafkaConnectionError):
        oauth.token()


def test_a_token_that_the_brokers_refuse_is_replaced(oauth: OAuth) -> None:
    renew(oauth)
    oauth.forget()
    renew(oauth)
    assert oauth.token() == "token-2"


@pytest.mark.parametrize("answer", [(403, "<html>", {}), (401, '{"error": "invalid_client"}', {}), (404, "", {})])
def test_a_refusal_while_the_token_is_valid_is_logged_once(
    endpoint: TokenEndpoint, oauth: OAuth, clock: Clock, answer: tuple[int, str, dict[str, str]]
) -> None:
    renew(oauth)
    endpoint.other = answer
    with capture_logs() as logged:
        for seconds, asked in ((240, 2), (1, 2), (29, 3)):
            clock.now += seconds
            renew(oauth)
            assert (oauth.token(), len(endpoint.asked)) == ("token-1", asked)
    assert [line["event"] for line in logged] == ["no new token yet"]
    clock.now += 30
    assert refusal(oauth).reason in (Reason.TOKEN_REFUSED, Reason.INVALID_TOKEN_RESPONSE)
    endpoint.other = None
    renew(oauth)
    assert oauth.token() == "token-2"


def test_a_refused_secret_is_reported_and_a_new_one_is_used(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    endpoint.secret = "a new one"
    error = refusal(oauth)
    assert error.reason is Reason.TOKEN_REFUSED
    assert "invalid_client" in error.message
    assert "clientSecretRef" in error.message
    rotated = replace(oauth, client_secret="a new one")
    assert rotated != oauth
    renew(rotated)
    assert rotated.token() == "token-1"


@pytest.mark.parametrize(
    ("status", "body", "reason", "said"),
    [
        (400, {"error": "invalid_scope"}, Reason.TOKEN_REFUSED, "sasl.oauth.scope"),
        (400, {"error": "unauthorized_client"}, Reason.TOKEN_REFUSED, "client credentials grant"),
        (400, {"error": "invalid_target"}, Reason.TOKEN_REFUSED, "invalid_target"),
        (403, "<html>", Reason.TOKEN_REFUSED, "403"),
        (429, {"error": "slow_down"}, Reason.TOKEN_ENDPOINT_UNREACHABLE, "slow_down"),
        (500, "<html>", Reason.TOKEN_ENDPOINT_UNREACHABLE, "500"),
        (404, "<html>", Reason.INVALID_TOKEN_RESPONSE, "404"),
        (400, {"error": f"no: {SECRET}"}, Reason.INVALID_TOKEN_RESPONSE, "400"),
        (200, "<html>", Reason.INVALID_TOKEN_RESPONSE, "tokenEndpointUrl"),
        (200, "[" * 100_000, Reason.INVALID_TOKEN_RESPONSE, "access_token"),
        (200, ["token-1"], Reason.INVALID_TOKEN_RESPONSE, "access_token"),
        (200, {"access_token": ""}, Reason.INVALID_TOKEN_RESPONSE, "access_token"),
        (200, {"access_token": "token-1\x01auth=other"}, Reason.INVALID_TOKEN_RESPONSE, "access_token"),
        (200, {"access_token": "token-1", "token_type": "mac"}, Reason.INVALID_TOKEN_RESPONSE, "bearer"),
        (200, {"access_token": "token-1", "expires_in": "soon"}, Reason.INVALID_TOKEN_RESPONSE, "expires_in"),
        (200, {"access_token": "token-1", "expires_in": float("nan")}, Reason.INVALID_TOKEN_RESPONSE, "expires_in"),
        (200, {"access_token": "token-1", "expires_in": -1}, Reason.INVALID_TOKEN_RESPONSE, "expires_in"),
        (200, {"access_token": "t" * 1_000_000}, Reason.INVALID_TOKEN_RESPONSE, "access_token"),
    ],
)
def test_answers_without_a_token(
    endpoint: TokenEndpoint, oauth: OAuth, status: int, body: object, reason: Reason, said: str
) -> None:
    endpoint.other = (status, body if isinstance(body, str) else json.dumps(body), {})
    error = refusal(oauth)
    assert error.reason is reason
    assert said in error.message
    assert endpoint.url in error.message


def test_a_redirect_is_not_followed(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    endpoint.other = (307, "", {"Location": endpoint.url})
    assert refusal(oauth).reason is Reason.INVALID_TOKEN_RESPONSE
    assert len(endpoint.asked) == 1


def test_an_address_without_an_endpoint_is_unreachable(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unreachable = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    for url in (unreachable, "https://no-such-host.invalid/", "https://127.0.0.1:99999/"):
        assert refusal(replace(oauth, token_endpoint_url=url)).reason is Reason.TOKEN_ENDPOINT_UNREACHABLE


def test_a_server_that_does_not_answer_in_time_is_unreachable(oauth: OAuth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "ASK_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = refusal(replace(oauth, token_endpoint_url=f"http://127.0.0.1:{silent.getsockname()[1]}/"))
    assert error.reason is Reason.TOKEN_ENDPOINT_UNREACHABLE
    assert "within 0.1 seconds" in error.message


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificates")
    make_authority(directory)
    issue(directory, "endpoint", addresses=["127.0.0.1"])
    return directory


@pytest.fixture
def secure(certificates: Path) -> Iterator[TokenEndpoint]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "endpoint.pem")
    with token_endpoint(lambda: {"access_token": "token-1", "expires_in": 300}, context) as found:
        yield found


def test_a_token_over_tls(secure: TokenEndpoint, certificates: Path) -> None:
    oauth = OAuth(secure.url, CLIENT, SECRET, ca_pem=(certificates / "ca.crt").read_text())
    renew(oauth)
    assert oauth.token() == "token-1"


def test_an_untrusted_endpoint_is_sent_no_secret(secure: TokenEndpoint, tmp_path: Path) -> None:
    other = make_authority(tmp_path).read_text()
    for wrong in (other, None):  # the second: those that the system trusts
        error = refusal(OAuth(secure.url, CLIENT, SECRET, ca_pem=wrong))
        assert error.reason is Reason.TOKEN_ENDPOINT_UNREACHABLE
        assert "caSecretRef" in error.message
    assert secure.asked == []


def test_an_endpoint_with_anothers_certificate_is_sent_no_secret(
    secure: TokenEndpoint, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_: object, **__: object) -> list[object]:
        port = int(secure.url.split(":")[2].split("/")[0])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    elsewhere = secure.url.replace("127.0.0.1", "id.example.org")
    error = refusal(OAuth(elsewhere, CLIENT, SECRET, ca_pem=(certificates / "ca.crt").read_text()))
    assert error.reason is Reason.TOKEN_ENDPOINT_UNREACHABLE
    assert "certificate" in error.message
    assert secure.asked == []


@pytest.mark.parametrize("pem", ["rubbish", ""])
def test_an_authority_that_is_no_certificate(secure: TokenEndpoint, pem: str) -> None:
    error = refusal(OAuth(secure.url, CLIENT, SECRET, ca_pem=pem))
    assert error.reason is Reason.INVALID_SECRET
    assert "token endpoint" in error.message
    assert "rubbish" not in error.message


def test_tls_where_there_is_none(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    error = refusal(replace(oauth, token_endpoint_url=endpoint.url.replace("http:", "https:")))
    assert error.reason is Reason.TOKEN_ENDPOINT_UNREACHABLE


def test_a_refused_client_is_told_of_a_line_break_in_its_secret(endpoint: TokenEndpoint, oauth: OAuth) -> None:
    noted = replace(oauth, note="key secret of the Secret kafka/id ends with a line break")
    for error, said in (("invalid_client", noted.note), ("invalid_scope", "see that sasl.oauth.scope is one")):
        endpoint.other = (401, json.dumps({"error": error}), {})
        refused = refusal(noted)
        assert (refused.reason, said in refused.message) == (Reason.TOKEN_REFUSED, True), refused.message
