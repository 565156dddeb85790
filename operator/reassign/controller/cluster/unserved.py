"""What a loop does not serve: resources that are refused, that wait for their cluster, or that cannot be read.

What the schema takes and this version of the operator cannot read says so, and may be deleted. Its status stays as it
is but for the conditions, unread: what another version has recorded is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.controller.metrics import Metrics
from reassign.controller.objects.reading import Unreadable
from reassign.controller.objects.store import Store
from reassign.controller.plans.plans import Plans
from reassign.controller.writing.attempts import Attempts
from reassign.controller.writing.writer import Writer
from reassign.core.automation.model import OwnedCluster
from reassign.core.cluster import orphaned_throttles, permission_of
from reassign.core.configs.cordons import recorded_cordons
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem, bug_problem, error_problem, render
from reassign.core.model.record import active
from reassign.core.model.resource import Resource, Settled
from reassign.core.plans.model import PlanResource
from reassign.core.report.events import Event, Happened
from reassign.errors import ApiServerError, Reason, ReassignError
from reassign.kafka.connection import Connection
from reassign.kube.client import ClusterKey, Object, cluster_key, has_finalizer

log = structlog.get_logger()

UNREAD_AT_DEADLINE = Event(
    True,
    Happened.CANCEL_ABANDONED,
    "deletionDeadlineSeconds is over and the resource cannot be read: what it has in flight goes on",
)


@dataclass(frozen=True, slots=True)
class Unserved:
    """The resources of one KafkaCluster that are not served."""

    key: ClusterKey
    store: Store
    writer: Writer
    metrics: Metrics
    plans: Plans

    def attempts(self, alive: Callable[[], object] = lambda: None) -> Attempts:
        """Begin a round of work for resources of the cluster."""
        return Attempts(self.writer.refresh, self.report_bug, self.store.unreadable_namespaces, alive)

    async def report_bug(self, resource: Resource | Unreadable, error: Exception) -> None:
        """Say on a resource that a bug keeps it from being served."""
        log.error("failed unexpectedly", exc_info=error)
        if (obj := self.store.get(resource.uid)) and (now := self.store.resource(resource.uid)):
            self.metrics.failed("/".join(cluster_key(obj)), Reason.INTERNAL_ERROR)
            problem = bug_problem(error, "this one from being served")
            await self.writer.stand_still(now, problem, self.writer.now())

    async def answer_for_unreadable(self) -> None:
        """Say on resources that they cannot be read; release the deleted ones that need not wait until they can."""
        attempts, now = self.attempts(), self.writer.now()
        with suppress(ApiServerError):
            for unreadable in self.store.unreadable(self.key):
                async with attempts.at(unreadable):
                    await self._answer_for(unreadable, now)

    async def _answer_for(self, unreadable: Unreadable, now: datetime) -> None:
        obj = unreadable.obj
        at_deadline = _deletion_deadline_passed(obj, now)
        if _need_not_wait(unreadable) or at_deadline:
            if at_deadline:
                await self.writer.record_event(obj, UNREAD_AT_DEADLINE)
            await self.writer.release_object(obj)
        else:
            await self.writer.write_unreadable(obj, unreadable.problem, now)

    async def refuse(self, cluster: KafkaCluster) -> list[Resource]:
        """Return the resources to serve. Refuse one whose namespace is not allowed, unless it has moves in flight."""
        permission = permission_of(cluster)
        judged = [(r, permission.of_namespace(r.namespace)) for r in self.store.resources(self.key)]
        attempts = self.attempts()
        with suppress(ApiServerError):
            for resource, problem in judged:
                if problem and not active(resource.record):
                    async with attempts.at(resource):
                        await self.writer.refuse(resource, problem, self.writer.now())
        return [r for r, problem in judged if problem is None or active(r.record)]

    def settled(self, cluster: KafkaCluster) -> list[Settled]:
        """Return the settled resources whose namespace is allowed."""
        permission = permission_of(cluster)
        return [s for s in self.store.settled(self.key) if permission.of_namespace(s.namespace) is None]

    def unsettled(self, cluster: KafkaCluster | None, resources: Iterable[Resource]) -> list[str]:
        """Return what keeps the KafkaCluster from being deleted: what has moves in flight, or may come to have some.

        The waves of a plan that has not begun do not. Objects that cannot be read may, as may all of a namespace that
        cannot be listed, and owners of records that cannot be asked for.
        """
        moving = [f"{r.namespace}/{r.name}" for r in resources if not (r.settled or _holds_nothing(r))]
        unread = [
            u
            for u in self.store.unreadable(self.key)
            if has_finalizer(u.obj) or "completionTime" not in u.obj.get("status", {})
        ]
        referring = self.store.plans(self.key)
        plans = [p for p in referring if (p.under_way if isinstance(p, PlanResource) else has_finalizer(p.obj))]
        allowed = permission_of(cluster).allowed if cluster else self.store.unlisted
        unlisted = [f"{namespace}/*" for namespace in sorted(self.store.unlisted.intersection(allowed))]
        unasked = sorted(self.store.unowned(self.key))
        working = [it for it in self.plans.automation.decommissions(self.key) if it.record.approval and not it.finished]
        others = (*unread, *plans, *working, *unasked)
        return moving + [f"{other.namespace}/{other.name}" for other in others] + unlisted

    def problem_of(self, error: Exception) -> Problem:
        """Count an error in connecting or observing, and return what is said of it; an unforeseen one is a bug."""
        if isinstance(error, ReassignError):
            problem = error_problem(error)
        else:
            log.error("failed unexpectedly", exc_info=error)
            problem = bug_problem(error, "it from seeing the cluster")
        self.metrics.failed("/".join(self.key), problem.reason)
        return problem

    async def have_wait(
        self, resources: Sequence[Resource], problem: Problem, permission: Permission | None = None
    ) -> None:
        """Say on resources why they cannot be served now, with the names that the users of each namespace may read."""
        attempts = self.attempts()
        for resource in resources:
            rendered = render(problem, permission.audience(resource.namespace) if permission else None)
            async with attempts.at(resource):
                await self.writer.stand_still(resource, rendered, self.writer.now())

    async def stand_still(
        self,
        cluster: KafkaCluster,
        problem: Problem,
        resources: Sequence[Resource],
        connection: Connection | None,
        wake: Callable[[], object],
    ) -> None:
        """Say that the cluster cannot be used, on it and on whatever waits for it."""
        await self.have_wait(resources, problem, permission_of(cluster))
        await self.plans.serve_cluster(cluster, resources, problem, connection, wake)
        if self.key[0] not in self.store.unreadable_namespaces:
            await self.writer.write_unready_cluster(self.key, problem, self.writer.now())

    async def cannot_read(self, obj: Object, problem: Problem) -> bool:
        """Say on a KafkaCluster that it cannot be read, or release it; return whether it was released.

        The resources and plans that wait for it, allowed or not, learn no more than that.
        """
        resources = self.store.resources(self.key)
        left = self.store.throttle(obj["metadata"]["uid"])
        unused = not self.unsettled(None, resources) and (left is None or obj["spec"].get("deletionPolicy") == "Orphan")
        if obj["metadata"].get("deletionTimestamp") and unused:
            if left:
                await self.writer.record_event(obj, orphaned_throttles(left))
            await self.writer.release_object(obj)
            return True
        await self.writer.write_unreadable(obj, problem, self.writer.now())
        message = (
            f"the operator cannot read the KafkaCluster {'/'.join(self.key)}: correct that one, its status says what"
        )
        await self.have_wait(resources, Problem(problem.reason, message))
        own = OwnedCluster(self.key[1], wants_cordons=False, cordons=recorded_cordons(left))
        await self.plans.automation.have_wait(self.key, own, Problem(problem.reason, message))
        await self.plans.have_wait(self.key, Problem(problem.reason, message))
        return False


def _holds_nothing(resource: Resource) -> bool:
    """Whether it is a dry run, or a wave that waits for its plan."""
    waits = resource.dry_run or (resource.plan is not None and resource.asleep)
    return waits and not active(resource.record)


def _need_not_wait(unread: Unreadable) -> bool:
    """Whether a PartitionReassignment that is being deleted need not wait until it can be read."""
    deleted = unread.obj["metadata"].get("deletionTimestamp") and has_finalizer(unread.obj)
    return bool(deleted) and (unread.obj["spec"].get("deletionPolicy") == "Orphan" or not unread.holds)


def _deletion_deadline_passed(obj: Object, now: datetime) -> bool:
    """Whether a PartitionReassignment has been deleted for as long as its deletion waits at most."""
    deleted, deadline = obj["metadata"].get("deletionTimestamp"), obj["spec"].get("deletionDeadlineSeconds")
    if not deleted or not deadline or not has_finalizer(obj):
        return False
    return now - datetime.fromisoformat(deleted) >= timedelta(seconds=deadline)
