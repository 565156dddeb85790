"""When metadata counts: a broker fetches the metadata log behind the controller, and applies it behind that.

The list of what is in flight comes from the controller. The end of the log, read behind a list, has all that this list
shows. So metadata is as new as the list once its broker has fetched that end and has had `SETTLE_SECONDS` to apply it.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from reassign.core.model.forwarding import SETTLE_SECONDS, Forwarded


class Awaited(NamedTuple):
    """What metadata is to show: since when, by a monotonic clock, and the end of the log that has it, if known."""

    since: float
    end: int | None = None
    behind: float | None = None
    """Since when the broker whose metadata is read has been seen not to have fetched the end."""

    def observe(self, began: float, forwarded: Forwarded) -> Awaited:
        """Return what is awaited after an observation that began then, and whose list shows that it has ended.

        The end that was read just now is not late yet, if it is fetched by the next observation. Where the next answer
        is lost, time counts from when the broker was last seen behind; once it suffices, the broker is not behind.
        """
        if forwarded.offsets is None:
            since = self.since if self.behind is None else max(self.since, self.behind)
            return self._replace(since=since, behind=None if began - since >= SETTLE_SECONDS else self.behind)
        end = forwarded.offsets.end
        if self.end is not None:
            end = min(self.end, end)  # a log that shrinks was misread before
        known = self._replace(end=end)
        if not known.is_behind(forwarded):
            return known._replace(behind=None)
        since = self.since if self.end is None else began
        return known._replace(since=since, behind=began if self.behind is None else self.behind)

    def of_another(self) -> Awaited:
        """Return what is awaited of another broker: it has not been seen behind yet."""
        return self._replace(behind=None)

    def is_behind(self, forwarded: Forwarded) -> bool:
        """Whether the broker whose metadata was read is known not to have fetched the end."""
        return self.end is not None and forwarded.fetched is not None and forwarded.fetched < self.end

    def is_shown(self, now: float, forwarded: Forwarded) -> bool:
        """Whether an observation at this moment shows it; where offsets are not known, only by the time."""
        return now - self.since >= SETTLE_SECONDS and not self.is_behind(forwarded)

    def is_late(self, now: float, seconds: float) -> bool:
        """Whether the broker has been behind for so long."""
        return self.behind is not None and now - self.behind >= seconds


NOTHING_AWAITED = Awaited(-inf)
