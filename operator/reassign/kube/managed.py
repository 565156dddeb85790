"""Who wrote what of an object, as its managedFields say: what came along with a copy of it was not written by us.

A manifest that was read from a cluster, as a backup keeps it, has our finalizer, our status and these fields as well.
What is made from it is another object, with another uid, so our field manager's name has the uid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reassign.api.common import FINALIZER

__all__ = ["FIELD_MANAGER", "field_manager", "finalizer_is_ours", "record_is_foreign"]


_MERGED = "ancient-changes"
"""The API server's name for the oldest of more than ten writers, which it no longer distinguishes."""


FIELD_MANAGER = "kafka-reassign-operator"
"""The name under which we make objects."""


def field_manager(uid: str) -> str:
    """The name that our writes to an object have in its managedFields."""
    return f"{FIELD_MANAGER}/{uid}"


def finalizer_is_ours(obj: Mapping[str, Any]) -> bool:
    """Whether we put our finalizer on this very object, and it was not removed since.

    False as well where nothing says so any more: the API server drops managedFields of an object that is too large with
    them, and no longer distinguishes the oldest of more than ten writers.
    """
    finalizer = f'v:"{FINALIZER}"'
    return any(
        manager == field_manager(obj["metadata"]["uid"])
        and finalizer in fields.get("f:metadata", {}).get("f:finalizers", {})
        for manager, fields in _fields(obj)
    )


def record_is_foreign(obj: Mapping[str, Any]) -> bool:
    """Whether another client wrote status.record as it is now; False where managedFields do not say who did."""
    writers = {manager for manager, fields in _fields(obj) if "f:record" in fields.get("f:status", {})}
    return not writers <= {_MERGED} and field_manager(obj["metadata"]["uid"]) not in writers


def _fields(obj: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in obj["metadata"].get("managedFields") or ():
        yield entry.get("manager", ""), entry.get("fieldsV1") or {}
