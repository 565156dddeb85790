"""The record of what was done about the partitions of a PartitionReassignment.

The record is the only memory that outlives the process. An entry is written before the alter that needs it, so that a
later process knows what to follow, what to undo, and to which order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reassign.api.limits import MAX_PART_PARTITIONS
from reassign.api.partition_reassignment import (
    ANY_LOG_DIR,
    RecordPartition,
    RecordState,
    RecordTopic,
    named_log_dirs,
)
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import ACTIVE, MAY_LAND, State
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Entry:
    """What was done about one partition, of the topic with that id."""

    topic_id: str
    original: tuple[int, ...]
    """The replicas before the first alter, in order."""
    target: tuple[int, ...]
    """The replicas that were submitted, the preferred leader first."""
    state: State
    problem: Problem | None = None
    log_dirs: tuple[tuple[int, str], ...] = ()
    """The directories that were named, as broker and path."""
    via: int | None = None
    """The broker that the last alter or cancel went to; it is not known whether that was answered."""
    sent_at: datetime | None = None
    """When that was."""
    began: datetime | None = None
    """When the alter was sent that began this move."""
    ended: datetime | None = None
    """When the partition was settled."""
    waited_for: str | None = None
    """The reason of its last wait before that alter."""

    @property
    def active(self) -> bool:
        """Whether anything of it is, or may be, in flight."""
        return self.state in ACTIVE

    @property
    def added(self) -> frozenset[int]:
        """The brokers that get a replica by this move."""
        return frozenset(self.target) - frozenset(self.original)

    @property
    def may_land(self) -> bool:
        """Whether a request for it may be under way, though nothing of it is listed in flight."""
        return self.state in MAY_LAND

    @property
    def moves_nothing(self) -> bool:
        """Whether Kafka has nothing to move: neither to other replicas, nor to another order or directory."""
        return self.original == self.target and not self.log_dirs and not self.problem

    def to(self, state: State, problem: Problem | None = None) -> Entry:
        """Return the entry in this state."""
        entry = replace(self, state=state, problem=problem)
        return entry if entry.active else replace(entry, via=None, sent_at=None)


Record = Mapping[TopicPartition, Entry]


def active(record: Record) -> Record:
    """Return the entries of which something is, or may be, in flight."""
    return {tp: entry for tp, entry in record.items() if entry.active}


RECORDED_PROBLEMS = {
    Reason.CANCELLED_EXTERNALLY: "another client cancelled or changed this move; edit the entry to move it again",
    Reason.ORDER_UNKNOWN: "only the brokers know which replicas it started from, and not in which order",
    Reason.ELECTION_FAILED: "the first replica did not become leader; elect preferred leaders by hand",
    Reason.INVALID_REPLICA_ASSIGNMENT: "the brokers refused to restore the order of the original replicas",
    Reason.IN_FLIGHT_ELSEWHERE: "another client was moving it and whenInFlight is Fail; change that, or the entry",
    Reason.DEADLINE_EXCEEDED: "deadlineSeconds expired before its move began; raise it to move the partition",
    Reason.SUPERSEDING: "another client's move is cancelled first; its own begins when that is confirmed",
}
"""What a record can say besides its state. Only the reason is stored; the sentence is the same for all."""


def recorded_problem(reason: Reason) -> Problem:
    """Return a problem that a record keeps."""
    return Problem(reason, RECORDED_PROBLEMS[reason])


def _known_problem(reason: str | None) -> Problem | None:
    if reason is None or reason not in RECORDED_PROBLEMS:
        return None
    return recorded_problem(Reason(reason))


def read_record(topics: Iterable[RecordTopic]) -> dict[TopicPartition, Entry]:
    """Read a record, or a part of one, from its shape on the wire.

    Superseding was once written as Cancelling with that reason, and Settling as InFlight with nothing to move.
    """
    return {
        TopicPartition(topic.topic, p.partition): _entry(topic.topic_id, p)
        for topic in topics
        for p in topic.partitions
    }


def _entry(topic_id: str, p: RecordPartition) -> Entry:
    entry = Entry(
        topic_id=topic_id,
        original=tuple(p.original_replicas),
        target=tuple(p.target_replicas),
        state=State(p.state),
        problem=_known_problem(p.reason),
        log_dirs=named_log_dirs(p.target_replicas, p.log_dirs),
        via=p.via,
        sent_at=p.sent_at,
        began=p.start_time,
        ended=p.completion_time,
        waited_for=p.waited_for,
    )
    if entry.state is State.CANCELLING and entry.problem and entry.problem.reason is Reason.SUPERSEDING:
        return replace(entry, state=State.SUPERSEDING)
    if entry.state is State.IN_FLIGHT and entry.moves_nothing:
        return replace(entry, state=State.SETTLING)
    return entry


def _log_dirs(entry: Entry) -> tuple[str, ...] | None:
    named = dict(entry.log_dirs)
    return tuple(named.get(broker, ANY_LOG_DIR) for broker in entry.target) if named else None


def write_record(record: Record) -> tuple[RecordTopic, ...]:
    """Write a record, or a part of one, in its shape on the wire, ordered, so that equal records are equal bytes."""
    topics: dict[tuple[str, str], list[RecordPartition]] = {}
    for tp, entry in sorted(record.items()):
        topics.setdefault((tp.topic, entry.topic_id), []).append(
            RecordPartition(
                partition=tp.partition,
                original_replicas=entry.original,
                target_replicas=entry.target,
                state=RecordState(entry.state),
                reason=entry.problem.reason if entry.problem else None,
                log_dirs=_log_dirs(entry),
                via=entry.via,
                sent_at=entry.sent_at,
                start_time=entry.began,
                completion_time=entry.ended,
                waited_for=entry.waited_for,
            )
        )
    return tuple(
        RecordTopic(topic=topic, topic_id=topic_id, partitions=tuple(partitions))
        for (topic, topic_id), partitions in topics.items()
    )


def spread(record: Record, parts: Mapping[int, Record]) -> dict[int, Record]:
    """Return the parts of a record from now on, by number, each of at most MAX_PART_PARTITIONS.

    An entry stays in its part, so that a change writes as few parts as it can. A new entry goes to the first part with
    room, in the order of the first alter. A part that others removed is there again, and no part goes away.
    """
    known = {tp: number for number, part in parts.items() for tp in part}
    found: dict[int, dict[TopicPartition, Entry]] = {n: {} for n in range(max(parts, default=-1) + 1)}
    new = []
    for tp, entry in record.items():
        if (number := known.get(tp)) is None:
            new.append((tp, entry))
        else:
            found[number][tp] = entry
    number = 0
    for tp, entry in new:
        while len(found.setdefault(number, {})) >= MAX_PART_PARTITIONS:
            number += 1
        found[number][tp] = entry
    return dict(found)
