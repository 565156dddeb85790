"""Whether there is a place among the moves in flight, in the resource's own budget and in the cluster's."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.errors import Reason


def budget(i: Input) -> Problem | None:
    """Where another client's move makes way, its places count as free; where it is taken over, it has them already."""
    lack = i.own.lack(i.slots, i.partition.leader)
    if lack is None and not i.under_way:
        lack = i.budget.lack(i.slots, i.partition.leader, i.replaced_slots)
    return Problem(Reason.WAITING_FOR_BUDGET, f"{lack.message}; it starts when one of them is done") if lack else None


def reserve(i: Input) -> None:
    """Keep the next room at its source for a partition that lacks room there alone."""
    if not i.own.reserve(i.slots, i.partition.leader) and not i.under_way:
        i.budget.reserve(i.slots, i.partition.leader, i.replaced_slots)
