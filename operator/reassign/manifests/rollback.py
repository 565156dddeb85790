"""The reverse of a PartitionReassignment, by its status or its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from reassign.api.limits import MAX_REPLICAS
from reassign.api.partition_reassignment import (
    PartitionReassignment,
    PartitionReassignmentStatus,
    PartitionState,
    RecordState,
    ReplicationFactorChange,
)
from reassign.api.reassignment_record import ReassignmentRecord
from reassign.errors import PlanningError, Reason
from reassign.manifests.objects import Manifest, manifest, parsed, short_hash, shortened, spec_of

KEPT = ("clusterRef", "throttle", "concurrency", "preferredLeader")

MOVED = (PartitionState.COMPLETED, PartitionState.IN_FLIGHT)
RECORDED_MOVED = (RecordState.COMPLETED, RecordState.SETTLING, RecordState.IN_FLIGHT)
UNDER_WAY = (PartitionState.IN_FLIGHT, PartitionState.CANCELLING)
RECORDED_UNDER_WAY = (RecordState.SUBMITTING, RecordState.IN_FLIGHT, RecordState.SETTLING, RecordState.CANCELLING)

Moves = dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]
"""Original and target replicas, by topic and partition."""


def lists_all(live: Mapping[str, Any]) -> bool:
    """Whether a status describes every partition, so that its records are not needed."""
    status = parsed(PartitionReassignment, live).status
    return status.progress is None or status.progress.partitions_total <= len(status.partitions)


def under_way(live: Mapping[str, Any], records: Iterable[Mapping[str, Any]] = ()) -> Moves:
    """Return what a PartitionReassignment has in flight, or is taking back; records are needed as for a rollback."""
    moved = parsed(PartitionReassignment, live)
    recorded = _in_records(records, moved.metadata.uid, RECORDED_UNDER_WAY)
    return recorded or _in_status(moved.status, UNDER_WAY)


def rollback(live: Mapping[str, Any], records: Iterable[Mapping[str, Any]] = ()) -> Manifest:
    """Return the reassignment that moves the partitions of this one, given with its status, back to their brokers.

    Where the status does not describe every partition, its ReassignmentRecords are needed. It has the entries that are
    completed or in flight, each with the replicas that this one reaches as `expectedReplicas`. What is pending or
    blocked has not moved, and what was cancelled or has failed is where it was. Log directories are not restored.

    What `irreversible` names is left out. Raises NOTHING_SELECTED where there is no other such entry.
    """
    moved = parsed(PartitionReassignment, live)
    name = moved.metadata.name
    reverse = _reverse(moved, records)
    entries = [entry for entry in reverse if _problem(entry) is None]
    if reverse and not entries:
        raise PlanningError(Reason.NOTHING_SELECTED, f"{name} cannot be rolled back: {_irreversible(name, reverse)[0]}")
    if not entries:
        raise PlanningError(
            Reason.NOTHING_SELECTED,
            f"{name} has nothing to roll back: by its status no partition is in flight or completed at other replicas; "
            "give the object as it is in the cluster, with its status",
        )
    spec = {key: live["spec"][key] for key in KEPT if key in live["spec"]} | {"partitions": entries}
    if any(len(entry["replicas"]) != len(entry["expectedReplicas"]) for entry in entries):
        spec["replicationFactorChange"] = ReplicationFactorChange.ALLOW.value
    content = short_hash([name, entries])
    return manifest(shortened(name, f"-rollback-{content}"), moved.metadata.namespace, spec_of(spec))


def irreversible(live: Mapping[str, Any], records: Iterable[Mapping[str, Any]] = ()) -> list[str]:
    """Return a sentence for each entry that has moved, and whose replicas as recorded no manifest can have."""
    moved = parsed(PartitionReassignment, live)
    return _irreversible(moved.metadata.name, _reverse(moved, records))


def _irreversible(name: str, reverse: Iterable[Manifest]) -> list[str]:
    return [
        f"partition {entry['partition']} of {entry['topic']} is left out of the rollback of {name}, whose status has "
        f"{problem}; move it back by hand"
        for entry in reverse
        if (problem := _problem(entry))
    ]


def _problem(entry: Manifest) -> str | None:
    """Return which replicas of an entry no PartitionReassignment can have, and why."""
    for field, what in (("replicas", "originalReplicas"), ("expectedReplicas", "targetReplicas")):
        brokers = entry[field]
        if len(set(brokers)) < len(brokers):
            return f"{what} {brokers} that name a broker twice"
        if len(brokers) > MAX_REPLICAS:
            return f"{what} of {len(brokers)} brokers, more than {MAX_REPLICAS}"
    return None


def _reverse(moved: PartitionReassignment, records: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """Return the entries that go back, in the order of the spec."""
    moves = _in_records(records, moved.metadata.uid, RECORDED_MOVED) or _in_status(moved.status, MOVED)
    return [
        {
            "topic": entry.topic,
            "partition": entry.partition,
            "replicas": list(done[0]),
            "expectedReplicas": list(done[1]),
        }
        for entry in moved.spec.partitions
        if (done := moves.get((entry.topic, entry.partition))) and done[0] != done[1]
    ]


def _in_records(records: Iterable[Mapping[str, Any]], owner: str, states: Collection[RecordState]) -> Moves:
    read = (parsed(ReassignmentRecord, record) for record in records)
    topics = [t for r in read if [o.uid for o in r.metadata.owner_references] == [owner] for t in r.spec.topics]
    return {
        (t.topic, p.partition): (p.original_replicas, p.target_replicas)
        for t in topics
        for p in t.partitions
        if p.state in states
    }


def _in_status(status: PartitionReassignmentStatus, states: Collection[PartitionState]) -> Moves:
    moved = ((p, p.original_replicas, p.target_replicas) for p in status.partitions if p.state in states)
    return {(p.topic, p.partition): (before, after) for p, before, after in moved if before and after}
