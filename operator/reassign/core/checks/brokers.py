"""Whether the brokers of a target are there and up."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Name, Names, Problem
from reassign.errors import Reason
from reassign.text import MAX_NAMED, named_brokers, plural


def unknown_broker(i: Input) -> Problem | None:
    missing = set(i.target) - set(i.snapshot.brokers)
    if not missing:
        return None
    there = tuple(Name(str(broker)) for broker in sorted(i.snapshot.brokers))
    return Problem(
        Reason.UNKNOWN_BROKER,
        f"{named_brokers(missing, 'is')} not registered in the cluster; choose from ",
        Names(there, f"the {len(there)} that are", MAX_NAMED),
    )


def fenced_broker(i: Input) -> Problem | None:
    """Refuse a fenced broker: brokers accept it in a target, and the move then waits for it."""
    fenced = {b for b in i.target if (broker := i.snapshot.brokers.get(b)) and broker.fenced}
    if not fenced:
        return None
    remedy = plural(fenced, "start it, or choose another", "start them, or choose others")
    return Problem(Reason.BROKER_FENCED, f"{named_brokers(fenced, 'is')} fenced (down or still starting); {remedy}")
