"""Which log directories of a broker share a volume: none says so, what they report tells it."""

from __future__ import annotations

SAME_VOLUME_BYTES = 16 * 2**20
"""Two directories of one volume are measured one after another, and something is written in between."""


def shared(total: int, usable: int, other_total: int, other_usable: int) -> bool:
    """Whether two directories of one broker that report these bytes are on one volume."""
    return total == other_total and abs(usable - other_usable) < SAME_VOLUME_BYTES
