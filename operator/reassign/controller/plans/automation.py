"""Serves the owners of plans of a cluster, its BrokerDecommissions and ReassignmentPolicies: has it decided what is to
be done about them, and does it.

What they decide about cordons and plans is done by the stages of the same tick that are there for them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from structlog.contextvars import bound_contextvars

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.controller.logs import named_as
from reassign.controller.objects.reading import Unreadable, controller_of
from reassign.controller.objects.store import Store
from reassign.controller.plans.made_plans import JobOf, MadePlans
from reassign.controller.plans.orders import Orders, check_owner, kind_of, recorded_orders
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.waves import read_waves
from reassign.controller.writing.writer import Writer
from reassign.core.automation import conditions, policy_conditions
from reassign.core.automation.decide import AutomationDecision, PolicyInputs, decide_automation
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
    WorkOut,
    WriteRecord,
)
from reassign.core.automation.policy_case import (
    PlanOwner,
    PolicyDecision,
    PolicyResource,
    PolicyStep,
    WritePolicyRecord,
)
from reassign.core.automation.timers import Timer, Waits
from reassign.core.automation.triggers import lasting
from reassign.core.automation.watch import Watched
from reassign.core.brake import partitions_held_by
from reassign.core.figures import begun_bytes, ended_plans
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.plans.model import AddFinalizer, PlanOrder, PlanResource, RemoveFinalizer
from reassign.errors import ConflictError, ReassignError
from reassign.kube.client import ClusterKey, KubeClient

log = structlog.get_logger()

AT_ONCE_SECONDS = 0.1
CONFLICT_SECONDS = 0.5

Status = BrokerDecommissionStatus | ReassignmentPolicyStatus
Unregister = Callable[[int, int | None], Awaitable[None]]
"""Unregisters a broker by way of another one, unless a new observation says otherwise."""


async def _cannot_unregister(*_: object) -> None:
    raise AssertionError("what is not observed is not unregistered")


@dataclass(frozen=True, slots=True)
class AutomationInputs:
    """What a tick knows of the cluster, and can do."""

    cluster: OwnedCluster
    seen: BrokersSeen | Problem
    timers: Mapping[int, Timer] = field(default_factory=dict)
    watched: Mapping[str, Watched] = field(default_factory=dict)
    """What this process has watched for each policy, by uid."""
    waits: Mapping[str, Waits] = field(default_factory=dict)
    """When their recorded waits began, by uid."""
    lost: Callable[[float], frozenset[int]] = lambda _: frozenset()
    """Returns the brokers that are lost, by how many seconds fenced ones wait: moves to them cannot end."""
    job: JobOf = lambda *_: None
    wake: Callable[[], object] = lambda: None
    """Makes the loop tick again."""
    unregister: Unregister = _cannot_unregister

    def lost_for(self, it: PlanOwner) -> frozenset[int]:
        """Return the brokers that are lost by what an owner asks; what a policy has recorded outlives a restart."""
        watched = self.watched.get(it.uid)
        return self.lost(it.lost_seconds) | (lasting(watched.down, it.lost_seconds) if watched else frozenset())


class Automation:
    """The owners of plans of all clusters; a loop, or the supervisor for one that is missing, serves its own."""

    def __init__(self, store: Store, kube: KubeClient, writer: Writer, planner: Planner) -> None:
        self._store, self._kube, self._writer = store, kube, writer
        self._plans = MadePlans(store, kube, planner)

    def decommissions(self, key: ClusterKey) -> list[DecommissionResource]:
        """Return the BrokerDecommissions of a cluster that can be read."""
        return [it for it in self._store.decommissions(key) if isinstance(it, DecommissionResource)]

    def policies(self, key: ClusterKey) -> list[PolicyResource]:
        """Return the ReassignmentPolicies of a cluster that can be read."""
        return [it for it in self._store.policies(key) if isinstance(it, PolicyResource)]

    def has_any(self, key: ClusterKey) -> bool:
        """Whether there is a BrokerDecommission or a ReassignmentPolicy of a cluster."""
        return bool(self._owners(key))

    def has_unreadable_decommission(self, key: ClusterKey) -> bool:
        """Whether a BrokerDecommission of a cluster cannot be read."""
        return bool(self._unread_decommissions(key))

    def _unread_decommissions(self, key: ClusterKey) -> dict[str, frozenset[int]]:
        """Return the brokers of the BrokerDecommissions of a cluster that cannot be read, by name."""
        return {it.name: it.brokers for it in self._store.decommissions(key) if isinstance(it, Unreadable)}

    def _readable(self, key: ClusterKey) -> list[PlanOwner]:
        return [*self.decommissions(key), *self.policies(key)]

    def _owners(self, key: ClusterKey) -> list[PlanOwner | Unreadable]:
        return [*self._store.decommissions(key), *self._store.policies(key)]

    def moved(self, key: ClusterKey) -> set[TopicPartition]:
        """Return the partitions that PartitionReassignments of a cluster move; all others in flight are foreign."""
        return partitions_held_by(self._store.resources(key))

    async def unchanged(self, those: Iterable[PlanOwner]) -> bool:
        """Whether these are as they were judged; take over what the API server has now where one is not."""
        for it in those:
            try:
                await check_owner(self._kube, it)
            except ConflictError:
                await self._writer.refresh(it, kind_of(it))
                return False
            except ReassignError as error:
                log.warning("cannot be read again", **named_as(kind_of(it), it), error=error.message)
                return False
        return True

    def decide(
        self, key: ClusterKey, inputs: AutomationInputs, elapsed: float, leave_out: Container[str] = ()
    ) -> AutomationDecision:
        """Decide about the owners of plans of a cluster but those to leave out, by uid; `elapsed` is monotonic."""
        self._plans.forget_gone()
        those = [it for it in self.decommissions(key) if it.uid not in leave_out]
        policies = self.policies(key)
        now = Clock(elapsed, self._kube.now())
        plans = {plan.name: self._plan_seen(plan) for plan in self._store.plans_in(key[0])}
        unread = [it.name for it in self._store.policies(key) if isinstance(it, Unreadable)]
        users = self._of_users(key, plans.values(), now.time)
        of_policies = PolicyInputs(policies, inputs.watched, users, unread, self._unread_decommissions(key))
        owners: Sequence[PlanOwner] = (*those, *policies)
        worked = {it.uid: found for it in owners if (found := self._plans.worked_out(it.uid))}
        unreadable = self._store.unreadable_plans(key[0])
        return decide_automation(
            those, plans, worked, inputs.cluster, inputs.seen, inputs.timers, now, unreadable, of_policies, inputs.waits
        )

    def _of_users(self, key: ClusterKey, plans: Iterable[PlanSeen], now: datetime) -> list[str]:
        """Return the plans of a cluster that are at work, and that no owner who can be read decides about.

        A BrokerDecommission takes its plan up again where its record is lost.
        """
        owned, those = recorded_orders(self._store, key).owners, {it.uid for it in self.decommissions(key)}
        others = (found for found in plans if not (found.plan.uid in owned or found.owner in those))
        return [found.plan.name for found in others if _cluster_of(found.plan) == key and found.is_at_work(now)]

    def _plan_seen(self, plan: PlanResource) -> PlanSeen:
        obj = self._store.get(plan.uid)
        assert obj is not None
        return PlanSeen(plan, controller_of(obj), *read_waves(self._store, plan))

    async def perform(
        self, key: ClusterKey, decision: AutomationDecision, inputs: AutomationInputs
    ) -> tuple[Orders, float | None]:
        """Take the steps and write the statuses; return the orders for the plans, and when to decide again, or None.

        For one that has changed since it was judged nothing is done, and its plan starts nothing.
        """
        orders, pauses, judged = recorded_orders(self._store, key), list[float](), decision.judged
        unseen = isinstance(inputs.seen, Problem) or not inputs.seen.forwarded
        runs = {step.plan.uid for step in decision.steps if isinstance(step, RunPlan)}
        # what runs goes on, also where a step before it is refused
        running = runs | (orders.owners.keys() if unseen else set())
        held = {
            uid
            for uid, it in orders.owners.items()
            if not (uid in running or _has_changed(it, judged)) or not self._lets_go_on(it, uid)
        }
        given = {
            uid: PlanOrder() if uid in held and not order.retired else order for uid, order in orders.given.items()
        }
        for uid, error in decision.errors.items():
            log.error("failed unexpectedly", uid=uid, exc_info=error)
        for found in self._owners(key):
            if isinstance(found, Unreadable):
                await self._say(found)
            elif found.uid in judged and _has_changed(found, judged):
                pauses.append(AT_ONCE_SECONDS)
            elif one := decision.of(found.uid):
                with bound_contextvars(**named_as(kind_of(found), found)):
                    pauses.append(await self._safely(found, one, inputs, given))
        owners = {plan: judged.get(owner.uid, owner) for plan, owner in orders.owners.items()}
        return Orders(given, owners), min(pauses, default=None)

    def _lets_go_on(self, it: PlanOwner, uid: str) -> bool:
        plan = self._store.plan(uid)
        return plan is not None and it.lets_go_on(plan.name)

    async def have_wait(self, key: ClusterKey, cluster: OwnedCluster, problem: Problem) -> None:
        """Say on the owners of plans of a cluster why nothing goes on; what is being deleted is taken down."""
        if self.has_any(key):
            inputs = AutomationInputs(cluster, problem)
            await self.perform(key, self.decide(key, inputs, time.monotonic()), inputs)

    async def say(self, key: ClusterKey, problem: Problem) -> None:
        """Say on the owners of plans of a cluster that have not ended why nothing is done about them."""
        for it in self._readable(key):
            if isinstance(it, DecommissionResource) and it.finished:
                continue
            try:
                await self._write_status(it, self._refused(it, it.status.model_copy(), problem))
            except ReassignError as error:
                log.warning("not written", reason=error.reason, error=error.message)

    async def _say(self, unread: Unreadable) -> None:
        try:
            await self._writer.write_unreadable(unread.obj, unread.problem, self._kube.now())
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)

    def _refused(self, it: PlanOwner, status: Status, problem: Problem) -> Status:
        """Return a status that says that a step was refused."""
        now = self._kube.now()
        if isinstance(it, DecommissionResource) and isinstance(status, BrokerDecommissionStatus):
            return conditions.refused(it, status, problem, now)
        assert isinstance(it, PolicyResource)
        assert isinstance(status, ReassignmentPolicyStatus)
        return policy_conditions.refused(it, status, problem, now)

    async def _write_status(self, it: PlanOwner, status: Status, up: frozenset[int] = frozenset()) -> None:
        if isinstance(it, DecommissionResource) and isinstance(status, BrokerDecommissionStatus):
            await self._writer.write_decommission(it, status)
        elif isinstance(it, PolicyResource) and isinstance(status, ReassignmentPolicyStatus):
            await self._writer.write_policy(it, status, up)
            for kind, outcome in ended_plans(it, status):
                self._writer.metrics.policy_plan_ended("/".join(_key(it)), kind, outcome)

    async def _safely(
        self,
        it: PlanOwner,
        decision: DecommissionDecision | PolicyDecision,
        inputs: AutomationInputs,
        orders: dict[str, PlanOrder],
    ) -> float:
        """Serve one owner, so that a refusal keeps no other waiting; return when to do so again."""
        try:
            return await self._serve(it, decision, inputs, orders)
        except ConflictError:
            await self._writer.refresh(it, kind_of(it))
            return CONFLICT_SECONDS
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)
            return float("inf")

    async def _serve(
        self,
        it: PlanOwner,
        decision: DecommissionDecision | PolicyDecision,
        inputs: AutomationInputs,
        orders: dict[str, PlanOrder],
    ) -> float:
        status: Status = decision.status
        acted = False
        if not any(isinstance(step, WorkOut | CreatePlan) for step in decision.steps):
            self._plans.forget(it.uid)
        for step in decision.steps:
            acted |= not isinstance(step, WorkOut | RunPlan | RetirePlan)
            try:
                await self._perform(it, step, inputs, orders)
            except ConflictError:
                raise
            except ReassignError as error:
                log.warning("refused", step=type(step).__name__, reason=error.reason, error=error.message)
                status = self._refused(it, status, Problem(error.reason, error.message))
                acted = False
                break
        now = next((other for other in self._readable(_key(it)) if other.uid == it.uid), None)
        if now and _wish(now) == _wish(it):
            watched = decision.watched if isinstance(decision, PolicyDecision) else None
            await self._write_status(now, status, watched.up if watched else frozenset())
        if acted:
            return AT_ONCE_SECONDS
        return (decision.changes - self._kube.now()).total_seconds() if decision.changes else float("inf")

    async def _perform(
        self,
        it: PlanOwner,
        step: AutomationStep | PolicyStep,
        inputs: AutomationInputs,
        orders: dict[str, PlanOrder],
    ) -> None:
        if not isinstance(step, WorkOut | RunPlan | RetirePlan):
            log.info("automation step", step=type(step).__name__)
        match step:
            case WorkOut(spec, lifted):
                cordons = inputs.cluster.cordons if lifted else frozenset[int]()
                self._plans.work_out(it, spec, cordons, inputs.seen, inputs.job, inputs.wake)
            case CreatePlan(manifest):
                await self._plans.create(it, manifest, inputs.job)
            case RunPlan(plan, waves):
                orders[plan.uid] = PlanOrder(waves=waves)
            case RetirePlan(plan):
                orders[plan.uid] = PlanOrder(retired=True, lost=inputs.lost_for(it))
            case DeletePlan(plan):
                await self._plans.delete(plan)
            case WritePolicyRecord(record):
                assert isinstance(it, PolicyResource)
                await self._writer.records.write_policy(it, record)
                if record.plan and (copied := begun_bytes(it.record, record)):
                    self._writer.metrics.policy_wave_began("/".join(_key(it)), record.plan.kind, copied)
            case _:
                assert isinstance(it, DecommissionResource)
                await self._perform_decommission(it, step, inputs)

    async def _perform_decommission(
        self,
        it: DecommissionResource,
        step: AddFinalizer | RemoveFinalizer | WriteRecord | UnregisterBroker,
        inputs: AutomationInputs,
    ) -> None:
        match step:
            case AddFinalizer():
                await self._writer.hold(it)
            case RemoveFinalizer():
                await self._writer.remove_finalizer(it)
            case WriteRecord(record):
                await self._writer.records.write_decommission(it, record)
            case UnregisterBroker(broker, via):
                await check_owner(self._kube, it)
                await inputs.unregister(broker, via)


def _has_changed(it: PlanOwner, judged: Mapping[str, PlanOwner]) -> bool:
    return it.uid not in judged or _wish(judged[it.uid]) != _wish(it)


def _wish(it: PlanOwner) -> tuple[object, ...]:
    return it.generation, it.deleted


def _key(it: PlanOwner) -> ClusterKey:
    return it.namespace, it.spec.cluster_ref.name


def _cluster_of(plan: PlanResource) -> ClusterKey:
    return plan.spec.cluster_ref.namespace or plan.namespace, plan.spec.cluster_ref.name
