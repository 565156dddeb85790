"""What is counted, for Prometheus: one prefix, base units, no label whose values grow with partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from reassign.api.partition_reassignment import RecordState
from reassign.controller.listing import Scope
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason, ReassignError

__all__ = ["Metrics"]

PREFIX = "kafka_reassign"
CLUSTER = ("cluster",)
"""NAMESPACE/NAME of a KafkaCluster."""


class Metrics:
    """The metrics of one operator, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.reconciliations = self._counter("reconciliations", "Looks at a cluster and its resources.", CLUSTER)
        self.reconciliations_failed = self._counter(
            "reconciliations_failed",
            "Looks at a cluster, or one of its resources, that ended with an error.",
            ("cluster", "reason"),
        )
        self.reconciliation_duration = Histogram(
            "reconciliation_duration_seconds",
            "How long one reconciliation took, with what was done.",
            CLUSTER,
            namespace=PREFIX,
            registry=self.registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.partitions_in_flight = self._gauge("partitions_in_flight", "Partitions that we are moving.", CLUSTER)
        self.partitions_in_flight_limit = self._gauge(
            "partitions_in_flight_limit",
            "Partitions that may be in flight at once: limits.partitionsInFlight, or what limits.pacing makes of it.",
            CLUSTER,
        )
        self.kafka_writes = self._counter(
            "kafka_writes", "Changes asked of Kafka: an Alter or Cancel of a partition, an Elect, a Config.", ("kind",)
        )
        self.throttle_drift = self._counter(
            "throttle_drift", "Reconciliations that found throttles changed by another client.", CLUSTER
        )
        self.status_patches = self._counter("status_patches", "Statuses written to the API server.", ())
        self.loops_restarted = self._counter("loops_restarted", "Loops that were stuck and were started anew.", ())
        self.undos_given_up = self._counter(
            "undos_given_up", "Records of resources that are gone, as is their KafkaCluster, released as they were.", ()
        )
        self.lease_held = self._gauge("lease_held", "Whether this process is the one that writes.", ())
        self.namespace_readable = self._gauge(
            "namespace_readable", "Whether a watched namespace can be read; * stands for all.", ("namespace",)
        )

    def count_moves(self, cluster: str, verdicts: Iterable[Verdict], limit: int) -> None:
        """Set how many partitions a cluster's resources have in flight, and how many may be."""
        moving = sum(e.state is RecordState.IN_FLIGHT for v in verdicts for e in v.record.values())
        self.partitions_in_flight.labels(cluster).set(moving)
        self.partitions_in_flight_limit.labels(cluster).set(limit)

    def observe_namespaces(self, scopes: Mapping[str, Scope]) -> None:
        """Say at each scrape which of the watched namespaces can be read."""
        for scope in scopes.values():
            readable = self.namespace_readable.labels(scope.name)
            readable.set_function(lambda scope=scope: float(scope.readable))  # type: ignore[misc]

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, text, labels, namespace=PREFIX, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(name, text, labels, namespace=PREFIX, registry=self.registry)

    @contextmanager
    def reconciliation(self, cluster: str) -> Iterator[None]:
        """Count and time one reconciliation of a cluster; an error is counted by its reason and goes on."""
        self.reconciliations.labels(cluster).inc()
        try:
            with self.reconciliation_duration.labels(cluster).time():
                yield
        except Exception as error:
            reason = error.reason if isinstance(error, ReassignError) else Reason.INTERNAL_ERROR
            self.failed(cluster, reason)
            raise

    def failed(self, cluster: str, reason: Reason) -> None:
        """Count an error that ended a reconciliation of a cluster, or of one of its resources."""
        self.reconciliations_failed.labels(cluster, reason).inc()

    def kafka_write(self, kind: str) -> None:
        """Count a step that was sent to Kafka, by its kind."""
        self.kafka_writes.labels(kind).inc()

    def status_patch(self) -> None:
        """Count a status that was written to the API server."""
        self.status_patches.inc()

    def forget(self, cluster: str) -> None:
        """Drop the series of a cluster that is gone."""
        for metric in (
            self.reconciliations,
            self.reconciliations_failed,
            self.reconciliation_duration,
            self.partitions_in_flight,
            self.partitions_in_flight_limit,
            self.throttle_drift,
        ):
            metric.remove_by_labels({"cluster": cluster})

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
