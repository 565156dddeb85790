"""A move that stands still says why, and goes on by itself."""

from __future__ import annotations

from tests.e2e.world import HELD_BYTES, Object, World, eventually


def test_a_dead_destination_is_named_and_the_move_continues_when_it_is_up(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("stall", {(orders, 0): [3, 1]}, stallTimeoutSeconds=15)
    world.wait_in_flight((orders, 0))
    world.brokers.kill(3)
    try:
        world.wait_partition(name, orders, state="InFlight", reason="BrokerFenced")
        stalled = world.wait_for(name, "Stalled", reason="BrokerFenced")
        assert "broker 3" in stalled["message"]
        assert world.condition(name, "Reconciling")["status"] == "True"
    finally:
        world.brokers.restart(3)
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    assert world.condition(name, "Stalled") == {}
    world.brokers_say({(orders, 0): [3, 1]})
    assert ("Warning", "BrokerFenced") in world.events(name)


def test_an_unsafe_cancel_is_held_back_until_the_named_broker_is_back(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES, min_insync_replicas="2")
    world.hold(orders)
    name = world.move("unsafe", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    world.brokers.kill(1)
    try:
        eventually("broker 1 is fenced", lambda: any(b["id"] == 1 and b["fenced"] for b in brokers(world)))
        world.delete(name)
        held = world.wait_partition(name, orders, state="Cancelling", reason="CancelUnsafe")
        assert "until broker 1 is alive" in held["message"]
        assert held["message"] in world.wait_for(name, "Ready", "False", "CancelUnsafe")["message"]
        assert (orders, 0) in world.kafka.in_flight([orders])
    finally:
        world.brokers.restart(1)
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [0, 1]})


def brokers(world: World) -> list[Object]:
    return list((world.read("local", "kafkacluster") or {})["status"]["brokers"])
