"""Metrics: what they say of a KafkaCluster that is served, and that the page of them describes each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reassign.api.common import FINALIZER
from reassign.api.reassignment_policy import TriggerKind, TriggerState
from reassign.controller import metrics
from reassign.controller.cluster.automation import AutomationStage
from reassign.controller.objects.scope import Scope
from reassign.core.automation.model import BrokerSeen, BrokersSeen
from reassign.core.figures import AutomationFigures
from reassign.core.model.problem import Problem
from reassign.core.model.row import Row, Saying, SayingKind
from reassign.errors import ApiServerError, Reason
from reassign.kube.client import _written_resource
from reassign.kube.lease import Lease
from tests.unit.metrics import documented, series
from tests.unit.world import LATER, OURS, World, api_object


@pytest.fixture
def world() -> World:
    found = World()
    found.metrics.serve("kafka/main", lambda: found.store.conditions(("kafka", "main")))
    return found


def exposed(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """The same of what a process says, for the metrics of our own."""
    found = {}
    for family in text_string_to_metric_families(text):
        if not family.name.startswith("kafka_reassign_") or family.name.endswith("_created"):
            continue
        labels = {
            frozenset(sample.labels) - {"le"} for sample in family.samples if not sample.name.endswith("_created")
        }
        assert len(labels) == 1, f"{family.name} has samples with {labels or 'no labels: give it a sample'}"
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, labels.pop())
    return found


def test_the_table_names_each_metric_with_its_type_and_labels(world: World) -> None:
    world.add("blocked", LATER, (9, 2, 3))
    world.tick()
    world.metrics.failed("kafka/main", Reason.CLUSTER_UNREACHABLE)
    with world.metrics.reconciliation("kafka/main"):
        pass
    world.metrics.api_write("leases", 1)
    world.metrics.observe_lease(Lease("kafka", "operator", "pod", lambda: None), lambda: True)
    world.metrics.observe_namespaces({"": Scope("")})
    overdue = Saying(SayingKind.OVERDUE, Problem(Reason.MOVE_STALLED, "nothing is copied"))
    decision = world.metrics._decided["kafka/main"]
    stalled = tuple(verdict.with_rows({OURS: Row(says=(overdue,))}) for verdict in decision.verdicts)
    world.metrics.decided("kafka/main", replace(decision, verdicts=stalled), 1)
    world.metrics.automated("kafka/main", AutomationFigures(triggers={(TriggerKind.SCHEDULE, TriggerState.IDLE): 1}), 0)
    assert documented() == exposed(world.metrics.text().decode())


def test_partitions_are_counted_by_state_and_reason(world: World) -> None:
    world.add("blocked", LATER, (9, 2, 3))
    world.tick()
    found = series(world)
    states = {name: value for name, value in found.items() if name.startswith("partitions{state") and value}
    assert states == {"partitions{state=InFlight}": 1, "partitions{state=Blocked}": 1}
    assert found["partitions_blocked{reason=UnknownBroker}"] == 1
    assert found["foreign_partitions_in_flight"] == 1
    world.delete("blocked")
    world.tick()
    assert "partitions_blocked{reason=UnknownBroker}" not in series(world)


def test_suspended_resources_and_dry_runs_are_not_counted_as_blocked(world: World) -> None:
    for name, setting in (("asleep", {"suspend": True}), ("checked", {"mode": "DryRun"})):
        world.add(name, LATER, (9, 2, 3))
        world.change(name, lambda obj, setting=setting: obj["spec"].update(setting))  # type: ignore[misc]
    world.tick(3)
    found = series(world)
    assert found["partitions{state=Blocked}"] == found["partitions{state=Pending}"] == 0


def test_bytes_are_counted_while_they_are_copied_and_none_twice(world: World) -> None:
    sizes = world.kafka.sizes
    assert sizes
    del sizes[LATER][4]
    world.add("late", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    before = series(world)
    sizes[LATER][4] = 30
    world.tick()
    sizes[LATER][4] = 80
    world.tick(2)
    world.restart()
    world.tick(2)
    assert series(world)["copied_bytes_total"] - before["copied_bytes_total"] == 80
    assert before["remaining_bytes"] - series(world)["remaining_bytes"] == 80


def test_an_unreachable_kafka_is_down_and_counts_as_a_failure(world: World) -> None:
    assert series(world)["kafka_up"] == 1
    world.brokers.reachable = False
    world.tick()
    assert series(world)["kafka_up"] == 0
    assert series(world)["reconciliations_failed_total{reason=ClusterUnreachable}"] == 1


def test_a_record_that_cannot_be_written_is_no_outage_of_kafka(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise ApiServerError("500: failed calling webhook")

    monkeypatch.setattr(world.kube, "create", refuse)
    world.add("late", LATER, (4, 2, 3))
    world.tick(3)
    assert LATER not in world.kafka.reassignments
    assert world.ready("main")["reason"] == "Connected"
    assert series(world)["kafka_up"] == 1


def test_conditions_that_are_true_are_counted_by_kind(world: World) -> None:
    assert series(world)["resources{condition=Ready,kind=KafkaCluster}"] == 1
    assert series(world)["resources{condition=Reconciling,kind=PartitionReassignment}"] == 1
    world.change("main", lambda obj: obj["spec"].update(execution="Pause"))
    world.tick()
    assert series(world)["resources{condition=Paused,kind=KafkaCluster}"] == 1


def test_replicas_left_of_a_decommission_at_work_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = {number: BrokerSeen(replicas={"ours": 3}) for number in range(6)}
    seen = BrokersSeen(brokers, frozenset({"ours"}), factor=9)  # so nothing is planned
    monkeypatch.setattr(AutomationStage, "_look", lambda *_: None)
    monkeypatch.setattr(AutomationStage, "_seen", lambda *_: seen)
    retire = api_object("BrokerDecommission", "retire", {"clusterRef": {"name": "main"}, "brokers": [4, 5]})
    retire["spec"]["approval"] = "NotRequired"
    retire["metadata"]["finalizers"] = [FINALIZER]
    spec = {"clusterRef": {"name": "main", "namespace": "kafka"}, "part": 0}
    record = api_object("ReassignmentRecord", "uid-retire-0", {**spec, "decommission": {"approval": {"bytes": 0}}})
    owner = {"apiVersion": record["apiVersion"], "kind": "BrokerDecommission", "name": "retire", "uid": "uid-retire"}
    record["metadata"]["ownerReferences"] = [owner]
    for obj in (retire, record):
        world.put(obj)
    world.tick()
    assert series(world)["decommission_replicas_left"] == 6
    world.change("retire", lambda obj: obj["spec"].update(suspend=True))
    world.tick()
    assert series(world)["decommission_replicas_left"] == 0


def test_no_series_is_left_of_a_cluster_that_is_gone_and_others_stay(world: World) -> None:
    shown = world.metrics
    for cluster in ("kafka/gone", "kafka/stays"):
        with pytest.raises(ZeroDivisionError), shown.reconciliation(cluster):
            raise ZeroDivisionError
        shown.serve(cluster, lambda: {("KafkaCluster", "Ready"): 1})
        shown.decided(cluster, shown._decided["kafka/main"], 10)
        shown.kafka_up.labels(cluster).set(1)
        shown.throttle_drift.labels(cluster).inc()
        shown.automated(cluster, AutomationFigures(3, {(TriggerKind.SCHEDULE, TriggerState.IDLE): 1}, 1), 1)
    shown.forget("kafka/gone")
    text = shown.text().decode()
    assert "kafka/gone" not in text
    assert 'reconciliations_failed_total{kafka_cluster="kafka/stays",reason="InternalError"} 1.0' in text


def test_a_bug_in_counting_one_cluster_leaves_the_series_of_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(world.metrics._decided["kafka/main"], verdicts=())
    world.metrics.decided("kafka/broken", broken, 1)
    right = metrics.figures_of
    monkeypatch.setattr(metrics, "figures_of", lambda decision: 1 / 0 if decision is broken else right(decision))
    assert series(world)["partitions{state=InFlight}"] == 1
    counted = 'reconciliations_failed_total{kafka_cluster="kafka/broken",reason="InternalError"}'
    assert counted in world.metrics.text().decode()


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/apis/kafka.reassign.dev/v1alpha1/namespaces/kafka/kafkaclusters/main/status", "kafkaclusters/status"),
        ("/apis/kafka.reassign.dev/v1alpha1/namespaces/kafka/kafkaclusters/main", "kafkaclusters"),
        ("/api/v1/namespaces/kafka/configmaps", "configmaps"),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "selfsubjectaccessreviews"),
        ("/api/v1/namespaces/kafka", ""),
    ],
)
def test_written_bytes_are_named_by_resource_and_subresource(path: str, resource: str) -> None:
    assert _written_resource(path) == resource
