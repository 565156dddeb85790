"""Serves the ReassignmentPlans of a cluster, after its PartitionReassignments, in the same tick.

Nothing here moves a partition: a wave starts by its spec.suspend, and what it then does is the loop's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_plan import PLAN_UID_LABEL, ReassignmentPlanStatus
from reassign.api.window import Windows
from reassign.controller.logs import named_as
from reassign.controller.objects.reading import Unreadable, version
from reassign.controller.objects.store import Store
from reassign.controller.plans.automation import Automation
from reassign.controller.plans.goal_watch import GoalReading
from reassign.controller.plans.job import Job
from reassign.controller.plans.orders import Orders, check_owner, recorded_orders
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.waves import read_waves
from reassign.controller.writing.writer import Writer
from reassign.core.cluster import permission_of
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.configs.desired import out_of_bounds
from reassign.core.figures import is_past_windows
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem, bug_problem, render
from reassign.core.model.resource import Resource, Settled
from reassign.core.model.snapshot import Snapshot
from reassign.core.plans.decide import decide_plan, refused
from reassign.core.plans.goal import is_watched
from reassign.core.plans.model import (
    AddFinalizer,
    CancelEntries,
    CreateWave,
    DeleteWave,
    GoalSeen,
    GoalUnseen,
    IsSettled,
    MakePlan,
    Manifest,
    ObservedCluster,
    ObserveGoal,
    PlanDecision,
    Planned,
    PlanResource,
    PlanStep,
    RemoveFinalizer,
    StartWave,
    SuspendWave,
    Unread,
    ended,
    manifest_digest,
    unended,
)
from reassign.core.plans.progress import next_wave
from reassign.core.plans.windows import windows_at
from reassign.errors import ApiServerError, ConflictError, Reason, ReassignError
from reassign.kafka.connection import Connection
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object
from reassign.kube.lease import LeaseLost

log = structlog.get_logger()

T = TypeVar("T")

AT_ONCE_SECONDS = 0.1
CONFLICT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a tick knows of the cluster, and can find out."""

    seen: Callable[[PlanResource, Resource | None], ObservedCluster]
    """What a plan, with its next wave, may know of the cluster."""
    observed: frozenset[str] = frozenset()
    """The uids of the PartitionReassignments whose topics were observed, the next wave of each plan among them."""
    job: Callable[[PlanResource], Job | None] = lambda _: None
    """What a plan is made from now, None where it may not be made."""
    wake: Callable[[], object] = lambda: None
    """Makes the loop tick again."""
    permission: Permission | None = None
    """What each namespace may read of the cluster."""
    goals: GoalReading | None = None
    """What was read just now for the plans whose goals are watched."""
    is_settled: IsSettled = lambda _: True
    orders: Orders | None = None
    """What the owners of plans have decided; None where nothing was decided, and what their records say holds."""

    def rendered(self, plan: PlanResource, known: T) -> T | Problem:
        """Return what is known, or the problem as the plan's namespace may read it."""
        if not isinstance(known, Problem):
            return known
        return render(known, self.permission.audience(plan.namespace) if self.permission else None)


class Plans:
    """The ReassignmentPlans of all clusters; a loop, or the supervisor for one that is missing, serves its own."""

    def __init__(self, store: Store, kube: KubeClient, writer: Writer, planner: Planner) -> None:
        self._store = store
        self._kube = kube
        self._writer = writer
        self.planner = planner
        self.automation = Automation(store, kube, writer, planner)
        """The owners of plans."""

    def next_waves(self, key: ClusterKey) -> set[str]:
        """Return the uids of the waves that are compared with a cluster at its next observation."""
        plans = [plan for plan in self._store.plans(key) if isinstance(plan, PlanResource)]
        found = (next_wave(plan, read_waves(self._store, plan)[0]) for plan in plans)
        return {wave.uid for wave in found if wave}

    def watched(self, key: ClusterKey) -> list[PlanResource]:
        """Return the plans whose goals are observed again and again. What an owner wants is watched by its owner."""
        owned = recorded_orders(self._store, key).owners
        plans = [plan for plan in self._store.plans(key) if isinstance(plan, PlanResource)]
        return [plan for plan in plans if is_watched(plan) and plan.uid not in owned]

    def outside_windows(self, key: ClusterKey, now: datetime) -> set[str]:
        """Return the uids of the waves that have not ended, and whose plans, or owners, have windows and none open."""
        orders = recorded_orders(self._store, key)
        plans = [plan for plan in self._store.plans(key) if isinstance(plan, PlanResource)]
        closed = [plan for plan in plans if not _is_open(orders.windows_of(plan), now)]
        return {wave.uid for plan in closed for wave in unended(read_waves(self._store, plan)[0])}

    def past_windows(self, key: ClusterKey, now: datetime) -> int:
        """Count the plans that are not carried out though their windows, or their owners', have closed three times."""
        orders = recorded_orders(self._store, key)
        plans = [plan for plan in self._store.plans(key) if isinstance(plan, PlanResource)]
        those = ((plan, windows) for plan in plans if (windows := orders.windows_of(plan)))
        return sum(is_past_windows(plan, read_waves(self._store, plan)[0], windows, now) for plan, windows in those)

    async def serve_cluster(
        self,
        cluster: KafkaCluster,
        resources: Sequence[Resource],
        observed: ObservedCluster,
        connection: Connection | None,
        wake: Callable[[], object],
        goals: GoalReading | None = None,
        is_settled: IsSettled = lambda _: True,
        orders: Orders | None = None,
    ) -> float | None:
        """Serve the plans of a cluster after its `resources`; return in how many seconds to do so again, or None."""
        permission, throttle = permission_of(cluster), ConfigRules.of(cluster.spec)
        key = cluster.metadata.namespace, cluster.metadata.name
        recorded = recorded_orders(self._store, key)

        def job(plan: PlanResource) -> Job | None:
            allowed = permission.allowed.get(plan.namespace)
            pinned = self._store.cluster_id(cluster.metadata.uid)
            if not (connection and allowed):
                return None
            owned = plan.uid in recorded.owners
            in_part = owned and not recorded.needs_all_of(plan)
            lifted = recorded_cordons(self._store.throttle(cluster.metadata.uid)) if in_part else frozenset[int]()
            return Job(plan, cluster, pinned, connection, allowed, owned=owned, in_part=in_part, lifted=lifted)

        def seen_by(plan: PlanResource, wave: Resource | None) -> ObservedCluster:
            topics = sorted({tp.topic for tp in wave.asked}) if wave else ()
            withdrawn = next(filter(None, (permission.of_topic(plan.namespace, topic) for topic in topics)), None)
            refused = out_of_bounds(plan.spec.template.throttle, throttle, "spec.template.throttle")
            return permission.of_namespace(plan.namespace) or withdrawn or refused or observed

        judged = frozenset(resource.uid for resource in resources)
        return await self.serve(key, PlanInputs(seen_by, judged, job, wake, permission, goals, is_settled, orders))

    async def have_wait(self, key: ClusterKey, problem: Problem) -> None:
        """Say on the plans of a cluster why nothing of them may begin."""
        await self.serve(key, PlanInputs(lambda *_: problem))

    async def serve(self, key: ClusterKey, inputs: PlanInputs) -> float | None:
        """Reconcile each plan; return in how many seconds to do so again, None where nothing is urgent."""
        self.planner.keep(self._store.uids())
        if inputs.orders is None:
            inputs = replace(inputs, orders=recorded_orders(self._store, key))
        pauses = [await self._safely(plan, inputs) for plan in self._store.plans(key)]
        return min((pause for pause in pauses if pause is not None), default=None)

    async def _safely(self, plan: PlanResource | Unreadable, inputs: PlanInputs) -> float | None:
        """Serve one plan, so that an error with it keeps no other waiting."""
        with bound_contextvars(**named_as(Kind.REASSIGNMENT_PLAN, plan)):
            return await self._try(plan, inputs)

    async def _try(self, plan: PlanResource | Unreadable, inputs: PlanInputs) -> float | None:
        try:
            try:
                return await self._serve(plan, inputs)
            except (ConflictError, ApiServerError, LeaseLost):
                raise
            except ReassignError as error:
                await self._say(plan, Problem(error.reason, error.message))
            except Exception as error:
                log.exception("failed unexpectedly")
                await self._say(plan, bug_problem(error, "this one from being served"))
        except ConflictError:
            await self._writer.refresh(plan, Kind.REASSIGNMENT_PLAN)
            return CONFLICT_SECONDS
        except ReassignError as error:
            log.warning("not written", reason=error.reason, error=error.message)
        return None

    async def _say(self, plan: PlanResource | Unreadable, problem: Problem) -> None:
        if obj := self._store.get(plan.uid):
            await self._writer.write_unreadable(obj, problem, self._kube.now())

    async def _serve(self, plan: PlanResource | Unreadable, inputs: PlanInputs) -> float | None:
        if isinstance(plan, Unreadable):
            await self._say(plan, plan.problem)
            return None
        waves, unread = read_waves(self._store, plan)
        current = next_wave(plan, waves)
        wave = self._store.resource(current.uid) if isinstance(current, Settled) else current
        seen = inputs.rendered(plan, inputs.seen(plan, wave))
        if isinstance(seen, Snapshot) and wave and not ended(wave) and wave.uid not in inputs.observed:
            return AT_ONCE_SECONDS  # it came while the cluster was being observed
        job = inputs.job(plan)
        found = self.planner.made(job) if job else None
        goal: GoalSeen | GoalUnseen | None = None
        made: Planned | Problem | None = None
        if isinstance(found, GoalSeen | GoalUnseen):
            goal = found
        elif isinstance(found, Planned | Problem):
            made = inputs.rendered(plan, found)
        elif inputs.goals and job:
            goal = inputs.goals.of(plan, job)
        if isinstance(goal, GoalUnseen):
            goal = replace(goal, problem=inputs.rendered(plan, goal.problem))
        now = self._kube.now()
        order = inputs.orders.of(plan) if inputs.orders else None
        decision = decide_plan(plan, waves, seen, made, now, unread, goal, inputs.is_settled, order)
        status = await self._act(plan, decision, inputs)
        kept = self._store.plan(plan.uid)
        if kept and (kept.generation, kept.deleted) == (plan.generation, plan.deleted):
            await self._writer.write_plan(kept, status)
        others = [step for step in decision.steps if not isinstance(step, MakePlan | ObserveGoal)]
        if plan.deleted or (plan.planned and len(others) == len(decision.steps)):
            self.planner.forget(plan.uid)
        if status is not decision.status:
            return None
        if status.digest != plan.status.digest or others:
            return AT_ONCE_SECONDS
        return (decision.changes - now).total_seconds() if decision.changes else None

    async def _act(self, plan: PlanResource, decision: PlanDecision, inputs: PlanInputs) -> ReassignmentPlanStatus:
        """Take the steps, and return the status. After a refusal nothing is made, started or deleted, and what runs
        before its turn is suspended all the same."""
        status = decision.status
        for step in decision.steps:
            if status is not decision.status and not isinstance(step, SuspendWave | ObserveGoal):
                continue
            try:
                await self._perform(plan, step, inputs)
            except ConflictError:
                raise
            except ReassignError as error:
                log.warning("refused", step=type(step).__name__, reason=error.reason, error=error.message)
                problem = Problem(error.reason, error.message)
                status = refused(plan, decision, step, problem, self._kube.now())
        return status

    async def _perform(self, plan: PlanResource, step: PlanStep, inputs: PlanInputs) -> None:
        if not isinstance(step, MakePlan | ObserveGoal):
            log.info("plan step", step=type(step).__name__, wave=_name(step))
        match step:
            case AddFinalizer():
                await self._writer.hold(plan)
            case RemoveFinalizer():
                await self._writer.remove_finalizer(plan)
            case MakePlan() | ObserveGoal():
                if job := inputs.job(plan):
                    self.planner.ask(job, inputs.wake)
            case CreateWave(manifest):
                self._store.put(await self._created(manifest))
            case StartWave(wave):
                await self._check_current(plan)
                if owner := inputs.orders.owners.get(plan.uid) if inputs.orders else None:
                    await check_owner(self._kube, owner)
                await self._write(wave, lambda obj: self._kube.suspend(obj, False))
            case SuspendWave(wave):
                await self._write(wave, lambda obj: self._kube.suspend(obj, True))
            case DeleteWave(wave):
                await self._write(wave, self._kube.delete)
            case CancelEntries(wave, partitions):
                await self._write(wave, lambda obj: self._kube.remove_entries(obj, partitions))

    async def _created(self, manifest: Manifest) -> Object:
        try:
            return await self._kube.create(manifest)
        except ConflictError:
            meta = manifest["metadata"]
            found = await self._kube.get(Kind.PARTITION_REASSIGNMENT, meta["namespace"], meta["name"])
            if found and _same(found, manifest):
                return found
            message = f"there is another PartitionReassignment {meta['name']}: delete it, since this plan makes its own"
            raise ReassignError(Reason.CONFLICT, message) from None

    async def _check_current(self, plan: PlanResource) -> None:
        """Raise ConflictError where a watch lags behind the plan: the approval of a wave may have been withdrawn."""
        found = await self._kube.get(Kind.REASSIGNMENT_PLAN, plan.namespace, plan.name)
        if found is None or version(found) != plan.version:
            raise ConflictError(f"{plan.namespace}/{plan.name} has changed meanwhile")

    async def _write(self, wave: Resource | Unread, write: Callable[[Object], Awaitable[Object | None]]) -> None:
        obj = self._store.get(wave.uid)
        if obj is None or version(obj) != wave.version:
            raise ConflictError(f"{wave.namespace}/{wave.name} has changed meanwhile")
        try:
            written = await write(obj)
        except ConflictError:
            await self._writer.refresh(wave)
            raise
        if written is None:
            self._store.drop(wave.uid)
        else:
            self._store.put(written)


def _is_open(windows: Windows, now: datetime) -> bool:
    try:
        return windows_at(windows, now).is_open
    except Exception:  # a bug, which the plan, or its owner, reports when it is served
        return False


def _same(found: Object, manifest: Manifest) -> bool:
    theirs, ours = found["metadata"], manifest["metadata"]
    labelled = (theirs.get("labels") or {}).get(PLAN_UID_LABEL) == ours["labels"][PLAN_UID_LABEL]
    alike = manifest_digest(found) == manifest_digest(manifest)
    return labelled and alike and not theirs.get("deletionTimestamp")


def _name(step: PlanStep) -> str | None:
    match step:
        case StartWave(wave) | SuspendWave(wave) | DeleteWave(wave) | CancelEntries(wave):
            return wave.name
        case CreateWave(manifest):
            return str(manifest["metadata"]["name"])
    return None
