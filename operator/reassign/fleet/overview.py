"""The content of a report, from the tables of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import reassign
from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import LOADS, Row
from reassign.fleet.policy import Policy, Terms
from reassign.fleet.report.model import Cluster, Fleet, Problem, State

TABLES = ("broker_load", "rack_load", "cluster_load", "topic_growth", "disk_growth", "leftovers", "plans")
MOST = 10
"""Topics and disks of a cluster that are shown: those that grow most, and are full soonest."""


class Seen(NamedTuple):
    """A cluster's newest snapshot; `problem` is why it is left out, None where it is not."""

    cluster: str
    cluster_id: str | None
    taken_at: datetime | None
    problem: Problem | None


def fleet(seen: Sequence[Seen], quarantine: Sequence[Verdict], tables: Mapping[str, pa.Table], policy: Policy) -> Fleet:
    """`tables` are TABLES of assess and plan, in order."""
    names = [each.cluster for each in seen]
    rows = zip(*(by_cluster(tables[table], names) for table in TABLES), strict=True)
    return Fleet(
        newest=max((each.taken_at for each in seen if each.taken_at), default=None),
        version=reassign.__version__,
        policy=policy.digest,
        clusters=(
            _cluster(each, dict(zip(TABLES, of_one, strict=True)), policy.terms(each.cluster))
            for each, of_one in zip(seen, rows, strict=True)
        ),
        quarantine=quarantine,
    )


def by_cluster(table: pa.Table, clusters: Iterable[str]) -> Iterator[pa.Table]:
    """Yield the rows of each of these clusters, of a table in which those of a cluster follow each other."""
    numbers = {each["values"]: each["counts"] for each in pc.value_counts(table["cluster"]).to_pylist()}
    starts = dict(zip(numbers, accumulate(numbers.values(), initial=0), strict=False))
    for cluster in clusters:
        yield table.drop_columns(["cluster"]).slice(starts.get(cluster, 0), numbers.get(cluster, 0))


def _cluster(seen: Seen, rows: Mapping[str, pa.Table], terms: Terms) -> Cluster:
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
        plan={} if problem else summary,
        brokers=rows["broker_load"].select(["broker", "rack", "capacity", *LOADS]).to_pydict(),
        racks=rows["rack_load"].to_pylist(),
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
    """Return the first rows in this order, of what has a size now and had another one before."""
    known = growth.filter(pc.and_(pc.is_valid(growth[size]), pc.is_valid(growth["bytes_per_day"])))
    rows: list[Row] = known.sort_by([*order.items()]).slice(length=MOST).to_pylist()
    return rows


def state(seen: Seen, summary: Any) -> State:
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
