"""The API server's clock, by which the times of its objects are written, creation and deletion among them.

The clocks of two machines differ, by minutes where nothing sets them, and several API servers can answer in turns. So
a monotonic clock counts, moved by the least that an answer of the last ten minutes told: no deadline passes early, and
none jumps when another API server answers, or when a clock is set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import structlog

__all__ = ["ServerClock"]

WARN_SECONDS = 5.0
MINUTES = 10

log = structlog.get_logger(__name__)


def _wall() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """Tells the API server's time, never ahead by more than an answer takes; our own until it has answered."""

    def __init__(self, wall: Callable[[], datetime] = _wall, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._offsets: dict[int, float] = {}
        """By the minute in which they were heard, the least offsets: the time of day less the monotonic clock."""
        self._ahead = 0.0
        """By how many seconds the API server's clock was ahead of our own, as it was logged last."""

    def now(self) -> datetime:
        if not self._offsets:
            return self._wall()
        return datetime.fromtimestamp(min(self._offsets.values()) + self._elapsed(), UTC)

    def sent(self) -> float:
        """Return the moment at which a request is sent, for `answered`."""
        return self._elapsed()

    def answered(self, date: str | None, sent: float) -> None:
        """Take over the Date of an answer: the API server wrote it after the request was sent, cut to a second."""
        try:
            server_time = parsedate_to_datetime(date or "").astimezone(UTC)
        except (ValueError, OverflowError):
            return  # a proxy can leave it out, or make it up
        offset, minute = server_time.timestamp() - sent, int(self._elapsed() // 60)
        kept = {heard: least for heard, least in self._offsets.items() if minute - heard < MINUTES}
        self._offsets = {**kept, minute: min(offset, kept.get(minute, offset))}
        ahead = (self.now() - self._wall()).total_seconds()
        if abs(ahead - self._ahead) > WARN_SECONDS:
            log.warning("the API server's clock counts", seconds_ahead_of_ours=round(ahead))
            self._ahead = ahead
