"""A case with what was seen just now in its record, and the way from there to a decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reassign.api.made_plan import MadePlan
from reassign.api.reassignment_record import RecordedDecommission, RecordedWait
from reassign.core.automation.case import DecommissionCase, wanted_cordons
from reassign.core.automation.conditions import Standing, status_of
from reassign.core.automation.emptiness import BrokerJudged
from reassign.core.automation.model import AutomationStep, DecommissionDecision, WriteRecord
from reassign.core.automation.timers import Timer, left, whole
from reassign.core.plans.windows import windows_at

WAVE_IN_FLIGHT = "WaveInFlight"
NO_FAILURES: Mapping[str, object] = {"failures": 0, "last_failure": None, "next_attempt": None, "generation": None}
"""What a record says of plans that could not go on, once one has, or an edit has ended the wait."""
ANEW_SECONDS = 3600
"""How long after a plan that was never approved, and no longer fits, the next one is made."""


@dataclass(frozen=True, slots=True)
class View:
    """A case, with what was seen just now in its record."""

    case: DecommissionCase
    record: RecordedDecommission
    brokers: Mapping[int, BrokerJudged] = field(default_factory=dict)
    timers: Mapping[int, Timer] | None = None
    after: Sequence[AutomationStep] = ()
    """Steps after all others."""

    @property
    def empty(self) -> bool:
        return all(judged.emptiness.empty for judged in self.brokers.values())

    @property
    def left(self) -> int:
        """Replicas that are left on the brokers."""
        return sum(judged.replicas for judged in self.brokers.values())

    def with_record(self, **update: object) -> View:
        return replace(self, record=self.record.model_copy(update=update))

    def with_wait(self, **update: object) -> View:
        """Return the view with a wait until the next plan; an edit may end it."""
        return self.with_record(generation=self.case.it.generation, **update)

    def with_plan(self, **update: object) -> View:
        plan = self.record.plan
        return self.with_record(plan=plan and plan.model_copy(update=update))

    def decided(
        self, steps: Sequence[AutomationStep], standing: Standing, plans: Sequence[MadePlan] | None = None
    ) -> DecommissionDecision:
        """Return the decision; what has changed in the record is written before the steps."""
        case = self.case
        it, now = case.it, case.now.time
        steps = [*steps, *self.after]
        if self.record != it.record:
            steps.insert(0, WriteRecord(self.record))
        listed_plans = it.status.plans if plans is None else plans
        status = status_of(it, standing, self.brokers, case.plan, listed_plans, now)
        times = [windows_at(it.spec.windows, now).changes]
        waits = (left(wait, case.waits, case.now) for wait in self.record.waits)
        times += [now + timedelta(seconds=seconds) for seconds in waits if seconds > 0]
        changes = min((time for time in times if time), default=None)
        timers = case.timers if self.timers is None else self.timers
        cordons = wanted_cordons(it, case.cluster, now)
        cordons |= wanted_cordons(replace(it, record=self.record), case.cluster, now) & case.cluster.cordons
        return DecommissionDecision(
            steps,
            status,
            cordons,
            {b: timers[b] for b in it.brokers & timers.keys()},
            changes,
        )


def anew(now: datetime) -> RecordedWait:
    """Return the wait until a plan that was never approved is made anew."""
    return RecordedWait(seconds=ANEW_SECONDS, until=whole(now) + timedelta(seconds=ANEW_SECONDS))


def grown(before: RecordedWait | None, now: datetime, first: int, longest: int) -> RecordedWait:
    """Return a wait twice as long as the one before."""
    seconds = min(2 * before.seconds, longest) if before else first
    return RecordedWait(seconds=seconds, until=whole(now) + timedelta(seconds=seconds))
