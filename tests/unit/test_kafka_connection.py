"""What cannot be connected with is said before, or instead of, a connection: no brokers are needed to see it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeConfigsRequest, DescribeLogDirsRequest

from localplatform.certificates import make_authority
from reassign.errors import ClusterError, Reason
from reassign.kafka import client
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection, Sasl, Tls
from reassign.kafka.credentials import refused_credentials
from reassign.kafka.errors import cluster_error
from reassign.kafka.wire import Wire

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


def say(text: bytes, server: socket.socket) -> None:
    """Answer whatever is asked with this text, and close."""
    while True:
        try:
            line, _ = server.accept()
        except OSError:  # the test is over
            return
        with line:
            line.recv(1000)
            line.sendall(text)


@pytest.mark.parametrize("text", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b""])
@pytest.mark.parametrize("tls", [Tls(), None], ids=["TLS", "no TLS"])
def test_what_is_no_broker_is_told_from_one(text: bytes, tls: Tls | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        answering = threading.Thread(target=say, args=(text, server))
        answering.start()
        error = refusal(Connection(at, tls))
        server.shutdown(socket.SHUT_RDWR)
        answering.join()
    assert error.reason is Reason.CLUSTER_UNREACHABLE
    assert f"what listens at {at} does not answer as a broker of Kafka does" in error.message


def test_what_accepts_and_says_nothing_may_be_a_broker_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"127.0.0.1:{server.getsockname()[1]}"
        error = refusal(Connection(at))
    assert error.reason is Reason.CLUSTER_UNREACHABLE
    assert f"{at} does not answer in time" in error.message


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("self-signed certificate in certificate chain", "is not trusted (self-signed certificate in certificate"),
        (
            "IP address mismatch, certificate is not valid for '::1'",
            "is for other names (IP address mismatch, certific",
        ),
        ("certificate has expired", "is not valid now (certificate has expired): renew it"),
        ("certificate is not yet valid", "is not valid now (certificate is not yet valid): renew it"),
    ],
)
def test_what_is_wrong_with_a_certificate_decides_what_to_do(why: str, said: str) -> None:
    error = f"b:9093: Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {why} (_ssl.c:1006)"
    assert f"certificate {said}" in cluster_error(errors.KafkaConnectionError(error)).message


class Reused:
    """kafka-python's side of broker 3, at whose address `answering` is now; it counts what that one was asked."""

    def __init__(self, answering: int) -> None:
        self.answering = answering
        self.asked: list[str] = []
        self.errors: list[Exception] = []
        self.cluster = SimpleNamespace(broker_metadata=lambda _: SimpleNamespace(host="pod", port=9092))
        self.connection = Pod(self)

    def get_connection(self, node: int, **_: object) -> Any:
        return self.connection

    async def wait_for(self, *_: object) -> None:
        pass

    def run(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        return asyncio.run(function(*arguments))


class Pod:
    """The connection."""

    init_future = None

    def __init__(self, reused: Reused) -> None:
        self.reused = reused

    async def send_request(self, request: Any, request_timeout_ms: int) -> Any:
        self.reused.asked.append(type(request).__name__)
        if not isinstance(request, DescribeConfigsRequest):
            return SimpleNamespace()
        wrong = request.resources[0].resource_name != str(self.reused.answering)
        code = errors.InvalidRequestError.errno if wrong else 0
        return SimpleNamespace(results=[SimpleNamespace(error_code=code)])

    def close(self, error: Exception) -> None:
        self.reused.errors.append(error)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire(Connection("b:9092"))
    yield wire
    wire.close()


LOG_DIRS = [DescribeLogDirsRequest(topics=None), AlterReplicaLogDirsRequest(dirs=[])]


@pytest.mark.parametrize("request_", LOG_DIRS, ids=["read", "written"])
def test_no_log_directory_of_another_broker_there_is_touched(wire: Wire, request_: Any) -> None:
    wire._manager = reused = Reused(answering=5)
    with pytest.raises(errors.KafkaConnectionError, match="pod:9092 is the address of another broker"):
        wire.read_from(3, request_, 1.0)
    with pytest.raises(errors.KafkaConnectionError, match="pod:9092 is the address of another broker"):
        wire.write(request_, lambda: None, 3)
    assert reused.asked == ["DescribeConfigsRequest"] * 2
    assert len(reused.errors) == 2, "the connection is closed"


def test_a_broker_confirms_its_id_once_for_each_connection(wire: Wire) -> None:
    wire._manager = reused = Reused(answering=3)
    for request_ in LOG_DIRS:
        wire.read_from(3, request_, 1.0)
    assert reused.asked == ["DescribeConfigsRequest", "DescribeLogDirsRequest", "AlterReplicaLogDirsRequest"]
    reused.connection = Pod(reused)
    wire.read_from(3, LOG_DIRS[0], 1.0)
    assert reused.asked[3:] == ["DescribeConfigsRequest", "DescribeLogDirsRequest"]
