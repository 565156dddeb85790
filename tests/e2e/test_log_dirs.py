"""Log directories that a manifest names."""

from __future__ import annotations

import json

from tests.e2e.world import HELD_BYTES, MB, World, entries, eventually


def directories(world: World, topic: str) -> dict[int, set[str]]:
    """By broker, where the stock tool finds the topic's first partition, copies under way included."""
    said = world.brokers.tool("log-dirs", "--describe", "--topic-list", topic)
    found = json.loads(said[said.index("{") :].splitlines()[0])
    return {
        broker["broker"]: {d["logDir"] for d in broker["logDirs"] if d["partitions"]} for broker in found["brokers"]
    }


def test_replicas_reach_their_log_dirs_alone_and_with_a_broker_move(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=MB)
    a, b = map(str, world.brokers.log_dirs(2))
    [entry] = entries({(orders, 0): [2, 1]})
    name = world.move("dirs", {}, partitions=[entry | {"logDirs": [b, "any"]}])
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [2, 1]})
    assert directories(world, orders)[2] == {b}
    world.patch(name, {"partitions": [entry | {"logDirs": [a, "any"]}]})
    world.wait_for(name, "Succeeded")
    assert directories(world, orders)[2] == {a}


def test_deleting_the_resource_ends_a_copy_between_directories(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    here = directories(world, orders)[0]
    [there] = {str(path) for path in world.brokers.log_dirs(0)} - here
    world.hold(orders)
    [entry] = entries({(orders, 0): [0, 1]})
    name = world.move("dirs", {}, partitions=[entry | {"logDirs": [there, "any"]}])
    eventually("it is copied", lambda: directories(world, orders)[0] == {there, *here})
    world.wait_partition(name, orders, state="InFlight")
    world.delete(name)
    world.wait_gone(name)
    assert directories(world, orders)[0] == here
