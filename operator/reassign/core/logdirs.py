"""Log directories that entries name (KIP-113): where the replicas are, and what to send so that they get there.

A replica that is there is copied to another directory of its broker: a future log, which replaces the main one when
it has caught up. For a replica that is not there yet the broker remembers the directory, in memory; should it forget,
the replica is copied once it is there. Sending the directory that a replica is in ends a copy to another one.

What is known of a broker can be older than what it was told last: nothing is told again, and nothing taken for done,
before it has answered since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reassign.api.partition_reassignment import RecordState
from reassign.core.model import AlterLogDirs, LogDir, Problem, Snapshot, TopicPartition
from reassign.core.progress import Bytes, leader_bytes, partition_bytes
from reassign.core.resource import Entry
from reassign.core.volumes import Answers


@dataclass(frozen=True, slots=True)
class Placement:
    """The directory that an entry names for a replica, and those that its log and its future log are in.

    `known` is whether the broker has said so.
    """

    broker: int
    path: str
    known: bool = False
    online: bool = True
    current: str | None = None
    future: str | None = None
    copied: int = 0

    @property
    def done(self) -> bool:
        return self.known and self.current == self.path and self.future is None

    @property
    def copies(self) -> bool:
        """Whether the replica is there, and has to be copied to the directory."""
        return self.current is not None and self.current != self.path

    @property
    def may_be_copied(self) -> bool:
        """Whether the replica is, or for all that is known may be, about to change its directory by a copy."""
        return not self.known or (self.current is not None and not self.done)

    @property
    def copied_elsewhere(self) -> bool:
        """Whether somebody else has the replica copied to another directory."""
        return self.future is not None and self.future != self.path

    def to_send(self, *, supersede: bool) -> bool:
        begins = self.current != self.path and self.future is None
        return self.online and self.current is not None and (begins or (supersede and self.copied_elsewhere))


def placements(tp: TopicPartition, named: Iterable[tuple[int, str]], snapshot: Snapshot) -> list[Placement]:
    """Of each replica for which a directory is named."""
    return [_placement(tp, broker, path, snapshot) for broker, path in named]


def _placement(tp: TopicPartition, broker: int, path: str, snapshot: Snapshot) -> Placement:
    directories = snapshot.log_dirs.get(broker)
    if directories is None:
        return Placement(broker, path)
    future = next((p for p, d in directories.items() if tp in d.futures), None)
    return Placement(
        broker,
        path,
        known=True,
        online=directories.get(path, LogDir(online=False)).online,
        current=next((p for p, d in directories.items() if tp in d.logs), None),
        future=future,
        copied=directories[future].futures[tp] if future == path and future else 0,
    )


class Directed(NamedTuple):
    """How far the replicas of a partition are on their way to the directories that are named.

    `log_dirs` is what the record says from now on: a directory that is named no longer stays in it until the copy to
    it has surely ended. `done` is whether nothing is left to do, as far as brokers have said since they were told;
    `refused` is why a broker that refused is not told now.
    """

    log_dirs: tuple[tuple[int, str], ...]
    tell: AlterLogDirs | None
    done: bool
    refused: Problem | None


@dataclass(frozen=True, slots=True)
class Director:
    """Sees replicas to directories. `shown` is whether a broker's show all that it was told about a partition.

    A copy to another directory than the one in the record is somebody else's: it is left alone, unless superseded.
    """

    snapshot: Snapshot
    answers: Answers
    shown: Callable[[TopicPartition, int], bool]
    supersede: bool
    refusal: Callable[[TopicPartition, tuple[tuple[int, str], ...]], Problem | None]

    def direct(
        self,
        tp: TopicPartition,
        log_dirs: tuple[tuple[int, str], ...],
        named: tuple[tuple[int, str], ...],
        holders: Iterable[int],
    ) -> Directed:
        """From the directories in the record to those that are named; `holders` are the brokers that keep a replica."""
        there = self.snapshot.brokers.keys() & set(holders)
        dropped = placements(tp, (item for item in log_dirs if item not in named), self.snapshot)
        ending = [p for p in dropped if p.broker in there and not self._has_ended(tp, p)]
        held_up = {p.broker for p in ending}
        wanted = [p for p in placements(tp, named, self.snapshot) if p.broker not in held_up]
        send = [(p.broker, p.current) for p in ending if p.current and self._is_ours(tp, p)]
        send += [(p.broker, p.path) for p in wanted if p.to_send(supersede=self.supersede)]
        refused = {item: problem for item in send if (problem := self.refusal(tp, (item,)))}
        send = sorted(item for item in send if item not in refused and self._may_tell(tp, item[0]))
        return Directed(
            log_dirs=tuple(sorted((p.broker, p.path) for p in (*ending, *wanted))),
            tell=AlterLogDirs(tp, tuple(send)) if send else None,
            done=not ending and all(p.done and self.shown(tp, p.broker) for p in wanted),
            refused=refused[min(refused)] if refused else None,
        )

    def _has_ended(self, tp: TopicPartition, place: Placement) -> bool:
        partition = self.snapshot.partition(tp)
        shown = place.current or (partition is not None and place.broker in partition.offline)
        return self.shown(tp, place.broker) and not self._is_ours(tp, place) and bool(shown)

    def _is_ours(self, tp: TopicPartition, place: Placement) -> bool:
        """Whether the copy under way is to where it was recorded; or to where it was to stay, told too late."""
        return place.future in (place.path, self.answers.last_told(tp, place.broker))

    def _may_tell(self, tp: TopicPartition, broker: int) -> bool:
        found = self.snapshot.brokers.get(broker)
        return found is not None and not found.fenced and self.answers.may_tell(tp, broker)


def bytes_to_copy(
    tp: TopicPartition,
    entry: Entry | None,
    target: Sequence[int],
    named: Iterable[tuple[int, str]],
    snapshot: Snapshot,
) -> Bytes | None:
    """Bytes that one partition's move copies, between brokers and between directories; None while not known."""
    between_brokers = partition_bytes(tp, entry, target, snapshot)
    if between_brokers is None or (entry and entry.state is RecordState.COMPLETED):
        return between_brokers
    whole = leader_bytes(tp, snapshot) or 0
    copies = [p for p in placements(tp, named, snapshot) if p.copies]
    copied = sum(min(p.copied, max(whole - 1, 0)) for p in copies)
    return Bytes(between_brokers.copied + copied, between_brokers.total + whole * len(copies))
