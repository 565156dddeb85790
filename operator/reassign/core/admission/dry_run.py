"""A dry run says what would become of each partition if it were to start now. It writes nothing to Kafka."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem, ids
from reassign.core.model.progress import amount, leader_bytes
from reassign.errors import Reason


def would_move(i: Input) -> Problem:
    """What would be copied to where, for a partition that passes all checks."""
    return Problem(Reason.WOULD_MOVE, _would_move(i))


def _would_move(i: Input) -> str:
    between_dirs = [place.broker for place in i.placements if place.copies]
    if between_dirs and not i.added:
        return f"would be copied to another log directory of broker {ids(between_dirs)}"
    if not i.added:
        return "would change without copying anything"
    if (size := leader_bytes(i.tp, i.snapshot)) is None:
        return f"would be copied to broker {ids(i.added)}"
    each = "each of the brokers" if len(i.added) > 1 else "broker"
    return f"would copy {amount(size)} to {each} {ids(i.added)}"
