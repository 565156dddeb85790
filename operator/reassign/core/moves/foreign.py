"""What others have in flight: wait for it, fail because of it, or cancel it to make way (whenInFlight, admission).

A move that is superseded is cancelled and confirmed first; ours is submitted after that, as any other, so that its
record holds the replicas that the other one started from. Every check judges before the other move is touched.
"""

from __future__ import annotations

from reassign.api.partition_reassignment import Admission, PartitionState, RecordState, WhenInFlight
from reassign.core.checks.budget import Budget, waiting
from reassign.core.checks.chain import Candidate, describe
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, active, recorded
from reassign.core.model.steps import Cancel
from reassign.core.model.verdict import Verdict
from reassign.core.moves.undo_cost import thrown_away
from reassign.errors import Reason


def fails(candidate: Candidate, problem: Problem) -> bool:
    """Whether a problem is one that an entry does not wait for."""
    return problem.reason is Reason.IN_FLIGHT_ELSEWHERE and candidate.when_in_flight is WhenInFlight.FAIL


def waits_for_idle(verdict: Verdict, budget: Budget) -> Problem | None:
    """Why a resource that starts on an idle cluster only may not begin; once it has something active, it goes on.

    `budget` counts what is in flight on the cluster, and what may be.
    """
    if verdict.resource.spec.admission is Admission.ALWAYS or not budget.partitions or active(verdict.record):
        return None
    return Problem(Reason.WAITING_FOR_IDLE, "others have partitions in flight on the cluster; it starts when none is")


def supersede(verdict: Verdict, candidate: Candidate, budget: Budget, own: Budget) -> None:
    """Cancel somebody else's move of a partition, where there is room for ours instead; where it goes to the same
    end in the same order, take it over as it is, since a cancel would only throw away what it has copied."""
    tp, source, theirs = candidate.tp, candidate.partition.leader, candidate.in_flight
    assert theirs is not None
    budget.give_back(theirs.adding, source)
    lack = own.lacks(candidate.added, source)
    if not lack and not candidate.under_way:
        lack = budget.lacks(candidate.added, source)
    budget.take(theirs.adding, source)
    if lack:
        verdict.waiting[tp] = (PartitionState.PENDING, waiting(lack))
        return
    own.take(candidate.added, source)
    entry = Entry(candidate.topic.id, theirs.original, candidate.target, RecordState.IN_FLIGHT)
    if candidate.under_way:
        verdict.record[tp] = entry.to(RecordState.IN_FLIGHT, recorded(Reason.ORDER_UNKNOWN))
        return
    budget.take(candidate.added, source)  # beside theirs, which is in flight until its cancel is confirmed
    verdict.record[tp] = entry.to(RecordState.CANCELLING, recorded(Reason.SUPERSEDING))
    cost = thrown_away(theirs, candidate.sizes, candidate.target).message
    verdict.notes[tp] = Problem(
        Reason.SUPERSEDING, f"somebody else's move ({describe(theirs)}) is cancelled before its own begins: {cost}"
    )
    verdict.steps.append(Cancel.of(tp, theirs))
