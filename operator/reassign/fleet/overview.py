"""The content of a report, from the tables of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

import reassign
from reassign.api.goal import COUNTED
from reassign.fleet.answers import rows_of
from reassign.fleet.policy import Policy, Terms
from reassign.fleet.report import model

TABLES = ("broker_load", "rack_load", "cluster_load", "topic_growth", "disk_growth", "leftovers", "plans")
MOST = 10
"""Topics and disks of a cluster that are shown: those that grow most, and are full soonest."""

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]


class Seen(NamedTuple):
    """A cluster's newest snapshot; `problem` is why it is left out, None where it is not."""

    cluster: str
    cluster_id: str | None
    taken_at: datetime | None
    problem: model.Problem | None


def fleet(
    seen: Sequence[Seen], quarantine: Iterable[Row], tables: Mapping[str, pa.Table], policy: Policy
) -> model.Fleet:
    """`tables` are TABLES of assess and plan, sorted by cluster."""
    in_order = sorted(seen)
    names = [each.cluster for each in in_order]
    rows = zip(*(by_cluster(tables[table], names) for table in TABLES), strict=True)
    times = [each.taken_at for each in seen if each.taken_at]
    return {
        "newest": max(times).isoformat() if times else "",
        "version": reassign.__version__,
        "policy": policy.digest,
        "clusters": [
            _cluster(each, dict(zip(TABLES, of_one, strict=True)), policy.terms(each.cluster))
            for each, of_one in zip(in_order, rows, strict=True)
        ],
        "quarantine": [
            {
                "cluster": row["cluster"],
                "date": row["date"],
                "table": row["table"],
                "kind": row["kind"],
                "rows": row["rows"],
                "example": row["example"],
            }
            for row in quarantine
        ],
    }


def by_cluster(table: pa.Table, clusters: Iterable[str]) -> Iterator[list[Row]]:
    """Yield the rows of each of these clusters, which are in order, as the table is: so no others are held."""
    groups = groupby(rows_of(table), key=lambda row: str(row["cluster"]))
    name, rows = next(groups, (None, None))
    for cluster in clusters:
        while name is not None and name < cluster:
            name, rows = next(groups, (None, None))
        yield list(rows) if rows and name == cluster else []


def _cluster(seen: Seen, rows: Rows, terms: Terms) -> model.Cluster:
    summary: Any = rows["plans"][0] if rows["plans"] else None
    problem: model.Problem | None = seen.problem or (summary and summary["problem"])
    plan = summary if summary and not summary["problem"] else None
    load: Row = rows["cluster_load"][0] if rows["cluster_load"] else {}
    return {
        "cluster": seen.cluster,
        "cluster_id": seen.cluster_id,
        "taken_at": seen.taken_at.isoformat() if seen.taken_at else None,
        "state": state(seen, summary),
        "problem": problem,
        "brokers": load.get("brokers"),
        "topics": load.get("topics"),
        "partitions": load.get("partitions"),
        "replicas": load.get("replicas"),
        "bytes": load.get("bytes"),
        "violations": load.get("violations"),
        "goal": goal(terms),
        "resources": plan["balance"] if plan else [],
        "by_broker": _by_broker(rows, plan),
        "by_rack": _by_rack(rows, plan),
        "waves": plan["waves"] if plan else [],
        "certificate": _certificate(plan) if plan else None,
        "unmet": plan["unmet"] if plan else [],
        "growth": _growth(rows),
        "leftovers": [
            {"kind": row["kind"], "what": row["what"], "since": _time(row["since"])}
            for row in sorted(rows["leftovers"], key=lambda row: (row["kind"], row["what"]))
        ],
    }


def state(seen: Seen, summary: Any) -> model.State:
    """Return the state of a cluster."""
    if seen.problem:
        return "Quarantined"
    if not summary or summary["problem"]:
        return "NotPlanned"
    return "Planned" if summary["waves"] else "Balanced"


def goal(terms: Terms) -> str:
    """Return the goal in a line."""
    goal, parts = terms.goal, []
    if goal.drain_brokers:
        parts.append(f"drain {', '.join(map(str, goal.drain_brokers))}")
    if goal.brokers:
        parts.append(f"only brokers {', '.join(map(str, goal.brokers))}")
    if goal.replication_factor:
        parts.append(f"replication factor {goal.replication_factor}")
    if goal.balance:
        by = ", ".join(each.value.lower() for each in goal.balance.by)
        parts.append(f"balance {by} within {goal.balance.tolerance_percent} %")
    return "; ".join(parts)


def _by_broker(rows: Rows, plan: Any) -> model.ByBroker | None:
    brokers = sorted(rows["broker_load"], key=lambda row: int(row["broker"]))
    if not brokers:
        return None
    before: model.Loads = {by.value: [row[of.what] for row in brokers] for by, of in COUNTED.items()}
    return {
        "id": [row["broker"] for row in brokers],
        "rack": [row["rack"] or "" for row in brokers],
        "capacity": [row["capacity"] for row in brokers],
        "before": plan["before"] if plan else before,
        "after": plan["after"] if plan else None,
        "target": plan["target"] if plan else None,
    }


def _by_rack(rows: Rows, plan: Any) -> list[model.Rack]:
    after = _after_by_rack(plan) if plan else {}
    return [
        {
            "level": row["level"],
            "path": row["path"],
            "brokers": row["brokers"],
            "before": {by.value: row[of.what] for by, of in COUNTED.items()},
            "after": after.get((row["level"], row["path"])),
        }
        for row in sorted(rows["rack_load"], key=lambda row: (row["level"], row["path"]))
    ]


def _after_by_rack(plan: Any) -> dict[tuple[int, str], model.Load]:
    found: dict[tuple[int, str], model.Load] = {}
    loads = zip(*(plan["after"][by] for by in model.RESOURCES), strict=True)
    for rack, added in zip(plan["racks"], loads, strict=True):
        names = rack.removeprefix("/").split("/") if rack.startswith("/") else [rack]
        for level in range(1, len(names) + 1):
            path = "/" + "/".join(names[:level]) if rack.startswith("/") else rack
            load = found.setdefault((level, path), dict.fromkeys(model.RESOURCES, 0))
            for by, amount in zip(model.RESOURCES, added, strict=True):
                load[by] += amount
    return found


def _certificate(plan: Any) -> model.Certificate:
    return {
        "bytes": plan["bytes"],
        "bytes_bound": plan["bytes_bound"],
        "moves": plan["moves"],
        "moves_bound": plan["moves_bound"],
        "leaders": plan["leaders"],
        "waves": len(plan["waves"]),
        "waves_bound": plan["waves_bound"],
        "makespan": plan["makespan"],
        "makespan_bound": plan["makespan_bound"],
    }


def _growth(rows: Rows) -> model.Growth:
    """Return the growth of topics and disks that have a size now and had another one before."""
    topics = sorted(
        _known(rows["topic_growth"], "bytes", "bytes_per_day"), key=lambda row: (-row["bytes_per_day"], row["topic"])
    )
    disks = sorted(
        _known(rows["disk_growth"], "used_bytes", "bytes_per_day"),
        key=lambda row: (
            row["days_until_full"] is None,
            row["days_until_full"] or 0,
            -row["bytes_per_day"],
            row["broker"],
            row["path"],
        ),
    )
    return {
        "topics": [
            {"topic": row["topic"], "bytes": row["bytes"], "bytes_per_day": row["bytes_per_day"]}
            for row in topics[:MOST]
        ],
        "disks": [
            {
                "broker": row["broker"],
                "path": row["path"],
                "used": row["used_bytes"],
                "total": row["total_bytes"],
                "bytes_per_day": row["bytes_per_day"],
                "days_until_full": row["days_until_full"],
            }
            for row in disks[:MOST]
        ],
    }


def _known(rows: Sequence[Row], *columns: str) -> list[Row]:
    return [row for row in rows if all(row[column] is not None for column in columns)]


def _time(value: datetime | str | None) -> str | None:
    return value.isoformat() if isinstance(value, datetime) else value
