"""From what was read of a cluster to what a decision about decommissions and policies sees of its brokers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from math import inf

from reassign.core.automation.model import BrokerSeen, BrokersSeen, LogsRead
from reassign.core.automation.timers import GREATEST_GAP_SECONDS, counts
from reassign.core.configs.cordons import CordonState
from reassign.core.model.layout import Layout, showing
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, Reassignment, Snapshot, TopicPartition, cordoned, live_brokers

READS = 3
"""Answers of a broker that are kept: the first and the last show for how long it has had no logs."""


@dataclass(frozen=True, slots=True)
class BrokersRead:
    """What was read of all brokers at one time, apart from what each observation shows."""

    layout: Layout
    factor: int | None = None
    """The greatest replication factor that brokers give to topics that are still to be made; None: not known."""
    voters: frozenset[int] | None = None
    """The voters of the controller quorum; None where they are not known."""
    at: float = -inf
    """When it began, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class CordonsRead:
    """Which brokers were found to be cordoned at one time."""

    cordoned: Mapping[int, bool | None]
    """Of the brokers that answered; None where their version does not say."""
    at: float = -inf
    """When the reading began, by the monotonic clock."""


@dataclass(frozen=True, slots=True)
class BrokersMemory:
    """What a process remembers of the brokers of a cluster, by the monotonic clock. Losing it costs a wait."""

    read: BrokersRead | None = None
    """The last reading."""
    cordons: CordonsRead = CordonsRead({})
    """The last reading of cordons: with all else, or after that."""
    logs: Mapping[int, tuple[LogsRead, ...]] = field(default_factory=dict)
    """The last answers of each broker that answered the last time it was asked for its logs."""
    wanted: Mapping[int, float] = field(default_factory=dict)
    """Since when cordons are wanted."""
    cordoned: Mapping[int, float] = field(default_factory=dict)
    """Since when brokers were seen to be cordoned."""
    down: Mapping[int, float] = field(default_factory=dict)
    """Since when registered brokers were seen to be fenced."""
    observed_at: float = -inf
    """When an observation counted last."""
    refusals: Mapping[int, Problem] = field(default_factory=dict)
    """Why brokers were not unregistered, where that was refused."""

    def take(self, read: BrokersRead) -> BrokersMemory:
        """Return the memory after a reading. A broker that did not report all of its logs has not answered."""
        directories = read.layout.log_dirs
        logs = {
            broker: (
                *self.logs.get(broker, ())[1 - READS :],
                LogsRead(read.at, frozenset(tp.topic for d in directories[broker].values() for tp in d.logs)),
            )
            for broker in showing(directories)
        }
        if read.factor is None and self.read:
            read = replace(read, factor=self.read.factor)
        return replace(self, read=read, logs=logs, cordons=CordonsRead(read.layout.cordoned, read.at))

    def take_cordons(self, read: CordonsRead) -> BrokersMemory:
        """Return the memory after a reading of cordons alone."""
        return replace(self, cordons=read) if read.at > self.cordons.at else self

    def unregister(self, broker: int, refusal: Problem | None) -> BrokersMemory:
        """Return the memory after an UnregisterBroker, which may have been refused."""
        others = {known: why for known, why in self.refusals.items() if known != broker}
        return replace(self, refusals={**others, broker: refusal} if refusal else others)

    def observe(self, snapshot: Snapshot, cordons: Set[int], now: float) -> BrokersMemory:
        """Return the memory after an observation; `cordons` are the brokers that were to be cordoned before it.

        After a long gap what is seen begins anew, since it may have ended and begun again meanwhile.
        """
        wanted = {broker: self.wanted.get(broker, now) for broker in cordons}
        if not counts(snapshot):
            return replace(self, wanted=wanted)
        live = live_brokers(snapshot.brokers)
        closed = {broker for broker in live if self._cordoned(broker, snapshot, cordons)}
        before = self if now - self.observed_at <= GREATEST_GAP_SECONDS else BrokersMemory()
        return replace(
            self,
            wanted=wanted,
            cordoned={broker: before.cordoned.get(broker, now) for broker in closed},
            down={broker: before.down.get(broker, now) for broker in snapshot.brokers.keys() - live},
            observed_at=now,
        )

    def differs(self, snapshot: Snapshot) -> bool:
        """Whether brokers came or went since the last reading, or there is none."""
        return self.read is None or self.read.layout.brokers != snapshot.brokers

    def lost(self, seconds: float, now: float) -> frozenset[int]:
        """Return the brokers that have been fenced for so long."""
        return frozenset(broker for broker, since in self.down.items() if now - since >= seconds)

    def seen(
        self,
        snapshot: Snapshot,
        states: Mapping[int, CordonState],
        cordons: Set[int],
        ours: Set[TopicPartition] = frozenset(),
    ) -> BrokersSeen | None:
        """Return what is seen of all brokers; None before anything was read.

        A broker is gone only when the last reading has not found it either: the replicas that it had were read then.
        `states` are how far the cordons are that were wanted, and `ours` the partitions that our resources move.
        """
        if self.read is None:
            return None
        layout = self.read.layout
        in_flight = _in_flight(snapshot.reassignments)
        ids = snapshot.brokers.keys() | layout.ids | in_flight.keys()
        live = live_brokers(snapshot.brokers)
        factors = (factor for by_factor in layout.factors.values() for factor in by_factor)
        others = [move for tp, move in snapshot.reassignments.items() if tp not in ours]
        return BrokersSeen(
            brokers={
                broker: BrokerSeen(
                    registered=broker in snapshot.brokers or broker in layout.brokers,
                    fenced=broker not in live,
                    replicas=layout.replicas.get(broker, {}),
                    in_flight=in_flight.get(broker, {}),
                    logs=self.logs.get(broker, ()),
                    cordon=states.get(broker),
                    cordoned=self._cordoned(broker, snapshot, cordons) if broker in live else None,
                    cordon_wanted_at=self.wanted.get(broker),
                    cordoned_at=self.cordoned.get(broker),
                    rack=_rack(broker, snapshot.brokers, layout.brokers),
                )
                for broker in ids
            },
            topics=frozenset(layout.factors),
            forwarded=bool(snapshot.forwarded.brokers),
            lists_fenced=snapshot.lists_fenced,
            factor=max(self.read.factor or 1, *factors, 1),
            voters=self.read.voters,
            via=snapshot.forwarded.via,
            counted_at=self.read.at,
            cordons_at=self.cordons.at,
            foreign=frozenset(broker for move in others for broker in (*move.adding, *move.removing)),
            foreign_from=frozenset(broker for move in others for broker in move.removing),
            refusals={broker: why for broker, why in self.refusals.items() if broker not in live},
        )

    def _cordoned(self, broker: int, snapshot: Snapshot, cordons: Set[int]) -> bool | None:
        """Whether a broker is cordoned: by the last observation if its cordon is wanted, else by the last reading."""
        if broker in cordons and broker in snapshot.log_dirs:
            return cordoned(snapshot.log_dirs[broker])
        return self.cordons.cordoned.get(broker)


def _rack(broker: int, *registered: Mapping[int, Broker]) -> str | None:
    """Return the rack of a broker, by the first of these that has it."""
    return next((brokers[broker].rack for brokers in registered if broker in brokers), None)


def _in_flight(reassignments: Mapping[TopicPartition, Reassignment]) -> Mapping[int, Mapping[str, int]]:
    """Return how many partitions in flight name each broker, by topic."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for tp, move in reassignments.items():
        for broker in move.replicas:
            found[broker][tp.topic] += 1
    return found


def logs_wanted(layout: Layout, emptied: Collection[int]) -> frozenset[int]:
    """Return the brokers to ask for their logs: those that are `emptied`, and all where one of these is down."""
    live = live_brokers(layout.brokers)
    return live if frozenset(emptied) - live else frozenset(emptied)
