"""A policy with what was seen just now in its record, and the way from there to a decision and a status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_policy import (
    CurrentPlan,
    PolicyPlan,
    ReassignmentPolicyStatus,
    Trigger,
    TriggerKind,
    TriggerState,
    TriggerStatus,
)
from reassign.api.reassignment_record import RecordedPolicy, RecordedPolicyPlan, RecordedTrigger, RecordedWait
from reassign.core.automation.arbiter import Hold, Running
from reassign.core.automation.conditions import Standing, deleted_plan, listed_plans, made_plan
from reassign.core.automation.model import BrokersSeen, PlanSeen
from reassign.core.automation.policy_case import (
    PolicyCase,
    PolicyDecision,
    PolicyStep,
    WritePolicyRecord,
    digest_of,
    recorded_trigger,
    running_of,
)
from reassign.core.automation.schedule import ScheduleState
from reassign.core.automation.triggers import Level
from reassign.core.automation.watch import Watched
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import windows_at
from reassign.core.report.conditions import ConditionState, conditions

NOTHING_TO_DO, MISSED = "NothingToDo", "ScheduleMissed"
STAYS = frozenset({NOTHING_TO_DO, MISSED})
"""What an idle trigger goes on to say of the last time that it was true."""


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A case, with what was seen just now in its record."""

    case: PolicyCase
    seen: BrokersSeen
    record: RecordedPolicy
    watched: Watched
    levels: Mapping[str, Level] = field(default_factory=dict)
    schedules: Mapping[str, ScheduleState] = field(default_factory=dict)
    steps: Sequence[PolicyStep] = ()
    holds: Mapping[str, Hold] = field(default_factory=dict)
    """What holds triggers that are true, or what is said of those that are not, by name."""
    active: Mapping[str, str] = field(default_factory=dict)
    """What is said of triggers whose plans are made, wait or run, by name."""
    plans: Sequence[PolicyPlan] = ()
    approval: Standing | None = None
    """What is said of the plan that waits for approval."""
    stall: Problem | None = None
    """Why its approved plan starts nothing until a user acts."""
    digest: str | None = None
    served: datetime | None = None
    """The moment of a schedule that was served just now."""
    begins: Running | None = None
    busy: bool = False
    """Whether its approved plan is under way."""
    gives_way: bool = False
    """Whether BrokerDecommissions go before that plan: a user holds it, or has to act, and nothing is in flight."""

    def avoided(self, brokers: frozenset[int]) -> frozenset[int]:
        """Return the brokers that a plan which empties `brokers` is not to fill: others empty them."""
        return self.case.emptied - brokers

    def with_record(self, **update: object) -> PolicyView:
        return replace(self, record=self.record.model_copy(update=update))

    def with_plan(self, **update: object) -> PolicyView:
        plan = self.record.plan
        return self.with_record(plan=plan.model_copy(update=update) if plan else None)

    def with_waiting(self, **update: object) -> PolicyView:
        plan = self.record.waiting
        return self.with_record(waiting=plan.model_copy(update=update) if plan else None)

    def with_trigger(self, name: str, **update: object) -> PolicyView:
        """Return the view with another record of a trigger; those that the spec does not have any more go."""
        known = recorded_trigger(self.record, name).model_copy(update=update)
        names = [trigger.name for trigger in self.case.it.spec.triggers]
        of = {**{other.name: other for other in self.record.triggers}, name: known}
        found = tuple(of[other] for other in names if other in of and of[other] != RecordedTrigger(name=other))
        return self.with_record(triggers=found)

    def with_wait(self, name: str, wait: RecordedWait, **update: object) -> PolicyView:
        """Return the view with a wait until the next plan of a trigger; an edit of the policy ends it."""
        return self.with_trigger(name, next_attempt=wait, generation=self.case.it.generation, **update)

    def act(self, *steps: PolicyStep) -> PolicyView:
        return replace(self, steps=(*self.steps, *steps))

    def hold(self, trigger: str, hold: Hold) -> PolicyView:
        return replace(self, holds={**self.holds, trigger: hold})

    def say(self, trigger: str, message: str) -> PolicyView:
        """Say that a trigger's plan is made, waits or runs."""
        return replace(self, active={**self.active, trigger: message})

    def list_plan(self, plan: RecordedPolicyPlan, found: PlanSeen | None, outcome: PlanOutcome) -> PolicyView:
        """Have status list a plan as it is now."""
        now = self.case.now.time
        if found is None:
            return replace(self, plans=deleted_plan(self.plans, plan.name, now))
        known = next((made for made in self.plans if made.name == plan.name), None)
        made = made_plan(known, found, digest_of(plan, found), outcome, now, begun=plan.begun_waves > 0)
        return replace(self, plans=listed_plans(self.plans, PolicyPlan(**dict(made), trigger=plan.trigger)))

    def decided(self, states: Sequence[ConditionState]) -> PolicyDecision:
        """Return the decision; what has changed in the record is written before the steps."""
        case, plan = self.case, self.record.plan
        it, now = case.it, case.now.time
        written = [WritePolicyRecord(self.record)] if self.record != it.record else []
        under_way = plan if plan and self.busy else None
        return PolicyDecision(
            [*written, *self.steps],
            status_of(self, states),
            self.watched,
            min((time for time in self._changes(now) if time > now), default=None),
            self.begins,
            running_of(it, under_way) if under_way and not self.gives_way else None,
            frozenset(under_way.brokers) if under_way and under_way.kind is TriggerKind.BROKER_LOST else frozenset(),
            self.record.lifts_cordons,
        )

    def _changes(self, now: datetime) -> list[datetime]:
        it = self.case.it
        times = [windows_at(it.windows(trigger.name), now).changes for trigger in it.spec.triggers]
        times += [hold.until for hold in self.holds.values()]
        times += [state.following for state in self.schedules.values()]
        for trigger in it.spec.triggers:
            left = _seconds_left(trigger, self.watched)
            times += [now + timedelta(seconds=left)] if left is not None else []
        return [time for time in times if time]


def _seconds_left(trigger: Trigger, watched: Watched) -> float | None:
    """Return in how many seconds a timer of a trigger comes to its end."""
    timers = [watched.added_for] if watched.added_for else []
    asked = trigger.brokers_added or trigger.brokers_cordoned or trigger.broker_lost
    if asked is None:
        return None
    if trigger.brokers_added is None:
        timers = [*(watched.down if trigger.broker_lost else watched.cordoned).values()]
    left = [asked.after_seconds - timer.seconds for timer in timers if timer.seconds < asked.after_seconds]
    return min(left, default=None)


def status_of(view: PolicyView, states: Sequence[ConditionState]) -> ReassignmentPolicyStatus:
    """Return the status of a policy whose triggers were judged."""
    it, record, now = view.case.it, view.record, view.case.now.time
    current = record.waiting or (record.plan if view.busy else None)
    update: dict[str, object] = {
        "observed_generation": it.generation,
        "conditions": conditions(it.status.conditions, states, it.generation, now, it.stall_timeout_seconds),
        "summary": states[0].message,
        "plan": CurrentPlan(name=current.name, trigger=current.trigger) if current else None,
        "digest": view.digest,
        "next_schedule_time": min((s.following for s in view.schedules.values() if s.following), default=None),
        "triggers": tuple(_trigger_status(view, trigger) for trigger in it.spec.triggers),
        "plans": tuple(view.plans),
    }
    moments = [it.status.last_schedule_time, view.served, *(plan.moment for plan in record.plans)]
    update["last_schedule_time"] = max((moment for moment in moments if moment and moment <= now), default=None)
    return it.status.model_copy(update=update)


def _trigger_status(view: PolicyView, trigger: Trigger) -> TriggerStatus:
    name, level = trigger.name, view.levels[trigger.name]
    before = next((known for known in view.case.it.status.triggers if known.name == name), None)
    hold, reason, message = view.holds.get(name), level.reason, level.message
    if name in view.active:
        state, reason, message = TriggerState.ACTIVE, None, view.active[name]
    elif level.true and hold:
        state, reason, message = TriggerState.HELD, hold.reason, f"{level.message}; {hold.message}"
    elif level.waits:
        state = TriggerState.WAITING
    else:
        state = TriggerState.IDLE
        if hold:
            reason, message = hold.reason, hold.message
        elif before and before.reason in STAYS and not reason:
            reason, message = before.reason, before.message or message
    since = before.since if before and before.state is state else view.case.now.time
    brokers = tuple(sorted(level.brokers)) if level.true or state is TriggerState.WAITING else ()
    return TriggerStatus(name=name, state=state, since=since, brokers=brokers, reason=reason, message=message)
