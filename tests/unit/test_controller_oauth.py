"""A KafkaCluster with OAUTHBEARER: what its condition says when there is no token, and that new secrets are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from reassign.controller.cluster.loop import ClusterLoop
from reassign.core.model.snapshot import Snapshot
from reassign.errors import MissingReferenceError, Reason
from reassign.kafka import tokens
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection
from reassign.kafka.tokens import OAuth
from tests.endpoint import CLIENT, SECRET, TokenEndpoint, token_endpoint
from tests.unit.world import World

TOKEN = "the-token"


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with token_endpoint(lambda: {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 300}) as found:
        yield found


@pytest.fixture
def secrets() -> dict[str, dict[str, bytes]]:
    """What the API server has of Secrets."""
    return {"oauth": {"secret": SECRET.encode()}, "id-ca": {"ca.crt": b"rubbish"}}


@pytest.fixture
def world(endpoint: TokenEndpoint, secrets: dict[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch) -> World:
    """Brokers that accept any client with a token."""
    world = World()

    async def secret(_: str, name: str) -> dict[str, bytes]:
        if name not in secrets:
            raise MissingReferenceError(Reason.SECRET_NOT_FOUND, f"there is no Secret {name}")
        return secrets[name]

    async def connect(connection: Connection, **_: object) -> Any:
        await connection.renew_token()
        return world.brokers

    monkeypatch.setattr(world.kube, "secret", secret, raising=False)
    monkeypatch.setattr(KafkaClient, "connect", connect)
    use(world, tokenEndpointUrl=endpoint.url)
    return world


def use(world: World, **oauth: Any) -> None:
    """Edit the KafkaCluster."""
    wanted = {"clientId": CLIENT, "clientSecretRef": {"name": "oauth", "key": "secret"}, **oauth}
    sasl = {"mechanism": "OAUTHBEARER", "oauth": wanted}
    world.change("main", lambda obj: obj["spec"].update(sasl=sasl))


def ready(world: World) -> dict[str, str]:
    status = (world.store.get("uid-main") or {})["status"]
    assert SECRET not in json.dumps(status, ensure_ascii=False)
    assert TOKEN not in json.dumps(status)
    found: dict[str, str] = next(c for c in status["conditions"] if c["type"] == "Ready")
    return found


def test_with_a_token_it_is_ready(world: World, endpoint: TokenEndpoint) -> None:
    use(world, tokenEndpointUrl=endpoint.url, scope="kafka")
    world.tick()
    assert ready(world)["reason"] == "Connected"
    assert endpoint.asked == [{"grant_type": "client_credentials", "scope": "kafka"}]


@pytest.mark.parametrize(
    ("spoiled", "reason", "said"),
    [
        ({"clientId": "another"}, "TokenRefused", "sasl.oauth.clientId"),
        ({"tokenEndpointUrl": "https://no-such-host.invalid/"}, "TokenEndpointUnreachable", "no connection"),
        ({"clientSecretRef": {"name": "no-such", "key": "secret"}}, "SecretNotFound", "no-such"),
        ({"clientSecretRef": {"name": "oauth", "key": "other"}}, "SecretKeyNotFound", "other"),
        (
            {"tokenEndpointUrl": "https://127.0.0.1/", "caSecretRef": {"name": "id-ca", "key": "ca.crt"}},
            "InvalidSecret",
            "the CA certificate of the token endpoint",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_and_once_corrected_it_goes_on(
    world: World, endpoint: TokenEndpoint, spoiled: dict[str, Any], reason: str, said: str
) -> None:
    use(world, **{"tokenEndpointUrl": endpoint.url, **spoiled})
    world.tick()
    assert (ready(world)["status"], ready(world)["reason"]) == ("False", reason)
    assert said in ready(world)["message"]
    kind = "Reconciling" if reason == "TokenEndpointUnreachable" else "Stalled"
    assert world.conditions("move")[kind] == reason
    use(world, tokenEndpointUrl=endpoint.url)
    world.tick()
    assert ready(world)["reason"] == "Connected"


def test_an_endpoint_that_talks_nonsense_is_named(world: World, endpoint: TokenEndpoint) -> None:
    endpoint.other = (200, "<html>", {})
    world.tick()
    assert ready(world)["reason"] == "InvalidTokenResponse"


def test_a_new_client_secret_is_read_when_the_old_one_is_refused(
    world: World, endpoint: TokenEndpoint, secrets: dict[str, dict[str, bytes]]
) -> None:
    endpoint.secret = "a new one"
    world.tick()
    assert ready(world)["reason"] == "TokenRefused"
    secrets["oauth"] = {"secret": b"a new one"}
    world.tick()
    assert ready(world)["reason"] == "Connected"


def test_a_cluster_reachable_again_is_served_with_the_current_token(
    world: World, endpoint: TokenEndpoint, secrets: dict[str, dict[str, bytes]]
) -> None:
    def token_after(reachable: bool) -> str:
        world.brokers.reachable = reachable
        world.tick()
        return held(world.loop).token()

    assert [token_after(reachable) for reachable in (True, False, False, True)] == [TOKEN] * 4
    assert len(endpoint.asked) == 1
    secrets["oauth"] = {"secret": b"a new one"}
    world.brokers.reachable = False
    world.tick(2)
    assert endpoint.secret != "a new one"
    assert ready(world)["reason"] == "TokenRefused"


def test_a_refusal_while_the_token_is_valid_stops_nothing(
    world: World, endpoint: TokenEndpoint, secrets: dict[str, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    now = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: clock.now)
    monkeypatch.setattr(tokens, "time", now)
    given = count(1)
    endpoint.issue = lambda: {"access_token": f"{TOKEN}-{next(given)}", "expires_in": 300}
    look = world.brokers.observe

    async def observe(*arguments: Any) -> Snapshot:
        await held(world.loop).renew()
        return await look(*arguments)

    monkeypatch.setattr(world.brokers, "observe", observe)

    def token_after(seconds: float) -> str:
        clock.now += seconds
        world.tick()
        assert ready(world)["reason"] == "Connected"
        return held(world.loop).token()

    assert token_after(0) == f"{TOKEN}-1"
    endpoint.secret = "a new one"
    assert token_after(240) == f"{TOKEN}-1"
    secret = secrets.pop("oauth")
    assert token_after(30) == f"{TOKEN}-1"
    secrets["oauth"] = {**secret, "secret": b"a new one"}
    assert token_after(25) == f"{TOKEN}-1"
    assert token_after(5) == f"{TOKEN}-2"


def held(loop: ClusterLoop) -> OAuth:
    assert loop.observer.connection
    assert isinstance(loop.observer.connection.sasl, OAuth)
    return loop.observer.connection.sasl
