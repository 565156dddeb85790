"""What is counted, for Prometheus: one prefix, base units, no label whose values grow with partitions.

The label `kafka_cluster` is NAMESPACE/NAME of a KafkaCluster. `cluster` and `namespace` would be labels of the scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector

from reassign import __version__
from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_policy import TriggerKind
from reassign.controller.objects.scope import Scope
from reassign.core.figures import AutomationFigures, Figures, figures_of
from reassign.core.tick import Decision
from reassign.errors import Reason, ReassignError
from reassign.kube.lease import Lease

__all__ = ["Metrics"]

log = structlog.get_logger()

PREFIX = "kafka_reassign"
CLUSTER = ("kafka_cluster",)

FIGURES: tuple[tuple[str, str, str, Callable[[Figures], Mapping[str, int] | int]], ...] = (
    (
        "partitions",
        "Partitions by state, of resources that are neither suspended nor ended. Dry runs do not count.",
        "state",
        lambda f: f.partitions,
    ),
    ("partitions_blocked", "Partitions that a check keeps from starting.", "reason", lambda f: f.blocked),
    (
        "partitions_stalled",
        "Partitions in flight that have not come nearer for `stallTimeoutSeconds`.",
        "reason",
        lambda f: f.stalled,
    ),
    (
        "remaining_bytes",
        "Bytes that are still to be copied, as far as sizes are known.",
        "",
        lambda f: f.remaining_bytes,
    ),
    ("foreign_partitions_in_flight", "Partitions that other clients are moving.", "", lambda f: f.foreign),
    (
        "throttle_bytes_per_second",
        "The rate that is set on brokers, by the field of `throttle`; 0 for none.",
        "field",
        lambda f: f.throttles,
    ),
    (
        "throttles_left_over",
        "Brokers and topics whose throttle no move needs any more, and that is not restored yet.",
        "",
        lambda f: f.left_over,
    ),
    (
        "brokers_cordoned",
        "Registered brokers that the operator has cordoned, and that report so.",
        "",
        lambda f: f.cordoned,
    ),
    (
        "cordons_left_over",
        "Registered brokers that still have the operator's cordon, though no BrokerDecommission wants it any more.",
        "",
        lambda f: f.cordons_left_over,
    ),
)
"""Name, text, further label, and what is counted of one cluster, by that label."""

Conditions = Callable[[], Mapping[tuple[str, str], int]]
"""How many resources of a cluster have a condition that is True, by kind and type."""


class Metrics:
    """The metrics of one operator, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.registry.register(self)
        self._conditions: dict[str, Conditions] = {}
        self._automated: dict[str, AutomationFigures] = {}
        self._decided: dict[str, Decision] = {}
        """The last decision about each cluster: what it shows is counted when it is asked for."""
        self._gauge("build_info", "1, for the version that runs.", ("version",)).labels(__version__).set(1)
        self.kafka_up = self._gauge(
            "kafka_up", "1 when the last reconciliation could observe the Kafka cluster, 0 when it could not.", CLUSTER
        )
        self.reconciliations = self._counter(
            "reconciliations", "Reconciliations of a Kafka cluster and its resources.", CLUSTER
        )
        self.reconciliations_failed = self._counter(
            "reconciliations_failed",
            "Errors that ended a reconciliation or a part of it. A Kafka cluster that cannot be observed counts. "
            "`InternalError` is a bug of the operator.",
            (*CLUSTER, "reason"),
        )
        self.reconciliation_duration = Histogram(
            "reconciliation_duration_seconds",
            "How long one reconciliation took.",
            CLUSTER,
            namespace=PREFIX,
            registry=self.registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.copied_bytes = self._counter("copied_bytes", "Bytes that our moves have copied.", CLUSTER)
        self.partitions_in_flight_limit = self._gauge(
            "partitions_in_flight_limit",
            "Partitions that may be in flight at once: `limits.partitionsInFlight`, or fewer by `limits.pacing`.",
            CLUSTER,
        )
        self.throttle_drift = self._counter(
            "throttle_drift", "Reconciliations that found throttles changed by another client.", CLUSTER
        )
        self._policy_plans = self._counter(
            "policy_plans",
            "Plans of ReassignmentPolicies that have ended after they were approved, by the kind of the trigger and by "
            "outcome: `Succeeded`, `Retired` or `Deleted`.",
            (*CLUSTER, "kind", "outcome"),
        )
        self._policy_bytes = self._counter(
            "policy_bytes",
            "Bytes that waves of these plans copy, counted when the wave begins.",
            (*CLUSTER, "kind"),
        )
        self._plans_past_windows = self._gauge(
            "plans_past_windows",
            "Plans under way whose windows have closed three times since their first wave began. The windows of a "
            "BrokerDecommission, or of a trigger, are those of its plan.",
            CLUSTER,
        )
        self._per_cluster = (
            self.kafka_up,
            self.reconciliations,
            self.reconciliations_failed,
            self.reconciliation_duration,
            self.copied_bytes,
            self.partitions_in_flight_limit,
            self.throttle_drift,
            self._policy_plans,
            self._policy_bytes,
            self._plans_past_windows,
        )
        self.kafka_writes = self._counter(
            "kafka_writes", "Changes asked of Kafka: `Alter`, `AlterLogDirs`, `Cancel`, `Elect`, `Config`.", ("kind",)
        )
        self.api_write_bytes = self._counter(
            "api_write_bytes", "Bytes sent to the API server to write, by resource and subresource.", ("resource",)
        )
        self.status_patches = self._counter("status_patches", "Statuses written to the API server.", ())
        self.loops_restarted = self._counter("loops_restarted", "Loops that were stuck and were started anew.", ())
        self.undos_given_up = self._counter(
            "undos_given_up",
            "ReassignmentRecords released as they were, because their resource and KafkaCluster were both gone for ten "
            "minutes. The log names the partitions left in flight.",
            (),
        )
        self.namespace_readable = self._gauge(
            "namespace_readable", "1 for a watched namespace that can be read, `*` for all.", ("watched_namespace",)
        )
        self.lease_held = self._gauge("lease_held", "1 for the pod that holds the Lease and writes.", ("lease",))
        self.lease_renewed = self._gauge(
            "lease_renewed_timestamp_seconds", "When this pod last renewed the Lease, 0 for never.", ("lease",)
        )
        self.lease_transitions = self._gauge(
            "lease_transitions",
            "How often the Lease has changed its holder. NaN until this pod has read it.",
            ("lease",),
        )
        self.standby_ready = self._gauge(
            "standby_ready", "1 for a pod that waits for the Lease and could take over at once.", ("lease",)
        )

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, text, labels, namespace=PREFIX, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(name, text, labels, namespace=PREFIX, registry=self.registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return what the last decisions and the resources show, so that no series outlives what it is about."""
        found = self._figures()
        for name, text, label, of in FIGURES:
            family = _family(name, text, *([label] if label else []))
            for cluster, figures in found.items():
                counted = of(figures)
                for value, count in counted.items() if isinstance(counted, Mapping) else [(None, counted)]:
                    family.add_metric((cluster, value) if value is not None else (cluster,), count)
            yield family
        yield from self._of_automation()
        resources = _family(
            "resources", "Resources for which this condition is True, the KafkaCluster included.", "kind", "condition"
        )
        for cluster, conditions in self._conditions.items():
            for labels, count in conditions().items():
                resources.add_metric((cluster, *labels), count)
        yield resources

    def _of_automation(self) -> Iterator[GaugeMetricFamily]:
        left = _family(
            "decommission_replicas_left",
            "Replicas left on brokers of BrokerDecommissions that are approved and not suspended. Topics of "
            "`excludeTopics` do not count.",
        )
        lost = _family(
            "brokers_lost",
            "Brokers that have replicas, and have been down for as long as `brokerLost` of a ReassignmentPolicy asks.",
        )
        triggers = _family(
            "policy_trigger",
            "Triggers of ReassignmentPolicies by kind and state, 0 for none. One that is `Held` with the reason "
            "`Suspended` has the state `Suspended` here.",
            "kind",
            "state",
        )
        for cluster, figures in self._automated.items():
            left.add_metric((cluster,), figures.replicas_left)
            lost.add_metric((cluster,), figures.brokers_lost)
            for labels, count in figures.triggers.items():
                triggers.add_metric((cluster, *labels), count)
        yield from (left, lost, triggers)

    def _figures(self) -> dict[str, Figures]:
        """Return the figures by cluster; a bug in one cluster's leaves those of others."""
        found = {}
        for cluster, decision in self._decided.items():
            try:
                found[cluster] = figures_of(decision)
            except Exception:
                log.exception("metrics failed unexpectedly", kafka_cluster=cluster)
                self.failed(cluster, Reason.INTERNAL_ERROR)
        return found

    def serve(self, cluster: str, conditions: Conditions) -> None:
        """Begin the series of a cluster that is served from now on, at 0."""
        self._conditions[cluster] = conditions
        for counter in (self.reconciliations, self.copied_bytes, self.throttle_drift):
            counter.labels(cluster)
        self.automated(cluster, AutomationFigures(), 0)

    def decided(self, cluster: str, decision: Decision, limit: int) -> None:
        """Take over a decision about a cluster after its steps, and how many partitions may be in flight."""
        self._decided[cluster] = decision
        self.partitions_in_flight_limit.labels(cluster).set(limit)

    def policy_plan_ended(self, cluster: str, kind: TriggerKind, outcome: PlanOutcome) -> None:
        """Count a plan of a policy that has ended."""
        self._policy_plans.labels(cluster, kind, outcome).inc()

    def policy_wave_began(self, cluster: str, kind: TriggerKind, copied: int) -> None:
        """Count the bytes of a wave of a policy's plan."""
        self._policy_bytes.labels(cluster, kind).inc(copied)

    def automated(self, cluster: str, figures: AutomationFigures, plans_past_windows: int) -> None:
        """Say how far the owners of plans are, and for how many plans the windows do not suffice."""
        self._automated[cluster] = figures
        for kind in {kind for kind, _ in figures.triggers}:  # their series begin at 0
            self._policy_bytes.labels(cluster, kind)
            for outcome in (PlanOutcome.SUCCEEDED, PlanOutcome.RETIRED, PlanOutcome.DELETED):
                self._policy_plans.labels(cluster, kind, outcome)
        self._plans_past_windows.labels(cluster).set(plans_past_windows)

    def observe_namespaces(self, scopes: Mapping[str, Scope]) -> None:
        """Say at each scrape which of the watched namespaces can be read."""
        for scope in scopes.values():
            readable = self.namespace_readable.labels(scope.name)
            readable.set_function(lambda scope=scope: float(scope.readable))  # type: ignore[misc]

    def observe_lease(self, lease: Lease | None, ready: Callable[[], bool]) -> None:
        """Say at each scrape what is known of the Lease; without one, this process is the one that writes."""
        name = lease.full_name if lease else ""
        self.lease_held.labels(name).set_function(lambda: lease is None or lease.held)
        self.lease_renewed.labels(name).set_function(lambda: lease.renewed_at if lease else 0)
        self.lease_transitions.labels(name).set_function(lambda: lease.transitions if lease else 0)
        self.standby_ready.labels(name).set_function(lambda: lease is not None and not lease.held and ready())

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

    def api_write(self, resource: str, size: int) -> None:
        """Count bytes that were sent to the API server, by what they write."""
        self.api_write_bytes.labels(resource).inc(size)

    def status_patch(self) -> None:
        """Count a status that was written to the API server."""
        self.status_patches.inc()

    def forget(self, cluster: str) -> None:
        """Drop the series of a cluster that is gone."""
        self._conditions.pop(cluster, None)
        self._decided.pop(cluster, None)
        self._automated.pop(cluster, None)
        for metric in self._per_cluster:
            metric.remove_by_labels({"kafka_cluster": cluster})

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=(*CLUSTER, *labels))
