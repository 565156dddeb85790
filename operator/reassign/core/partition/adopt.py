"""Adopt: whose moves are in flight, and a record that was lost, from these and from what status says.

Anyone who may write a status could have it tell of moves that the resource never began. So a status makes no move its
own: only what this process has seen in the record does. Any other move, `whenInFlight: Supersede` takes over if every
check of admission passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.memory import Holder, OfTopic, Recent
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
        for tp, entry in _of_topics_now(verdict.record, snapshot).items()
        if entry.state is not State.SUPERSEDING and _moves(tp, target := frozenset(entry.target), snapshot)
    }
    return left | held


def unshown_moves(verdicts: Iterable[Verdict], snapshot: Snapshot, recent: Recent) -> Iterator[OfTopic]:
    """Yield the moves in flight whose alter was not answered, as far as is known, also those that go back since."""
    for verdict in verdicts:
        for tp, entry in active(verdict.record).items():
            submitted = entry.state is State.SUBMITTING or (tp, entry.topic_id) in recent.unshown
            if submitted and _moves(tp, frozenset(entry.target), snapshot):
                yield tp, entry.topic_id


def held_partitions(resources: Iterable[Resource], snapshot: Snapshot) -> Set[TopicPartition]:
    """Return the partitions that records hold, of the topics that are there now."""
    return {tp for resource in resources for tp in _of_topics_now(resource.record, snapshot)}


def _of_topics_now(record: Record, snapshot: Snapshot) -> Record:
    """Return the active entries whose topic was not made again since."""
    return {
        tp: entry
        for tp, entry in active(record).items()
        if (topic := snapshot.topics.get(tp.topic)) and topic.id == entry.topic_id
    }


def with_adopted(
    resource: Resource, snapshot: Snapshot, rules: ClusterRules, recent: Recent, held: Set[TopicPartition]
) -> Record:
    """Return the record of a resource, with what is its own in flight though the record does not say so."""
    landed = _landed(resource, snapshot, rules, recent, held)
    rebuilt = _rebuilt(resource, snapshot, rules, recent) if resource.record_lost else {}
    return {**rebuilt, **resource.record, **landed} if rebuilt or landed else resource.record


def _landed(
    resource: Resource, snapshot: Snapshot, rules: ClusterRules, recent: Recent, held: Set[TopicPartition]
) -> Record:
    """Return the entries whose request was held and has landed on a topic that was made again meanwhile.

    Such a move is to the very order that was sent. What restores the order of the original replicas moves the new
    topic's partition to these.
    """
    found = {}
    for tp, entry in active(resource.record).items():
        topic, move = snapshot.topics.get(tp.topic), snapshot.reassignments.get(tp)
        if topic is None or topic.id == entry.topic_id or tp in held or move is None:
            continue
        if not recent.open_write(tp, entry) and (tp, entry.topic_id) not in recent.unshown:
            continue
        if move.final == entry.target:
            found[tp] = replace(entry, topic_id=topic.id)
        elif entry.state is State.CANCELLING and move.final == entry.original and not rules.forbids(resource, tp):
            problem = recorded_problem(Reason.ORDER_UNKNOWN)
            found[tp] = Entry(topic.id, move.original, entry.original, State.CANCELLING, problem)
    return found


def _rebuilt(resource: Resource, snapshot: Snapshot, rules: ClusterRules, recent: Recent) -> Record:
    """Return entries for the moves in flight that this process has seen in the record that was lost.

    Where status says that the resource has ended, nothing moves again. Without a permission nothing is adopted.
    """
    adopted: dict[TopicPartition, Entry] = {}
    for tp, holder in recent.holders.items():
        topic = snapshot.topics.get(tp.topic)
        if holder.uid == resource.uid and topic and _moves(tp, holder.target, snapshot):
            move, asked = snapshot.reassignments[tp], resource.asked.get(tp)
            same = asked if asked and frozenset(asked.replicas) == holder.target else None
            target, named = (same.replicas, same.named) if same else (move.final, ())
            problem = recorded_problem(Reason.ORDER_UNKNOWN)
            state = State.SUBMITTING if (tp, topic.id) in recent.unshown else State.IN_FLIGHT
            adopted[tp] = Entry(topic.id, move.original, target, state, problem, named)
    if resource.up_to_date and resource.status.completion_time:
        for tp, asked in resource.asked.items():
            topic, partition = snapshot.topics.get(tp.topic), snapshot.partition(tp)
            if tp in adopted or topic is None or partition is None or _moves(tp, frozenset(asked.replicas), snapshot):
                continue
            entry = Entry(topic.id, partition.replicas, asked.replicas, State.COMPLETED, log_dirs=asked.named)
            at_target = partition.replicas == asked.replicas
            cancelled = entry.to(State.CANCELLED, recorded_problem(Reason.CANCELLED_EXTERNALLY))
            adopted[tp] = entry if at_target else cancelled
    return {tp: entry for tp, entry in adopted.items() if not rules.forbids(resource, tp)}


def _moves(tp: TopicPartition, target: frozenset[int], snapshot: Snapshot) -> bool:
    in_flight = snapshot.reassignments.get(tp)
    return in_flight is not None and in_flight.target == target
