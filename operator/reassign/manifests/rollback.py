"""The reverse of a PartitionReassignment, by the record in its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reassign.api.partition_reassignment import PartitionReassignment, ReplicationFactorChange
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import Manifest, manifest, parsed, short_hash, shortened, spec_of

KEPT = ("clusterRef", "throttle", "concurrency", "preferredLeader")


def rollback(live: Mapping[str, Any]) -> Manifest:
    """Return the reassignment that moves the partitions of this one, given with its status, back to their brokers.

    It has the entries in the record, each with the replicas that this one reached as `expectedReplicas`. Log
    directories are not restored.
    """
    moved = parsed(PartitionReassignment, live)
    record = {(topic.topic, each.partition): each for topic in moved.status.record for each in topic.partitions}
    entries: list[Manifest] = [
        {
            "topic": entry.topic,
            "partition": entry.partition,
            "replicas": list(done.original_replicas),
            "expectedReplicas": list(done.target_replicas),
        }
        for entry in moved.spec.partitions
        if (done := record.get((entry.topic, entry.partition))) and done.original_replicas != done.target_replicas
    ]
    name = moved.metadata.name
    if not entries:
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"{name} has nothing to roll back: its status.record has no replicas that it moved; "
            "give the object as it is in the cluster, with its status",
        )
    spec = {key: live["spec"][key] for key in KEPT if key in live["spec"]} | {"partitions": entries}
    if any(len(entry["replicas"]) != len(entry["expectedReplicas"]) for entry in entries):
        spec["replicationFactorChange"] = ReplicationFactorChange.ALLOW.value
    content = short_hash([name, entries])
    return manifest(shortened(name, f"-rollback-{content}"), moved.metadata.namespace, spec_of(spec))
