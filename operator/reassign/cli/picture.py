"""A plan for people: what it costs beside what any plan must cost, what it does not reach, and each broker's load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reassign.core.model.progress import amount, duration
from reassign.planning.problem.assignments import loads
from reassign.planning.problem.model import Certificate, Cluster, Ints, Plan


class Load(NamedTuple):
    """What each broker holds: bytes on disk, replicas, preferred leaders; each (B,) in the order of the brokers."""

    disk: Any
    replicas: Any
    leaders: Any


def load(cluster: Cluster, replicas: Ints) -> Load:
    """What the brokers hold with these replicas; sizes that are not known count as nothing."""
    return Load(*loads(replicas, np.maximum(cluster.sizes, 0), len(cluster.brokers)))


def parts(cluster: Cluster, plan: Plan) -> Iterator[RenderableType]:
    """What it costs, how evenly it lies, what is not met, and the brokers."""
    certificate = plan.certificate
    yield _costs(certificate)
    if certificate.balance:
        yield _balance(certificate)
    if certificate.unmet:
        lines = [f"  {one.what}; the nearest that is reached: {one.nearest}" for one in certificate.unmet]
        yield Text("\n".join(["NOT MET", *lines]))
    yield _brokers(cluster, load(cluster, cluster.replicas), load(cluster, plan.target))


def _table(*columns: str) -> Table:
    """The first column is a name, the others are numbers; those without a head are bars, which take the room left."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=bool(column))
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


def _brokers(cluster: Cluster, before: Load, after: Load) -> RenderableType:
    table = _table("BROKER", "disk before", "", "after", "", "replicas", "", "leaders")
    disk, replicas = (max(1, *b.tolist(), *a.tolist()) for b, a in ((before.disk, after.disk), (before[1], after[1])))
    for i, broker in enumerate(cluster.brokers):
        down = "" if cluster.alive[i] else "(down)"
        table.add_row(
            " ".join(filter(None, (str(broker), cluster.racks[i], down))),
            amount(int(before.disk[i])),
            Bar(disk, 0, int(before.disk[i])),
            amount(int(after.disk[i])),
            Bar(disk, 0, int(after.disk[i])),
            f"{before.replicas[i]} → {after.replicas[i]}",
            Bar(replicas, 0, int(after.replicas[i])),
            f"{before.leaders[i]} → {after.leaders[i]}",
        )
    return table


def as_json(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """The certificate, the brokers and every partition that changes, for programs."""
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
        "unmet": [one._asdict() for one in certificate.unmet],
        "brokers": [
            {"id": int(broker), "rack": cluster.racks[i], "before": _of(before, i), "after": _of(after, i)}
            for i, broker in enumerate(cluster.brokers)
        ],
        "partitions": [
            {
                "topic": cluster.topics[cluster.topic[p]],
                "partition": int(cluster.partition[p]),
                "from": _ids(cluster, cluster.replicas[p]),
                "to": _ids(cluster, plan.target[p]),
                "wave": int(plan.wave[p]) + 1,
            }
            for p in np.flatnonzero(plan.wave >= 0)
        ],
    }


def _beside(cost: float | None, bound: float | None) -> dict[str, float | None]:
    return {"plan": cost, "bound": bound}


def _of(load: Load, broker: int) -> dict[str, int]:
    return {name: int(column[broker]) for name, column in load._asdict().items()}


def _ids(cluster: Cluster, row: Sequence[int] | Ints) -> list[int]:
    return [int(cluster.brokers[i]) for i in row if i >= 0]
