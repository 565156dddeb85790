"""The page: its summary, and a row for each cluster with the data of its details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    "Unchanged": ("Unchanged", "no move is planned"),
    "NotPlanned": ("Not planned", "its goal or its cluster does not allow a plan"),
    "Quarantined": ("Quarantined", "its newest snapshot cannot be trusted"),
}
TOTALS = ("brokers", "topics", "partitions", "replicas", "bytes", "violations")
EXAMPLES = 3
Figures = Mapping[str, float | None]
"""A cluster's numbers, those of its plan by the names of `Cluster.costs`: None, or none, where one is not known."""


class Entry(NamedTuple):
    """A cluster's row; its details are JSON already, and of all else there is only what the table shows."""

    name: str
    state: State
    rank: Rank
    figures: Figures
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
    """A column of numbers in the table of clusters: the figure it sorts by, and what it says."""

    name: str
    width: str  # the class by which the style leaves it out where there is no room (p3 first)
    figure: str
    write: Callable[[float], str]
    after: str | None = None  # the figure after the plan, where that is said too
    least_first: bool = False

    def text(self, figures: Figures) -> str:
        """Return what the column says of a cluster."""
        values = [figures.get(figure) for figure in (self.figure, self.after) if figure]
        return " → ".join(self.write(value) for value in values if value is not None)


def render(data: Fleet) -> Iterator[str]:
    """Yield the parts of the report, one HTML document."""
    found: dict[str, list[Verdict]] = {}
    for verdict in data.quarantine:
        found.setdefault(verdict.cluster, []).append(verdict)
    entries = sorted(
        (_entry(cluster, found.get(cluster.name, ())) for cluster in data.clusters),
        key=lambda entry: (*place(entry.rank), -(entry.figures.get("plan_bytes") or 0), entry.name),
    )
    return rendered(
        "reassign.fleet.report",
        fleet=data,
        totals={name: _sum(entries, name) for name in TOTALS},
        states=_states(entries),
        kinds=_kinds(entry.rank.kind for entry in entries),
        costs=_costs(entries),
        slowest=_slowest(entries),
        quarantine=_quarantine(data.quarantine),
        rows=entries,
        columns=_columns(entries),
        goals=[(by.value, of.unit) for by, of in COUNTED.items()],
        STATES=STATES,
        EXAMPLES=EXAMPLES,
        part=numbers.part,
        ratio=numbers.ratio,
    )


def _entry(cluster: Cluster, found: Iterable[Verdict]) -> Entry:
    ranked, costs = rank(cluster), cluster.costs
    disk = next((one for one in cluster.plan.get("balance", ()) if one["by"] == By.DISK), None)
    figures = {
        **{name: cluster.load.get(name) for name in TOTALS},
        **{f"plan_{name}": cost for name, cost in costs.items()},
        "ratio": costs["bytes"] / costs["bytes_bound"] if costs.get("bytes_bound") else None,
        "fullest": disk and disk["before"][1],  # the share of its target that the broker with most has
        "plan_fullest": disk and disk["after"][1],
        "days_until_full": days_until_full(cluster),
    }
    return Entry(cluster.name, cluster.state, ranked, figures, as_json(details(cluster, ranked, found)))


def _columns(entries: Iterable[Entry]) -> list[Column]:
    """Return all columns of numbers; bytes are in one unit."""
    unit = numbers.column_unit(max((entry.figures["bytes"] or 0 for entry in entries), default=0))
    name = numbers.UNITS[unit]

    def in_unit(bytes_: float) -> str:
        return numbers.in_unit(bytes_, unit)

    return [
        Column("Brokers", "p3", "brokers", numbers.count),
        Column("Partitions", "p3", "partitions", numbers.count),
        Column(f"Stored, {name}", "p2", "bytes", in_unit),
        Column("Not spread", "p2", "violations", numbers.count),
        Column("Fullest broker", "p1", "fullest", numbers.percent, after="plan_fullest"),
        Column(f"To copy, {name}", "", "plan_bytes", in_unit),
        Column("×\u00a0least", "p2", "ratio", lambda ratio: f"{ratio:.2f}"),
        Column("Waves", "p3", "plan_waves", numbers.count),
        Column("Days to full", "p1", "days_until_full", numbers.days, least_first=True),
    ]


def _sum(entries: Iterable[Entry], figure: str) -> float:
    return sum(entry.figures.get(figure) or 0 for entry in entries)


def _states(entries: Iterable[Entry]) -> list[tuple[State, int]]:
    found = Counter(entry.state for entry in entries)
    return [(state, found[state]) for state in STATES]


def _kinds(kinds: Iterable[str]) -> list[tuple[str, str, int]]:
    found = Counter(kinds)
    meanings = {kind: meaning for kind, (meaning, _) in KINDS.items()} | {WELL: "nothing of the above"}
    return [(kind, meaning, found[kind]) for kind, meaning in meanings.items()]


def _costs(entries: Sequence[Entry]) -> list[Cost]:
    names = {
        "bytes": ("Bytes copied", numbers.size),
        "moves": ("Replicas moved", numbers.count),
        "waves": ("Waves", numbers.count),
    }
    return [
        Cost(name, _sum(entries, f"plan_{cost}"), _sum(entries, f"plan_{cost}_bound"), write)
        for cost, (name, write) in names.items()
    ]


def _slowest(entries: Iterable[Entry]) -> tuple[float, str] | None:
    """Return the seconds and name of the cluster that takes longest: all take as long where clusters move at once."""
    times = ((one.figures.get("plan_makespan"), one.name) for one in entries if one.figures.get("plan_waves"))
    return max(((seconds, name) for seconds, name in times if seconds is not None), default=None)


def _quarantine(verdicts: Sequence[Verdict]) -> list[Kind]:
    """Return the verdicts by kind and table, those with the most clusters first."""
    found: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in sorted(verdicts):
        found.setdefault((verdict.kind, verdict.table), []).append(verdict)
    kinds = [
        Kind(kind, table, len({one.cluster for one in of}), sum(one.rows for one in of), of)
        for (kind, table), of in found.items()
    ]
    return sorted(kinds, key=lambda one: (-one.clusters, -one.rows, one.kind, one.table))
