"""The observation of a Kafka cluster: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.forwarding import NOT_FORWARDED, Forwarded
from reassign.core.model.problem import Problem


class TopicPartition(NamedTuple):
    """A partition by topic name and number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker; fenced ones take no part (they are down, or still starting)."""

    id: int
    rack: str | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """Metadata of a partition: all its replicas (while one is reassigned, the adding ones too)."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int | None
    offline: frozenset[int] = frozenset()
    """Replicas on a broker that is down, or in a log directory that is offline."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Metadata of a topic. The id differs from that of a topic made later under the same name."""

    id: str
    min_insync_replicas: int
    partitions: Mapping[int, Partition]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in flight, as ListPartitionReassignments has it (KIP-455)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> frozenset[int]:
        """The replicas that remain when it is complete."""
        return frozenset(self.final)

    @property
    def original(self) -> tuple[int, ...]:
        """The replicas that it started from; their first order is not known."""
        return tuple(r for r in self.replicas if r not in self.adding)

    @property
    def final(self) -> tuple[int, ...]:
        """The target in the order that was asked for: the controller lists it before what is being removed."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def hangs(self) -> bool:
        """Whether an override left it so that it never ends (Kafka 4.3 and later); a cancel frees it."""
        return not set(self.adding).isdisjoint(self.removing)


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory of a broker: bytes of its volume (None: not known), and of the partitions that were asked for.

    Directories on one volume repeat its numbers.
    """

    online: bool = True
    cordoned: bool | None = False
    """The broker itself puts no new replicas into a cordoned directory (KIP-1066). None: its version does not say."""
    total: int | None = None
    usable: int | None = None
    logs: Mapping[TopicPartition, int] = field(default_factory=dict)
    futures: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Copies under way from another directory of the broker (KIP-113), which replace the main log once they have caught
    up."""


def cordoned(directories: Mapping[str, LogDir]) -> bool | None:
    """Whether all directories of a broker that are online are cordoned; None where its version does not say."""
    there = [directory.cordoned for directory in directories.values() if directory.online]
    return None if not there or None in there else all(there)


def live_brokers(brokers: Mapping[int, Broker]) -> frozenset[int]:
    """Return the brokers that are registered and not fenced: only their configurations can be changed now."""
    return frozenset(broker.id for broker in brokers.values() if not broker.fenced)


Sizes = Mapping[TopicPartition, Mapping[int, int]]
LogDirs = Mapping[int, Mapping[str, LogDir]]
"""By broker and path, of the brokers that answered."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One observation of a cluster."""

    cluster_id: str
    guard: ReplicationFactorGuard
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    """Topics that were asked for and exist; they can lag behind a write."""
    reassignments: Mapping[TopicPartition, Reassignment]
    """The truth of what is in flight."""
    unread_topics: Mapping[str, Problem] = field(default_factory=dict)
    """Why topics that were asked for, or that exist, could not be read: nothing is known of them."""
    sizes: Sizes | None = None
    """Bytes of main logs by partition and broker, of the partitions asked for and those in flight; None when not asked
    for."""
    log_dirs: LogDirs = field(default_factory=dict)
    """Log directories, where sizes were asked for."""
    unread_log_dirs: Mapping[int, Problem] = field(default_factory=dict)
    """Why brokers' log directories could not be read when they were asked for last."""
    forwarded: Forwarded = NOT_FORWARDED
    """Which brokers listed the reassignments in flight."""
    lists_fenced: bool = False
    """Whether fenced brokers are among `brokers` (Kafka 4.0), so that one that is missing is not registered."""

    def partition(self, tp: TopicPartition) -> Partition | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic else None

    def lost(self, tp: TopicPartition, topic_id: str) -> bool:
        """Whether the topic with this id, or its partition, is gone; what is in flight or hidden from us is not."""
        topic = self.topics.get(tp.topic)
        if topic and topic.id != topic_id:
            return True
        hidden = tp.topic in self.unread_topics or tp in self.reassignments
        return not hidden and (topic is None or tp.partition not in topic.partitions)

    def leader(self, tp: TopicPartition) -> int | None:
        """Return the broker that leads a partition; None where there is none, or it is not known."""
        partition = self.partition(tp)
        return partition.leader if partition else None
