"""What the schema offers and this version does not do yet: refused by name, never ignored.

Each function returns a sentence that names the field and its value, or None when all is supported.
"""

from __future__ import annotations

from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.api.partition_reassignment import (
    PartitionReassignmentSpec,
    Throttle,
)


def unsupported_reassignment(spec: PartitionReassignmentSpec) -> str | None:
    """What a PartitionReassignment asks for that is not built yet."""
    throttle = spec.throttle or Throttle()
    return _first_unsupported(
        ("throttle.logDir", throttle.log_dir, (None,)),
    )


def unsupported_cluster(spec: KafkaClusterSpec) -> str | None:
    """What a KafkaCluster asks for that is not built yet."""
    throttle = spec.throttle or Throttle()
    return _first_unsupported(
        ("throttle.logDir", throttle.log_dir, (None,)),
    )


def _first_unsupported(*fields: tuple[str, object, tuple[object, ...]]) -> str | None:
    """Each field is its name, its value, and the values that are supported."""
    for name, value, supported in fields:
        if value not in supported:
            return f"spec.{name}: {value} is not supported yet by this version of the operator"
    return None
