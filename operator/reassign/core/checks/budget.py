"""Whether there is a place among the moves in flight: in the budgets of the resource, its namespace and the cluster."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.errors import Reason


def budget(i: Input) -> Problem | None:
    """Wait while a budget has no place for the partition.

    The places of another client's move that makes way count as free. A move that is taken over has its places already.
    """
    if lack := i.own.lack(i.slots, i.partition.leader):
        return _wait(lack.message)
    if lack := i.shared.lack(i.slots, i.partition.leader):
        return _wait(f"limits.perNamespace of the KafkaCluster: {lack.message} for this namespace")
    if i.under_way:
        return None
    lack = i.budget.lack(i.slots, i.partition.leader, i.replaced_slots)
    return _wait(lack.message) if lack else None


def _wait(what: str) -> Problem:
    return Problem(Reason.WAITING_FOR_BUDGET, f"{what}; it starts when one of them is done")


def reserve(i: Input) -> None:
    """Keep the next room at its source for a partition that lacks room there alone."""
    bounded = any(b.reserve(i.slots, i.partition.leader) for b in (i.own, i.shared))
    if not bounded and not i.under_way:
        i.budget.reserve(i.slots, i.partition.leader, i.replaced_slots)
