"""Brokers whose registration is taken away (UnregisterBroker, KIP-631)."""

from __future__ import annotations

from reassign.kafka import requests
from tests.kafka.harness import Kafka, eventually

NOT_REGISTERED = 102


def unregister(kafka: Kafka, broker: int) -> int:
    code, _ = requests.unregister(kafka.client._wire, broker, lambda: None)
    return code


def test_a_broker_that_is_down_is_unregistered_until_it_starts_again(kafka: Kafka) -> None:
    kafka.brokers.shut_down(3)
    try:
        eventually(lambda: 3 not in kafka.brokers.registered())
        assert unregister(kafka, 3) == 0
        eventually(lambda: 3 not in kafka.observe().brokers)
        assert unregister(kafka, 3) == NOT_REGISTERED
    finally:
        kafka.brokers.restart(3)
    eventually(lambda: not kafka.observe().brokers[3].fenced)


def test_what_was_never_registered_is_said_to_be_so(kafka: Kafka) -> None:
    assert unregister(kafka, 77) == NOT_REGISTERED
    assert unregister(kafka, kafka.brokers.controllers[0]) == NOT_REGISTERED
