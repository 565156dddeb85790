"""Decide: what is to be done about one BrokerDecommission, and what its status says.

Each step is taken anew from what is observed and recorded: checks, plan, approval, cordon, waves, unregistering. What a
step needs to be known of later is recorded before it, so a crash between any two of them loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reassign.api.broker_decommission import (
    BrokerDecommission,
    CordonWish,
    DecommissionState,
    MadePlan,
    PlanOutcome,
    UnregisterWish,
)
from reassign.api.common import API_VERSION, ConditionStatus
from reassign.api.digest import hashed
from reassign.api.goal import Scope
from reassign.api.kafka_cluster import Execution
from reassign.api.partition_reassignment import ClusterRef
from reassign.api.reassignment_plan import (
    Approval,
    BalanceStatus,
    Goal,
    LowerBound,
    PlanMoves,
    ReassignmentPlan,
    ReassignmentPlanSpec,
    Topics,
    Wave,
    WaveState,
)
from reassign.api.reassignment_record import RecordedApproval, RecordedDecommission, RecordedPlan, RecordedWait
from reassign.core.automation.conditions import Standing, broker_state, deleted_plan, made_plans, status_of
from reassign.core.automation.emptiness import BROKER_NOT_EMPTY, BrokerJudged, judge_brokers
from reassign.core.automation.model import (
    AutomationStep,
    BrokersSeen,
    CreatePlan,
    DecommissionDecision,
    DecommissionResource,
    DeletePlan,
    OwnedCluster,
    PlanSeen,
    RetirePlan,
    RunPlan,
    UnregisterBroker,
    WorkedOut,
    WorkOut,
    WriteRecord,
    plan_spec_digest,
)
from reassign.core.automation.scope import beyond
from reassign.core.automation.timers import Timer
from reassign.core.configs.cordons import CordonReason
from reassign.core.model.forwarding import LANDING_SECONDS, Clock
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.plans.conditions import summary_of
from reassign.core.plans.model import AddFinalizer, Manifest, Planned, RemoveFinalizer
from reassign.core.plans.windows import windows_at
from reassign.errors import Reason
from reassign.text import counted, listed, named_brokers

MADE_BY_LABEL = "kafka.reassign.dev/made-by"
"""The uid of the object that a plan was made for."""
TTL_SECONDS = 604_800
"""How long plans and waves stay after their end."""
CORDON_SECONDS = 60.0
"""How long the first wave waits for a cordon."""
LIFTING_SECONDS = 60.0
"""How long a deletion waits for a cordon to be lifted: then the KafkaCluster's record lifts it later."""
DOWN_SECONDS = 60
"""How long a broker is down before it is unregistered."""
ANEW_SECONDS = 3600
"""How long after a plan that was never approved, and no longer fits, the next one is made."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 60, 3600
"""The waits for a further plan: each is twice the one before."""
MOST_FAILURES = 3
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 3600, 21_600
"""The waits once so many plans in a row could not go on."""

WAVE_IN_FLIGHT = "WaveInFlight"
PLAN_IN_PROGRESS = "PlanInProgress"


@dataclass(frozen=True, slots=True)
class DecommissionCase:
    """All that a decision about one decommission reads."""

    it: DecommissionResource
    cluster: OwnedCluster
    seen: BrokersSeen | Problem
    now: Clock
    plans: Mapping[str, PlanSeen] = field(default_factory=dict)
    """The plans in its namespace, by name."""
    worked: WorkedOut | Problem | None = None
    """What working out a plan came to, where the last decision asked for it; older ones are to be forgotten."""
    first: str | None = None
    """The decommission whose turn it is, where it is another one's."""
    avoid: frozenset[int] = frozenset()
    """The brokers of all others that were approved and have not succeeded."""
    timers: Mapping[int, Timer] = field(default_factory=dict)

    @property
    def braked(self) -> bool:
        return self.cluster.execution is not Execution.RUN

    @property
    def plan(self) -> PlanSeen | None:
        """Its last plan, where it is there: it has the recorded uid, or is as it was to be created."""
        recorded = self.it.record.plan
        found = self.plans.get(recorded.name) if recorded else None
        if recorded is None or found is None:
            return None
        if recorded.uid:
            return found if found.plan.uid == recorded.uid else None
        as_created = found.owner == self.it.uid and found.spec_digest == recorded.spec_digest
        return found if as_created and not found.plan.deleted else None

    @property
    def spec(self) -> ReassignmentPlanSpec:
        """The spec of the plan that it needs now."""
        spec = self.it.spec
        there = frozenset[int]() if isinstance(self.seen, Problem) else self.it.brokers & self.seen.brokers.keys()
        template = spec.template
        if template.ttl_seconds_after_finished is None:
            template = template.model_copy(update={"ttl_seconds_after_finished": TTL_SECONDS})
        goal = Goal(
            drain_brokers=tuple(sorted(there or self.it.brokers)),
            scope=Scope.DRAINED,
            avoid_brokers=tuple(sorted(self.avoid)) or None,
        )
        return ReassignmentPlanSpec(
            cluster_ref=ClusterRef(name=spec.cluster_ref.name),
            topics=Topics(exclude=spec.exclude_topics),
            goal=goal,
            racks=spec.racks,
            waves=spec.waves,
            template=template,
            ttl_seconds_after_finished=TTL_SECONDS,
        )


def shown_digest(waves: Sequence[str], brokers: frozenset[int]) -> str:
    """Return what an approval names: what all waves do, by the digests of their specs in order, and the brokers."""
    return hashed([[*waves], sorted(brokers)])


def digest_of_nothing(it: DecommissionResource) -> str:
    """Return what an approval names where nothing would move."""
    return hashed([it.uid, sorted(it.brokers)])


def at_work(case: DecommissionCase) -> bool:
    """Whether it is this one's turn, until its plan has ended: no other may begin."""
    plan = case.it.record.plan
    if plan is None or not plan.approved or case.it.finished:
        return False
    return (not plan.retired and not case.it.deleted) or (case.plan is not None and case.plan.moving)


def may_begin(case: DecommissionCase) -> bool:
    """Whether only another one's turn keeps an approval from being taken up."""
    it, plan, found = case.it, case.it.record.plan, case.plan
    if plan is None or plan.approved or plan.retired or found is None or it.deleted or isinstance(case.seen, Problem):
        return False
    fits = found.plan.planned and not found.done and plan.spec_digest == plan_spec_digest(case.spec)
    held = it.spec.suspend or case.braked or _trouble(case, found) or _too_few(case, case.seen)
    return fits and not held and _given(case, found)


def wanted_cordons(it: DecommissionResource, cluster: OwnedCluster, now: datetime) -> frozenset[int]:
    """Return the brokers that are to be cordoned for a decommission, whatever is observed."""
    if it.spec.cordon is CordonWish.NEVER or not cluster.wants_cordons or it.finished:
        return frozenset()
    if it.deleted:
        return frozenset(broker.id for broker in it.record.brokers if _in_doubt(it, broker.id, now)) & cluster.cordons
    held = cluster.execution in (Execution.CANCEL_OURS, Execution.CANCEL_ALL)
    return it.brokers if it.approved and not held else frozenset()


def decide_decommission(case: DecommissionCase) -> DecommissionDecision:
    """Decide what to do about a decommission."""
    it, seen = case.it, case.seen
    view = _View(case, it.record)
    if it.deleted:
        return _take_down(view, it.deleted)
    if it.finished:
        return _finished(view)
    if not it.has_finalizer:
        return view.decided([AddFinalizer()], Standing(Reason.PLANNING, "it has just been seen"))
    if isinstance(seen, Problem):
        return view.decided([], Standing(seen.reason, seen.message))
    if not seen.forwarded:
        message = "no broker reaches a controller, so what they say of each other may be long ago"
        return view.decided([], Standing(Reason.NOT_OBSERVED, message))
    brokers = judge_brokers(it, seen, case.timers, case.now)
    timers = {broker: judged.timer for broker, judged in brokers.items() if judged.timer}
    update: dict[str, object] = {"brokers": tuple(judged.record for judged in brokers.values() if judged.record)}
    if it.record.failures and it.status.observed_generation not in (None, -1, it.generation):
        update |= {"failures": 0, "next_attempt": None, "next_plan": None}
    view = _View(case, it.record.model_copy(update=update), brokers, timers)
    if unknown := [broker for broker, judged in brokers.items() if judged.record is None]:
        message = f"{named_brokers(unknown, 'is')} not registered, and no replica names it: correct the brokers"
        return view.decided([], Standing(Reason.UNKNOWN_BROKER, message))
    return _with_plan(_unregistering(view, seen), seen)


@dataclass(frozen=True, slots=True)
class _View:
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

    def with_record(self, **update: object) -> _View:
        return replace(self, record=self.record.model_copy(update=update))

    def with_plan(self, **update: object) -> _View:
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
        times += [wait.until for wait in (self.record.next_plan, self.record.next_attempt) if wait and wait.until > now]
        changes = min((time for time in times if time), default=None)
        timers = case.timers if self.timers is None else self.timers
        return DecommissionDecision(
            steps,
            status,
            wanted_cordons(it, case.cluster, now),
            {b: timers[b] for b in it.brokers & timers.keys()},
            changes,
        )


# --- The end ---


def _take_down(view: _View, since: datetime) -> DecommissionDecision:
    """Delete the plan, and wait until it is gone and the cordons are lifted."""
    case = view.case
    it, now = case.it, case.now.time
    if (found := case.plan) is not None:
        steps = [] if found.plan.deleted else [DeletePlan(found.plan)]
        return view.decided(steps, Standing("Deleting", f"its plan {found.plan.name} is being deleted"))
    if doubted := [broker for broker in sorted(it.brokers) if _in_doubt(it, broker, now, case.seen)]:
        return view.decided([], Standing("Deleting", f"{named_brokers(doubted, 'is')} being unregistered"))
    if (left := it.brokers & case.cluster.cordons) and now - since < timedelta(seconds=LIFTING_SECONDS):
        return view.decided([], Standing("Deleting", f"the cordon of {named_brokers(left)} is being lifted"))
    return view.decided([RemoveFinalizer()] if it.has_finalizer else [], Standing("Deleting", "it goes now"))


def _in_doubt(it: DecommissionResource, broker: int, now: datetime, seen: BrokersSeen | Problem | None = None) -> bool:
    """Whether an UnregisterBroker that was sent may still land."""
    known = it.recorded(broker)
    if known is None or known.unregister_sent_at is None:
        return False
    gone = isinstance(seen, BrokersSeen) and not (broker in seen.brokers and seen.brokers[broker].registered)
    return not gone and now - known.unregister_sent_at < timedelta(seconds=LANDING_SECONDS)


def _finished(view: _View) -> DecommissionDecision:
    """Say so from the record alone: a broker that registers with such an id later is another one."""
    case = view.case
    it, found, plan = case.it, case.plan, case.it.record.plan
    steps: list[AutomationStep] = []
    if found and plan and not (found.done or found.plan.deleted):
        steps.append(RetirePlan(found.plan) if plan.approved else DeletePlan(found.plan))
    elif it.has_finalizer:
        steps = [RemoveFinalizer()]
    by_us = [broker.id for broker in it.record.brokers if broker.unregister_sent_at]
    message = f"{named_brokers(it.brokers, 'is')} empty and not registered any more"
    if by_us:
        message += f"; {named_brokers(by_us)} {'were' if len(by_us) > 1 else 'was'} unregistered by the operator"
    reason = DecommissionState.UNREGISTERED if by_us else DecommissionState.GONE
    return view.decided(steps, Standing(reason, message, empty=True, succeeded=True))


# --- Its plan ---


def _with_plan(view: _View, seen: BrokersSeen) -> DecommissionDecision:
    plan, found = view.record.plan, view.case.plan
    if plan is None:
        return _without_plan(view, seen)
    if plan.retired:
        return _after_plan(view, seen, plan, found)
    if plan.uid is None:
        return _to_be_created(view, plan, found)
    if found is None or found.plan.deleted:
        return _lost(view, plan)
    if not plan.approved:
        return _unapproved(view, seen, plan, found)
    return _carry_out(view, plan, found)


def _to_be_created(view: _View, plan: RecordedPlan, found: PlanSeen | None) -> DecommissionDecision:
    """Create the plan that the record names; a name that is taken gives the next number."""
    case = view.case
    if found:
        message = f"the plan {plan.name} is being made"
        return view.with_plan(uid=found.plan.uid).decided([], Standing(Reason.PLANNING, message))
    if plan.spec_digest != plan_spec_digest(case.spec):
        return view.with_plan(retired=True).decided([], Standing(Reason.PLANNING, "the spec has changed meanwhile"))
    if plan.name in case.plans:
        return _named_next(view)
    return view.decided([CreatePlan(_manifest(case, plan.name))], Standing(Reason.PLANNING, f"{plan.name} is created"))


def _named_next(view: _View) -> DecommissionDecision:
    case, before = view.case, view.record.plan
    number = before.number + 1 if before else 1
    name = f"{case.it.name}-{number}"
    plan = RecordedPlan(number=number, name=name, spec_digest=plan_spec_digest(case.spec))
    view = view.with_record(plan=plan)
    steps = [] if name in case.plans else [CreatePlan(_manifest(case, name))]
    return view.decided(steps, Standing(Reason.PLANNING, f"the plan {name} is created"))


def _manifest(case: DecommissionCase, name: str) -> Manifest:
    it = case.it
    owner = {
        "apiVersion": API_VERSION,
        "kind": BrokerDecommission.KIND,
        "name": it.name,
        "uid": it.uid,
        "controller": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": ReassignmentPlan.KIND,
        "metadata": {
            "name": name,
            "namespace": it.namespace,
            "labels": {MADE_BY_LABEL: it.uid},
            "ownerReferences": [owner],
        },
        "spec": case.spec.wire(),
    }


def _lost(view: _View, plan: RecordedPlan) -> DecommissionDecision:
    """Go on without a plan that was deleted: it is not created again."""
    why = f"the plan {plan.name} was deleted"
    if plan.approved:
        listing = deleted_plan(view.case.it.status.plans, plan.name, view.case.now.time)
        return _cannot_go_on(view, why, [], listing)
    now = view.case.now.time
    return view.with_plan(retired=True).with_record(next_plan=_anew(now)).decided([], Standing(Reason.PLANNING, why))


def _anew(now: datetime) -> RecordedWait:
    return RecordedWait(seconds=ANEW_SECONDS, until=_whole(now) + timedelta(seconds=ANEW_SECONDS))


def _grown(before: RecordedWait | None, now: datetime, first: int, longest: int) -> RecordedWait:
    """Return a wait twice as long as the one before."""
    seconds = min(2 * before.seconds, longest) if before else first
    return RecordedWait(seconds=seconds, until=_whole(now) + timedelta(seconds=seconds))


def _whole(now: datetime) -> datetime:
    return now.replace(microsecond=0)


def _cannot_go_on(
    view: _View, why: str, steps: Sequence[AutomationStep], listing: Sequence[MadePlan]
) -> DecommissionDecision:
    """Retire a plan, and have what is left planned anew: after three in a row much later."""
    now, before = view.case.now.time, view.record
    failures = before.failures + 1
    attempt = before.next_attempt
    if failures >= MOST_FAILURES:
        attempt = _grown(attempt, now, FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
    further = _grown(before.next_plan, now, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
    view = view.with_plan(retired=True).with_record(failures=failures, next_attempt=attempt, next_plan=further)
    return view.decided(steps, Standing(WAVE_IN_FLIGHT, f"{why}; what is left gets another plan"), listing)


def _trouble(case: DecommissionCase, found: PlanSeen) -> str | None:
    """Say why a plan that is there cannot go on."""
    plan, recorded = found.plan, case.it.record.plan
    if recorded and found.spec_digest != recorded.spec_digest:
        return f"the spec of {plan.name} is not as it was created"
    if recorded and recorded.approved and recorded.digest != _digest_of(case.it, found):
        return f"{plan.name} is not as it was approved"
    said = plan.status.conditions if plan.status.observed_generation == plan.generation else ()
    true = {c.type: c for c in said if c.status is ConditionStatus.TRUE}
    if stale := true.get("PlanStale"):
        return f"{plan.name} does not fit the cluster any more: {stale.message}"
    if plan.planned and found.spoilt:
        return f"{plan.name}: {found.spoilt.message}"
    if (stalled := true.get("Stalled")) and not found.advancing:
        return f"{plan.name} does not go on: {stalled.message}"
    return None


# --- Before it is approved ---


def _unapproved(view: _View, seen: BrokersSeen, plan: RecordedPlan, found: PlanSeen) -> DecommissionDecision:
    """Wait for the approval of a plan; one that does not fit any more is made anew, which is no failure."""
    case = view.case
    it, now = case.it, case.now.time
    if plan.spec_digest != plan_spec_digest(case.spec):
        standing = Standing(Reason.PLANNING, f"{plan.name} is made anew, for the spec as it is now")
        return view.with_plan(retired=True).decided([DeletePlan(found.plan)], standing)
    if why := _trouble(case, found):
        standing = Standing(Reason.PLANNING, f"{why}; it is made anew")
        view = view.with_plan(retired=True).with_record(next_plan=_anew(now))
        return view.decided([DeletePlan(found.plan)], standing)
    if not found.plan.planned:
        return view.decided([], Standing(Reason.PLANNING, f"the waves of {plan.name} are being written"))
    if found.done:
        return _ended(view, found)
    digest = _digest_of(it, found)
    if held := _held(case):
        return view.decided([], held._replace(digest=digest))
    if not _given(case, found):
        reasons = (
            beyond(_as_planned(found), it.brokers, it.record.approval) if it.approved and it.record.approval else []
        )
        return view.decided([], _awaiting(case, digest, f"{plan.name}: {_content(found.plan.status.waves)}", reasons))
    if case.first:
        return view.decided([], _another_first(case)._replace(digest=digest))
    if few := _too_few(case, seen):
        return view.decided([], few._replace(digest=digest))
    if not _covered(case, found):
        named = digest if it.spec.approved_digest == digest else None
        view = view.with_record(approval=RecordedApproval(digest=named, bytes=_bytes(found.plan.status.waves)))
    return view.with_plan(approved=True, digest=digest).decided(
        [], Standing(WAVE_IN_FLIGHT, f"{plan.name} is approved")
    )


def _digest_of(it: DecommissionResource, found: PlanSeen) -> str:
    return shown_digest([wave.digest for wave in found.plan.status.waves], it.brokers)


def _bytes(waves: Sequence[Wave]) -> int:
    return sum(wave.bytes for wave in waves)


def _content(waves: Sequence[Wave]) -> str:
    return f"{counted(len(waves), 'wave')}, {counted(sum(wave.partitions for wave in waves), 'partition')}"


def _given(case: DecommissionCase, found: PlanSeen) -> bool:
    """Whether a plan is approved, or needs no approval of its own."""
    it = case.it
    if it.spec.approval is Approval.NOT_REQUIRED or it.spec.approved_digest == _digest_of(it, found):
        return True
    return _covered(case, found)


def _covered(case: DecommissionCase, found: PlanSeen) -> bool:
    """Whether an earlier approval covers a further plan."""
    it, approval = case.it, case.it.record.approval
    if approval is None or not it.approved:
        return False
    unbegun = all(isinstance(wave, Resource) for wave in found.waves)
    return unbegun and not beyond(_as_planned(found), it.brokers, approval)


def _as_planned(found: PlanSeen) -> Planned:
    """Return a plan by the waves that are there, since they are what is carried out."""
    waves = {wave.name: wave for wave in found.waves if isinstance(wave, Resource)}
    names = [wave.name for wave in found.plan.status.waves]
    return Planned(
        input_hash=found.plan.input_hash,
        manifests=tuple({"spec": waves[name].spec.wire()} for name in names if name in waves),
        waves=tuple(found.plan.status.waves),
        moves=PlanMoves(replicas=0, bytes=0, leaders=0),
        lower_bound=LowerBound(bytes=0, replicas=0, waves=0),
        balance=BalanceStatus(),
    )


def _awaiting(case: DecommissionCase, digest: str, what: str, reasons: Sequence[str] = ()) -> Standing:
    it, given = case.it, case.it.spec.approved_digest
    approved = it.record.approval and it.record.approval.digest
    because = f"; the approval does not cover it: {'; '.join(reasons)}" if reasons else ""
    if given and given not in (digest, approved):
        message = f"spec.approvedDigest is {given}, and the plan is {digest}: read it, and copy status.digest there"
        return Standing(Reason.APPROVED_DIGEST_MISMATCH, f"{message}{because}", digest=digest)
    message = f"{what}{because}; copy status.digest, {digest}, to spec.approvedDigest"
    return Standing(Reason.AWAITING_APPROVAL, message, digest=digest)


def _another_first(case: DecommissionCase) -> Standing:
    return Standing(PLAN_IN_PROGRESS, f"the BrokerDecommission {case.first} goes first")


def _held(case: DecommissionCase) -> Standing | None:
    if case.it.spec.suspend:
        return Standing(Reason.SUSPENDED, "spec.suspend is true: no plan and no wave starts")
    if case.braked:
        return Standing(Reason.SUSPENDED, f"execution of the KafkaCluster is {case.cluster.execution}")
    return None


def _too_few(case: DecommissionCase, seen: BrokersSeen) -> Standing | None:
    """Say that too few brokers would remain."""
    others = seen.brokers.keys() - case.it.brokers - case.avoid
    remain = {broker for broker in others if seen.brokers[broker].up and not seen.brokers[broker].cordoned}
    if len(remain) >= seen.factor:
        return None
    message = (
        f"{counted(len(remain), 'broker')} would remain that are up and not cordoned, and {seen.factor} replicas of a "
        "partition need as many: add brokers, or name fewer"
    )
    return Standing(Reason.NOT_ENOUGH_BROKERS, message)


# --- Carrying it out ---


def _carry_out(view: _View, plan: RecordedPlan, found: PlanSeen) -> DecommissionDecision:
    """Let the waves of an approved plan go, one after the other; each is recorded before it begins."""
    case = view.case
    it, digest = case.it, _digest_of(case.it, found)
    listing = _listed(view, found, PlanOutcome.RUNNING, begun=plan.begun_waves > 0)
    if found.done and plan.digest == digest:
        return _ended(view, found)
    if not case.braked and (why := _trouble(case, found)):
        return _cannot_go_on(view, why, [RetirePlan(found.plan)], listing)
    windows = windows_at(it.spec.windows, case.now.time)
    if not it.approved:
        what = f"the approval of {plan.name} was withdrawn, and no further wave starts"
        return view.decided([], _awaiting(case, digest, what), listing)
    if held := _held(case):
        return view.decided([], held, listing)
    if windows.problem:
        return view.decided([], Standing(windows.problem.reason, windows.problem.message), listing)
    if not windows.is_open:
        message = f"no window is open until {windows.opens:%Y-%m-%d %H:%M} UTC: no wave starts"
        return view.decided([], Standing(Reason.OUTSIDE_WINDOW, message), listing)
    if plan.begun_waves == 0 and (awaited := _awaited_cordons(view)):
        return view.decided([], Standing(WAVE_IN_FLIGHT, f"{named_brokers(awaited, 'is')} being cordoned"), listing)
    waves = found.states
    due = next((n for n, wave in enumerate(waves, 1) if wave.state is not WaveState.SUCCEEDED), len(waves))
    if (approval := view.record.approval) and due > plan.begun_waves:
        begun = approval.begun_bytes + _bytes(waves[plan.begun_waves : due])
        view = view.with_record(approval=approval.model_copy(update={"begun_bytes": begun})).with_plan(begun_waves=due)
    return view.decided([RunPlan(found.plan, due)], Standing(WAVE_IN_FLIGHT, _so_far(found)), listing)


def _so_far(found: PlanSeen) -> str:
    return f"{found.plan.name}: {summary_of(found.states)}"


def _awaited_cordons(view: _View) -> list[int]:
    """Return the brokers that are not cordoned yet, and may be within a minute."""
    case = view.case
    wanted = wanted_cordons(case.it, case.cluster, case.now.time)
    awaited = list[int]()
    for broker, judged in view.brokers.items():
        seen = judged.seen
        if broker not in wanted or not seen.up or (seen.cordon and seen.cordon.reason is not CordonReason.NOT_YET):
            continue
        if seen.cordon_wanted_at is None or case.now.monotonic - seen.cordon_wanted_at < CORDON_SECONDS:
            awaited.append(broker)
    return awaited


def _listed(view: _View, found: PlanSeen, outcome: PlanOutcome, *, begun: bool) -> tuple[MadePlan, ...]:
    it, now = view.case.it, view.case.now.time
    return made_plans(it.status.plans, found, _digest_of(it, found), outcome, now, begun=begun)


def _ended(view: _View, found: PlanSeen) -> DecommissionDecision:
    """Look at the brokers again, once all waves are done."""
    further = _grown(view.record.next_plan, view.case.now.time, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
    view = view.with_plan(retired=True).with_record(failures=0, next_attempt=None, next_plan=further)
    listing = _listed(view, found, PlanOutcome.SUCCEEDED, begun=True)
    return view.decided([], Standing(WAVE_IN_FLIGHT, f"{found.plan.name} is done: the brokers are looked at"), listing)


# --- Between two plans ---


def _after_plan(view: _View, seen: BrokersSeen, plan: RecordedPlan, found: PlanSeen | None) -> DecommissionDecision:
    """Bring a plan that starts nothing more to its end, and go on without it."""
    if found is None or found.done:
        return _without_plan(view, seen)
    if not plan.approved:
        steps = [] if found.plan.deleted else [DeletePlan(found.plan)]
        return view.decided(steps, Standing(Reason.PLANNING, f"{plan.name} is being deleted"))
    retire = [] if found.plan.deleted else [RetirePlan(found.plan)]
    if found.ends:
        listing = _listed(view, found, PlanOutcome.RUNNING, begun=True)
        message = f"{plan.name} starts nothing more, and what it has in flight comes to its end"
        return view.decided(retire, Standing(WAVE_IN_FLIGHT, message), listing)
    listing = _listed(view, found, PlanOutcome.RETIRED, begun=True)
    decision = _without_plan(view, seen)
    status = decision.status.model_copy(update={"plans": listing})
    return replace(decision, steps=[*retire, *decision.steps], status=status)


def _without_plan(view: _View, seen: BrokersSeen) -> DecommissionDecision:
    """Go on while no plan runs: the brokers are empty, or another plan is to come."""
    case = view.case
    it, now, record = case.it, case.now.time, view.record
    if record.approval and view.empty:
        return _empty(view, seen)
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
    if problem := windows_at(it.spec.windows, now).problem:
        return view.decided([], Standing(problem.reason, problem.message))
    if few := _too_few(case, seen):
        return view.decided([], few)
    if held := _held(case):
        return view.decided([], held)
    if not view.left:
        return _nothing_to_move(view, "nothing would move")
    if (attempt := record.next_attempt) and attempt.until > now:
        message = f"{record.failures} plans in a row could not go on; the next one is made at {attempt.until:%H:%M} UTC"
        return view.decided([], Standing(Reason.PLAN_FAILED, message))
    if (wait := record.next_plan) and wait.until > now:
        message = f"{_left(view)}; the next plan is made at {wait.until:%H:%M:%S} UTC"
        return view.decided([], Standing(BROKER_NOT_EMPTY if record.approval else Reason.PLANNING, message))
    if case.first:
        return view.decided([], _another_first(case))
    return _work_out(view)


def _left(view: _View) -> str:
    return f"{counted(view.left, 'replica')} left on {named_brokers(view.brokers)}"


def _work_out(view: _View) -> DecommissionDecision:
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
        return _named_next(view)
    if not worked.left_out:
        message = f"{_left(view)}, which other clients are moving"
        return view.decided(ask, Standing(Reason.IN_FLIGHT_ELSEWHERE, message))
    stays = (
        f"{listed(worked.left_out)} have no in-sync replica elsewhere, so no plan can move them: start their brokers"
    )
    if not view.record.approval:
        return _nothing_to_move(view, stays)
    return view.decided(ask, Standing(Reason.DRAIN_INCOMPLETE, stays, hopeless=True))


def _nothing_to_move(view: _View, why: str) -> DecommissionDecision:
    """Wait for an approval to cordon brokers that no plan would move anything from."""
    case, digest = view.case, digest_of_nothing(view.case.it)
    given = case.it.spec.approved_digest == digest
    if not (given or case.it.spec.approval is Approval.NOT_REQUIRED):
        return view.decided([], _awaiting(case, digest, why))
    approval = RecordedApproval(digest=digest if given else None, bytes=0)
    return view.with_record(approval=approval).decided([], Standing(WAVE_IN_FLIGHT, f"{why}: approved"))


# --- Empty ---


def _empty(view: _View, seen: BrokersSeen) -> DecommissionDecision:
    """Say that the brokers can be stopped, and why one that is down is not unregistered though that is wished for."""
    case = view.case
    it = case.it
    named = named_brokers(view.brokers, "is")
    standing = Standing("Empty", f"{named} empty, and can be stopped", empty=True)
    down = [b for b, judged in view.brokers.items() if broker_state(it, judged) is DecommissionState.DOWN]
    if it.spec.unregister is UnregisterWish.NEVER or not down:
        return view.decided([], standing)
    if not seen.lists_fenced:
        message = f"{named} empty; Kafka before 4.0 does not say which brokers are down, so none is unregistered"
        return view.decided([], standing._replace(reason="NotSupported", message=message))
    sent = [broker for broker in down if _in_doubt(it, broker, case.now.time)]
    if sent or view.after:
        return view.decided([], standing._replace(message=f"{named} empty; one that is down is being unregistered"))
    if voters := [broker for broker in down if seen.voters is not None and broker in seen.voters]:
        message = f"{named} empty; {named_brokers(voters)} cannot be unregistered as a voter of the controller quorum"
        return view.decided([], standing._replace(reason="QuorumVoter", message=message))
    if unseen := [broker for broker in down if not view.brokers[broker].emptiness.seen_up]:
        message = f"{named} empty; {named_brokers(unseen)} was never seen empty while up, so it is not unregistered"
        return view.decided([], standing._replace(reason=Reason.NOT_OBSERVED, message=message))
    return view.decided([], standing)


def _unregistering(view: _View, seen: BrokersSeen) -> _View:
    """Return the view in which each broker that is empty and down is unregistered, whatever the others are."""
    case = view.case
    it = case.it
    wished = it.spec.unregister is UnregisterWish.WHEN_DOWN and it.approved and seen.lists_fenced
    if not wished or it.spec.suspend or case.braked:
        return view
    due = [broker for broker in view.brokers if _may_be_unregistered(view, seen, broker)]
    update = {"unregister_sent_at": _whole(case.now.time), "unregister_via": seen.via}
    brokers = (known.model_copy(update=update) if known.id in due else known for known in view.record.brokers)
    view = view.with_record(brokers=tuple(brokers))
    return replace(view, after=[UnregisterBroker(broker, seen.via) for broker in due])


def _may_be_unregistered(view: _View, seen: BrokersSeen, broker: int) -> bool:
    """Whether a broker has been empty and down for a minute, is no voter, and nothing that was sent may still land."""
    judged, now = view.brokers[broker], view.case.now.time
    long_enough = judged.timer is not None and judged.timer.seconds >= DOWN_SECONDS
    no_voter = seen.voters is not None and broker not in seen.voters
    waits = _in_doubt(view.case.it, broker, now)
    down = judged.seen.registered and judged.seen.fenced and judged.emptiness.seen_up
    return down and long_enough and no_voter and not waits
