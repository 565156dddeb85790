"""How near a move has come to its end, and since when it has not come nearer."""

from __future__ import annotations

from dataclasses import dataclass

REGAINED = 0.05
"""A move that had fallen behind comes nearer again once it has made up for this share of what it lacked."""
BLIND_SECONDS = 30.0
"""Longer than this between two looks, and nobody was looking: that time does not count."""


@dataclass(slots=True)
class Track:
    """How near a move to `target` has come, and since when it has not come nearer, by a monotonic clock.

    `gap` is what the replicas that lack something lacked then, in bytes, `worst` the most that they lacked since,
    and `copied` what they held; None where sizes are not known.
    """

    target: tuple[int, ...]
    since: float
    looked: float
    in_sync: int
    lacking: frozenset[int]
    gap: int | None = None
    worst: int | None = None
    copied: int = 0

    def look(self, lacking: frozenset[int], in_sync: int, gap: int | None, copied: int, now: float) -> None:
        if now - self.looked > BLIND_SECONDS:
            self.since += now - self.looked
        self.looked = now
        if in_sync > self.in_sync or self._nearer(gap):
            self.since, self.gap, self.worst, self.copied = now, gap, gap, copied
        elif gap is not None:
            self.worst = gap if self.worst is None else max(self.worst, gap)
        self.in_sync = max(self.in_sync, in_sync)
        if lacking != self.lacking:
            self.lacking, self.copied = lacking, copied

    def _nearer(self, gap: int | None) -> bool:
        if gap is None:
            return False
        if self.gap is None or self.worst is None or gap < self.gap:
            return True
        return self.worst > 0 and gap < self.worst * (1 - REGAINED)
