"""The connection of a KafkaCluster, with the Secrets that it names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from reassign.api.common import SecretKeyRef
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.kafka_cluster import OAuth as OAuthSpec
from reassign.api.kafka_cluster import Sasl as SaslSpec
from reassign.api.kafka_cluster import Tls as TlsSpec
from reassign.errors import MissingReferenceError, Reason, ReassignError
from reassign.kafka.connection import Connection, Sasl, Tls
from reassign.kafka.tokens import OAuth
from reassign.kube.client import KubeClient
from reassign.text import plural


async def connection_of(cluster: KafkaCluster, kube: KubeClient) -> Connection:
    """Return the connection of a KafkaCluster; raises ReassignError for a Secret, or key, that is missing or wrong."""
    secrets = Secrets(kube, cluster.metadata.namespace)
    tls = await _tls(cluster.spec.tls, secrets) if cluster.spec.tls is not None else None
    sasl = await _sasl(cluster.spec.sasl, secrets) if cluster.spec.sasl is not None else None
    return Connection(cluster.spec.bootstrap_servers, tls, sasl)


async def correct_secret(connection: Connection, cluster: KafkaCluster, kube: KubeClient) -> None:
    """Read the client secret anew for a token that is due.

    Without a Secret the last client secret is used: while the token is valid the cluster can be served.
    """
    spec, oauth = cluster.spec.sasl, connection.sasl
    if spec and spec.oauth and isinstance(oauth, OAuth) and oauth.due:
        with suppress(ReassignError):
            oauth.correct(await _oauth(spec.oauth, Secrets(kube, cluster.metadata.namespace)))


class Secrets:
    """The Secrets of one namespace, read by key."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace

    async def text(self, name: str, key: str) -> str:
        data = await self._kube.secret(self._namespace, name)
        if key not in data:
            raise MissingReferenceError(
                Reason.SECRET_KEY_NOT_FOUND, f"the Secret {self._namespace}/{name} has no key {key}; add it"
            )
        if not data[key]:
            raise ReassignError(
                Reason.INVALID_SECRET, f"key {key} of the Secret {self._namespace}/{name} is empty; fill it in"
            )
        try:
            return data[key].decode()
        except UnicodeDecodeError:
            raise ReassignError(
                Reason.INVALID_SECRET, f"key {key} of the Secret {self._namespace}/{name} is not text; correct it"
            ) from None

    def where(self, ref: SecretKeyRef | None) -> str:
        """Return how messages name a key of a Secret; nothing for none."""
        return f"key {ref.key} of the Secret {self._namespace}/{ref.name}" if ref else ""

    async def ref(self, ref: SecretKeyRef | None) -> str | None:
        return await self.text(ref.name, ref.key) if ref else None


async def _tls(spec: TlsSpec, secrets: Secrets) -> Tls:
    certificate = spec.certificate_secret_ref
    return Tls(
        ca_pem=await secrets.ref(spec.ca_secret_ref),
        certificate_pem=await secrets.text(certificate.name, certificate.certificate_key) if certificate else None,
        private_key_pem=await secrets.text(certificate.name, certificate.private_key_key) if certificate else None,
    )


async def _sasl(spec: SaslSpec, secrets: Secrets) -> Sasl | OAuth:
    if spec.oauth:
        return await _oauth(spec.oauth, secrets)
    username = spec.username or await secrets.ref(spec.username_secret_ref)
    password = await secrets.ref(spec.password_secret_ref)
    values = {
        secrets.where(spec.username_secret_ref) or "sasl.username": username or "",
        secrets.where(spec.password_secret_ref): password or "",
    }
    return Sasl(username or "", password or "", spec.mechanism.value, note_of(values))


async def _oauth(spec: OAuthSpec, secrets: Secrets) -> OAuth:
    secret = await secrets.ref(spec.client_secret_ref) or ""
    return OAuth(
        spec.token_endpoint_url,
        spec.client_id,
        secret,
        spec.scope,
        await secrets.ref(spec.ca_secret_ref),
        note_of({"sasl.oauth.clientId": spec.client_id, secrets.where(spec.client_secret_ref): secret}),
    )


def note_of(values: Mapping[str, str]) -> str:
    """Return which of these values end with a line break, which is almost always one too many, and what to do.

    They are used as they are: a password may have one. The note is for the case that they are refused.
    """
    ended = [where for where, value in values.items() if value.endswith(("\n", "\r"))]
    if not ended:
        return ""
    return (
        f"{' and '.join(ended)} {plural(ended, 'ends', 'end')} with a line break, as `echo` and editors write one: "
        "store the value without it, such as with `kubectl create secret --from-literal`"
    )
