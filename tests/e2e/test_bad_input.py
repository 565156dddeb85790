"""What is wrong is said as a condition with a reason, and everything else goes on."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localplatform import brokers
from localplatform.brokers import Brokers
from localplatform.processes import Processes
from tests.e2e.world import HELD_BYTES, World, entries, eventually


class Clusters:
    """Makes KafkaClusters and Secrets that are gone after the test."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.made: list[tuple[str, str]] = []

    def cluster(self, name: str, **spec: Any) -> str:
        name = f"{self.world.prefix}-{name}"
        self._apply("kafka.reassign.dev/v1alpha1", "KafkaCluster", name, {"spec": spec})
        return name

    def secret(self, name: str, **data: bytes) -> str:
        name = f"{self.world.prefix}-{name}"
        encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
        self._apply("v1", "Secret", name, {"data": encoded})
        return name

    def _apply(self, version: str, kind: str, name: str, content: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": self.world.namespace}
        self.world.apply({"apiVersion": version, "kind": kind, "metadata": metadata} | content)
        if (kind, name) not in self.made:
            self.made.append((kind, name))

    def clean_up(self) -> None:
        for kind, name in reversed(self.made):
            self.world.kubectl("delete", kind, name, "--ignore-not-found", "--timeout=5m")


@pytest.fixture
def make(world: World) -> Iterator[Clusters]:
    clusters = Clusters(world)
    yield clusters
    for name in world.resources:
        world.kubectl("delete", "partitionreassignment", name, "--ignore-not-found", "--timeout=5m")
    clusters.clean_up()


def test_each_bad_entry_is_blocked_with_its_reason_and_the_others_go_on(world: World) -> None:
    orders = world.topic("orders", *[[0, 1]] * 3)
    bad = {
        (f"{world.prefix}-unknown", 0): ([1, 2], "UnknownTopicOrPartition"),
        (orders, 7): ([1, 2], "UnknownTopicOrPartition"),
        (orders, 1): ([1, 99], "UnknownBroker"),
        (orders, 2): ([1, 2, 3], "ReplicationFactorChange"),
    }
    name = world.move("bad", {(orders, 0): [2, 3]} | {entry: replicas for entry, (replicas, _) in bad.items()})
    world.wait_partition(name, orders, 0, state="Completed")
    for (topic, partition), (_, reason) in bad.items():
        assert world.wait_partition(name, topic, partition, state="Blocked", reason=reason)["message"]
    world.wait_for(name, "Stalled", reason="UnknownTopicOrPartition")  # of the first that is bad
    world.brokers_say({(orders, 0): [2, 3], (orders, 1): [0, 1], (orders, 2): [0, 1]})


def test_what_is_corrected_goes_on(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    late = f"{world.prefix}-late"
    name = world.move("late", {(orders, 0): [2, 3], (late, 0): [2, 3]})
    world.wait_for(name, "Stalled", reason="UnknownTopicOrPartition")
    world.topic("late", [0, 1])
    world.wait_for(name, "Succeeded")


def test_a_target_below_min_in_sync_replicas_is_blocked(world: World) -> None:
    orders = world.topic("orders", [0, 1], min_insync_replicas="2")
    name = world.move("small", {(orders, 0): [2]}, replicationFactorChange="Allow")
    world.wait_for(name, "Stalled", reason="BelowMinInSyncReplicas")


def test_a_broker_that_is_down_is_waited_for(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    with world.brokers_frozen([3]):
        eventually("broker 3 is fenced", lambda: 3 not in world.brokers.registered(asked=0))
        name = world.move("fenced", {(orders, 0): [2, 3]})
        world.wait_for(name, "Ready", "False", "BrokerFenced")
    world.wait_for(name, "Succeeded")


def test_a_guard_that_does_not_hold_blocks_its_entry(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    partition = {"topic": orders, "partition": 0, "replicas": [2, 3], "expectedReplicas": [1, 2]}
    name = world.move("guarded", {}, partitions=[partition])
    world.wait_for(name, "Stalled", reason="ExpectedReplicasMismatch")


def test_a_topic_deleted_in_flight_is_reported(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    other = world.topic("other", [0, 1])
    world.hold(orders)
    name = world.move("deleted", {(orders, 0): [2, 3], (other, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    world.kafka.delete([orders])
    world.wait_partition(name, orders, reason="UnknownTopicOrPartition")
    world.wait_partition(name, other, state="Completed")


def test_a_topic_made_again_in_flight_is_another_topic(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("recreated", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    world.wait_partition(name, orders, state="InFlight")
    world.kafka.delete([orders])
    world.kafka.create(orders, [[0, 1]])
    world.wait_partition(name, orders, reason="TopicRecreated")
    world.brokers_say({(orders, 0): [0, 1]})


def test_a_status_wiped_by_hand_in_flight_is_written_again(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("wiped", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    world.wait_partition(name, orders, state="InFlight")
    wipe = ("patch", "partitionreassignment", name, "--subresource=status", "--type=merge", "-p", '{"status": null}')
    world.kubectl(*wipe)
    world.patch(name, {"partitions": entries({(orders, 0): [1, 3]})})
    eventually(
        "the old move gives way to the new one",
        lambda: [move.adding for move in world.kafka.in_flight([orders]).values()] == [[3]],
    )
    world.kubectl(*wipe)
    world.delete(name)
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [0, 1]})


def test_a_missing_kafka_cluster_is_named_and_found_when_it_comes(world: World, make: Clusters) -> None:
    name = world.move("no-cluster", {("orders", 0): [1, 2]}, clusterRef={"name": f"{world.prefix}-later"})
    stalled = world.wait_for(name, "Stalled", reason="ClusterNotFound")
    assert f"{world.prefix}-later" in stalled["message"]
    make.cluster("later", bootstrapServers="127.0.0.1:1")
    world.wait_for(name, "Ready", "False", "ClusterUnreachable")


def test_an_unreachable_cluster_is_reported_on_it_and_on_its_resources(world: World, make: Clusters) -> None:
    cluster = make.cluster("nowhere", bootstrapServers="127.0.0.1:1")
    world.wait_for(cluster, "Ready", "False", "ClusterUnreachable", kind="kafkacluster")
    name = world.move("waits", {("orders", 0): [1, 2]}, clusterRef={"name": cluster})
    world.wait_for(name, "Ready", "False", "ClusterUnreachable")
    world.delete(name)
    world.wait_gone(name)


def test_two_kafka_clusters_for_one_cluster_only_the_older_is_served(world: World, make: Clusters) -> None:
    orders = world.topic("orders", [0, 1])
    twin = make.cluster("twin", bootstrapServers=world.brokers.bridge_bootstrap_servers)
    stalled = world.wait_for(twin, "Stalled", reason="DuplicateCluster", kind="kafkacluster")
    assert f"{world.namespace}/local" in stalled["message"]
    name = world.move("through-twin", {(orders, 0): [2, 3]}, clusterRef={"name": twin})
    world.wait_for(name, "Ready", "False", "DuplicateCluster")
    world.brokers_say({(orders, 0): [0, 1]})


@pytest.fixture
def secured(world: World, make: Clusters) -> Any:
    """The spec of a KafkaCluster over TLS with a private CA and SCRAM, whose parts a test can spoil."""
    ca = (world.brokers.certificates / "ca.crt").read_bytes()
    good = {
        "ca": make.secret("ca", ca_crt=ca),
        "user": make.secret("user", password=world.brokers.password.encode()),
        "wrong": make.secret("wrong", password=b"not this one"),
        "line break": make.secret("line-break", password=f"{world.brokers.password}\n".encode()),
    }

    def spec(ca: str = "ca", user: str = "user", key: str = "password") -> dict[str, Any]:
        return {
            "bootstrapServers": world.brokers.scram_bootstrap_servers,
            "tls": {"caSecretRef": {"name": good.get(ca, ca), "key": "ca.crt"}},
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": brokers.USER,
                "passwordSecretRef": {"name": good.get(user, user), "key": key},
            },
        }

    return spec


SPOILED = {
    "wrong-password": ({"user": "wrong"}, "AuthenticationFailed", "with this password"),
    "line-break": ({"user": "line break"}, "AuthenticationFailed", "ends with a line break"),
    "missing-secret": ({"user": "absent"}, "SecretNotFound", "absent"),
    "missing-key": ({"key": "pass"}, "SecretKeyNotFound", "has no key pass"),
    "missing-ca": ({"ca": "absent"}, "SecretNotFound", "absent"),
}
"""What is wrong with a KafkaCluster's credentials, the reason that it gets, and words of its message."""


def test_invalid_credentials_are_reported(world: World, make: Clusters, secured: Any) -> None:
    clusters = {make.cluster(name, **secured(**spoiled)): name for name, (spoiled, *_) in SPOILED.items()}
    for cluster, name in clusters.items():
        _, reason, said = SPOILED[name]
        ready = world.wait_for(cluster, "Ready", "False", reason, kind="kafkacluster")
        assert world.brokers.password not in json.dumps(world.read(cluster, "kafkacluster"))
        assert said in ready["message"]
    for cluster, name in clusters.items():  # corrected, it goes on; the brokers are served by an older one already
        make.cluster(name, **secured())
        world.wait_for(cluster, "Stalled", reason="DuplicateCluster", kind="kafkacluster")


def test_a_cluster_over_tls_and_scram_is_served(world: World, secured: Any) -> None:
    orders = world.topic("orders", [0, 1])
    before = (world.read("local", "kafkacluster") or {})["spec"]
    world.patch("local", secured(), "kafkacluster")
    try:
        world.wait_for("local", "Ready", kind="kafkacluster")
        name = world.move("secured", {(orders, 0): [2, 3]})
        world.wait_for(name, "Succeeded")
        world.brokers_say({(orders, 0): [2, 3]})
    finally:
        world.patch(
            "local", {"bootstrapServers": before["bootstrapServers"], "tls": None, "sasl": None}, "kafkacluster"
        )
        world.wait_for("local", "Ready", kind="kafkacluster")


@pytest.fixture
def other(world: World, tmp_path: Path) -> Iterator[Brokers]:
    """Another Kafka cluster, of one broker, that the operator can reach."""
    processes = Processes(tmp_path / "processes", tmp_path / "logs", end_with_us=True)
    started = brokers.start(processes, tmp_path / "kafka", brokers=1, bridge=world.brokers.bridge, controllers=1)
    try:
        yield started
    finally:
        started.stop()


def test_brokers_that_have_become_another_cluster_are_left_alone(world: World, make: Clusters, other: Brokers) -> None:
    cluster = make.cluster("other", bootstrapServers=other.bridge_bootstrap_servers)
    world.wait_for(cluster, "Ready", kind="kafkacluster")
    other.stop()
    other.start()
    stalled = world.wait_for(cluster, "Stalled", reason="ClusterIdChanged", kind="kafkacluster")
    assert stalled["message"]
