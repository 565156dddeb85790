"""What the details of a cluster are drawn from, as small as it can be: a report has up to a thousand of them."""

from __future__ import annotations

from typing import Any

from reassign.fleet.report.model import RESOURCES, UNITS, ByBroker, Cluster, Load, Loads, Quarantined
from reassign.fleet.report.rank import Rank
from reassign.page.numbers import moment

STEPS = 2**16
"""The most bytes that a broker has are written in this many steps: no picture and no table shows more."""


def details(cluster: Cluster, rank: Rank, found: list[Quarantined]) -> dict[str, Any]:
    """The values for report.js. Times are written out, numbers are rounded to what is shown; bytes of brokers, racks
    and disks are counted in `unit`.
    """
    unit = _unit(cluster["by_broker"])
    return {
        "unit": unit,
        "clusterId": cluster["cluster_id"],
        "takenAt": cluster["taken_at"] and moment(cluster["taken_at"]),
        "problem": cluster["problem"],
        "kind": rank.kind,
        "goal": cluster["goal"],
        "topics": cluster["topics"],
        "replicas": cluster["replicas"],
        "resources": [
            {
                "by": one["by"],
                "before": _rounded(one["before"], 4),
                "after": _rounded(one["after"], 4),
                "band": _rounded(one["band"], 4),
                "reachable": round(one["reachable"], 4),
            }
            for one in cluster["resources"]
        ],
        "brokers": _brokers(cluster["by_broker"], unit) if cluster["by_broker"] else None,
        "racks": [
            [rack["level"], rack["path"], rack["brokers"], _load(rack["before"], unit), _load(rack["after"], unit)]
            for rack in cluster["by_rack"]
        ],
        "waves": [[wave["partitions"], wave["bytes"], _seconds(wave["seconds"])] for wave in cluster["waves"]],
        "certificate": cluster["certificate"],
        "unmet": cluster["unmet"],
        "topicGrowth": [
            [one["topic"], one["bytes"], round(one["bytes_per_day"])] for one in cluster["growth"]["topics"]
        ],
        "diskGrowth": [
            [
                one["broker"],
                one["path"],
                round(one["used"] / unit),
                None if one["total"] is None else round(one["total"] / unit),
                round(one["bytes_per_day"]),
                None if one["days_until_full"] is None else round(one["days_until_full"], 1),
            ]
            for one in cluster["growth"]["disks"]
        ],
        "leftovers": [
            [one["kind"], one["what"], one["since"] and moment(one["since"])] for one in cluster["leftovers"]
        ],
        "quarantine": [[one["date"], one["table"], one["kind"], one["rows"], one["example"]] for one in found],
    }


def _unit(brokers: ByBroker | None) -> int:
    """A power of two, such that the most that a broker has is at most `STEPS` of it."""
    loads = [load for load in (brokers["before"], brokers["after"], brokers["target"]) if load] if brokers else []
    most = max((value for load in loads for by in RESOURCES if UNITS[by] for value in load[by]), default=0)
    unit = 1
    while most > unit * STEPS:
        unit *= 2
    return unit


def _brokers(brokers: ByBroker, unit: int) -> dict[str, Any]:
    """Racks are indices into their names."""
    racks = sorted(set(brokers["rack"]))
    loads = {"before": brokers["before"], "after": brokers["after"], "target": brokers["target"]}
    number = {rack: i for i, rack in enumerate(racks)}
    return {
        "id": brokers["id"],
        "racks": racks,
        "rack": [number[rack] for rack in brokers["rack"]],
        "capacity": [None if size is None else round(size / unit) for size in brokers["capacity"]],
        **{name: _loads(load, unit) if load else None for name, load in loads.items()},
    }


def _loads(loads: Loads, unit: int) -> dict[str, list[float]]:
    return {
        by: _rounded([value / (unit if UNITS[by] else 1) for value in loads[by]], 0 if UNITS[by] else 1)
        for by in RESOURCES
    }


def _load(load: Load | None, unit: int) -> list[float] | None:
    return None if load is None else [round(load[by] / unit) if UNITS[by] else load[by] for by in RESOURCES]


def _rounded(values: list[float], digits: int) -> list[float]:
    """Whole numbers have no `.0`."""
    rounded = [round(value, digits or None) for value in values]
    return [int(value) if value.is_integer() else value for value in map(float, rounded)]


def _seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds)
