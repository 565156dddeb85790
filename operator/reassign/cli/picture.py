"""A plan as text and as JSON: its cost beside the least possible, unmet goals, and each broker's load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from rich.bar import Bar
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from reassign.api.goal import COUNTED, Counted
from reassign.cli import output as out
from reassign.core.model.progress import duration
from reassign.planning.problem.assignments import loads
from reassign.planning.problem.measures import what_counts
from reassign.planning.problem.model import Bytes, Certificate, Cluster, Ints, Plan
from reassign.text import amount, listed


def load(cluster: Cluster, replicas: Ints) -> Bytes:
    """Return (K, B): what lies on each broker with these replicas."""
    return loads(replicas, what_counts(cluster), len(cluster.brokers))


def parts(cluster: Cluster, plan: Plan) -> Iterator[RenderableType]:
    """Yield the costs, the balance, the unmet goals, and the brokers."""
    certificate = plan.certificate
    yield _costs(certificate)
    if certificate.balance:
        yield _balance(certificate)
    if certificate.unmet:
        lines = [f"  {one.what}; the nearest that is reached: {one.nearest}" for one in certificate.unmet]
        if certificate.unbeaten:
            goals = listed(by.lower() for by in certificate.unbeaten)
            lines.append(f"  no plan has a smaller greatest share of {goals} than this one")
        yield Text("\n".join(["NOT MET", *lines]))
    yield _brokers(cluster, load(cluster, cluster.replicas), load(cluster, plan.target))


def _table(*columns: str) -> Table:
    """Return a table of a name, then numbers; columns without a head are bars, as wide as the room left.

    A name that has no room beside the numbers goes on in the next line.
    """
    table = Table(box=None, pad_edge=False, header_style="bold", expand="" in columns)
    for i, column in enumerate(columns):
        justify: JustifyMethod = "right" if i else "left"
        table.add_column(column, justify=justify, no_wrap=i > 0, overflow="fold", ratio=None if column else 1)
    return table


def _costs(certificate: Certificate) -> RenderableType:
    table = _table("PLAN", "costs", "at least", "ratio")
    rows: list[tuple[str, float | None, float | None, Any]] = [
        ("bytes copied", certificate.bytes, certificate.bytes_bound, amount),
        ("replicas moved", certificate.moves, certificate.moves_bound, str),
        ("waves", certificate.waves, certificate.waves_bound, str),
        ("time at the throttle", certificate.makespan, certificate.makespan_bound, duration),
    ]
    for name, cost, bound, write in rows:
        if cost is not None and bound is not None:
            table.add_row(name, write(cost), write(bound), f"{cost / bound:.3f}" if bound else "")
    table.add_row("preferred leaders changed", str(certificate.leaders))
    return table


def _balance(certificate: Certificate) -> RenderableType:
    table = _table("BALANCE", "before", "after", "asked for", "greatest at least")
    for one in certificate.balance:
        spans = (f"{least:.2f} to {greatest:.2f}" for least, greatest in (one.before, one.after, one.band))
        table.add_row(one.by.lower(), *spans, f"{one.reachable:.2f}")
    return Group(table, Text("in shares of what each broker should have", style="dim"))


def _brokers(cluster: Cluster, before: Bytes, after: Bytes) -> RenderableType:
    table = _table("BROKER", *(head for by, counted in COUNTED.items() for head in _heads(by.lower(), counted)))
    loads = [*zip(COUNTED.values(), before.tolist(), after.tolist(), strict=True)]
    for i, broker in enumerate(cluster.brokers):
        down = "" if cluster.alive[i] else "(down)"
        cells = (_cells(counted, was[i], will[i], max(1, *was, *will)) for counted, was, will in loads)
        table.add_row(" ".join(filter(None, (str(broker), cluster.racks[i], down))), *chain.from_iterable(cells))
    return table


def partitions(cluster: Cluster, plan: Plan) -> RenderableType:
    """Return a line for each partition that changes, as wide as its topic's name needs."""
    table = out.table("PARTITION", "wave", "from", "to", numbers=("wave", "from", "to"))
    for change in _changes(cluster, plan):
        replicas = (",".join(map(str, change[key])) for key in ("from", "to"))
        table.add_row(f"{change['topic']}-{change['partition']}", str(change["wave"]), *replicas)
    return table


def _heads(name: str, counted: Counted) -> list[str]:
    """Return the heads of the columns of a goal; numbers of leaders have no bar."""
    if counted.unit:
        return [f"{name} before", "", "after", ""]
    return [name] if counted.leaders else [name, ""]


def _cells(counted: Counted, before: int, after: int, greatest: int) -> list[RenderableType]:
    """Return the cells of a broker below `_heads`."""
    if counted.unit:
        return [cell for load in (before, after) for cell in (_written(counted, load), Bar(greatest, 0, load))]
    change = f"{before} → {after}"
    return [change] if counted.leaders else [change, Bar(greatest, 0, after)]


def _written(counted: Counted, load: int) -> str:
    return amount(load) + counted.unit.removeprefix("B")


def as_json(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """Return the certificate, the brokers and every partition that changes, for programs."""
    certificate = plan.certificate
    before, after = load(cluster, cluster.replicas), load(cluster, plan.target)
    return {
        "clusterId": cluster.id,
        "bytes": _beside(certificate.bytes, certificate.bytes_bound),
        "replicas": _beside(certificate.moves, certificate.moves_bound),
        "waves": _beside(certificate.waves, certificate.waves_bound),
        "seconds": _beside(certificate.makespan, certificate.makespan_bound),
        "leaders": certificate.leaders,
        "balance": [
            {
                "by": one.by.value,
                "before": list(one.before),
                "after": list(one.after),
                "band": list(one.band),
                "bound": one.reachable,
            }
            for one in certificate.balance
        ],
        "unmet": [{"what": o.what, "nearest": o.nearest, "part": o.part} for o in certificate.unmet],
        "unbeaten": [by.value for by in certificate.unbeaten],
        "brokers": [
            {"id": int(broker), "rack": cluster.racks[i], "before": _of(before, i), "after": _of(after, i)}
            for i, broker in enumerate(cluster.brokers)
        ],
        "partitions": _changes(cluster, plan),
    }


def _changes(cluster: Cluster, plan: Plan) -> list[dict[str, Any]]:
    """Return every partition that changes, with its replicas before and after."""
    return [
        {
            "topic": cluster.topics[cluster.topic[p]],
            "partition": int(cluster.partition[p]),
            "from": _ids(cluster, cluster.replicas[p]),
            "to": _ids(cluster, plan.target[p]),
            "wave": int(plan.wave[p]) + 1,
        }
        for p in np.flatnonzero(plan.wave >= 0)
    ]


def _beside(cost: float | None, bound: float | None) -> dict[str, float | None]:
    return {"plan": cost, "bound": bound}


def _of(load: Bytes, broker: int) -> dict[str, int]:
    return {by.lower(): int(row[broker]) for by, row in zip(COUNTED, load, strict=True)}


def _ids(cluster: Cluster, row: Sequence[int] | Ints) -> list[int]:
    return [int(cluster.brokers[i]) for i in row if i >= 0]
