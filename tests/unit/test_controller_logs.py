"""What lines of the log name, and how often an outage of Kafka is logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from reassign.controller.cluster import actor, outage
from reassign.kafka.client import KafkaClient
from tests.unit.world import LATER, World, fails_for

NAMES = ("kafka_cluster", "kind", "resource", "generation")
MOVE = ("kafka/main", "PartitionReassignment", "kafka/move")
CLUSTER = ("kafka/main", "KafkaCluster", "kafka/main")


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    """The lines, with all that is bound to them."""
    with capture_logs(processors=[merge_contextvars]) as lines:
        yield lines


@pytest.fixture
def world(logged: list[Any], monkeypatch: pytest.MonkeyPatch) -> World:
    found = World()

    async def connect(*_: object, **__: object) -> Any:
        if not found.brokers.reachable:
            await found.brokers.observe((), None, None, None)
        return found.brokers

    monkeypatch.setattr(KafkaClient, "connect", connect)
    monkeypatch.setattr(outage, "PATIENCE_SECONDS", 0.0)
    return found


def steps(logged: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(line[name] for name in NAMES) for line in logged if line["event"] == "step"]


def test_each_step_names_cluster_resource_and_generation(world: World, logged: list[Any]) -> None:
    assert steps(logged) == [(*MOVE, 1)]
    world.change("move", lambda obj: obj["spec"]["partitions"][0].update(replicas=[5, 2, 3]))
    world.tick(3)
    assert steps(logged)[1] == (*MOVE, 2)


def test_steps_of_the_brake_name_the_kafka_cluster(world: World, logged: list[Any]) -> None:
    world.pull("CancelAll")
    world.tick()
    assert set(steps(logged)[1:]) == {(*MOVE, 1), (*CLUSTER, 2)}


def test_a_line_about_one_resource_names_it_and_later_lines_do_not(
    world: World, logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("bad", LATER, (4, 2, 3))
    fails_for(monkeypatch, actor, "report", "bad")
    world.tick()
    failed = {tuple(line[name] for name in NAMES) for line in logged if line["event"] == "failed unexpectedly"}
    assert failed == {("kafka/main", "PartitionReassignment", "kafka/bad", 1)}
    world.brokers.reachable = False
    world.tick()
    assert tuple(logged[-1][name] for name in NAMES) == (*CLUSTER, 1)


def test_an_outage_is_logged_once_when_it_begins_and_once_when_it_ends(world: World, logged: list[Any]) -> None:
    for _ in range(2):
        world.brokers.reachable = False
        world.tick(3)
        world.brokers.reachable = True
        world.tick(3)
    lines = [line for line in logged if line["event"].startswith("outage")]
    began, ended = "outage began: Kafka cannot be observed", "outage ended: Kafka can be observed again"
    assert [line["event"] for line in lines] == [began, ended, began, ended]
    assert lines[0]["reason"] == "ClusterUnreachable"
    assert lines[1]["seconds"] >= 0
    assert all(tuple(line[name] for name in NAMES) == (*CLUSTER, 1) for line in lines)
