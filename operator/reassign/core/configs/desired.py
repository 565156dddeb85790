"""What is to be throttled: which replicas, on which brokers, to what rate, and for which resource (KIP-73, KIP-113).

Between brokers, as the stock tool has it, the replicas that a partition has are throttled as leaders, those being added
as followers. Between the log directories of a broker all that is copied there is throttled; there are no lists.
Brokers have one rate of each kind for all: the least that any resource asks for whose replicas are being copied there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, get_args

from reassign.api.common import GREATEST_RATE, LEAST_RATE, bytes_per_second
from reassign.api.config_keys import FOLLOWER_REPLICAS, LEADER_REPLICAS, LISTS, LOG_DIR_RATE, RATES
from reassign.api.kafka_cluster import ThrottleUser
from reassign.api.limits import MAX_USERS
from reassign.api.partition_reassignment import Throttle
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.cordons import ALL_LOG_DIRS, CordonState, cordon_key
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.configs import ConfigKey, ConfigResource, ConfigResourceType, items
from reassign.core.model.log_dirs import placements
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, Record, active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class InterBrokerMove:
    """A partition whose replicas are, or are about to be, copied to other brokers."""

    kind: ClassVar = "inter_broker"
    configs: ClassVar = RATES
    tp: TopicPartition
    sources: frozenset[int]
    adding: frozenset[int]
    user: ThrottleUser | None = None
    """None: no resource holds the partition any more."""
    rate: int | None = None

    @property
    def brokers(self) -> frozenset[int]:
        return self.sources | self.adding

    def items(self) -> dict[ConfigKey, frozenset[str]]:
        """Return what the topic's lists have to contain."""
        resource, number = ConfigResource(ConfigResourceType.TOPIC, self.tp.topic), self.tp.partition
        return {
            ConfigKey(resource, config): frozenset(f"{number}:{broker}" for broker in brokers)
            for config, brokers in ((LEADER_REPLICAS, self.sources), (FOLLOWER_REPLICAS, self.adding))
        }


@dataclass(frozen=True, slots=True)
class LogDirMove:
    """A partition that is, or is about to be, copied from one log directory of these brokers to another."""

    kind: ClassVar = "log_dir"
    configs: ClassVar = (LOG_DIR_RATE,)
    tp: TopicPartition
    brokers: frozenset[int]
    user: ThrottleUser | None = None
    rate: int | None = None

    def items(self) -> dict[ConfigKey, frozenset[str]]:
        return {}


ThrottledMove = InterBrokerMove | LogDirMove
"""A move that needs one rate for all its `configs`; `Throttle` and the record have a field for each `kind`."""
KINDS = sorted(kind.kind for kind in get_args(ThrottledMove))


@dataclass(frozen=True, slots=True)
class WantedConfigs:
    """The configurations that throttle some partitions, and cordon some brokers."""

    rates: Mapping[str, int | None] = field(default_factory=dict)
    """The rate of each kind of move."""
    users: tuple[ThrottleUser, ...] = ()
    values: Mapping[ConfigKey, str] = field(default_factory=dict)
    """Configurations with a single value."""
    items: Mapping[ConfigKey, frozenset[str]] = field(default_factory=dict)
    """Items of configurations that are lists."""
    log_dir_moves: Mapping[int, frozenset[TopicPartition]] = field(default_factory=dict)
    """Partitions that are copied between the log directories of each broker."""
    left: frozenset[ConfigKey] = frozenset()
    """Configurations that are left as they are for now."""
    cordon_removals: Mapping[int, int] = field(default_factory=dict)
    """How often others removed the cordon of each broker."""


class Rates(NamedTuple):
    """Bytes per second; None is unbounded."""

    inter_broker: int | None
    log_dir: int | None


def rates_of(throttle: Throttle | None, rules: ConfigRules) -> Rates:
    """Return the rates that a resource asks for, or its KafkaCluster in its place, within the bounds."""
    own, default = throttle or Throttle(), rules.default
    least, most = rules.minimum or LEAST_RATE, rules.maximum or GREATEST_RATE

    def bounded(asked: int | str | None) -> int | None:
        return min(max(*map(bytes_per_second, (asked, least))), bytes_per_second(most)) if asked else None

    return Rates(bounded(own.inter_broker or default.inter_broker), bounded(own.log_dir or default.log_dir))


def bounded(resource: Resource, rules: ConfigRules) -> Resource:
    """Mark a resource as unsupported where it asks for a rate out of bounds: it cannot start anything."""
    problem = out_of_bounds(resource.spec.throttle, rules, "spec.throttle")
    return replace(resource, unsupported=problem) if problem and not resource.unsupported else resource


def out_of_bounds(throttle: Throttle | None, rules: ConfigRules, field: str) -> Problem | None:
    """Return why a throttle is refused, or None."""
    rates, least, most = throttle or Throttle(), rules.minimum, rules.maximum
    for name, asked in (("interBroker", rates.inter_broker), ("logDir", rates.log_dir)):
        if asked and most and bytes_per_second(asked) > bytes_per_second(most):
            return Problem(
                Reason.THROTTLE_ABOVE_MAXIMUM,
                f"{field}.{name}: {asked} is above limits.maxThrottle: {most} of the KafkaCluster; "
                "lower the one, or raise the other",
            )
        if asked and least and bytes_per_second(asked) < bytes_per_second(least):
            return Problem(
                Reason.THROTTLE_BELOW_MINIMUM,
                f"{field}.{name}: {asked} is below limits.minThrottle: {least} of the KafkaCluster; "
                "raise the one, or lower the other",
            )
    return None


def desired(verdicts: Sequence[Verdict], snapshot: Snapshot, rules: ConfigRules, recent: Recent) -> list[ThrottledMove]:
    """Return the moves to throttle: partitions in flight first, then partitions about to start, in their order."""
    moves: list[ThrottledMove] = []
    held: set[TopicPartition] = set()
    for verdict in verdicts:
        if not verdict.release:
            found = _permitted(verdict, rules)
            held |= found.keys()
            moves += _of_resource(verdict.resource, found, snapshot, rates_of(verdict.resource.spec.throttle, rules))
    moves.sort(key=lambda move: move.tp not in snapshot.reassignments)
    if rules.record is None:
        return moves
    left = _left_log_dir_moves(rules.record, held, snapshot, recent)
    return [*left_moves(rules.record, held, snapshot), *left, *moves]


def _permitted(verdict: Verdict, rules: ConfigRules) -> Record:
    """Return the active entries of the topics that the resource's namespace may move now."""
    found, namespace, permission = active(verdict.record), verdict.resource.namespace, rules.permission
    if permission is None:
        return found
    return {tp: entry for tp, entry in found.items() if permission.of_topic(namespace, tp.topic) is None}


def _of_resource(resource: Resource, record: Record, snapshot: Snapshot, rates: Rates) -> Iterator[ThrottledMove]:
    user = ThrottleUser(namespace=resource.namespace, name=resource.name, uid=resource.uid)
    for tp, entry in record.items():
        if snapshot.lost(tp, entry.topic_id):
            continue
        sources, adding = _copied(tp, entry, snapshot)
        if rates.inter_broker is not None and adding:
            yield InterBrokerMove(tp, sources, adding, user, rates.inter_broker)
        between_dirs = frozenset(p.broker for p in placements(tp, entry.log_dirs, snapshot) if p.may_be_copied)
        if rates.log_dir is not None and between_dirs:
            yield LogDirMove(tp, between_dirs, user, rates.log_dir)


def _copied(tp: TopicPartition, entry: Entry, snapshot: Snapshot) -> tuple[frozenset[int], frozenset[int]]:
    in_flight = snapshot.reassignments.get(tp)
    if in_flight and entry.state is not State.SUPERSEDING:
        return frozenset(in_flight.original), frozenset(in_flight.adding)
    return frozenset(entry.original), entry.added


def left_moves(record: RecordedConfigs, held: Set[TopicPartition], snapshot: Snapshot) -> list[InterBrokerMove]:
    """Return moves in flight that we throttled and no resource holds any more: they stay throttled until they end."""
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
            left.append(InterBrokerMove(tp, frozenset(sources), frozenset(adding)))
    return left


def _left_log_dir_moves(
    record: RecordedConfigs, held: set[TopicPartition], snapshot: Snapshot, recent: Recent
) -> list[LogDirMove]:
    """Return copies between log directories that we throttled and no resource holds any more.

    A broker that has not reported its copies may still be making them. So may one that was asked only for others.
    """
    left: dict[TopicPartition, set[int]] = defaultdict(set)
    for broker, tps in log_dir_moves_of(record).items():
        directories = snapshot.log_dirs.get(broker, {}).values()
        for tp in tps - held:
            partition = snapshot.partition(tp)
            if partition is None or broker not in partition.replicas:
                continue
            copied = any(tp in directory.futures for directory in directories)
            told = not all(d.online for d in directories) or any(tp in d.logs for d in directories)
            if copied or not told or not recent.shown(tp, broker):
                left[tp].add(broker)
    return [LogDirMove(tp, frozenset(brokers)) for tp, brokers in left.items()]


def log_dir_moves_of(record: RecordedConfigs | None) -> dict[int, frozenset[TopicPartition]]:
    """Return the partitions that a record says are copied between log directories, by broker."""
    return {
        b.broker: frozenset(TopicPartition(c.topic, number) for c in b.copying for number in c.partitions)
        for b in (record.brokers if record else ())
    }


def rate_keys(move: ThrottledMove) -> list[ConfigKey]:
    """Return the rate configurations of a move on each of its brokers."""
    brokers = (ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in move.brokers)
    return [ConfigKey(broker, config) for broker in brokers for config in move.configs]


def wanted_configs(
    moves: Iterable[ThrottledMove], record: RecordedConfigs | None, cordons: Mapping[int, CordonState] | None = None
) -> WantedConfigs:
    """Return one rate of each kind for all moves, and the cordons of brokers.

    Moves that no resource holds any more keep the rate set last.
    """
    cordons = cordons or {}
    moves = list(moves)
    rates = {kind: _least(moves, kind, getattr(record, kind) if record else None) for kind in KINDS}
    values: dict[ConfigKey, str] = {}
    listed: dict[ConfigKey, set[str]] = defaultdict(set)
    log_dir_moves: dict[int, set[TopicPartition]] = defaultdict(set)
    users: dict[str, ThrottleUser] = {}
    for move in (move for move in moves if rates[move.kind] is not None):
        values |= dict.fromkeys(rate_keys(move), str(rates[move.kind]))
        if isinstance(move, LogDirMove):
            for broker in move.brokers:
                log_dir_moves[broker].add(move.tp)
        for key, those in move.items().items():
            listed[key] |= those
        if move.user:
            users[move.user.uid] = move.user
    values |= {cordon_key(broker): ALL_LOG_DIRS for broker, cordon in cordons.items() if cordon.held}
    return WantedConfigs(
        rates=rates,
        users=tuple(users[uid] for uid in sorted(users))[:MAX_USERS],
        values=values,
        items={key: frozenset(those) for key, those in listed.items()},
        log_dir_moves={broker: frozenset(tps) for broker, tps in log_dir_moves.items()},
        left=frozenset(cordon_key(broker) for broker, cordon in cordons.items() if cordon.left),
        cordon_removals={broker: cordon.removals for broker, cordon in cordons.items() if cordon.removals},
    )


def _least(moves: Iterable[ThrottledMove], kind: str, last: int | None) -> int | None:
    """Return the least rate that is asked for moves of a kind; where none is asked any more, the rate set last."""
    rates = [move.rate for move in moves if move.kind == kind]
    return min((rate for rate in rates if rate is not None), default=last) if rates else None
