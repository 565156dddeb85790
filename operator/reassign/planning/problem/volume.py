"""Which log directories of a broker share a volume. Brokers do not report that; sizes and free bytes tell."""

from __future__ import annotations

MOST_VOLUME_BYTES = 1 << 53
"""The most that a volume counts for: network file systems report 2^63, and a broker can have several."""

SAME_VOLUME_BYTES = 16 * 2**20
"""How far free bytes of one volume may differ: directories are measured one after another, with writes in between."""


def shared(total: int, usable: int, other_total: int, other_usable: int) -> bool:
    """Return whether two directories of one broker that report these bytes are on one volume."""
    return total == other_total and abs(usable - other_usable) < SAME_VOLUME_BYTES
