"""Report: what the conditions of a ReassignmentPolicy say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reassign.api.reassignment_policy import ReassignmentPolicyStatus, TriggerKind
from reassign.core.automation.arbiter import HoldReason
from reassign.core.automation.policy_case import PolicyCase, PolicyResource, recorded_trigger
from reassign.core.automation.policy_view import PolicyView
from reassign.core.automation.triggers import TOO_MANY_SECONDS, lasting, problem_of, rack_down, too_many
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import windows_at
from reassign.core.report.conditions import ConditionState, conditions, unready
from reassign.errors import Reason

IDLE, APPROVAL_NEEDED = "Idle", "ApprovalNeeded"
MOST_FAILURES = 3


def stalled(reason: str, message: str) -> list[ConditionState]:
    """Return the conditions of a policy that a user has to do something about."""
    ready = ConditionState("Ready", False, reason, message)
    return [ready, ready._replace(type="Stalled", status=True)]


def states_of(view: PolicyView) -> list[ConditionState]:
    """Return the conditions of a policy whose triggers were judged."""
    case = view.case
    wrong = _wrong(view)
    awaits = view.approval
    more = [ConditionState(APPROVAL_NEEDED, True, awaits.reason, awaits.message)] if awaits else []
    if case.suspended:
        return [*unready(Reason.SUSPENDED, case.suspended), *more]
    if wrong:
        return [*stalled(*wrong), *more]
    if awaits:
        return [ConditionState("Ready", True, Reason.AWAITING_APPROVAL, awaits.message), *more]
    if view.active:
        message = "; ".join(f"{name}: {said}" for name, said in view.active.items())
        return [ConditionState("Ready", True, HoldReason.PLAN_IN_PROGRESS, message)]
    said = [f"{name}: {why}" for name in view.levels if (why := _why_idle(view, name))]
    return [ConditionState("Ready", True, IDLE, "; ".join(said) or "no plan is needed")]


def _why_idle(view: PolicyView, name: str) -> str | None:
    """Say what holds a trigger that is true, or for what one waits that is about to be."""
    level, hold = view.levels[name], view.holds.get(name)
    if level.true and hold:
        return hold.message
    return level.message if level.waits else None


def _wrong(view: PolicyView) -> tuple[str, str] | None:
    """Return why a user has to act, with the reason."""
    it, now = view.case.it, view.case.now.time
    lost = it.trigger_of(TriggerKind.BROKER_LOST)
    if lost and lost.broker_lost:
        level = view.levels[lost.name]
        if said := rack_down(view.seen, level.brokers if level.true else set()):
            return Reason.RACK_LOST, f"{said}: see to it"
        down = lasting(view.watched.down, TOO_MANY_SECONDS)
        if said := too_many(down, lost.broker_lost.max_brokers):
            return Reason.TOO_MANY_BROKERS_LOST, said
        if unmade := view.watched.unmade.get(lost.name):
            return unmade.hold.reason, f"{lost.name}: {unmade.hold.message}"
    problem = problem_of(view.schedules) or unreadable_window(view.case, now)
    if problem:
        return problem.reason, problem.message
    if view.stall:
        return view.stall.reason, view.stall.message
    for trigger in it.spec.triggers:
        known = recorded_trigger(view.record, trigger.name)
        if known.failures >= MOST_FAILURES:
            message = f"{known.failures} plans in a row could not go on, the last one since {known.last_failure}"
            return Reason.PLAN_FAILED, f"{trigger.name}: {message}"
    return None


def unreadable_window(case: PolicyCase, now: datetime) -> Problem | None:
    """Return why a window of the policy or of one of its triggers cannot be read, or never opens."""
    it = case.it
    found = windows_at(it.spec.windows, now).problem
    for trigger in it.spec.triggers:
        if found is None and trigger.windows and (problem := windows_at(trigger.windows, now).problem):
            return Problem(problem.reason, f"trigger {trigger.name}: {problem.message}")
    return found


def refused(
    it: PolicyResource, status: ReassignmentPolicyStatus, problem: Problem, now: datetime
) -> ReassignmentPolicyStatus:
    """Return the status of a policy whose step was refused: it is decided again at the next reconciliation."""
    states = unready(problem.reason, f"{problem.message}; it is tried again")
    states += [
        ConditionState(c.type, True, c.reason, c.message) for c in status.conditions if c.type == APPROVAL_NEEDED
    ]
    after = conditions(it.status.conditions, states, it.generation, now, it.stall_timeout_seconds)
    return status.model_copy(update={"conditions": after, "summary": states[0].message})


def unjudged(case: PolicyCase, states: Sequence[ConditionState]) -> ReassignmentPolicyStatus:
    """Return the status of a policy whose triggers could not be judged: what it has said of them stays."""
    it = case.it
    after = conditions(it.status.conditions, states, it.generation, case.now.time, it.stall_timeout_seconds)
    update = {"observed_generation": it.generation, "conditions": after, "summary": states[0].message}
    return it.status.model_copy(update=update)
