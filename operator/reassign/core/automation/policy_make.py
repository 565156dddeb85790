"""Decide: which plan of a policy is made next, and when it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reassign.api.digest import hashed
from reassign.api.reassignment_plan import ReassignmentPlanSpec
from reassign.api.reassignment_policy import ReassignmentPolicy, Trigger, TriggerKind
from reassign.api.reassignment_record import RecordedPolicyPlan, RecordedWaves
from reassign.core.automation.approval import (
    OF_THE_CLUSTER,
    awaited,
    filled,
    known_bytes,
    recorded_waves,
    trouble_of,
)
from reassign.core.automation.arbiter import (
    OF_PLANS_TO_COME,
    RANKS,
    Hold,
    HoldReason,
    Running,
    hold_of,
    retires,
)
from reassign.core.automation.case import first_avoided, manifest_of, plan_of
from reassign.core.automation.model import CreatePlan, DeletePlan, PlanSeen, WorkedOut, WorkOut, plan_spec_digest
from reassign.core.automation.policy_case import (
    avoids_all_of,
    covered,
    digest_of,
    given,
    is_evacuating,
    needs_none,
    recorded_trigger,
    sight_of,
    spec_of,
    why_not,
)
from reassign.core.automation.policy_holds import case_of, lapsed
from reassign.core.automation.policy_run import (
    approval_of,
    nothing_left,
    retire,
    unknown_cordon,
    until_anew,
)
from reassign.core.automation.policy_view import MISSED, NOTHING_TO_DO, PolicyView
from reassign.core.automation.schedule import is_overdue, served
from reassign.core.automation.watch import Unmade
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import counted, listed, named_brokers

TRIED_AGAIN_SECONDS = 600.0
"""After how long a trigger that could have no plan goes before others again, to have one worked out."""


def prepare(view: PolicyView) -> PolicyView:
    """Have a plan made for the first trigger that is true, that nothing holds and that can have one; begin it once it
    may."""
    ready = list[Trigger]()
    for trigger in sorted(view.case.it.spec.triggers, key=lambda trigger: RANKS[trigger.kind]):
        level = view.levels[trigger.name]
        if not level.true or trigger.name in view.active:
            continue
        if hold := hold_of(case_of(view, trigger, level.brokers)):
            view = view.hold(trigger.name, hold)
        else:
            ready.append(trigger)
    view, best = _first_of(view, ready)
    view = _keep_lifted(view)
    if plan := view.record.waiting:
        return _wait(view, plan, best)
    return _make(view, best) if best else view


def _first_of(view: PolicyView, ready: Sequence[Trigger]) -> tuple[PolicyView, Trigger | None]:
    """Return the trigger that goes first, with what is said of the others.

    One that could have no plan lately holds up no other, nor a plan that waits. That is not deleted for one whose plan
    would wait for its window, either.
    """
    before, now = view.case.watched.unmade if view.case.watched else {}, view.case.now.monotonic
    unmade = {
        trigger.name: known
        for trigger in ready
        if (known := before.get(trigger.name)) and known.terms == _terms(view, trigger)
    }
    view = replace(view, watched=replace(view.watched, unmade=unmade))
    lately = {name for name, known in unmade.items() if now - known.at < TRIED_AGAIN_SECONDS}
    closed = {}
    if view.record.waiting:
        able = (trigger.name for trigger in ready if not view.case.it.needs_approval(trigger.name))
        closed = {name: hold for name in able if (hold := _closed(view, name))}
    best = next((trigger for trigger in ready if trigger.name not in lately | closed.keys()), None)
    if best is None and ready and view.record.waiting is None:
        best = ready[0]
    holds = {**closed, **{name: known.hold for name, known in unmade.items()}}
    for trigger in ready:
        if hold := holds.get(trigger.name):
            view = view.hold(trigger.name, hold)
        elif best and trigger is not best:
            view = view.hold(trigger.name, Hold(HoldReason.PLAN_IN_PROGRESS, f"the trigger {best.name} goes first"))
    return view, best


def _terms(view: PolicyView, trigger: Trigger) -> str:
    """Return the digest of what a trigger's plan is made for."""
    brokers = view.levels[trigger.name].brokers
    sight = sight_of(view.case.it, trigger.kind, brokers, view.seen)
    replicas = [sorted(seen.replicas.items()) for b in sorted(brokers) if (seen := view.seen.brokers.get(b))]
    return hashed([view.case.it.generation, sight, replicas])


def _keep_lifted(view: PolicyView) -> PolicyView:
    """Lift no cordon any more once the plan that needed that has ended."""
    return view if view.busy and not view.gives_way else view.with_record(lifts_cordons=False)


def _plan_spec(view: PolicyView, trigger: Trigger, brokers: frozenset[int]) -> ReassignmentPlanSpec:
    avoid = first_avoided(view.avoided(brokers) & view.seen.brokers.keys(), view.seen)
    return spec_of(view.case.it, trigger, brokers, frozenset(avoid or ()))


def _brokers_of(view: PolicyView, trigger: Trigger) -> frozenset[int]:
    """Return the brokers that a trigger's plan empties."""
    return view.levels[trigger.name].brokers if is_evacuating(trigger.kind) else frozenset()


def _make(view: PolicyView, trigger: Trigger) -> PolicyView:
    """Have a plan worked out, and record it once it is there."""
    view, waves = _work_out(view, trigger)
    return _name_next(view, trigger, waves) if waves else view


def _work_out(view: PolicyView, trigger: Trigger) -> tuple[PolicyView, RecordedWaves | None]:
    """Have a plan worked out, and return its waves once it is there and moves anything."""
    case, name = view.case, trigger.name
    spec, worked = _plan_spec(view, trigger, _brokers_of(view, trigger)), case.worked
    digest, lost = plan_spec_digest(spec), trigger.kind is TriggerKind.BROKER_LOST
    ask = replace(view, watched=replace(view.watched, asked=digest)).act(WorkOut(spec, lifted=lost))
    if isinstance(worked, Problem) and case.watched and case.watched.asked == digest:
        hold = Hold(worked.reason, worked.message)
        return (ask.hold(name, hold) if worked.reason in OF_THE_CLUSTER else _unmade(ask, trigger, hold)), None
    if not isinstance(worked, WorkedOut) or worked.spec_digest != digest:
        known = name in view.watched.unmade
        return ask if known else ask.say(name, f"{view.levels[name].message}; a plan is being worked out"), None
    if worked.incomplete and not lost and is_evacuating(trigger.kind):
        hold = Hold(Reason.DRAIN_INCOMPLETE, f"would stay: {listed(worked.incomplete)}")
        return _unmade(ask, trigger, hold), None
    rest = {other: known for other, known in view.watched.unmade.items() if other != name}
    ask = replace(ask, watched=replace(ask.watched, unmade=rest))
    if worked.planned.waves:
        return ask, recorded_waves(worked.planned)
    stays = [*worked.incomplete, *worked.left_out]
    message = f"nothing would move; it stays: {listed(stays)}" if stays else "nothing would move"
    ask = nothing_left(ask, name, trigger.kind, _brokers_of(view, trigger))
    return _serve(ask, trigger).hold(name, Hold(NOTHING_TO_DO, message)), None


def _unmade(view: PolicyView, trigger: Trigger, hold: Hold) -> PolicyView:
    """Note that no plan can be made for a trigger, so that others go on."""
    known = Unmade(hold, _terms(view, trigger), view.case.now.monotonic)
    unmade = {**view.watched.unmade, trigger.name: known}
    return replace(view, watched=replace(view.watched, unmade=unmade)).hold(trigger.name, hold)


def _serve(view: PolicyView, trigger: Trigger) -> PolicyView:
    """Note that the moment of a schedule that is due is over."""
    known, state = recorded_trigger(view.record, trigger.name), view.schedules.get(trigger.name)
    if not (state and state.due and known.schedule):
        return view
    view = view.with_trigger(trigger.name, schedule=served(known.schedule, state.due))
    level = replace(view.levels[trigger.name], true=False)
    return replace(view, served=state.due, levels={**view.levels, trigger.name: level})


def _name_next(view: PolicyView, trigger: Trigger, waves: RecordedWaves) -> PolicyView:
    case, number, brokers = view.case, view.record.number + 1, _brokers_of(view, trigger)
    spec = _plan_spec(view, trigger, brokers)
    name = f"{case.it.name}-{trigger.name}-{number}"
    plan = RecordedPolicyPlan(
        number=number,
        name=name,
        spec_digest=plan_spec_digest(spec),
        waves=waves,
        trigger=trigger.name,
        kind=trigger.kind,
        brokers=tuple(sorted(brokers)),
        moment=view.levels[trigger.name].moment,
    )
    view = view.with_record(number=number, waiting=plan)
    if not case.is_taken(name):
        view = view.act(CreatePlan(manifest_of(case.it, ReassignmentPolicy, name, spec)))
    return view.say(trigger.name, f"the plan {name} is created")


def _wait(view: PolicyView, plan: RecordedPolicyPlan, best: Trigger | None) -> PolicyView:
    """Go on with a plan that was not approved yet, or delete it where it is not needed any more."""
    case = view.case
    found, trigger = plan_of(case.plans, plan, case.it.uid), case.it.trigger(plan.trigger)
    if plan.retired:
        return _being_deleted(view, plan, found, best)
    if trigger is None or trigger.kind is not plan.kind:
        return _drop(view, found)
    waits = _why_it_waits(view, plan, trigger, found)
    if not (waits or _still_true(view, plan, trigger)):
        missed = Hold(MISSED, f"{plan.name} could not begin within startingDeadlineSeconds, and was deleted")
        return _drop(view.hold(trigger.name, missed) if trigger.schedule else view, found)
    first: str | None = None
    if best and plan.uid:
        view, waves = _work_out(view, best)
        if waves:
            view = view.say(best.name, f"{plan.name} is deleted first")
            return _drop(view, found).hold(trigger.name, Hold(HoldReason.PLAN_IN_PROGRESS, f"{best.name} goes first"))
        first = best.name if best.name in view.active else None
    elif best and found is None and retires(RANKS[best.kind], RANKS[plan.kind]):  # it could not be created
        return view.with_record(waiting=None).say(best.name, f"{plan.name} is not created")
    elif best:  # what is worked out now would be taken for the plan that is created
        view = view.say(best.name, f"{plan.name} is created first")
    if not _is_as_asked(view, plan, trigger, found):
        return _drop(view, found).say(trigger.name, f"{plan.name} is made anew, for the spec as it is now")
    if plan.uid is None:
        return _to_be_created(view, plan, trigger, found)
    if plan.uid == case.unreadable.get(plan.name):
        return view.say(trigger.name, f"{plan.name} cannot be read, and its status says why")
    return _wait_for_approval(view, plan, trigger, found, first, waits)


def _being_deleted(
    view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen | None, best: Trigger | None
) -> PolicyView:
    """Forget a plan that is being deleted; its name stays taken until it is gone."""
    if best:
        view = _work_out(view, best)[0].say(best.name, f"{plan.name} is deleted first")
    if found is None or (found.plan.deleted and not found.moving):
        return view.with_record(waiting=None)
    return view if found.plan.deleted else view.act(DeletePlan(found.plan))


def _is_as_asked(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen | None) -> bool:
    """Whether a plan is for the spec as it is. It may avoid more brokers: those that others emptied, once down."""
    wanted = _plan_spec(view, trigger, frozenset(plan.brokers))
    if plan_spec_digest(wanted) == plan.spec_digest:
        return True
    if found is None or found.spec_digest != plan.spec_digest:
        return False
    more = set(found.plan.spec.goal.avoid_brokers or ()) - set(wanted.goal.avoid_brokers or ())
    up = {broker for broker, seen in view.seen.brokers.items() if seen.up}
    return avoids_all_of(wanted, found.plan.spec) and not more & up


def _wait_for_approval(
    view: PolicyView,
    plan: RecordedPolicyPlan,
    trigger: Trigger,
    found: PlanSeen | None,
    first: str | None,
    waits: Hold | None,
) -> PolicyView:
    """Begin a plan that is there once it may, or have one made that fits; it does not begin while a trigger that goes
    `first` may get one, nor while it `waits`."""
    brokers = frozenset(plan.brokers) if waits else _brokers_of(view, trigger)
    if found is None or found.plan.deleted:
        return _make_anew(view, plan, found, f"{plan.name} was deleted")
    if brokers != frozenset(plan.brokers):
        return _make_anew(view, plan, found, f"{plan.name} is not for {named_brokers(brokers)}")
    if why := trouble_of(found, plan, digest_of(plan, found), view.avoided(brokers)):
        return _make_anew(view, plan, found, why)
    if not found.plan.planned:
        return view.say(trigger.name, f"the waves of {plan.name} are being written")
    if found.done:
        return _drop(_serve(nothing_left(view, plan.trigger, plan.kind, brokers), trigger), found)
    return _begin(view, plan, trigger, found, first, waits)


def _why_it_waits(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen | None) -> Hold | None:
    """Say why a plan is kept whose trigger is not true: its brokers may have been restarted."""
    level = view.levels[trigger.name]
    kept = plan.kind in (TriggerKind.BROKERS_CORDONED, TriggerKind.BROKERS_ADDED)
    if level.true or not kept or lapsed(view, trigger.name):
        return None
    if trigger.brokers_added and found and level.brokers - filled(found):  # more have come
        return None
    return Hold(HoldReason.CLUSTER_UNSETTLED, level.message)


def _still_true(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger) -> bool:
    if view.levels[trigger.name].true:
        return True
    now = view.case.now.time
    return bool(trigger.schedule and plan.moment and not is_overdue(trigger.schedule, plan.moment, now))


def _drop(view: PolicyView, found: PlanSeen | None) -> PolicyView:
    """Delete a plan that has not begun."""
    if found is None:
        return view.with_record(waiting=None)
    return view.with_waiting(retired=True).act(*([] if found.plan.deleted else [DeletePlan(found.plan)]))


def _make_anew(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen | None, why: str) -> PolicyView:
    """Delete a plan that has not begun, and have it made anew later: that is no failure."""
    view = view.with_wait(plan.trigger, until_anew(view, plan.trigger))
    return _drop(view, found).say(plan.trigger, f"{why}; it is made anew")


def _to_be_created(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen | None) -> PolicyView:
    """Create the plan that the record names; a name that is taken gives the next number."""
    case, spec = view.case, _plan_spec(view, trigger, frozenset(plan.brokers))
    if found:
        return view.with_waiting(uid=found.plan.uid).say(trigger.name, f"the plan {plan.name} is being made")
    if case.is_taken(plan.name):
        number = view.record.number + 1
        name = f"{case.it.name}-{trigger.name}-{number}"
        view = view.with_record(number=number).with_waiting(number=number, name=name)
        return view.say(trigger.name, f"the plan {name} is created")
    view = view.act(CreatePlan(manifest_of(case.it, ReassignmentPolicy, plan.name, spec)))
    return view.say(trigger.name, f"the plan {plan.name} is created")


def _closed(view: PolicyView, name: str) -> Hold | None:
    """Say that no window of a trigger is open."""
    windows = windows_at(view.case.it.windows(name), view.case.now.time)
    if windows.problem:
        return Hold(windows.problem.reason, windows.problem.message)
    if windows.is_open:
        return None
    return Hold(Reason.OUTSIDE_WINDOW, f"no window is open until {windows.opens_text}", windows.changes)


def _begin(
    view: PolicyView,
    plan: RecordedPolicyPlan,
    trigger: Trigger,
    found: PlanSeen,
    first: str | None,
    waits: Hold | None,
) -> PolicyView:
    """Approve a plan once that is given, nothing holds it, and it is its turn."""
    case, name, digest = view.case, trigger.name, digest_of(plan, found)
    it, brokers = case.it, frozenset(plan.brokers)
    waves = found.plan.status.waves
    if not given(it, plan, found):
        if it.max_bytes(name) is not None and not (known_bytes(plan, found) or found.moving):
            return _make_anew(view, plan, found, f"{plan.name} is not as it was worked out before it was created")
        parts = f"{counted(len(waves), 'wave')}, {counted(sum(wave.partitions for wave in waves), 'partition')}"
        approved = it.record.approval.digest if it.record.approval else None
        said = awaited(it.spec.approved_digest, approved, digest, f"{plan.name}: {parts}", why_not(it, plan, found))
        return replace(view.say(name, said.message), approval=said, digest=digest)
    hold = hold_of(case_of(view, trigger, brokers, plan), but=OF_PLANS_TO_COME) or waits or unknown_cordon(view, plan)
    closed = _closed(view, name)
    if hold is None and closed and (closed.reason != Reason.OUTSIDE_WINDOW or view.busy or case.running):
        hold = closed
    if hold is None and first:
        hold = Hold(HoldReason.PLAN_IN_PROGRESS, f"the trigger {first} goes first")
    if hold:
        return view.hold(name, hold).say(name, f"{plan.name} waits: {hold.message}")
    view = replace(view, begins=Running(plan.name, RANKS[plan.kind], it.uid))
    if view.busy and (other := view.record.plan):
        running = plan_of(case.plans, other, it.uid)
        if running and not other.retired:
            view = retire(view, other, running, f"{plan.name} goes first")
        return view.say(name, f"{plan.name} waits until {other.name} has come to its end")
    if case.turn:
        return view.say(name, f"{plan.name} waits: {case.turn} goes first")
    return _approve(view, plan, trigger, found, digest)


def _approve(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen, digest: str) -> PolicyView:
    it, copied = view.case.it, sum(known_bytes(plan, found))
    if it.spec.approved_digest == digest:
        view = view.with_record(approval=approval_of(plan, digest, copied))
    elif needs_none(it, plan, found) or not covered(it, plan, found):
        view = view.with_record(approval=approval_of(plan, None, copied))
    moment = view.levels[trigger.name].moment or plan.moment
    approved = plan.model_copy(update={"approved": True, "digest": digest, "moment": moment})
    view = _serve(view.with_record(plan=approved, waiting=None), trigger)
    return replace(view, busy=True, digest=None).say(trigger.name, f"{plan.name} is approved")
