"""Whether a resource can grow past what the API server stores (1.5 MiB in etcd, its managedFields included).

Past that the API server drops managedFields without a word, and a commit that removes an entry no longer removes
it: a cancel that never happens. So a resource that could grow that large never moves anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reassign.api.limits import (
    DETAIL_BYTES,
    MAX_DETAILS,
    MAX_OBJECT_BYTES,
)
from reassign.api.partition_reassignment import PartitionReassignmentSpec
from reassign.core.model.problem import Problem
from reassign.errors import Reason


def too_large(obj: Mapping[str, Any], spec: PartitionReassignmentSpec) -> Problem | None:
    """Return why an object, with the largest status that it can come to, is too large to be stored, or None."""
    body = {key: value for key, value in obj.items() if key != "status"}
    details = sum(DETAIL_BYTES + len(e.topic) for e in spec.partitions[:MAX_DETAILS])
    total = len(json.dumps(body, separators=(",", ":"))) + details
    if total <= MAX_OBJECT_BYTES:
        return None
    return Problem(
        Reason.RESOURCE_TOO_LARGE,
        f"with its status it could come to {total} bytes of at most {MAX_OBJECT_BYTES}; "
        "split it over several resources",
    )
