"""What a report is made of: the rows of the stages' tables, cluster by cluster (`fleet.outcomes`, `fleet.history`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import COSTS, Row

State = Literal["Planned", "Unchanged", "NotPlanned", "Quarantined"]
"""Unchanged: no move is planned. Quarantined: its newest snapshot cannot be trusted, so nothing is planned."""


class Problem(TypedDict):
    """Why a cluster is quarantined or not planned: a reason of the error tree, and what to do."""

    reason: str
    message: str


@dataclass(slots=True)
class Cluster:
    """One cluster as its newest snapshot has it, and what is planned for it. Rows are in the order of their table."""

    name: str
    cluster_id: str | None
    taken_at: datetime | None
    state: State
    problem: Problem | None
    goal: str
    load: Row  # of cluster_load; empty where there is none, as are `brokers` and `racks` then
    plan: Row  # of plans and planned_load; empty where nothing is planned
    brokers: Mapping[str, Sequence[Any]]  # columns of broker_load
    racks: Sequence[Row]  # of rack_load
    topics: Sequence[Row]  # of topic_growth, those that grow most
    disks: Sequence[Row]  # of disk_growth, those that are full soonest
    leftovers: Sequence[Row]

    @property
    def costs(self) -> Row:
        """What the plan costs, and with `_bound` what no plan for its goal can do without; empty without a plan."""
        return {cost: self.plan[cost] for cost in COSTS} | {"waves": len(self.plan["waves"])} if self.plan else {}


@dataclass(slots=True)
class Fleet:
    """All that a report shows."""

    newest: datetime | None
    """When the newest of all snapshots was taken."""
    version: str
    policy: str
    """The policy's digest."""
    clusters: Iterable[Cluster]
    """They may be made one after another."""
    quarantine: Sequence[Verdict]
    notes: Sequence[str] = ()
    """What its author should know of the policy."""
