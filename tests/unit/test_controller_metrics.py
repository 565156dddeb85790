"""Metrics of a KafkaCluster that is gone."""

from __future__ import annotations

import pytest

from reassign.controller.metrics import Metrics
from reassign.errors import Reason


def test_no_series_is_left_of_a_cluster_that_is_gone_and_others_stay() -> None:
    metrics = Metrics()
    for cluster in ("kafka/gone", "kafka/stays"):
        with pytest.raises(ZeroDivisionError), metrics.reconciliation(cluster):
            raise ZeroDivisionError
        metrics.failed(cluster, Reason.CLUSTER_UNREACHABLE)
        metrics.partitions_in_flight.labels(cluster).set(1)
        metrics.partitions_in_flight_limit.labels(cluster).set(10)
        metrics.throttle_drift.labels(cluster).inc()
    metrics.forget("kafka/gone")
    assert "kafka/gone" not in metrics.text().decode()
    assert 'reconciliations_failed_total{cluster="kafka/stays",reason="InternalError"} 1.0' in metrics.text().decode()
