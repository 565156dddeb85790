"""What the watches and our own writes brought: the newest version known of each object."""

from __future__ import annotations

from typing import Any

import structlog

from reassign.api.common import FINALIZER
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.supported import unsupported_reassignment
from reassign.core.model import Problem
from reassign.core.resource import Resource
from reassign.core.size import too_large
from reassign.errors import Reason

log = structlog.get_logger()

Object = dict[str, Any]
ClusterKey = tuple[str, str]
"""Namespace and name of a KafkaCluster."""


def version(obj: Object) -> int:
    """Resource versions of one object can be compared as numbers; a larger one is newer."""
    return int(obj["metadata"]["resourceVersion"])


def cluster_key(reassignment: Object) -> ClusterKey:
    """The KafkaCluster that a PartitionReassignment refers to."""
    ref = reassignment["spec"]["clusterRef"]
    return ref.get("namespace", reassignment["metadata"]["namespace"]), ref["name"]


class Store:
    """Objects by uid. To put one returns whether it was newer than what was known."""

    def __init__(self) -> None:
        self._clusters: dict[str, Object] = {}
        self._reassignments: dict[str, Object] = {}
        self._parsed: dict[str, tuple[int, Resource]] = {}

    def put_cluster(self, obj: Object) -> bool:
        return _put(self._clusters, obj)

    def put_reassignment(self, obj: Object) -> bool:
        return _put(self._reassignments, obj)

    def keep_only(self, clusters: list[Object], reassignments: list[Object]) -> None:
        """Take over a list of all objects; what was known before and is not in it is gone."""
        for obj in clusters:
            self.put_cluster(obj)
        for obj in reassignments:
            self.put_reassignment(obj)
        for uid in self._clusters.keys() - {obj["metadata"]["uid"] for obj in clusters}:
            self.drop_cluster(uid)
        for uid in self._reassignments.keys() - {obj["metadata"]["uid"] for obj in reassignments}:
            self.drop_reassignment(uid)

    def drop_cluster(self, uid: str) -> None:
        self._clusters.pop(uid, None)

    def drop_reassignment(self, uid: str) -> None:
        self._parsed.pop(uid, None)
        self._reassignments.pop(uid, None)

    def clusters(self) -> list[Object]:
        return list(self._clusters.values())

    def cluster(self, key: ClusterKey) -> Object | None:
        found = [c for c in self._clusters.values() if (c["metadata"]["namespace"], c["metadata"]["name"]) == key]
        return max(found, key=version, default=None)

    def reassignment(self, uid: str) -> Object | None:
        return self._reassignments.get(uid)

    def resource(self, uid: str) -> Resource | None:
        """A PartitionReassignment, parsed, if it is there."""
        obj = self._reassignments.get(uid)
        return self._readable(obj) if obj else None

    def resources(self, key: ClusterKey) -> list[Resource]:
        """The PartitionReassignments that refer to a cluster; not those that only others still hold back."""
        found = (self._readable(obj) for obj in self._reassignments.values() if cluster_key(obj) == key)
        return [r for r in found if r and (r.has_finalizer or not r.deleted)]

    def referred(self) -> set[ClusterKey]:
        """The clusters that PartitionReassignments refer to, whether they exist or not."""
        return {cluster_key(obj) for obj in self._reassignments.values()}

    def _readable(self, obj: Object) -> Resource | None:
        """None for an object of a schema that this version cannot read: it is left as it is."""
        try:
            return self._resource(obj)
        except ValueError as error:
            meta = obj["metadata"]
            log.error("cannot be read", resource=f"{meta['namespace']}/{meta['name']}", error=str(error))
            return None

    def _resource(self, obj: Object) -> Resource:
        uid = obj["metadata"]["uid"]
        known = self._parsed.get(uid)
        if known is None or known[0] != version(obj):
            known = self._parsed[uid] = (version(obj), _parse(obj))
        return known[1]


def _put(objects: dict[str, Object], obj: Object) -> bool:
    uid = obj["metadata"]["uid"]
    if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
        return objects.pop(uid, None) is not None  # the API server has removed it, whatever the watch says later
    known = objects.get(uid)
    if known is not None and version(known) >= version(obj):
        return False
    objects[uid] = obj
    return True


def _parse(obj: Object) -> Resource:
    parsed = PartitionReassignment.parse(obj)
    meta = parsed.metadata
    assert meta.creation_timestamp is not None
    return Resource(
        uid=meta.uid,
        version=version(obj),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=parsed.spec,
        status=parsed.status,
        has_finalizer=FINALIZER in meta.finalizers,
        deleted=meta.deletion_timestamp,
        unsupported=_unsupported(parsed) or too_large(obj, parsed.spec),
    )


def _unsupported(parsed: PartitionReassignment) -> Problem | None:
    sentence = unsupported_reassignment(parsed.spec, parsed.metadata.namespace)
    return Problem(Reason.NOT_SUPPORTED_YET, sentence) if sentence else None
