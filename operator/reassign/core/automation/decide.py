"""Decide: what is to be done about all BrokerDecommissions and policies of one KafkaCluster.

One automated plan is at work at a time. The arbiter has the order of precedence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reassign.core.automation.approval import at_work, is_moving, may_begin
from reassign.core.automation.arbiter import Rank, Running, retires
from reassign.core.automation.case import DecommissionCase, plan_of, wanted_cordons
from reassign.core.automation.conditions import Standing, status_of
from reassign.core.automation.decommission import decide_decommission
from reassign.core.automation.model import (
    AutomationStep,
    BrokersSeen,
    DecommissionDecision,
    DecommissionResource,
    OwnedCluster,
    PlanSeen,
    WorkedOut,
    WriteRecord,
)
from reassign.core.automation.policy import decide_policy
from reassign.core.automation.policy_case import (
    PlanOwner,
    PolicyCase,
    PolicyDecision,
    PolicyResource,
    PolicyStep,
    WritePolicyRecord,
    running_of,
)
from reassign.core.automation.policy_conditions import stalled, unjudged
from reassign.core.automation.timers import Timer, Waits, remembered
from reassign.core.automation.watch import Watched
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem, bug_problem
from reassign.text import listed

EMPTY: Mapping[str, str] = MappingProxyType({})
ANOTHER = "another plan"


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """What is known of the policies of a KafkaCluster, and of the plans of users beside it."""

    policies: Sequence[PolicyResource] = ()
    watched: Mapping[str, Watched] = field(default_factory=dict)
    """What this process has watched for each, by uid."""
    users: Sequence[str] = ()
    """Plans of users in its namespace that have moves in flight, or have advanced within stallTimeoutSeconds."""
    unread: Sequence[str] = ()
    """The names of those that cannot be read: what they would do is not known, and no other is in force."""
    unread_decommissions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The brokers of the BrokerDecommissions that cannot be read, by name: these may be approved, and have a plan."""


NO_POLICIES = PolicyInputs()


@dataclass(frozen=True, slots=True)
class AutomationDecision:
    """What is to be done for the decommissions and policies of a KafkaCluster."""

    decommissions: Mapping[str, DecommissionDecision]
    """By uid."""
    cordons: frozenset[int]
    """Brokers that are to be cordoned."""
    timers: Mapping[int, Timer]
    """How long brokers have been seen down: for the next decision of this process."""
    errors: Mapping[str, Exception]
    """Bugs, by the uid of what could not be judged."""
    judged: Mapping[str, PlanOwner]
    """Decommissions and policies as they were judged, by uid: what was decided holds for nothing else."""
    policies: Mapping[str, PolicyDecision] = field(default_factory=dict)
    """By uid."""
    waits: Mapping[str, Waits] = field(default_factory=dict)
    """When their recorded waits began, by uid: for the next decision of this process."""

    def of(self, uid: str) -> DecommissionDecision | PolicyDecision | None:
        """Return what is to be done about one of them."""
        return self.decommissions.get(uid) or self.policies.get(uid)

    @property
    def steps(self) -> list[AutomationStep | PolicyStep]:
        """All that is to be done."""
        of_decommissions = (step for one in self.decommissions.values() for step in one.steps)
        return [*of_decommissions, *(step for one in self.policies.values() for step in one.steps)]

    @property
    def lifts_cordons(self) -> bool:
        """Whether our cordons are lifted, since a lost broker could not be replaced otherwise."""
        return any(decision.lifts_cordons for decision in self.policies.values())


def decide_automation(
    decommissions: Sequence[DecommissionResource],
    plans: Mapping[str, PlanSeen],
    worked: Mapping[str, WorkedOut | Problem],
    cluster: OwnedCluster,
    seen: BrokersSeen | Problem,
    timers: Mapping[int, Timer],
    now: Clock,
    unreadable: Mapping[str, str] = EMPTY,
    policies: PolicyInputs = NO_POLICIES,
    waits: Mapping[str, Waits] = MappingProxyType({}),
) -> AutomationDecision:
    """Decide for all decommissions and policies of a KafkaCluster.

    `plans` are those in its namespace, by name, and `unreadable` the uids of those that cannot be read. `worked` is
    what working out a plan came to, by uid, of those that asked for it in the last decision. Of one that cannot be
    judged the cordons stay that are recorded, and its plan starts nothing.
    """
    ordered = sorted(decommissions, key=lambda it: it.age_key)
    judged: Sequence[PlanOwner] = (*decommissions, *policies.policies)
    waits = {it.uid: remembered(waits.get(it.uid, {}), it.record.waits, it.record.waits, now) for it in judged}
    wanted = {it.uid: wanted_cordons(it, cluster, now.time) for it in ordered}
    cases = [
        DecommissionCase(
            it,
            cluster,
            seen,
            now,
            plans,
            worked.get(it.uid),
            avoid=_of_others(it, ordered),
            shared=frozenset[int]().union(*(wanted[other.uid] for other in ordered if other.uid != it.uid)),
            timers={broker: timers[broker] for broker in it.brokers & timers.keys()},
            waits=waits[it.uid],
            unreadable=unreadable,
        )
        for it in ordered
    ]
    errors: dict[str, Exception] = {}
    under_way = any(_is_under_way(it) for it in policies.policies)
    turn = _turn(cases, errors, under_way)
    running = [_running(case, errors) for case in cases if _at_work(case, errors)]
    empties = [case.it.brokers for case in cases if _empties(case.it)]
    emptied = frozenset[int]().union(*empties, *policies.unread_decommissions.values())
    of_policies = [
        PolicyCase(
            it,
            cluster,
            seen,
            now,
            plans,
            worked.get(it.uid),
            policies.watched.get(it.uid),
            waits[it.uid],
            unreadable,
            running=running,
            emptied=emptied,
            users=policies.users,
            unread=[*policies.unread_decommissions],
        )
        for it in sorted(policies.policies, key=lambda it: it.age_key)
    ]
    held_up = turn is not None and _waits_for_users(turn, seen, policies.users)
    ready = None if running or held_up else turn
    decided, its, begins = _decide_policies(of_policies, policies.unread, ready, running, errors)
    found: dict[str, DecommissionDecision] = {}
    for case in cases:
        it = case.it
        try:
            found[it.uid] = decide_decommission(_in_turn(case, turn, running, its, begins, policies.users, under_way))
        except Exception as error:
            errors[it.uid] = error
        if it.uid in errors:
            found[it.uid] = _unjudged(case, errors[it.uid])
    decision = AutomationDecision(
        found,
        frozenset[int]().union(*(one.cordons for one in found.values())),
        {broker: timer for one in found.values() for broker, timer in one.timers.items()},
        errors,
        {it.uid: it for it in judged},
        decided,
    )
    decision = replace(decision, waits={it.uid: _waits_after(it, waits[it.uid], decision, now) for it in judged})
    return replace(decision, cordons=frozenset()) if decision.lifts_cordons else decision


def _waits_after(it: PlanOwner, waits: Waits, decision: AutomationDecision, now: Clock) -> Waits:
    """Return when the waits of one of them began, with those that its record is to have."""
    one = decision.of(it.uid)
    written = [step.record for step in one.steps if isinstance(step, WriteRecord | WritePolicyRecord)] if one else []
    return remembered(waits, it.record.waits, (written or [it.record])[0].waits, now)


# --- Whose turn it is ---


def _decide_policies(
    cases: Sequence[PolicyCase],
    unread: Sequence[str],
    ready: DecommissionResource | None,
    running: Sequence[Running],
    errors: dict[str, Exception],
) -> tuple[dict[str, PolicyDecision], Running | None, Running | None]:
    """Decide about policies; return too the plan of one that is under way, and the one that may begin.

    What has begun of a plan comes to its end before another one begins, also where its policy is not in force any more.

    The oldest policy alone is in force, and none beside one that is `unread`. `ready` is the decommission that could
    begin, `running` are those at work.
    """
    decided: dict[str, PolicyDecision] = {}
    in_force = next((case for case in cases if not (case.it.deleted or unread)), None)
    ending = [plan for case in cases if case is not in_force and (plan := _in_flight(case))]
    running = [*running, *ending]
    before = f"{in_force.it.name} of the same KafkaCluster is older, and alone in force" if in_force else None
    if unread:
        before = f"{unread[0]} of the same KafkaCluster cannot be read, and may have a plan"
    its = begins = None
    for case in cases:
        try:
            if case is not in_force:
                decided[case.it.uid] = decide_policy(replace(case, before=before))
                continue
            # what it would do if it were not its turn says what it waits for
            asked = decide_policy(replace(case, turn=ANOTHER, running=running))
            its, begins = asked.running, asked.begins
            decided[case.it.uid] = decide_policy(_of_policy(replace(case, running=running), ready, its, begins))
        except Exception as error:
            errors[case.it.uid] = error
            its, begins = _in_flight(case), None
            problem = bug_problem(error, "this one from being served")
            status = unjudged(case, stalled(problem.reason, problem.message))
            lifts = case.it.record.lifts_cordons
            decided[case.it.uid] = PolicyDecision([], status, case.watched, lifts_cordons=lifts)
    return decided, next(iter(ending), its), begins


def _in_flight(case: PolicyCase) -> Running | None:
    """Return the plan of a policy that is not in force, or that cannot be judged, while it has moves in flight."""
    plan = case.it.record.plan
    found = plan_of(case.plans, plan, case.it.uid)
    return running_of(case.it, plan) if plan and found and found.moving else None


def _of_policy(
    case: PolicyCase, ready: DecommissionResource | None, its: Running | None, begins: Running | None
) -> PolicyCase:
    """Return the case of a policy with whose turn it is, and what its plan yields to."""
    wanted = its or begins
    if wanted is None:
        return case
    if case.running:
        first = next((other for other in case.running if other.moving), case.running[0])
        stays = its is not None and retires(its.rank, Rank.DECOMMISSION) and not first.moving
        return case if stays else replace(case, turn=first.plan)
    if ready is None or retires(wanted.rank, Rank.DECOMMISSION):
        return case
    name = f"the BrokerDecommission {ready.name}"
    return replace(case, yields=name) if its else replace(case, turn=name)


def _in_turn(
    case: DecommissionCase,
    turn: DecommissionResource | None,
    running: Sequence[Running],
    its: Running | None,
    begins: Running | None,
    users: Sequence[str],
    under_way: bool,
) -> DecommissionCase:
    """Return the case of a decommission with whose turn it is, and what its plan yields to."""
    it = case.it
    works = any(other.owner == it.uid for other in running)
    before = next((one for one in (its, begins) if one and retires(one.rank, Rank.DECOMMISSION)), None)
    if turn and turn.uid != it.uid:
        return replace(case, first=f"the BrokerDecommission {turn.name}")
    if before:
        return replace(case, yields=before.plan) if works else replace(case, first=f"the plan {before.plan}")
    has_begun = works and it.record.plan is not None and it.record.plan.begun_waves > 0
    if not has_begun and _waits_for_users(it, case.seen, users):
        return replace(case, first=f"the plan of a user, {listed(sorted(users))},")
    if its and not works:
        return replace(case, retires=its.plan)
    if turn is None and not works and not case.in_window and under_way:
        return replace(case, first="what is under way of a policy")
    found = case.plans.get(its.plan) if its else None
    if its and (found is None or found.moving):  # it was resumed, or approved again, while that one was under way
        return replace(case, first=f"what is in flight of the plan {its.plan}")
    return case


def _waits_for_users(it: DecommissionResource, seen: BrokersSeen | Problem, users: Sequence[str]) -> bool:
    """Whether plans of users go before one that has not begun: one of its brokers is up."""
    if isinstance(seen, Problem) or not users:
        return False
    return any(seen.brokers[broker].up for broker in it.brokers & seen.brokers.keys())


def _running(case: DecommissionCase, errors: Mapping[str, Exception]) -> Running:
    it, plan = case.it, case.it.record.plan
    moving = it.uid not in errors and is_moving(case)
    return Running(plan.name if plan else it.name, Rank.DECOMMISSION, it.uid, moving=moving)


def _empties(it: DecommissionResource) -> bool:
    """Whether a decommission was approved, and has not succeeded."""
    return it.record.approval is not None and not (it.finished or it.deleted)


def _of_others(it: DecommissionResource, all_of_them: Sequence[DecommissionResource]) -> frozenset[int]:
    """Return the brokers of the others, from their approval until they have succeeded."""
    others = (other.brokers for other in all_of_them if other.uid != it.uid and _empties(other))
    return frozenset[int]().union(*others) - it.brokers


def _is_under_way(it: PolicyResource) -> bool:
    """Whether a policy has an approved plan that was not retired, though it may be held."""
    plan = it.record.plan
    return plan is not None and plan.approved and not plan.retired and not it.deleted


def _turn(
    cases: Sequence[DecommissionCase], errors: dict[str, Exception], under_way: bool
) -> DecommissionResource | None:
    """Return the one that is at work, else the oldest that could begin.

    One that waits for its window comes after the others, and has no turn while a plan of a policy is `under_way`.

    Of two, one of which was suspended meanwhile, it is the one that has something in flight.
    """
    working = [case for case in cases if _at_work(case, errors)]
    if working:
        return next((case for case in working if case.it.uid not in errors and is_moving(case)), working[0]).it
    ready = [case for case in cases if _may_begin(case, errors)]
    outside = [] if under_way else ready
    return next((case.it for case in [*(case for case in ready if case.in_window), *outside]), None)


def _at_work(case: DecommissionCase, errors: dict[str, Exception]) -> bool:
    try:
        return at_work(case)
    except Exception as error:
        errors[case.it.uid] = error
        return True


def _may_begin(case: DecommissionCase, errors: dict[str, Exception]) -> bool:
    try:
        return may_begin(case)
    except Exception as error:
        errors[case.it.uid] = error
        return False


def _unjudged(case: DecommissionCase, error: Exception) -> DecommissionDecision:
    it, problem = case.it, bug_problem(error, "this one from being served")
    standing = Standing(problem.reason, problem.message)
    status = status_of(it, standing, {}, None, it.status.plans, case.now.time)
    return DecommissionDecision([], status, it.brokers & case.cluster.cordons, case.timers)
