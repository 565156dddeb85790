"""Objects that an older version of the definitions stored: what the rules and defaults of now make of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from localplatform.controlplane import api_server
from reassign.api.crd import definitions
from reassign.api.kafka_cluster import KafkaCluster, ThrottleStatus
from tests.api.kubectl import Kubectl, RefusedError, cluster, plan, reassignment

Object = dict[str, Any]
SASL = {"mechanism": "PLAIN", "username": "mover", "passwordSecretRef": {"name": "user", "key": "password"}}


def older(definition: Object) -> Object:
    """A definition as it was before: no rules on KafkaCluster's spec, no default of status, a default of exclude.

    Statuses had a record, and the throttles of brokers.
    """
    before = deepcopy(definition)
    properties = before["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    spec, status = properties["spec"], properties["status"]
    del status["default"]
    del status["properties"]["observedGeneration"]["default"]
    if "sasl" in spec["properties"]:
        del spec["x-kubernetes-validations"]
        del spec["properties"]["sasl"]["properties"]["allowPlaintext"]
    anything = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    status["properties"]["record"] = anything
    if "throttle" in status["properties"]:
        status["properties"]["throttle"]["properties"]["brokers"] = anything
    if "topics" in spec["properties"]:
        spec["properties"]["topics"]["properties"]["exclude"]["default"] = ["__*"]
    return before


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """An API server whose definitions were replaced after these objects were stored."""
    with api_server(tmp_path_factory.mktemp("upgrade")) as server:
        kubectl = Kubectl(server)

        def define(definition: Object) -> None:
            kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))

        for name, definition in definitions().items():
            if "reassignmentrecords" not in name:  # there were none
                define(older(definition))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
        throttled = {"limits": {"maxThrottle": "1Mi"}, "throttle": {"interBroker": "2Mi", "logDir": "1Ki"}}
        kubectl.apply(cluster(sasl=SASL))
        kubectl.apply(cluster("throttled", **throttled))
        kubectl.apply(cluster("rated"))
        kubectl.apply(reassignment("never-seen"))
        kubectl.apply(reassignment("seen"))
        kubectl.write_status("kpr", "seen", {"observedGeneration": 1, "record": [{"topic": "orders"}]})
        rate = {"broker": 1, "configs": [{"name": "follower.replication.throttled.rate", "value": "1024"}]}
        kubectl.write_status("kcl", "rated", {"throttle": {"interBroker": 1024, "brokers": [rate]}})
        assert "record" in kubectl.read("kpr", "seen")["status"]
        kubectl.apply(plan())
        assert "status" not in kubectl.read("kpr", "never-seen")
        for definition in definitions().values():
            define(definition)
        _wait_until_enforced(kubectl)
        yield kubectl


def _wait_until_enforced(kubectl: Kubectl) -> None:
    """The API server serves a changed schema some moments later."""
    for _ in range(50):
        try:
            kubectl.apply(cluster("probe", sasl=SASL), "--dry-run=server")
        except RefusedError:
            return
    raise AssertionError("the new rules are not enforced")


@pytest.mark.parametrize("name", ["main", "throttled"])
def test_the_brake_works_on_a_stored_cluster_that_breaks_a_rule(upgraded: Kubectl, name: str) -> None:
    assert KafkaCluster.parse(upgraded.read("kcl", name)).spec.execution == "Run"
    patched = upgraded.patch("kcl", name, {"spec": {"execution": "CancelOurs"}, "metadata": {"labels": {"a": "b"}}})
    assert patched["spec"]["execution"] == "CancelOurs"
    upgraded.patch("kcl", name, {"metadata": {"finalizers": ["kafka.reassign.dev/cancel"]}})
    upgraded.write_status("kcl", name, {"observedGeneration": 2})
    upgraded.patch("kcl", name, {"metadata": {"finalizers": None}})


def test_an_edit_of_what_breaks_the_rule_is_refused(upgraded: Kubectl) -> None:
    for name, change, refused in (
        ("main", {"sasl": {"username": "other"}}, "sasl without tls"),
        ("throttled", {"throttle": {"interBroker": "3Mi"}}, "above limits.maxThrottle"),
        ("throttled", {"limits": {"maxThrottle": "1.5Mi"}}, "above limits.maxThrottle"),
    ):
        with pytest.raises(RefusedError, match=refused):
            upgraded.patch("kcl", name, {"spec": change})
    upgraded.patch("kcl", "throttled", {"spec": {"limits": {"movesPerBroker": 1}, "throttle": {"logDir": "1Mi"}}})
    upgraded.patch("kcl", "main", {"spec": {"sasl": {"allowPlaintext": True, "username": "other"}}})
    upgraded.patch("kcl", "throttled", {"spec": {"limits": {"maxThrottle": "2Mi"}}})


def test_a_stored_object_without_a_status_gets_the_default(upgraded: Kubectl) -> None:
    assert upgraded.read("kpr", "never-seen")["status"] == {"observedGeneration": -1}


def test_fields_that_have_left_a_status_are_not_served(upgraded: Kubectl) -> None:
    assert upgraded.read("kpr", "seen")["status"] == {"observedGeneration": 1}
    cluster = KafkaCluster.parse(upgraded.read("kcl", "rated"))
    assert cluster.status.throttle == ThrottleStatus(inter_broker=1024)


def test_a_stored_plan_keeps_the_default_that_was_written_into_it(upgraded: Kubectl) -> None:
    assert upgraded.read("krp", "drain")["spec"]["topics"] == {"include": ["*"], "exclude": ["__*"]}


def test_a_plan_made_now_has_no_exclude(upgraded: Kubectl) -> None:
    assert upgraded.apply(plan("new"))["spec"]["topics"] == {"include": ["*"]}
