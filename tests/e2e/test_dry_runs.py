"""A dry run judges every entry and writes nothing to Kafka; executed, it moves."""

from __future__ import annotations

from tests.e2e.world import MB, World, eventually


def test_a_dry_run_reports_moves_and_writes_nothing_until_executed(world: World) -> None:
    orders = world.topic("orders", [0, 1], [1, 2], size=MB)
    targets = {(orders, 0): [2, 3], (orders, 1): [1, 2]}
    name = world.move("dry", targets, mode="DryRun")
    world.wait_for(name, "Checked")
    eventually("bytes by broker", lambda: "to broker 3: 1." in world.condition(name, "Checked")["message"])
    world.wait_partition(name, orders, 0, state="Pending", reason="WouldMove")
    world.wait_partition(name, orders, 1, state="Completed")
    obj = world.read(name) or {}
    assert "finalizers" not in obj["metadata"]
    assert world.record(name) == []
    assert world.kafka.in_flight([orders]) == {}
    world.brokers_say({(orders, 0): [0, 1], (orders, 1): [1, 2]})
    world.patch(name, {"mode": "Execute"})
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)


def test_a_dry_run_names_what_is_blocked(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1])
    name = world.move("dry", {(orders, 0): [2, 3], (orders, 1): [2, 99]}, mode="DryRun")
    world.wait_for(name, "Checked", "False", reason="UnknownBroker")
    world.wait_for(name, "Stalled", reason="UnknownBroker")
    world.brokers_say({(orders, 0): [0, 1], (orders, 1): [0, 1]})
