"""A dry run: judge every entry as if it were to start now, and write nothing to Kafka.

It has no record, needs no finalizer and claims no partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from reassign.api.partition_reassignment import PartitionState
from reassign.core.checks.chain import Candidate, first_problem
from reassign.core.checks.disk import Room
from reassign.core.model.problem import Problem, ids
from reassign.core.model.progress import amount, leader_bytes
from reassign.errors import Reason


def rehearse(candidate: Candidate, room: Room) -> tuple[PartitionState, Problem | None]:
    """What would become of a partition; `room` is what is left by those rehearsed before."""
    if candidate.done:
        return PartitionState.COMPLETED, None
    if problem := first_problem(candidate) or room.silent(candidate) or room.lacks(candidate):
        return PartitionState.BLOCKED, problem
    room.take(candidate)
    between_dirs = [place.broker for place in candidate.placements if place.copies]
    return PartitionState.PENDING, Problem(Reason.WOULD_MOVE, _would_move(candidate, between_dirs))


def _would_move(candidate: Candidate, between_dirs: Sequence[int]) -> str:
    size = leader_bytes(candidate.tp, candidate.snapshot)
    if between_dirs and not candidate.added:
        return f"would be copied to another log directory of broker {ids(between_dirs)}"
    if not candidate.added:
        return "would change without copying anything"
    if size is None:
        return f"would be copied to broker {ids(candidate.added)}"
    each = "each of the brokers" if len(candidate.added) > 1 else "broker"
    return f"would copy {amount(size)} to {each} {ids(candidate.added)}"
