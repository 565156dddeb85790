"""Whether the cluster is still as the next wave of a plan expects it, and whether the wave's destinations are up.

Of a plan that automation made, partitions that are not there any more count as done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from reassign.api.partition_reassignment import PartitionEntry
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.plans.model import IsSettled
from reassign.text import named_brokers

MAX_DIFFERENCES = 5


def differences(
    wave: Resource, snapshot: Snapshot, is_settled: IsSettled, gone: Collection[TopicPartition] = ()
) -> list[str]:
    """Say how the cluster differs from what a wave expects, the first few differences.

    Partitions that the wave has begun to move do not count, nor those of which metadata may show the past, nor those
    that are `gone`.
    """
    return [*islice(_differences(wave, snapshot, is_settled, gone), MAX_DIFFERENCES)]


def gone(wave: Resource, snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Return the partitions that a wave has not completed and that are not there any more.

    A topic that cannot be read may be there; the brokers say so where it is asked for by name. The snapshot has to have
    the topics of the wave.
    """
    return frozenset(tp for tp in wave.asked if not _completed(wave, tp) and _is_gone(wave, tp, snapshot))


def nothing_else_left(wave: Resource, gone: Collection[TopicPartition]) -> bool:
    """Whether a wave has completed all partitions but those that are gone."""
    return all(tp in gone or _completed(wave, tp) for tp in wave.asked)


def _completed(wave: Resource, tp: TopicPartition) -> bool:
    return tp in wave.record and wave.record[tp].state is State.COMPLETED


def _is_gone(wave: Resource, tp: TopicPartition, snapshot: Snapshot) -> bool:
    entry, topic = wave.record.get(tp), snapshot.topics.get(tp.topic)
    return snapshot.lost(tp, entry.topic_id if entry else topic.id if topic else "")


def unsettled(wave: Resource, snapshot: Snapshot, is_settled: IsSettled) -> list[TopicPartition]:
    """Return the partitions, sorted, that the wave has not begun to move and of which metadata may show the past."""
    return sorted(tp for tp, _ in _left(wave) if not _known(tp, snapshot, is_settled))


def fenced_destinations(wave: Resource, snapshot: Snapshot) -> list[int]:
    """Return the fenced brokers, ascending, that get replicas which the wave has not begun to move."""
    fenced = {broker.id for broker in snapshot.brokers.values() if broker.fenced}
    return sorted(fenced & _destinations(entry for _, entry in _left(wave)))


def _destinations(entries: Iterable[PartitionEntry]) -> set[int]:
    return {broker for entry in entries for broker in set(entry.replicas) - set(entry.expected_replicas or ())}


def _differences(
    wave: Resource, snapshot: Snapshot, is_settled: IsSettled, gone: Collection[TopicPartition]
) -> Iterator[str]:
    left = [(tp, entry) for tp, entry in _left(wave) if tp not in gone and _known(tp, snapshot, is_settled)]
    for topic in sorted({tp.topic for tp, _ in left} - snapshot.topics.keys()):
        yield f"the topic {topic} is not there, or the operator may not see it"
    for broker in sorted(_destinations(entry for _, entry in left) - snapshot.brokers.keys()):
        yield f"broker {broker} is not registered"
    for tp, entry in sorted(left):
        if tp.topic in snapshot.topics and (differs := _moved(tp, entry, snapshot)):
            yield differs


def _left(wave: Resource) -> Iterator[tuple[TopicPartition, PartitionEntry]]:
    return ((tp, entry) for tp, entry in wave.asked.items() if tp not in wave.record)


def _known(tp: TopicPartition, snapshot: Snapshot, is_settled: IsSettled) -> bool:
    return tp in snapshot.reassignments or is_settled(tp)


def _moved(tp: TopicPartition, entry: PartitionEntry, snapshot: Snapshot) -> str | None:
    """Say where a partition is instead of where its entry expects it.

    A partition in flight counts as where it came from: `whenInFlight` says what becomes of its move.
    """
    partition, move = snapshot.partition(tp), snapshot.reassignments.get(tp)
    if partition is None:
        return f"{tp} is not there"
    now = move.original if move else partition.replicas
    if entry.expected_replicas is None or set(now) == set(entry.expected_replicas) or now == entry.replicas:
        return None
    return f"{tp} is on {named_brokers(now)}, not on {named_brokers(entry.expected_replicas)}"
