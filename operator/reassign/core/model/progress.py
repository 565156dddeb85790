"""Progress that can be trusted: bytes on the replicas being added, against the leader's.

DescribeLogDirs' offset lag is of no use for this. A replica's size can go back (retention, compaction), so the
total never does, and a replica counts as whole only once it is in sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reassign.core.model.record import Entry
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State

WINDOW_SECONDS = 60.0
MAX_SECONDS_LEFT = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Bytes that replicas being added hold, and will hold."""

    copied: int
    total: int


def leader_bytes(tp: TopicPartition, snapshot: Snapshot) -> int | None:
    """Return the bytes of a partition's leader, else of its largest replica; None while sizes are not known."""
    sizes, leader = (snapshot.sizes or {}).get(tp), snapshot.leader(tp)
    if not sizes:
        return None
    return sizes[leader] if leader is not None and leader in sizes else max(sizes.values())


def partition_bytes(
    tp: TopicPartition, entry: Entry | None, target: Sequence[int], snapshot: Snapshot
) -> CopyProgress | None:
    """Return the bytes that one partition's move copies; None while sizes are not known."""
    partition, whole = snapshot.partition(tp), leader_bytes(tp, snapshot)
    if whole is None or partition is None:
        return None
    sizes = (snapshot.sizes or {})[tp]
    if entry is None:
        return CopyProgress(0, whole * len(set(target) - set(partition.replicas)))
    total = whole * len(entry.added)
    if entry.state is State.COMPLETED:
        return CopyProgress(total, total)
    copied = (whole if b in partition.isr else min(sizes.get(b, 0), max(whole - 1, 0)) for b in entry.added)
    return CopyProgress(sum(copied), total)


def together(parts: Sequence[CopyProgress], reported: int) -> CopyProgress:
    """Return the sum of all parts.

    The bytes copied are never fewer than were reported before, and the bytes still to come stay as they are.
    """
    copied = sum(part.copied for part in parts)
    to_come = sum(part.total for part in parts) - copied
    return CopyProgress(max(copied, reported), max(copied, reported) + to_come)


def rate(samples: Sequence[tuple[float, int]]) -> int | None:
    """Return bytes per second over a window of (seconds, bytes copied); None until it is known."""
    if len(samples) < 2:
        return None
    (start, first), (end, last) = samples[0], samples[-1]
    if end - start < 1 or last <= first:
        return None
    return int((last - first) / (end - start))


def percent(copied: int, total: int, completed: int, partitions: int) -> int:
    """Return the percentage of bytes, or of partitions where there are none; 100 only when all are completed."""
    if completed == partitions:
        return 100
    share = copied / total if total else completed / partitions
    return min(int(share * 100), 99)


def completion_time(remaining: int, bytes_per_second: int | None, now: datetime) -> datetime | None:
    """Return when the remaining bytes are copied at this rate; None where that is too far off."""
    if not bytes_per_second or remaining / bytes_per_second > MAX_SECONDS_LEFT:
        return None
    return (now + timedelta(seconds=remaining / bytes_per_second)).replace(microsecond=0)


def duration(seconds: float) -> str:
    """Return a duration for people: `40 s`, `4 min`, `2.5 h`."""
    if seconds < 90:
        return f"{round(seconds)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
