"""pauseWhen: nothing new starts while partitions outside our own moves are short of in-sync replicas.

Our own moves are those in flight and those that a resource still waits for: a move that would repair a partition is not
held back by what it repairs. A partition is judged as the brokers' own metrics judge it. Replicas being added do not
count (KIP-455), and min.insync.replicas is never more than there are replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reassign.api.kafka_cluster import PauseWhen
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Name, Names, Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Reassignment, Topic, TopicPartition
from reassign.core.model.states import State
from reassign.errors import Reason

REASONS = {
    PauseWhen.UNDER_MIN_ISR: (Reason.CLUSTER_UNDER_MIN_ISR, "fewer replicas in sync than min.insync.replicas"),
    PauseWhen.UNDER_REPLICATED: (Reason.CLUSTER_UNDER_REPLICATED, "replicas that are not in sync"),
}


def waits_to_start(resources: Iterable[Resource]) -> bool:
    """Whether any partition might be started now."""
    return any(
        (entry := resource.record.get(tp)) is None
        or entry.target != target
        or entry.state in (State.CANCELLING, State.SUPERSEDING)
        for resource in resources
        if not (resource.spec.suspend or resource.unsupported or resource.dry_run)
        for tp, target in resource.wanted.items()
    )


def our_own(resources: Iterable[Resource], permission: Permission) -> set[TopicPartition]:
    """Return the partitions that resources move, or still want to move and may."""
    ours: set[TopicPartition] = set()
    for resource in resources:
        ours |= active(resource.record).keys()
        if resource.unsupported or resource.dry_run:
            continue
        ours |= {
            tp
            for tp, target in resource.wanted.items()
            if ((entry := resource.record.get(tp)) is None or entry.target != target)
            and not permission.of_topic(resource.namespace, tp.topic)
        }
    return ours


def shortages(
    when: PauseWhen, topics: Mapping[str, Topic], reassignments: Mapping[TopicPartition, Reassignment]
) -> tuple[TopicPartition, ...]:
    """Return the partitions of these topics that are in the state which pauses."""
    if when is PauseWhen.NEVER:
        return ()
    return tuple(
        tp
        for name, topic in sorted(topics.items())
        for number, partition in sorted(topic.partitions.items())
        if _is_short(when, topic, partition, reassignments.get(tp := TopicPartition(name, number)))
    )


def _is_short(when: PauseWhen, topic: Topic, partition: Partition, in_flight: Reassignment | None) -> bool:
    if partition.leader is None:
        return True
    replicas = len(in_flight.original if in_flight else partition.replicas)
    needed = replicas if when is PauseWhen.UNDER_REPLICATED else min(topic.min_insync_replicas, replicas)
    return len(partition.isr) < needed


def pause_problem(when: PauseWhen, short: Sequence[TopicPartition], ours: Collection[TopicPartition]) -> Problem | None:
    """Return why nothing new starts, or None when our own moves repair all that is short."""
    others = [tp for tp in short if tp not in ours]
    if not others:
        return None
    reason, what = REASONS[when]
    return Problem(
        reason,
        f"nothing new starts while partitions outside of our own moves have {what} or no leader: {len(others)} have (",
        Names(tuple(Name(str(tp), tp.topic) for tp in others), "of topics that this namespace may not move"),
        "); bring their brokers back, move them too, or set pauseWhen",
    )
