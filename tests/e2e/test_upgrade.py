"""From an earlier version to this one, and back, by helm with the charts of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from localplatform import operator_
from localplatform.workload import RATES, REPLICAS
from tests.e2e import versions
from tests.e2e.versions import Version
from tests.e2e.world import MB, World, eventually

SLOW, FAST = {"interBroker": "64Ki"}, {"interBroker": "1Gi"}
SIZE = 12 * MB
"""What a partition holds: at the slow rate it takes three minutes."""
Recorded = tuple[int, list[int], str, str | None]


@pytest.fixture(scope="module")
def now() -> Version:
    return versions.current()


@pytest.fixture
def earlier(world: World, now: Version) -> Iterator[Version]:
    """The earlier version; afterwards this one is installed."""
    yield versions.earlier()
    now.install(world)


def throttles(world: World) -> dict[tuple[str, str], str]:
    """What throttles the brokers and the topics of the test, by their name and that of the configuration."""
    brokers = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in world.brokers.ids]
    found = {}
    for place in [*brokers, *(ConfigResource(ResourceType.TOPIC, topic) for topic in world.topics)]:
        [configs] = world.kafka.ask(lambda admin, place=place: admin.describe_configs([place])).values()  # type: ignore[misc]
        set_here = ((name, configs[name]) for name in (*RATES, *REPLICAS) if name in configs)
        found |= {(place.name, name): c.value for name, c in set_here if c.value and not c.is_default}
    return found


def wait_restored(world: World, before: dict[tuple[str, str], str]) -> None:
    eventually("every throttle is as it was", lambda: throttles(world) == before, state=lambda: throttles(world))


def recorded(world: World, name: str) -> list[Recorded]:
    """Partition, original replicas, state and reason of what is recorded."""
    entries = (entry for topic in world.record(name) for entry in topic["partitions"])
    return [(e["partition"], e["originalReplicas"], e["state"], e.get("reason")) for e in entries]


def wait_recorded(world: World, name: str, *originals: list[int]) -> None:
    """Wait until the partitions are recorded as in flight."""
    wanted = [(number, original, "InFlight", None) for number, original in enumerate(originals)]
    eventually("the record says InFlight", lambda: recorded(world, name) == wanted)


def begun(world: World) -> float:
    """How many moves the operator's process has begun."""
    counted = eventually("there is one pod", lambda: len(world.operator.pids()) == 1 and world.operator.metrics())
    return counted.get('kafka_reassign_kafka_writes_total{kind="Alter"}', 0)


def continue_through(world: World, change: Callable[[], object], suffix: str) -> None:
    """Expect moves in flight to go on as they were while the operator changes; one of them is undone afterwards."""
    orders = world.topic(f"orders-{suffix}", [0, 1], [1, 0], [0, 1], size=SIZE)
    undone = world.topic(f"undone-{suffix}", [1, 0], size=SIZE)
    created, before = world.created(orders), throttles(world)
    targets = {(orders, 0): [2, 1], (orders, 1): [3, 0], (orders, 2): [0, 2]}
    name = world.move(f"orders-{suffix}", targets, throttle=SLOW)
    to_delete = world.move(f"undone-{suffix}", {(undone, 0): [3, 2]}, throttle=SLOW)
    wait_recorded(world, name, [0, 1], [1, 0], [0, 1])
    wait_recorded(world, to_delete, [1, 0])
    moving, throttled = world.wait_in_flight(*targets, (undone, 0)), throttles(world)

    change()
    assert world.kafka.in_flight([orders, undone]) == moving
    assert begun(world) == 0
    assert throttles(world) == throttled
    world.delete(to_delete)
    world.wait_gone(to_delete)
    assert world.kafka.replicas(undone) == {0: [1, 0]}

    world.patch(name, {"throttle": FAST})
    world.wait_for(name, "Succeeded")
    world.stock_tool_says(targets)
    assert world.created(orders) - created == Counter([(0, 2), (1, 3), (2, 2)])
    assert [reason for type, reason in world.events(name) if type == "Warning"] == []
    wait_restored(world, before)


def test_moves_in_flight_continue_through_an_upgrade_and_after_going_back(
    world: World, earlier: Version, now: Version
) -> None:
    earlier.install(world)
    revision = operator_.revision(world.api)
    settled = world.topic("settled", [0, 1])
    world.wait_for(done := world.move("settled", {(settled, 0): [2, 3]}), "Succeeded")
    continue_through(world, lambda: now.install(world), "up")
    assert world.condition(done, "Succeeded")["status"] == "True"
    continue_through(world, lambda: operator_.roll_back(world.api, revision), "back")
    assert world.condition(done, "Succeeded")["status"] == "True"
