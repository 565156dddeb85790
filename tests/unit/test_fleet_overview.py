"""What a report shows, from the tables of the stages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from reassign.fleet.outcomes import KINDS
from reassign.fleet.overview import MOST, OF_DETAILS, TABLES, Seen, by_cluster, fleet
from reassign.fleet.policy import FleetPolicy, parse
from reassign.fleet.report.model import Cluster

COLUMNS = {
    "topic_growth": ("topic", "bytes", "bytes_per_day"),
    "disk_growth": ("broker", "path", "used_bytes", "total_bytes", "bytes_per_day", "days_until_full"),
    "leftovers": ("kind", "what", "since"),
}
BROKER: dict[str, Any] = dict.fromkeys(KINDS["broker_load"])
SEEN = Seen("main", "id", datetime(2026, 1, 31, tzinfo=UTC), None)


def clusters(
    seen: Sequence[Seen], details: Iterable[pa.Table], policy: FleetPolicy | None = None, **rows: list[dict[str, Any]]
) -> list[Cluster]:
    """What is shown where the tables have these rows, all of the cluster main."""
    tables = {}
    for name in TABLES:
        found = [{"cluster": "main", **row} for row in rows.get(name, [])]
        columns = ("cluster", *COLUMNS.get(name, ()))
        tables[name] = pa.table({column: [row[column] for row in found] for column in columns})
    return [*fleet(seen, [], tables, details, policy or FleetPolicy()).clusters]


def cluster(policy: FleetPolicy | None = None, **rows: list[dict[str, Any]]) -> Cluster:
    [shown] = clusters([SEEN], [], policy, **rows)
    return shown


def details(name: str, **kept: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of what executors keep of a cluster."""
    return {**{column: [] for column in OF_DETAILS}, "cluster": name, **kept}


def test_clusters_come_as_they_are_read_and_then_those_of_unknown_load() -> None:
    seen = [SEEN._replace(cluster=name) for name in ("a", "b", "c", "d")]
    parts = [
        [details("c"), details("d", broker_load=[BROKER | {"broker": 7}], planned_load=[{"racks": [1]}])],
        [details("b", broker_load=[BROKER], planned_load=[{}]), details("d"), details("b")],
    ]
    shown = clusters(seen, map(pa.Table.from_pylist, parts))
    assert [each.name for each in shown] == ["d", "b", "a", "c"]
    assert [each.brokers["broker"] for each in shown] == [[7], [None], [], []]


def topic(name: str, bytes_: int | None, per_day: int | None) -> dict[str, Any]:
    return {"topic": name, "bytes": bytes_, "bytes_per_day": per_day}


def disk(path: str, used: int | None, per_day: int | None, days: float | None) -> dict[str, Any]:
    volume = {"broker": 1, "path": path, "used_bytes": used, "total_bytes": 100}
    return {**volume, "bytes_per_day": per_day, "days_until_full": days}


def test_topics_are_shown_by_growth_where_two_sizes_are_known() -> None:
    rows = [topic("shrinks", 5, -1), topic("new", 5, None), topic("lost", None, 9), topic("grows", 5, 3)]
    rows += [topic(f"steady-{number:02}", 5, 0) for number in range(MOST)]
    shown = cluster(topic_growth=rows).topics
    assert [each["topic"] for each in shown] == ["grows", *(f"steady-{number:02}" for number in range(MOST - 1))]


def test_disks_are_shown_by_when_they_are_full() -> None:
    rows = [disk("/later", 5, 1, 20.0), disk("/never", 5, -1, None), disk("/soon", 5, 1, 2.5)]
    rows += [disk("/offline", None, 1, 1.0), disk("/new", 5, None, None)]
    shown = cluster(disk_growth=rows).disks
    assert [each["path"] for each in shown] == ["/soon", "/later", "/never"]


def test_what_is_wanted_is_a_line_and_what_was_left_has_its_time() -> None:
    policy = parse("defaults: {goal: {drainBrokers: [3, 4], balance: {by: [Disk], tolerancePercent: 5}}}", "p.yaml")
    since = datetime(2026, 1, 30, tzinfo=UTC)
    shown = cluster(policy, leftovers=[{"kind": "Throttle", "what": "broker 1", "since": since}])
    assert shown.goal == "drain 3, 4; balance disk within 5 %"
    narrow = "{drainBrokers: [3], scope: Drained, avoidBrokers: [5, 6], fencedBrokers: Replace}"
    other = cluster(parse(f"defaults: {{goal: {narrow}}}", "p.yaml"))
    assert other.goal == "drain 3; avoid 5, 6; move nothing else; replace fenced brokers"
    assert shown.leftovers == [{"kind": "Throttle", "what": "broker 1", "since": since}]


def test_each_cluster_has_its_own_rows_whatever_there_is_of_others() -> None:
    rows_of = by_cluster(pa.table({"cluster": ["b", "b", "c", "d", "d"], "row": [0, 1, 2, 3, 4]}))
    assert [rows_of(name)["row"].to_pylist() for name in ("d", "a", "e", "b")] == [[3, 4], [], [], [0, 1]]
