"""What a KafkaCluster says of a Secret that holds nothing, before anything is connected to."""

from __future__ import annotations

from typing import Any

import pytest

from reassign.kafka.client import KafkaClient
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
