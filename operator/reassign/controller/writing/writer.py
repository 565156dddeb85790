"""Write finalizers, statuses and events, and only where something changed.

What the API server answers goes into the store at once, so the next tick builds on it and not on a watch that lags.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime

import structlog
from pydantic import ValidationError

from reassign.api.broker_decommission import BrokerDecommissionStatus
from reassign.api.common import Condition
from reassign.api.kafka_cluster import KafkaClusterStatus
from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.api.reassignment_plan import ReassignmentPlanStatus
from reassign.api.reassignment_policy import ReassignmentPolicyStatus
from reassign.controller.metrics import Metrics
from reassign.controller.objects.reading import Unreadable, version, wish
from reassign.controller.objects.store import Store, refresh
from reassign.controller.writing.records import Records
from reassign.controller.writing.write_budget import WriteBudget
from reassign.core.automation.model import DecommissionResource
from reassign.core.automation.policy_case import PolicyResource
from reassign.core.cluster import unready_status
from reassign.core.model.problem import Problem
from reassign.core.model.read_back import StatusReadBack
from reassign.core.model.record import Entry, Record, active
from reassign.core.model.resource import Resource
from reassign.core.model.verdict import Verdict
from reassign.core.partition.undo import released
from reassign.core.plans.model import PlanResource, Unread
from reassign.core.report.conditions import ConditionState, conditions
from reassign.core.report.events import (
    Event,
    Happened,
    cancellations,
    decommission_transitions,
    halvings,
    order_not_restored,
    plan_transitions,
    policy_transitions,
    rebuilt,
    transitions,
)
from reassign.core.report.statuses import blind
from reassign.errors import ConflictError, Reason, ReassignError
from reassign.kube.client import ClusterKey, Kind, KubeClient, Object, cluster_key
from reassign.kube.events import EventRecorder
from reassign.text import counted, listed

log = structlog.get_logger()

Status = (
    KafkaClusterStatus
    | PartitionReassignmentStatus
    | ReassignmentPlanStatus
    | BrokerDecommissionStatus
    | ReassignmentPolicyStatus
)

PROGRESS_SECONDS = 5.0
PROGRESS_BYTES_PER_SECOND = 1_000_000
ORPHAN = "deletionPolicy: Orphan releases the resource as it is"
LEFT_UNKNOWN = Event(
    True,
    Happened.REASSIGNMENT_ORPHANED,
    "its ReassignmentRecords were lost: what is in flight of its partitions counts as another client's, and goes on",
)


class Writer:
    """Writes finalizers, statuses, records and events. `plans` writes waves, and `expiry` deletes what has expired."""

    def __init__(self, kube: KubeClient, events: EventRecorder, store: Store, metrics: Metrics) -> None:
        self._kube = kube
        self._events = events
        self._store = store
        self.metrics = metrics
        self.records = Records(kube, store)
        self._budget = WriteBudget(PROGRESS_BYTES_PER_SECOND)
        self._written: dict[str, float] = {}  # when progress was written in the last PROGRESS_SECONDS, by uid

    def now(self) -> datetime:
        """Return the time by the API server's clock, by which the times of our resources are written."""
        return self._kube.now()

    async def hold(self, resource: Resource | PlanResource | DecommissionResource) -> Resource | None:
        """Put our finalizer on a resource, so that its deletion waits for us; return the resource as it is then."""
        self._store.learn(resource.uid, await self._kube.add_finalizer(self._object(resource)))
        return self._store.resource(resource.uid) if isinstance(resource, Resource) else None

    async def remove_finalizer(self, resource: Resource | PlanResource | DecommissionResource) -> None:
        """Take our finalizer off: there is nothing that a deletion would have to cancel."""
        await self.records.release(resource.uid)
        if isinstance(resource, Resource) and resource.owner_gone:
            return
        self._store.learn(resource.uid, await self._kube.remove_finalizer(self._object(resource)))

    async def release(self, verdict: Verdict) -> None:
        """Release a resource that is being deleted, and record an event of what became of its moves."""
        await self._release(verdict.resource, verdict.record, verdict.abandoned)

    async def _release(self, resource: Resource, record: Record, at_deadline: bool) -> None:
        left = sorted(str(tp) for tp, entry in record.items() if entry.active)
        first = listed(left, most=20)
        if at_deadline:
            note = f"deletionDeadlineSeconds is over with {counted(len(left), 'partition')} not brought back: {first}"
            event = Event(True, Happened.CANCEL_ABANDONED, note)
        elif orders := {tp: entry.original for tp, entry in record.items() if _order_refused(entry)}:
            event = order_not_restored(orders)
        elif left:
            event = Event(
                False,
                Happened.REASSIGNMENT_ORPHANED,
                f"{counted(len(left), 'partition')} in flight, left to move on: {first}",
            )
        else:
            event = Event(False, Happened.REASSIGNMENT_RELEASED, "nothing of it is in flight any more")
        if resource.owner_gone:
            log.warning("undone without its resource", note=event.note)
        elif resource.record_lost and not record:
            await self.record_event(self._object(resource), LEFT_UNKNOWN)
        elif record:
            await self.record_event(self._object(resource), event)
        await self.remove_finalizer(resource)

    async def give_up(self, resource: Resource) -> None:
        """Release the record of a resource that is gone, as is its KafkaCluster: nothing can undo its moves."""
        left = sorted(map(str, active(resource.record)))
        log.warning("left in flight: its KafkaCluster is gone too", count=len(left), first=left[:20])
        self.metrics.undos_given_up.inc()
        await self.remove_finalizer(resource)

    async def write(self, resource: Resource, status: PartitionReassignmentStatus) -> Resource | None:
        """Write a status if it changed, with the events about it; return the resource as it is then, None if gone.

        What is progress alone is written every PROGRESS_SECONDS at most, and within a budget over all objects. Raises
        ConflictError when the object is not the one that was judged.
        """
        before, uid = resource.status, resource.uid
        if status == before:
            return resource
        obj = self._object(resource)
        only_progress = _without_progress(status) == _without_progress(before)
        if only_progress and (self._lately(uid) or not self._budget.take(len(json.dumps(obj)))):
            return resource
        events = [*transitions(before.conditions, status.conditions), *cancellations(before, status)]
        if not await self._write_status(obj, status, events):
            return None
        self._written = {other: at for other, at in self._written.items() if self._lately(other)}
        self._written[uid] = time.monotonic()
        return self._store.resource(uid)

    def _lately(self, uid: str) -> bool:
        return time.monotonic() - self._written.get(uid, -PROGRESS_SECONDS) < PROGRESS_SECONDS

    async def check_unchanged(self, resource: Resource) -> None:
        """Raise ConflictError where the API server has another wish than the one that was judged, or none."""
        found = await self._kube.metadata(Kind.PARTITION_REASSIGNMENT, resource.namespace, resource.name)
        if found is None or wish(found) != (resource.uid, resource.generation, resource.deleted is not None):
            raise _changed(resource)

    async def is_unchanged(self, cluster: Object) -> bool:
        """Whether the API server still has this wish for a KafkaCluster; if not, take over what it has now."""
        try:
            found = await self._kube.metadata(Kind.KAFKA_CLUSTER, *cluster_key(cluster))
            if found is not None and wish(found) == wish(cluster):
                return True
            await self.refresh_cluster(cluster_key(cluster))
        except ReassignError as error:
            log.warning("the KafkaCluster cannot be read again", reason=error.reason, error=error.message)
        return False

    async def record(self, resource: Resource, record: Record, *, held: bool) -> Resource:
        """Write the record of a resource, with our finalizer where it is to be `held`; return the resource with it."""
        if record == resource.record and not resource.record_lost and self.records.up_to_date(resource):
            return resource
        await self.records.write(resource, record, held=held)
        if resource.record_lost and record and not resource.owner_gone:
            await self.record_event(self._object(resource), rebuilt(record))
        return replace(resource, record=record, record_lost=False)

    async def stand_still(self, resource: Resource, problem: Problem, now: datetime) -> None:
        """Say on a resource why it cannot be served; release it if it is being deleted and need not wait."""
        record = resource.record
        if resource.deleted:
            at_deadline = released(resource, record, now)
            idle = not resource.record_lost and not active(record)
            if at_deadline is not None or idle:
                await self._release(resource, record, bool(at_deadline))
                return
        if not (resource.settled or resource.owner_gone):
            await self.write(resource, blind(resource, problem, now))

    async def refuse(self, resource: Resource, problem: Problem, now: datetime) -> None:
        """Say that a resource is not served, and nothing else; release it if it is being deleted."""
        if resource.deleted:
            await self.remove_finalizer(resource)
        elif not resource.settled:
            await self.write(resource, blind(resource, problem, now))

    async def write_unreadable(self, obj: Object, problem: Problem, now: datetime) -> None:
        """Say on an object that it cannot be read; the rest of its status stays."""
        before, after = _conditions_before(obj), _conditions_after(obj, problem, now)
        if before == after:
            return
        status = obj.get("status", {}) | {"conditions": [condition.wire() for condition in after]}
        written = await self._kube.write_status(obj, status)
        self.metrics.status_patch()
        self._store.learn(obj["metadata"]["uid"], written)
        if written:
            for event in transitions(before, after):
                await self.record_event(obj, event)

    async def keep_cluster(self, obj: Object) -> None:
        """Put our finalizer on a KafkaCluster: it stays until nothing refers to it."""
        if not obj["metadata"].get("deletionTimestamp"):
            self._store.learn(obj["metadata"]["uid"], await self._kube.add_finalizer(obj))

    async def release_object(self, obj: Object) -> None:
        """Remove our finalizer from an object and its records."""
        await self.records.release(obj["metadata"]["uid"])
        self._store.learn(obj["metadata"]["uid"], await self._kube.remove_finalizer(obj))

    async def refresh_cluster(self, key: ClusterKey) -> None:
        """Look at what the API server has, where a watch lags behind it."""
        if obj := self._store.cluster(key):
            await refresh(self._kube, self._store, Kind.KAFKA_CLUSTER, *key, obj["metadata"]["uid"])

    async def write_cluster(self, key: ClusterKey, status: KafkaClusterStatus) -> None:
        obj = self._store.cluster(key)
        if obj and (before := self._store.parse_cluster(obj).status) != status:
            events = [*transitions(before.conditions, status.conditions), *halvings(before, status)]
            await self._write_status(obj, status, events)

    async def write_unready_cluster(self, key: ClusterKey, problem: Problem, now: datetime) -> None:
        if obj := self._store.cluster(key):
            await self.write_cluster(key, unready_status(self._store.parse_cluster(obj), problem, now))

    async def write_plan(self, plan: PlanResource, status: ReassignmentPlanStatus) -> None:
        """Write the status of a plan if it changed. Raises ConflictError when the object is not the one judged."""
        if status != plan.status:
            await self._write_status(self._object(plan), status, plan_transitions(plan.status, status))

    async def write_decommission(self, it: DecommissionResource, status: BrokerDecommissionStatus) -> None:
        """Write the status of a BrokerDecommission if it changed.

        Raises ConflictError when the object is not the one judged.
        """
        if status != it.status:
            await self._write_status(self._object(it), status, decommission_transitions(it.status, status))

    async def write_policy(self, it: PolicyResource, status: ReassignmentPolicyStatus, up: Set[int]) -> None:
        """Write the status of a ReassignmentPolicy if it changed; `up` are the brokers that are up.

        Raises ConflictError when the object is not the one judged.
        """
        if status != it.status:
            of_lost = [trigger.name for trigger in it.spec.triggers if trigger.broker_lost]
            await self._write_status(self._object(it), status, policy_transitions(it.status, status, of_lost, up))

    async def record_cluster_event(self, key: ClusterKey, event: Event) -> None:
        if obj := self._store.cluster(key):
            await self.record_event(obj, event)

    async def _write_status(self, obj: Object, status: Status, events: Iterable[Event]) -> bool:
        """Write a status and the events about it; return whether the object was still there."""
        written = await self._kube.write_status(obj, status.wire())
        self.metrics.status_patch()
        self._store.learn(obj["metadata"]["uid"], written)
        if written is None:
            return False
        for event in events:
            await self.record_event(obj, event)
        return True

    async def refresh(
        self,
        resource: Resource | PlanResource | DecommissionResource | PolicyResource | Unread | Unreadable,
        kind: Kind = Kind.PARTITION_REASSIGNMENT,
    ) -> None:
        """Look at what the API server has, where a watch lags behind it."""
        await refresh(self._kube, self._store, kind, resource.namespace, resource.name, resource.uid)

    def _object(self, resource: Resource | PlanResource | DecommissionResource | PolicyResource) -> Object:
        obj = self._store.get(resource.uid)
        if obj is None or version(obj) != resource.version:
            raise _changed(resource)
        return obj

    async def record_event(self, obj: Object, event: Event) -> None:
        await self._events.record(obj, "Warning" if event.warning else "Normal", event.reason, event.note, "Reconcile")


def _order_refused(entry: Entry) -> bool:
    return entry.problem is not None and entry.problem.reason is Reason.INVALID_REPLICA_ASSIGNMENT


def _changed(resource: Resource | PlanResource | DecommissionResource | PolicyResource) -> ConflictError:
    return ConflictError(f"{resource.namespace}/{resource.name} has changed meanwhile")


def _without_progress(status: StatusReadBack) -> object:
    conditions = {(c.type, c.status, c.reason, c.observed_generation) for c in status.conditions}
    return status.observed_generation, conditions, status.start_time, status.completion_time


def _conditions_before(obj: Object) -> tuple[Condition, ...]:
    """Return the conditions of an object; none where they cannot be read."""
    try:
        return tuple(map(Condition.parse, obj.get("status", {}).get("conditions", ())))
    except ValidationError:
        return ()


def _conditions_after(obj: Object, problem: Problem, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of an object that cannot be read; observedGeneration stays, as the rest is older."""
    message = problem.message
    if obj["kind"] == Kind.PARTITION_REASSIGNMENT and obj["metadata"].get("deletionTimestamp"):
        message = f"the deletion waits: {message}. {ORPHAN}"
    aspects: Sequence[ConditionState] = [
        ConditionState("Ready", False, problem.reason, message),
        ConditionState("Stalled", True, problem.reason, message),
    ]
    return conditions(_conditions_before(obj), aspects, obj["metadata"]["generation"], now)
