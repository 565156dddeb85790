"""Many partitions at once, on six brokers beside the platform's own: limits that hold, and the stock tool's result."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from localplatform.brokers import Brokers, running
from localplatform.machine import ADDRESS
from localplatform.processes import TIMEOUT
from localplatform.workload import Workload
from tests.e2e.world import MB, World, entries, eventually

IN_FLIGHT, MOVES_PER_BROKER = 150, 40


@pytest.fixture(scope="module")
def six_brokers(platform: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("six"), brokers=6, bridge=ADDRESS, controllers=1) as cluster:
        yield cluster


@pytest.fixture
def six(world: World, six_brokers: Brokers) -> Iterator[World]:
    """The six brokers, as a KafkaCluster of their own."""
    found = replace(world, brokers=six_brokers, cluster=f"{world.prefix}-six", topics=[], resources=[])
    limits = {"partitionsInFlight": IN_FLIGHT, "movesPerBroker": MOVES_PER_BROKER, "smallMoveBytes": 0}
    world.apply(
        {
            "apiVersion": "kafka.reassign.dev/v1alpha1",
            "kind": "KafkaCluster",
            "metadata": {"name": found.cluster, "namespace": found.namespace},
            "spec": {"bootstrapServers": six_brokers.bridge_bootstrap_servers, "limits": limits},
        }
    )
    found.wait_for(found.cluster, "Ready", kind="kafkacluster")
    yield found
    found.clean_up()
    found.delete(found.cluster, kind="kafkacluster")
    found.wait_gone(found.cluster, kind="kafkacluster")


@contextmanager
def sampled(kafka: Workload, seconds: float = 1.0) -> Iterator[list[tuple[int, Counter[int]]]]:
    """While the block runs: how many partitions are in flight, and how many replicas each broker is being added."""
    samples: list[tuple[int, Counter[int]]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(seconds):
            moves = kafka.in_flight().values()
            samples.append((len(moves), Counter(broker for move in moves for broker in move.adding)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def test_in_flight_moves_of_2000_partitions_stay_within_the_limits(six: World) -> None:
    topic = six.topic("many", *([n % 6, (n + 1) % 6] for n in range(2000)))
    targets = {(topic, n): [n % 6, (n + 2) % 6] for n in range(2000)}
    name = f"{six.prefix}-many"
    six.resources.append(name)
    with sampled(six.kafka) as samples:
        # the annotation of a client-side apply would hold the whole spec once more
        six.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(six.manifest(name, targets)))
        six.wait_for(name, "Succeeded", seconds=4 * TIMEOUT)
    six.stock_tool_says(targets)
    assert len([in_flight for in_flight, _ in samples if in_flight]) >= 5
    assert max(in_flight for in_flight, _ in samples) <= IN_FLIGHT
    assert max(most for _, adding in samples for most in adding.values()) <= MOVES_PER_BROKER


def test_the_stock_tool_and_the_operator_end_in_the_same_assignment(six: World, tmp_path: Path) -> None:
    chance = random.Random(455)
    before, after = ([chance.sample(range(6), 3) for _ in range(50)] for _ in range(2))
    stock, ours = (six.topic(name, *before, size=MB // 16) for name in ("stock", "ours"))
    plan = tmp_path / "reassignment.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": entries({(stock, n): replicas for n, replicas in enumerate(after)})})
    )
    six.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    name = six.move("same", {(ours, n): replicas for n, replicas in enumerate(after)})
    six.wait_for(name, "Succeeded")
    six.wait_idle(stock)
    eventually(
        "both topics are assigned alike",
        lambda: six.kafka.replicas(ours) == six.kafka.replicas(stock) == dict(enumerate(after)),
    )
