"""The brake of a KafkaCluster: pausing, cancelling ours, cancelling everything; and going on after it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.world import HELD_BYTES, MB, Targets, World, entries, eventually


@pytest.fixture
def braked(world: World) -> Iterator[World]:
    """A test that pulls the brake; afterwards it is released."""
    yield world
    pull(world, "Run")


def pull(world: World, execution: str) -> None:
    world.patch("local", {"execution": execution}, kind="kafkacluster")


def wait_not_in_flight(world: World, *partitions: tuple[str, int]) -> None:
    topics = {topic for topic, _ in partitions}
    eventually(f"not in flight: {partitions}", lambda: not set(partitions) & world.kafka.in_flight(topics).keys())


def execute(world: World, document: str, file: Path) -> None:
    """Carry out a reassignment with the stock tool, beside what else is in flight."""
    file.write_text(document)
    world.brokers.tool("reassign-partitions", "--execute", "--additional", "--reassignment-json-file", str(file))


def kept(world: World) -> list[str]:
    """What the brake has kept of the moves of this test, oldest first."""
    listed = json.loads(world.kubectl("get", "configmaps", "-l", "kafka.reassign.dev/cluster=local", "-o", "json"))
    documents = [item["data"]["reassignment.json"] for item in listed["items"]]
    return [document for document in documents if world.prefix in document]


def test_paused_nothing_new_starts_and_what_is_in_flight_goes_on(braked: World) -> None:
    world = braked
    first, second = world.topic("first", [0, 1], size=HELD_BYTES), world.topic("second", [0, 1], size=MB)
    world.hold(first)
    moving = world.move("moving", {(first, 0): [2, 3]})
    world.wait_in_flight((first, 0))
    pull(world, "Pause")
    world.wait_for("local", "Paused", reason="Paused", kind="kafkacluster")
    waiting = world.move("waiting", {(second, 0): [2, 3]})
    world.wait_for(waiting, "Ready", "False", "Suspended")
    world.let_go(first)
    world.wait_for(moving, "Succeeded")
    world.brokers_say({(first, 0): [2, 3], (second, 0): [0, 1]})
    pull(world, "Run")
    world.wait_for(waiting, "Succeeded")


def test_cancel_ours_then_cancel_all_then_run(braked: World, tmp_path: Path) -> None:
    world = braked
    ours = world.topic("ours", [2, 0, 1], [0, 1, 2], [1, 2, 0], size=HELD_BYTES)
    theirs = world.topic("theirs", [0, 1, 2], size=HELD_BYTES)
    world.hold(ours, theirs)
    originals: Targets = {(ours, 0): [2, 0, 1], (ours, 1): [0, 1, 2], (ours, 2): [1, 2, 0]}
    targets: Targets = {(ours, 0): [3, 0, 1], (ours, 1): [3, 0, 1, 2], (ours, 2): [3, 0]}
    foreign: Targets = {(theirs, 0): [3, 1, 2]}
    names = [
        world.move(f"move-{tp[1]}", {tp: replicas}, replicationFactorChange="Allow") for tp, replicas in targets.items()
    ]
    execute(world, json.dumps({"version": 1, "partitions": entries(foreign)}), tmp_path / "theirs.json")
    world.wait_in_flight(*targets, *foreign)

    pull(world, "CancelOurs")
    wait_not_in_flight(world, *targets)
    assert (theirs, 0) in world.kafka.in_flight([theirs])
    for name in names:
        world.wait_for(name, "Ready", "False", "Suspended")
    world.brokers_say(originals)
    status = (world.read("local", "kafkacluster") or {})["status"]
    assert (status["inFlight"], status["foreignInFlight"]["count"]) == (0, 1)
    assert kept(world) == []

    pull(world, "Run")
    world.wait_in_flight(*targets, *foreign)

    pull(world, "CancelAll")
    wait_not_in_flight(world, *targets, *foreign)
    for name in names:
        world.wait_for(name, "Ready", "False", "Suspended")
    world.brokers_say(originals)
    assert sorted(world.kafka.replicas(theirs)[0]) == [0, 1, 2]  # the first order of their replicas is not known
    documents = kept(world)
    undone = [move for document in documents for move in json.loads(document)["partitions"]]
    assert sorted(undone, key=lambda move: (move["topic"], move["partition"])) == entries({**targets, **foreign})

    # what comes while the brake is pulled goes back too, and is kept too
    later = world.topic("later", [0, 1], size=HELD_BYTES)
    world.hold(later)
    execute(world, json.dumps({"version": 1, "partitions": entries({(later, 0): [2, 3]})}), tmp_path / "later.json")
    eventually("it is kept", lambda: len(kept(world)) > len(documents))
    wait_not_in_flight(world, (later, 0))

    pull(world, "Run")
    world.wait_in_flight(*targets)
    for number, document in enumerate(documents):
        execute(world, document, tmp_path / f"kept-{number}.json")
    world.wait_in_flight(*targets, *foreign)
    world.let_go(ours, theirs, later)
    for name in names:
        world.wait_for(name, "Succeeded")
    world.wait_idle(theirs)
    world.brokers_say({**targets, **foreign})
