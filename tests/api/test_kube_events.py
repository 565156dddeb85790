"""Events on our objects: one for what happened, a count for what happened again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from localplatform.controlplane import ApiServer
from reassign.kube.client import KubeClient
from reassign.kube.events import EventRecorder
from tests.api.kubectl import Kubectl

Object = dict[str, Any]


@pytest.fixture(autouse=True)
def kubeconfig(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))


@pytest.fixture
def cluster(sandbox: Kubectl) -> Object:
    """As much of a KafkaCluster as an event needs."""
    metadata = {"name": "main", "namespace": sandbox.namespace, "uid": "7c1a", "resourceVersion": "1"}
    return {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "KafkaCluster", "metadata": metadata}


def record(obj: Object, *notes: str, between: Callable[[], object] = lambda: None) -> None:
    async def run() -> None:
        async with KubeClient() as kube:
            recorder = EventRecorder(kube, "pod-1")
            for note in notes:
                await recorder.record(obj, "Warning", "ClusterUnreachable", note, "Connect")
                between()

    asyncio.run(run())


def events(sandbox: Kubectl) -> list[Object]:
    listed: list[Object] = sandbox.json("get", "events.events.k8s.io")["items"]
    return sorted(listed, key=lambda event: str(event["eventTime"]))


def test_an_event_says_what_happened_to_what(sandbox: Kubectl, cluster: Object) -> None:
    record(cluster, "no broker answers")
    (event,) = events(sandbox)
    assert event["regarding"] == cluster["metadata"] | {key: cluster[key] for key in ("apiVersion", "kind")}
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "ClusterUnreachable", "Connect")
    assert event["note"] == "no broker answers"
    assert event["reportingController"] == "kafka-reassign-operator"
    assert event["reportingInstance"] == "pod-1"


def test_a_repeat_is_counted_in_the_series_of_the_first(sandbox: Kubectl, cluster: Object) -> None:
    record(cluster, "no broker answers", "another note", "no broker answers", "no broker answers")
    first, other = events(sandbox)
    assert first["series"]["count"] == 3
    assert "series" not in other


def test_a_repeat_of_an_event_that_has_expired_is_a_new_one(sandbox: Kubectl, cluster: Object) -> None:
    record(cluster, "again", "again", between=lambda: sandbox("delete", "events.events.k8s.io", "--all"))
    record(cluster, "again")
    (event,) = events(sandbox)
    assert event["note"] == "again"


def test_a_note_longer_than_allowed_is_cut(sandbox: Kubectl, cluster: Object) -> None:
    record(cluster, "ä" * 2000)
    (event,) = events(sandbox)
    assert event["note"] == "ä" * 512  # the limit is in bytes


def test_an_event_that_cannot_be_written_does_not_fail_the_caller(sandbox: Kubectl, cluster: Object) -> None:
    record(cluster | {"metadata": cluster["metadata"] | {"namespace": "not-there"}}, "nobody will read this")
    record(cluster, "but this")
    assert [event["note"] for event in events(sandbox)] == ["but this"]
