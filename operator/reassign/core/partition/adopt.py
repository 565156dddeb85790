"""Adopt: whose moves are in flight, and a record that was lost, from these and from what status says.

Anyone who may write a status could have it tell of moves that the resource never began. So a status makes no move its
own: this process has seen that it is, or the resource may take over any move (whenInFlight: Supersede).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reassign.api.partition_reassignment import WhenInFlight
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Holder
from reassign.core.model.record import Entry, Record, active, recorded_problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason

Holders = Mapping[TopicPartition, Holder]


def holders_of(verdicts: Iterable[Verdict], snapshot: Snapshot, before: Holders) -> Holders:
    """Whose moves are in flight, by the records; one that its resource has left behind is still that one's."""
    left = {tp: holder for tp, holder in before.items() if _moves(tp, holder.target, snapshot)}
    held = {
        tp: Holder(verdict.resource.uid, verdict.resource.namespace, target)
        for verdict in verdicts
        for tp, entry in active(verdict.record).items()
        if entry.state is not State.SUPERSEDING and _moves(tp, target := frozenset(entry.target), snapshot)
    }
    return left | held


def with_adopted(resource: Resource, snapshot: Snapshot, rules: ClusterRules, holders: Holders) -> Record:
    """Return the record of a resource; a lost one with entries for its moves in flight to where it wants them.

    Where status says that the resource has ended, nothing moves again. Without a permission nothing is adopted.
    """
    if not resource.record_lost:
        return resource.record
    takes_over = resource.spec.when_in_flight is WhenInFlight.SUPERSEDE
    adopted: dict[TopicPartition, Entry] = {}
    for tp, asked in resource.asked.items():
        topic, partition = snapshot.topics.get(tp.topic), snapshot.partition(tp)
        if tp in resource.record or rules.forbids(resource, tp) or topic is None or partition is None:
            continue
        entry = Entry(topic.id, partition.replicas, asked.replicas, State.COMPLETED, log_dirs=asked.named)
        if _moves(tp, frozenset(asked.replicas), snapshot):
            own = Holder(resource.uid, resource.namespace, frozenset(asked.replicas))
            if takes_over or holders.get(tp) == own:
                original, problem = snapshot.reassignments[tp].original, recorded_problem(Reason.ORDER_UNKNOWN)
                in_flight = State.IN_FLIGHT
                adopted[tp] = Entry(topic.id, original, asked.replicas, in_flight, problem, asked.named)
        elif resource.up_to_date and resource.status.completion_time:
            at_target = partition.replicas == asked.replicas
            cancelled = entry.to(State.CANCELLED, recorded_problem(Reason.CANCELLED_EXTERNALLY))
            adopted[tp] = entry if at_target else cancelled
    return {**adopted, **resource.record}


def _moves(tp: TopicPartition, target: frozenset[int], snapshot: Snapshot) -> bool:
    in_flight = snapshot.reassignments.get(tp)
    return in_flight is not None and in_flight.target == target
