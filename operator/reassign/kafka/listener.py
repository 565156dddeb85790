"""What listens at an address of a cluster that cannot be connected to, and what of the connection does not fit it.

The listener is asked in Kafka's protocol, with TLS and without it. No credentials are sent. Blocking calls.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

from kafka.errors import KafkaError
from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.sasl import SaslHandshakeRequest

from reassign.errors import ClusterError, Reason
from reassign.kafka.connection import Connection
from reassign.kafka.errors import ILLEGAL_SASL_STATE, certificate_problem

LARGEST_ANSWER = 1_000_000
ANY_MECHANISM = "PLAIN"
"""What is asked for to learn of all: an answer names those that the listener has."""


class Listener(NamedTuple):
    """What a listener answers with."""

    tls: bool
    controller: bool = False
    mechanisms: tuple[str, ...] | None = None
    """The SASL mechanisms; None: it has no SASL."""


class NoAnswerError(Exception):
    """What listens does not answer as Kafka does; the message is the alert of its TLS, if it sent one."""


def misfit(connection: Connection, seconds: float) -> ClusterError | None:
    """Return why no bootstrap server can be used, as far as that is found within `seconds`.

    A listener that the connection does not fit counts before an address at which nothing answers. None: some listener
    fits, so the cause is another one.
    """
    servers = connection.bootstrap_servers.split(",")
    silent: list[str] = []
    for server in servers:
        try:
            return _misfit_at(connection, server, seconds / len(servers))
        except UnicodeError:  # Python cannot even ask DNS for it
            silent.append(f"{_split(server)[0]} is no host name: correct bootstrapServers")
        except OSError as error:
            silent.append(_why_silent(error, server))
    others = "; the other bootstrap servers do not answer either" if len(servers) > 1 else ""
    return ClusterError(Reason.CLUSTER_UNREACHABLE, silent[0] + others)


def judge(connection: Connection, at: str, listener: Listener) -> ClusterError | None:
    """Return what of the connection does not fit the listener at an address, and what to do."""
    if listener.controller:
        return ClusterError(
            Reason.CLUSTER_UNREACHABLE, f"{at} is the address of a controller: name brokers in bootstrapServers"
        )
    mechanisms = listener.mechanisms
    has = {"tls": listener.tls, "sasl": mechanisms is not None}
    given = {"tls": connection.tls is not None, "sasl": connection.sasl is not None}
    missing, extra = ([name for name in a if a[name] and not b[name]] for a, b in ((has, given), (given, has)))
    if missing or extra:
        todo = [f"{verb} {' and '.join(names)}" for verb, names in (("set", missing), ("remove", extra)) if names]
        sasl = "no SASL" if mechanisms is None else f"SASL ({_named(mechanisms)})"
        return ClusterError(
            Reason.AUTHENTICATION_FAILED if has["tls"] == given["tls"] else Reason.CLUSTER_UNREACHABLE,
            f"the listener at {at} has {'TLS' if listener.tls else 'no TLS'} and {sasl}: {', '.join(todo)} in the "
            "KafkaCluster, or name the port of another listener",
        )
    if connection.mechanism and connection.mechanism not in (mechanisms or ()):
        return ClusterError(
            Reason.AUTHENTICATION_FAILED,
            f"the listener at {at} does not have the mechanism {connection.mechanism}: set sasl.mechanism to one that "
            f"it has ({_named(mechanisms or ())}), or name the port of another listener",
        )
    return None


def _misfit_at(connection: Connection, server: str, seconds: float) -> ClusterError | None:
    """Look at one address; raises OSError where nothing can be connected to."""
    own = connection.ssl_context()
    other = None if own else _trusting_anything()
    alert = ""
    deadline = time.monotonic() + seconds
    for context in (own, other):
        try:
            return judge(connection, server, _ask(server, context, connection.mechanism, deadline))
        except ssl.SSLCertVerificationError as error:
            return ClusterError(
                Reason.CLUSTER_UNREACHABLE, f"{server}: {certificate_problem(str(error), 'tls.caSecretRef')}"
            )
        except NoAnswerError as error:
            alert = alert or str(error)
    if "CERTIFICATE" in alert or "UNKNOWN_CA" in alert:
        todo = "correct" if connection.tls and connection.tls.certificate_pem else "set"
        return ClusterError(
            Reason.AUTHENTICATION_FAILED,
            f"the listener at {server} asks for a client certificate that it trusts ({alert}): {todo} "
            "tls.certificateSecretRef in the KafkaCluster",
        )
    detail = f" ({alert})" if alert else ""
    return ClusterError(
        Reason.CLUSTER_UNREACHABLE,
        f"what listens at {server} does not answer as a broker of Kafka does{detail}: see that this is a broker's port",
    )


def _ask(server: str, context: ssl.SSLContext | None, mechanism: str | None, deadline: float) -> Listener:
    """Ask a listener what it is; raises NoAnswerError where it does not say, and OSError where there is none."""
    host, port = _split(server)
    with socket.create_connection((host, port), _left(deadline)) as line:
        try:
            line.settimeout(_left(deadline))
            with context.wrap_socket(line, server_hostname=host) if context else nullcontext(line) as talk:
                protocol = KafkaProtocol(receive_message_max_bytes=LARGEST_ANSWER)
                versions = _answer(talk, protocol, ApiVersionsRequest(version=0))
                apis = {each.api_key for each in versions.api_keys}
                handshake = _answer(
                    talk, protocol, SaslHandshakeRequest(mechanism=mechanism or ANY_MECHANISM, version=1)
                )
        except (ssl.SSLCertVerificationError, TimeoutError):
            raise
        except (OSError, KafkaError) as error:
            raise NoAnswerError(getattr(error, "reason", "") or "") from None
    sasl = handshake.error_code != ILLEGAL_SASL_STATE
    return Listener(
        context is not None, ApiKey.Metadata.value not in apis, tuple(handshake.mechanisms) if sasl else None
    )


def _answer(talk: socket.socket, protocol: KafkaProtocol, request: Any) -> Any:
    protocol.send_request(request)
    talk.sendall(protocol.send_bytes())
    while True:
        received = talk.recv(65_536)
        if not received:
            raise ConnectionError("it was closed")
        for _, answer in protocol.receive_bytes(received):
            return answer


def _why_silent(error: OSError, server: str) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the host name {_split(server)[0]} does not resolve ({error.strerror}): correct bootstrapServers, or see "
            "that DNS knows it here"
        )
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {server}: correct bootstrapServers, or start the broker"
    if isinstance(error, TimeoutError):
        return f"{server} does not answer in time: see that the broker is well, and that no firewall is in between"
    return f"{server} cannot be connected to ({error.strerror or error}): see that it is right, and reachable from here"


def _trusting_anything() -> ssl.SSLContext:
    """Return a context to find out with whether there is TLS; nothing secret is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.1)


def _split(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


def _named(mechanisms: tuple[str, ...]) -> str:
    return ", ".join(sorted(mechanisms))
