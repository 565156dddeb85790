"""The page: its summary, and a row for each cluster with the data of its details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from reassign.api.goal import COUNTED, By
from reassign.fleet.choose import Verdict
from reassign.fleet.report.details import details
from reassign.fleet.report.model import Cluster, Fleet, State
from reassign.fleet.report.rank import KINDS, WELL, Rank, days_until_full, place, rank
from reassign.page import numbers
from reassign.page.document import as_json, rendered

STATES: dict[State, tuple[str, str]] = {
    "Planned": ("Planned", "replicas or leaders are to move"),
    "Balanced": ("Balanced", "nothing has to move"),
    "NotPlanned": ("Not planned", "its goal or its cluster does not allow a plan"),
    "Quarantined": ("Quarantined", "its newest snapshot cannot be trusted"),
}
TOTALS = ("brokers", "topics", "partitions", "replicas", "bytes", "violations")
EXAMPLES = 3


class Entry(NamedTuple):
    """A cluster's row; its details are JSON already."""

    cluster: Cluster
    rank: Rank
    details: Markup


class Cost(NamedTuple):
    """The cost of all plans together, and the least possible."""

    name: str
    plans: float
    bound: float
    write: Callable[[float], str]


class Kind(NamedTuple):
    """All that failed one check of one table."""

    kind: str
    table: str
    clusters: int
    rows: int
    entries: list[Verdict]


class Column(NamedTuple):
    """A column of numbers in the table of clusters: what it sorts by (None: not known), and what it says."""

    name: str
    width: str  # the class by which the style leaves it out where there is no room (p3 first)
    value: Callable[[Cluster], float | None]
    write: Callable[[float], str]
    planned: Callable[[Cluster], float | None] | None = None  # the value after the plan, where that is said too
    least_first: bool = False

    def text(self, cluster: Cluster) -> str:
        """What it says of a cluster."""
        values = [self.value(cluster), self.planned(cluster) if self.planned else None]
        return " → ".join(self.write(value) for value in values if value is not None)


def render(data: Fleet) -> str:
    """The report as one HTML document."""
    found: dict[str, list[Verdict]] = {}
    for verdict in data.quarantine:
        found.setdefault(verdict.cluster, []).append(verdict)
    entries = []
    for cluster in data.clusters:
        ranked = rank(cluster)
        text = as_json(details(cluster, ranked, found.get(cluster.name, [])))
        entries.append(Entry(cluster.without_details(), ranked, text))
    entries.sort(key=lambda entry: place(entry.cluster, entry.rank))
    clusters = [entry.cluster for entry in entries]
    return rendered(
        "reassign.fleet.report",
        fleet=data,
        totals={name: sum(cluster.load.get(name) or 0 for cluster in clusters) for name in TOTALS},
        states=_states(clusters),
        kinds=_kinds(entry.rank.kind for entry in entries),
        costs=_costs(clusters),
        slowest=_slowest(clusters),
        quarantine=_quarantine(data.quarantine),
        rows=entries,
        columns=_columns(clusters),
        goals=[(by.value, of.unit) for by, of in COUNTED.items()],
        STATES=STATES,
        EXAMPLES=EXAMPLES,
        part=numbers.part,
        ratio=numbers.ratio,
    )


def _columns(clusters: Iterable[Cluster]) -> list[Column]:
    """All columns of numbers; bytes are in one unit."""
    unit = numbers.column_unit(max((cluster.load.get("bytes", 0) for cluster in clusters), default=0))
    name = numbers.UNITS[unit]

    def in_unit(bytes_: float) -> str:
        return numbers.in_unit(bytes_, unit)

    return [
        Column("Brokers", "p3", lambda one: one.load.get("brokers"), numbers.count),
        Column("Partitions", "p3", lambda one: one.load.get("partitions"), numbers.count),
        Column(f"Stored, {name}", "p2", lambda one: one.load.get("bytes"), in_unit),
        Column("Not spread", "p2", lambda one: one.load.get("violations"), numbers.count),
        Column(
            "Fullest broker",
            "p1",
            lambda one: _fullest(one, "before"),
            numbers.percent,
            planned=lambda one: _fullest(one, "after"),
        ),
        Column(f"To copy, {name}", "", lambda one: one.plan.get("bytes"), in_unit),
        Column("×\u00a0least", "p2", _ratio, lambda ratio: f"{ratio:.2f}"),
        Column("Waves", "p3", lambda one: one.costs.get("waves"), numbers.count),
        Column("Days to full", "p1", days_until_full, numbers.days, least_first=True),
    ]


def _fullest(cluster: Cluster, when: str) -> float | None:
    """The share of the disk that the broker with the most for its target has, before or after the plan."""
    return next((one[when][1] for one in cluster.plan.get("balance", ()) if one["by"] == By.DISK), None)


def _ratio(cluster: Cluster) -> float | None:
    bound = cluster.plan.get("bytes_bound")
    return cluster.plan["bytes"] / bound if bound else None


def _states(clusters: Iterable[Cluster]) -> list[tuple[State, int]]:
    found = Counter(cluster.state for cluster in clusters)
    return [(state, found[state]) for state in STATES]


def _kinds(kinds: Iterable[str]) -> list[tuple[str, str, int]]:
    found = Counter(kinds)
    meanings = {kind: meaning for kind, (meaning, _) in KINDS.items()} | {WELL: "nothing of the above"}
    return [(kind, meaning, found[kind]) for kind, meaning in meanings.items()]


def _costs(clusters: Iterable[Cluster]) -> list[Cost]:
    plans = [cluster.costs for cluster in clusters if cluster.plan]
    names = {
        "bytes": ("Bytes copied", numbers.size),
        "moves": ("Replicas moved", numbers.count),
        "waves": ("Waves", numbers.count),
    }
    return [
        Cost(name, sum(plan[cost] for plan in plans), sum(plan[f"{cost}_bound"] for plan in plans), write)
        for cost, (name, write) in names.items()
    ]


def _slowest(clusters: Iterable[Cluster]) -> tuple[float, str] | None:
    """The seconds of the cluster whose waves take longest: what all take together where clusters move at once."""
    times = [(cluster.plan.get("makespan"), cluster.name) for cluster in clusters if cluster.plan.get("waves")]
    return max(((seconds, name) for seconds, name in times if seconds is not None), default=None)


def _quarantine(verdicts: Sequence[Verdict]) -> list[Kind]:
    """The verdicts by what is wrong, those with the most clusters first."""
    found: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in sorted(verdicts):
        found.setdefault((verdict.kind, verdict.table), []).append(verdict)
    kinds = [
        Kind(kind, table, len({one.cluster for one in of}), sum(one.rows for one in of), of)
        for (kind, table), of in found.items()
    ]
    return sorted(kinds, key=lambda one: (-one.clusters, -one.rows, one.kind, one.table))
