"""The ways in: TLS, client certificates, SCRAM; and what is said when there is no way in."""

import asyncio
import logging
import threading
from dataclasses import replace

import pytest

from localplatform.brokers import USER, Brokers
from localplatform.certificates import make_authority
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import APPLIED, Alter
from reassign.errors import ClusterError, Reason
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


def test_a_mechanism_that_the_brokers_do_not_have(scram: Connection) -> None:
    wrong = replace(scram, sasl=Sasl(USER, "any", mechanism="SCRAM-SHA-256"))
    assert refusal(wrong).reason is Reason.AUTHENTICATION_FAILED


def test_an_authority_that_did_not_sign_the_brokers_certificates(
    scram: Connection, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = make_authority(tmp_path_factory.mktemp("other")).read_text()
    for wrong in (Tls(ca_pem=other), Tls()):  # the second: those that the system trusts
        error = refusal(replace(scram, tls=wrong))
        assert error.reason is Reason.CLUSTER_UNREACHABLE
        assert "certificate is not trusted" in error.message


def test_a_missing_client_certificate(mutual: Connection, tls: Tls) -> None:
    assert refusal(replace(mutual, tls=tls)).reason is Reason.CLUSTER_UNREACHABLE


def test_tls_where_there_is_none_and_none_where_there_is(brokers: Brokers, tls: Tls) -> None:
    for wrong in (Connection(brokers.bootstrap_servers, tls), Connection(brokers.scram_bootstrap_servers)):
        assert refusal(wrong).reason is Reason.CLUSTER_UNREACHABLE


def test_an_address_without_a_broker_is_unreachable(brokers: Brokers) -> None:
    nobody = f"127.0.0.1:{brokers.base_port + 250}"
    assert refusal(Connection(nobody)).reason is Reason.CLUSTER_UNREACHABLE


def test_a_name_that_does_not_resolve() -> None:
    assert refusal(Connection("no-such-host.invalid:9092")).reason is Reason.CLUSTER_UNREACHABLE


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
