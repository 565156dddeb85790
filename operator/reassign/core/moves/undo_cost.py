"""Intermediate replicas (KIP-236): which replicas of a partition in flight may go, and what going back throws away.

Brokers never dropped them as the proposal would have, and an override in flight hangs on today's. So the algorithm
serves as a judge: it says which replicas a partition can do without, and which hold it up until others are back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reassign.core.model.problem import Problem, ids
from reassign.core.model.snapshot import Reassignment
from reassign.errors import Reason


def thrown_away(move: Reassignment, sizes: Mapping[int, int] | None, wanted: Iterable[int]) -> Problem:
    """What going back from a move costs, as a sentence; `wanted` are the replicas that it moves to next, if any."""
    going = move.adding
    if not going:
        return Problem(Reason.CANCELLING, "it goes back to its original replicas; nothing had to be copied")
    copied = f"{sum(sizes.get(b, 0) for b in going)} bytes" if sizes else "what was"
    sentence = f"it goes back to its original replicas; those on broker {ids(going)} go, and {copied} copied to them"
    if again := set(going) & set(wanted):
        sentence += f", which broker {ids(again)} copies once more"
    return Problem(Reason.CANCELLING, sentence)
