"""What a report is made of: plain values, as JSON has them. Bytes and seconds are numbers, times ISO 8601 with a zone.

None is what is not known. Lists named after columns (`ByBroker`, `Loads`) have one value for each broker, in one order.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from reassign.api.goal import COUNTED

State = Literal["Planned", "Balanced", "NotPlanned", "Quarantined"]
"""Balanced: nothing has to move. Quarantined: its newest snapshot cannot be trusted, so nothing is planned."""

UNITS = {by.value: counted.unit for by, counted in COUNTED.items()}
"""Of what is in bytes."""

RESOURCES = tuple(UNITS)


class Problem(TypedDict):
    """Why a cluster is quarantined or not planned: a reason of the error tree, and what to do."""

    reason: str
    message: str


class Balance(TypedDict):
    """How evenly a resource lies, in shares of each broker's target: 1 is just right (problem.model.Balance)."""

    by: str
    before: list[float]  # least, greatest
    after: list[float]
    reachable: float  # no plan has a lower greatest share
    band: list[float]  # what was asked for


Loads = dict[str, list[float]]
"""What lies on each broker, or should, by RESOURCES; targets need not be whole."""


class ByBroker(TypedDict):
    """The brokers, in the order of their ids."""

    id: list[int]
    rack: list[str]
    capacity: list[int | None]  # bytes of all its volumes
    before: Loads
    after: Loads | None  # without a plan None, as is target
    target: Loads | None


Load = dict[str, float]
"""What lies on the brokers of a rack, by RESOURCES."""


class Rack(TypedDict):
    """A rack at any level: `path` is `/dc1/row2` at level 2, a plain name at level 1."""

    level: int
    path: str
    brokers: int
    before: Load
    after: Load | None


class Wave(TypedDict):
    """A wave of the plan; `seconds` are at the throttle, None without one."""

    partitions: int
    bytes: int
    seconds: float | None


class Certificate(TypedDict):
    """What the plan costs, beside what no plan for its goal can do without (problem.model.Certificate)."""

    bytes: int
    bytes_bound: int
    moves: int
    moves_bound: int
    leaders: int
    waves: int
    waves_bound: int
    makespan: float | None
    makespan_bound: float | None


class Unmet(TypedDict):
    """Something of the goal that the plan does not reach, and the nearest that it does."""

    what: str
    nearest: str


class TopicGrowth(TypedDict):
    """How fast a topic grows over the snapshots that are kept, replicas counted."""

    topic: str
    bytes: int
    bytes_per_day: float


class DiskGrowth(TypedDict):
    """When a log directory's volume is full if it grows on as it did; None: it does not grow, or that is unknown."""

    broker: int
    path: str
    used: int
    total: int | None
    bytes_per_day: float
    days_until_full: float | None


class Growth(TypedDict):
    """The topics that grow most, and the disks that are full soonest."""

    topics: list[TopicGrowth]
    disks: list[DiskGrowth]


class Leftover(TypedDict):
    """Something left behind: a throttle with nothing in flight, a reassignment in flight for days."""

    kind: str
    what: str
    since: str | None


class Cluster(TypedDict):
    """One cluster as its newest snapshot has it, and what is planned for it."""

    cluster: str
    cluster_id: str | None
    taken_at: str | None
    state: State
    problem: Problem | None
    brokers: int | None
    topics: int | None
    partitions: int | None
    replicas: int | None
    bytes: int | None
    violations: int | None  # partitions not spread over racks, now
    goal: str
    resources: list[Balance]
    by_broker: ByBroker | None
    by_rack: list[Rack]
    waves: list[Wave]
    certificate: Certificate | None
    unmet: list[Unmet]
    growth: Growth
    leftovers: list[Leftover]


class Quarantined(TypedDict):
    """Rows of a snapshot that did not pass a check: how many, and one of them in words."""

    cluster: str
    date: str
    table: str
    kind: str
    rows: int
    example: str


class Fleet(TypedDict):
    """All that a report shows. `newest` is when the newest of all snapshots was taken, empty where none can be read;
    `policy` is the policy's digest.
    """

    newest: str
    version: str
    policy: str
    clusters: list[Cluster]
    quarantine: list[Quarantined]
