"""A ReassignmentPolicy as the core sees it, what a decision about one reads, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from reassign.api.common import bytes_of
from reassign.api.digest import hashed
from reassign.api.goal import Scope
from reassign.api.kafka_cluster import Execution
from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.partition_reassignment import STALL_TIMEOUT_SECONDS, ClusterRef
from reassign.api.reassignment_plan import Approval, Goal, ReassignmentPlanSpec, Topics
from reassign.api.reassignment_policy import (
    PlanTemplate,
    ReassignmentPolicySpec,
    ReassignmentPolicyStatus,
    Trigger,
    TriggerKind,
)
from reassign.api.reassignment_record import RecordedPolicy, RecordedPolicyPlan, RecordedTrigger
from reassign.api.window import Windows
from reassign.core.automation.approval import known_bytes, manifests_of, merely_evacuates, shown_digest
from reassign.core.automation.arbiter import EVACUATING, RANKS, Running
from reassign.core.automation.case import TTL_SECONDS, with_ttl
from reassign.core.automation.model import (
    BrokersSeen,
    CreatePlan,
    DecommissionResource,
    DeletePlan,
    OwnedCluster,
    OwnerResource,
    PlanSeen,
    RetirePlan,
    RunPlan,
    WorkedOut,
    WorkOut,
    plan_spec_digest,
)
from reassign.core.automation.scope import NOT_KNOWN, beyond, otherwise
from reassign.core.automation.timers import Waits
from reassign.core.automation.triggers import LOST_SECONDS
from reassign.core.automation.watch import Watched
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.core.model.read_back import PolicyStatusReadBack
from reassign.text import amount, named_brokers


@dataclass(frozen=True, kw_only=True)
class PolicyResource(OwnerResource):
    """One ReassignmentPolicy."""

    spec: ReassignmentPolicySpec
    status: PolicyStatusReadBack
    record: RecordedPolicy

    @property
    def lost_seconds(self) -> int:
        """After how long a broker that is down counts as lost."""
        found = self.trigger_of(TriggerKind.BROKER_LOST)
        return found.broker_lost.after_seconds if found and found.broker_lost else LOST_SECONDS

    @property
    def stall_timeout_seconds(self) -> int:
        """After how long a wait that ends by itself is Stalled."""
        template = self.spec.plan_template
        return (template and template.template.stall_timeout_seconds) or STALL_TIMEOUT_SECONDS

    def trigger(self, name: str) -> Trigger | None:
        """Return a trigger by its name."""
        return next((trigger for trigger in self.spec.triggers if trigger.name == name), None)

    def trigger_of(self, kind: TriggerKind) -> Trigger | None:
        """Return the first trigger of a kind."""
        return next((trigger for trigger in self.spec.triggers if trigger.kind is kind), None)

    def still_has(self, plan: RecordedPolicyPlan) -> bool:
        """Whether the trigger that a plan was made for is in the spec, with the same kind."""
        trigger = self.trigger(plan.trigger)
        return trigger is not None and trigger.kind is plan.kind

    def needs_approval(self, name: str) -> bool:
        """Whether plans of a trigger need approval, whatever they copy."""
        trigger = self.trigger(name)
        return ((trigger and trigger.approval) or self.spec.approval) is Approval.REQUIRED

    def max_bytes(self, name: str) -> int | None:
        """Return how many bytes a plan of a trigger may copy that needs no approval otherwise; None: any number."""
        asked = self.spec.max_bytes
        return None if asked is None or self.needs_approval(name) else bytes_of(asked)

    @property
    def recorded_plans(self) -> tuple[RecordedPolicyPlan, ...]:
        """The plans that its record names."""
        return self.record.plans

    def recorded_plan(self, name: str) -> RecordedPolicyPlan | None:
        """Return what its record says of a plan."""
        return next((plan for plan in self.recorded_plans if plan.name == name), None)

    @property
    def evacuates(self) -> bool:
        """Whether a plan that empties brokers is approved, and may go on."""
        under_way = (plan for plan in self.recorded_plans if plan.approved and not plan.retired)
        return any(is_evacuating(plan.kind) for plan in under_way)

    def has_made(self, name: str) -> bool:
        """Whether its plans before those that its record names had this name, or may have had."""
        of, _, number = name.removeprefix(f"{self.name}-").rpartition("-")
        is_numbered = number.isascii() and number.isdigit() and 0 < int(number) <= self.record.number
        return is_numbered and name == f"{self.name}-{of}-{int(number)}" and self.recorded_plan(name) is None

    def lets_go_on(self, plan: str) -> bool:
        """Whether what has begun of a plan, by its name, may go on: its approval counts, and nothing stops it."""
        found = self.recorded_plan(plan)
        return found is not None and self.approves(found) and not (self.spec.suspend or self.deleted)

    def windows_of(self, plan: str) -> Windows:
        """Return the windows that a plan waits for."""
        found = self.recorded_plan(plan)
        return self.windows(found.trigger) if found else ()

    def needs_all_of(self, plan: str) -> bool:
        """Whether a plan has to leave nothing on the brokers that it empties."""
        found = self.recorded_plan(plan)
        return found is None or found.kind is not TriggerKind.BROKER_LOST

    def windows(self, name: str) -> Windows:
        """Return the windows that plans of a trigger wait for."""
        trigger = self.trigger(name)
        if trigger and trigger.windows is not None:
            return trigger.windows
        return () if trigger and trigger.broker_lost else self.spec.windows

    def approves(self, plan: RecordedPolicyPlan) -> bool:
        """Whether the recorded approval counts for a plan that has it: the spec still has what gave it."""
        approval = self.record.approval
        if approval is None or approval.trigger != plan.trigger:
            return False
        if approval.digest:
            return approval.digest == self.spec.approved_digest
        return self.still_has(plan) and not self.needs_approval(plan.trigger)


PlanOwner = DecommissionResource | PolicyResource


@dataclass(frozen=True, slots=True)
class WritePolicyRecord:
    """Write the record of the policy. What follows needs it."""

    record: RecordedPolicy


PolicyStep = WritePolicyRecord | WorkOut | CreatePlan | RunPlan | RetirePlan | DeletePlan


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What is to be done about one policy. Steps are taken in their order. A plan without a RunPlan starts nothing."""

    steps: Sequence[PolicyStep]
    status: ReassignmentPolicyStatus
    watched: Watched | None = None
    """What has been watched: for the next decision of this process."""
    changes: datetime | None = None
    """When something changes by the time alone."""
    begins: Running | None = None
    """Its plan that only another one's turn keeps from beginning."""
    running: Running | None = None
    """Its plan that is under way, and does not give way to BrokerDecommissions."""
    lost: frozenset[int] = frozenset()
    """The lost brokers that its plan evacuates."""
    lifts_cordons: bool = False
    """Whether our cordons are to be lifted."""


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """All that a decision about one policy reads."""

    it: PolicyResource
    cluster: OwnedCluster
    seen: BrokersSeen | Problem
    now: Clock
    plans: Mapping[str, PlanSeen] = field(default_factory=dict)
    """The plans in its namespace, by name."""
    worked: WorkedOut | Problem | None = None
    """What working out a plan came to, where the last decision asked for it; older ones are to be forgotten."""
    watched: Watched | None = None
    """What this process has watched; None: nothing yet."""
    waits: Waits = field(default_factory=dict)
    """When its recorded waits began."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The uids of the plans in its namespace that cannot be read, by name."""
    before: str | None = None
    """The policy of the same KafkaCluster that goes before it, and why."""
    running: Sequence[Running] = ()
    """The plans of BrokerDecommissions that are under way."""
    turn: str | None = None
    """The plan that goes first, where it is not one of this policy's."""
    yields: str | None = None
    """What its own plan that is under way is to be retired for."""
    emptied: frozenset[int] = frozenset()
    """The brokers of BrokerDecommissions that are approved and have not succeeded, or that cannot be read."""
    users: Sequence[str] = ()
    """Plans of users in its namespace that have moves in flight, or have advanced within stallTimeoutSeconds."""
    unread: Sequence[str] = ()
    """The BrokerDecommissions that cannot be read."""

    def is_taken(self, name: str) -> bool:
        """Whether there is a plan of that name."""
        return name in self.plans or name in self.unreadable

    @property
    def suspended(self) -> str | None:
        """Why nothing is to start: a user has asked for that."""
        if self.it.spec.suspend:
            return "spec.suspend is true: no plan is made, and none starts anything"
        if self.cluster.execution is not Execution.RUN:
            return f"execution of the KafkaCluster is {self.cluster.execution}"
        return None


def is_evacuating(kind: TriggerKind) -> bool:
    """Whether plans of a kind of trigger empty brokers."""
    return RANKS[kind] in EVACUATING


def spec_of(
    it: PolicyResource, trigger: Trigger, brokers: frozenset[int], avoid: frozenset[int]
) -> ReassignmentPlanSpec:
    """Return the spec of a trigger's plan that empties these brokers, or none; `avoid` are those that others empty."""
    template = it.spec.plan_template or PlanTemplate(goal=Goal())
    goal, topics = template.goal, template.topics
    if is_evacuating(trigger.kind):
        topics = Topics(exclude=())
        goal = Goal(drain_brokers=tuple(sorted(brokers)), scope=Scope.DRAINED, avoid_brokers=_some(avoid - brokers))
    else:
        allowed, asked = avoid if goal.brokers is None else avoid & set(goal.brokers), set(goal.avoid_brokers or ())
        more = sorted(allowed - asked)[: MAX_PLAN_BROKERS - len(asked)]
        goal = goal.model_copy(update={"avoid_brokers": _some(asked.union(more))})
    return ReassignmentPlanSpec(
        cluster_ref=ClusterRef(name=it.spec.cluster_ref.name),
        topics=topics,
        goal=goal,
        racks=template.racks,
        waves=template.waves,
        template=with_ttl(template.template),
        ttl_seconds_after_finished=TTL_SECONDS,
    )


def _some(brokers: Set[int]) -> tuple[int, ...] | None:
    return tuple(sorted(brokers)) or None


def digest_of(plan: RecordedPolicyPlan, found: PlanSeen) -> str:
    """Return what an approval of a plan names: what it does, and the plan, so that no approval serves twice."""
    return shown_digest([wave.digest for wave in found.plan.status.waves], frozenset(plan.brokers), plan.name)


def given(it: PolicyResource, plan: RecordedPolicyPlan, found: PlanSeen) -> bool:
    """Whether a plan is approved, or needs no approval of its own."""
    return it.spec.approved_digest == digest_of(plan, found) or needs_none(it, plan, found) or covered(it, plan, found)


def needs_none(it: PolicyResource, plan: RecordedPolicyPlan, found: PlanSeen) -> bool:
    """Whether a plan needs no approval, by its trigger and by what it copies."""
    copied, most = known_bytes(plan, found), it.max_bytes(plan.trigger)
    within = most is None or (copied and sum(copied) <= most)
    if not within or it.trigger(plan.trigger) is None or it.needs_approval(plan.trigger):
        return False
    return not is_evacuating(plan.kind) or not otherwise(manifests_of(found), frozenset(plan.brokers))


def avoids_all_of(wanted: ReassignmentPlanSpec, spec: ReassignmentPlanSpec) -> bool:
    """Whether a spec of a plan is the one that is wanted, though it may avoid more brokers."""
    avoid = wanted.goal.avoid_brokers
    goal = spec.goal.model_copy(update={"avoid_brokers": avoid})
    same = plan_spec_digest(spec.model_copy(update={"goal": goal})) == plan_spec_digest(wanted)
    return same and set(avoid or ()) <= set(spec.goal.avoid_brokers or ())


def covered(it: PolicyResource, plan: RecordedPolicyPlan, found: PlanSeen) -> bool:
    """Whether an approval by its digest covers a further plan, which empties no other brokers."""
    approval, brokers = it.record.approval, frozenset(plan.brokers)
    if approval is None or approval.digest is None or not is_evacuating(plan.kind) or not it.approves(plan):
        return False
    return brokers <= set(approval.brokers) and merely_evacuates(found, brokers, approval, known_bytes(plan, found))


def why_not(it: PolicyResource, plan: RecordedPolicyPlan, found: PlanSeen) -> list[str]:
    """Say why a plan needs an approval of its own."""
    copied, approval = known_bytes(plan, found), it.record.approval
    planned, brokers = manifests_of(found), frozenset(plan.brokers)
    most, reasons = it.max_bytes(plan.trigger), list[str]()
    if most is not None and not copied:
        reasons.append(NOT_KNOWN)
    elif most is not None and sum(copied) > most:
        reasons.append(f"it copies {amount(sum(copied))}, and maxBytes is {it.spec.max_bytes}")
    if is_evacuating(plan.kind) and not it.needs_approval(plan.trigger):
        reasons += otherwise(planned, brokers)
    if not is_evacuating(plan.kind) or approval is None or not approval.digest or not it.approves(plan):
        return reasons
    if more := brokers - set(approval.brokers):
        reasons.append(f"it empties {named_brokers(more)}, too")
    return [*dict.fromkeys([*reasons, *beyond(planned, brokers, approval, copied)])]


def sight_of(it: PolicyResource, kind: TriggerKind, brokers: frozenset[int], seen: BrokersSeen) -> str:
    """Return the digest of what a plan of a trigger has left: brokers and racks.

    Of one that empties brokers it leaves out how these are, and what has landed on them since. Of one that has the goal
    of the template it has that, too, since an edit of it may bring what the last one did not; and the number of all
    replicas, since those that have come may be movable.
    """
    there = {broker: found for broker, found in seen.brokers.items() if found.up or found.holds}
    left: list[object] = [*sorted(brokers)]
    if is_evacuating(kind):
        there = {broker: found for broker, found in there.items() if broker not in brokers}
    elif it.spec.plan_template:
        left += [it.spec.plan_template.wire(), sum(sum(found.replicas.values()) for found in seen.brokers.values())]
    return hashed([kind, sorted((broker, found.up, found.rack or "") for broker, found in there.items()), left])


def recorded_trigger(record: RecordedPolicy, name: str) -> RecordedTrigger:
    """Return how far a trigger is."""
    return next((known for known in record.triggers if known.name == name), RecordedTrigger(name=name))


def begun_anew(record: RecordedPolicy) -> RecordedPolicy:
    """Return what a record still says once another Kafka cluster has taken the place of its own: which plans to end."""
    plan, waiting = (of and of.model_copy(update={"retired": True}) for of in (record.plan, record.waiting))
    return RecordedPolicy(number=record.number, plan=plan, waiting=waiting)


def running_of(it: PolicyResource, plan: RecordedPolicyPlan) -> Running:
    """Return an approved plan as others see it."""
    return Running(plan.name, RANKS[plan.kind], it.uid, plan.approved)


def waiting_of(it: PolicyResource, plan: RecordedPolicyPlan, found: PlanSeen | None) -> Running:
    """Return a plan that was not approved yet as others see it."""
    if plan.uid is None or found is None or not found.plan.planned:
        stage = "is being made"
    else:
        stage = "has not begun" if given(it, plan, found) else "waits for its approval"
    return Running(plan.name, RANKS[plan.kind], it.uid, plan.approved, stage)
