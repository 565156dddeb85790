"""What a KafkaCluster says of a Secret that holds nothing, or a line break too many."""

from __future__ import annotations

from typing import Any

import pytest

from reassign.errors import ClusterError, Reason
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection, Sasl
from reassign.kafka.credentials import refused_password
from tests.unit.world import World

CA = {"caSecretRef": {"name": "kafka", "key": "ca.crt"}}
CERTIFICATE = {"certificateSecretRef": {"name": "kafka"}}
USER = {"mechanism": "PLAIN", "username": "operator", "passwordSecretRef": {"name": "kafka", "key": "password"}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    async def secret(*_: str) -> dict[str, bytes]:
        return dict.fromkeys(("ca.crt", "tls.crt", "tls.key", "password"), b"")

    async def connect(*_: object, **__: object) -> Any:
        return world.brokers

    monkeypatch.setattr(world.kube, "secret", secret, raising=False)
    monkeypatch.setattr(KafkaClient, "connect", connect)
    return world


@pytest.mark.parametrize(
    ("spec", "key"),
    [({"tls": CA}, "ca.crt"), ({"tls": CERTIFICATE}, "tls.crt"), ({"sasl": USER}, "password")],
    ids=["the CA", "a certificate", "a password"],
)
def test_an_empty_key_of_a_secret_is_named(world: World, spec: dict[str, Any], key: str) -> None:
    world.change("main", lambda obj: obj["spec"].update(spec))
    world.tick()
    assert world.conditions("main") == {"Stalled": "InvalidSecret"}
    assert world.conditions("move")["Stalled"] == "InvalidSecret"
    said = (world.store.get("uid-main") or {})["status"]["conditions"][0]["message"]
    assert said == f"key {key} of the Secret kafka/kafka is empty; fill it in"


SECRET_USER = {"usernameSecretRef": {"name": "kafka", "key": "user"}}
LINE_BREAK = "as `echo` and editors write one: store the value without it"


@pytest.mark.parametrize(
    ("user", "password", "said"),
    [
        (b"mover", b"hunter2\n", f"key password of the Secret kafka/kafka ends with a line break, {LINE_BREAK}"),
        (b"mover", b"hunter2\r\n", f"key password of the Secret kafka/kafka ends with a line break, {LINE_BREAK}"),
        (b"mover\n", b"hunter2", f"key user of the Secret kafka/kafka ends with a line break, {LINE_BREAK}"),
        (
            b"mover\n",
            b"hunter2\n",
            "key user of the Secret kafka/kafka and key password of the Secret kafka/kafka end with a line break",
        ),
        (b"mover", b"hunt\ner2", "see that the brokers have this user, with this password, for SCRAM-SHA-512"),
    ],
    ids=["password", "of Windows", "user", "both", "neither"],
)
def test_a_refused_user_is_told_of_line_breaks(
    world: World, monkeypatch: pytest.MonkeyPatch, user: bytes, password: bytes, said: str
) -> None:
    async def secret(*_: str) -> dict[str, bytes]:
        return {"user": user, "password": password}

    async def refuse(connection: Connection, **_: object) -> Any:
        assert isinstance(connection.sasl, Sasl)
        used = (connection.sasl.username, connection.sasl.password)
        assert used == (user.decode(), password.decode()), "they are used as they are"
        raise refused_password(ClusterError(Reason.AUTHENTICATION_FAILED, "refused"), connection.sasl)

    monkeypatch.setattr(world.kube, "secret", secret)
    monkeypatch.setattr(KafkaClient, "connect", refuse)
    sasl = {"mechanism": "SCRAM-SHA-512", "passwordSecretRef": USER["passwordSecretRef"], **SECRET_USER}
    world.change("main", lambda obj: obj["spec"].update(sasl=sasl))
    world.tick()
    assert world.conditions("main") == {"Stalled": "AuthenticationFailed"}
    message = (world.store.get("uid-main") or {})["status"]["conditions"][0]["message"]
    assert message.startswith(f"refused; {said}")
    assert "hunt" not in message
