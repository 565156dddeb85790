"""The page: its summary, and a row for each cluster with the data of its details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from reassign.fleet.report.details import details
from reassign.fleet.report.model import UNITS, Cluster, Fleet, Quarantined, State
from reassign.fleet.report.rank import KINDS, WELL, Rank, days_until_full, to_move, worst_first
from reassign.page import numbers
from reassign.page.document import rendered

STATES: dict[State, tuple[str, str]] = {
    "Planned": ("Planned", "replicas or leaders are to move"),
    "Balanced": ("Balanced", "nothing has to move"),
    "NotPlanned": ("Not planned", "its goal or its cluster does not allow a plan"),
    "Quarantined": ("Quarantined", "its newest snapshot cannot be trusted"),
}
EXAMPLES = 3


class Cost(NamedTuple):
    """The cost of all plans together, and the least possible."""

    name: str
    plans: float
    bound: float
    write: Any


class Kind(NamedTuple):
    """All that failed one check of one table."""

    kind: str
    table: str
    clusters: int
    rows: int
    entries: list[Quarantined]


class Column(NamedTuple):
    """A column of numbers in the table of clusters: what it sorts by (None: not known), and what it says."""

    name: str
    width: str  # the class by which the style leaves it out where there is no room (p3 first)
    value: Callable[[Cluster], float | None]
    text: Callable[[Cluster], str]
    least_first: bool = False


class Cell(NamedTuple):
    """A number of a cluster."""

    column: Column
    value: float | None
    text: str


class Row(NamedTuple):
    """A cluster in the table, with what is wrong with its snapshots."""

    cluster: Cluster
    rank: Rank
    cells: list[Cell]
    found: list[Quarantined]

    @property
    def details(self) -> dict[str, Any]:
        """What is drawn when it is opened; not held, since it is as large as all else."""
        return details(self.cluster, self.rank, self.found)


def render(data: Fleet) -> str:
    """The report as one HTML document."""
    ranked = worst_first(data["clusters"])
    found: dict[str, list[Quarantined]] = {}
    for entry in data["quarantine"]:
        found.setdefault(entry["cluster"], []).append(entry)
    columns = _columns(data["clusters"])
    rows = [Row(cluster, rank, _cells(columns, cluster), found.get(cluster["cluster"], [])) for cluster, rank in ranked]
    return rendered(
        "reassign.fleet.report",
        fleet=data,
        totals=_totals(data["clusters"]),
        states=_states(data["clusters"]),
        kinds=_kinds(rank.kind for _, rank in ranked),
        costs=_costs(data["clusters"]),
        slowest=_slowest(data["clusters"]),
        quarantine=_quarantine(data["quarantine"]),
        rows=rows,
        columns=columns,
        goals=list(UNITS.items()),
        STATES=STATES,
        EXAMPLES=EXAMPLES,
        part=numbers.part,
        ratio=numbers.ratio,
    )


def _columns(clusters: list[Cluster]) -> list[Column]:
    """All columns of numbers; bytes are in one unit."""
    unit = numbers.column_unit(max((cluster["bytes"] or 0 for cluster in clusters), default=0))
    name = numbers.UNITS[unit]
    return [
        Column("Brokers", "p3", lambda one: one["brokers"], lambda one: numbers.count(one["brokers"] or 0)),
        Column("Partitions", "p3", lambda one: one["partitions"], lambda one: numbers.count(one["partitions"] or 0)),
        Column(f"Stored, {name}", "p2", lambda one: one["bytes"], lambda one: numbers.in_unit(one["bytes"] or 0, unit)),
        Column("Not spread", "p2", lambda one: one["violations"], lambda one: numbers.count(one["violations"] or 0)),
        Column("Fullest broker", "p1", _fullest, _fullest_in_words),
        Column(f"To copy, {name}", "", _copied, lambda one: numbers.in_unit(to_move(one), unit)),
        Column("×\u00a0least", "p2", _ratio, lambda one: f"{_ratio(one):.2f}"),
        Column("Waves", "p3", _waves, lambda one: numbers.count(_waves(one) or 0)),
        Column("Days to full", "p1", days_until_full, lambda one: numbers.days(days_until_full(one) or 0), True),
    ]


def _cells(columns: list[Column], cluster: Cluster) -> list[Cell]:
    known = [(column, column.value(cluster)) for column in columns]
    return [Cell(column, value, "" if value is None else column.text(cluster)) for column, value in known]


def _fullest(cluster: Cluster) -> float | None:
    """The share of the disk that the broker with the most for its target has, before the plan."""
    return next((one["before"][1] for one in cluster["resources"] if one["by"] == "Disk"), None)


def _fullest_in_words(cluster: Cluster) -> str:
    disk = next(one for one in cluster["resources"] if one["by"] == "Disk")
    return f"{numbers.percent(disk['before'][1])} → {numbers.percent(disk['after'][1])}"


def _copied(cluster: Cluster) -> int | None:
    return cluster["certificate"] and cluster["certificate"]["bytes"]


def _ratio(cluster: Cluster) -> float | None:
    plan = cluster["certificate"]
    return plan["bytes"] / plan["bytes_bound"] if plan and plan["bytes_bound"] else None


def _waves(cluster: Cluster) -> int | None:
    return cluster["certificate"] and cluster["certificate"]["waves"]


def _totals(clusters: list[Cluster]) -> dict[str, int]:
    return {
        name: sum(one or 0 for one in known)
        for name, known in {
            "brokers": (cluster["brokers"] for cluster in clusters),
            "topics": (cluster["topics"] for cluster in clusters),
            "partitions": (cluster["partitions"] for cluster in clusters),
            "replicas": (cluster["replicas"] for cluster in clusters),
            "bytes": (cluster["bytes"] for cluster in clusters),
            "violations": (cluster["violations"] for cluster in clusters),
        }.items()
    }


def _states(clusters: list[Cluster]) -> list[tuple[State, int]]:
    found = Counter(cluster["state"] for cluster in clusters)
    return [(state, found[state]) for state in STATES]


def _kinds(kinds: Iterable[str]) -> list[tuple[str, str, int]]:
    found = Counter(kinds)
    meanings = {kind: meaning for kind, (meaning, _) in KINDS.items()} | {WELL: "nothing of the above"}
    return [(kind, meaning, found[kind]) for kind, meaning in meanings.items()]


def _costs(clusters: list[Cluster]) -> list[Cost]:
    plans = [cluster["certificate"] for cluster in clusters if cluster["certificate"]]
    return [
        Cost("Bytes copied", sum(p["bytes"] for p in plans), sum(p["bytes_bound"] for p in plans), numbers.size),
        Cost("Replicas moved", sum(p["moves"] for p in plans), sum(p["moves_bound"] for p in plans), numbers.count),
        Cost("Waves", sum(p["waves"] for p in plans), sum(p["waves_bound"] for p in plans), numbers.count),
    ]


def _slowest(clusters: list[Cluster]) -> tuple[Cluster, float] | None:
    """The cluster whose waves take longest, and the seconds: what all take together where clusters move at once."""
    timed = [
        (cluster, plan["makespan"])
        for cluster in clusters
        if (plan := cluster["certificate"]) and plan["makespan"] is not None
    ]
    return max(timed, key=lambda one: (one[1], one[0]["cluster"]), default=None)


def _quarantine(entries: list[Quarantined]) -> list[Kind]:
    """The entries by what is wrong, those with the most clusters first."""
    found: dict[tuple[str, str], list[Quarantined]] = {}
    for entry in sorted(entries, key=lambda one: (one["cluster"], one["date"], one["example"])):
        found.setdefault((entry["kind"], entry["table"]), []).append(entry)
    kinds = [
        Kind(kind, table, len({one["cluster"] for one in of}), sum(one["rows"] for one in of), of)
        for (kind, table), of in found.items()
    ]
    return sorted(kinds, key=lambda one: (-one.clusters, -one.rows, one.kind, one.table))
