"""What is known of writes without an answer: by when each has landed, or cannot land any more.

A broker forwards what is the controller's, and holds it while there is no controller. When one is back, it sends what
it holds, but after a reconnect in any order. So a list of what is in flight may overtake a write that was sent to the
same broker before. It shows that the broker forwards again, and `OVERTAKEN_SECONDS` later the write has landed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import NamedTuple

from reassign.core.model.configs import ConfigResource, ConfigResourceType

SETTLE_SECONDS = 3.0
LANDING_SECONDS = 75.0
"""How late a request may land that a broker forwards: it is held for up to 60 s, and this has a margin."""
OVERTAKEN_SECONDS = 7.0
"""How much later than a list through the same broker: 1.1 s were seen on busy brokers, and this has a margin."""


class Write(NamedTuple):
    """A write: the broker that it was sent to, if it is known, and when, by a monotonic clock."""

    via: int | None
    at: float


class MetadataOffsets(NamedTuple):
    """The end of the metadata log, and how much of it each broker has (DescribeQuorum)."""

    end: int
    brokers: Mapping[int, int]
    complete: bool = True
    """Whether brokers that are no voters are told of. A service that hides them tells of none."""


class Forwarded(NamedTuple):
    """How one observation came about: first the lists, then the offsets, then metadata."""

    via: int | None = None
    """The broker that writes go to next."""
    brokers: Collection[int] = ()
    """Brokers that forwarded a list of the reassignments in flight."""
    offsets: MetadataOffsets | None = None
    """Offsets of the metadata log, where they were needed and the brokers told them."""
    reader: int | None = None
    """The broker whose metadata was read."""

    @property
    def fetched(self) -> int | None:
        """How much of the metadata log the reader had before it was read; None where that is not known.

        DescribeQuorum leaves out a broker that has fetched nothing for five minutes.
        """
        if self.offsets is None or self.reader is None:
            return None
        return self.offsets.brokers.get(self.reader, -1 if self.offsets.complete else None)

    @property
    def nearest(self) -> tuple[int, ...]:
        """Brokers, and controllers, by how much of the metadata log they have, most first; of equal ones the reader."""
        fetched = self.offsets.brokers if self.offsets else {}
        return tuple(sorted(fetched, key=lambda broker: (-fetched[broker], broker != self.reader, broker)))


NOT_FORWARDED = Forwarded()


class Doubts(NamedTuple):
    """The doubts that an observation is to settle."""

    brokers: tuple[int, ...] = ()
    """Brokers with writes that were not answered. That of moves and of topics comes first: its metadata shows when a
    change of a topic has landed. That of a broker whose own configurations were changed does not."""
    offsets: bool = False
    """Whether offsets of the metadata log are needed, too."""
    reader: int | None = None
    """The broker whose metadata was read last: they are needed if another one lists now."""
    lately: Collection[tuple[str, int]] = ()
    """Partitions that were busy a moment ago: they are needed if one of these is not listed now."""
    first: tuple[int, ...] = ()
    """The brokers to ask for the list that counts, in this order, and then those in doubt. The one that answers is
    written to next."""


NO_DOUBTS = Doubts()


@dataclass(frozen=True, slots=True)
class Forwarding:
    """The brokers that have forwarded a request since the last write to them that was not answered."""

    via: int | None = None
    """The broker that writes go to."""
    listed: Mapping[int, float] = field(default_factory=dict)
    """Since when each broker has forwarded lists."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """The metadata offset at the time when each broker's writes had landed."""
    caught_up: Mapping[int, float] = field(default_factory=dict)
    """Since when each broker's metadata has reached that offset."""

    def observe(self, began: float, forwarded: Forwarded) -> Forwarding:
        """Return the state after an observation that began then."""
        listed = {**dict.fromkeys(forwarded.brokers, began), **self.listed}
        ends, caught_up = dict(self.ends), dict(self.caught_up)
        if offsets := forwarded.offsets:
            landed = (broker for broker, at in listed.items() if began - at >= OVERTAKEN_SECONDS)
            ends = {**dict.fromkeys(landed, offsets.end), **ends}
            reached = (broker for broker, end in ends.items() if offsets.brokers.get(broker, -1) >= end)
            caught_up = {**dict.fromkeys(reached, began), **caught_up}
        return Forwarding(forwarded.via, listed, ends, caught_up)

    def lost(self, brokers: Collection[int | None]) -> Forwarding:
        """Return the state after writes to these brokers without an answer: earlier answers say nothing of them."""
        return Forwarding(
            self.via,
            {broker: at for broker, at in self.listed.items() if broker not in brokers},
            {broker: end for broker, end in self.ends.items() if broker not in brokers},
            {broker: at for broker, at in self.caught_up.items() if broker not in brokers},
        )

    def doubts(self, now: float, moves: Iterable[Write], configs: Iterable[Write]) -> Doubts:
        """Return the doubts about these writes, which may not have landed."""
        listed = [w.via for w in moves if w.via not in self.listed and now - _latest(w) < SETTLE_SECONDS]
        shown = [w.via for w in configs if w.via not in self.caught_up and now - _latest(w) < SETTLE_SECONDS]
        return Doubts(tuple(dict.fromkeys(via for via in (*listed, *shown) if via is not None)), bool(shown))

    def via_of(self, resource: ConfigResource) -> int | None:
        """Return the broker that a resource's configurations are changed through, and read from."""
        return int(resource.name) if resource.type is ConfigResourceType.BROKER else self.via

    def landed(self, write: Write) -> float:
        """Return when a write without an answer has landed at the latest, or cannot land any more."""
        if write.via is None:
            return _latest(write)
        return min(self.listed.get(write.via, inf) + OVERTAKEN_SECONDS, _latest(write))

    def shown(self, write: Write, reader: int | None) -> float:
        """Return when the metadata of the broker that is read shows a write without an answer, at the latest."""
        if reader is None or reader != write.via:
            return _latest(write)
        return min(self.caught_up.get(reader, inf), _latest(write))


def _latest(write: Write) -> float:
    return write.at + LANDING_SECONDS


@dataclass(frozen=True, slots=True)
class Clock:
    """One moment by both clocks: a process counts by the monotonic one, records have the time of day."""

    monotonic: float
    time: datetime

    def of(self, at: float) -> datetime:
        """Return a time of day, in whole seconds as records have it."""
        return (self.time + timedelta(seconds=at - self.monotonic)).replace(microsecond=0)
