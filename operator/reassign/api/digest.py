"""Digests of what is asked for: an approval names one, and an edit is noticed by them."""

from __future__ import annotations

import hashlib
import json

from reassign.api.partition_reassignment import PartitionReassignmentSpec


def spec_digest(spec: PartitionReassignmentSpec) -> str:
    """Of what is asked for, but for suspend. What has its default does not count, so that a version of the operator
    that knows more options finds the same."""
    return hashed(spec.model_dump(mode="json", exclude={"suspend"}, exclude_defaults=True))


def hashed(value: object) -> str:
    """The digest of plain JSON values."""
    return f"sha256:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()}"
