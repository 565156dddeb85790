"""How near a move has come to its end, and since when it has not come nearer.

A move comes nearer when more of its target is in sync than ever before, or when its replicas lack fewer bytes of the
leader's than before. Bytes alone do not count: a replica that copies no faster than its leader is written to never
catches up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

REGAINED = 0.05
"""A move that had fallen behind comes nearer again once it has regained this share of what it lacked."""
BLIND_SECONDS = 30.0
"""Time between two observations that are further apart does not count towards a stall."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a move is from its end at one observation."""

    in_sync: int
    lacking: frozenset[int]
    """Brokers whose replica is not in sync."""
    gap: int | None = None
    """Bytes that these replicas lack; None where sizes are not known."""
    copied: int = 0
    """Bytes that these replicas hold."""


@dataclass(frozen=True, slots=True)
class Track:
    """How near a move has come, and since when it has not come nearer, by a monotonic clock."""

    target: tuple[int, ...]
    since: float
    """When the move last came nearer."""
    observed: float
    in_sync: int
    lacking: frozenset[int]
    gap: int | None = None
    """Bytes that the replicas lacked then; None where sizes are not known."""
    worst: int | None = None
    """The most bytes that the replicas have lacked since then."""
    copied: int = 0
    """Bytes that the replicas held then."""

    @classmethod
    def begin(cls, target: tuple[int, ...], now: float, distance: Distance) -> Track:
        return cls(target, now, now, distance.in_sync, distance.lacking, distance.gap, distance.gap, distance.copied)

    def observe(self, now: float, distance: Distance) -> Track:
        """Return the track after one more observation."""
        blind = now - self.observed if now - self.observed > BLIND_SECONDS else 0.0
        track = replace(self, since=self.since + blind, observed=now)
        gap = distance.gap
        if distance.in_sync > self.in_sync or self._nearer(gap):
            track = replace(track, since=now, gap=gap, worst=gap, copied=distance.copied)
        elif gap is not None:
            track = replace(track, worst=gap if self.worst is None else max(self.worst, gap))
        if distance.lacking != self.lacking:
            track = replace(track, lacking=distance.lacking, copied=distance.copied)
        return replace(track, in_sync=max(self.in_sync, distance.in_sync))

    def _nearer(self, gap: int | None) -> bool:
        if gap is None:
            return False
        if self.gap is None or self.worst is None or gap < self.gap:
            return True
        return self.worst > 0 and gap < self.worst * (1 - REGAINED)
