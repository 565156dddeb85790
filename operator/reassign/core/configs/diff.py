"""Diff: from what is recorded, wanted and observed to the record from now on, and the changes to make.

Everything is judged anew at each tick. What is wanted and not observed is set, again if need be; what is recorded and
no longer wanted is restored; it leaves the record once a read that cannot be stale shows it restored. The record is
written before the changes are made, so it may name more than was ever set, never less.

Of a list only our own items are added and removed. A value belongs to all clients: what was there before is
restored, and only where ours is still there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from reassign.api.config_keys import CORDONED_LOG_DIRS, LOG_DIR_RATE
from reassign.api.limits import (
    MAX_CONFIG_CHARACTERS,
    MAX_THROTTLE_RECORD_BYTES,
    MAX_THROTTLED_BROKERS,
    MAX_THROTTLED_TOPICS,
)
from reassign.api.reassignment_record import (
    BrokerConfigs,
    CopiedTopic,
    RecordedConfig,
    RecordedConfigs,
    TopicConfigs,
)
from reassign.core.configs.cordons import CordonState
from reassign.core.configs.desired import (
    KINDS,
    LogDirMove,
    ThrottledMove,
    WantedConfigs,
    log_dir_moves_of,
    wanted_configs,
)
from reassign.core.configs.drift import drift_problem, longest_wait
from reassign.core.model.configs import ALL, Change, ConfigKey, ConfigResource, ConfigResourceType, Observed, Op, items
from reassign.core.model.problem import Problem
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.snapshot import TopicPartition


@dataclass(frozen=True, slots=True)
class Ours:
    """One recorded configuration."""

    value: str
    """The value, or the items, that we set or are about to set."""
    prior: str | None
    """What was there before."""
    replacing: str | None = None
    """The value that we set before `value`, until a read shows `value`."""


Held = dict[ConfigKey, Ours]


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes from what is set to what is wanted."""

    record: RecordedConfigs | None
    """The record from now on: it is written before the changes are made."""
    changes: tuple[Change, ...] = ()
    """In the order in which they are to be made."""
    drift: Problem | None = None
    """What another client has changed."""
    drifted: frozenset[ConfigKey] = frozenset()
    """Configurations that another client has changed and that are set again now."""


class ConfigDiff(NamedTuple):
    """The changes to one configuration."""

    ours: Ours | None
    """What the record says from now on; None: nothing."""
    changes: tuple[Change, ...] = ()
    drift: str | None = None
    """What another client has changed."""


def diff(status: RecordedConfigs | None, aim: WantedConfigs, observed: Observed, recent: RecentChanges) -> Diff:
    """Return the changes from what is recorded and observed to what is wanted.

    `observed` is a read of all that is recorded or wanted; a resource that the read misses is left alone.
    """
    seen = recent.over(observed)
    record = from_record(status)
    after: Held = {}
    changes: list[Change] = []
    drifts: dict[ConfigKey, str] = {}
    keys = record.keys() | aim.values.keys() | aim.items.keys()
    settled = recent.settled(keys, record.keys())
    for key in sorted(keys):
        judged = _judge(key, record.get(key), aim, observed, seen, recent, settled=key in settled)
        if judged.ours:
            after[key] = judged.ours
        changes += judged.changes
        if judged.drift and key.config != CORDONED_LOG_DIRS:  # who removes a cordon is counted elsewhere
            drifts[key] = judged.drift
    changes.sort(key=lambda c: c.op in (Op.DELETE, Op.SUBTRACT))
    return Diff(to_record(after, aim), tuple(changes), drift_problem([*drifts.values()]), frozenset(drifts))


def _judge(
    key: ConfigKey,
    ours: Ours | None,
    aim: WantedConfigs,
    observed: Observed,
    seen: Observed,
    recent: RecentChanges,
    *,
    settled: bool,
) -> ConfigDiff:
    if key.resource not in seen or key in aim.left:
        return ConfigDiff(ours)
    configs = seen[key.resource]
    if configs is None:
        return ConfigDiff(None if settled else ours)
    text, took = configs.get(key.config), partial(recent.took, key)
    if key.resource.type is ConfigResourceType.TOPIC:
        needed = aim.items.get(key, frozenset())
        return _list(key, ours, text, needed, took, settled=settled, unsteady=recent.unsteady(key))
    read = (observed[key.resource] or {}).get(key.config)
    if ours and not settled and read not in (ours.value, ours.replacing, ours.prior):
        return ConfigDiff(ours)  # another client's, over what we wrote a moment ago
    rate = aim.values.get(key)
    unsteady = recent.unsteady(key, longest_wait(text, rate))
    return _value(key, ours, text, rate, took, settled=settled, unsteady=unsteady)


Took = Callable[[Collection[str]], frozenset[str]]
"""Which of these values, or items, the operator has removed itself."""


def _value(
    key: ConfigKey, ours: Ours | None, text: str | None, aim: str | None, took: Took, *, settled: bool, unsteady: bool
) -> ConfigDiff:
    if ours is None:
        if aim is None or text == aim or not settled:
            return ConfigDiff(None)
        return ConfigDiff(Ours(aim, prior=text), (Change(key, Op.SET, aim),))
    set_by_us = text is not None and text in (ours.value, ours.replacing)
    if aim is None:
        if set_by_us and text != ours.prior:
            return ConfigDiff(ours, (_back(key, ours.prior),))
        return ConfigDiff(None if settled else ours)
    theirs = not set_by_us and text != ours.prior
    if not settled and (theirs or aim != ours.value):
        return ConfigDiff(ours)
    if settled and unsteady and not set_by_us:
        return ConfigDiff(ours)
    changes = () if text == aim else (Change(key, Op.SET, aim),)
    if not settled:
        return ConfigDiff(ours, changes)
    after = Ours(aim, text if theirs else ours.prior, text if set_by_us and text != aim else None)
    if set_by_us or took([ours.value]):
        return ConfigDiff(after, changes)
    return ConfigDiff(after, changes, f"{key} was {'absent' if text is None else text} instead of {ours.value}")


def _list(
    key: ConfigKey,
    ours: Ours | None,
    text: str | None,
    aim: frozenset[str],
    took: Took,
    *,
    settled: bool,
    unsteady: bool,
) -> ConfigDiff:
    there = items(text)
    mine = frozenset(items(ours.value)) if ours else frozenset()
    others = [item for item in there if item not in mine]
    need = frozenset() if there == ALL else aim.difference(others)
    if not need:
        return _restored(key, ours, text, settled=settled) if ours else ConfigDiff(None)
    if ours is None and not settled:
        return ConfigDiff(None)
    missing = (mine & need).difference(there)
    lost = sorted(missing - took(missing)) if settled and missing else []
    append = _change(key, Op.APPEND, need.difference(there, missing if unsteady else ()))
    subtract = _change(key, Op.SUBTRACT, (mine - need).intersection(there))
    prior = text if ours is None else ours.prior
    if lost and set(others) != set(items(prior)):
        prior = ",".join(others) if mine.intersection(there) else text
    kept = need | (mine.intersection(there) if settled else mine)
    after = Ours(_joined(kept), prior)
    drift = f"{key} had lost {','.join(lost)}" if lost and not unsteady else None
    return ConfigDiff(after, (*append, *subtract), drift)


def _restored(key: ConfigKey, ours: Ours, text: str | None, *, settled: bool) -> ConfigDiff:
    """Restore a list of which nothing is wanted: byte for byte what was there, or what other clients made of it."""
    mine, there = set(items(ours.value)), items(text)
    left = mine.intersection(there)
    subtract = _change(key, Op.SUBTRACT, left)
    if {item for item in there if item not in mine} != set(items(ours.prior)):
        changes = subtract
    elif text == ours.prior:
        changes = ()
    elif subtract and subtract[0].of(text) == ours.prior:
        changes = subtract
    else:
        changes = (_back(key, ours.prior),) if settled else subtract  # a whole text replaces what others have added
    return ConfigDiff(None if settled and not changes else ours, changes)


def _back(key: ConfigKey, prior: str | None) -> Change:
    return Change(key, Op.DELETE) if prior is None else Change(key, Op.SET, prior)


def _change(key: ConfigKey, op: Op, those: Iterable[str]) -> tuple[Change, ...]:
    value = _joined(those)
    return (Change(key, op, value),) if value else ()


def _joined(those: Iterable[str]) -> str:
    return ",".join(sorted(those, key=lambda item: tuple(map(int, item.split(":")))))


def fit(
    status: RecordedConfigs | None,
    moves: Sequence[ThrottledMove],
    observed: Observed,
    recent: RecentChanges,
    cordons: Mapping[int, CordonState] | None = None,
) -> tuple[Diff, Sequence[ThrottledMove]]:
    """Return the changes for the cordons and for as many moves as the record has room for, and these moves.

    Moves already recorded stay in any case; of the others the last ones are left out.
    """
    record = from_record(status)
    recorded = {key: frozenset(items(ours.value)) for key, ours in record.items()}

    between_dirs = log_dir_moves_of(status)

    def old(move: ThrottledMove) -> bool:
        if isinstance(move, LogDirMove):
            return all(move.tp in between_dirs.get(broker, ()) for broker in move.brokers)
        return all(those <= recorded.get(key, frozenset()) for key, those in move.items().items())

    kept = list(moves)
    additions = [move for move in moves if not old(move)]
    while True:
        diffed = diff(status, wanted_configs(kept, status, cordons), observed, recent)
        if not additions or not _too_large(diffed, observed, recent):
            return diffed, kept
        out = set(additions[len(additions) // 2 :])
        additions = additions[: len(additions) // 2]
        kept = [move for move in kept if move not in out]


def _too_large(diffed: Diff, observed: Observed, recent: RecentChanges) -> bool:
    if diffed.record is None:
        return False
    topics = max(len(diffed.record.topics), *(len(b.copying) for b in diffed.record.brokers), 0)
    if topics > MAX_THROTTLED_TOPICS or len(diffed.record.brokers) > MAX_THROTTLED_BROKERS:
        return True
    seen = recent.over(observed)
    texts = (c.of((seen[c.key.resource] or {}).get(c.key.config)) for c in diffed.changes if c.op is Op.APPEND)
    if any(len(text or "") > MAX_CONFIG_CHARACTERS for text in texts):
        return True
    return len(json.dumps(diffed.record.wire(), separators=(",", ":"))) > MAX_THROTTLE_RECORD_BYTES


def from_record(status: RecordedConfigs | None) -> Held:
    """Return the configurations in a record."""
    if status is None:
        return {}
    return {
        ConfigKey(resource, c.name): Ours(c.value, c.prior, c.replacing)
        for resource, configs in [
            *((ConfigResource(ConfigResourceType.BROKER, str(b.broker)), b.configs) for b in status.brokers),
            *((ConfigResource(ConfigResourceType.TOPIC, t.topic), t.configs) for t in status.topics),
        ]
        for c in configs
    }


def to_record(record: Held, aim: WantedConfigs) -> RecordedConfigs | None:
    """Return the record of configurations, ordered, so that equal records are equal bytes; None for an empty one."""
    if not record and not aim.cordon_removals:
        return None
    resources: dict[ConfigResource, list[RecordedConfig]] = defaultdict(list)
    for key, ours in sorted(record.items(), key=lambda pair: pair[0]):
        config = RecordedConfig(name=key.config, value=ours.value, prior=ours.prior, replacing=ours.replacing)
        resources[key.resource].append(config)
    brokers = {int(p.name): tuple(c) for p, c in resources.items() if p.type is ConfigResourceType.BROKER}
    topics = [(p.name, tuple(c)) for p, c in resources.items() if p.type is ConfigResourceType.TOPIC]
    with_rate = {int(key.resource.name) for key in record if key.config == LOG_DIR_RATE}
    status = RecordedConfigs(
        users=aim.users,
        brokers=tuple(
            BrokerConfigs(
                broker=b,
                configs=brokers.get(b, ()),
                copying=_by_topic(aim.log_dir_moves.get(b, ())) if b in with_rate else (),
                cordon_removals=aim.cordon_removals.get(b),
            )
            for b in sorted(brokers.keys() | aim.cordon_removals.keys())
        ),
        topics=tuple(TopicConfigs(topic=t, configs=c) for t, c in topics),
    )
    return status.model_copy(update=dict(aim.rates))


def with_taken_over(own: RecordedConfigs | None, left: RecordedConfigs) -> RecordedConfigs | None:
    """Return the record of a KafkaCluster with what another one has set on the same brokers, and its prior values."""
    mine, theirs = from_record(own), from_record(left)
    both = {key: _as_one(key, mine[key], theirs[key]) for key in mine.keys() & theirs.keys()}
    moves, more = log_dir_moves_of(own), log_dir_moves_of(left)
    copied = {b: moves.get(b, frozenset()) | more.get(b, frozenset()) for b in moves.keys() | more.keys()}
    rates = {kind: getattr(own, kind, None) or getattr(left, kind) for kind in KINDS}
    wanted = WantedConfigs(rates=rates, users=own.users if own else (), log_dir_moves=copied)
    taken = to_record({**theirs, **mine, **both}, wanted)
    return taken and taken.model_copy(update={"via": own.via, "sent_at": own.sent_at} if own else {})


def _as_one(key: ConfigKey, mine: Ours, theirs: Ours) -> Ours:
    """Return what two have recorded of one configuration. The prior value is that of the one who set it first."""
    if key.resource.type is ConfigResourceType.TOPIC:
        value = _joined(sorted({*items(mine.value), *items(theirs.value)}))
        second = set(items(mine.prior)) >= set(items(theirs.value))
        return Ours(value, theirs.prior if second else mine.prior)
    prior = theirs.prior if mine.prior == theirs.value else mine.prior
    replacing = theirs.value if theirs.value != mine.value else None
    return Ours(mine.value, prior, mine.replacing or replacing)


def _by_topic(partitions: Iterable[TopicPartition]) -> tuple[CopiedTopic, ...]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        numbers[topic].append(number)
    return tuple(CopiedTopic(topic=topic, partitions=tuple(those)) for topic, those in numbers.items())
