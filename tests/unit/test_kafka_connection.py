"""What cannot be connected with is said before, or instead of, a connection: no brokers are needed to see it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from localplatform.certificates import make_authority
from reassign.errors import ClusterError, Reason
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection, Sasl, Tls
from reassign.kafka.credentials import refused_credentials

NO_BROKER = "127.0.0.1:1"
COMMENT = "# Autorité de certification\n"


def refusal(connection: Connection) -> ClusterError:
    with pytest.raises(ClusterError) as caught:
        asyncio.run(KafkaClient.connect(connection, timeout=1))
    return caught.value


@pytest.fixture
def authority(tmp_path: Path) -> str:
    return make_authority(tmp_path).read_text()


@pytest.mark.parametrize("host", ["kafka..svc", f"{'a' * 64}.svc"])
def test_what_is_no_host_name_is_an_address_that_does_not_answer(host: str) -> None:
    error = refusal(Connection(f"{host}:9092"))
    assert error.reason is Reason.CLUSTER_UNREACHABLE
    assert f"{host} is no host name" in error.message


def test_an_address_that_does_not_answer_is_named() -> None:
    assert NO_BROKER in refusal(Connection(NO_BROKER)).message


def test_other_addresses_are_tried_beside_one_that_is_no_host_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        error = refusal(Connection(f"kafka..svc:9092,127.0.0.1:{server.getsockname()[1]}"))
        server.accept()[0].close()
    assert error.reason is Reason.CLUSTER_UNREACHABLE


def test_a_comment_in_any_language_may_stand_above_a_certificate(authority: str) -> None:
    context = Connection(NO_BROKER, Tls(COMMENT + authority)).ssl_context()
    assert context
    assert len(context.get_ca_certs()) == 1


def test_a_comment_alone_is_no_certificate() -> None:
    assert refusal(Connection(NO_BROKER, Tls(COMMENT))).reason is Reason.INVALID_SECRET


def test_credentials_that_cannot_be_checked_are_not_reported_as_refused() -> None:
    assert refused_credentials(Connection(NO_BROKER, sasl=Sasl("user", "")), seconds=1) is None
