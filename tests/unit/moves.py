"""Four partitions on six brokers, and any three brokers as a target."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.unit.sim import partitions

ORIGINAL = dict(zip(partitions(4), [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5)], strict=True))
TARGETS = st.permutations(range(6)).map(lambda order: tuple(order[:3]))
