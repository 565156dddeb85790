"""The API server's clock, by which the times of its objects are written, creation and deletion among them.

The clocks of two machines differ, by minutes where nothing sets them. The API server's answers tell its time in whole
seconds. So our own clock counts, moved by as little as makes it agree with every answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import structlog

__all__ = ["ServerClock"]

WARN = timedelta(seconds=5)

log = structlog.get_logger(__name__)


def _wall() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """Tells the API server's time; our own until it has answered."""

    def __init__(self, wall: Callable[[], datetime] = _wall, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._ahead = timedelta(0)
        """By how much the API server's clock is ahead of ours."""

    def now(self) -> datetime:
        return self._wall() + self._ahead

    def sent(self) -> float:
        """Return the moment at which a request is sent, for `answered`."""
        return self._elapsed()

    def answered(self, date: str | None, sent: float) -> None:
        """Take over the Date of an answer: the API server wrote it after the request was sent, cut to a second."""
        try:
            server_time = parsedate_to_datetime(date or "").astimezone(UTC)
        except ValueError:
            return  # a proxy can leave it out
        least = server_time - self._wall()
        most = least + timedelta(seconds=1 + self._elapsed() - sent)
        ahead = max(least, min(self._ahead, most))
        if abs(ahead - self._ahead) > WARN:
            log.warning("the API server's clock counts", seconds_ahead_of_ours=round(ahead.total_seconds()))
        self._ahead = ahead
