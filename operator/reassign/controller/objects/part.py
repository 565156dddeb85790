"""A part of a record, as a ReassignmentRecord has it, and its owner."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from reassign.api.common import GROUP
from reassign.api.reassignment_record import ReassignmentRecord, ReassignmentRecordSpec
from reassign.controller.objects.packing import whole
from reassign.core.model.record import Record, read_record
from reassign.kube.client import Kind, Object, has_finalizer

log = structlog.get_logger()

OWNERS = (Kind.KAFKA_CLUSTER, Kind.PARTITION_REASSIGNMENT, Kind.BROKER_DECOMMISSION, Kind.REASSIGNMENT_POLICY)
COPIED_AFTER = timedelta(seconds=60)
"""A part that was made so long after the last write that it tells of is a copy: ours are made before."""


class Owner(NamedTuple):
    """The object that a record belongs to."""

    kind: Kind
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Object) -> Owner:
        """Return an object as the owner of its record."""
        return cls(Kind(obj["kind"]), *(obj["metadata"][name] for name in ("namespace", "name", "uid")))


@dataclass(frozen=True, slots=True)
class Part:
    """One ReassignmentRecord, as it was read."""

    obj: Object
    spec: ReassignmentRecordSpec
    record: Record

    @classmethod
    def parse(cls, obj: Object) -> Part:
        spec = ReassignmentRecord.parse(whole(obj)).spec
        return cls(obj, spec, read_record(spec.topics))

    @property
    def copied(self) -> bool:
        """Whether a backup brought it back: what it tells of was written long before it was made."""
        sent = [entry.sent_at for entry in self.record.values() if entry.active and entry.sent_at]
        made = datetime.fromisoformat(self.obj["metadata"]["creationTimestamp"])
        return bool(sent) and made - max(sent) > COPIED_AFTER

    @property
    def held(self) -> bool:
        """Whether it has our finalizer."""
        return has_finalizer(self.obj)


def has_our_name(obj: Object) -> bool:
    """Whether a ReassignmentRecord is named `<uid>-<part>`, as the operator names each; one that is not is logged."""
    meta, part = obj["metadata"], obj["spec"]["part"]
    ours = meta["name"].removesuffix(f"-{part}") not in ("", meta["name"])
    if not ours:
        resource = f"{meta['namespace']}/{meta['name']}"
        log.warning("ignored: no record of the operator has this name", kind=obj["kind"], resource=resource, part=part)
    return ours


def owner_of(obj: Object) -> Owner:
    """Return the owner of a ReassignmentRecord.

    Other clients may add owners of their kinds. A deletion with --cascade=orphan removes the reference to ours. Then
    the name of the record has its uid, which stands for its own name too: a GET finds nothing of that name.
    """
    meta, spec = obj["metadata"], obj["spec"]
    for owner in meta.get("ownerReferences", ()):
        if owner["apiVersion"].startswith(f"{GROUP}/") and owner["kind"] in OWNERS:
            return Owner(Kind(owner["kind"]), meta["namespace"], owner["name"], owner["uid"])
    uid, _, _ = meta["name"].rpartition("-")
    if (kind := spec.get("ownerKind")) is None:
        kind = Kind.KAFKA_CLUSTER if {"throttle", "clusterId"} & spec.keys() else Kind.PARTITION_REASSIGNMENT
    return Owner(Kind(kind), meta["namespace"], uid, uid)
