"""Retire: bring a plan to its end before it is carried out, as its owner has decided.

Nothing of it starts any more, and what is in flight comes to its end, but moves that cannot. The waves that are not
done go then, and with the last of them the plan is over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from reassign.api.reassignment_plan import ReassignmentPlanStatus
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.conditions import OWNER, names, obstacles, status_of, summary_of
from reassign.core.plans.model import (
    AddFinalizer,
    CancelEntries,
    DeleteWave,
    PlanDecision,
    PlanOrder,
    PlanResource,
    PlanStep,
    RemoveFinalizer,
    SuspendWave,
    Unread,
    stall_of,
    unended,
)
from reassign.core.plans.progress import WRITES, states_now, unreadable_problem, wave_progress
from reassign.core.report.conditions import ConditionState, unsettled
from reassign.errors import Reason


def is_over(
    plan: PlanResource, waves: Sequence[Resource | Settled], unread: Sequence[Unread], order: PlanOrder | None
) -> bool:
    """Whether a plan has been retired, and nothing of it is left to end. A user's plan is when it is not done."""
    if not plan.retired or unended(waves) or _unended(unread):
        return False
    return order is not None or (plan.planned and not wave_progress(plan, waves, unread, held=True).done)


def over(plan: PlanResource, waves: Sequence[Resource | Settled], now: datetime) -> PlanDecision:
    """Say that a plan is retired; once status says so, the finalizer goes."""
    steps: list[PlanStep] = [RemoveFinalizer()] if plan.retired and plan.has_finalizer else []
    if not plan.retired:  # it has ended now, though it has not succeeded before either
        others = tuple(condition for condition in plan.status.conditions if condition.type != "Succeeded")
        plan = replace(plan, status=plan.status.model_copy(update={"conditions": others}))
    status = _status(plan, waves, ())
    message = f"{OWNER} has ended it, and what has moved stays moved: {status.summary}"
    return PlanDecision(steps, status_of(plan, status, [*unsettled(Reason.RETIRED, message), *_goal(status)], now))


def retire(
    plan: PlanResource,
    waves: Sequence[Resource | Settled],
    unread: Sequence[Unread],
    lost: Collection[int],
    now: datetime,
) -> PlanDecision:
    """Let what is in flight come to its end, but moves that cannot, and delete the waves that are not done.

    A wave that cannot be read is left alone, and the plan waits for it.
    """
    left, unreadable = unended(waves), _unended(unread)
    if not (left or unreadable):
        return over(plan, waves, now)
    status = _status(plan, waves, [wave.name for wave in unread])
    message = f"{OWNER} has ended it: it starts nothing more, and goes on until these waves are gone or done"
    states = unsettled("Retiring", f"{message}: {names([*left, *unreadable])}{obstacles(left)}")
    if unreadable:
        problem = unreadable_problem(unreadable[0])
        states = unsettled(problem.reason, f"{message}: {names([*left, *unreadable])}; {problem.message}")
    steps: list[PlanStep] = [AddFinalizer()]
    if plan.has_finalizer:
        steps = [step for wave in left if (step := _step(wave, lost))][:WRITES]
    return PlanDecision(steps, status_of(plan, status, [*states, *_goal(status)], now))


def _step(wave: Resource, lost: Collection[int]) -> PlanStep | None:
    """Return the next step to the end of a wave: a wave is written once in each reconciliation."""
    if wave.deleted:
        return None
    in_flight = active(wave.record).keys()
    wanted = in_flight & wave.asked.keys()  # the others are going back
    stuck = _cannot_end(wave, lost) & wanted
    if not in_flight or (stuck and stuck == wanted):
        return DeleteWave(wave)
    if not wave.spec.suspend:
        return SuspendWave(wave)
    return CancelEntries(wave, frozenset(stuck)) if stuck else None


def _cannot_end(wave: Resource, lost: Collection[int]) -> set[TopicPartition]:
    """Return the partitions that move to lost brokers, and those for whose sake the wave is Stalled."""
    found = {tp for tp, entry in active(wave.record).items() if entry.added & set(lost)}
    if stall := stall_of(wave):
        found |= {TopicPartition(d.topic, d.partition) for d in wave.status.partitions if d.reason == stall.reason}
    return found


def _unended(unread: Sequence[Unread]) -> list[Unread]:
    return [wave for wave in unread if not wave.ended]


def _status(plan: PlanResource, waves: Sequence[Resource | Settled], unread: Collection[str]) -> ReassignmentPlanStatus:
    """Return the status with the waves as they are, without what will not be."""
    planned = states_now(plan, {wave.name: wave for wave in waves}, unread)
    never = dict.fromkeys(("window_open", "next_window_time", "stale_digest", "goal_observed_time"))
    return plan.status.model_copy(update={"waves": planned, "summary": summary_of(planned), **never})


def _goal(status: ReassignmentPlanStatus) -> list[ConditionState]:
    message = "it was ended before it was carried out, so its goal is not looked at"
    return [ConditionState("GoalMet", None, Reason.RETIRED, message)] if status.digest else []
