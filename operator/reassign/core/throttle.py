"""Throttle: from what is recorded, wanted and observed to the record from now on, and the changes to make.

Everything is judged anew on each look. What is wanted and not observed is set, again if need be; what is recorded and
no longer wanted is restored; it leaves the record once a read that cannot be stale shows it restored. The record is
in the KafkaCluster's status before the changes are made, so it may name more than was ever set, never less.

Of a list only our own items are added and taken away. A value belongs to everybody: what was there before is
restored, and only where ours is still there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reassign.api.kafka_cluster import BrokerThrottle, CopiedTopic, ThrottleConfig, ThrottleStatus, TopicThrottle
from reassign.core.changes import ALL, Change, Kind, Lately, Observed, Op, Place, Spot, items
from reassign.core.model import Problem, TopicPartition
from reassign.core.throttled import LOG_DIR_RATE, Placing, Throttled, Wanted, placing_of, wanted
from reassign.errors import Reason

MAX_TEXT = 32_767
"""Bytes of one configuration: brokers take no more."""
MAX_PLACES = {Kind.BROKER: 1000, Kind.TOPIC: 2000}
MAX_RECORD_BYTES = 800_000
"""So that the KafkaCluster stays well below the 1.5 MiB that the API server stores."""


@dataclass(frozen=True, slots=True)
class Ours:
    """One recorded configuration: the value, or items, that we set or are about to; what was there before.

    `replacing` is the value that we set before this one, until a read shows this one.
    """

    value: str
    prior: str | None
    replacing: str | None = None


Record = dict[Spot, Ours]


@dataclass(frozen=True, slots=True)
class Plan:
    """The record from now on, then what to change, in order; and what somebody else has changed meanwhile."""

    record: ThrottleStatus | None
    changes: tuple[Change, ...] = ()
    drift: Problem | None = None


class Judged(NamedTuple):
    """One configuration: its place in the record (None: forget it), what to change, what drifted."""

    ours: Ours | None
    changes: tuple[Change, ...] = ()
    drift: str | None = None


def plan(status: ThrottleStatus | None, aim: Wanted, observed: Observed, lately: Lately) -> Plan:
    """`observed` is a read of all places that are recorded or wanted; those that are missing in it are left alone."""
    seen = lately.over(observed)
    record = read_record(status)
    after: Record = {}
    changes: list[Change] = []
    drifts: list[str] = []
    for spot in sorted(record.keys() | aim.values.keys() | aim.items.keys()):
        judged = _judge(spot, record.get(spot), aim, observed, seen, settled=lately.settled(spot))
        if judged.ours:
            after[spot] = judged.ours
        changes += judged.changes
        drifts += [judged.drift] if judged.drift else []
    changes.sort(key=lambda c: c.op in (Op.DELETE, Op.SUBTRACT))
    return Plan(write_record(after, aim), tuple(changes), _drift(drifts))


def _judge(spot: Spot, ours: Ours | None, aim: Wanted, observed: Observed, seen: Observed, *, settled: bool) -> Judged:
    if spot.place not in seen:
        return Judged(ours)
    configs = seen[spot.place]
    if configs is None:
        return Judged(None if settled else ours)
    text = configs.get(spot.config)
    if spot.place.kind is Kind.TOPIC:
        return _list(spot, ours, text, aim.items.get(spot, frozenset()), settled=settled)
    read = (observed[spot.place] or {}).get(spot.config)
    if ours and not settled and read not in (ours.value, ours.replacing, ours.prior):
        return Judged(ours)  # somebody else's, over what we wrote a moment ago
    return _value(spot, ours, text, aim.values.get(spot), settled=settled)


def _value(spot: Spot, ours: Ours | None, text: str | None, aim: str | None, *, settled: bool) -> Judged:
    if ours is None:
        if aim is None or text == aim or not settled:
            return Judged(None)
        return Judged(Ours(aim, prior=text), (Change(spot, Op.SET, aim),))
    set_by_us = text is not None and text in (ours.value, ours.replacing)
    if aim is None:
        if set_by_us and text != ours.prior:
            return Judged(ours, (_back(spot, ours.prior),))
        return Judged(None if settled else ours)
    theirs = not set_by_us and text != ours.prior
    if not settled and (theirs or aim != ours.value):
        return Judged(ours)
    changes = () if text == aim else (Change(spot, Op.SET, aim),)
    if not settled:
        return Judged(ours, changes)
    after = Ours(aim, text if theirs else ours.prior, text if set_by_us and text != aim else None)
    drift = None if set_by_us else f"{spot} was {'absent' if text is None else text} instead of {ours.value}"
    return Judged(after, changes, drift)


def _list(spot: Spot, ours: Ours | None, text: str | None, aim: frozenset[str], *, settled: bool) -> Judged:
    there = items(text)
    mine = frozenset(items(ours.value)) if ours else frozenset()
    others = [item for item in there if item not in mine]
    need = frozenset() if there == ALL else aim.difference(others)
    if not need:
        return _restored(spot, ours, text, settled=settled) if ours else Judged(None)
    if ours is None and not settled:
        return Judged(None)
    append = _change(spot, Op.APPEND, need.difference(there))
    subtract = _change(spot, Op.SUBTRACT, (mine - need).intersection(there))
    lost = sorted((mine & need).difference(there)) if settled else []
    prior = text if ours is None else ours.prior
    if lost and set(others) != set(items(prior)):
        prior = ",".join(others) if mine.intersection(there) else text
    kept = need | (mine.intersection(there) if settled else mine)
    after = Ours(_joined(kept), prior)
    return Judged(after, (*append, *subtract), f"{spot} had lost {','.join(lost)}" if lost else None)


def _restored(spot: Spot, ours: Ours, text: str | None, *, settled: bool) -> Judged:
    """Nothing of it is wanted any more: byte for byte what was there, or what others have made of it since."""
    mine, there = set(items(ours.value)), items(text)
    left = mine.intersection(there)
    subtract = _change(spot, Op.SUBTRACT, left)
    if {item for item in there if item not in mine} != set(items(ours.prior)):
        changes = subtract
    elif text == ours.prior:
        changes = ()
    elif subtract and subtract[0].of(text) == ours.prior:
        changes = subtract
    else:
        changes = (_back(spot, ours.prior),) if settled else subtract  # a whole text replaces what others have added
    return Judged(None if settled and not changes else ours, changes)


def _back(spot: Spot, prior: str | None) -> Change:
    return Change(spot, Op.DELETE) if prior is None else Change(spot, Op.SET, prior)


def _change(spot: Spot, op: Op, those: Iterable[str]) -> tuple[Change, ...]:
    value = _joined(those)
    return (Change(spot, op, value),) if value else ()


def _joined(those: Iterable[str]) -> str:
    return ",".join(sorted(those, key=lambda item: tuple(map(int, item.split(":")))))


def _drift(drifts: Sequence[str]) -> Problem | None:
    if not drifts:
        return None
    more = f", and {len(drifts) - 5} more" if len(drifts) > 5 else ""
    return Problem(
        Reason.THROTTLE_DRIFT,
        f"somebody else changed a throttle: {'; '.join(drifts[:5])}{more}; it is set again, "
        "and what they set is restored afterwards",
    )


def fit(
    status: ThrottleStatus | None, moves: Sequence[Throttled], observed: Observed, lately: Lately
) -> tuple[Plan, Sequence[Throttled]]:
    """A plan for as many moves as its record has room for, and the moves that it is for.

    Those already recorded stay in any case; of the others the last ones are left out.
    """
    record = read_record(status)
    recorded = {spot: frozenset(items(ours.value)) for spot, ours in record.items()}

    placing = placing_of(status)

    def old(move: Throttled) -> bool:
        if isinstance(move, Placing):
            return all(move.tp in placing.get(broker, ()) for broker in move.brokers)
        return all(those <= recorded.get(spot, frozenset()) for spot, those in move.items().items())

    kept = list(moves)
    additions = [move for move in moves if not old(move)]
    while True:
        planned = plan(status, wanted(kept, status), observed, lately)
        if not additions or not _too_large(planned, observed, lately):
            return planned, kept
        out = set(additions[len(additions) // 2 :])
        additions = additions[: len(additions) // 2]
        kept = [move for move in kept if move not in out]


def _too_large(planned: Plan, observed: Observed, lately: Lately) -> bool:
    if planned.record is None:
        return False
    topics = max(len(planned.record.topics), *(len(b.copying) for b in planned.record.brokers), 0)
    if topics > MAX_PLACES[Kind.TOPIC] or len(planned.record.brokers) > MAX_PLACES[Kind.BROKER]:
        return True
    seen = lately.over(observed)
    texts = (c.of((seen[c.spot.place] or {}).get(c.spot.config)) for c in planned.changes if c.op is Op.APPEND)
    if any(len(text or "") > MAX_TEXT for text in texts):
        return True
    return len(json.dumps(planned.record.wire(), separators=(",", ":"))) > MAX_RECORD_BYTES


def lacking(move: Throttled, aim: Wanted, live: frozenset[int], seen: Observed) -> Spot | None:
    """The first configuration of the aim that a move needs and does not have; brokers that are down need none."""
    for spot, those in move.items().items():
        configs = seen.get(spot.place)
        there = items(configs.get(spot.config)) if configs is not None else ()
        if there != ALL and not those.issubset(there):
            return spot
    for spot in (spot for spot in wanted([move], None).values if int(spot.place.name) in live):
        configs = seen.get(spot.place)
        if configs is None or configs.get(spot.config) != aim.values.get(spot):
            return spot
    return None


def read_record(status: ThrottleStatus | None) -> Record:
    """The record as it stands in a status."""
    if status is None:
        return {}
    return {
        Spot(place, c.name): Ours(c.value, c.prior, c.replacing)
        for place, configs in [
            *((Place(Kind.BROKER, str(b.broker)), b.configs) for b in status.brokers),
            *((Place(Kind.TOPIC, t.topic), t.configs) for t in status.topics),
        ]
        for c in configs
    }


def write_record(record: Record, aim: Wanted) -> ThrottleStatus | None:
    """The record in the shape of the status, ordered, so that equal records are equal bytes; None for an empty one."""
    if not record:
        return None
    places: dict[Place, list[ThrottleConfig]] = defaultdict(list)
    for spot, ours in sorted(record.items(), key=lambda pair: pair[0]):
        config = ThrottleConfig(name=spot.config, value=ours.value, prior=ours.prior, replacing=ours.replacing)
        places[spot.place].append(config)
    brokers = sorted((int(p.name), tuple(c)) for p, c in places.items() if p.kind is Kind.BROKER)
    topics = [(p.name, tuple(c)) for p, c in places.items() if p.kind is Kind.TOPIC]
    placing = {int(spot.place.name) for spot in record if spot.config == LOG_DIR_RATE}
    return ThrottleStatus(
        inter_broker=aim.inter_broker,
        log_dir=aim.log_dir,
        users=aim.users,
        brokers=tuple(
            BrokerThrottle(broker=b, configs=c, copying=_by_topic(aim.placing.get(b, ())) if b in placing else ())
            for b, c in brokers
        ),
        topics=tuple(TopicThrottle(topic=t, configs=c) for t, c in topics),
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> tuple[CopiedTopic, ...]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        numbers[topic].append(number)
    return tuple(CopiedTopic(topic=topic, partitions=tuple(those)) for topic, those in numbers.items())
