"""What is to be throttled: which replicas, on which brokers, to what rate, and for whom (KIP-73).

As the stock tool has it, the replicas that a partition has are throttled as leaders, those being added as followers.
Brokers have one rate for all: the least that any resource asks for whose replicas are being copied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reassign.api.common import bytes_per_second
from reassign.api.kafka_cluster import KafkaClusterSpec, ThrottleStatus, ThrottleUser
from reassign.core.changes import Kind, Place, Spot, items
from reassign.core.model import Problem, Snapshot, TopicPartition
from reassign.core.resource import Entry, Resource
from reassign.core.verdict import Verdict
from reassign.errors import Reason

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES = (LEADER_RATE, FOLLOWER_RATE)
LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
MAX_USERS = 1000


@dataclass(frozen=True, slots=True)
class Copying:
    """A partition whose replicas are, or are about to be, copied; without a user, no resource holds it any more."""

    tp: TopicPartition
    sources: frozenset[int]
    adding: frozenset[int]
    user: ThrottleUser | None = None
    rate: int | None = None

    @property
    def brokers(self) -> frozenset[int]:
        return self.sources | self.adding

    def items(self) -> dict[Spot, frozenset[str]]:
        """What the topic's lists have to have."""
        place, number = Place(Kind.TOPIC, self.tp.topic), self.tp.partition
        return {
            Spot(place, config): frozenset(f"{number}:{broker}" for broker in brokers)
            for config, brokers in ((LEADER_REPLICAS, self.sources), (FOLLOWER_REPLICAS, self.adding))
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """The configurations that throttle some partitions: single values, and items of lists."""

    rate: int | None = None
    users: tuple[ThrottleUser, ...] = ()
    values: Mapping[Spot, str] = field(default_factory=dict)
    items: Mapping[Spot, frozenset[str]] = field(default_factory=dict)


def rate_of(resource: Resource, cluster: KafkaClusterSpec) -> int | None:
    """What a resource asks for, or its KafkaCluster for it; never more than the maximum."""
    own, default = resource.spec.throttle, cluster.throttle
    asked = (own and own.inter_broker) or (default and default.inter_broker)
    if not asked:
        return None
    maximum = cluster.limits.max_throttle
    return min(map(bytes_per_second, (asked, maximum) if maximum else (asked,)))


def bounded(resource: Resource, cluster: KafkaClusterSpec) -> Resource:
    """A resource that asks for more than the maximum cannot start anything."""
    throttle, maximum = resource.spec.throttle, cluster.limits.max_throttle
    asked = throttle and throttle.inter_broker
    if resource.unsupported or not asked or not maximum or bytes_per_second(asked) <= bytes_per_second(maximum):
        return resource
    message = (
        f"spec.throttle.interBroker: {asked} is above limits.maxThrottle: {maximum} of the KafkaCluster; "
        "lower the one, or raise the other"
    )
    return replace(resource, unsupported=Problem(Reason.THROTTLE_ABOVE_MAXIMUM, message))


def copying(
    verdicts: Sequence[Verdict], snapshot: Snapshot, cluster: KafkaClusterSpec, record: ThrottleStatus | None
) -> list[Copying]:
    """The partitions to throttle: those in flight first, then those about to start, in their order."""
    found: list[Copying] = []
    held: set[TopicPartition] = set()
    for verdict in verdicts:
        if verdict.release:
            continue
        rate = rate_of(verdict.resource, cluster)
        resource = verdict.resource
        user = ThrottleUser(namespace=resource.namespace, name=resource.name, uid=resource.uid)
        for tp, entry in verdict.record.items():
            if entry.active:
                held.add(tp)
                sources, adding = _copied(tp, entry, snapshot)
                if rate is not None and adding:
                    found.append(Copying(tp, sources, adding, user, rate))
    found.sort(key=lambda c: c.tp not in snapshot.reassignments)
    return _left(record, held, snapshot) + found if record else found


def _copied(tp: TopicPartition, entry: Entry, snapshot: Snapshot) -> tuple[frozenset[int], frozenset[int]]:
    if in_flight := snapshot.reassignments.get(tp):
        return frozenset(in_flight.original), frozenset(in_flight.adding)
    return frozenset(entry.original), entry.added


def _left(record: ThrottleStatus, held: set[TopicPartition], snapshot: Snapshot) -> list[Copying]:
    """Moves in flight that we throttled and no resource holds any more: the throttle stays until they end."""
    ours: dict[TopicPartition, dict[str, set[int]]] = defaultdict(lambda: {config: set() for config in LISTS})
    for topic in record.topics:
        for config in topic.configs:
            for item in items(config.value):
                number, _, broker = item.partition(":")
                ours[TopicPartition(topic.topic, int(number))][config.name].add(int(broker))
    left = []
    for tp, lists in ours.items():
        in_flight = snapshot.reassignments.get(tp)
        if in_flight and tp not in held and (adding := lists[FOLLOWER_REPLICAS] & set(in_flight.adding)):
            sources = lists[LEADER_REPLICAS] & set(in_flight.original)
            left.append(Copying(tp, frozenset(sources), frozenset(adding)))
    return left


def wanted(moves: Iterable[Copying], record: ThrottleStatus | None) -> Wanted:
    """One rate for all; moves that no resource holds any more keep the one that was set last."""
    listed: dict[Spot, frozenset[str]] = {}
    brokers: set[int] = set()
    users: dict[str, ThrottleUser] = {}
    rates: list[int] = []
    for move in moves:
        brokers |= move.brokers
        for spot, those in move.items().items():
            listed[spot] = listed.get(spot, frozenset()) | those
        if move.user and move.rate is not None:
            users[move.user.uid] = move.user
            rates.append(move.rate)
    rate = min(rates) if rates else record.inter_broker if record and brokers else None
    if rate is None:
        return Wanted()
    values = {Spot(Place(Kind.BROKER, str(b)), config): str(rate) for b in brokers for config in RATES}
    return Wanted(rate, tuple(users[uid] for uid in sorted(users))[:MAX_USERS], values, listed)
