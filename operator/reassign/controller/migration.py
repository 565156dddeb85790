"""Takes over what the version before this one recorded in statuses. It goes with the next version.

Others may write a status, so it counts at most once. The record of a KafkaCluster, which only the operator may write,
ends that: it names what could not be taken over before it was made.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from reassign.api.kafka_cluster import KafkaCluster, ThrottleStatus
from reassign.api.limits import MAX_LEFT_IN_STATUSES, MAX_PART_PARTITIONS
from reassign.controller.attempts import Attempts
from reassign.core.model.memory import LONGEST_RETRY_SECONDS, RETRY_SECONDS
from reassign.core.model.record import ACTIVE, read_record
from reassign.core.model.resource import Resource
from reassign.errors import ApiServerError, Reason, ReassignError
from reassign.kube.client import ClusterKey, Object, cluster_key

if TYPE_CHECKING:
    from reassign.controller.reporter import Reporter
    from reassign.controller.server import Health
    from reassign.controller.store import Store


def in_status(store: Store, obj: Object) -> bool:
    """Whether the status of a PartitionReassignment has the only copy of its record, or of a part of it.

    Without its KafkaCluster nothing can be undone. Then a status counts too, so that the deletion waits.
    """
    meta, cluster = obj["metadata"], store.cluster(cluster_key(obj))
    if len(_recorded(obj)) <= store.parts_of(meta["uid"]) * MAX_PART_PARTITIONS:
        return False
    if cluster is None:
        return True
    if (uid := cluster["metadata"]["uid"]) not in store.marked:
        return _served_before(cluster)
    return not _left(store, uid).isdisjoint({meta["uid"], _all_of(meta["namespace"])})


def with_status(store: Store, obj: Object, resource: Resource) -> Resource:
    """A PartitionReassignment as its records tell of it, with what only its status has."""
    if not resource.status.record or not in_status(store, obj):
        return resource
    return replace(resource, record={**read_record(resource.status.record), **resource.record}, record_lost=False)


def holds_in_status(store: Store, obj: Object) -> bool:
    """Whether something of it may be in flight by such a record."""
    return in_status(store, obj) and any(entry["state"] in ACTIVE for entry in _recorded(obj))


def throttle_in_status(cluster: Object | None) -> ThrottleStatus | None:
    """The record of the throttles of a KafkaCluster that has none of its own."""
    if cluster is None or not _served_before(cluster):
        return None
    try:
        throttle = ThrottleStatus.parse(cluster["status"].get("throttle") or {})
    except ValidationError:  # that version wrote none such
        return None
    return throttle if throttle.brokers or throttle.topics else None


class TakeOver:
    """Takes over what is in the statuses of a KafkaCluster and of its resources."""

    def __init__(self, key: ClusterKey, store: Store, reporter: Reporter, health: Health) -> None:
        self._key, self._store, self._reporter, self._health = key, store, reporter, health
        self._refused: dict[str, tuple[float, float]] = {}
        """When to try again what the API server refused, and the seconds until then, by uid."""

    async def run(self, cluster: KafkaCluster) -> None:
        """Write the records of what is in statuses, then that of the KafkaCluster, with its throttles and what is left.

        Raises ReassignError when the KafkaCluster has no record afterwards.
        """
        uid = cluster.metadata.uid
        if self._store.has_record(uid) and not _left(self._store, uid):
            return
        with suppress(ApiServerError):  # what was not written is left
            await self._write_records()
        left = sorted(_still_left(self._key, uid, self._store))
        if len(left) > MAX_LEFT_IN_STATUSES:
            message = f"the records of {len(left)} PartitionReassignments cannot be written: see the operator's log"
            raise ReassignError(Reason.CANNOT_BE_WRITTEN, message)
        await self._reporter.records.mark(cluster, self._store.throttle(uid), left)

    async def _write_records(self) -> None:
        attempts = Attempts(self._reporter, lambda: self._health.tick("/".join(self._key)))
        began, before = time.monotonic(), self._refused
        self._refused = {}
        for resource in self._store.resources(self._key):
            if not ((obj := self._store.get(resource.uid)) and in_status(self._store, obj)):
                continue
            due, pause = before.get(resource.uid, (began, RETRY_SECONDS / 2))
            if due > began:
                self._refused[resource.uid] = due, pause
                continue
            async with attempts.at(resource):
                await self._reporter.records.write(resource, resource.record, held=resource.has_finalizer)
            if resource.uid in attempts.refused:
                pause = min(2 * pause, LONGEST_RETRY_SECONDS)
                self._refused[resource.uid] = began + pause, pause


def _still_left(key: ClusterKey, uid: str, store: Store) -> set[str]:
    uids = [*(r.uid for r in store.resources(key)), *(u.uid for u in store.unreadable(key))]
    single = {other for other in uids if (obj := store.get(other)) and in_status(store, obj)}
    unlisted = set(map(_all_of, store.unlisted))
    if uid in store.marked:
        return single | (unlisted & _left(store, uid))
    cluster = store.get(uid)
    return single | unlisted if cluster and _served_before(cluster) else set()


def _left(store: Store, uid: str) -> set[str]:
    """What the record of a KafkaCluster says is left."""
    return {name for part in store.parts(uid) for name in part.spec.left_in_statuses}


def _all_of(namespace: str) -> str:
    return f"{namespace}/*"


def _recorded(obj: Object) -> list[Object]:
    topics = (obj.get("status") or {}).get("record") or ()
    return [entry for topic in topics for entry in topic["partitions"]]


def _served_before(cluster: Object) -> bool:
    return (cluster.get("status") or {}).get("clusterId") is not None
