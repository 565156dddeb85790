"""Decide: what is to be done about one BrokerDecommission, and what its status says.

Each step is taken anew from what is observed and recorded: checks, plan, approval, cordon, waves, unregistering. What a
step needs to be known of later is recorded before it, so a crash between any two of them loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reassign.api.broker_decommission import BrokerDecommission, DecommissionState
from reassign.api.common import ConditionStatus
from reassign.api.made_plan import MadePlan, PlanOutcome
from reassign.api.reassignment_plan import Approval, Wave
from reassign.api.reassignment_record import RecordedApproval, RecordedPlan, RecordedWaves
from reassign.core.automation.approval import (
    PLAN_IN_PROGRESS,
    another_first,
    approving_digest,
    awaiting,
    begin_due,
    content_of,
    covered,
    digest_of,
    digest_of_nothing,
    given,
    held_by,
    known_bytes,
    recorded_waves,
    too_few,
    trouble_of,
    unreadable_window,
    why_not,
)
from reassign.core.automation.case import DecommissionCase, in_doubt, manifest_of, wanted_cordons
from reassign.core.automation.conditions import Standing, deleted_plan, listed_plans, made_plan, so_far
from reassign.core.automation.emptiness import BROKER_NOT_EMPTY, judge_brokers
from reassign.core.automation.model import (
    AutomationStep,
    BrokersSeen,
    CreatePlan,
    DecommissionDecision,
    DeletePlan,
    PlanSeen,
    RetirePlan,
    RunPlan,
    WorkOut,
    plan_spec_digest,
)
from reassign.core.automation.timers import by_clock, left
from reassign.core.automation.unregister import decided_empty, unregistering
from reassign.core.automation.view import NO_FAILURES, WAVE_IN_FLIGHT, View, anew, grown
from reassign.core.configs.cordons import EFFECT_SECONDS, CordonReason
from reassign.core.model.problem import Problem
from reassign.core.plans.conditions import obstacles
from reassign.core.plans.model import AddFinalizer, RemoveFinalizer, unended
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import counted, cut, listed, named_brokers

LIFTING_SECONDS = 60.0
"""How long a deletion waits for a cordon to be lifted: then the KafkaCluster's record lifts it later."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 60, 3600
"""The waits for a further plan: each is twice the one before."""
MOST_FAILURES = 3
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 3600, 21_600
"""The waits once so many plans in a row could not go on."""


def decide_decommission(case: DecommissionCase) -> DecommissionDecision:
    """Decide what to do about a decommission."""
    it, seen = case.it, case.seen
    view = View(case, it.record)
    if it.deleted:
        return _take_down(replace(view, timers={}), it.deleted)
    if it.finished:
        return _finished(replace(view, timers={}))
    if not it.has_finalizer:
        return view.decided([AddFinalizer()], Standing(Reason.PLANNING, "it has just been seen"))
    if isinstance(seen, Problem):
        return view.decided([], Standing(seen.reason, seen.message))
    if not seen.forwarded:
        message = "no broker reaches a controller, so what they say of each other may be long ago"
        return view.decided([], Standing(Reason.NOT_OBSERVED, message))
    brokers = judge_brokers(it, seen, case.timers, case.now)
    timers = {broker: judged.timer for broker, judged in brokers.items() if judged.timer}
    records = tuple(judged.record for judged in brokers.values() if judged.record)
    update: dict[str, object] = {"brokers": records, "excluded": it.excluded}
    for name in ("next_plan", "next_attempt"):
        if wait := getattr(it.record, name):
            update[name] = by_clock(wait, case.waits, case.now)
    anew_at_once = it.record.failures or it.record.approval is None
    if anew_at_once and it.record.generation not in (None, it.generation):
        update |= {**NO_FAILURES, "next_plan": None}
    elif it.record.waits and it.record.generation is None:
        update["generation"] = it.generation
    view = View(case, it.record.model_copy(update=update), brokers, timers)
    if unknown := [broker for broker, judged in brokers.items() if judged.record is None]:
        why = f"{named_brokers(unknown, 'is')} not registered, and no replica names it"
        message = f"{why}: delete this one, and make another with the right brokers"
        return view.decided([], Standing(Reason.UNKNOWN_BROKER, message))
    return _with_plan(unregistering(view, seen), seen)


# --- The end ---


def _take_down(view: View, since: datetime) -> DecommissionDecision:
    """Delete the plan, and wait until it is gone and the cordons are lifted."""
    case = view.case
    it, now = case.it, case.now.time
    if (found := case.plan) is not None:
        steps = [] if found.plan.deleted else [DeletePlan(found.plan)]
        return view.decided(steps, Standing("Deleting", f"its plan {found.plan.name} is being deleted"))
    if doubted := [broker for broker in sorted(it.brokers) if in_doubt(it, broker, now, case.seen)]:
        return view.decided([], Standing("Deleting", f"{named_brokers(doubted, 'is')} being unregistered"))
    if (left := (it.brokers & case.cluster.cordons) - case.shared) and now - since < timedelta(seconds=LIFTING_SECONDS):
        return view.decided([], Standing("Deleting", f"the cordon of {named_brokers(left)} is being lifted"))
    return view.decided([RemoveFinalizer()] if it.has_finalizer else [], Standing("Deleting", "it goes now"))


def _finished(view: View) -> DecommissionDecision:
    """Say so from the record alone: a broker that registers with such an id later is another one."""
    case = view.case
    it, found, plan = case.it, case.plan, case.it.record.plan
    steps: list[AutomationStep] = [RemoveFinalizer()] if it.has_finalizer else []
    if found and plan and not found.done and (_has_to_end(found) or not plan.approved):
        view = view.with_plan(retired=True)
        steps.clear()
        if not found.plan.deleted:
            steps.append(RetirePlan(found.plan) if plan.approved else DeletePlan(found.plan))
    by_us = [broker.id for broker in it.record.brokers if broker.unregister_sent_at]
    message = f"{named_brokers(it.brokers, 'is')} empty and not registered any more"
    if by_us:
        message += f"; {named_brokers(by_us)} {'were' if len(by_us) > 1 else 'was'} unregistered by the operator"
    reason = DecommissionState.UNREGISTERED if by_us else DecommissionState.GONE
    return view.decided(steps, Standing(reason, message, empty=True, succeeded=True))


# --- Its plan ---


def _with_plan(view: View, seen: BrokersSeen) -> DecommissionDecision:
    plan, found = view.record.plan, view.case.plan
    if plan is None:
        return _without_plan(view, seen)
    if plan.uid and plan.uid == view.case.unreadable.get(plan.name):
        message = f"its plan {plan.name} cannot be read, and the status of that says why"
        return view.decided([], Standing(Reason.CANNOT_BE_READ, message))
    if plan.retired:
        return _after_plan(view, seen, plan, found)
    if plan.uid is None:
        return _to_be_created(view, plan, found)
    if found is None or found.plan.deleted:
        return _lost(view, plan)
    if not plan.approved:
        return _unapproved(view, seen, plan, found)
    return _carry_out(view, plan, found)


def _to_be_created(view: View, plan: RecordedPlan, found: PlanSeen | None) -> DecommissionDecision:
    """Create the plan that the record names; a name that is taken gives the next number."""
    case = view.case
    if found:
        message = f"the plan {plan.name} is being made"
        return view.with_plan(uid=found.plan.uid).decided([], Standing(Reason.PLANNING, message))
    if plan.spec_digest != plan_spec_digest(case.spec):
        return view.with_plan(retired=True).decided([], Standing(Reason.PLANNING, "the spec has changed meanwhile"))
    if case.is_taken(plan.name):
        return _named_next(view, plan.waves)
    standing = Standing(Reason.PLANNING, f"the plan {plan.name} is created")
    return view.decided([CreatePlan(manifest_of(case.it, BrokerDecommission, plan.name, case.spec))], standing)


def _named_next(view: View, waves: RecordedWaves | None) -> DecommissionDecision:
    case, before = view.case, view.record.plan
    number = before.number + 1 if before else 1
    name = f"{case.it.name}-{number}"
    plan = RecordedPlan(number=number, name=name, spec_digest=plan_spec_digest(case.spec), waves=waves)
    view = view.with_record(plan=plan)
    steps = [] if case.is_taken(name) else [CreatePlan(manifest_of(case.it, BrokerDecommission, name, case.spec))]
    return view.decided(steps, Standing(Reason.PLANNING, f"the plan {name} is created"))


def _lost(view: View, plan: RecordedPlan) -> DecommissionDecision:
    """Go on without a plan that was deleted: it is not created again."""
    why = f"the plan {plan.name} was deleted"
    if plan.approved:
        return _cannot_go_on(view, why, [], _deleted(view, plan))
    now = view.case.now.time
    return view.with_plan(retired=True).with_wait(next_plan=anew(now)).decided([], Standing(Reason.PLANNING, why))


def _cannot_go_on(
    view: View, why: str, steps: Sequence[AutomationStep], listing: Sequence[MadePlan]
) -> DecommissionDecision:
    """Retire a plan, and have what is left planned anew: after three in a row much later."""
    now, before = view.case.now.time, view.record
    failures, last_failure = before.failures + 1, cut(why)
    attempt = before.next_attempt
    if failures >= MOST_FAILURES:
        attempt = grown(attempt, now, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
    further = grown(before.next_plan, now, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
    view = view.with_plan(retired=True).with_wait(
        failures=failures, last_failure=last_failure, next_attempt=attempt, next_plan=further
    )
    return view.decided(steps, Standing(WAVE_IN_FLIGHT, f"{why}; what is left gets another plan"), listing)


# --- Before it is approved ---


def _unapproved(view: View, seen: BrokersSeen, plan: RecordedPlan, found: PlanSeen) -> DecommissionDecision:
    """Wait for the approval of a plan; one that does not fit any more is made anew, which is no failure."""
    case = view.case
    it, now = case.it, case.now.time
    if plan.spec_digest != plan_spec_digest(case.spec):
        standing = Standing(Reason.PLANNING, f"{plan.name} is made anew, for the spec as it is now")
        return view.with_plan(retired=True).decided([DeletePlan(found.plan)], standing)
    if why := trouble_of(found, plan, content_of(it, found), case.avoid):
        standing = Standing(Reason.PLANNING, f"{why}; it is made anew")
        view = view.with_plan(retired=True).with_wait(next_plan=anew(now))
        return view.decided([DeletePlan(found.plan)], standing)
    if not found.plan.planned:
        return view.decided([], Standing(Reason.PLANNING, f"the waves of {plan.name} are being written"))
    if found.done:
        return _ended(view, found)
    digest, copied = digest_of(it, found), sum(known_bytes(plan, found))
    if it.record.approval and not it.approved and it.spec.approved_digest == digest:
        view = view.with_record(approval=RecordedApproval(digest=digest, bytes=copied))
    if held := unreadable_window(case) or held_by(case):
        return view.decided([], held._replace(digest=digest))
    if not given(case, found):
        what = f"{plan.name}: {_content(found.plan.status.waves)}"
        return view.decided([], awaiting(case, digest, what, why_not(case, found)))
    if case.first:
        return view.decided([], another_first(case)._replace(digest=digest))
    if case.retires:
        ends_first = Standing(PLAN_IN_PROGRESS, f"{case.retires} comes to its end first")
        return view.decided([], (ends_first if case.in_window else _outside(case))._replace(digest=digest))
    if few := too_few(case, seen):
        return view.decided([], few._replace(digest=digest))
    if not covered(case, found):
        named = digest if it.spec.approved_digest == digest else None
        approval = RecordedApproval(digest=named, bytes=copied)
        view = view.with_record(approval=approval, next_plan=view.record.next_plan if it.record.approval else None)
    return view.with_plan(approved=True, digest=content_of(it, found)).decided(
        [], Standing(WAVE_IN_FLIGHT, f"{plan.name} is approved")
    )


def _content(waves: Sequence[Wave]) -> str:
    return f"{counted(len(waves), 'wave')}, {counted(sum(wave.partitions for wave in waves), 'partition')}"


# --- Carrying it out ---


def _carry_out(view: View, plan: RecordedPlan, found: PlanSeen) -> DecommissionDecision:
    """Let the waves of an approved plan go, one after the other; each is recorded before it begins."""
    case = view.case
    it, digest, copied = case.it, digest_of(case.it, found), known_bytes(plan, found)
    listing = _listed(view, found, PlanOutcome.RUNNING, begun=plan.begun_waves > 0)
    if found.done and plan.digest == content_of(it, found):
        return _ended(view, found)
    if case.yields:
        standing = Standing(PLAN_IN_PROGRESS, f"{found.plan.name} starts nothing more: {case.yields} goes first")
        return view.with_plan(retired=True).decided([RetirePlan(found.plan)], standing, listing)
    if not case.braked and (why := trouble_of(found, plan, content_of(it, found), case.avoid)):
        return _cannot_go_on(view, why, [RetirePlan(found.plan)], listing)
    if not it.approved and it.spec.approved_digest == digest:
        begun = sum(copied[: plan.begun_waves])
        approval = RecordedApproval(digest=digest, bytes=sum(copied), begun_bytes=begun)
        standing = Standing(WAVE_IN_FLIGHT, f"{found.plan.name} is approved again")
        return view.with_record(approval=approval).decided([], standing, listing)
    if not it.approved:
        what = f"the approval of {plan.name} was withdrawn, and no further wave starts"
        return view.decided([], awaiting(case, digest, what), listing)
    if held := unreadable_window(case) or held_by(case):
        return view.decided([], held, listing)
    if case.first:
        return view.decided([], another_first(case), listing)
    if not case.in_window:
        return view.decided([], _outside(case), listing)
    if plan.begun_waves == 0 and (awaited := _awaited_cordons(view)):
        return view.decided([], Standing(WAVE_IN_FLIGHT, f"{named_brokers(awaited, 'is')} being cordoned"), listing)
    due, paid = begin_due(view.record.approval, plan, found)
    view = view.with_record(approval=paid).with_plan(begun_waves=max(due, plan.begun_waves))
    return view.decided([RunPlan(found.plan, due)], Standing(WAVE_IN_FLIGHT, so_far(found)), listing)


def _outside(case: DecommissionCase) -> Standing:
    windows = windows_at(case.it.spec.windows, case.now.time)
    return Standing(Reason.OUTSIDE_WINDOW, f"no window is open until {windows.opens_text}: no wave starts")


def _awaited_cordons(view: View) -> list[int]:
    """Return the brokers that are not cordoned yet, and may be within a minute."""
    case = view.case
    wanted = wanted_cordons(case.it, case.cluster, case.now.time)
    awaited = list[int]()
    for broker, judged in view.brokers.items():
        seen = judged.seen
        if broker not in wanted or not seen.up or (seen.cordon and seen.cordon.reason is not CordonReason.NOT_YET):
            continue
        if seen.cordon_wanted_at is None or case.now.monotonic - seen.cordon_wanted_at < EFFECT_SECONDS:
            awaited.append(broker)
    return awaited


def _listed(view: View, found: PlanSeen, outcome: PlanOutcome, *, begun: bool) -> tuple[MadePlan, ...]:
    it, now = view.case.it, view.case.now.time
    known = next((made for made in it.status.plans if made.name == found.plan.name), None)
    return listed_plans(
        it.status.plans, made_plan(known, found, approving_digest(it, found), outcome, now, begun=begun)
    )


def _ended(view: View, found: PlanSeen) -> DecommissionDecision:
    """Look at the brokers again, once all waves are done."""
    further = grown(view.record.next_plan, view.case.now.time, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
    view = view.with_plan(retired=True).with_record(**NO_FAILURES).with_wait(next_plan=further)
    listing = _listed(view, found, PlanOutcome.SUCCEEDED, begun=True)
    return view.decided([], Standing(WAVE_IN_FLIGHT, f"{found.plan.name} is done: the brokers are looked at"), listing)


# --- Between two plans ---


def _after_plan(view: View, seen: BrokersSeen, plan: RecordedPlan, found: PlanSeen | None) -> DecommissionDecision:
    """Bring a plan that starts nothing more to its end, and go on without it."""
    if found is None:
        return _listing(_without_plan(view, seen), _deleted(view, plan))
    if found.done:
        return _listing(_without_plan(view, seen), _listed(view, found, PlanOutcome.SUCCEEDED, begun=True))
    if not plan.approved:
        steps = [] if found.plan.deleted else [DeletePlan(found.plan)]
        return view.decided(steps, Standing(Reason.PLANNING, f"{plan.name} is being deleted"))
    if _has_to_end(found):
        retire = [] if found.plan.deleted else [RetirePlan(found.plan)]
        listing = _listed(view, found, PlanOutcome.RUNNING, begun=plan.begun_waves > 0)
        if found.plan.deleted:
            listing = _deleted(view, plan)
        message = f"{plan.name} starts nothing more, and what it has in flight comes to its end"
        message += obstacles(unended(found.waves))
        return view.decided(retire, Standing(WAVE_IN_FLIGHT, message), listing)
    listing = _listed(view, found, PlanOutcome.RETIRED, begun=plan.begun_waves > 0)
    if found.plan.deleted:
        listing = _deleted(view, plan)
    return _listing(_without_plan(view, seen), listing)


def _deleted(view: View, plan: RecordedPlan) -> tuple[MadePlan, ...]:
    return deleted_plan(view.case.it.status.plans, plan.name, view.case.now.time)


def _has_to_end(found: PlanSeen) -> bool:
    """Whether a plan that starts nothing more has not come to its end, or its status does not say so yet."""
    return found.ends or not (found.plan.retired or found.plan.deleted)


def _listing(decision: DecommissionDecision, plans: Sequence[MadePlan]) -> DecommissionDecision:
    return replace(decision, status=decision.status.model_copy(update={"plans": tuple(plans)}))


def _without_plan(view: View, seen: BrokersSeen) -> DecommissionDecision:
    """Go on while no plan runs: the brokers are empty, or another plan is to come."""
    case = view.case
    record = view.record
    if record.approval and view.empty:
        said = any(c.type == "Empty" and c.status is ConditionStatus.TRUE for c in case.it.status.conditions)
        if not said and (awaited := _awaited_cordons(view)):
            return view.decided([], Standing(WAVE_IN_FLIGHT, f"{named_brokers(awaited, 'is')} being cordoned"))
        return decided_empty(view, seen)
    unseen = next(
        (
            judged.emptiness
            for judged in view.brokers.values()
            if judged.emptiness.reason not in (None, BROKER_NOT_EMPTY)
        ),
        None,
    )
    if record.approval and not view.left:
        if unseen is None:
            unseen = next(judged.emptiness for judged in view.brokers.values() if not judged.emptiness.empty)
        return view.decided([], Standing(unseen.reason or BROKER_NOT_EMPTY, unseen.message))
    if held := unreadable_window(case) or too_few(case, seen) or held_by(case):
        return view.decided([], held)
    if not view.left:
        return _nothing_to_move(view, "nothing would move", [])
    if (attempt := record.next_attempt) and left(attempt, case.waits, case.now) > 0:
        message = f"{record.failures} plans in a row could not go on, the last one since {record.last_failure}; "
        message += f"the next one is made at {attempt.until:%H:%M} UTC"
        return view.decided([], Standing(Reason.PLAN_FAILED, message))
    if (wait := record.next_plan) and left(wait, case.waits, case.now) > 0:
        edited = "" if record.approval and not record.failures else ", or once the spec is edited"
        message = f"{_left(view)}; the next plan is made at {wait.until:%H:%M:%S} UTC{edited}"
        return view.decided([], Standing(BROKER_NOT_EMPTY if record.approval else Reason.PLANNING, message))
    if case.first:
        return view.decided([], another_first(case))
    return _work_out(view)


def _left(view: View) -> str:
    return f"{counted(view.left, 'replica')} left on {named_brokers(view.brokers)}"


def _work_out(view: View) -> DecommissionDecision:
    """Have a plan worked out, and create it once it is complete."""
    case, worked = view.case, view.case.worked
    ask = [WorkOut(case.spec)]
    if isinstance(worked, Problem):
        return view.decided(ask, Standing(worked.reason, worked.message))
    if worked is None or worked.spec_digest != plan_spec_digest(case.spec):
        return view.decided(ask, Standing(Reason.PLANNING, f"{_left(view)}, and a plan is being worked out"))
    if worked.incomplete:
        return view.decided(ask, Standing(Reason.DRAIN_INCOMPLETE, f"would stay: {listed(worked.incomplete)}"))
    if worked.planned.waves:
        return _named_next(view, recorded_waves(worked.planned))
    if not worked.left_out:
        message = f"{_left(view)}, which other clients are moving"
        return view.decided(ask, Standing(Reason.IN_FLIGHT_ELSEWHERE, message))
    stays = f"no in-sync replica elsewhere, so no plan can move it until its broker is up: {listed(worked.left_out)}"
    if not view.record.approval:
        return _nothing_to_move(view, stays, ask)
    return view.decided(ask, Standing(Reason.DRAIN_INCOMPLETE, stays, hopeless=True))


def _nothing_to_move(view: View, why: str, ask: Sequence[WorkOut]) -> DecommissionDecision:
    """Wait for an approval to cordon brokers that no plan would move anything from."""
    case, digest = view.case, digest_of_nothing(view.case.it)
    given = case.it.spec.approved_digest == digest
    if not (given or case.it.spec.approval is Approval.NOT_REQUIRED):
        return view.decided(ask, awaiting(case, digest, why))
    approval = RecordedApproval(digest=digest if given else None, bytes=0)
    return view.with_record(approval=approval).decided([], Standing(WAVE_IN_FLIGHT, f"{why}: approved"))
