"""What holds a trigger of a policy, or a plan of one that has not begun."""

from __future__ import annotations

from datetime import timedelta

from reassign.api.reassignment_policy import Trigger
from reassign.api.reassignment_record import RecordedPolicyPlan
from reassign.core.automation.arbiter import RANKS, Hold, HoldReason, PlanCase
from reassign.core.automation.case import plan_of
from reassign.core.automation.policy_case import is_evacuating, recorded_trigger, running_of, sight_of, waiting_of
from reassign.core.automation.policy_view import PolicyView
from reassign.core.automation.timers import left, passed
from reassign.core.automation.triggers import down_now, lasting, rack_down, too_many
from reassign.text import counted

LAPSED_SECONDS = 300.0
"""How long a trigger is not true until a plan of it that has not begun is not wanted any more."""


def case_of(
    view: PolicyView, trigger: Trigger, brokers: frozenset[int], plan: RecordedPolicyPlan | None = None
) -> PlanCase:
    """Return what may hold a trigger, or its `plan` that has not begun."""
    case, seen, record = view.case, view.seen, view.record
    it, rank = case.it, RANKS[trigger.kind]
    down = down_now(seen, case.emptied)
    lost = lasting(view.watched.down, it.lost_seconds) if seen.lists_fenced else frozenset[int]()
    most = trigger.broker_lost.max_brokers if trigger.broker_lost else 0
    running = list(case.running)
    is_approved = plan is not None and plan.approved
    if view.busy and record.plan and not is_approved:
        running.append(running_of(it, record.plan))
    if record.waiting and not (plan or record.waiting.retired):
        running.append(waiting_of(it, record.waiting, plan_of(case.plans, record.waiting, it.uid)))
    return PlanCase(
        rank,
        brokers,
        it.uid,
        suspended=case.suspended,
        too_many=too_many(down, most) if trigger.broker_lost else None,
        rack_lost=rack_down(seen, brokers) if trigger.broker_lost else None,
        settled=view.watched.settled,
        settle_seconds=it.spec.settle_seconds,
        fenced=down - lost,
        running=running,
        users=case.users,
        unread=case.unread,
        foreign=seen.foreign,
        foreign_from=seen.foreign_from,
        cooldown=_cooldown(view),
        backoff=_backoff(view, trigger),
        gain=_gain(view, trigger, brokers),
    )


def lapsed(view: PolicyView, trigger: str) -> bool:
    """Whether nothing has asked for a trigger's plan for some minutes: a broker may have been restarted."""
    idle = view.watched.idle.get(trigger)
    return idle is not None and idle.seconds >= LAPSED_SECONDS


def _cooldown(view: PolicyView) -> Hold | None:
    ended, seconds, now = view.record.ended_at, view.case.it.spec.cooldown_seconds, view.case.now
    if ended is None or (more := seconds - passed(ended, view.case.waits, now)) <= 0:
        return None
    message = f"the last plan has ended, and none begins before {ended + timedelta(seconds=seconds):%Y-%m-%d %H:%M} UTC"
    return Hold(HoldReason.COOLDOWN, message, now.time + timedelta(seconds=more))


def _backoff(view: PolicyView, trigger: Trigger) -> Hold | None:
    known, now = recorded_trigger(view.record, trigger.name), view.case.now
    wait = known.next_attempt
    if wait is None or (more := left(wait, view.case.waits, now)) <= 0:
        return None
    why = f"{counted(known.failures, 'plan')} in a row could not go on, the last one since {known.last_failure}"
    what = why if known.failures else "the last plan did not fit the cluster any more"
    message = f"{what}; the next one is made at {wait.until:%H:%M} UTC"
    return Hold(HoldReason.BACKOFF, message, now.time + timedelta(seconds=more))


def _gain(view: PolicyView, trigger: Trigger, brokers: frozenset[int]) -> Hold | None:
    known, now = recorded_trigger(view.record, trigger.name), view.case.now
    if known.saw is None or known.saw != sight_of(view.case.it, trigger.kind, brokers, view.seen):
        return None
    wait = known.next_plan
    if not is_evacuating(trigger.kind):
        message = "the last plan left brokers, racks and replicas as they are"
        return Hold(HoldReason.GAIN_TOO_SMALL, message)
    if wait is None or (more := left(wait, view.case.waits, now)) <= 0:
        return None
    message = f"the last plan left what is there, or it has landed since; it is planned at {wait.until:%H:%M:%S} UTC"
    return Hold(HoldReason.GAIN_TOO_SMALL, message, now.time + timedelta(seconds=more))
