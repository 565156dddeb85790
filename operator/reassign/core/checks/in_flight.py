"""Whether the partition is free: not claimed by another resource, not moved by another client, not refused."""

from __future__ import annotations

from reassign.api.partition_reassignment import WhenInFlight
from reassign.core.checks.in_sync import cancel_problem
from reassign.core.checks.input import Input
from reassign.core.model.log_dirs import LogDirPlacement
from reassign.core.model.problem import Names, Problem, ids
from reassign.core.model.snapshot import Reassignment
from reassign.errors import Reason


def claim(i: Input) -> Problem | None:
    if i.claimed_by is None:
        return None
    return Problem(
        Reason.PARTITION_CLAIMED,
        "the PartitionReassignment ",
        Names((i.claimed_by,), "of another namespace"),
        " has it; wait until that one is settled, or remove the entry there",
    )


def in_flight_elsewhere(i: Input) -> Problem | None:
    move = i.in_flight
    if move is None or i.under_way:
        return None
    if i.supersedes:
        return cancel_problem(move.original, i.partition, i.topic.min_insync_replicas, i.snapshot.brokers)
    then = "that move hangs: cancel it, or set whenInFlight: Supersede" if move.hangs else "it starts after that move"
    return Problem(Reason.IN_FLIGHT_ELSEWHERE, f"another client is moving it ({describe(move)}); {then}")


def copied_elsewhere(i: Input) -> Problem | None:
    if i.resource.spec.when_in_flight is WhenInFlight.SUPERSEDE:
        return None
    return next((copy_of_others(place) for place in i.placements if place.copied_elsewhere), None)


def refusal(i: Input) -> Problem | None:
    """Wait before the next try: brokers or the API server refused, or another client repeats its move."""
    if problem := i.recent.waits(i.resource.uid):
        return problem
    if problem := i.recent.refusal(i.tp, i.target):
        return problem
    if i.supersedes and i.in_flight:
        return i.recent.refusal(i.tp, ()) or i.recent.refusal(i.tp, i.in_flight.target)
    return None


def copy_of_others(place: LogDirPlacement) -> Problem:
    """Return the problem of a copy between directories that another client has begun."""
    return Problem(
        Reason.IN_FLIGHT_ELSEWHERE,
        f"another client is copying the replica on broker {place.broker} from {place.current or 'its directory'} to "
        f"{place.future}; it starts after that copy",
    )


def describe(move: Reassignment) -> str:
    """Return a move in words, for a sentence."""
    return f"adding {ids(move.adding) or 'none'}, removing {ids(move.removing) or 'none'}"
