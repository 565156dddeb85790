"""From an object of the API server to a PartitionReassignment as the core sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reassign.api.common import FINALIZER
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import PLAN_LABEL, PLAN_UID_LABEL
from reassign.core.checks.size import too_large
from reassign.core.model.resource import Resource


def parse(obj: Mapping[str, Any]) -> Resource:
    """Parse a PartitionReassignment, without its record; raises pydantic's ValidationError."""
    parsed = PartitionReassignment.parse(obj)
    meta = parsed.metadata
    assert meta.creation_timestamp is not None
    labels = obj["metadata"].get("labels") or {}
    return Resource(
        uid=meta.uid,
        version=int(meta.resource_version),
        namespace=meta.namespace,
        name=meta.name,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=parsed.spec,
        status=parsed.status,
        has_finalizer=FINALIZER in meta.finalizers,
        deleted=meta.deletion_timestamp,
        unsupported=too_large(obj, parsed.spec),
        plan=labels.get(PLAN_LABEL) if PLAN_UID_LABEL in labels else None,
        plan_uid=labels.get(PLAN_UID_LABEL),
    )
