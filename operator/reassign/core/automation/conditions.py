"""Report: what the status of a BrokerDecommission says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from reassign.api.broker_decommission import (
    BrokerDecommissionStatus,
    CordonWish,
    DecommissionedBroker,
    DecommissionState,
)
from reassign.api.common import ConditionStatus
from reassign.api.limits import MAX_PAST_PLANS
from reassign.api.made_plan import MadePlan, PlanOutcome
from reassign.core.automation.emptiness import BrokerJudged
from reassign.core.automation.model import DecommissionResource, PlanSeen
from reassign.core.configs.cordons import CordonReason
from reassign.core.model.problem import Problem
from reassign.core.plans.conditions import obstacles, summary_of
from reassign.core.plans.model import unended
from reassign.core.report.conditions import ConditionState, conditions, unready
from reassign.errors import Reason
from reassign.text import counted, named_brokers

P = TypeVar("P", bound=MadePlan)


class Standing(NamedTuple):
    """How a decommission stands: the reason of Ready, with a sentence."""

    reason: str
    message: str
    empty: bool = False
    """Whether the brokers can be stopped: then it is Ready."""
    hopeless: bool = False
    """Whether a user has to act, though what its reason says often ends by itself."""
    succeeded: bool = False
    digest: str | None = None
    """Digest of the plan that waits for approval."""


def so_far(found: PlanSeen) -> str:
    """Say how far a plan that runs is, and why it does not go on."""
    ready = next((c for c in found.plan.status.conditions if c.type == "Ready"), None)
    waits = ready and ready.observed_generation == found.plan.generation and ready.reason == Reason.BROKER_FENCED
    if ready and waits:  # its next wave has not begun
        return f"{found.plan.name}: {ready.message}"
    return f"{found.plan.name}: {summary_of(found.states)}{obstacles(unended(found.waves))}"


def standing_states(standing: Standing) -> list[ConditionState]:
    """Return the conditions that follow from how a decommission stands, Cordoned aside."""
    reason, message = standing.reason, standing.message
    ready = ConditionState("Ready", standing.empty, reason, message)
    if standing.empty:
        last = "Succeeded", standing.succeeded, reason if standing.succeeded else "StillRegistered", message
        return [ready, ConditionState("Empty", True, "Empty", message), ConditionState(*last)]
    if reason == Reason.APPROVED_DIGEST_MISMATCH:  # as every wait for an approval, a wish
        states = [ready]
    elif standing.hopeless:
        states = [ready, ready._replace(type="Stalled", status=True)]
    else:
        states = unready(reason, message)
    ready, *others = states
    return [ready, ready._replace(type="Empty"), ready._replace(type="Succeeded"), *others]


def cordoned_state(it: DecommissionResource, brokers: Mapping[int, BrokerJudged]) -> ConditionState:
    """Return Cordoned: whether all directories of the brokers that are up are cordoned, by whomever."""
    up = {broker: judged.seen for broker, judged in brokers.items() if judged.seen.up}
    if not up:
        message = "none of the brokers is up, and only the brokers themselves can be told that they are cordoned"
        return ConditionState("Cordoned", False, CordonReason.BROKER_FENCED, message)
    if not (bare := {broker: found for broker, found in up.items() if not found.cordoned}):
        return ConditionState("Cordoned", True, "Cordoned", f"{named_brokers(up, 'is')} cordoned")
    if it.spec.cordon is CordonWish.NEVER:
        return ConditionState("Cordoned", False, "CordonNever", f"{named_brokers(bare, 'is')} not to be cordoned")
    states = [found.cordon for found in bare.values() if found.cordon]
    awaited = (CordonReason.IN_FORCE, CordonReason.NOT_YET)
    if states:
        worst = min(states, key=lambda state: state.reason in awaited)
        reason = CordonReason.NOT_YET if worst.reason in awaited else worst.reason
        return ConditionState("Cordoned", False, reason, worst.message)
    return ConditionState("Cordoned", False, CordonReason.NOT_YET, f"{named_brokers(bare, 'is')} not cordoned yet")


def broker_state(it: DecommissionResource, judged: BrokerJudged) -> DecommissionState:
    """Return the state of one broker."""
    if judged.gone:
        by_us = judged.record is not None and judged.record.unregister_sent_at is not None
        return DecommissionState.UNREGISTERED if by_us else DecommissionState.GONE
    if judged.emptiness.empty and not judged.seen.up:
        return DecommissionState.DOWN
    if judged.emptiness.empty and it.record.approval:
        return DecommissionState.EMPTY
    return DecommissionState.DRAINING if it.record.approval else DecommissionState.SERVING


def status_of(
    it: DecommissionResource,
    standing: Standing,
    brokers: Mapping[int, BrokerJudged],
    plan: PlanSeen | None,
    plans: Sequence[MadePlan],
    now: datetime,
) -> BrokerDecommissionStatus:
    """Return the status; without `brokers`, which are unseen, it keeps what it said of them."""
    states = standing_states(standing)
    if standing.succeeded or not brokers:
        said = (c for c in it.status.conditions if c.type == "Cordoned")
        states += [ConditionState(c.type, c.status is ConditionStatus.TRUE, c.reason, c.message) for c in said]
    else:
        states.append(cordoned_state(it, brokers))
    update: dict[str, object] = {
        "observed_generation": it.generation,
        "conditions": conditions(it.status.conditions, states, it.generation, now, it.stall_timeout_seconds),
        "digest": standing.digest,
        "plans": tuple(plans),
    }
    if brokers:
        left = sum(judged.replicas for judged in brokers.values())
        update["replicas_left"] = left
        update["summary"] = f"{counted(left, 'replica')} left on {named_brokers(brokers)}{_progress(plan)}"
        update["brokers"] = tuple(
            DecommissionedBroker(
                id=broker,
                state=broker_state(it, judged),
                replicas=judged.replicas,
                cordoned=judged.seen.cordoned,
            )
            for broker, judged in brokers.items()
        )
    return it.status.model_copy(update=update)


def refused(
    it: DecommissionResource, status: BrokerDecommissionStatus, problem: Problem, now: datetime
) -> BrokerDecommissionStatus:
    """Return the status of a decommission whose step was refused: it is decided again at the next reconciliation.

    Brokers that are empty are so all the same.
    """
    if any(c.type == "Empty" and c.status is ConditionStatus.TRUE for c in status.conditions):
        return status
    states = standing_states(Standing(problem.reason, f"{problem.message}; it is tried again"))
    cordoned = (c for c in status.conditions if c.type == "Cordoned")
    states += [ConditionState(c.type, c.status is ConditionStatus.TRUE, c.reason, c.message) for c in cordoned]
    after = conditions(it.status.conditions, states, it.generation, now, it.stall_timeout_seconds)
    return status.model_copy(update={"conditions": after})


def _progress(plan: PlanSeen | None) -> str:
    return f"; {summary_of(plan.states)}" if plan and plan.plan.planned and not plan.done else ""


def made_plan(
    known: MadePlan | None, plan: PlanSeen, digest: str, outcome: PlanOutcome, now: datetime, *, begun: bool
) -> MadePlan:
    """Return what a status says of a plan; `known` is what it has said of it before."""
    status, over = plan.plan.status, outcome is not PlanOutcome.RUNNING
    return MadePlan(
        name=plan.plan.name,
        digest=digest,
        bytes=sum(wave.bytes for wave in status.waves),
        lower_bound_bytes=status.lower_bound.bytes if status.lower_bound else 0,
        replicas=status.moves.replicas if status.moves else 0,
        start_time=((known and known.start_time) or now) if begun else None,
        completion_time=((known and known.completion_time) or now) if over else None,
        outcome=outcome,
    )


def listed_plans(before: Sequence[P], made: P) -> tuple[P, ...]:
    """Return the plans that a status lists, this one last."""
    return (*(other for other in before if other.name != made.name), made)[-MAX_PAST_PLANS:]


def deleted_plan(before: Sequence[P], name: str, now: datetime) -> tuple[P, ...]:
    """Return the plans that a status lists, where this one was deleted; one that had ended before stays so."""
    update = {"outcome": PlanOutcome.DELETED, "completion_time": now}
    ran = PlanOutcome.RUNNING
    return tuple(m.model_copy(update=update) if m.name == name and m.outcome is ran else m for m in before)
