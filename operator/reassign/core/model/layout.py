"""Where the replicas of all topics are: little enough to look at the whole cluster now and then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from reassign.core.model.snapshot import Broker, LogDirs, Reassignment, Snapshot, TopicPartition
from reassign.planning.unseen import Unseen, UnseenLogs


@dataclass(frozen=True, slots=True)
class Layout:
    """One Metadata request of all topics that the Kafka user may describe, and the logs of some brokers."""

    brokers: Mapping[int, Broker]
    """The registered ones."""
    replicas: Mapping[int, Mapping[str, int]]
    """The number of replicas of each broker by topic; those that are being added or removed are among them."""
    factors: Mapping[str, Mapping[int, int]]
    """By topic, how many partitions have how many replicas; of a partition in flight the target's."""
    log_dirs: LogDirs = field(default_factory=dict)
    """Of the brokers that were asked and answered. They show logs of topics that may not be described, too."""
    cordoned: Mapping[int, bool | None] = field(default_factory=dict)
    """Whether brokers are cordoned, of those that were asked and answered; None where their version does not say."""
    unread: frozenset[str] = frozenset()
    """Topics that are there, and could not be read, or not their configurations."""
    lists_fenced: bool = False
    """Whether fenced brokers are among `brokers` (Kafka 4.0), so that one that is missing is not registered."""
    cluster_id: str = ""

    @property
    def ids(self) -> frozenset[int]:
        """The brokers that are registered, or have replicas."""
        return frozenset(self.brokers) | frozenset(self.replicas)

    def unseen(self, asked: Set[int]) -> Unseen:
        """Return what metadata does not show, with the silent ones of the brokers that were `asked` for their logs.

        One that is missing is down, unless fenced brokers are listed: then it is not registered, and has nothing.
        """
        there = asked & self.brokers.keys() if self.lists_fenced else asked
        logs = unseen_logs(self.log_dirs, lambda tp: tp.topic in self.factors)
        return Unseen(logs, self.unread, frozenset(there) - showing(self.log_dirs))


def layout_of(
    brokers: Mapping[int, Broker],
    partitions: Iterable[tuple[TopicPartition, Sequence[int]]],
    reassignments: Mapping[TopicPartition, Reassignment],
) -> Layout:
    """Return the layout of these partitions with their replicas; nothing is known of logs."""
    replicas: dict[int, Counter[str]] = defaultdict(Counter)
    factors: dict[str, Counter[int]] = defaultdict(Counter)
    for tp, row in partitions:
        for broker in row:
            replicas[broker][tp.topic] += 1
        factors[tp.topic][len(reassignments[tp].final if tp in reassignments else row)] += 1
    return Layout(brokers, replicas, factors)


def layout_seen(snapshot: Snapshot) -> Layout:
    """Return the layout of a snapshot of everything."""
    partitions = (
        (TopicPartition(name, number), partition.replicas)
        for name, topic in snapshot.topics.items()
        for number, partition in topic.partitions.items()
    )
    found = layout_of(snapshot.brokers, partitions, snapshot.reassignments)
    return replace(
        found,
        log_dirs=snapshot.log_dirs,
        unread=frozenset(snapshot.unread_topics),
        lists_fenced=snapshot.lists_fenced,
        cluster_id=snapshot.cluster_id,
    )


def showing(log_dirs: LogDirs) -> frozenset[int]:
    """Return the brokers whose logs are all known. What lies in an offline log directory no broker reports."""
    return frozenset(broker for broker, found in log_dirs.items() if all(d.online for d in found.values()))


def unseen_logs(log_dirs: LogDirs, is_seen: Callable[[TopicPartition], bool]) -> tuple[UnseenLogs, ...]:
    """Return the logs, sorted, of partitions that metadata does not show."""
    logs: dict[tuple[int, str], list[int]] = {}
    for broker, directories in log_dirs.items():
        for directory in directories.values():
            for tp, size in directory.logs.items():
                if not is_seen(tp):
                    logs.setdefault((broker, tp.topic), []).append(size)
    return tuple(UnseenLogs(*where, len(sizes), sum(sizes)) for where, sizes in sorted(logs.items()))
