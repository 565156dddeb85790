"""A dry run says what would become of each partition if it were to start now. It writes nothing to Kafka."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.progress import leader_bytes
from reassign.errors import Reason
from reassign.text import amount, named_brokers


def would_move(i: Input) -> Problem:
    """Say what would be copied to where, for a partition that passes all checks."""
    return Problem(Reason.WOULD_MOVE, _would_move(i))


def _would_move(i: Input) -> str:
    between_dirs = [place.broker for place in i.placements if place.copies]
    if between_dirs and not i.added:
        return f"would be copied to another log directory of {named_brokers(between_dirs)}"
    if not i.added:
        return "would change without copying anything"
    if (size := leader_bytes(i.tp, i.snapshot)) is None:
        return f"would be copied to {named_brokers(i.added)}"
    each = "each of " if len(i.added) > 1 else ""
    return f"would copy {amount(size)} to {each}{named_brokers(i.added)}"
