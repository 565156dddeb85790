"""A real Prometheus reads a real operator, and the alerts fire by real faults; `-s` shows after how many seconds.

The rules are those of the chart, with times that are 300 times as short.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from kafka import TopicPartition

from localplatform import prerequisites, prometheus
from localplatform.prometheus import Prometheus
from tests.benchmarks.apart import CLUSTER, NAMESPACE, Apart, apart, eventually, manifest
from tests.monitoring.rules import ALERTS, metrics, queries
from tests.unit.metrics import documented

SCALE = 300
UNITS = {"m": 60, "h": 3600}
KAFKA_CLUSTER = f"{NAMESPACE}/{CLUSTER}"


class Site(NamedTuple):
    """The operator on brokers of its own, and what watches it."""

    bench: Apart
    prometheus: Prometheus

    def query(self, expr: str) -> list[float]:
        return [float(sample["value"][1]) for sample in self.prometheus.ask("query", query=expr)["result"]]

    def fires(self, alert: str, since: float) -> None:
        """Wait until an alert fires, with all that its annotations name, and say how long that took."""
        name = f"KafkaReassign{alert}"
        at = eventually(f"{name} fires", lambda: name in self.prometheus.firing())
        found = self.prometheus.firing()[name]
        assert found["labels"].get("kafka_cluster", KAFKA_CLUSTER) == KAFKA_CLUSTER
        assert "no value" not in str(found["annotations"])
        print(f"{name} fires {at - since:.1f} s after the fault")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    prerequisites.require(["api", "brokers"])
    directory = tmp_path_factory.mktemp("prometheus")
    with apart(3, controllers=1) as bench:
        yield Site(bench, prometheus.start(bench.processes, directory, scaled(directory), [bench.port]))


def scaled(directory: Path) -> Path:
    """The chart's rules with short times."""
    rules = yaml.safe_load(ALERTS.read_text())
    for rule in rules["groups"][0]["rules"]:
        if wait := rule.get("for"):
            rule["for"] = f"{int(wait[:-1]) * UNITS[wait[-1]] // SCALE}s"
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    return file


def test_prometheus_reads_every_metric_of_the_table_and_the_dashboard(site: Site) -> None:
    eventually("metrics are read", lambda: site.query("kafka_reassign_kafka_up") == [1])
    known = set(site.prometheus.ask("metadata"))
    assert {name.removesuffix("_total") for name in documented()} <= {name.removesuffix("_total") for name in known}
    assert all(metrics(expr) <= documented().keys() for expr in queries())
    eventually("all is well", lambda: site.prometheus.firing().keys() == {"KafkaReassignStandbyMissing"})


def test_alerts_fire_by_real_faults(site: Site) -> None:
    bench = site.bench
    began = time.monotonic()
    site.fires("StandbyMissing", began)

    bench.kafka.create("refused", [[0, 1]])
    began = time.monotonic()
    bench.apply(manifest("refused", "refused", {0: [0, 9]}))
    site.fires("Stalled", began)
    site.fires("Blocked", began)

    bench.kafka.create("moved", [[0, 1]])
    bench.apply(manifest("moved", "moved", {0: [0, 2]}))
    eventually("it is moved", lambda: bench.condition("moved", "Succeeded"))
    began = time.monotonic()
    bench.admin.alter_partition_reassignments({TopicPartition("moved", 0): [0, 1]})
    site.fires("Drift", began)

    bench.kafka.create("slow", [[0, 1]], 8 * 2**20)
    bench.apply(manifest("slow", "slow", {0: [0, 2]}, throttle={"interBroker": "1Ki"}))
    rate = 'kafka_reassign_throttle_bytes_per_second{field="interBroker"}'
    eventually("the throttle is in use", lambda: site.query(rate) == [1024])
    eventually("it is in flight", lambda: site.query('kafka_reassign_partitions{state="InFlight"}') == [1])
    began = time.monotonic()
    bench.brokers.kill(2)
    bench.kubectl("delete", "partitionreassignment", "slow", "--wait=false")
    site.fires("ThrottleLeftBehind", began)

    began = time.monotonic()
    bench.brokers.stop()
    site.fires("KafkaUnreachable", began)
    log = bench.processes.log("operator")
    eventually("the outage is logged", lambda: log.read_text().count("outage began") == 1)

    began = time.monotonic()
    bench.processes.stop("operator")
    site.fires("OperatorDown", began)
