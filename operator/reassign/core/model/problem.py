"""A problem: why something cannot be done now, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reassign.errors import Reason
from reassign.text import listed


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a partition cannot be moved now, with a sentence that says what to do."""

    reason: Reason
    message: str


MAX_NAMED = 20
"""More than a partition's target can have."""


def ids(brokers: Iterable[int]) -> str:
    """Broker ids for a sentence; of a large cluster some, and how many more there are."""
    return listed(sorted(brokers), most=MAX_NAMED)
