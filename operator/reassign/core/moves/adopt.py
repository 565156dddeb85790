"""Adopt: rebuild a record that was lost, from what is in flight and from what status says."""

from __future__ import annotations

from reassign.api.partition_reassignment import RecordState
from reassign.core.model.policy import Policy
from reassign.core.model.record import Entry, Record, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.errors import Reason


def with_adopted(resource: Resource, snapshot: Snapshot, policy: Policy) -> Record:
    """The record of a resource; where it was lost, with entries for what is in flight to where the resource wants it.

    Of a resource whose status says that it has ended, nothing moves again. Status may be anyone's: no permission,
    nothing adopted.
    """
    if not resource.record_lost:
        return resource.record
    adopted: dict[TopicPartition, Entry] = {}
    for tp, asked in resource.asked.items():
        topic, partition = snapshot.topics.get(tp.topic), snapshot.partition(tp)
        if tp in resource.record or policy.forbids(resource, tp) or topic is None or partition is None:
            continue
        in_flight = snapshot.reassignments.get(tp)
        entry = Entry(topic.id, partition.replicas, asked.replicas, RecordState.COMPLETED, log_dirs=asked.named)
        if in_flight and in_flight.target == set(asked.replicas):
            order_unknown = recorded(Reason.ORDER_UNKNOWN)
            adopted[tp] = Entry(
                topic.id, in_flight.original, asked.replicas, RecordState.IN_FLIGHT, order_unknown, asked.named
            )
        elif resource.up_to_date and resource.status.completion_time:
            at_target = partition.replicas == asked.replicas
            cancelled = entry.to(RecordState.CANCELLED, recorded(Reason.CANCELLED_EXTERNALLY))
            adopted[tp] = entry if at_target else cancelled
    return {**adopted, **resource.record}
