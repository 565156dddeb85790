"""The command `explain`: what each trigger of a ReassignmentPolicy sees, what holds it, and when it acts next.

All of it is what the operator wrote to the status, and what the spec says of times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import typer
from pydantic import ValidationError

from reassign.api.common import Condition, ConditionStatus, Model
from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_policy import (
    OnSchedule,
    PolicyPlan,
    ReassignmentPolicySpec,
    ReassignmentPolicyStatus,
    Trigger,
    TriggerKind,
    TriggerState,
    TriggerStatus,
)
from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.listing import since
from reassign.cli.objects import Item, find
from reassign.cli.options import Output
from reassign.cli.refs import Kube, Ref
from reassign.core.automation.arbiter import HoldReason
from reassign.core.automation.triggers import NOT_SUPPORTED
from reassign.core.model.problem import Problem
from reassign.core.plans.windows import moments_around
from reassign.errors import Reason, ReassignError
from reassign.inspect import cluster as live
from reassign.kube.client import Kind
from reassign.text import amount, first_error, named_brokers

JUDGED = {
    Reason.SUSPENDED,
    Reason.INVALID_SCHEDULE,
    Reason.PLAN_FAILED,
    HoldReason.TOO_MANY_BROKERS_LOST,
    HoldReason.RACK_LOST,
}
"""Why a policy is not Ready, and its triggers are judged all the same."""
UNSEEN = "the operator has not seen it yet"


class Next(NamedTuple):
    """When a trigger acts next."""

    when: str | None
    """None: its plan is made or runs now."""
    time: datetime | None = None
    """The time, where it is known."""


class ExplainedTrigger(Model):
    """One trigger, as the operator has seen it, and when it acts next."""

    name: str
    kind: TriggerKind
    status: TriggerStatus | None
    """None: the operator has not seen it."""
    acts: str | None
    """When it acts next. None: its plan is made or runs now, or it was not seen."""
    acts_at: datetime | None
    """The time of that, where it is known."""
    last_plan: PolicyPlan | None
    """The last of its plans that has ended."""


class Explained(Model):
    """A policy, as the operator has seen it."""

    name: str
    namespace: str
    cluster: str
    written: datetime | None
    """When its status was changed last."""
    ready: Condition | None
    notes: tuple[str, ...]
    """Why what is said of the triggers may not hold."""
    approve: str | None
    """The command that approves the plan that waits."""
    triggers: tuple[ExplainedTrigger, ...]


def run(kube: Kube, name: Ref, output: Output) -> None:
    """Write what the triggers of a policy wait for."""
    if name.kind not in (None, Kind.REASSIGNMENT_POLICY):
        raise typer.BadParameter(f"{name.kind} has no triggers: name a ReassignmentPolicy", param_hint="'NAME'")
    item, now = asyncio.run(_read(kube, name))
    explained = explain(item, now)
    if not out.write_value(explained.wire(), output):
        for line in lines(explained, now):
            out.write_line(line)


async def _read(kube: Kube, name: Ref) -> tuple[Item, datetime]:
    async with live.api_server(kube.login) as server:
        return await find(server, namespace_of(kube), name, [Kind.REASSIGNMENT_POLICY]), server.now()


def explain(item: Item, now: datetime) -> Explained:
    """Explain a policy; raises ReassignError for a spec that this version cannot read."""
    status = item.status
    assert isinstance(status, ReassignmentPolicyStatus)
    try:
        spec = ReassignmentPolicySpec.parse(item.spec)
    except ValidationError as error:
        raise ReassignError(Reason.CANNOT_BE_READ, f"the spec of {item}: {first_error(error)}; correct it") from None
    seen = {trigger.name: trigger for trigger in status.triggers}
    ended = {plan.trigger: plan for plan in status.plans if plan.outcome is not PlanOutcome.RUNNING}
    awaited = status.digest is not None and item.up_to_date
    return Explained(
        name=item.name,
        namespace=item.namespace,
        cluster=item.cluster[1],
        written=written(item),
        ready=item.ready,
        notes=tuple(_notes(item)),
        approve=f"kubectl kafka-reassign approve {item} -n {item.namespace}" if awaited else None,
        triggers=tuple(
            _explained(trigger, seen.get(trigger.name), ended.get(trigger.name), spec, status, now)
            for trigger in spec.triggers
        ),
    )


def _explained(
    trigger: Trigger,
    seen: TriggerStatus | None,
    ended: PolicyPlan | None,
    spec: ReassignmentPolicySpec,
    status: ReassignmentPolicyStatus,
    now: datetime,
) -> ExplainedTrigger:
    acts, time = next_of(trigger, seen, spec, status, now) if seen else (None, None)
    return ExplainedTrigger(name=trigger.name, kind=trigger.kind, status=seen, acts=acts, acts_at=time, last_plan=ended)


def written(item: Item) -> datetime | None:
    """Return when the status of an object was changed last, where the API server says it."""
    fields = item.obj["metadata"].get("managedFields") or ()
    times = [field["time"] for field in fields if field.get("subresource") == "status" and "time" in field]
    return max(map(datetime.fromisoformat, times), default=None)


def _notes(item: Item) -> Iterator[str]:
    ready = item.ready
    if item.deleted:
        yield "it is being deleted, with its plans"
    if ready is None:
        yield UNSEEN
    elif not item.up_to_date:
        yield "the spec was changed, and this is about the one before"
    elif ready.status is not ConditionStatus.TRUE and ready.reason not in JUDGED:
        yield "its triggers are not judged now: what is said of them is what was seen before"
    elif ready.reason == Reason.SUSPENDED:
        yield "nothing acts while this lasts"


# --- when a trigger acts next ---


def next_of(
    trigger: Trigger,
    seen: TriggerStatus,
    spec: ReassignmentPolicySpec,
    status: ReassignmentPolicyStatus,
    now: datetime,
) -> Next:
    """Return when a trigger acts next, as things are."""
    match seen.state:
        case TriggerState.ACTIVE:
            waits = status.digest and status.plan and status.plan.trigger == trigger.name
            return Next("once its plan is approved" if waits else None)
        case TriggerState.HELD:
            return _before_deadline(trigger, _once_free(trigger, seen, spec), now)
        case TriggerState.WAITING:
            return _once_lasting(_seconds(trigger), seen, now)
    if seen.reason == NOT_SUPPORTED:
        return Next("once the brokers run Kafka 4.0 or later")
    if trigger.schedule is None:
        return Next(_once_true(trigger))
    _, following = _moments(trigger.schedule, now)
    return Next(f"at {_text(following)}", following) if following else Next("once its schedule is corrected")


def _once_free(trigger: Trigger, seen: TriggerStatus, spec: ReassignmentPolicySpec) -> str:
    """Return what ends a hold."""
    match seen.reason:
        case HoldReason.SUSPENDED:
            return "once the policy is resumed" if spec.suspend else "once the brake of the KafkaCluster is off"
        case HoldReason.TOO_MANY_BROKERS_LOST:
            return "once fewer brokers are down: bring some back, or raise maxBrokers"
        case HoldReason.RACK_LOST:
            return "once a broker of that rack is up again"
        case HoldReason.CLUSTER_UNSETTLED:
            return f"once no broker has come, gone or been fenced for {spec.settle_seconds} s"
        case HoldReason.PLAN_IN_PROGRESS:
            return "once that is over"
        case HoldReason.FOREIGN_IN_FLIGHT:
            return "once these moves have ended"
        case HoldReason.COOLDOWN | HoldReason.BACKOFF:
            return "at that time"
        case HoldReason.GAIN_TOO_SMALL:
            return "once these change" if trigger.brokers_added else "at that time"
    return "once that is over; it is tried again without an edit"


def _before_deadline(trigger: Trigger, when: str, now: datetime) -> Next:
    """Say until when a schedule that is due may still act."""
    last, following = _moments(trigger.schedule, now) if trigger.schedule else (None, None)
    if trigger.schedule is None or last is None:
        return Next(when)
    latest = last + timedelta(seconds=trigger.schedule.starting_deadline_seconds)
    return Next(f"{when}, if that is before {_text(latest)}{f'; else at {_text(following)}' if following else ''}")


def _once_lasting(seconds: int, seen: TriggerStatus, now: datetime) -> Next:
    """Say when a trigger that waits has waited long enough. A gap in what is observed begins its time anew."""
    time = seen.since + timedelta(seconds=seconds) if seen.since else None
    if time is None or time <= now:
        return Next(f"once that has lasted for {seconds} s, observed without a gap")
    return Next(f"at {_text(time)} or later, if that lasts", time)


def _once_true(trigger: Trigger) -> str:
    """Return what makes a trigger true that is idle."""
    seconds = _seconds(trigger)
    if trigger.broker_lost:
        return f"once a broker that has replicas was down for {seconds} s"
    if trigger.brokers_cordoned:
        return f"once another client has cordoned a broker that is up and has replicas for {seconds} s"
    below = trigger.brokers_added.below_percent if trigger.brokers_added else 0
    return f"once the same brokers have had less than {below} % of the mean number of replicas for {seconds} s"


def _seconds(trigger: Trigger) -> int:
    lasting = trigger.broker_lost or trigger.brokers_cordoned or trigger.brokers_added
    return lasting.after_seconds if lasting else 0


def _moments(schedule: OnSchedule, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the last moment of a schedule and the next one, as far as there are any."""
    found = moments_around(schedule.cron, schedule.time_zone, "schedule", now)
    if isinstance(found, Problem):
        return None, None
    last, following = found
    return last, None if isinstance(following, Problem) else following


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


# --- what is shown ---


def lines(it: Explained, now: datetime) -> Iterator[str]:
    """Yield the lines for people: the policy, then each trigger."""
    age = f"; its status was written {since(it.written, now)} ago" if it.written else ""
    yield f"krpol/{it.name} of the KafkaCluster {it.cluster}{age}"
    if it.ready:
        is_ready = it.ready.status is ConditionStatus.TRUE  # then the triggers say all that its message does
        yield f"Ready, {it.ready.reason}" if is_ready else f"not Ready, {it.ready.reason}: {it.ready.message}"
    yield from (f"note: {note}" for note in it.notes)
    if it.approve:
        yield f"approve its plan: {it.approve}"
    for trigger in it.triggers:
        yield ""
        yield from _trigger_lines(trigger, now)


def _trigger_lines(it: ExplainedTrigger, now: datetime) -> Iterator[str]:
    status = it.status
    if status is None:
        yield f"{it.name} ({it.kind}): {UNSEEN}"
        return
    how_long = f" for {since(status.since, now)}" if status.since else ""
    about = f", {named_brokers(status.brokers)}" if status.brokers else ""
    yield f"{it.name} ({it.kind}): {status.state}{how_long}{about}"
    message, why = status.message or "", f" ({status.reason})" if status.reason else ""
    match status.state:
        case TriggerState.HELD:
            sees, _, holds = message.partition("; ")
            yield f"  sees: {sees}"
            yield f"  held: {f'{holds}{why}' if holds else status.reason}"
        case TriggerState.ACTIVE:
            yield f"  plan: {message}"
        case _:
            yield f"  sees: {message}{why}"
    if it.acts:
        yield f"  acts: {it.acts}"
    if plan := it.last_plan:
        when = f" {since(plan.completion_time, now)} ago" if plan.completion_time else ""
        copied = f"{amount(plan.bytes)} (at least {amount(plan.lower_bound_bytes)})"
        yield f"  last: {plan.name}, {plan.outcome}{when}, {copied}"
