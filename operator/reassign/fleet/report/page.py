"""The page: what it says at the top, a row for each cluster, and beside each row what its details are drawn from."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reassign.core.progress import duration
from reassign.fleet.report import numbers
from reassign.fleet.report.details import details
from reassign.fleet.report.model import Certificate, Cluster, Fleet, Quarantined, State
from reassign.fleet.report.rank import KINDS, SOON, WELL, Rank, days_until_full, to_move, worst_first

STATES: dict[State, tuple[str, str]] = {
    "Planned": ("Planned", "replicas or leaders are to move"),
    "Balanced": ("Balanced", "nothing has to move"),
    "NotPlanned": ("Not planned", "its goal or its cluster does not allow a plan"),
    "Quarantined": ("Quarantined", "its newest snapshot cannot be trusted"),
}
EXAMPLES = 3


class Cost(NamedTuple):
    """What all plans cost together, and what no plans for their goals can do without."""

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


class Row(NamedTuple):
    """A cluster in the table, with what is drawn when it is opened."""

    cluster: Cluster
    rank: Rank
    certificate: Certificate | None
    spread: tuple[float, float] | None
    days: float | None
    details: dict[str, Any]


def render(data: Fleet) -> str:
    """The report as one HTML document; its own style and script are the only ones that a browser runs in it."""
    ranked = worst_first(data["clusters"])
    found: dict[str, list[Quarantined]] = {}
    for entry in data["quarantine"]:
        found.setdefault(entry["cluster"], []).append(entry)
    rows = [_row(cluster, rank, found.get(cluster["cluster"], [])) for cluster, rank in ranked]
    style, script = _text("report.css"), _text("report.js")
    unit = numbers.column_unit(max((cluster["bytes"] or 0 for cluster in data["clusters"]), default=0))
    return _environment().get_template("report.html.jinja").render(
        fleet=data,
        totals=_totals(data["clusters"]),
        states=_states(data["clusters"]),
        kinds=_kinds(rank.kind for _, rank in ranked),
        costs=_costs(data["clusters"]),
        slowest=_slowest(data["clusters"]),
        quarantine=_quarantine(data["quarantine"]),
        rows=rows,
        unit=unit,
        style=Markup(style),
        script=Markup(script),
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )  # fmt: skip


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reassign.fleet.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":"), "allow_nan": False}
    environment.filters |= {
        "count": numbers.count,
        "size": numbers.size,
        "percent": numbers.percent,
        "moment": numbers.moment,
        "duration": duration,
        "in_unit": numbers.in_unit,
    }
    environment.globals |= {
        "STATES": STATES,
        "UNITS": numbers.UNITS,
        "EXAMPLES": EXAMPLES,
        "SOON": SOON,
        "part": numbers.part,
        "ratio": numbers.ratio,
        "counted": numbers.counted,
        "to_move": to_move,
    }
    return environment


def _text(name: str) -> str:
    return files("reassign.fleet.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _row(cluster: Cluster, rank: Rank, found: list[Quarantined]) -> Row:
    disk = next((one for one in cluster["resources"] if one["by"] == "Disk"), None)
    spread = (disk["before"][1], disk["after"][1]) if disk else None
    return Row(cluster, rank, cluster["certificate"], spread, days_until_full(cluster), details(cluster, rank, found))


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
