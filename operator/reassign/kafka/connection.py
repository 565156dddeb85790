"""How a cluster is reached: addresses, TLS, credentials, in the terms of either client library.

Secrets stay out of reprs, and private keys out of files.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from typing import Any

from reassign.errors import ClusterError, Reason


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS: whom to trust (None: the system's authorities), and a certificate of our own for mutual TLS; PEM."""

    ca_pem: str | None = None
    certificate_pem: str | None = None
    private_key_pem: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Sasl:
    """A SASL user with a password: SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN."""

    username: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's address and the way in; equal values mean that a client can be kept."""

    bootstrap_servers: str
    tls: Tls | None = None
    sasl: Sasl | None = None

    @property
    def security_protocol(self) -> str:
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")

    def ssl_context(self) -> ssl.SSLContext | None:
        """What Python's ssl needs; a ClusterError (InvalidSecret) says which part of the PEMs is unusable."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cadata=self.tls.ca_pem)
        except (ssl.SSLError, ValueError) as error:
            raise _invalid("the CA certificate is no PEM certificate", error) from None
        if self.tls.certificate_pem:
            _load_client_certificate(context, self.tls.certificate_pem, self.tls.private_key_pem or "")
        return context

    def kafka_python(self) -> dict[str, Any]:
        """Settings for kafka-python."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": self.security_protocol,
            "ssl_context": self.ssl_context(),
        }
        if self.sasl:
            settings["sasl_mechanism"] = self.sasl.mechanism
            settings["sasl_plain_username"] = self.sasl.username
            settings["sasl_plain_password"] = self.sasl.password
        return settings

    def librdkafka(self) -> dict[str, str]:
        """Settings for librdkafka (confluent-kafka)."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": self.security_protocol}
        if self.tls:
            pems = {
                "ssl.ca.pem": self.tls.ca_pem,
                "ssl.certificate.pem": self.tls.certificate_pem,
                "ssl.key.pem": self.tls.private_key_pem,
            }
            settings |= {name: pem for name, pem in pems.items() if pem}
        if self.sasl:
            settings["sasl.mechanism"] = self.sasl.mechanism
            settings["sasl.username"] = self.sasl.username
            settings["sasl.password"] = self.sasl.password
        return settings


def _load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # ssl takes a path only: this one names memory, so that the key is in no file and no writable disk is needed
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "w", closefd=False) as file:
            file.write(f"{certificate}\n{key}\n")
        # without a password of ours, ssl would ask for one on the terminal
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: b"")
    except (ssl.SSLError, ValueError) as error:
        message = "the client certificate and its private key (without a password) are no matching PEM pair"
        raise _invalid(message, error) from None
    finally:
        os.close(descriptor)


def _invalid(message: str, error: Exception) -> ClusterError:
    detail = getattr(error, "reason", None) or "not in PEM form"  # OpenSSL's word for it, which quotes no content
    return ClusterError(Reason.INVALID_SECRET, f"{message} ({detail})")
