"""The order of clusters: first those that need a person, then those that a plan fixes, the worst of each first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from reassign.api.goal import COUNTED, By
from reassign.fleet.outcomes import Row
from reassign.fleet.report.model import Cluster, State
from reassign.page.numbers import counted, percent
from reassign.text import listed

SOON = 14
"""Days. A disk that is full within them needs a person: waves may take about as long."""


class Rank(NamedTuple):
    """The reason for a cluster's place: its kind, its measure within the kind, and that in words."""

    kind: str
    measure: float
    words: str


def _left_out(state: State, cluster: Cluster) -> tuple[float, str] | None:
    return (0, cluster.problem["reason"]) if cluster.state == state and cluster.problem else None


def _full_soon(cluster: Cluster) -> tuple[float, str] | None:
    days = days_until_full(cluster)
    if days is None or days > SOON:
        return None
    return -days, f"in {counted(int(days), 'day')}" if days >= 1 else "within a day"


def _unmet(cluster: Cluster) -> tuple[float, str] | None:
    return _first_of(cluster.plan.get("unmet", ()))


def _not_spread(cluster: Cluster) -> tuple[float, str] | None:
    count = cluster.load.get("violations")
    return (count, counted(count, "partition")) if count else None


def _out_of_band(cluster: Cluster) -> tuple[float, str] | None:
    worst = max(cluster.plan.get("balance", ()), key=_outside, default=None)
    if worst is None or _outside(worst) <= 0:
        return None
    (least, greatest), (low, high) = worst["before"], worst["band"]
    share = greatest if greatest - high >= low - least else least
    return _outside(worst), f"one broker at {percent(share)} of its {COUNTED[By(worst['by'])].what}"


def _left_over(cluster: Cluster) -> tuple[float, str] | None:
    return _first_of(cluster.leftovers)


def _outside(balance: Row) -> float:
    return float(max(balance["before"][1] - balance["band"][1], balance["band"][0] - balance["before"][0]))


def _first_of(rows: Iterable[Row]) -> tuple[float, str] | None:
    named = [row["what"] for row in rows]
    return (len(named), listed(named, most=1)) if named else None


KINDS: dict[str, tuple[str, Callable[[Cluster], tuple[float, str] | None]]] = {
    "Quarantined": ("its newest snapshot cannot be trusted: nothing is planned", partial(_left_out, "Quarantined")),
    "Not planned": ("its goal or its cluster does not allow a plan", partial(_left_out, "NotPlanned")),
    "Disk full soon": (f"within {SOON} days if it grows on as it did; the soonest first", _full_soon),
    "Goal partly met": ("the plan cannot reach all that is asked for", _unmet),
    "Not spread": ("partitions are not spread over racks; the most first", _not_spread),
    "Out of band": ("a broker has more or less than the target band; the furthest out first", _out_of_band),
    "Leftovers": ("throttles or reassignments that were left behind", _left_over),
}
"""What makes a cluster come first, worst first. A cluster is of the first kind that it meets."""

WELL = "Well"


def rank(cluster: Cluster) -> Rank:
    """Return the rank of a cluster, by the first kind that it meets."""
    for kind, (_, meets) in KINDS.items():
        if found := meets(cluster):
            return Rank(kind, *found)
    return Rank(WELL, 0, "")


def place(ranked: Rank) -> tuple[int, float]:
    """Return a key that orders clusters: by kind, then measure."""
    return [*KINDS, WELL].index(ranked.kind), -ranked.measure


def days_until_full(cluster: Cluster) -> float | None:
    """Return the days until the first disk of a cluster is full, where one grows."""
    return min((disk["days_until_full"] for disk in cluster.disks if disk["days_until_full"] is not None), default=None)
