"""Digests of specs: an approval names one, and an edit changes it."""

from __future__ import annotations

import hashlib
import json

from reassign.api.partition_reassignment import PartitionReassignmentSpec


def spec_digest(spec: PartitionReassignmentSpec) -> str:
    """Return the digest of a spec without suspend and without defaults.

    So a version of the operator with more options computes the same digest.
    """
    return hashed(spec.model_dump(mode="json", exclude={"suspend"}, exclude_defaults=True))


def hashed(value: object) -> str:
    """Return the digest of plain JSON values."""
    return f"sha256:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()}"
