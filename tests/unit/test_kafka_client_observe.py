"""A snapshot of a whole cluster, whose brokers do not describe their log directories."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from reassign.controller.planner import SECONDS
from reassign.kafka.client import TOGETHER_SECONDS, KafkaClient
from reassign.kafka.connection import Connection


class Silent:
    """A wire to brokers that do not describe their directories; each request takes all the time it is given."""

    def __init__(self, brokers: int) -> None:
        self.brokers = [SimpleNamespace(broker_id=id, rack=None, is_fenced=False) for id in range(brokers)]
        self.now = 1000.0
        self.asked: list[int] = []

    last = None

    def newest_version(self, api: object) -> int:
        return 1

    def read(self, make: Any) -> Any:
        return SimpleNamespace(error_code=0, error_message=None, topics=[], cluster_id="id", brokers=self.brokers)

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        self.asked.append(broker)
        self.now += seconds
        raise KafkaTimeoutError


def test_silent_brokers_delay_a_whole_snapshot_by_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire: Any = Silent(25)
    monkeypatch.setattr("reassign.kafka.client.time", SimpleNamespace(monotonic=lambda: wire.now))
    executor = ThreadPoolExecutor(1)  # one after another, so that their times add up
    client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
    snapshot = asyncio.run(client.observe_everything())
    executor.shutdown()
    assert wire.now - 1000 <= TOGETHER_SECONDS
    assert 0 < len(wire.asked) < 25
    assert (len(snapshot.brokers), snapshot.log_dirs) == (25, {})
    assert TOGETHER_SECONDS < SECONDS / 2, "a plan has time left after it"
