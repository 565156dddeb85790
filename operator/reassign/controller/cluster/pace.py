"""Pace: how soon to tick again while something moves, and how often to judge what has ended.

The end of quick moves is looked for at once, and that of slow ones ever later, so that a place is never free for long
and slow moves cost little. Between two ticks one broker is asked whether a move has ended, which costs one request and
not a whole observation. Drift is looked for now and then, and less often where that costs much.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import TopicPartition

AT_ONCE_SECONDS = 0.1
MOVING_SECONDS = 1.0
POLL_SECONDS = 0.2
POLL_SHARE = 0.05
"""Of the time since a move began or ended, how late the next end is noticed: slow moves are not polled for."""
DRIFT_SECONDS = 15.0
DRIFT_SHARE = 0.02
"""Of a core, at most, for judging what has ended."""
DRIFT_PARTITIONS = 5000
"""Partitions that are judged for drift in one reconciliation, as far as their resources are not larger: the event loop
does nothing else meanwhile."""


def poll_seconds(quiet: float) -> float:
    """Return after how many seconds to ask whether a move has ended, when none began or ended for `quiet` seconds."""
    return max(POLL_SECONDS, quiet * POLL_SHARE)


@dataclass(slots=True)
class Pace:
    """At once after a tick in which something happened; then each time twice as long, up to MOVING_SECONDS."""

    _pause: float = MOVING_SECONDS
    _listed: Set[TopicPartition] = frozenset()
    _happened: float = field(default_factory=time.monotonic)
    """When something happened at last."""

    def ended(self, listed: Set[TopicPartition]) -> bool:
        """Whether a move, of any client, has ended since the last tick; `listed` are those in flight now."""
        before, self._listed = self._listed, frozenset(listed)
        return not before <= self._listed

    def at_once(self) -> float:
        """Return the pause after something happened, since more may follow."""
        self._pause, self._happened = AT_ONCE_SECONDS, time.monotonic()
        return self._pause

    def later(self, took: float) -> float:
        """Return the pause after a tick in which nothing happened: as long as it took, a second at most."""
        self._pause = min(2 * self._pause, MOVING_SECONDS)
        return min(max(self._pause, took), MOVING_SECONDS)

    async def rest(
        self, pause: float, wake: asyncio.Event, has_ended: Callable[[Set[TopicPartition]], Awaitable[bool]]
    ) -> None:
        """Wait for the pause, or until woken. While moves are followed, the end of one of them ends the pause too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                while self._listed and pause <= MOVING_SECONDS:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(poll_seconds(time.monotonic() - self._happened)):
                            await wake.wait()
                            return
                    if await has_ended(self._listed):
                        return
                await wake.wait()


@dataclass(slots=True)
class DriftTurn:
    """Whether a tick judges resources that are settled, and which: all in turn, the oldest first."""

    now: bool = False
    _due: float = float("-inf")
    _last: tuple[datetime, str] | None = None
    """The last one that was judged; None at the beginning of a round."""

    @contextmanager
    def tick(self) -> Iterator[None]:
        """Measure the CPU of a tick: it says when the next one judges more resources."""
        self.now = time.monotonic() >= self._due
        cpu = time.process_time()
        try:
            yield
        finally:
            if self.now:
                cost = time.process_time() - cpu
                self._due = time.monotonic() + max(DRIFT_SECONDS, cost / DRIFT_SHARE)

    def next(self, resources: Sequence[Resource | Settled]) -> list[str]:
        """Return the uids of the resources whose turn it is, of all that can be judged for drift."""
        by_age = sorted(resources, key=lambda resource: resource.age_key)
        left = [r for r in by_age if self._last is None or r.age_key > self._last]
        turn: list[Resource | Settled] = []
        partitions = 0
        for resource in left or by_age:
            partitions += resource.partitions
            if turn and partitions > DRIFT_PARTITIONS:
                break
            turn.append(resource)
        self._last = turn[-1].age_key if turn and turn[-1] is not by_age[-1] else None
        return [resource.uid for resource in turn]
