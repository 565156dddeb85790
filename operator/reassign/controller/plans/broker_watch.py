"""Reads where replicas are, and which brokers are cordoned, beside the loop of one KafkaCluster, while its
BrokerDecommissions and ReassignmentPolicies need it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from reassign.controller.plans.job import CONNECT_SECONDS
from reassign.core.automation.seen import BrokersMemory, BrokersRead, CordonsRead, logs_wanted
from reassign.core.cluster import check_identity
from reassign.core.model.problem import Problem
from reassign.core.model.progress import duration
from reassign.core.model.snapshot import Snapshot
from reassign.errors import ClusterError, Reason
from reassign.inspect.cluster import read_only
from reassign.kafka.client import KafkaClient
from reassign.kafka.connection import Connection

READING_SECONDS = 100.0
"""What one reading may take."""
RETRY_SECONDS = 5.0
"""How long after a reading that failed, or that showed brokers come or go, the next one begins."""


@dataclass(slots=True)
class BrokerWatch:
    """Reads with a client of its own: a broker answers the requests of one connection in turn, and one that does not
    answer in time delays nothing else."""

    explain: Callable[[Exception], Problem]
    memory: BrokersMemory = field(default_factory=BrokersMemory)
    failed: Problem | None = None
    """Why the last reading failed."""
    _at: float = float("-inf")
    """When the last reading of all began."""
    _cordons_at: float = float("-inf")
    """When the last reading of cordons began, with all else or alone."""
    _expired: bool = False
    _task: asyncio.Task[BrokersRead | CordonsRead] | None = None

    def look(
        self,
        connection: Connection,
        pinned: str | None,
        emptied: Collection[int],
        snapshot: Snapshot,
        seconds: float,
        wake: Callable[[], object],
        cordons: float = inf,
    ) -> float | None:
        """Take over what was read, and begin with the next reading where it is due; return in how many seconds it is.

        It is due `seconds` after the last one began, and when brokers have come or gone since. `emptied` are the
        brokers whose logs are to be read; `wake` is called when the reading has ended. In between it is read every
        `cordons` seconds which brokers are cordoned.
        """
        if self._task and self._task.done():
            self._take(self._task)
        if self._task:
            return None
        if self.failed or self.memory.differs(snapshot):
            seconds = min(seconds, RETRY_SECONDS)
        elif self._expired:
            seconds = 0
        now = time.monotonic()
        left, cordons_left = self._at + seconds - now, self._cordons_at + cordons - now
        if left > 0 and cordons_left > 0:
            return min(left, cordons_left)
        self._cordons_at = now
        if left > 0:
            reading: Coroutine[Any, Any, BrokersRead | CordonsRead] = _read_cordons(connection, pinned, now)
        else:
            self._at, self._expired = now, False
            reading = _read(connection, pinned, emptied, now)
        self._task = asyncio.create_task(reading, name="brokers")
        self._task.add_done_callback(lambda ended: _end(ended, wake))
        return None

    def expire(self) -> None:
        """Have the next reading begin at once: replicas have moved since the last one."""
        self._expired = True

    def _take(self, task: asyncio.Task[BrokersRead | CordonsRead]) -> None:
        self._task = self.failed = None
        try:
            found = task.result()
            memory = self.memory
            self.memory = memory.take(found) if isinstance(found, BrokersRead) else memory.take_cordons(found)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self.failed = self.explain(error)

    async def stop(self) -> None:
        """End the reading under way, with its connection closed."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])


def _end(task: asyncio.Task[BrokersRead | CordonsRead], wake: Callable[[], object]) -> None:
    if not task.cancelled():
        task.exception()  # it is taken at the next look, if there is one
    wake()


async def _read(connection: Connection, pinned: str | None, emptied: Collection[int], at: float) -> BrokersRead:
    async with _connected(connection, "where the replicas of all brokers are") as client:
        found = await client.observe_brokers(lambda layout: logs_wanted(layout, emptied))
    check_identity(pinned, found.layout.cluster_id)
    return replace(found, at=at)


async def _read_cordons(connection: Connection, pinned: str | None, at: float) -> CordonsRead:
    async with _connected(connection, "which brokers are cordoned") as client:
        cluster_id, found = await client.observe_cordons()
    check_identity(pinned, cluster_id)
    return CordonsRead(found, at)


@asynccontextmanager
async def _connected(connection: Connection, what: str) -> AsyncIterator[KafkaClient]:
    """Connect for one reading, which may take so long; raises ClusterError where it does not end in time."""
    try:
        async with asyncio.timeout(READING_SECONDS), read_only(connection, CONNECT_SECONDS) as client:
            yield client
    except TimeoutError:
        message = f"{what} could not be read within {duration(READING_SECONDS)}"
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, message) from None
