"""The content of a report, from the tables of the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import reassign
from reassign.api.goal import FencedBrokers, Scope
from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import LOADS, Row, rows_of
from reassign.fleet.policy import FleetPolicy, Terms
from reassign.fleet.report.model import Cluster, Fleet, Problem, State

TABLES = ("cluster_load", "plans", "topic_growth", "disk_growth", "leftovers")
OF_DETAILS = ["cluster", "broker_load", "rack_load", "planned_load"]
"""The columns of the executors' tables that are shown."""
OF_BROKERS = ("broker", "rack", "capacity", *LOADS)
MOST = 10
"""Topics and disks of a cluster that are shown: those that grow most, and are full soonest."""


class Seen(NamedTuple):
    """A cluster's newest snapshot."""

    cluster: str
    cluster_id: str | None
    taken_at: datetime | None
    problem: Problem | None
    """Why the cluster is left out, or None."""


def fleet(
    seen: Sequence[Seen],
    quarantine: Sequence[Verdict],
    tables: Mapping[str, pa.Table],
    details: Iterable[pa.Table],
    policy: FleetPolicy,
    notes: Sequence[str] = (),
) -> Fleet:
    """Return the content of a report.

    `tables` are TABLES, in order; `details` are parts of the executors' table, read when they are needed.
    """
    return Fleet(
        newest=max((each.taken_at for each in seen if each.taken_at), default=None),
        version=reassign.__version__,
        policy=policy.digest,
        clusters=_clusters({each.cluster: each for each in seen}, tables, details, policy),
        quarantine=quarantine,
        notes=notes,
    )


def _clusters(
    seen: dict[str, Seen], tables: Mapping[str, pa.Table], details: Iterable[pa.Table], policy: FleetPolicy
) -> Iterator[Cluster]:
    rows_of_table = {table: by_cluster(tables[table]) for table in TABLES}

    def cluster(each: Seen, lists: Row) -> Cluster:
        rows = {table: find(each.cluster) for table, find in rows_of_table.items()}
        return _cluster(each, lists, rows, policy.terms(each.cluster))

    for row in (row for part in details for row in rows_of(part)):
        if row["broker_load"]:  # else it has no load, or another row has it
            yield cluster(seen.pop(row["cluster"]), row)
    for each in seen.values():
        yield cluster(each, dict.fromkeys(OF_DETAILS, ()))


def by_cluster(table: pa.Table) -> Callable[[str], pa.Table]:
    """Return a function that finds a cluster's rows in a table in which they follow each other."""
    found = pc.value_counts(table["cluster"])
    clusters, numbers = found.field("values").to_pylist(), found.field("counts").to_pylist()
    places = dict(zip(clusters, zip(accumulate(numbers, initial=0), numbers, strict=False), strict=True))
    rows = table.drop_columns(["cluster"])
    return lambda cluster: rows.slice(*places.get(cluster, (0, 0)))


def _cluster(seen: Seen, details: Row, rows: Mapping[str, pa.Table], terms: Terms) -> Cluster:
    load: Row = next(iter(rows["cluster_load"].to_pylist()), {})
    summary: Row = next(iter(rows["plans"].to_pylist()), {})
    problem = seen.problem or summary.get("problem")
    return Cluster(
        name=seen.cluster,
        cluster_id=seen.cluster_id,
        taken_at=seen.taken_at,
        state=state(seen, summary),
        problem=problem,
        goal=goal(terms),
        load=load,
        plan={} if problem else summary | next(iter(details["planned_load"]), {}),
        brokers={name: [broker[name] for broker in details["broker_load"]] for name in OF_BROKERS},
        racks=details["rack_load"],
        topics=_most(rows["topic_growth"], "bytes", bytes_per_day="descending", topic="ascending"),
        disks=_most(
            rows["disk_growth"],
            "used_bytes",
            days_until_full="ascending",  # those that never are come last
            bytes_per_day="descending",
            broker="ascending",
            path="ascending",
        ),
        leftovers=rows["leftovers"].to_pylist(),
    )


def _most(growth: pa.Table, size: str, **order: str) -> list[Row]:
    """Return the first rows, in this order, of topics or disks that have a size now and had one before."""
    known = growth.filter(pc.and_(pc.is_valid(growth[size]), pc.is_valid(growth["bytes_per_day"])))
    rows: list[Row] = known.sort_by([*order.items()]).slice(length=MOST).to_pylist()
    return rows


def state(seen: Seen, summary: Any) -> State:
    """Return the state of a cluster."""
    if seen.problem:
        return "Quarantined"
    if not summary or summary["problem"]:
        return "NotPlanned"
    return "Planned" if summary["waves"] else "Unchanged"


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
    if goal.avoid_brokers:
        parts.append(f"avoid {', '.join(map(str, goal.avoid_brokers))}")
    if goal.scope is Scope.DRAINED:
        parts.append("move nothing else")
    if goal.fenced_brokers is FencedBrokers.REPLACE:
        parts.append("replace fenced brokers")
    return "; ".join(parts)
