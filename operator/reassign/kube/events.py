"""Events (events.k8s.io/v1) on our objects, for what has happened; a repeat is counted in the first one's series.

Events are help for people, never state: one that cannot be written is logged, and the caller goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import structlog

from reassign.api.limits import MAX_NOTE_BYTES
from reassign.errors import ReassignError
from reassign.kube.client import KubeClient, Object

__all__ = ["CONTROLLER", "EventRecorder"]

CONTROLLER = "kafka-reassign-operator"
NAME_CHARACTERS = 200
REMEMBERED = 1000

log = structlog.get_logger(__name__)


class EventRecorder:
    """Writes events in the name of one instance, which is the pod's name."""

    def __init__(self, kube: KubeClient, instance: str) -> None:
        self._kube = kube
        self._instance = instance
        self._written: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()

    async def record(self, obj: Object, type: str, reason: str, note: str, action: str) -> None:
        """Say that something happened to an object.

        `type` is Normal or Warning, `reason` what happened and `action` what was being done, both in CamelCase.
        """
        try:
            await self._record(obj, type, reason, note.encode()[:MAX_NOTE_BYTES].decode(errors="ignore"), action)
        except ReassignError as error:
            log.warning("event not recorded", event_reason=reason, note=note, error=error.message)

    async def _record(self, obj: Object, type: str, reason: str, note: str, action: str) -> None:
        # The note is part of what makes a repeat: it cannot be changed once the event is written.
        key = (obj["metadata"]["uid"], type, reason, action, note)
        path = f"/apis/events.k8s.io/v1/namespaces/{obj['metadata']['namespace']}/events"
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        name, count = self._written.get(key, ("", 0))
        if name and await self._count(f"{path}/{name}", count + 1, now):
            self._remember(key, name, count + 1)
            return
        name = f"{obj['metadata']['name'][:NAME_CHARACTERS].rstrip('.-')}.{uuid4().hex[:16]}"
        await self._kube.request("POST", path, self._event(obj, name, type, reason, note, action, now))
        self._remember(key, name, 1)

    async def _count(self, path: str, count: int, now: str) -> bool:
        """Count a repeat; return False when the first event has expired meanwhile."""
        series = {"series": {"count": count, "lastObservedTime": now}}
        content_type = "application/merge-patch+json"
        return bool(await self._kube.request("PATCH", path, series, content_type=content_type, missing_ok=True))

    def _event(
        self, obj: Object, name: str, type: str, reason: str, note: str, action: str, now: str
    ) -> dict[str, Any]:
        meta = obj["metadata"]
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": meta["namespace"]},
            "eventTime": now,
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "type": type,
            "reason": reason,
            "note": note,
            "action": action,
            "regarding": {
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            },
        }

    def _remember(self, key: tuple[str, ...], name: str, count: int) -> None:
        self._written[key] = (name, count)
        self._written.move_to_end(key)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)
