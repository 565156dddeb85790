"""pauseWhen: nothing new starts while partitions outside our own moves are short of in-sync replicas.

Our own moves are those in flight and those that a resource still waits for: a move that would repair a partition is not
held back by what it repairs. A partition is judged as the brokers' own metrics judge it. Replicas being added do not
count (KIP-455), and min.insync.replicas is never more than there are replicas.

A plan that evacuates lost brokers is not held back by partitions that lack nothing but their replicas there. Otherwise
one partition without another replica, which no plan can move, would hold back all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set

from reassign.api.kafka_cluster import PauseWhen
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Name, Names, Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Partition, Reassignment, Topic, TopicPartition
from reassign.core.model.states import State
from reassign.errors import Reason

Shortages = Mapping[TopicPartition, frozenset[int]]
"""Partitions that are short of replicas in sync, with the brokers whose replicas are missed."""

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
) -> Shortages:
    """Return the partitions of these topics that are in the state which pauses, in order, with what each lacks."""
    if when is PauseWhen.NEVER:
        return {}
    return {
        tp: lacking
        for name, topic in sorted(topics.items())
        for number, partition in sorted(topic.partitions.items())
        if (lacking := _lacking(when, topic, partition, reassignments.get(tp := TopicPartition(name, number))))
        is not None
    }


def _lacking(
    when: PauseWhen, topic: Topic, partition: Partition, in_flight: Reassignment | None
) -> frozenset[int] | None:
    """Return the brokers whose replicas are missed; None where a partition has as many as it needs."""
    replicas = frozenset(in_flight.original if in_flight else partition.replicas)
    if partition.leader is None:  # the last ones in sync stay so while they are down
        return replicas
    least = min(topic.min_insync_replicas, len(replicas))
    needed = len(replicas) if when is PauseWhen.UNDER_REPLICATED else least
    return replicas - partition.isr if len(partition.isr) < needed else None


def pause_problem(
    when: PauseWhen, short: Shortages, ours: Collection[TopicPartition], lost: Set[int] = frozenset()
) -> Problem | None:
    """Return why nothing new starts, or None when our own moves repair all that is short.

    What lacks nothing but replicas on `lost` brokers does not count.
    """
    others = [tp for tp, lacking in short.items() if not (tp in ours or (lost and lacking <= lost))]
    if not others:
        return None
    reason, what = REASONS[when]
    return Problem(
        reason,
        f"nothing new starts while partitions outside of our own moves have {what} or no leader: {len(others)} have (",
        Names(tuple(Name(str(tp), tp.topic) for tp in others), "of topics that this namespace may not move"),
        "); bring their brokers back, move them too, or set pauseWhen",
    )
