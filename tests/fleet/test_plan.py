"""Plans made in Spark's workers are those of the planner itself, whatever cluster is beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from reassign.files import snapshots
from reassign.fleet.plan import packed, plan, summaries_of
from reassign.fleet.policy import Policy, parse
from reassign.fleet.tables import Folder, read
from reassign.manifests.waves import entries, waves_of
from reassign.planning.plan import make
from reassign.planning.problem.model import Cluster
from tests.benchmarks.instances import Made, cluster
from tests.snapshots import in_sync

TAKEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
POLICY = """
overrides:
- {clusters: [c1], goal: {drainBrokers: [2]}, template: {throttle: {interBroker: 1Mi}}, waves: {maxBytes: 100Gi}}
- {clusters: [c2], goal: {replicationFactor: 2}}
"""
CLUSTERS = {
    f"c{seed}": replace(cluster(Made(300 + 30 * seed, 6, seed=seed, racks=(3,))), id=f"id-{seed}") for seed in range(4)
}


def planned(spark: SparkSession, root: Path, clusters: dict[str, Cluster], policy: Policy) -> pa.Table:
    folders = [Folder("2026-01-31", name) for name in clusters]
    for folder in folders:
        snapshots.write(Path(folder.path(str(root))), in_sync(clusters[folder.cluster], TAKEN))
    sizes = {name: len(each.partition) for name, each in clusters.items()}
    return plan(spark, read(spark, str(root), folders), policy, sizes).toArrow()


def of(rows: pa.Table, name: str) -> list[dict[str, object]]:
    found = rows.filter(pc.equal(rows["cluster"], name)).to_pylist()
    return sorted(found, key=lambda row: (row["wave"], row["topic"] or "", row["partition"] or 0))


def test_each_cluster_has_the_planners_plan_under_its_own_policy(spark: SparkSession, tmp_path: Path) -> None:
    policy = parse(POLICY, "")
    rows = planned(spark, tmp_path, CLUSTERS, policy)
    summaries = summaries_of(rows)
    for name, each in CLUSTERS.items():
        terms = policy.terms(name)
        expected = make(each, terms.planner_goal(), terms.waves.max_partitions, terms.max_bytes, terms.rate)
        said = [json.loads(str(row["entry"])) for row in of(rows, name)[1:]]
        assert said == [entry for wave in waves_of(expected) for entry in entries(each, expected, wave)]
        found = summaries[name]
        assert found["problem"] is None
        assert (found["bytes"], found["moves_bound"]) == (expected.certificate.bytes, expected.certificate.moves_bound)
        assert sum(wave["bytes"] for wave in found["waves"]) == found["bytes"]
        if terms.rate:
            assert sum(wave["seconds"] for wave in found["waves"]) == pytest.approx(found["makespan"])
        change = 2 / 3 if name == "c2" else 1
        assert sum(found["after"]["Replicas"]) == sum(found["before"]["Replicas"]) * change
    assert summaries["c1"]["after"]["Replicas"][1] == 0


def test_an_unplannable_cluster_reports_why_and_affects_no_other(spark: SparkSession, tmp_path: Path) -> None:
    policy = parse("overrides: [{clusters: [c1], goal: {drainBrokers: [77]}}]", "")
    rows = planned(spark, tmp_path / "all", CLUSTERS, policy)
    assert summaries_of(rows)["c1"]["problem"] == {
        "reason": "InvalidGoal",
        "message": "the cluster has no broker 77: name brokers that it has",
    }
    others = {name: each for name, each in CLUSTERS.items() if name != "c1"}
    without = planned(spark, tmp_path / "others", others, Policy())
    for name in others:
        assert of(rows, name) == of(without, name)


def test_the_largest_clusters_are_packed_first() -> None:
    tasks = packed({"a": 1, "b": 5, "c": 3, "d": 3, "e": 1}, 2)
    assert tasks["b"] != tasks["c"] == tasks["d"]
    assert packed({"x": 1}, 4) == {"x": 0}
