"""The BrokerDecommission resource: what it is filled in with, and that schema, rules and model refuse the same."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reassign.api.broker_decommission import (
    BrokerDecommission,
    BrokerDecommissionSpec,
    BrokerDecommissionStatus,
    CordonWish,
    DecommissionState,
    UnregisterWish,
)
from reassign.api.crd import definitions
from reassign.api.made_plan import PlanOutcome
from reassign.api.reassignment_plan import Approval

DEFINITION = definitions()["kafka.reassign.dev_brokerdecommissions.yaml"]
[VERSION] = DEFINITION["spec"]["versions"]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]
DIGEST = f"sha256:{'a' * 64}"
NOW = "2026-01-02T03:04:05Z"

FULL = {
    "clusterRef": {"name": "main"},
    "brokers": [5, 2147483647],
    "excludeTopics": ["__amazon_msk_canary*"],
    "cordon": "Never",
    "unregister": "Never",
    "approval": "NotRequired",
    "approvedDigest": DIGEST,
    "suspend": True,
    "racks": {"awareness": "Flat"},
    "waves": {"maxPartitions": 10, "maxBytes": "1Gi"},
    "windows": [{"cron": "0 22 * * *", "durationSeconds": 21600, "timeZone": "Europe/Berlin"}],
    "template": {"throttle": {"interBroker": "50Mi"}, "stallTimeoutSeconds": 60},
}


def spec(**changes: Any) -> dict[str, Any]:
    return {"clusterRef": {"name": "main"}, "brokers": [5], **changes}


def decommission(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kafka", "uid": "u", "generation": 1}
    return {"metadata": metadata, "spec": spec()}


def rules(schema: dict[str, Any]) -> dict[str, str]:
    """The CEL rules of a part of the schema, with their messages."""
    return {rule["rule"]: rule["message"] for rule in schema.get("x-kubernetes-validations", ())}


def test_a_minimal_spec_gets_the_defaults_of_the_contract() -> None:
    read = BrokerDecommissionSpec.parse(spec())
    assert (read.cordon, read.unregister, read.approval) == (
        CordonWish.WHERE_SUPPORTED,
        UnregisterWish.NEVER,
        Approval.REQUIRED,
    )
    assert (read.exclude_topics, read.approved_digest, read.suspend) == ((), None, False)
    assert (read.racks.awareness, read.waves.max_partitions) == ("Tree", 200)


def test_a_full_spec_is_read_and_written_back_the_same() -> None:
    jsonschema.validate(FULL, SPEC)
    assert BrokerDecommissionSpec.parse(FULL).wire() == FULL


def test_a_full_status_is_read_and_written_back_the_same() -> None:
    made = {"name": "main-1", "digest": DIGEST, "bytes": 9, "lowerBoundBytes": 8, "replicas": 3}
    times = {"startTime": NOW, "completionTime": NOW}
    status = {
        "observedGeneration": 1,
        "conditions": [
            {
                "type": kind,
                "status": "False",
                "lastTransitionTime": NOW,
                "reason": "WaveInFlight",
                "message": "wave 2/4",
            }
            for kind in ("Ready", "Empty", "Cordoned", "Succeeded", "Reconciling", "Stalled")
        ],
        "summary": "312 replicas left on broker 5; wave 2/4",
        "replicasLeft": 312,
        "digest": DIGEST,
        "brokers": [{"id": 5, "state": state.value, "replicas": 312, "cordoned": True} for state in DecommissionState],
        "plans": [{**made, **times, "outcome": outcome.value} for outcome in PlanOutcome],
    }
    jsonschema.validate(status, SCHEMA["properties"]["status"])
    assert BrokerDecommissionStatus.parse(status).wire() == status


@pytest.mark.parametrize("status", [{}, {"observedGeneration": -1}])
def test_a_status_never_written_has_no_observed_generation(status: dict[str, int]) -> None:
    jsonschema.validate(status, SCHEMA["properties"]["status"])
    assert BrokerDecommissionStatus.parse(status) == BrokerDecommissionStatus()
    assert SCHEMA["properties"]["status"]["default"] == {"observedGeneration": -1}


BAD = {
    "no cluster": {"brokers": [5]},
    "no brokers": {"clusterRef": {"name": "main"}},
    "an empty list of brokers": spec(brokers=[]),
    "51 brokers": spec(brokers=[*range(51)]),
    "a broker below 0": spec(brokers=[-1]),
    "a broker beyond 32 bits": spec(brokers=[2**31]),
    "a broker by its name": spec(brokers=["broker-5"]),
    "a cluster without a name": spec(clusterRef={}),
    "a cluster with a name that no object has": spec(clusterRef={"name": "Main_"}),
    "a pattern that no topic matches": spec(excludeTopics=["a topic"]),
    "an empty pattern": spec(excludeTopics=[""]),
    "101 patterns": spec(excludeTopics=[f"t{number}" for number in range(101)]),
    "another cordon": spec(cordon="Always"),
    "another unregister": spec(unregister="WhenEmpty"),
    "another approval": spec(approval="Given"),
    "a digest that is none": spec(approvedDigest="sha256:abc"),
    "a digest in capitals": spec(approvedDigest=f"sha256:{'A' * 64}"),
    "waves of no partition": spec(waves={"maxPartitions": 0}),
    "waves of 501 partitions": spec(waves={"maxPartitions": 501}),
    "a window of four minutes": spec(windows=[{"cron": "0 22 * * *", "durationSeconds": 240}]),
    "another awareness": spec(racks={"awareness": "Room"}),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_the_schema_refuses_the_model_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SPEC)
    with pytest.raises(ValidationError):
        BrokerDecommissionSpec.parse(bad)


BY_RULE = {
    "names a broker more than once": (spec(brokers=[5, 6, 5]), SPEC["properties"]["brokers"]),
    "names a pattern twice": (spec(excludeTopics=["a*", "a*"]), SPEC["properties"]["excludeTopics"]),
    "unregister WhenDown cannot be with excludeTopics, whose replicas may stay on the brokers": (
        spec(unregister="WhenDown", excludeTopics=["a"]),
        SPEC,
    ),
}


@pytest.mark.parametrize(("message", "bad", "where"), [(m, *rest) for m, rest in BY_RULE.items()], ids=BY_RULE.keys())
def test_what_a_rule_refuses_the_model_refuses(message: str, bad: dict[str, Any], where: dict[str, Any]) -> None:
    jsonschema.validate(bad, SPEC)  # no more than the rule is against it
    assert message in rules(where).values()
    with pytest.raises(ValidationError, match=message):
        BrokerDecommissionSpec.parse(bad)


@pytest.mark.parametrize("topics", [{}, {"excludeTopics": []}])
def test_a_broker_that_keeps_nothing_may_be_unregistered(topics: dict[str, Any]) -> None:
    assert BrokerDecommissionSpec.parse(spec(unregister="WhenDown", **topics)).unregister is UnregisterWish.WHEN_DOWN


def test_a_name_has_at_most_fifty_characters() -> None:
    [message] = rules(SCHEMA).values()
    assert "size(self.metadata.name) <= 50" in rules(SCHEMA)
    assert BrokerDecommission.parse(decommission("a" * 50)).metadata.name == "a" * 50
    with pytest.raises(ValidationError, match=message):
        BrokerDecommission.parse(decommission("a" * 51))


def test_brokers_and_cluster_cannot_be_changed() -> None:
    assert rules(SPEC)["self.brokers == oldSelf.brokers"].startswith("brokers cannot be changed")
    assert rules(SPEC["properties"]["clusterRef"])["self == oldSelf"].startswith("clusterRef cannot be changed")
    assert "namespace" not in SPEC["properties"]["clusterRef"]["properties"]


def test_the_columns_are_those_of_the_contract() -> None:
    columns = VERSION["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if "priority" not in column]
    wide = [column["name"] for column in columns if column.get("priority") == 1]
    assert shown == ["Ready", "Reason", "Brokers", "Left", "Empty", "Age"]
    assert wide == ["Cordoned", "Cluster", "Message"]
    assert DEFINITION["spec"]["names"]["shortNames"] == ["kbd"]


@given(
    st.lists(st.integers(-1, 3) | st.just(2**31), max_size=4),
    st.lists(st.sampled_from(["a*", "b", " "]), max_size=3),
    st.sampled_from(["Never", "WhenDown", "Later"]),
)
def test_the_model_takes_what_schema_and_rules_take(brokers: list[int], topics: list[str], unregister: str) -> None:
    made = spec(brokers=brokers, excludeTopics=topics, unregister=unregister)
    once = len({*brokers}) == len(brokers) and len({*topics}) == len(topics)
    allowed = once and not (unregister == "WhenDown" and topics)
    try:
        jsonschema.validate(made, SPEC)
    except jsonschema.ValidationError:
        allowed = False
    try:
        BrokerDecommissionSpec.parse(made)
    except ValidationError:
        assert not allowed
    else:
        assert allowed
