"""Whether a broker is empty, and what its record says of it.

A broker that is up is empty when neither metadata nor a move in flight names it, and it reports no log. Of one that is
down that was seen before, or no broker that is up reports a log that metadata hides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from math import floor
from typing import NamedTuple

from reassign.api.common import ConditionStatus
from reassign.api.reassignment_record import RecordedBroker
from reassign.core.automation.case import in_doubt
from reassign.core.automation.model import BrokerSeen, BrokersSeen, DecommissionResource
from reassign.core.automation.timers import COUNT_HOLDS_SECONDS, Timer, observed, read_timer, recorded
from reassign.core.model.forwarding import Clock
from reassign.errors import Reason
from reassign.text import counted, listed, named_brokers

BROKER_NOT_EMPTY = "BrokerNotEmpty"
CONFIRM_SECONDS = 10.0
"""How long a cordon has been in force when a broker shows that it is empty, or how far apart two answers are."""
MISSING_SECONDS = 600
"""How long a broker is missing before Kafka 4.0 until it counts as no longer registered."""

ABSENT = BrokerSeen(registered=False)


class Emptiness(NamedTuple):
    """Whether a broker is empty, and if not, or if that is not known, why."""

    reason: str | None = None
    message: str = ""
    seen_up: bool = False
    """Whether it was seen empty while it was up."""

    @property
    def empty(self) -> bool:
        return self.reason is None


class BrokerJudged(NamedTuple):
    """What is known of one broker that is to be empty."""

    seen: BrokerSeen
    emptiness: Emptiness
    replicas: int
    """Replicas that are left on it."""
    record: RecordedBroker | None
    """None: it was never there."""
    timer: Timer | None
    """How long it has been down."""

    @property
    def gone(self) -> bool:
        """Whether it is empty and not registered any more."""
        return self.record is not None and self.record.seen_unregistered


def judge_brokers(
    it: DecommissionResource, seen: BrokersSeen, timers: Mapping[int, Timer], now: Clock
) -> Mapping[int, BrokerJudged]:
    """Return what is known of the brokers of a decommission after an observation."""
    return {broker: _judge(it, broker, seen, timers.get(broker), now) for broker in sorted(it.brokers)}


def _judge(it: DecommissionResource, broker: int, seen: BrokersSeen, timer: Timer | None, now: Clock) -> BrokerJudged:
    there, known = seen.brokers.get(broker), it.recorded(broker)
    found = there or ABSENT
    replicas = _counted(it, found.replicas)
    if known and it.record.excluded not in (None, it.excluded):  # what did not count then may count now
        known = known.model_copy(update={"seen_empty": False})
    emptiness = _emptiness(it, broker, found, known, seen, now)
    if there is None and known is None:
        return BrokerJudged(found, emptiness, replicas, None, None)
    known = known or RecordedBroker(id=broker)
    timer = observed(timer or read_timer(known.down), not found.up, now)
    long_enough = seen.lists_fenced or (timer is not None and floor(timer.seconds) >= MISSING_SECONDS)
    landed = emptiness.reason not in (None, Reason.NOT_OBSERVED)
    record = known.model_copy(
        update={
            "down": recorded(known.down, timer),
            "seen_empty": emptiness.seen_up or (known.seen_empty and not landed),
            "seen_unregistered": not found.registered and emptiness.empty and (known.seen_unregistered or long_enough),
            "unregister_sent_at": None if _not_by_us(it, broker, found, seen, now) else known.unregister_sent_at,
        }
    )
    return BrokerJudged(found, emptiness, replicas, record, timer)


def _not_by_us(it: DecommissionResource, broker: int, found: BrokerSeen, seen: BrokersSeen, now: Clock) -> bool:
    """Whether no UnregisterBroker of ours has taken a broker away, nor can: it was refused, or lost, if one was sent.

    A broker that is registered may be so by the last reading alone.
    """
    if not found.registered:
        return broker in seen.refusals
    age = 0 if seen.counted_at is None else now.monotonic - seen.counted_at
    return not in_doubt(it, broker, now.time - timedelta(seconds=age))


def _counted(it: DecommissionResource, by_topic: Mapping[str, int]) -> int:
    return sum(number for topic, number in by_topic.items() if it.counts(topic))


def _emptiness(
    it: DecommissionResource,
    broker: int,
    found: BrokerSeen,
    known: RecordedBroker | None,
    seen: BrokersSeen,
    now: Clock,
) -> Emptiness:
    if replicas := _counted(it, found.replicas):
        return Emptiness(BROKER_NOT_EMPTY, f"{counted(replicas, 'replica')} left on broker {broker}")
    if moves := _counted(it, found.in_flight):
        return Emptiness(BROKER_NOT_EMPTY, f"{counted(moves, 'move')} in flight to or from broker {broker}")
    if found.up:
        return _of_logs(it, broker, found, known, seen, now)
    if known and known.seen_empty:
        return Emptiness(seen_up=True)
    return _by_others(it, seen, now) or Emptiness()


def _of_logs(
    it: DecommissionResource,
    broker: int,
    found: BrokerSeen,
    known: RecordedBroker | None,
    seen: BrokersSeen,
    now: Clock,
) -> Emptiness:
    if not _answers(found, now):
        message = f"broker {broker} does not say which logs it has: it does not answer, or has an offline log directory"
        return Emptiness(Reason.NOT_OBSERVED, message)
    if hidden := _hidden(it, broker, seen):
        return _withheld(frozenset({broker}), hidden)
    logs = [{topic for topic in read.topics if it.counts(topic)} for read in found.logs]
    if logs[-1]:
        message = (
            f"broker {broker} still has logs of replicas that it does not have any more: {listed(sorted(logs[-1]))}"
        )
        return Emptiness(BROKER_NOT_EMPTY, message)
    said = any(c.type == "Empty" and c.status is ConditionStatus.TRUE for c in it.status.conditions)
    if said and known and known.seen_empty:  # before a restart
        return Emptiness(seen_up=True)
    newest = since = found.logs[-1].at
    for read, left in zip(reversed(found.logs), reversed(logs), strict=True):
        if left:
            break
        since = read.at
    if newest - (since if found.cordoned_at is None else found.cordoned_at) >= CONFIRM_SECONDS:
        return Emptiness(seen_up=True)
    return Emptiness(Reason.NOT_OBSERVED, f"broker {broker} has no replicas, and is asked for its logs once more")


def _by_others(it: DecommissionResource, seen: BrokersSeen, now: Clock) -> Emptiness | None:
    """Say why the brokers that are up do not show that one which is down is empty."""
    up = {broker: found for broker, found in seen.brokers.items() if found.up}
    if not up:
        return Emptiness(Reason.NOT_OBSERVED, "no broker is up to tell which logs there are")
    if silent := {broker for broker, found in up.items() if not _answers(found, now)}:
        message = f"{named_brokers(silent, 'has')} not told which logs there are, as with an offline log directory"
        return Emptiness(Reason.NOT_OBSERVED, message)
    hidden = {broker: topics for broker in up if (topics := _hidden(it, broker, seen))}
    return _withheld(frozenset(hidden), frozenset[str]().union(*hidden.values())) if hidden else None


def _answers(found: BrokerSeen, now: Clock) -> bool:
    return bool(found.logs) and now.monotonic - found.logs[-1].at <= COUNT_HOLDS_SECONDS


def _hidden(it: DecommissionResource, broker: int, seen: BrokersSeen) -> frozenset[str]:
    return frozenset(topic for topic in seen.hidden(broker) if it.counts(topic))


def _withheld(brokers: frozenset[int], topics: frozenset[str]) -> Emptiness:
    message = (
        f"{named_brokers(brokers, 'has')} logs of topics that the operator's Kafka user may not describe: grant it "
        f"DESCRIBE on {listed(sorted(topics))}"
    )
    return Emptiness(Reason.NOT_AUTHORIZED, message)
