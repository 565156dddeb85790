"""The figures of a Kafka cluster after a reconciliation: partitions by state, bytes to come, throttles, cordons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reassign.api.config_keys import CORDONED_LOG_DIRS
from reassign.api.made_plan import PlanOutcome
from reassign.api.partition_reassignment import PartitionState
from reassign.api.reassignment_policy import ReassignmentPolicyStatus, TriggerKind, TriggerState, TriggerStatus
from reassign.api.reassignment_record import RecordedPolicy
from reassign.api.window import Window
from reassign.core.automation.decide import AutomationDecision
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PolicyResource
from reassign.core.automation.triggers import lasting
from reassign.core.brake import foreign, partitions_held_by
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.configs.diff import from_record
from reassign.core.configs.stage import ConfigDecision, left_in_flight
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import Snapshot, cordoned
from reassign.core.model.verdict import Verdict
from reassign.core.plans.model import PlanResource
from reassign.core.plans.windows import times_closed
from reassign.core.report.lines import lines_of
from reassign.core.report.statuses import targets_of
from reassign.core.tick import Decision
from reassign.errors import Reason

WITH_BYTES_TO_COME = (PartitionState.PENDING, PartitionState.BLOCKED, PartitionState.IN_FLIGHT)

SUSPENDED = Reason.SUSPENDED.value
PAST_WINDOWS = 3
"""How often its windows close until a plan counts as one that they do not suffice for."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of one Kafka cluster. Partitions are those of resources that are neither suspended nor ended."""

    partitions: Mapping[str, int]
    """Partitions by state."""
    blocked: Mapping[str, int]
    """Blocked partitions by reason."""
    stalled: Mapping[str, int]
    """Stalled partitions by reason."""
    remaining_bytes: int
    """Known bytes that are not copied yet."""
    foreign: int
    """Partitions that other clients move."""
    throttles: Mapping[str, int]
    """Rates by the field of spec.throttle, in bytes per second; 0 for none."""
    left_over: int
    """Brokers and topics whose throttle no move needs any more."""
    cordoned: int
    """Brokers that have our cordon, and report that they are cordoned."""
    cordons_left_over: int
    """Brokers that have our cordon, though no BrokerDecommission wants it any more."""


def figures_of(decision: Decision) -> Figures:
    """Count partitions, bytes and throttles of a cluster, as a settled decision leaves them."""
    snapshot, verdicts = decision.snapshot, [v for v in decision.verdicts if _counts(v)]
    lines = [line for v in verdicts for line in lines_of(v, targets_of(v), snapshot)]
    states = Counter(line.state for line in lines)
    to_come = (line.bytes for line in lines if line.bytes and line.state in WITH_BYTES_TO_COME)
    record = decision.throttle.record
    cordons = recorded_cordons(record) & snapshot.brokers.keys()
    return Figures(
        partitions={state: states[state] for state in PartitionState},
        blocked=Counter(line.problem.reason for line in lines if line.state is PartitionState.BLOCKED and line.problem),
        stalled=Counter(
            problem.reason for v in verdicts for row in v.rows.values() if (problem := row.said(SayingKind.OVERDUE))
        ),
        remaining_bytes=sum(known.total - known.copied for known in to_come),
        foreign=len(foreign(partitions_held_by(v.resource for v in decision.verdicts), snapshot)),
        throttles={
            "interBroker": (record and record.inter_broker) or 0,
            "logDir": (record and record.log_dir) or 0,
        },
        left_over=_left_over(decision.throttle, snapshot),
        cordoned=sum(cordoned(snapshot.log_dirs.get(broker, {})) is True for broker in cordons),
        cordons_left_over=0 if decision.throttle.untouched else len(cordons - decision.throttle.cordons.keys()),
    )


def _counts(verdict: Verdict) -> bool:
    resource = verdict.resource
    return not (resource.settled or resource.asleep or resource.dry_run)


def _left_over(throttle: ConfigDecision, snapshot: Snapshot) -> int:
    if throttle.untouched and left_in_flight(throttle.record, snapshot):
        return 0
    wanted = {key.resource for key in (*throttle.aim.values, *throttle.aim.items) if key.config != CORDONED_LOG_DIRS}
    recorded = {key.resource for key in from_record(throttle.record) if key.config != CORDONED_LOG_DIRS}
    return len(recorded - wanted)


# --- Plans and their owners ---


@dataclass(frozen=True, slots=True)
class AutomationFigures:
    """Counts of the BrokerDecommissions and ReassignmentPolicies of one Kafka cluster."""

    replicas_left: int = 0
    """Replicas on the brokers of BrokerDecommissions at work: approved and not suspended."""
    triggers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Triggers by kind and state; one that a user has suspended counts as Suspended."""
    brokers_lost: int = 0
    """Brokers that have replicas, and have been down for as long as a policy asks."""


def automation_figures(decision: AutomationDecision) -> AutomationFigures:
    """Count what a decision shows of the owners of plans."""
    left, lost, states = 0, frozenset[int](), Counter[tuple[str, str]]()
    for uid, it in decision.judged.items():
        if isinstance(it, DecommissionResource):
            at_work = it.approved and not (it.spec.suspend or it.deleted or it.finished)
            found = decision.decommissions.get(uid) if at_work else None
            left += (found and found.status.replicas_left) or 0
        elif decided := decision.policies.get(uid):
            watched, kinds = decided.watched, {trigger.name: trigger.kind for trigger in it.spec.triggers}
            lost |= lasting(watched.down, it.lost_seconds) if watched else frozenset()
            states.update({(kind, state): 0 for kind in kinds.values() for state in (*TriggerState, SUSPENDED)})
            states.update((kinds[one.name], _state(one)) for one in decided.status.triggers if one.name in kinds)
    return AutomationFigures(left, states, len(lost))


def _state(trigger: TriggerStatus) -> str:
    """Return the state of a trigger: what a user holds is told from what waits for something else."""
    held_by_user = trigger.state is TriggerState.HELD and trigger.reason == SUSPENDED
    return SUSPENDED if held_by_user else trigger.state


def ended_plans(it: PolicyResource, after: ReassignmentPolicyStatus) -> list[tuple[TriggerKind, PlanOutcome]]:
    """Return the kind and the outcome of each plan that a policy's next status tells the end of."""
    before = {plan.name: plan.outcome for plan in it.status.plans}
    kinds = {trigger.name: trigger.kind for trigger in it.spec.triggers}
    kinds |= {plan.trigger: plan.kind for plan in it.recorded_plans}  # its trigger may be gone
    ended = (plan for plan in after.plans if plan.outcome not in (PlanOutcome.RUNNING, before.get(plan.name)))
    return [(kinds[plan.trigger], plan.outcome) for plan in ended if plan.trigger in kinds]


def begun_bytes(before: RecordedPolicy, after: RecordedPolicy) -> int:
    """Return the bytes of the waves that begin with the next record of a policy."""
    old, new = before.plan, after.plan
    if not (old and new and before.approval and after.approval) or old.number != new.number:
        return 0
    if new.begun_waves <= old.begun_waves:
        return 0
    return after.approval.begun_bytes - before.approval.begun_bytes


def is_past_windows(
    plan: PlanResource, waves: Iterable[Resource | Settled], windows: Sequence[Window], now: datetime
) -> bool:
    """Whether a plan has begun, and its windows have closed three times since then and have not ended it.

    The `windows` are its own, or those of its owner.
    """
    if not windows or plan.deleted or plan.retired or not plan.under_way:
        return False
    names = {wave.name for wave in plan.status.waves}
    began = [time for wave in waves if wave.name in names and (time := _start_time(wave))]
    return bool(began) and times_closed(windows, min(began), now, PAST_WINDOWS) == PAST_WINDOWS


def _start_time(wave: Resource | Settled) -> datetime | None:
    return wave.start_time if isinstance(wave, Settled) else wave.status.start_time
