"""Decide: which plan of a policy is made next, and when it begins."""

from __future__ import annotations

from dataclasses import replace

from reassign.api.reassignment_plan import ReassignmentPlanSpec
from reassign.api.reassignment_policy import ReassignmentPolicy, Trigger, TriggerKind
from reassign.api.reassignment_record import RecordedPolicyPlan
from reassign.core.automation.approval import awaited, bytes_in, trouble_of
from reassign.core.automation.arbiter import (
    OF_PLANS_TO_COME,
    RANKS,
    Hold,
    HoldReason,
    PlanCase,
    Running,
    hold_of,
    retires,
)
from reassign.core.automation.case import manifest_of, plan_of
from reassign.core.automation.model import CreatePlan, DeletePlan, PlanSeen, WorkOut, plan_spec_digest
from reassign.core.automation.policy_case import (
    cooldown_until,
    covered,
    digest_of,
    given,
    is_evacuating,
    recorded_trigger,
    running_of,
    sight_of,
    spec_of,
    why_not,
)
from reassign.core.automation.policy_run import (
    approval_of,
    nothing_left,
    retire,
    until_anew,
)
from reassign.core.automation.policy_view import MISSED, NOTHING_TO_DO, PolicyView
from reassign.core.automation.schedule import is_overdue, served
from reassign.core.automation.triggers import down_now, lasting, lost_racks, too_many
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import counted, listed, named_brokers


def prepare(view: PolicyView) -> PolicyView:
    """Have a plan made for the first trigger that is true and that nothing holds, and begin it once it may."""
    best: Trigger | None = None
    for trigger in sorted(view.case.it.spec.triggers, key=lambda trigger: RANKS[trigger.kind]):
        level = view.levels[trigger.name]
        if not level.true or trigger.name in view.active:
            continue
        hold = hold_of(_case_of(view, trigger, level.brokers))
        if hold is None and best is not None:
            hold = Hold(HoldReason.PLAN_IN_PROGRESS, f"the trigger {best.name} goes first")
        if hold:
            view = view.hold(trigger.name, hold)
        else:
            best = trigger
    view = _keep_lifted(view, best)
    if plan := view.record.waiting:
        return _wait(view, plan, best)
    return _work_out(view, best) if best else view


def _keep_lifted(view: PolicyView, best: Trigger | None) -> PolicyView:
    """Lift no cordon any more while no lost broker is to be replaced."""
    plan, waiting, under_way = view.record.plan, view.record.waiting, view.busy and not view.gives_way
    kinds = [best.kind if best else None, waiting.kind if waiting else None, plan.kind if plan and under_way else None]
    return view if TriggerKind.BROKER_LOST in kinds else view.with_record(lifts_cordons=False)


def _case_of(view: PolicyView, trigger: Trigger, brokers: frozenset[int], waits: bool = False) -> PlanCase:
    """Return what may hold a trigger; of its own plan that waits if `waits`."""
    case, seen, record = view.case, view.seen, view.record
    it, rank = case.it, RANKS[trigger.kind]
    down = down_now(seen, case.emptied)
    lost = lasting(view.watched.down, it.lost_seconds) if seen.lists_fenced else frozenset[int]()
    most = trigger.broker_lost.max_brokers if trigger.broker_lost else 0
    running = list(case.running)
    if view.busy and record.plan:
        running.append(running_of(it, record.plan))
    if record.waiting and not (waits or record.waiting.retired):
        running.append(running_of(it, record.waiting))
    return PlanCase(
        rank,
        brokers,
        it.uid,
        case.now.time,
        suspended=case.suspended,
        too_many=too_many(down, most) if trigger.broker_lost else None,
        racks=lost_racks(seen, brokers) if trigger.broker_lost else None,
        settled=view.watched.settled,
        settle_seconds=it.spec.settle_seconds,
        fenced=down - lost,
        running=running,
        users=case.users,
        foreign=seen.foreign,
        foreign_from=seen.foreign_from,
        cooldown_until=cooldown_until(view.record.ended_at, it.spec.cooldown_seconds, rank),
        backoff=_backoff(view, trigger),
        gain=_gain(view, trigger, brokers),
    )


def _backoff(view: PolicyView, trigger: Trigger) -> Hold | None:
    known = recorded_trigger(view.record, trigger.name)
    wait = known.next_attempt
    if wait is None or wait.until <= view.case.now.time:
        return None
    why = f"{counted(known.failures, 'plan')} in a row could not go on, the last one since {known.last_failure}"
    what = why if known.failures else "the last plan did not fit the cluster any more"
    return Hold(HoldReason.BACKOFF, f"{what}; the next one is made at {wait.until:%H:%M} UTC", wait.until)


def _gain(view: PolicyView, trigger: Trigger, brokers: frozenset[int]) -> Hold | None:
    known, now = recorded_trigger(view.record, trigger.name), view.case.now.time
    if known.saw is None:
        return None
    same, wait = known.saw == sight_of(view.case.it, trigger.kind, brokers, view.seen), known.next_plan
    if not is_evacuating(trigger.kind):
        message = "the last plan left brokers, racks and replicas as they are"
        return Hold(HoldReason.GAIN_TOO_SMALL, message) if same else None
    if wait is None or wait.until <= now:
        return None
    what = "the last plan left what is there" if same else "something has landed since the last plan"
    return Hold(HoldReason.GAIN_TOO_SMALL, f"{what}; it is planned at {wait.until:%H:%M:%S} UTC", wait.until)


def _plan_spec(view: PolicyView, trigger: Trigger, brokers: frozenset[int]) -> ReassignmentPlanSpec:
    avoid = view.avoided(trigger.kind, brokers) & view.seen.brokers.keys()
    return spec_of(view.case.it, trigger, brokers, avoid)


def _brokers_of(trigger: Trigger, brokers: frozenset[int]) -> frozenset[int]:
    """Return the brokers that a trigger's plan empties."""
    return brokers if is_evacuating(trigger.kind) else frozenset()


def _work_out(view: PolicyView, trigger: Trigger) -> PolicyView:
    """Have a plan worked out, and record it once it is there."""
    case, name = view.case, trigger.name
    brokers = _brokers_of(trigger, view.levels[name].brokers)
    spec, worked = _plan_spec(view, trigger, brokers), case.worked
    ask = view.act(WorkOut(spec))
    if isinstance(worked, Problem):
        return ask.hold(name, Hold(worked.reason, worked.message))
    if worked is None or worked.spec_digest != plan_spec_digest(spec):
        return ask.say(name, f"{view.levels[name].message}; a plan is being worked out")
    lost = trigger.kind is TriggerKind.BROKER_LOST
    if worked.incomplete and lost and not view.record.lifts_cordons and case.cluster.cordons:
        message = f"the cordon of {named_brokers(case.cluster.cordons)} is lifted, since a lost broker needs their room"
        return ask.with_record(lifts_cordons=True).say(name, message)
    if worked.incomplete and not lost and is_evacuating(trigger.kind):
        return ask.hold(name, Hold(Reason.DRAIN_INCOMPLETE, f"would stay: {listed(worked.incomplete)}"))
    if worked.planned.waves:
        return _name_next(view, trigger, spec, brokers)
    stays = [*worked.incomplete, *worked.left_out]
    message = f"nothing would move; it stays: {listed(stays)}" if stays else "nothing would move"
    return _serve(nothing_left(view, name, trigger.kind, brokers), trigger).hold(name, Hold(NOTHING_TO_DO, message))


def _serve(view: PolicyView, trigger: Trigger) -> PolicyView:
    """Note that the moment of a schedule that is due is over."""
    known, state = recorded_trigger(view.record, trigger.name), view.schedules.get(trigger.name)
    if not (state and state.due and known.schedule):
        return view
    view = view.with_trigger(trigger.name, schedule=served(known.schedule, state.due))
    level = replace(view.levels[trigger.name], true=False)
    return replace(view, served=state.due, levels={**view.levels, trigger.name: level})


def _name_next(view: PolicyView, trigger: Trigger, spec: ReassignmentPlanSpec, brokers: frozenset[int]) -> PolicyView:
    case, number = view.case, view.record.number + 1
    name = f"{case.it.name}-{trigger.name}-{number}"
    plan = RecordedPolicyPlan(
        number=number,
        name=name,
        spec_digest=plan_spec_digest(spec),
        trigger=trigger.name,
        kind=trigger.kind,
        brokers=tuple(sorted(brokers)),
        moment=view.levels[trigger.name].moment,
    )
    view = _serve(view, trigger).with_record(number=number, waiting=plan)
    if not case.is_taken(name):
        view = view.act(CreatePlan(manifest_of(case.it, ReassignmentPolicy, name, spec)))
    return view.say(trigger.name, f"the plan {name} is created")


def _wait(view: PolicyView, plan: RecordedPolicyPlan, best: Trigger | None) -> PolicyView:
    """Go on with a plan that was not approved yet, or delete it where it is not needed any more."""
    case = view.case
    found, trigger = plan_of(case.plans, plan, case.it.uid), case.it.trigger(plan.trigger)
    if plan.retired:
        if best:
            view = view.say(best.name, f"{plan.name} is deleted first")
        if found is None:
            return view.with_record(waiting=None)
        return view if found.plan.deleted else view.act(DeletePlan(found.plan))
    if trigger is None or trigger.kind is not plan.kind:
        return _drop(view, found)
    if not _still_true(view, plan, trigger):
        missed = Hold(MISSED, f"{plan.name} could not begin within startingDeadlineSeconds, and was deleted")
        return _drop(view.hold(trigger.name, missed) if trigger.schedule else view, found)
    if best and retires(RANKS[best.kind], RANKS[plan.kind]):
        return _drop(view, found).hold(trigger.name, Hold(HoldReason.PLAN_IN_PROGRESS, f"{best.name} goes first"))
    if plan_spec_digest(_plan_spec(view, trigger, frozenset(plan.brokers))) != plan.spec_digest:
        return _drop(view, found).say(trigger.name, f"{plan.name} is made anew, for the spec as it is now")
    if plan.uid is None:
        return _to_be_created(view, plan, trigger, found)
    if plan.uid == case.unreadable.get(plan.name):
        return view.say(trigger.name, f"{plan.name} cannot be read, and its status says why")
    return _wait_for_approval(view, plan, trigger, found)


def _wait_for_approval(
    view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen | None
) -> PolicyView:
    """Begin a plan that is there once it may, or have one made that fits."""
    brokers = _brokers_of(trigger, view.levels[trigger.name].brokers)
    if found is None or found.plan.deleted:
        return _make_anew(view, plan, found, f"{plan.name} was deleted")
    if brokers != frozenset(plan.brokers):
        return _make_anew(view, plan, found, f"{plan.name} is not for {named_brokers(brokers)}")
    if why := trouble_of(found, plan, digest_of(plan, found), view.avoided(plan.kind, brokers)):
        return _make_anew(view, plan, found, why)
    if not found.plan.planned:
        return view.say(trigger.name, f"the waves of {plan.name} are being written")
    if found.done:
        return _drop(nothing_left(view, plan.trigger, plan.kind, brokers), found)
    return _begin(view, plan, trigger, found)


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
    view = view.with_trigger(plan.trigger, next_attempt=until_anew(view, plan.trigger))
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


def _begin(view: PolicyView, plan: RecordedPolicyPlan, trigger: Trigger, found: PlanSeen) -> PolicyView:
    """Approve a plan once that is given, nothing holds it, and it is its turn."""
    case, name, digest = view.case, trigger.name, digest_of(plan, found)
    it, brokers = case.it, frozenset(plan.brokers)
    waves = found.plan.status.waves
    if not given(it, plan, found):
        parts = f"{counted(len(waves), 'wave')}, {counted(sum(wave.partitions for wave in waves), 'partition')}"
        approved = it.record.approval.digest if it.record.approval else None
        said = awaited(it.spec.approved_digest, approved, digest, f"{plan.name}: {parts}", why_not(it, plan, found))
        return replace(view.say(name, said.message), approval=said.message, digest=digest)
    hold = hold_of(_case_of(view, trigger, brokers, waits=True), but=OF_PLANS_TO_COME)
    windows = windows_at(it.windows(name), case.now.time)
    if hold is None and windows.problem:
        hold = Hold(windows.problem.reason, windows.problem.message)
    if hold is None and not windows.is_open and (view.busy or case.running):
        hold = Hold(Reason.OUTSIDE_WINDOW, f"no window is open until {windows.opens_text}", windows.changes)
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
    it, copied = view.case.it, bytes_in(found.plan.status.waves)
    if it.spec.approved_digest == digest:
        view = view.with_record(approval=approval_of(plan, digest, copied))
    elif not covered(it, plan, found):
        view = view.with_record(approval=approval_of(plan, None, copied))
    approved = plan.model_copy(update={"approved": True, "digest": digest})
    view = _serve(view.with_record(plan=approved, waiting=None), trigger)
    return replace(view, busy=True, digest=None).say(trigger.name, f"{plan.name} is approved")
