"""When all brokers are read beside the loop, and what becomes of a reading that fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf

import pytest

from reassign.controller.plans import broker_watch
from reassign.controller.plans.broker_watch import READING_SECONDS, RETRY_SECONDS, BrokerWatch
from reassign.core.automation.seen import BrokersRead, CordonsRead
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.problem import Problem, error_problem
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from reassign.errors import ClusterError, Reason, ReassignError
from reassign.kafka.connection import Connection
from tests.unit.sim import SimKafka

WAY = Connection("b:9092")
SECONDS = 15.0


class Watched:
    """A watch, brokers that it reads, and a clock that goes on by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.kafka = SimKafka({TopicPartition("a", 0): (1, 2)})
        self.read: list[float] = []
        self.cordons_read: list[float] = []
        self.asked: list[set[int]] = []
        self.closed = self.woken = 0
        self.ended = asyncio.Event()
        self.fails: Exception | None = None
        self.hangs = False
        self.cluster_id = "sim"
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(broker_watch, "read_only", self._client)
        self.watch = BrokerWatch(self._explained)

    def _explained(self, error: Exception) -> Problem:
        assert isinstance(error, ReassignError)
        return error_problem(error)

    @asynccontextmanager
    async def _client(self, *_: object) -> AsyncIterator[Watched]:
        try:
            yield self
        finally:
            self.closed += 1

    async def observe_brokers(self, logs_of: Callable[[Layout], Collection[int]]) -> BrokersRead:
        self.read.append(self.now)
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise self.fails
        found = replace(layout_seen(self.snapshot), cluster_id=self.cluster_id)
        self.asked.append({*logs_of(found)})
        return BrokersRead(found)

    async def observe_cordons(self) -> tuple[str, dict[int, bool | None]]:
        self.cordons_read.append(self.now)
        if self.fails:
            raise self.fails
        return self.cluster_id, {1: True}

    @property
    def snapshot(self) -> Snapshot:
        return replace(self.kafka.snapshot(), lists_fenced=True)

    def look(self, emptied: Collection[int] = (1,), cordons: float = inf) -> float | None:
        return self.watch.look(WAY, "sim", emptied, self.snapshot, SECONDS, self._wake, cordons)

    def _wake(self) -> None:
        self.woken += 1
        self.ended.set()

    async def reading(self) -> None:
        """Look, and look again once what that began has ended."""
        self.look()
        await self.settled()
        self.look()

    async def settled(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_the_first_look_reads_at_once_and_wakes_the_loop(watched: Watched) -> None:
    async def looks() -> None:
        assert watched.look() is None
        assert watched.watch.memory.read is None
        await watched.settled()
        assert (watched.read, watched.woken, watched.closed) == ([1000.0], 1, 1)
        assert watched.look() == SECONDS
        assert watched.watch.memory.read
        assert watched.watch.memory.read.at == 1000.0

    asyncio.run(looks())


def test_the_next_reading_is_due_that_long_after_the_last_began(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.now += SECONDS - 1
        assert watched.look() == 1
        watched.now += 1
        assert watched.look() is None
        assert watched.look() is None, "it is under way"
        await watched.settled()
        assert watched.read == [1000.0, 1000.0 + SECONDS]

    asyncio.run(looks())


def test_a_change_of_brokers_is_read_soon(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.kafka.brokers[1] = Broker(1, "r1", fenced=True)
        assert watched.look() == RETRY_SECONDS
        watched.now += RETRY_SECONDS
        await watched.reading()
        assert watched.look() == SECONDS

    asyncio.run(looks())


def test_a_reading_that_fails_says_why_and_is_tried_again_soon(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        before = watched.watch.memory
        watched.now += SECONDS
        watched.fails = ClusterError(Reason.NOT_AUTHORIZED, "it may not")
        await watched.reading()
        assert watched.watch.failed
        assert watched.watch.failed.message == "it may not"
        assert watched.watch.memory == before
        assert watched.look() == RETRY_SECONDS
        watched.now += RETRY_SECONDS
        watched.fails = None
        await watched.reading()
        assert watched.watch.failed is None

    asyncio.run(looks())


def test_what_has_expired_is_read_at_once(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.watch.expire()
        watched.now += 1
        await watched.reading()
        assert len(watched.read) == 2
        assert watched.look() == SECONDS

    asyncio.run(looks())


def test_what_expires_while_it_is_read_is_read_once_more(watched: Watched) -> None:
    async def looks() -> None:
        watched.look()
        await asyncio.sleep(0)
        watched.watch.expire()
        await watched.settled()
        watched.now += 1
        watched.look()
        await watched.settled()
        assert len(watched.read) == 2

    asyncio.run(looks())


def test_other_brokers_behind_the_address_are_a_failure(watched: Watched) -> None:
    async def looks() -> None:
        watched.cluster_id = "another"
        await watched.reading()
        assert watched.watch.failed
        assert watched.watch.failed.reason is Reason.CLUSTER_ID_CHANGED
        assert watched.watch.memory.read is None

    asyncio.run(looks())


def test_a_reading_that_takes_too_long_is_a_failure(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_watch, "READING_SECONDS", 0.0)

    async def looks() -> None:
        watched.hangs = True
        watched.look()
        await watched.ended.wait()
        watched.look()
        assert watched.watch.failed
        assert watched.watch.failed.reason is Reason.CLUSTER_UNREACHABLE
        assert watched.closed == 1

    asyncio.run(looks())
    assert READING_SECONDS > 0


def test_stopping_ends_the_reading_under_way(watched: Watched) -> None:
    async def looks() -> None:
        watched.hangs = True
        watched.look()
        await watched.settled()
        await watched.watch.stop()
        assert watched.closed == 1
        watched.hangs = False
        watched.now += SECONDS
        await watched.reading()
        assert (watched.watch.failed, len(watched.read)) == (None, 2)
        await watched.watch.stop()

    asyncio.run(looks())


def test_the_logs_that_are_read_are_those_of_the_emptied(watched: Watched) -> None:
    async def looks() -> None:
        watched.look([1, 2])
        await watched.settled()
        assert watched.asked == [{1, 2}]

    asyncio.run(looks())


def test_cordons_are_read_in_between(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.now += 4
        assert watched.look(cordons=5) == 1
        watched.now += 1
        assert watched.look(cordons=5) is None
        await watched.settled()
        assert watched.look(cordons=5) == 5
        assert (watched.read, watched.cordons_read, watched.woken) == ([1000.0], [1005.0], 2)
        assert watched.watch.memory.cordons == CordonsRead({1: True}, 1005.0)
        watched.now += SECONDS - 5
        assert watched.look(cordons=5) is None
        await watched.settled()
        assert watched.look(cordons=5) == 5  # all was read, and cordons with it
        assert (len(watched.read), len(watched.cordons_read)) == (2, 1)

    asyncio.run(looks())


def test_after_a_reading_of_cordons_that_failed_all_is_read(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.now += 5
        watched.fails = ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")
        watched.look(cordons=5)
        await watched.settled()
        watched.fails = None
        watched.now += RETRY_SECONDS
        watched.look(cordons=60)
        assert watched.watch.failed
        await watched.settled()
        watched.look(cordons=60)
        assert (watched.watch.failed, len(watched.read)) == (None, 2)

    asyncio.run(looks())


def test_cordons_of_another_cluster_are_not_taken_over(watched: Watched) -> None:
    async def looks() -> None:
        await watched.reading()
        watched.now += 5
        watched.cluster_id = "another"
        watched.look(cordons=5)
        await watched.settled()
        watched.look(cordons=5)
        assert watched.watch.failed
        assert watched.watch.memory.cordons.at == 1000.0

    asyncio.run(looks())
