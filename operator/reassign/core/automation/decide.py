"""Decide: what is to be done about all BrokerDecommissions of one KafkaCluster. One of them is at work at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from reassign.core.automation.approval import at_work, is_moving, may_begin
from reassign.core.automation.case import DecommissionCase
from reassign.core.automation.conditions import Standing, status_of
from reassign.core.automation.decommission import decide_decommission
from reassign.core.automation.model import (
    BrokersSeen,
    DecommissionDecision,
    DecommissionResource,
    OwnedCluster,
    PlanSeen,
    WorkedOut,
)
from reassign.core.automation.timers import Timer
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem, bug_problem

EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AutomationDecision:
    """What is to be done for the decommissions of a KafkaCluster."""

    decommissions: Mapping[str, DecommissionDecision]
    """By uid."""
    cordons: frozenset[int]
    """Brokers that are to be cordoned."""
    timers: Mapping[int, Timer]
    """How long brokers have been seen down: for the next decision of this process."""
    errors: Mapping[str, Exception]
    """Bugs, by the uid of the decommission that could not be judged."""
    judged: Mapping[str, DecommissionResource]
    """The decommissions as they were judged, by uid: what was decided holds for nothing else."""


def decide_automation(
    decommissions: Sequence[DecommissionResource],
    plans: Mapping[str, PlanSeen],
    worked: Mapping[str, WorkedOut | Problem],
    cluster: OwnedCluster,
    seen: BrokersSeen | Problem,
    timers: Mapping[int, Timer],
    now: Clock,
    unreadable: Mapping[str, str] = EMPTY,
) -> AutomationDecision:
    """Decide for all decommissions of a KafkaCluster.

    `plans` are those in its namespace, by name, and `unreadable` the uids of those that cannot be read. `worked` is
    what working out a plan came to, by uid, of those that asked for it in the last decision. Of one that cannot be
    judged the cordons stay that are recorded, and its plan starts nothing.
    """
    ordered = sorted(decommissions, key=lambda it: it.age_key)
    cases = [
        DecommissionCase(
            it,
            cluster,
            seen,
            now,
            plans,
            worked.get(it.uid),
            avoid=_of_others(it, ordered),
            timers={broker: timers[broker] for broker in it.brokers & timers.keys()},
            unreadable=unreadable,
        )
        for it in ordered
    ]
    errors: dict[str, Exception] = {}
    turn = _turn(cases, errors)
    found: dict[str, DecommissionDecision] = {}
    for case in cases:
        it = case.it
        first = turn.name if turn and turn.uid != it.uid else None
        try:
            found[it.uid] = decide_decommission(replace(case, first=first))
        except Exception as error:
            errors[it.uid] = error
        if it.uid in errors:
            found[it.uid] = _unjudged(case, errors[it.uid])
    return AutomationDecision(
        found,
        frozenset[int]().union(*(decision.cordons for decision in found.values())),
        {broker: timer for decision in found.values() for broker, timer in decision.timers.items()},
        errors,
        {it.uid: it for it in decommissions},
    )


def _of_others(it: DecommissionResource, all_of_them: Sequence[DecommissionResource]) -> frozenset[int]:
    """Return the brokers of the others, from their approval until they have succeeded."""
    others = (o.brokers for o in all_of_them if o.uid != it.uid and o.record.approval and not (o.finished or o.deleted))
    return frozenset[int]().union(*others) - it.brokers


def _turn(cases: Sequence[DecommissionCase], errors: dict[str, Exception]) -> DecommissionResource | None:
    """Return the one that is at work, else the oldest that could begin.

    Of two, one of which was suspended meanwhile, it is the one that has something in flight.
    """
    working = [case for case in cases if _at_work(case, errors)]
    if working:
        return next((case for case in working if case.it.uid not in errors and is_moving(case)), working[0]).it
    return next((case.it for case in cases if _may_begin(case, errors)), None)


def _at_work(case: DecommissionCase, errors: dict[str, Exception]) -> bool:
    try:
        return at_work(case)
    except Exception as error:
        errors[case.it.uid] = error
        return True


def _may_begin(case: DecommissionCase, errors: dict[str, Exception]) -> bool:
    try:
        return may_begin(case)
    except Exception as error:
        errors[case.it.uid] = error
        return False


def _unjudged(case: DecommissionCase, error: Exception) -> DecommissionDecision:
    it, problem = case.it, bug_problem(error, "this one from being served")
    standing = Standing(problem.reason, problem.message)
    status = status_of(it, standing, {}, None, it.status.plans, case.now.time)
    return DecommissionDecision([], status, it.brokers & case.cluster.cordons, case.timers)
