"""Live clusters read by Spark's workers: real brokers, and others that are not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from localplatform.brokers import Brokers, running
from localplatform.workload import Workload
from reassign.errors import PlanningError
from reassign.files.schema import SCHEMAS
from reassign.fleet.live import LiveCluster, observe, problems, split
from reassign.fleet.tables import spark_schema

REPLICAS = {"orders": [[0, 1], [1, 0]], "later": [[1]]}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("live"), brokers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rows(spark: SparkSession, brokers: Brokers) -> DataFrame:
    """Of two names for one cluster that is there, and one that is not; after the look another topic is made."""
    workload = Workload(brokers.bootstrap_servers)
    workload.create("orders", REPLICAS["orders"], 2**20, {"min.insync.replicas": "2"})
    there = [LiveCluster(name, bootstrap_servers=brokers.bootstrap_servers) for name in ("one", "other")]
    found = observe(spark, [*there, LiveCluster("gone", bootstrap_servers="127.0.0.1:1")])
    workload.create("later", REPLICAS["later"], 0, {})
    return found


def test_a_missing_cluster_is_a_problem_and_the_others_have_all_tables(rows: DataFrame) -> None:
    (problem,) = problems(rows).collect()
    assert problem.cluster == "gone"
    assert problem.problem.endswith("(ClusterUnreachable)")
    for name, table in split(rows)._asdict().items():
        assert {row.cluster for row in table.collect()} == {"one", "other"}, name


def test_the_tables_are_those_of_snapshots_by_name_and_type(rows: DataFrame) -> None:
    for name, table in split(rows)._asdict().items():
        found = {field.name: field.dataType for field in table.schema}
        assert found == {field.name: field.dataType for field in spark_schema(name)}
    assert set(split(rows)._fields) == set(SCHEMAS)


def test_each_cluster_is_observed_once_whatever_is_made_of_it(rows: DataFrame) -> None:
    tables = split(rows)
    orders = tables.partitions.where("cluster = 'one' and topic = 'orders'").orderBy("partition").collect()
    assert [row.replicas for row in orders] == REPLICAS["orders"]
    assert [row.leader for row in orders] == [0, 1]
    assert all(2**20 < row.size_bytes < 2**21 for row in orders)
    assert orders[0].taken_at.date().isoformat() == orders[0].date
    config = tables.configs.where("cluster = 'one' and name = 'orders'").collect()
    assert [(row.kind, row.key, row.value) for row in config] == [("topic", "min.insync.replicas", "2")]
    assert tables.partitions.where("topic = 'later'").collect() == []
    assert tables.brokers.select("cluster", "taken_at").distinct().count() == 2


def test_two_clusters_of_one_name_are_refused(spark: SparkSession) -> None:
    with pytest.raises(PlanningError, match="two clusters are called main; call one of them otherwise"):
        observe(spark, [LiveCluster("main", bootstrap_servers=f"b{n}:9092") for n in range(2)])
