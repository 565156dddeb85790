"""The details of a cluster, as small as they can be: a report has up to a thousand of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reassign.api.goal import COUNTED
from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import Row
from reassign.fleet.report.model import Cluster
from reassign.fleet.report.rank import Rank
from reassign.page.numbers import moment

STEPS = 2**16
"""The most bytes that a broker has are written in so many steps: no picture and no table shows more."""

Loads = Mapping[str, Sequence[float]]
"""The loads of brokers, or their targets, by goal; targets need not be whole."""


def details(cluster: Cluster, rank: Rank, found: Iterable[Verdict]) -> dict[str, Any]:
    """Return the values for report.js.

    Times are written out, numbers are rounded to what is shown. Bytes of brokers, racks and disks are counted in
    `unit`.
    """
    loads = _loads_of(cluster)
    unit = _unit(loads.values())
    after = {_place(rack): rack for rack in cluster.plan.get("racks", ())}
    return {
        "unit": unit,
        "clusterId": cluster.cluster_id,
        "takenAt": cluster.taken_at and moment(cluster.taken_at),
        "problem": cluster.problem,
        "kind": rank.kind,
        "goal": cluster.goal,
        "topics": cluster.load.get("topics"),
        "replicas": cluster.load.get("replicas"),
        "resources": [
            {
                "by": one["by"],
                **{name: _rounded(one[name], 4) for name in ("before", "after", "band")},
                "reachable": round(one["reachable"], 4),
            }
            for one in cluster.plan.get("balance", ())
        ],
        "brokers": _brokers(cluster.brokers, loads, unit) if loads else None,
        "racks": [
            [*_place(rack), rack["brokers"], _load(rack, unit), _load(after.get(_place(rack)), unit)]
            for rack in cluster.racks
        ],
        "waves": [
            [wave["partitions"], wave["bytes"], _whole(wave["seconds"])] for wave in cluster.plan.get("waves", ())
        ],
        "certificate": cluster.costs or None,
        "unmet": cluster.plan.get("unmet", []),
        "topicGrowth": [[one["topic"], one["bytes"], round(one["bytes_per_day"])] for one in cluster.topics],
        "diskGrowth": [
            [
                one["broker"],
                one["path"],
                _whole(one["used_bytes"], unit),
                _whole(one["total_bytes"], unit),
                round(one["bytes_per_day"]),
                None if one["days_until_full"] is None else round(one["days_until_full"], 1),
            ]
            for one in cluster.disks
        ],
        "leftovers": [[one["kind"], one["what"], one["since"] and moment(one["since"])] for one in cluster.leftovers],
        "quarantine": [[one.date, one.table, one.kind, one.rows, one.example] for one in found],
    }


def _loads_of(cluster: Cluster) -> dict[str, Loads]:
    """Return the loads of brokers now and, with a plan, after it and its target; nothing if they are unknown."""
    if not cluster.load:
        return {}
    before = {by.value: cluster.brokers[of.what] for by, of in COUNTED.items()}
    return {"before": before, **{name: cluster.plan[name] for name in ("after", "target") if name in cluster.plan}}


def _unit(loads: Iterable[Loads]) -> int:
    """Return the least power of two of which no broker has more than `STEPS` bytes."""
    most = max((value for load in loads for by, of in COUNTED.items() if of.unit for value in load[by]), default=0)
    unit = 1
    while most > unit * STEPS:
        unit *= 2
    return unit


def _brokers(brokers: Mapping[str, Sequence[Any]], loads: Mapping[str, Loads], unit: int) -> dict[str, Any]:
    """Return the columns of brokers; racks are indices into their names."""
    names = [rack or "" for rack in brokers["rack"]]
    racks = sorted(set(names))
    number = {rack: i for i, rack in enumerate(racks)}
    return {
        "id": brokers["broker"],
        "racks": racks,
        "rack": [number[rack] for rack in names],
        "capacity": [_whole(size, unit) for size in brokers["capacity"]],
        **{when: _loads(loads[when], unit) if when in loads else None for when in ("before", "after", "target")},
    }


def _loads(loads: Loads, unit: int) -> dict[str, list[float]]:
    return {
        by.value: _rounded([value / unit for value in loads[by]], 0) if of.unit else _rounded(loads[by], 1)
        for by, of in COUNTED.items()
    }


def _place(rack: Row) -> tuple[int, str]:
    return rack["level"], rack["path"]


def _load(rack: Row | None, unit: int) -> list[float] | None:
    if rack is None:
        return None
    return [round(rack[of.what] / unit) if of.unit else rack[of.what] for of in COUNTED.values()]


def _rounded(values: Iterable[float], digits: int) -> list[float]:
    """Return the values rounded; whole numbers have no `.0`."""
    rounded = [round(value, digits or None) for value in values]
    return [int(value) if value.is_integer() else value for value in map(float, rounded)]


def _whole(value: float | None, unit: int = 1) -> int | None:
    return None if value is None else round(value / unit)
