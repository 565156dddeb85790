"""Serves the BrokerDecommissions of a cluster: has it decided what is to be done about them, and does it.

What they decide about cordons and plans is done by the stages of the same tick that are there for them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

import structlog
from structlog.contextvars import bound_contextvars

from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.controller.logs import named_as
from reassign.controller.objects.reading import Unreadable, controller_of, parse_plan
from reassign.controller.objects.store import Store
from reassign.controller.plans.job import Job, renamed
from reassign.controller.plans.orders import Orders, check_owner, recorded_orders
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.waves import read_waves
from reassign.controller.writing.writer import Writer
from reassign.core.automation.conditions import refused
from reassign.core.automation.decide import AutomationDecision, decide_automation
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
)
from reassign.core.automation.timers import Timer
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.core.plans.model import AddFinalizer, Manifest, PlanOrder, PlanResource, RemoveFinalizer
from reassign.errors import ConflictError, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient

log = structlog.get_logger()

AT_ONCE_SECONDS = 0.1
CONFLICT_SECONDS = 0.5

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
    lost: Callable[[float], frozenset[int]] = lambda _: frozenset()
    """Returns the brokers that are lost, by how many seconds fenced ones wait: moves to them cannot end."""
    job: Callable[[PlanResource, str | None], Job | None] = lambda *_: None
    """What a plan is made from now, with the uid of its owner where it has no object; None where none may be made."""
    wake: Callable[[], object] = lambda: None
    """Makes the loop tick again."""
    unregister: Unregister = _cannot_unregister


class Automation:
    """The BrokerDecommissions of all clusters; a loop, or the supervisor for one that is missing, serves its own."""

    def __init__(self, store: Store, kube: KubeClient, writer: Writer, planner: Planner) -> None:
        self._store, self._kube, self._writer, self._planner = store, kube, writer, planner
        self._asked: dict[str, tuple[Job, BrokersSeen | Problem]] = {}
        """What the last decision asked to have worked out, by owner, and what was seen when it was begun."""

    def decommissions(self, key: ClusterKey) -> list[DecommissionResource]:
        """Return the BrokerDecommissions of a cluster that can be read."""
        return [it for it in self._store.decommissions(key) if isinstance(it, DecommissionResource)]

    def has_any(self, key: ClusterKey) -> bool:
        """Whether there is a BrokerDecommission of a cluster."""
        return bool(self._store.decommissions(key))

    def has_unreadable(self, key: ClusterKey) -> bool:
        """Whether a BrokerDecommission of a cluster cannot be read."""
        return any(isinstance(it, Unreadable) for it in self._store.decommissions(key))

    async def unchanged(self, those: Iterable[DecommissionResource]) -> bool:
        """Whether these are as they were judged; take over what the API server has now where one is not."""
        for it in those:
            try:
                await check_owner(self._kube, it)
            except ConflictError:
                await self._writer.refresh(it, Kind.BROKER_DECOMMISSION)
                return False
            except ReassignError as error:
                log.warning("cannot be read again", **named_as(Kind.BROKER_DECOMMISSION, it), error=error.message)
                return False
        return True

    def decide(
        self, key: ClusterKey, inputs: AutomationInputs, elapsed: float, leave_out: Container[str] = ()
    ) -> AutomationDecision:
        """Decide about the decommissions of a cluster but those to leave out, by uid; `elapsed` is monotonic."""
        those = [it for it in self.decommissions(key) if it.uid not in leave_out]
        for gone in self._asked.keys() - self._store.uids():
            del self._asked[gone]
        plans = {plan.name: self._plan_seen(plan) for plan in self._store.plans_in(key[0])} if those else {}
        worked = {it.uid: found for it in those if (found := self._worked_out(it.uid))}
        now = Clock(elapsed, self._kube.now())
        unreadable = self._store.unreadable_plans(key[0]) if those else {}
        return decide_automation(those, plans, worked, inputs.cluster, inputs.seen, inputs.timers, now, unreadable)

    def _plan_seen(self, plan: PlanResource) -> PlanSeen:
        obj = self._store.get(plan.uid)
        assert obj is not None
        return PlanSeen(plan, controller_of(obj), *read_waves(self._store, plan))

    def _worked_out(self, owner: str) -> WorkedOut | Problem | None:
        if owner not in self._asked:
            return None
        made = self._planner.made(self._asked[owner][0])
        return made if isinstance(made, WorkedOut | Problem) else None

    async def perform(
        self, key: ClusterKey, decision: AutomationDecision, inputs: AutomationInputs
    ) -> tuple[Orders, float | None]:
        """Take the steps and write the statuses; return the orders for the plans, and when to decide again, or None.

        For one that has changed since it was judged nothing is done, and its plan starts nothing.
        """
        orders, pauses, judged = recorded_orders(self._store, key), list[float](), decision.judged
        unseen = isinstance(inputs.seen, Problem) or not inputs.seen.forwarded
        steps = [step for one in decision.decommissions.values() for step in one.steps]
        runs = {step.plan.uid for step in steps if isinstance(step, RunPlan)}  # also where a step before it is refused
        held = {uid for uid, it in orders.owners.items() if not _goes_on(it, judged, runs=unseen or uid in runs)}
        given = {
            uid: PlanOrder() if uid in held and not order.retired else order for uid, order in orders.given.items()
        }
        for uid, error in decision.errors.items():
            log.error("failed unexpectedly", uid=uid, exc_info=error)
        for found in self._store.decommissions(key):
            if isinstance(found, Unreadable):
                await self._say(found)
            elif found.uid in judged and _has_changed(found, judged):
                pauses.append(AT_ONCE_SECONDS)
            elif found.uid in decision.decommissions:
                with bound_contextvars(**named_as(Kind.BROKER_DECOMMISSION, found)):
                    pauses.append(await self._safely(found, decision.decommissions[found.uid], inputs, given))
        owners = {plan: judged.get(owner.uid, owner) for plan, owner in orders.owners.items()}
        return Orders(given, owners), min(pauses, default=None)

    async def have_wait(self, key: ClusterKey, cluster: OwnedCluster, problem: Problem) -> None:
        """Say on the decommissions of a cluster why nothing of them goes on; what is being deleted is taken down."""
        if self.has_any(key):
            inputs = AutomationInputs(cluster, problem)
            await self.perform(key, self.decide(key, inputs, time.monotonic()), inputs)

    async def say(self, key: ClusterKey, problem: Problem) -> None:
        """Say on the decommissions of a cluster that have not ended why nothing is done about them."""
        for it in self.decommissions(key):
            if it.finished:
                continue
            try:
                status = refused(it, it.status.model_copy(), problem, self._kube.now())
                await self._writer.write_decommission(it, status)
            except ReassignError as error:
                log.warning("not written", reason=error.reason, error=error.message)

    async def _say(self, unread: Unreadable) -> None:
        try:
            await self._writer.write_unreadable(unread.obj, unread.problem, self._kube.now())
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)

    async def _safely(
        self,
        it: DecommissionResource,
        decision: DecommissionDecision,
        inputs: AutomationInputs,
        orders: dict[str, PlanOrder],
    ) -> float:
        """Serve one decommission, so that a refusal keeps no other waiting; return when to do so again."""
        try:
            return await self._serve(it, decision, inputs, orders)
        except ConflictError:
            await self._writer.refresh(it, Kind.BROKER_DECOMMISSION)
            return CONFLICT_SECONDS
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)
            return float("inf")

    async def _serve(
        self,
        it: DecommissionResource,
        decision: DecommissionDecision,
        inputs: AutomationInputs,
        orders: dict[str, PlanOrder],
    ) -> float:
        status, acted = decision.status, False
        if not any(isinstance(step, WorkOut | CreatePlan) for step in decision.steps):
            self._forget(it.uid)
        for step in decision.steps:
            acted |= not isinstance(step, WorkOut | RunPlan | RetirePlan)
            try:
                await self._perform(it, step, inputs, orders)
            except ConflictError:
                raise
            except ReassignError as error:
                log.warning("refused", step=type(step).__name__, reason=error.reason, error=error.message)
                status = refused(it, status, Problem(error.reason, error.message), self._kube.now())
                acted = False
                break
        now = next((o for o in self._store.decommissions(_key(it)) if o.uid == it.uid), None)
        if isinstance(now, DecommissionResource) and (now.generation, now.deleted) == (it.generation, it.deleted):
            await self._writer.write_decommission(now, status)
        if acted:
            return AT_ONCE_SECONDS
        return (decision.changes - self._kube.now()).total_seconds() if decision.changes else float("inf")

    async def _perform(
        self, it: DecommissionResource, step: AutomationStep, inputs: AutomationInputs, orders: dict[str, PlanOrder]
    ) -> None:
        if not isinstance(step, WorkOut | RunPlan | RetirePlan):
            log.info("decommission step", step=type(step).__name__)
        match step:
            case AddFinalizer():
                await self._writer.hold(it)
            case RemoveFinalizer():
                await self._writer.remove_finalizer(it)
            case WriteRecord(record):
                await self._writer.records.write_decommission(it, record)
            case WorkOut(spec):
                self._work_out(it, spec, inputs)
            case CreatePlan(manifest):
                await self._create(it, manifest, inputs)
            case RunPlan(plan, waves):
                orders[plan.uid] = PlanOrder(waves=waves)
            case RetirePlan(plan):
                orders[plan.uid] = PlanOrder(retired=True, lost=inputs.lost(it.stall_timeout_seconds))
            case DeletePlan(plan):
                await self._delete(plan)
            case UnregisterBroker(broker, via):
                await check_owner(self._kube, it)
                await inputs.unregister(broker, via)

    def _work_out(self, it: DecommissionResource, spec: ReassignmentPlanSpec, inputs: AutomationInputs) -> None:
        """Have a plan worked out, and anew once what is seen has changed."""
        plan = PlanResource(it.uid, it.version, it.namespace, it.name, 1, spec, ReassignmentPlanStatus(), False)
        if (job := inputs.job(plan, it.uid)) is None:
            return
        asked = self._asked.get(it.uid)
        if asked and isinstance(self._planner.made(job), WorkedOut) and not _differs(asked[1], inputs.seen):
            return
        if self._planner.ask(job, inputs.wake) or asked is None:
            self._asked[it.uid] = job, inputs.seen

    async def _create(self, it: DecommissionResource, manifest: Manifest, inputs: AutomationInputs) -> None:
        """Create a plan; what was worked out for its owner is what it has come to."""
        try:
            obj = await self._kube.create(manifest)
        except ConflictError:
            meta = manifest["metadata"]
            if found := await self._kube.get(Kind.REASSIGNMENT_PLAN, meta["namespace"], meta["name"]):
                self._store.put(found)
            raise
        self._store.put(obj)
        worked, plan = self._worked_out(it.uid), parse_plan(obj)
        if isinstance(worked, WorkedOut) and (job := inputs.job(plan, None)):
            self._planner.hand_over(job, renamed(worked.planned, self._asked[it.uid][0].plan, plan))
        self._forget(it.uid)

    async def _delete(self, plan: PlanResource) -> None:
        if obj := self._store.get(plan.uid):
            self._store.learn(plan.uid, await self._kube.delete(obj))

    def _forget(self, owner: str) -> None:
        if self._asked.pop(owner, None):
            self._planner.forget(owner)


def _has_changed(it: DecommissionResource, judged: Mapping[str, DecommissionResource]) -> bool:
    before = judged.get(it.uid)
    return before is None or (before.generation, before.deleted) != (it.generation, it.deleted)


def _goes_on(it: DecommissionResource, judged: Mapping[str, DecommissionResource], *, runs: bool) -> bool:
    """Whether what has begun of its plan goes on: it `runs`, or nothing was decided, and its owner does not stop it."""
    return (runs or _has_changed(it, judged)) and it.approved and not (it.spec.suspend or it.deleted)


def _key(it: DecommissionResource) -> ClusterKey:
    return it.namespace, it.spec.cluster_ref.name


def _differs(before: BrokersSeen | Problem | None, now: BrokersSeen | Problem) -> bool:
    """Whether brokers, replicas or moves have changed."""
    return _of_plan(before) != _of_plan(now)


def _of_plan(seen: BrokersSeen | Problem | None) -> object:
    if not isinstance(seen, BrokersSeen):
        return None
    return {
        broker: (found.registered, found.fenced, found.cordoned, dict(found.replicas), dict(found.in_flight))
        for broker, found in seen.brokers.items()
    }
