"""What is not built yet is refused, and its field and value are named."""

from typing import Any

import pytest

from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.api.partition_reassignment import PartitionReassignmentSpec
from reassign.api.supported import unsupported_cluster, unsupported_reassignment

ENTRY = {"topic": "orders", "partition": 0, "replicas": [3, 1, 2]}


def reassignment(**fields: Any) -> str | None:
    spec = {"clusterRef": {"name": "main"}, "partitions": [ENTRY], **fields}
    return unsupported_reassignment(PartitionReassignmentSpec.parse(spec))


def cluster(**fields: Any) -> str | None:
    return unsupported_cluster(KafkaClusterSpec.parse({"bootstrapServers": "b0:9092", **fields}))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"throttle": {"logDir": 2048}}, "spec.throttle.logDir: 2048"),
    ],
)
def test_a_reassignment_that_asks_for_what_is_not_built_is_refused(fields: dict[str, Any], named: str) -> None:
    assert reassignment(**fields) == f"{named} is not supported yet by this version of the operator"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"clusterRef": {"name": "main", "namespace": "elsewhere"}},
        {"concurrency": {"partitions": 3, "movesPerBroker": 1}},
        {"suspend": True},
        {"stallTimeoutSeconds": 60},
        {"mode": "DryRun"},
        {"deletionPolicy": "Orphan", "deletionDeadlineSeconds": 60},
        {"replicationFactorChange": "Allow"},
        {"preferredLeader": "Keep"},
        {"throttle": {}},
        {"throttle": {"interBroker": "50Mi"}},
        {"partitions": [{**ENTRY, "expectedReplicas": [0, 1, 2], "logDirs": ["any", "/data/b", "any"]}]},
    ],
)
def test_a_reassignment_that_asks_for_what_is_built_is_accepted(fields: dict[str, Any]) -> None:
    assert reassignment(**fields) is None


OAUTH = {
    "tokenEndpointUrl": "https://id.example.org/token",
    "clientId": "mover",
    "clientSecretRef": {"name": "oauth", "key": "secret"},
}
USER = {"username": "mover", "passwordSecretRef": {"name": "user", "key": "password"}}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"throttle": {"logDir": "50Mi"}}, "spec.throttle.logDir: 50Mi"),
    ],
)
def test_a_cluster_that_asks_for_what_is_not_built_is_refused(fields: dict[str, Any], named: str) -> None:
    assert cluster(**fields) == f"{named} is not supported yet by this version of the operator"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tls": {}},
        {"tls": {"caSecretRef": {"name": "ca", "key": "ca.crt"}, "certificateSecretRef": {"name": "client"}}},
        {"sasl": {"mechanism": "SCRAM-SHA-512", **USER}},
        {"sasl": {"mechanism": "SCRAM-SHA-256", **USER}},
        {"sasl": {"mechanism": "PLAIN", **USER}},
        {"sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH}},
        {"limits": {"partitionsInFlight": 10, "movesPerBroker": 2, "minFreeDiskPercent": 20}},
        {"limits": {"maxThrottle": "200Mi"}},
        {"throttle": {"interBroker": "50Mi"}},
        {"execution": "Pause"},
        {"execution": "CancelOurs"},
        {"execution": "CancelAll"},
        {"pauseWhen": "Never"},
        {"pauseWhen": "UnderReplicated"},
        {"allowedNamespaces": [{"name": "a", "topics": ["*"]}]},
    ],
)
def test_a_cluster_that_asks_for_what_is_built_is_accepted(fields: dict[str, Any]) -> None:
    assert cluster(**fields) is None
