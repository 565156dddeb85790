"""From the version that kept its records in statuses to this one, and back, by helm with the charts of both."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from localplatform import operator_
from localplatform.workload import RATES, REPLICAS
from tests.e2e.versions import Version, before_records, current
from tests.e2e.world import MB, Object, World, eventually

SLOW, FAST = {"interBroker": "64Ki"}, {"interBroker": "1Gi"}
SIZE = 8 * MB
"""What a partition holds: at the slow rate it takes two minutes."""
RECORDS = "reassignmentrecords.kafka.reassign.dev"
SECONDS = 100
"""What the version before sent in its last moments may land for 75 s: it does not record when that was."""

Recorded = tuple[int, list[int], str, str | None]


@pytest.fixture(scope="module")
def now() -> Version:
    return current()


@pytest.fixture
def earlier(world: World, now: Version) -> Iterator[Version]:
    """The version before; afterwards this one is installed."""
    yield before_records()
    now.install(world)


def install_anew(world: World, version: Version) -> None:
    """Install a version where there is none, and a KafkaCluster that no other one has seen."""
    world.patch(world.cluster, {"deletionPolicy": "Orphan"}, kind="kafkacluster")  # nothing is throttled
    world.delete(world.cluster, kind="kafkacluster")
    world.wait_gone(world.cluster, kind="kafkacluster")
    operator_.uninstall(world.api)
    world.kubectl("delete", "crd", RECORDS)
    version.install(world)


def wait_settled(world: World) -> None:
    """Wait until no record is held: nothing is in flight, and no throttle is set."""

    def held() -> list[str]:
        records = json.loads(world.kubectl("get", RECORDS, "-o", "json"))["items"]
        return [record["metadata"]["name"] for record in records if record["metadata"].get("finalizers")]

    eventually("no record has a finalizer", lambda: not held(), SECONDS, held)


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


def recorded_in_status(world: World, name: str) -> list[Object]:
    return list((world.read(name) or {}).get("status", {}).get("record", ()))


def entries(record: list[Object]) -> list[Recorded]:
    """Partition, original replicas, state and reason of what is recorded."""
    recorded = (entry for topic in record for entry in topic["partitions"])
    return [(e["partition"], e["originalReplicas"], e["state"], e.get("reason")) for e in recorded]


def in_flight(originals: tuple[list[int], ...]) -> list[Recorded]:
    return [(number, original, "InFlight", None) for number, original in enumerate(originals)]


def wait_in_status(world: World, name: str, *originals: list[int]) -> None:
    """Wait until the version before has recorded the partitions as in flight."""
    wanted = in_flight(originals)
    eventually("the status has the record", lambda: entries(recorded_in_status(world, name)) == wanted)


def wait_in_record(world: World, name: str, *originals: list[int]) -> None:
    """Wait until this version has, and the status has no record any more."""
    wanted = in_flight(originals)
    eventually("there is a ReassignmentRecord", lambda: entries(world.record(name)) == wanted)
    eventually("the status has no record", lambda: not recorded_in_status(world, name))


def begun(world: World) -> float:
    """How many moves the operator's process has begun."""
    counted = eventually("there is one pod", lambda: len(world.operator.pids()) == 1 and world.operator.metrics())
    return counted.get('kafka_reassign_kafka_writes_total{kind="Alter"}', 0)


def test_going_back_with_nothing_in_flight(world: World, earlier: Version, now: Version) -> None:
    earlier.install(world)
    revision = operator_.revision(world.api)
    now.install(world)
    orders = world.topic("orders", [0, 1], size=SIZE)
    settled = world.topic("settled", [0, 1])
    before = throttles(world)
    world.wait_for(drifted := world.move("drifted", {(settled, 0): [2, 1]}), "Succeeded")
    world.wait_for(done := world.move("done", {(settled, 0): [3, 1]}, throttle=FAST), "Succeeded")
    world.delete(drifted)
    wait_settled(world)
    assert throttles(world) == before

    operator_.roll_back(world.api, revision)
    world.kubectl("delete", "crd", RECORDS)
    name = world.move("later", {(orders, 0): [2, 3]}, throttle=SLOW)
    wait_in_status(world, name, [0, 1])
    eventually("the status has the other record", lambda: recorded_in_status(world, done))
    world.wait_for(done, "Succeeded")

    now.install(world)
    wait_in_record(world, name, [0, 1])
    world.patch(name, {"throttle": FAST})
    world.wait_for(name, "Succeeded")
    assert world.condition(done, "Succeeded")["status"] == "True"
    assert (world.kafka.replicas(orders), world.kafka.replicas(settled)) == ({0: [2, 3]}, {0: [3, 1]})
    wait_restored(world, before)


def test_going_back_in_flight_is_made_good_by_an_upgrade(world: World, earlier: Version, now: Version) -> None:
    orders, dropped = (world.topic(name, [0, 1], size=SIZE) for name in ("orders", "dropped"))
    stale = world.topic("stale", [0, 1])
    before = throttles(world)
    world.wait_for(world.move("drifted", {(stale, 0): [2, 1]}), "Succeeded")
    world.wait_for(world.move("done", {(stale, 0): [3, 1]}), "Succeeded")
    name = world.move("orders", {(orders, 0): [2, 1]}, throttle=SLOW)
    to_delete = world.move("dropped", {(dropped, 0): [2, 3]}, throttle=SLOW)
    moving, throttled = world.wait_in_flight((orders, 0), (dropped, 0)), throttles(world)

    earlier.install(world)
    world.wait_partition(name, orders, state="Blocked", reason="InFlightElsewhere")
    world.delete(to_delete)
    world.wait_gone(to_delete)
    eventually("what had drifted is moved again", lambda: world.kafka.replicas(stale) == {0: [2, 1]})
    assert world.kafka.in_flight([orders, dropped]) == moving
    assert throttles(world) == throttled

    now.install(world)
    world.wait_idle(dropped)
    wait_in_record(world, name, [0, 1])
    world.delete(name)
    world.wait_gone(name)
    eventually("it is back", lambda: world.kafka.replicas(dropped) == {0: [0, 1]})
    assert world.kafka.replicas(orders) == {0: [0, 1]}
    wait_restored(world, before)


def test_moves_in_flight_continue_through_an_upgrade(world: World, earlier: Version, now: Version) -> None:
    install_anew(world, earlier)
    orders = world.topic("orders", [0, 1], [1, 0], [0, 1], size=SIZE)
    created = world.created(orders)
    undone = world.topic("undone", [1, 0], size=SIZE)
    settled = world.topic("settled", [0, 1])
    before = throttles(world)
    world.wait_for(done := world.move("settled", {(settled, 0): [2, 3]}), "Succeeded")
    targets = {(orders, 0): [2, 1], (orders, 1): [3, 0], (orders, 2): [0, 2]}
    name = world.move("orders", targets, throttle=SLOW)
    to_delete = world.move("undone", {(undone, 0): [3, 2]}, throttle=SLOW)
    wait_in_status(world, name, [0, 1], [1, 0], [0, 1])
    wait_in_status(world, to_delete, [1, 0])
    moving, throttled = world.wait_in_flight(*targets, (undone, 0)), throttles(world)

    now.install(world)
    wait_in_record(world, name, [0, 1], [1, 0], [0, 1])
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
    assert world.condition(done, "Succeeded")["status"] == "True"
    wait_restored(world, before)
