"""Many partitions at once: limits that hold, and the stock tool's result."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localplatform.processes import TIMEOUT
from localplatform.workload import Workload
from tests.e2e.world import MB, World, entries, eventually

IN_FLIGHT, MOVES_PER_BROKER = 300, 80


@pytest.fixture
def limited(world: World) -> Iterator[World]:
    """A test with these limits; afterwards they are the defaults again."""
    limits = {"partitionsInFlight": IN_FLIGHT, "movesPerBroker": MOVES_PER_BROKER, "smallMoveBytes": 0}
    world.patch(world.cluster, {"limits": limits}, kind="kafkacluster")
    world.wait_for(world.cluster, "Ready", kind="kafkacluster")
    yield world
    world.patch(world.cluster, {"limits": None}, kind="kafkacluster")


@contextmanager
def sampled(kafka: Workload, seconds: float) -> Iterator[list[tuple[int, Counter[int]]]]:
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


def test_in_flight_moves_of_2000_partitions_stay_within_the_limits(limited: World) -> None:
    world = limited
    brokers = world.brokers.count
    topic = world.topic("many", *([n % brokers, (n + 1) % brokers] for n in range(2000)))
    targets = {(topic, n): [n % brokers, (n + 2) % brokers] for n in range(2000)}
    name = f"{world.prefix}-many"
    world.resources.append(name)
    with sampled(world.kafka, 0.5) as samples:
        # the annotation of a client-side apply would hold the whole spec once more
        world.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(world.manifest(name, targets)))
        world.wait_for(name, "Succeeded", seconds=4 * TIMEOUT)
    world.stock_tool_says(targets)
    assert len([in_flight for in_flight, _ in samples if in_flight]) >= 5
    assert max(in_flight for in_flight, _ in samples) <= IN_FLIGHT
    assert max(most for _, adding in samples for most in adding.values()) <= MOVES_PER_BROKER


def test_the_stock_tool_and_the_operator_end_in_the_same_assignment(world: World, tmp_path: Path) -> None:
    chance = random.Random(455)
    before, after = ([chance.sample(world.brokers.ids, 3) for _ in range(50)] for _ in range(2))
    stock, ours = (world.topic(name, *before, size=MB // 16) for name in ("stock", "ours"))
    plan = tmp_path / "reassignment.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": entries({(stock, n): replicas for n, replicas in enumerate(after)})})
    )
    world.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    name = world.move("same", {(ours, n): replicas for n, replicas in enumerate(after)})
    world.wait_for(name, "Succeeded")
    world.wait_idle(stock)
    eventually(
        "both topics are assigned alike",
        lambda: world.kafka.replicas(ours) == world.kafka.replicas(stock) == dict(enumerate(after)),
    )
