"""Makes plans for their owners: has each worked out before there is an object of it, creates it, and deletes it."""

from __future__ import annotations

from collections.abc import Callable

from reassign.api.reassignment_plan import ReassignmentPlanSpec, ReassignmentPlanStatus
from reassign.controller.objects.reading import parse_plan
from reassign.controller.objects.store import Store
from reassign.controller.plans.job import Job, renamed
from reassign.controller.plans.planner import Planner
from reassign.core.automation.model import BrokersSeen, WorkedOut
from reassign.core.automation.policy_case import PlanOwner
from reassign.core.model.problem import Problem
from reassign.core.plans.model import Manifest, PlanResource
from reassign.errors import ConflictError
from reassign.kube.client import Kind, KubeClient

JobOf = Callable[[PlanResource, str | None], Job | None]
"""What a plan is made from now, with the uid of its owner where it has no object; None where none may be made."""


class MadePlans:
    """The plans of all owners that are to be made, or were."""

    def __init__(self, store: Store, kube: KubeClient, planner: Planner) -> None:
        self._store, self._kube, self._planner = store, kube, planner
        self._asked: dict[str, tuple[Job, BrokersSeen | Problem]] = {}
        """What the last decision asked to have worked out, by owner, and what was seen when it was begun."""

    def worked_out(self, owner: str) -> WorkedOut | Problem | None:
        """Return what working out a plan came to, by the uid of its owner; None where that was not asked for."""
        if owner not in self._asked:
            return None
        made = self._planner.made(self._asked[owner][0])
        return made if isinstance(made, WorkedOut | Problem) else None

    def work_out(
        self,
        it: PlanOwner,
        spec: ReassignmentPlanSpec,
        lifted: frozenset[int],
        seen: BrokersSeen | Problem,
        job_of: JobOf,
        wake: Callable[[], object],
    ) -> None:
        """Have a plan worked out, as though the cordons of `lifted` were, and anew once what is seen has changed."""
        plan = PlanResource(it.uid, it.version, it.namespace, it.name, 1, spec, ReassignmentPlanStatus(), False)
        if (job := job_of(plan, it.uid)) is None:
            return
        job = job._replace(lifted=lifted)
        asked = self._asked.get(it.uid)
        if asked and asked[0].plan.spec != spec:
            asked = None
        if asked and isinstance(self._planner.made(job), WorkedOut) and _of_plan(asked[1]) == _of_plan(seen):
            return
        if self._planner.ask(job, wake) or asked is None:
            self._asked[it.uid] = job, seen

    async def create(self, it: PlanOwner, manifest: Manifest, job_of: JobOf) -> None:
        """Create a plan; what was worked out for its owner is what it has come to."""
        try:
            obj = await self._kube.create(manifest)
        except ConflictError:
            meta = manifest["metadata"]
            if found := await self._kube.get(Kind.REASSIGNMENT_PLAN, meta["namespace"], meta["name"]):
                self._store.put(found)
            raise
        self._store.put(obj)
        worked, plan = self.worked_out(it.uid), parse_plan(obj)
        if isinstance(worked, WorkedOut) and (job := job_of(plan, None)):
            self._planner.hand_over(job, renamed(worked.planned, self._asked[it.uid][0].plan, plan))
        self.forget(it.uid)

    async def delete(self, plan: PlanResource) -> None:
        if obj := self._store.get(plan.uid):
            self._store.learn(plan.uid, await self._kube.delete(obj))

    def forget(self, owner: str) -> None:
        """Forget what was worked out for an owner."""
        if self._asked.pop(owner, None):
            self._planner.forget(owner)

    def forget_gone(self) -> None:
        """Forget the owners that are gone."""
        for gone in self._asked.keys() - self._store.uids():
            del self._asked[gone]


def _of_plan(seen: BrokersSeen | Problem) -> object:
    """Return what a plan depends on: brokers, replicas and moves."""
    if not isinstance(seen, BrokersSeen):
        return None
    return {
        broker: (found.registered, found.fenced, found.cordoned, dict(found.replicas), dict(found.in_flight))
        for broker, found in seen.brokers.items()
    }
