"""Decide: what becomes of the approved plan of a policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_policy import TriggerKind
from reassign.api.reassignment_record import RecordedPolicyApproval, RecordedPolicyPlan, RecordedWait
from reassign.core.automation.approval import awaited, begin_due, known_bytes, trouble_of
from reassign.core.automation.arbiter import EVACUATING, OF_PLANS_TO_COME, RANKS, Hold, hold_of
from reassign.core.automation.case import plan_of
from reassign.core.automation.conditions import so_far
from reassign.core.automation.model import PlanSeen, RetirePlan, RunPlan
from reassign.core.automation.policy_case import (
    avoids_all_of,
    digest_of,
    given,
    is_evacuating,
    needs_none,
    recorded_trigger,
    sight_of,
    spec_of,
)
from reassign.core.automation.policy_holds import case_of, lapsed
from reassign.core.automation.policy_view import PolicyView
from reassign.core.automation.schedule import unserved
from reassign.core.automation.timers import left, observed, read_timer, recorded, whole
from reassign.core.automation.triggers import TOO_MANY_SECONDS, down_now, lasting, rack_down, too_many
from reassign.core.automation.view import NO_FAILURES, anew, grown
from reassign.core.automation.watch import cordons_read
from reassign.core.model.problem import Problem
from reassign.core.model.waits import NEEDS_USER
from reassign.core.plans.model import unended
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import cut, named_brokers

RETURNED_SECONDS = 300
"""How long a broker has been back when the plan that empties it is retired."""
BACK = {TriggerKind.BROKER_LOST: "back", TriggerKind.BROKERS_CORDONED: "not cordoned any more"}
"""What is said of a broker that a plan of such a trigger is not to empty any more."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 600, 21_600
"""The waits after a plan that could not go on: each is twice the one before."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 60, 3600
"""The waits for a plan for what has landed on lost or cordoned brokers since the last one."""


def go_on(view: PolicyView) -> PolicyView:
    """Carry out the approved plan, or bring it to its end."""
    case, plan = view.case, view.record.plan
    if plan is None:
        return view
    if plan.uid and plan.uid == case.unreadable.get(plan.name):
        return replace(view, busy=True).say(plan.trigger, f"{plan.name} cannot be read, and its status says why")
    found = plan_of(case.plans, plan, case.it.uid)
    if plan.retired:
        return _come_to_its_end(view, plan, found)
    if found is None or found.plan.deleted:
        view = view.list_plan(plan, None, PlanOutcome.DELETED).with_record(approval=None)
        return _cannot_go_on(view, plan, f"{plan.name} was deleted")
    digest = digest_of(plan, found)
    if found.done and plan.digest == digest:
        return _succeeded(view.list_plan(plan, found, PlanOutcome.SUCCEEDED), plan)
    gives_way = not (found.moving or case.it.lets_go_on(plan.name))
    view = replace(view, busy=True, gives_way=gives_way).list_plan(plan, found, PlanOutcome.RUNNING)
    if why := _wanted_no_more(view, plan, found):
        return retire(view, plan, found, why)
    view, back = _returned(view, plan)
    if timer := view.watched.returned:
        state = f"{named_brokers(back, 'is')} {BACK[plan.kind]}"
        if timer.seconds >= RETURNED_SECONDS:
            return retire(view, plan, found, state)
        return view.say(plan.trigger, f"{state}, so {plan.name} starts nothing more")
    if case.suspended:
        return view.say(plan.trigger, f"{plan.name} starts nothing: {case.suspended}")
    if why := trouble_of(found, plan, digest, view.avoided(frozenset(plan.brokers))):
        view = view.act(RetirePlan(found.plan))
        return _cannot_go_on(view, plan, why) if plan.begun_waves else _does_not_fit(view, plan, why)
    return _run(view, plan, found, digest)


def _wanted_no_more(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen) -> str | None:
    """Say why a plan that has done nothing wrong is to end."""
    case = view.case
    if case.yields:
        return f"{case.yields} goes first"
    trigger = case.it.trigger(plan.trigger)
    if trigger is None or not case.it.still_has(plan):
        return f"the spec does not have the trigger {plan.trigger} any more"
    if plan.begun_waves:
        return None
    wanted = spec_of(case.it, trigger, frozenset(plan.brokers), frozenset())
    if found.spec_digest == plan.spec_digest and not avoids_all_of(wanted, found.plan.spec):
        return "the spec is another one now"
    is_over = plan.kind is TriggerKind.BROKERS_ADDED and lapsed(view, plan.trigger)
    return view.levels[plan.trigger].message if is_over else None


def _come_to_its_end(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen | None) -> PolicyView:
    if found is None:
        return view.list_plan(plan, None, PlanOutcome.DELETED)
    if found.done:
        return _until_counted(view.list_plan(plan, found, PlanOutcome.SUCCEEDED), plan)
    if found.ends or not (found.plan.retired or found.plan.deleted):
        view = replace(view, busy=True).say(plan.trigger, f"{plan.name} starts nothing more, and comes to its end")
        return view if found.plan.deleted else view.act(RetirePlan(found.plan))
    return view.list_plan(plan, found, PlanOutcome.RETIRED)


def retire(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen, why: str) -> PolicyView:
    """Retire a plan that has done nothing wrong: no failure, and no cooldown."""
    if not plan.begun_waves:
        view = _unserved(view, plan)
    view = view.with_plan(retired=True).act(RetirePlan(found.plan))
    return view.say(plan.trigger, f"{why}, so {plan.name} starts nothing more, and comes to its end")


def _returned(view: PolicyView, plan: RecordedPolicyPlan) -> tuple[PolicyView, list[int]]:
    """Note how long a broker that a plan empties has been back; while that is not known, nothing."""
    if plan.kind not in BACK:
        return view, []
    states = {broker: _is_back(view, plan.kind, broker) for broker in plan.brokers}
    back = [broker for broker, state in states.items() if state]
    unknown = [broker for broker, state in states.items() if state is None]
    before = read_timer(plan.returned)
    if view.case.watched and view.case.watched.returned:
        before = view.case.watched.returned
    read = None if plan.kind is TriggerKind.BROKER_LOST else cordons_read(view.seen, view.case.now)
    timer = observed(before, True if back else None if unknown else False, read or view.case.now)
    if timer and not back and (view.case.now.time - timer.observed_at).total_seconds() > RETURNED_SECONDS:
        timer = None  # nothing is known of it for so long that it may be as it was
    view = replace(view, watched=replace(view.watched, returned=timer))
    return view.with_plan(returned=recorded(plan.returned, timer)), back or unknown


def _is_back(view: PolicyView, kind: TriggerKind, broker: int) -> bool | None:
    """Whether a broker is up, where it was lost, else up and not cordoned; None where that is not known."""
    found = view.seen.brokers.get(broker)
    up = found is not None and found.up
    if kind is TriggerKind.BROKER_LOST:
        return up
    if found is None or not up or found.cordoned is None or not cordons_read(view.seen, view.case.now):
        return None
    return not found.cordoned


def _cannot_go_on(view: PolicyView, plan: RecordedPolicyPlan, why: str) -> PolicyView:
    """Retire a plan that cannot go on; the next one of its trigger is made later each time."""
    known = recorded_trigger(view.record, plan.trigger)
    failures = known.failures + 1
    view = view.with_plan(retired=True)
    view = view.with_wait(plan.trigger, _after_failures(failures, view), failures=failures, last_failure=cut(why))
    return replace(view, busy=True).say(plan.trigger, f"{why}; it starts nothing more")


def _does_not_fit(view: PolicyView, plan: RecordedPolicyPlan, why: str) -> PolicyView:
    """Retire a plan of which nothing has begun: that is no failure, and it is made anew, also for a schedule."""
    view = _unserved(view, plan).with_wait(plan.trigger, until_anew(view, plan.trigger)).with_plan(retired=True)
    return replace(view, busy=True).say(plan.trigger, f"{why}; it is made anew")


def _unserved(view: PolicyView, plan: RecordedPolicyPlan) -> PolicyView:
    """Give the moment back that a schedule's plan was made for, so that another one is made for it in time."""
    known = recorded_trigger(view.record, plan.trigger)
    if plan.moment and known.schedule:
        view = view.with_trigger(plan.trigger, schedule=unserved(known.schedule, plan.moment))
    return view


def until_anew(view: PolicyView, trigger: str) -> RecordedWait:
    """Return the wait until a plan that has not begun, and that does not fit the cluster any more, is made anew.

    One that a user is to approve is made anew an hour later, any other one after a minute, then after twice as long;
    but after plans that could not go on no sooner than after the last of these.
    """
    now, known = view.case.now.time, recorded_trigger(view.record, trigger)
    if view.case.it.needs_approval(trigger):
        return anew(now)
    if known.failures:
        return _after_failures(known.failures, view)
    return grown(known.next_attempt, now, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)


def _after_failures(failures: int, view: PolicyView) -> RecordedWait:
    """Return the wait after so many plans in a row that could not go on."""
    seconds = min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10), LONGEST_RETRY_SECONDS)
    return RecordedWait(seconds=seconds, until=whole(view.case.now.time) + timedelta(seconds=seconds))


def _succeeded(view: PolicyView, plan: RecordedPolicyPlan) -> PolicyView:
    view = view.with_plan(retired=True)
    if RANKS[plan.kind] not in EVACUATING:
        view = view.with_record(ended_at=whole(view.case.now.time))
    view = view.with_trigger(plan.trigger, **NO_FAILURES)
    return _until_counted(nothing_left(view, plan.trigger, plan.kind, frozenset(plan.brokers)), plan)


def _until_counted(view: PolicyView, plan: RecordedPolicyPlan) -> PolicyView:
    """Say that an evacuation has succeeded until replicas are counted: the last count has those that have moved."""
    now, at, wait = view.case.now, view.seen.counted_at, recorded_trigger(view.record, plan.trigger).next_plan
    ended = next((made.completion_time for made in view.plans if made.name == plan.name), None)
    if at is None or ended is None or left(wait, view.case.waits, now) <= 0:
        return view
    if now.time - timedelta(seconds=now.monotonic - at) > ended:
        return view
    return view.say(plan.trigger, f"{plan.name} has succeeded, and what it has left is being counted")


def nothing_left(view: PolicyView, name: str, kind: TriggerKind, brokers: frozenset[int]) -> PolicyView:
    """Note what a trigger has left, so that it does not begin again for the same."""
    if kind is TriggerKind.SCHEDULE:
        return view
    now, known = view.case.now, recorded_trigger(view.record, name)
    of = brokers if is_evacuating(kind) else view.watched.added
    update: dict[str, object] = {"saw": sight_of(view.case.it, kind, of, view.seen)}
    if is_evacuating(kind):
        last = known.next_plan if -left(known.next_plan, view.case.waits, now) < 7200 else None
        update["next_plan"] = grown(last, now.time, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
    return view.with_trigger(name, **update)


def _run(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen, digest: str) -> PolicyView:
    """Let the waves of an approved plan go, one after the other; each is recorded before it begins."""
    case, it, copied = view.case, view.case.it, known_bytes(plan, found)
    if not (it.approves(plan) and (plan.begun_waves or given(it, plan, found))):
        named = digest if it.spec.approved_digest == digest else None
        if named or needs_none(it, plan, found):
            begun = sum(copied[: plan.begun_waves])
            view = replace(view, gives_way=False)
            return view.with_record(approval=approval_of(plan, named, sum(copied), begun))
        what = f"the approval of {plan.name} was withdrawn, and no further wave starts"
        said = awaited(it.spec.approved_digest, None, digest, what)
        return replace(view.say(plan.trigger, what), approval=said, digest=digest)
    if why := _too_much_down(view, plan):
        lasts = _down(view) <= lasting(view.watched.down, TOO_MANY_SECONDS)
        view = replace(view, gives_way=lasts and not found.moving)
        return view.say(plan.trigger, f"{plan.name} starts nothing: {why}")
    if case.turn:
        return view.say(plan.trigger, f"{plan.name} starts nothing: {case.turn} goes first")
    windows = windows_at(it.windows(plan.trigger), case.now.time)
    if windows.problem:
        return view.say(plan.trigger, f"{plan.name} starts nothing: {windows.problem.message}")
    if not windows.is_open:
        view = view.with_record(lifts_cordons=False)
        return view.say(plan.trigger, f"{plan.name} starts nothing: no window is open until {windows.opens_text}")
    if not plan.begun_waves and (why := _why_not_begin(view, plan)):
        return view.say(plan.trigger, f"{plan.name} starts nothing: {why}")
    view = _lift_cordons(view, plan, found)
    if view.record.lifts_cordons and (lifting := _being_lifted(view, found)):
        return _until_lifted(view, plan, lifting)
    due, paid = begin_due(view.record.approval, plan, found)
    view = view.with_record(approval=paid).with_plan(begun_waves=max(due, plan.begun_waves))
    return view.act(RunPlan(found.plan, due)).say(plan.trigger, so_far(found))


def _why_not_begin(view: PolicyView, plan: RecordedPolicyPlan) -> str | None:
    """Say what holds an approved plan whose first wave has not begun: much may have changed since it was approved."""
    trigger = view.case.it.trigger(plan.trigger)
    assert trigger
    hold = hold_of(case_of(view, trigger, frozenset(plan.brokers), plan), but=OF_PLANS_TO_COME)
    return hold.message if hold else None


def unknown_cordon(view: PolicyView, plan: RecordedPolicyPlan) -> Hold | None:
    """Say that it is not known whether brokers are cordoned that a plan empties for that."""
    if plan.kind is not TriggerKind.BROKERS_CORDONED:
        return None
    unknown = [broker for broker in plan.brokers if _is_back(view, plan.kind, broker) is None]
    message = f"it is not known whether {named_brokers(unknown, 'is')} cordoned"
    return Hold(Reason.NOT_OBSERVED, message) if unknown else None


def _named(found: PlanSeen) -> frozenset[int]:
    """Return the brokers that the waves of a plan that have not ended name as targets."""
    entries = (entry for wave in unended(found.waves) for entry in wave.spec.partitions)
    return frozenset(broker for entry in entries for broker in entry.replicas)


def _lift_cordons(view: PolicyView, plan: RecordedPolicyPlan, found: PlanSeen) -> PolicyView:
    """Have our cordons lifted where waves move partitions that keep a replica there, which Kafka refuses."""
    needed = plan.kind is TriggerKind.BROKER_LOST and _named(found) & view.case.cluster.cordons
    return view.with_record(lifts_cordons=True) if needed else view


def _being_lifted(view: PolicyView, found: PlanSeen) -> frozenset[int]:
    """Return the brokers that waves name whose cordon may be in force still; one that is down cannot change its own."""
    cluster, brokers = view.case.cluster, view.seen.brokers
    return (cluster.lifting | {b for b in cluster.cordons & brokers.keys() if brokers[b].up}) & _named(found)


def _until_lifted(view: PolicyView, plan: RecordedPolicyPlan, lifting: frozenset[int]) -> PolicyView:
    """Wait for cordons; one that only a user can have lifted stalls the policy."""
    why = f"the cordon of {named_brokers(lifting)} is being lifted"
    refusals = ((broker, problem) for broker, problem in view.case.cluster.unlifted.items() if broker in lifting)
    if refusal := min(refusals, default=None):
        broker, problem = refusal
        why = f"the cordon of broker {broker} cannot be lifted: {problem.message}"
        if problem.reason in NEEDS_USER:
            view = replace(view, stall=Problem(problem.reason, f"{plan.trigger}: {plan.name} starts nothing: {why}"))
    return view.say(plan.trigger, f"{plan.name} starts nothing: {why}")


def _down(view: PolicyView) -> frozenset[int]:
    return down_now(view.seen, view.case.emptied)


def _too_much_down(view: PolicyView, plan: RecordedPolicyPlan) -> str | None:
    """Say that more is down than a plan may replace."""
    trigger = view.case.it.trigger(plan.trigger)
    if trigger is None or trigger.broker_lost is None:
        return None
    down = _down(view)
    if said := too_many(down, trigger.broker_lost.max_brokers):
        return said
    return rack_down(view.seen, down & set(plan.brokers))


def approval_of(plan: RecordedPolicyPlan, digest: str | None, copied: int, begun: int = 0) -> RecordedPolicyApproval:
    return RecordedPolicyApproval(
        digest=digest, bytes=copied, begun_bytes=begun, trigger=plan.trigger, brokers=plan.brokers
    )
