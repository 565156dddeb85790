"""Access tokens for SASL/OAUTHBEARER, by the client credentials grant (RFC 6749 §4.4, KIP-768).

One holder of the token serves both client libraries. Tokens are fetched before the libraries need them: they ask in
threads of theirs, which must not wait. Neither the client's secret nor a token is in any repr or error; of what the
endpoint says only its status and OAuth's error code are repeated.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from base64 import b64encode
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote_plus

import aiohttp
import structlog
from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from reassign.errors import ClusterError, Reason
from reassign.kafka.errors import certificate_problem
from reassign.kafka.pems import trusting

log = structlog.get_logger()

ASK_SECONDS = 10.0
RETRY_SECONDS = 30.0
"""Until an endpoint that gave no token is asked again, while its last one is good."""
MARGIN_SECONDS = 30.0
DEFAULT_LIFE_SECONDS = 60.0
"""Of a token whose endpoint does not say how long it lives (RFC 6749 §5.1 only recommends it)."""
LONGEST_LIFE_SECONDS = 86_400.0
LARGEST_ANSWER = 262_144

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 §2.1; what is sent to the brokers needs no escaping then
_ERROR_CODE = re.compile(r"[a-z_]{1,64}")

_HINTS = {
    "invalid_client": "see that sasl.oauth.clientId and the secret in clientSecretRef are right",
    "unauthorized_client": "allow the client credentials grant for this client there",
    "unsupported_grant_type": "allow the client credentials grant there",
    "invalid_scope": "see that sasl.oauth.scope is one that this client may ask for",
}


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, with the times when it expires and is replaced, on the monotonic clock."""

    value: str = field(repr=False)
    expires: float
    renew: float

    @classmethod
    def living(cls, value: str, seconds: float, asked: float) -> Token:
        """Return a token to be replaced when a fifth of its life or MARGIN_SECONDS are left, but not in its first half.

        Brokers ask for another token when 85 % of its life are over, at the earliest (KIP-368).
        """
        age = max(seconds / 2, min(seconds * 0.8, seconds - MARGIN_SECONDS))
        return cls(value, asked + seconds, asked + age)


@dataclass(slots=True)
class OAuth(AbstractTokenProvider):
    """A client of a token endpoint, with its token; equal when the client is equal."""

    token_endpoint_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_pem: str | None = None
    """Authorities that the endpoint's certificate must be signed by. None: the system's."""
    note: str = ""
    """What looks wrong with the secret, and what to do: said where it is refused."""
    _current: Token | None = field(default=None, init=False, repr=False, compare=False)
    _failing: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def due(self) -> bool:
        """Whether there is no token, or it is time to replace the one there is."""
        return self._current is None or time.monotonic() >= min(self._current.renew, self._current.expires)

    def correct(self, other: OAuth) -> None:
        """Ask with the other client's secret, and trust its authorities, from now on; the token stays."""
        self.client_secret, self.ca_pem, self.note = other.client_secret, other.ca_pem, other.note

    async def renew(self) -> None:
        """Fetch a token if one is due.

        Raises ClusterError when there is no good token: TokenRefused, TokenEndpointUnreachable, InvalidTokenResponse,
        InvalidSecret. While the old token is good, a failure is only logged: the brokers go on to take the old one.
        """
        if not self.due:
            return
        try:
            self._current, self._failing = await fetch(self), False
        except ClusterError as error:
            now = time.monotonic()
            if self._current is None or now >= self._current.expires:
                raise
            if not self._failing:
                log.warning(
                    "no new token yet",
                    reason=error.reason,
                    error=error.message,
                    seconds_left=round(self._current.expires - now),
                )
            self._current, self._failing = replace(self._current, renew=now + RETRY_SECONDS), True

    def forget(self) -> None:
        """Forget the token, which the brokers refuse: the next `renew` fetches another one."""
        self._current = None

    def token(self) -> str:
        """Return the token, for kafka-python.

        Raises KafkaConnectionError when it has expired: a refusal would stick to the broker's connection.
        """
        return self._good().value

    def oauth_cb(self, _: str) -> tuple[str, float]:
        """Return the token, and when it expires, in seconds since 1970, for confluent-kafka."""
        good = self._good()
        return good.value, time.time() + good.expires - time.monotonic()

    def _good(self) -> Token:
        current = self._current
        if current is None or time.monotonic() >= current.expires:
            raise KafkaConnectionError("the access token has expired, and there is no new one yet")
        return current


async def fetch(client: OAuth) -> Token:
    """Ask for a token once."""
    asked = time.monotonic()
    status, body = await _post(client)
    answer = _json(body)
    if status == 200:
        return _token(client, answer, asked)
    raise _refused(client, status, answer)


async def _post(client: OAuth) -> tuple[int, bytes]:
    tls: ssl.SSLContext | bool = True
    if client.token_endpoint_url.startswith("https:"):
        tls = trusting(client.ca_pem, "the CA certificate of the token endpoint")
    # RFC 6749 §2.3.1: form-encoded first
    identity = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers = {"Authorization": f"Basic {b64encode(identity.encode()).decode()}", "Accept": "application/json"}
    form = {"grant_type": "client_credentials"} | ({"scope": client.scope} if client.scope else {})
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ASK_SECONDS)) as session,
            # the secret is never sent to the target of a redirect
            session.post(client.token_endpoint_url, headers=headers, data=form, ssl=tls, allow_redirects=False) as got,
        ):
            return got.status, await _read(got.content)
    except aiohttp.ClientConnectorCertificateError as error:
        detail = certificate_problem(str(error.certificate_error), "sasl.oauth.caSecretRef")
        raise _unreachable(client, detail) from None
    except aiohttp.ClientConnectorError as error:
        raise _unreachable(client, f"no connection ({_why(error.os_error)})") from None
    except TimeoutError:
        raise _unreachable(client, f"no answer within {ASK_SECONDS:g} seconds") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise _unreachable(client, f"no answer that is HTTP ({type(error).__name__})") from None


async def _read(content: aiohttp.StreamReader) -> bytes:
    body = b""
    async for part in content.iter_any():
        body += part
        if len(body) > LARGEST_ANSWER:
            break
    return body


def _why(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _json(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _token(client: OAuth, answer: dict[str, Any], asked: float) -> Token:
    value, kind = answer.get("access_token"), answer.get("token_type", "bearer")
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise _nonsense(client, "its answer has no access_token that can be sent to brokers")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _nonsense(client, "its token is no bearer token")
    try:
        life = min(float(answer.get("expires_in", DEFAULT_LIFE_SECONDS)), LONGEST_LIFE_SECONDS)
    except (TypeError, ValueError, OverflowError):
        life = 0.0
    if not life > 0:
        raise _nonsense(client, "expires_in of its answer is no number of seconds to come")
    return Token.living(value, life, asked)


def _refused(client: OAuth, status: int, answer: dict[str, Any]) -> ClusterError:
    code = answer.get("error")
    code = code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else None
    if status in (408, 429) or status >= 500:
        return _unreachable(client, f"it answers {code or status}; it is asked again")
    if status in (401, 403) or (code and 400 <= status < 500):
        hint = _HINTS.get(code or "invalid_client", "see what it asks of this client")
        if hint == _HINTS["invalid_client"]:
            hint = client.note or hint
        return ClusterError(
            Reason.TOKEN_REFUSED,
            f"the token endpoint {client.token_endpoint_url} refuses the client {client.client_id} "
            f"({code or status}): {hint}",
        )
    return _nonsense(client, f"it answers {status}")


def _unreachable(client: OAuth, detail: str) -> ClusterError:
    message = f"the token endpoint {client.token_endpoint_url} gives no token: {detail}"
    return ClusterError(Reason.TOKEN_ENDPOINT_UNREACHABLE, message)


def _nonsense(client: OAuth, detail: str) -> ClusterError:
    return ClusterError(
        Reason.INVALID_TOKEN_RESPONSE,
        f"{client.token_endpoint_url} does not answer as a token endpoint does: {detail}; "
        "see that sasl.oauth.tokenEndpointUrl is right",
    )
