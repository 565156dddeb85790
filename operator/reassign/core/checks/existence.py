"""Whether a partition exists, and may be described."""

from __future__ import annotations

from reassign.core.checks.input import Input
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.errors import Reason


def existence(i: Input) -> Problem | None:
    return missing(i.tp, i.snapshot)


def missing(tp: TopicPartition, snapshot: Snapshot) -> Problem | None:
    """Return why nothing is known of a partition, or None when it is there."""
    if unread := snapshot.unread_topics.get(tp.topic):
        return unread
    if tp.topic not in snapshot.topics:
        return Problem(
            Reason.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {tp.topic}; create it, or remove the entry"
        )
    partitions = snapshot.topics[tp.topic].partitions
    if tp.partition not in partitions:
        return Problem(
            Reason.UNKNOWN_TOPIC_OR_PARTITION,
            f"the topic {tp.topic} has no partition {tp.partition}, only 0 to {max(partitions, default=-1)}; "
            "correct the entry",
        )
    return None
