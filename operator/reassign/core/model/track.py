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
    """How far a move is from its end at one observation.

    `lacking` are the brokers whose replica is not in sync. `gap` is the bytes that they lack, `copied` the bytes
    that they hold; `gap` is None where sizes are not known.
    """

    in_sync: int
    lacking: frozenset[int]
    gap: int | None = None
    copied: int = 0


@dataclass(frozen=True, slots=True)
class Track:
    """How near a move to `target` has come, and `since` when it has not come nearer, by a monotonic clock.

    `gap` is what the replicas lacked at `since`, in bytes, `worst` the most that they lacked since then, and `copied`
    what they held; None where sizes are not known.
    """

    target: tuple[int, ...]
    since: float
    observed: float
    in_sync: int
    lacking: frozenset[int]
    gap: int | None = None
    worst: int | None = None
    copied: int = 0

    @classmethod
    def begin(cls, target: tuple[int, ...], now: float, distance: Distance) -> Track:
        return cls(target, now, now, distance.in_sync, distance.lacking, distance.gap, distance.gap, distance.copied)

    def observe(self, now: float, distance: Distance) -> Track:
        """The track after one more observation."""
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
