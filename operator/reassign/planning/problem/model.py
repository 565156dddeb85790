"""The values of planning: a cluster, a goal, and the plan that comes out. Arrays and small values, no client, no clock.

Letters of the shapes: B brokers, D log directories, T topics, P partitions, R replicas of one partition at most.
Brokers are indices into `Cluster.brokers` everywhere but there, so that ids may be anything; -1 fills rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reassign.api.goal import EXCLUDED_BY_DEFAULT, Awareness, By, FencedBrokers, GoalPart, Scope
from reassign.planning.unseen import ALL_SEEN, Unseen

Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

UNKNOWN = -1
"""Bytes that are not known, and slots of a row that hold nothing."""


@dataclass(frozen=True, slots=True)
class Directories:
    """The log directories (KIP-112) of all brokers, sorted by broker and path."""

    broker: Ints  # (D,) index of the broker
    path: tuple[str, ...]  # (D,)
    total: Bytes  # (D,) bytes of the directory's volume; UNKNOWN where the broker does not report them
    usable: Bytes  # (D,) bytes that are free on the volume, or UNKNOWN
    cordoned: Bools  # (D,) takes no new replicas (KIP-1066)
    online: Bools  # (D,)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A whole cluster at one moment, sorted by topic name and partition."""

    id: str
    brokers: Ints  # (B,) ids, ascending
    racks: tuple[str, ...]  # (B,) a rack, or a path of racks (KIP-879); "" for none
    registered: Bools  # (B,) up or fenced; before Kafka 4.0, which lists no fenced ones, only those that are up
    alive: Bools  # (B,) registered and not fenced
    directories: Directories
    topics: tuple[str, ...]  # (T,) sorted by name
    topic: Ints  # (P,) index into topics
    partition: Ints  # (P,) number in its topic
    replicas: Ints  # (P, R)
    """In their order, the preferred leader first; of a partition in flight the target's."""
    sizes: Bytes  # (P,)
    """Bytes of one replica: the leader's, or the greatest known one where the leader's is not known."""
    in_flight: Bools  # (P,) being reassigned now: is planned around, never moved
    directory: Ints = field(default_factory=lambda: np.empty((0, 0), np.int32))  # (P, R) index into directories
    unseen: Unseen | None = ALL_SEEN
    """None: it is not known."""


class GoalWords(NamedTuple):
    """What an author of a goal writes to have racks count otherwise, and internal topics as all others."""

    flat: str = "`racks: {awareness: Flat}`"
    none: str = "`racks: {awareness: None}`"
    all_topics: str = "`topics: {exclude: []}`"


@dataclass(frozen=True, slots=True)
class PlacementGoal:
    """What is wanted of a cluster. It has broker ids, not indices.

    A topic is planned when one of `include` and none of `exclude` matches: shell-like patterns (`*`, `?`, `[seq]`).
    """

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] | None = None
    """None: internal topics, which only leave drained brokers."""
    drain: frozenset[int] = frozenset()
    brokers: frozenset[int] | None = None
    """Brokers that may have replicas; None: all."""
    avoid: frozenset[int] = frozenset()
    """Brokers that get no new replica; what they have may stay."""
    replication_factor: int | None = None
    balance: frozenset[By] = frozenset()
    """Empty: only replicas that have to move are moved."""
    tolerance: float = 0.10
    awareness: Awareness = Awareness.TREE
    min_free: float = 0.10  # share of each volume that stays free
    scope: Scope = Scope.ALL
    """DRAINED: of partitions with a replica on a drained broker, the replicas there; nothing else moves."""
    fenced_brokers: FencedBrokers = FencedBrokers.KEEP
    """KEEP: a partition with a replica on a fenced broker that is not drained is not moved."""
    words: GoalWords = field(default=GoalWords(), compare=False)

    @property
    def excluded(self) -> tuple[str, ...]:
        return EXCLUDED_BY_DEFAULT if self.exclude is None else self.exclude


class Cause(Enum):
    """Why replicas stay that a goal would move, where who asked for the goal may go on all the same."""

    IN_FLIGHT = "their partitions are in flight"
    NO_LIVE_REPLICA = "their partitions have no replica that can be copied"
    EXCLUDED = "their topics are excluded"


class UnmetGoal(NamedTuple):
    """Something of the goal that this plan does not reach: what it is, and the nearest that it reaches."""

    what: str
    nearest: str
    part: GoalPart | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly one resource lies before and after, in shares of each broker's target: 1 is exactly on target."""

    by: By
    before: tuple[float, float]  # least, greatest
    after: tuple[float, float]
    reachable: float
    """A lower bound of the greatest share that any assignment has."""
    band: tuple[float, float]
    """The shares that were asked for."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far from the optimum a plan is: its costs, and proven lower bounds of the costs of every plan."""

    bytes: int
    bytes_bound: int
    moves: int  # replicas added somewhere
    moves_bound: int
    leaders: int  # partitions whose preferred leader changes
    balance: tuple[Balance, ...]
    waves: int
    waves_bound: int
    makespan: float | None = None  # seconds at the throttle; None without one
    makespan_bound: float | None = None
    unmet: tuple[UnmetGoal, ...] = ()
    unbeaten: tuple[By, ...] = ()
    """What is above its band, though no plan has a smaller greatest share."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the replicas go, and in which waves, in the order of the cluster's partitions."""

    target: Ints  # (P, R')
    target_directory: Ints  # (P, R')
    """Index into the cluster's directories where one has to be named, else UNKNOWN."""
    wave: Ints  # (P,)
    """Counted from 0; -1: the partition stays as it is."""
    certificate: Certificate
