"""Supersede: cancel another client's move of a partition, so that ours can begin (whenInFlight: Supersede).

That move is cancelled and confirmed first. Ours is submitted after that, as any other, so that its record holds the
replicas that the other one started from. Every check judges before the other move is touched.
"""

from __future__ import annotations

from reassign.core.checks.in_flight import describe
from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded_problem
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.states import State
from reassign.core.model.steps import Cancel
from reassign.core.partition.undo import undo_cost
from reassign.errors import Reason


def supersede(i: Input) -> Row:
    """Cancel another client's move.

    One that goes to the same replicas in the same order is taken over as it is: a cancel would only discard what it has
    copied.
    """
    theirs = i.in_flight
    assert theirs is not None
    i.own.take(i.slots, i.partition.leader)
    i.shared.take(i.slots, i.partition.leader)
    entry = Entry(i.topic.id, theirs.original, i.target, State.SUPERSEDING, recorded_problem(Reason.SUPERSEDING))
    if i.under_way:
        return Row(entry.to(State.IN_FLIGHT, recorded_problem(Reason.ORDER_UNKNOWN)))
    i.budget.take(i.slots, i.partition.leader)  # beside theirs, which is in flight until its cancel is confirmed
    cost = undo_cost(theirs, (i.snapshot.sizes or {}).get(i.tp), i.target).message
    note = f"another client's move ({describe(theirs)}) is cancelled before its own begins; {cost}"
    return Row(entry, (Cancel.of(i.tp, theirs),)).with_saying(SayingKind.NOTE, Problem(Reason.SUPERSEDING, note))
