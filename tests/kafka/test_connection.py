"""The ways in: TLS, client certificates, SCRAM; and what is said when there is no way in."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import pytest

from localplatform.brokers import USER, Brokers
from localplatform.certificates import issue, make_authority
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter
from reassign.errors import ClusterError, Reason
from reassign.inspect.connect import note_of
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection, Sasl, Tls
from tests.kafka.harness import Kafka, eventually

pytestmark = pytest.mark.any_version


@pytest.fixture
def tls(brokers: Brokers) -> Tls:
    return Tls(ca_pem=(brokers.certificates / "ca.crt").read_text())


@pytest.fixture
def scram(brokers: Brokers, tls: Tls) -> Connection:
    return Connection(brokers.scram_bootstrap_servers, tls, Sasl(USER, brokers.password))


@pytest.fixture
def mutual(brokers: Brokers, tls: Tls) -> Connection:
    certificate, key = ((brokers.certificates / f"client.{end}").read_text() for end in ("crt", "key"))
    own = replace(tls, certificate_pem=certificate, private_key_pem=key)
    return Connection(brokers.mutual_tls_bootstrap_servers, own)


def refusal(connection: Connection) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        asyncio.run(KafkaClient.connect(connection, timeout=5))
    return caught.value


@pytest.fixture
def sha_256(brokers: Brokers, tls: Tls) -> Connection:
    return Connection(brokers.other_sasl_bootstrap_servers, tls, Sasl(USER, brokers.password, "SCRAM-SHA-256"))


@pytest.fixture
def plain(brokers: Brokers, tls: Tls) -> Connection:
    return Connection(brokers.other_sasl_bootstrap_servers, tls, Sasl(USER, brokers.password, "PLAIN"))


@pytest.mark.parametrize("way", ["scram", "sha_256", "plain", "mutual"])
def test_observing_and_moving_over_tls(kafka: Kafka, request: pytest.FixtureRequest, way: str) -> None:
    tp = TopicPartition(kafka.topic([0, 1]), 0)
    secure = Kafka(kafka.brokers, request.getfixturevalue(way))

    eventually(lambda: secure.observe(tp.topic).topics == kafka.observe(tp.topic).topics)
    eventually(lambda: secure.observe(tp.topic, sizes_of=[tp]).sizes == {tp: {0: 0, 1: 0}})
    assert secure.perform(Alter(tp, (1, 0))) == [APPLIED]
    eventually(lambda: secure.settled(tp, [1, 0]))
    secure.close()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
def test_a_wrong_password(brokers: Brokers, scram: Connection, plain: Connection, mechanism: str) -> None:
    right = scram if mechanism == "SCRAM-SHA-512" else plain
    error = refusal(replace(right, sasl=Sasl(USER, "not the password", mechanism)))
    assert error.reason is Reason.AUTHENTICATION_FAILED
    assert "not the password" not in error.message


def test_an_unknown_user(scram: Connection) -> None:
    assert refusal(replace(scram, sasl=Sasl("nobody", "any"))).reason is Reason.AUTHENTICATION_FAILED


class Ways(NamedTuple):
    """What the set-ups of connections are made of."""

    plain: str
    scram: str
    other: str
    mutual: str
    controllers: str
    closed: str
    """An address at which nothing listens."""
    tls: Tls
    user: Sasl
    strange: Tls
    """An authority that did not sign the brokers' certificates, and a client certificate that it did sign."""


@pytest.fixture(scope="session")
def ways(brokers: Brokers, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    strange = tmp_path_factory.mktemp("strange")
    make_authority(strange)
    issue(strange, "client")
    return Ways(
        plain=brokers.bootstrap_servers,
        scram=brokers.scram_bootstrap_servers,
        other=brokers.other_sasl_bootstrap_servers,
        mutual=brokers.mutual_tls_bootstrap_servers,
        controllers=brokers.controller_servers,
        closed=f"127.0.0.1:{brokers.base_port + 250}",
        tls=Tls(ca_pem=(brokers.certificates / "ca.crt").read_text()),
        user=Sasl(USER, brokers.password),
        strange=Tls(*((strange / name).read_text() for name in ("ca.crt", "client.crt", "client.key"))),
    )


def with_strange_certificate(ways: Ways) -> Connection:
    return Connection(ways.mutual, replace(ways.strange, ca_pem=ways.tls.ca_pem))


UNREACHABLE, REFUSED = Reason.CLUSTER_UNREACHABLE, Reason.AUTHENTICATION_FAILED
SET_UPS: dict[str, tuple[Callable[[Ways], Connection], Reason, str]] = {
    "neither TLS nor SASL, where both are": (
        lambda ways: Connection(ways.scram),
        UNREACHABLE,
        "has TLS and SASL (SCRAM-SHA-512): set tls and sasl in",
    ),
    "SASL without TLS, where both are": (
        lambda ways: Connection(ways.scram, None, ways.user),
        UNREACHABLE,
        "has TLS and SASL (SCRAM-SHA-512): set tls in",
    ),
    "TLS without SASL, where both are": (
        lambda ways: Connection(ways.scram, ways.tls),
        REFUSED,
        "has TLS and SASL (SCRAM-SHA-512): set sasl in",
    ),
    "TLS, where there is none": (
        lambda ways: Connection(ways.plain, ways.tls),
        UNREACHABLE,
        "has no TLS and no SASL: remove tls in",
    ),
    "TLS and SASL, where neither is": (
        lambda ways: Connection(ways.plain, ways.tls, ways.user),
        UNREACHABLE,
        "has no TLS and no SASL: remove tls and sasl in",
    ),
    "SASL, where there is none": (
        lambda ways: Connection(ways.plain, None, ways.user),
        REFUSED,
        "has no TLS and no SASL: remove sasl in",
    ),
    "SASL, where certificates are asked for": (
        lambda ways: Connection(ways.mutual, ways.tls, ways.user),
        REFUSED,
        "asks for a client certificate that it trusts",
    ),
    "a mechanism that the listener does not have": (
        lambda ways: Connection(ways.other, ways.tls, ways.user),
        REFUSED,
        "set sasl.mechanism to one that it has (OAUTHBEARER, PLAIN, SCRAM-SHA-256)",
    ),
    "another authority": (
        lambda ways: Connection(ways.scram, Tls(ways.strange.ca_pem), ways.user),
        UNREACHABLE,
        "its certificate is not trusted (unable to get local issuer certificate): set tls.caSecretRef",
    ),
    "the system's authorities": (
        lambda ways: Connection(ways.scram, Tls(), ways.user),
        UNREACHABLE,
        "its certificate is not trusted (unable to get local issuer certificate): set tls.caSecretRef",
    ),
    "a name that the certificate does not have": (
        lambda ways: Connection(ways.scram.replace("127.0.0.1", "127.1"), ways.tls, ways.user),
        UNREACHABLE,
        "its certificate is for other names",
    ),
    "no client certificate": (
        lambda ways: Connection(ways.mutual, ways.tls),
        REFUSED,
        "asks for a client certificate that it trusts",
    ),
    "a client certificate of another authority": (
        with_strange_certificate,
        REFUSED,
        "correct tls.certificateSecretRef in",
    ),
    "a controller": (
        lambda ways: Connection(ways.controllers),
        UNREACHABLE,
        "is the address of a controller: name brokers in bootstrapServers",
    ),
    "a name that does not resolve": (
        lambda _: Connection("no-such-host.invalid:9092"),
        UNREACHABLE,
        "the host name no-such-host.invalid does not resolve",
    ),
    "nothing listens": (
        lambda ways: Connection(ways.closed),
        UNREACHABLE,
        "nothing listens at 127.0.0.1:",
    ),
    "nothing listens at one address, and the other is another listener's": (
        lambda ways: Connection(f"{ways.closed},{ways.plain}", ways.tls),
        UNREACHABLE,
        "has no TLS and no SASL: remove tls in",
    ),
}
"""How a connection is set up, and what is said of it."""
LINE_BREAKS = [
    (m, spoiled) for m in ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN") for spoiled in ("username", "password")
]


def with_line_break(ways: Ways, mechanism: str, spoiled: str) -> Connection:
    server = ways.scram if mechanism == "SCRAM-SHA-512" else ways.other
    note = note_of({"key password of the Secret kafka/mover": f"{ways.user.password}\n"})
    values = {"mechanism": mechanism, "note": note, spoiled: f"{getattr(ways.user, spoiled)}\n"}
    return Connection(server, ways.tls, replace(ways.user, **values))


@pytest.fixture(scope="session")
def refusals(ways: Ways) -> Iterator[Mapping[str, Future[ClusterError]]]:
    """What each of these connections is refused with, a few at a time: most of them wait for an answer."""
    connections = {name: set_up(ways) for name, (set_up, _, _) in SET_UPS.items()}
    connections |= {" ".join(spoiled): with_line_break(ways, *spoiled) for spoiled in LINE_BREAKS}
    with ThreadPoolExecutor(6) as pool:
        yield {name: pool.submit(refusal, connection) for name, connection in connections.items()}


@pytest.mark.parametrize("set_up", SET_UPS)
def test_a_set_up_that_does_not_fit_is_told_what_to_do(
    refusals: Mapping[str, Future[ClusterError]], set_up: str
) -> None:
    _, reason, said = SET_UPS[set_up]
    error = refusals[set_up].result()
    assert (error.reason, said in error.message) == (reason, True), error.message


@pytest.mark.parametrize("spoiled", LINE_BREAKS, ids=" ".join)
def test_a_line_break_is_said_where_credentials_are_refused(
    ways: Ways, refusals: Mapping[str, Future[ClusterError]], spoiled: tuple[str, str]
) -> None:
    error = refusals[" ".join(spoiled)].result()
    assert error.reason is REFUSED
    assert "key password of the Secret kafka/mover ends with a line break" in error.message
    assert ways.user.password not in error.message


def test_a_refusal_is_in_the_same_words_each_time(ways: Ways) -> None:
    wrong = Connection(ways.scram, ways.tls, replace(ways.user, username="nobody"))
    assert len({refusal(wrong).message for _ in range(5)}) == 1


def test_a_controller_beside_a_broker_is_passed_over(brokers: Brokers, ways: Ways) -> None:
    found = Kafka(brokers, Connection(f"{ways.controllers},{ways.plain}"))
    assert set(found.observe().brokers) == set(brokers.ids)
    found.close()


def test_one_of_the_bootstrap_servers_is_enough(brokers: Brokers) -> None:
    nobody = f"127.0.0.1:{brokers.base_port + 250}"
    found = Kafka(brokers, Connection(f"{nobody},{brokers.bootstrap_servers.split(',')[2]}"))
    assert set(found.observe().brokers) == {0, 1, 2, 3}
    found.close()


@pytest.mark.parametrize(
    "make_unusable",
    [
        pytest.param(lambda tls: replace(tls, ca_pem="rubbish"), id="the CA"),
        pytest.param(lambda tls: replace(tls, certificate_pem="rubbish"), id="the certificate"),
        pytest.param(lambda tls: replace(tls, private_key_pem=None), id="no key"),
        pytest.param(lambda tls: replace(tls, private_key_pem="rubbish"), id="the key"),
    ],
)
def test_unusable_pems(mutual: Connection, make_unusable: object) -> None:
    assert mutual.tls
    assert callable(make_unusable)
    error = refusal(replace(mutual, tls=make_unusable(mutual.tls)))
    assert error.reason is Reason.INVALID_SECRET
    assert "rubbish" not in error.message


def test_a_key_that_belongs_to_another_certificate(mutual: Connection, brokers: Brokers) -> None:
    assert mutual.tls
    other = (brokers.certificates / "ca.key").read_text()
    error = refusal(replace(mutual, tls=replace(mutual.tls, private_key_pem=other)))
    assert error.reason is Reason.INVALID_SECRET


def test_secrets_are_in_no_repr_and_no_log(
    scram: Connection, mutual: Connection, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert scram.sasl
    assert mutual.tls
    assert mutual.tls.private_key_pem
    caplog.set_level(logging.DEBUG)
    for connection in (scram, replace(scram, sasl=Sasl(USER, "not the password")), mutual):
        try:
            asyncio.run(asyncio.run(KafkaClient.connect(connection)).close())
        except ClusterError:
            continue

    captured = capfd.readouterr()
    everything = caplog.text + captured.out + captured.err + repr(scram) + repr(mutual)
    for secret in (scram.sasl.password, "not the password", *mutual.tls.private_key_pem.splitlines()[1:-1]):
        assert secret not in everything


def test_nothing_stays_behind_a_connection_that_failed_or_was_closed(scram: Connection, brokers: Brokers) -> None:
    before = set(threading.enumerate())
    refusal(replace(scram, sasl=Sasl(USER, "not the password")))
    refusal(Connection(f"127.0.0.1:{brokers.base_port + 250}"))
    Kafka(brokers, scram).close()
    eventually(lambda: set(threading.enumerate()) <= before)
