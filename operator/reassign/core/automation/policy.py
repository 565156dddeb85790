"""Decide: what is to be done about one ReassignmentPolicy, and what its status says.

It has at most two plans: one that was approved, and one that is made or waits for its approval. The latter takes the
place of the former once that has ended. What a step needs to be known of later is recorded before it.
"""

from __future__ import annotations

from dataclasses import replace

from reassign.api.reassignment_policy import Trigger, TriggerKind
from reassign.core.automation.arbiter import Hold
from reassign.core.automation.policy_case import PolicyCase, PolicyDecision, recorded_trigger
from reassign.core.automation.policy_conditions import stalled, states_of, unjudged
from reassign.core.automation.policy_make import prepare
from reassign.core.automation.policy_run import go_on
from reassign.core.automation.policy_view import MISSED, PolicyView
from reassign.core.automation.schedule import schedule_at
from reassign.core.automation.timers import began_by_clock, by_clock, left, observed
from reassign.core.automation.triggers import few_of, level_of
from reassign.core.automation.view import NO_FAILURES
from reassign.core.automation.watch import read_watched, recorded_watch, watch
from reassign.core.model.problem import Problem
from reassign.core.report.conditions import unready
from reassign.errors import Reason


def decide_policy(case: PolicyCase) -> PolicyDecision:
    """Decide what to do about a policy."""
    it, seen = case.it, case.seen
    if it.deleted:  # its plans go with it, through their owner references
        return PolicyDecision([], it.status.model_copy(), case.watched)
    if case.before:
        states = stalled(Reason.DUPLICATE_POLICY, f"the policy {case.before}: delete one of them")
        return PolicyDecision([], unjudged(case, states), case.watched)
    if isinstance(seen, Problem):
        return _unseen(case, seen)
    if not seen.forwarded:
        message = "no broker reaches a controller, so what they say of each other may be long ago"
        return _unseen(case, Problem(Reason.NOT_OBSERVED, message))
    view = _judged(case)
    view = prepare(go_on(view))
    return view.decided(states_of(view))


def _unseen(case: PolicyCase, problem: Problem) -> PolicyDecision:
    """Start nothing, and leave all as it is."""
    status = unjudged(case, unready(problem.reason, problem.message))
    return PolicyDecision([], status, case.watched, lifts_cordons=case.it.record.lifts_cordons)


def _judged(case: PolicyCase) -> PolicyView:
    """Return the view with the levels of all triggers, and the timers in its record."""
    it, seen, now = case.it, case.seen, case.now
    assert not isinstance(seen, Problem)
    few = few_of(it.trigger_of(TriggerKind.BROKERS_ADDED), it.spec.plan_template)
    watched = watch(case.watched or read_watched(it.record), seen, case.cluster.cordons, case.emptied, few, now)
    view = PolicyView(case, seen, it.record, watched, plans=it.status.plans)
    view = view.with_record(**recorded_watch(it.record, watched, it.spec.settle_seconds))
    if it.record.ended_at:
        view = view.with_record(ended_at=began_by_clock(it.record.ended_at, case.waits, now))
    for trigger in it.spec.triggers:
        view = _trigger_judged(view, trigger)
    before = case.watched.idle if case.watched else {}
    idle = {
        name: timer
        for name, level in view.levels.items()
        if (timer := observed(before.get(name), not (level.true or level.waits), now))
    }
    return replace(view, watched=replace(view.watched, idle=idle))


def _trigger_judged(view: PolicyView, trigger: Trigger) -> PolicyView:
    """Return the view with the level of a trigger, and what follows from that for its record."""
    it, now, name = view.case.it, view.case.now.time, trigger.name
    known, state = recorded_trigger(view.record, name), None
    if trigger.schedule:
        state = schedule_at(trigger.schedule, known.schedule, f"schedule of the trigger {name}", now)
        view = replace(view, schedules={**view.schedules, name: state}).with_trigger(name, schedule=state.record)
        if state.missed:
            view = view.hold(name, Hold(MISSED, f"what was due at {state.missed:%Y-%m-%d %H:%M} UTC was missed"))
    if known.generation not in (None, it.generation):
        view = view.with_trigger(name, **NO_FAILURES)
    elif known.failures or known.next_attempt:
        wait = known.next_attempt and by_clock(known.next_attempt, view.case.waits, view.case.now)
        view = view.with_trigger(name, next_attempt=wait, generation=it.generation)
    if known.next_plan:
        view = view.with_trigger(name, next_plan=by_clock(known.next_plan, view.case.waits, view.case.now))
    level = level_of(trigger, view.seen, view.watched, state)
    if known.failures and not (level.true or level.waits or trigger.schedule):
        known = recorded_trigger(view.record, name)
        if left(known.next_attempt, view.case.waits, view.case.now) <= 0:  # what they failed at is gone
            view = view.with_trigger(name, **NO_FAILURES)
    if trigger.brokers_added and not level.brokers and known.saw:  # what it had left is gone
        view = view.with_trigger(name, saw=None)
    return replace(view, levels={**view.levels, name: level})
