"""How a cluster is reached: addresses, TLS, credentials, in the terms of either client library.

Secrets stay out of reprs.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from reassign.kafka.pems import load_client_certificate, trusting
from reassign.kafka.tokens import OAuth

OAUTHBEARER = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates and keys for TLS, in PEM."""

    ca_pem: str | None = None
    """The authorities to trust. None: the system's."""
    certificate_pem: str | None = None
    """A certificate of our own, for mutual TLS."""
    private_key_pem: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Sasl:
    """A SASL user with a password: SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN."""

    username: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"
    note: str = ""
    """What looks wrong with them, and what to do: said where the brokers refuse them."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's address and how to authenticate; while it stays equal, a client can be kept."""

    bootstrap_servers: str
    tls: Tls | None = None
    sasl: Sasl | OAuth | None = None

    async def renew_token(self) -> None:
        """Renew the access token, if one is used and due. Raises ClusterError when there is no good one."""
        if isinstance(self.sasl, OAuth):
            await self.sasl.renew()

    @property
    def security_protocol(self) -> str:
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")

    @property
    def mechanism(self) -> str | None:
        """The SASL mechanism, if there is one."""
        if isinstance(self.sasl, OAuth):
            return OAUTHBEARER
        return self.sasl.mechanism if self.sasl else None

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the context for Python's ssl, or None without TLS.

        A ClusterError (InvalidSecret) says which part of the PEMs is unusable.
        """
        if not self.tls:
            return None
        context = trusting(self.tls.ca_pem, "the CA certificate")
        if self.tls.certificate_pem:
            load_client_certificate(context, self.tls.certificate_pem, self.tls.private_key_pem or "")
        return context

    def kafka_python(self) -> dict[str, Any]:
        """Return the settings for kafka-python."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": self.security_protocol,
            "ssl_context": self.ssl_context(),
        }
        if self.sasl:
            settings["sasl_mechanism"] = self.mechanism
        if isinstance(self.sasl, OAuth):
            settings["sasl_oauth_token_provider"] = self.sasl
        elif self.sasl:
            settings["sasl_plain_username"] = self.sasl.username
            settings["sasl_plain_password"] = self.sasl.password
        return settings

    def librdkafka(self) -> dict[str, Any]:
        """Return the settings for librdkafka (confluent-kafka)."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
        }
        if self.tls:
            pems = {
                "ssl.ca.pem": self.tls.ca_pem,
                "ssl.certificate.pem": self.tls.certificate_pem,
                "ssl.key.pem": self.tls.private_key_pem,
            }
            settings |= {name: pem for name, pem in pems.items() if pem}
        if self.sasl:
            settings["sasl.mechanism"] = self.mechanism
        if isinstance(self.sasl, OAuth):
            settings["oauth_cb"] = self.sasl.oauth_cb
        elif self.sasl:
            settings["sasl.username"] = self.sasl.username
            settings["sasl.password"] = self.sasl.password
        return settings
