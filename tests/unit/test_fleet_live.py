"""Live clusters as a data source, without a JVM: what a partition holds, and what reading one gives."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.datasource import InputPartition

from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.errors import ClusterError, Reason
from reassign.files.schema import SCHEMAS
from reassign.fleet import live
from reassign.fleet.live import PROBLEM, TABLE, KafkaClusters, LiveCluster
from reassign.inspect import cluster
from tests.unit.cli import P0, Live, run, sim
from tests.unit.test_cli_verify import kafka_cluster

MAIN = LiveCluster("fleet-main", namespace="kafka", kafka_cluster="main")
SECRET = b"correct horse battery staple"


class WithSecret(Live):
    async def secret(self, namespace: str, name: str) -> dict[str, bytes]:
        return {"password": SECRET}


def served(monkeypatch: pytest.MonkeyPatch) -> Live:
    """A cluster that is reached with a password, by the KafkaCluster kafka/main."""
    sasl = {"mechanism": "PLAIN", "username": "u", "passwordSecretRef": {"name": "s", "key": "password"}}
    found = WithSecret(sim(), kafka_cluster(sasl=sasl))
    found.set = {ConfigResource(ConfigResourceType.TOPIC, P0.topic): {"min.insync.replicas": "2"}}
    found.serve(monkeypatch)
    return found


def source(*clusters: LiveCluster) -> KafkaClusters:
    return KafkaClusters({"clusters": json.dumps([asdict(cluster) for cluster in clusters])})


def partitions(*clusters: LiveCluster) -> list[InputPartition]:
    found = source(*clusters)
    return list(found.reader(found.schema()).partitions())


def rows(cluster: LiveCluster) -> list[dict[str, Any]]:
    """Of one cluster, as its executor has them: by way of what a driver sends there."""
    (partition,) = pickle.loads(pickle.dumps(partitions(cluster)))
    found = source(cluster)
    table = pa.Table.from_batches(found.reader(found.schema()).read(partition))
    return table.to_pylist()  # type: ignore[no-any-return]


def test_each_cluster_is_one_partition_with_its_location_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served(monkeypatch)
    plain = LiveCluster("plain", bootstrap_servers="b:9092")
    pickled = [pickle.dumps(partition) for partition in partitions(MAIN, plain)]
    assert [vars(pickle.loads(one)) for one in pickled] == [asdict(MAIN), asdict(plain)]
    assert {type(value) for cluster in (MAIN, plain) for value in vars(cluster).values()} == {str}
    assert not any(SECRET in one or b"passwordSecretRef" in one for one in [*pickled, pickle.dumps(source(MAIN))])


def test_the_executor_reads_the_secrets_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    reached = []
    serving = cluster.read_only

    def read_only(connection: Any) -> Any:
        reached.append(connection.sasl.password)
        return serving(connection)

    monkeypatch.setattr(cluster, "read_only", read_only)
    rows(MAIN)
    assert reached == [SECRET.decode()]


def test_one_observation_has_the_rows_of_all_tables_of_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = served(monkeypatch)
    looks = []
    look = found.observe_everything

    async def counted() -> Any:
        looks.append(1)
        return await look()

    monkeypatch.setattr(found, "observe_everything", counted)
    seen = rows(MAIN)
    assert looks == [1]
    assert {row["cluster"] for row in seen} == {"fleet-main"}
    assert {row[PROBLEM] for row in seen} == {None}
    assert {row["date"] for row in seen} == {f"{row['taken_at']:%Y-%m-%d}" for row in seen}

    run("snapshot", tmp_path / "s", "--cluster", "main", "-n", "kafka")
    for name, schema in SCHEMAS.items():
        ours = [{key: row[key] for key in schema.names if key != "taken_at"} for row in seen if row[TABLE] == name]
        kept = pq.read_table(tmp_path / "s" / f"{name}.parquet").drop_columns("taken_at").to_pylist()
        assert ours == kept
        assert kept


def test_rows_come_in_batches_of_a_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    monkeypatch.setattr(live, "BATCH_ROWS", 4)
    reader = source(MAIN).reader(source(MAIN).schema())
    batches = list(reader.read(MAIN))  # type: ignore[arg-type]
    assert max(batch.num_rows for batch in batches) == 4
    assert {batch.schema == live.WIDE for batch in batches} == {True}


def test_what_may_not_be_seen_of_a_cluster_is_a_row_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch).hidden = frozenset({"a"})
    first, *others = rows(MAIN)
    assert first[PROBLEM].startswith("topics are left out (a)")
    assert (first["cluster"], first[TABLE], first["date"]) == ("fleet-main", None, None)
    assert {row[TABLE] for row in others} == set(SCHEMAS)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ClusterError(Reason.CLUSTER_UNREACHABLE, "the brokers do not answer"), "the brokers do not answer"),
        (ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"),
    ],
)
def test_a_cluster_that_cannot_be_observed_is_a_row_with_its_problem(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise error

    monkeypatch.setattr(served(monkeypatch), "observe_everything", fail)
    (row,) = rows(MAIN)
    assert row.pop(PROBLEM).startswith(said)
    assert row.pop("cluster") == "fleet-main"
    assert set(row.values()) == {None}


def test_a_kafka_cluster_that_is_not_there_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    (row,) = rows(replace(MAIN, kafka_cluster="other"))
    assert row[PROBLEM] == "there is no KafkaCluster other in namespace kafka; there are: main (ClusterNotFound)"


def test_no_clusters_have_no_rows() -> None:
    assert partitions() == []
    assert list(source().reader(source().schema()).read(None)) == []  # type: ignore[arg-type]
