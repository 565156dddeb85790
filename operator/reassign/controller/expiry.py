"""Deletes what has come to its end and outlived its ttlSecondsAfterFinished, whether its KafkaCluster is there or not.

A resource that Argo CD tracks stays, with a warning: Argo CD would make it again, and it would move replicas back.
"""

from __future__ import annotations

from datetime import datetime

import structlog

from reassign.api.common import TRACKED_BY_ARGO_CD
from reassign.api.reassignment_plan import PLAN_UID_LABEL
from reassign.controller.objects.reading import named
from reassign.controller.objects.store import Store
from reassign.controller.writing.writer import Writer
from reassign.core.plans.expiry import expired, needs, plan_expired
from reassign.core.report.events import Event, Happened
from reassign.errors import ConflictError, ReassignError
from reassign.kube.client import Kind, KubeClient, Object

log = structlog.get_logger()

AT_ONCE = 100
"""Objects that are deleted in one go: other work of the process waits meanwhile."""
KEPT = Event(
    True,
    Happened.NOT_DELETED,
    "ttlSecondsAfterFinished has passed, but Argo CD tracks this object and would make it again: "
    "remove it from Git, or remove the field",
)


class Expiry:
    """Deletes the finished objects of all clusters."""

    def __init__(self, store: Store, kube: KubeClient, writer: Writer) -> None:
        self._store, self._kube, self._writer = store, kube, writer
        self._warned: set[str] = set()
        """The uids of the objects that were due and kept at the last sweep."""

    async def sweep(self) -> None:
        """Delete what is due. One that has changed meanwhile is judged again at the next sweep."""
        candidates = self._store.mortal()
        if not candidates:
            return
        now = self._writer.now()
        due = {obj["metadata"]["uid"]: obj for obj in candidates if self._is_due(obj, now)}
        tracked = {uid for uid, obj in due.items() if TRACKED_BY_ARGO_CD in (obj["metadata"].get("annotations") or {})}
        for uid in tracked - self._warned:
            await self._writer.record_event(due[uid], KEPT)
        self._warned = tracked
        for uid in [uid for uid in due if uid not in tracked][:AT_ONCE]:
            await self._delete(due[uid])

    def _is_due(self, obj: Object, now: datetime) -> bool:
        """Whether an object has expired. One that cannot be judged stays, and keeps no other from being deleted."""
        try:
            return self._due(obj, now)
        except Exception:
            log.exception("its time to live cannot be judged", **named(obj))
            return False

    def _due(self, obj: Object, now: datetime) -> bool:
        uid, labels = obj["metadata"]["uid"], obj["metadata"].get("labels") or {}
        if obj["kind"] == Kind.REASSIGNMENT_PLAN:
            plan = self._store.plan(uid)
            return plan is not None and plan_expired(plan, now)
        resource = self._store.known(uid)
        if resource is None or not expired(resource, now):
            return False
        owner = labels.get(PLAN_UID_LABEL, "")
        plan = self._store.plan(owner)
        return not needs(plan, resource.name) if plan else self._store.get(owner) is None

    async def _delete(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        try:
            left = await self._deleted(obj)
        except ReassignError as error:
            log.warning("not deleted", **named(obj), reason=error.reason, error=error.message)
            return
        if left is None or left["metadata"]["uid"] != uid:
            self._store.drop(uid)
            log.info("deleted after its time to live", **named(obj))
        else:
            self._store.put(left)

    async def _deleted(self, obj: Object) -> Object | None:
        """Delete an object; return what is left of it, as after a change meanwhile."""
        meta = obj["metadata"]
        try:
            return await self._kube.delete(obj)
        except ConflictError:
            return await self._kube.get(Kind(obj["kind"]), meta["namespace"], meta["name"])
