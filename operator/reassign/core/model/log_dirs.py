"""Log directories that entries name (KIP-113): where the replicas are, and what to send so that they get there.

A replica that is there is copied to another directory of its broker: a future log, which replaces the main one when it
has caught up. For a replica that is not there yet the broker remembers the directory, in memory; should it forget, the
replica is copied once it is there. Sending the directory that a replica is in ends a copy to another one.

A broker's report can be older than what it was told last. Until it has reported since, it is told nothing again, and
nothing counts as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reassign.core.model.progress import CopyProgress, leader_bytes, partition_bytes
from reassign.core.model.record import Entry
from reassign.core.model.snapshot import LogDir, Snapshot, TopicPartition
from reassign.core.model.states import State


@dataclass(frozen=True, slots=True)
class LogDirPlacement:
    """The directory that an entry names for a replica, and the directories of its log and its future log."""

    broker: int
    path: str
    known: bool = False
    """Whether the broker has reported these directories."""
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
        """Whether another client has the replica copied to another directory."""
        return self.future is not None and self.future != self.path

    def to_send(self, *, supersede: bool) -> bool:
        begins = self.current != self.path and self.future is None
        return self.online and self.current is not None and (begins or (supersede and self.copied_elsewhere))


def placements(tp: TopicPartition, named: Iterable[tuple[int, str]], snapshot: Snapshot) -> list[LogDirPlacement]:
    """Return the placement of each replica for which a directory is named."""
    return [_placement(tp, broker, path, snapshot) for broker, path in named]


def _placement(tp: TopicPartition, broker: int, path: str, snapshot: Snapshot) -> LogDirPlacement:
    directories = snapshot.log_dirs.get(broker)
    if directories is None:
        return LogDirPlacement(broker, path)
    future = next((p for p, d in directories.items() if tp in d.futures), None)
    return LogDirPlacement(
        broker,
        path,
        known=True,
        online=directories.get(path, LogDir(online=False)).online,
        current=next((p for p, d in directories.items() if tp in d.logs), None),
        future=future,
        copied=directories[future].futures[tp] if future == path and future else 0,
    )


def bytes_to_copy(
    tp: TopicPartition,
    entry: Entry | None,
    target: Sequence[int],
    named: Iterable[tuple[int, str]],
    snapshot: Snapshot,
) -> CopyProgress | None:
    """Return the bytes that a partition's move copies, between brokers and between directories; None while unknown."""
    between_brokers = partition_bytes(tp, entry, target, snapshot)
    if between_brokers is None or (entry and entry.state is State.COMPLETED):
        return between_brokers
    whole = leader_bytes(tp, snapshot) or 0
    copies = [p for p in placements(tp, named, snapshot) if p.copies]
    copied = sum(min(p.copied, max(whole - 1, 0)) for p in copies)
    return CopyProgress(between_brokers.copied + copied, between_brokers.total + whole * len(copies))
