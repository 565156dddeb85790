"""Adopt: rebuild a record that was lost from what is in flight."""

from __future__ import annotations

from reassign.api.partition_reassignment import RecordState
from reassign.core.model.policy import Policy
from reassign.core.model.record import Entry, Record, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.errors import Reason


def with_adopted(resource: Resource, snapshot: Snapshot, policy: Policy) -> Record:
    """The record of a resource; where it was lost, with the entries that are in flight to where the resource wants
    them.

    A user can make a resource that looks so: no permission, nothing adopted.
    """
    if not resource.status_lost:
        return resource.record
    adopted: dict[TopicPartition, Entry] = {}
    for tp, entry in resource.asked.items():
        in_flight = snapshot.reassignments.get(tp)
        if policy.forbids(resource, tp) or not in_flight or tp.topic not in snapshot.topics:
            continue
        if in_flight.target == set(entry.replicas):
            adopted[tp] = Entry(
                snapshot.topics[tp.topic].id,
                in_flight.original,
                entry.replicas,
                RecordState.IN_FLIGHT,
                recorded(Reason.ORDER_UNKNOWN),
                entry.named,
            )
    return {**adopted, **resource.record}
