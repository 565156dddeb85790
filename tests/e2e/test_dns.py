"""The cluster's DNS: names of Services in manifests are real for pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.world import World

PORT = 9092


@pytest.fixture
def service(world: World) -> Iterator[str]:
    """The name of a Service of the brokers; afterwards the KafkaCluster names them as before."""
    name = f"{world.prefix}-brokers"
    port = {"name": "kafka", "port": PORT}
    meta = {"name": name, "labels": {"kubernetes.io/service-name": name}}
    objects = [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [port]}}]
    for broker, server in enumerate(world.brokers.bridge_bootstrap_servers.split(",")):
        address, _, number = server.partition(":")
        objects.append(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": meta | {"name": f"{name}-{broker}"},
                "addressType": "IPv4",
                "ports": [port | {"port": int(number)}],
                "endpoints": [{"addresses": [address]}],
            }
        )
    world.apply({"apiVersion": "v1", "kind": "List", "items": objects})
    yield f"{name}.{world.namespace}.svc"
    connect(world, world.brokers.bridge_bootstrap_servers)
    world.kubectl("delete", "service", name)
    world.kubectl("delete", "endpointslice", f"--selector=kubernetes.io/service-name={name}")


def connect(world: World, servers: str) -> None:
    world.patch(world.cluster, {"bootstrapServers": servers}, kind="kafkacluster")
    world.wait_for(world.cluster, "Ready", kind="kafkacluster")


def test_brokers_are_found_by_the_name_of_a_service(world: World, service: str) -> None:
    connect(world, f"{service}:{PORT}")
    topic = world.topic("orders", [0, 1])
    world.wait_for(world.move("orders", {(topic, 0): [2, 1]}), "Succeeded")
    world.brokers_say({(topic, 0): [2, 1]})
