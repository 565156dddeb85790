"""Asks through librdkafka whether a cluster that does not answer refuses our credentials."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from reassign.errors import ClusterError, Reason
from reassign.kafka.connection import Connection, Sasl
from reassign.kafka.errors import cluster_error
from reassign.kafka.tokens import OAuth


def refused_credentials(connection: Connection, seconds: float) -> ClusterError | None:
    """Return the brokers' refusal of the credentials, if one of them answers with it within `seconds`.

    kafka-python loses that answer when the broker closes the connection right behind it.
    """
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {**connection.librdkafka(), "log_level": 0, "error_cb": errors.append}
    try:
        client = AdminClient(settings)
    except KafkaException:  # a setting that this library refuses proves nothing about the credentials
        return None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        client.poll(0.1)
        for error in errors:
            if error.code() == KafkaError._AUTHENTICATION:
                return cluster_error(KafkaException(error))
        if any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in errors):
            break
    return None


def refused_password(error: ClusterError, sasl: Sasl) -> ClusterError:
    """Return the refusal with what to do."""
    advice = sasl.note or f"see that the brokers have this user, with this password, for {sasl.mechanism}"
    return ClusterError(Reason.AUTHENTICATION_FAILED, f"{error.message}; {advice}")


def refused_token(error: ClusterError, oauth: OAuth) -> ClusterError:
    """Return the refusal with advice, and forget the token: the next connection fetches another one."""
    oauth.forget()
    advice = "see that issuer, audience, scope and signing keys of the token are those that the brokers expect"
    return ClusterError(Reason.AUTHENTICATION_FAILED, f"{error.message}; {advice}")
