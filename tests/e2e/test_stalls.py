"""A move that stands still says why, and goes on by itself."""

from __future__ import annotations

from tests.e2e.world import HELD_BYTES, World


def test_a_dead_destination_is_stalled_by_name_and_the_move_goes_on_when_it_is_back(world: World) -> None:
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
    world.stock_tool_says({(orders, 0): [3, 1]})
    assert ("Warning", "BrokerFenced") in world.events(name)
