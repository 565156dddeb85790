"""Pace: how soon to tick again while something moves, and how often to judge what has ended.

The end of quick moves is looked for at once, and that of slow ones ever later, so that a place is never free for long
and slow moves cost little. Drift is looked for now and then, and less often where that costs much.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass

from reassign.core.model.snapshot import TopicPartition

AT_ONCE_SECONDS = 0.1
MOVING_SECONDS = 1.0
DRIFT_SECONDS = 15.0
DRIFT_SHARE = 0.02
"""Of a core, at most, for judging all resources."""


@dataclass(slots=True)
class Pace:
    """At once after a tick in which something happened; then each time twice as long, up to MOVING_SECONDS."""

    _pause: float = MOVING_SECONDS
    _listed: Set[TopicPartition] = frozenset()

    def ended(self, listed: Set[TopicPartition]) -> bool:
        """Whether a move, of any client, has ended since the last tick; `listed` are those in flight now."""
        before, self._listed = self._listed, frozenset(listed)
        return not before <= self._listed

    def at_once(self) -> float:
        """Something happened, and more may follow."""
        self._pause = AT_ONCE_SECONDS
        return self._pause

    def later(self, took: float) -> float:
        """Nothing happened in a tick that took so long: the brokers rest at least as long."""
        self._pause = min(2 * self._pause, MOVING_SECONDS)
        return min(max(self._pause, took), MOVING_SECONDS)


@dataclass(slots=True)
class DriftTurn:
    """Whether a tick judges all resources, those that are settled too."""

    now: bool = False
    _due: float = float("-inf")

    @contextmanager
    def tick(self) -> Iterator[None]:
        """One tick: how much CPU it takes says when the next one judges all again."""
        self.now = time.monotonic() >= self._due
        cpu = time.process_time()
        try:
            yield
        finally:
            if self.now:
                cost = time.process_time() - cpu
                self._due = time.monotonic() + max(DRIFT_SECONDS, cost / DRIFT_SHARE)
