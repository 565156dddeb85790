"""What is observed of a Kafka cluster: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.forwarding import NOT_FORWARDED, Forwarded


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
    """Metadata of a partition: all its replicas (while one is reassigned, the adding ones too).

    `offline` replicas are on a broker that is down, or in a log directory that is offline.
    """

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int | None
    offline: frozenset[int] = frozenset()


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
    """A log directory of a broker: its volume's bytes (None: not known), and bytes by partition of those asked for.

    Directories on one volume repeat its numbers. `futures` are copies under way from another directory of the
    broker (KIP-113); they replace the main log when they have caught up. New replicas are not put into a cordoned
    directory by the broker itself (KIP-1066).
    """

    online: bool = True
    cordoned: bool = False
    total: int | None = None
    usable: int | None = None
    logs: Mapping[TopicPartition, int] = field(default_factory=dict)
    futures: Mapping[TopicPartition, int] = field(default_factory=dict)


Sizes = Mapping[TopicPartition, Mapping[int, int]]
LogDirs = Mapping[int, Mapping[str, LogDir]]
"""By broker and path, of the brokers that answered."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One observation of a cluster.

    `reassignments` is the truth of what is in flight; `topics` holds those asked for that exist, and can lag
    behind a write. `sizes` are bytes by partition and broker, of main logs, for the partitions asked for and those
    in flight; None when sizes were not asked for at this tick. `log_dirs` come with them. `forwarded` says
    which brokers listed what is in flight.
    """

    cluster_id: str
    guard: ReplicationFactorGuard
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    reassignments: Mapping[TopicPartition, Reassignment]
    unauthorized_topics: frozenset[str] = frozenset()
    sizes: Sizes | None = None
    log_dirs: LogDirs = field(default_factory=dict)
    forwarded: Forwarded = NOT_FORWARDED

    def partition(self, tp: TopicPartition) -> Partition | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions.get(tp.partition) if topic else None

    def lost(self, tp: TopicPartition, topic_id: str) -> bool:
        """Whether that topic, or its partition, is gone; what is listed in flight or hidden from us is not."""
        topic = self.topics.get(tp.topic)
        if topic and topic.id != topic_id:
            return True
        hidden = tp.topic in self.unauthorized_topics or tp in self.reassignments
        return not hidden and (topic is None or tp.partition not in topic.partitions)

    def leader(self, tp: TopicPartition) -> int | None:
        """The broker that leads a partition; None where there is none, or it is not known."""
        partition = self.partition(tp)
        return partition.leader if partition else None
