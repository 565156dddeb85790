"""What others have in flight, what an override does to a move, and what is hidden among good entries."""

from __future__ import annotations

import json

from tests.e2e.world import HELD_BYTES, Targets, World, entries, eventually


def move_with_the_stock_tool(world: World, targets: Targets) -> None:
    """Somebody else moves them; in flight this is an override."""
    plan = world.brokers.directory / f"{world.prefix}.json"
    plan.write_text(json.dumps({"version": 1, "partitions": entries(targets)}))
    options = ["--execute", "--additional", "--reassignment-json-file", str(plan)]
    world.brokers.tool("reassign-partitions", *options)


def test_a_factor_change_hidden_in_fifty_entries_is_held_back_alone(world: World) -> None:
    orders = world.topic("orders", *[[0, 1, 2]] * 50)
    targets = {(orders, p): [3, 1, 2] for p in range(50)}
    name = world.move("fifty", targets | {(orders, 17): [3, 1]})
    world.wait_for(name, "Stalled", reason="ReplicationFactorChange")
    blocked = world.wait_partition(name, orders, 17, state="Blocked", reason="ReplicationFactorChange")
    assert "from 3 to 2" in blocked["message"]
    world.brokers_say(targets | {(orders, 17): [0, 1, 2]})


def test_the_override_that_hangs_with_the_stock_tool_is_done_by_an_edit(world: World) -> None:
    theirs = world.topic("theirs", [0, 1, 2], size=HELD_BYTES)
    ours = world.topic("ours", [0, 1, 2], size=HELD_BYTES)
    world.hold(theirs, ours)
    name = world.move("edit", {(ours, 0): [3, 1, 2]})
    move_with_the_stock_tool(world, {(theirs, 0): [3, 1, 2]})
    world.wait_in_flight((theirs, 0), (ours, 0))

    move_with_the_stock_tool(world, {(theirs, 0): [0, 1, 2]})
    world.patch(name, {"partitions": entries({(ours, 0): [0, 1, 2]})})

    world.wait_for(name, "Succeeded")
    world.stock_tool_says({(ours, 0): [0, 1, 2]})
    assert "MovesCancelled" in [reason for _, reason in world.events(name)]
    world.let_go(theirs, ours)
    if world.brokers.version.startswith("4.3"):
        move_with_the_stock_tool(world, {(theirs, 0): [0, 1, 2]})  # once more changes nothing
        stuck = world.kafka.in_flight([theirs])[theirs, 0]
        assert stuck.adding == stuck.removing == [3]
        name = world.move("free", {(theirs, 0): [0, 1, 2]}, whenInFlight="Supersede")
        world.wait_for(name, "Succeeded")
    world.stock_tool_says({(theirs, 0): [0, 1, 2]})


def test_a_copied_manifest_with_our_finalizer_takes_nothing_over(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    move_with_the_stock_tool(world, {(orders, 0): [2, 3]})
    before = world.wait_in_flight((orders, 0))
    name = f"{world.prefix}-copy"
    copy = world.manifest(name, {(orders, 0): [2, 3]})
    copy["metadata"]["finalizers"] = ["kafka.reassign.dev/cancel"]
    world.resources.append(name)
    world.apply(copy)
    world.wait_for(name, "Ready", "False", "InFlightElsewhere")
    world.delete(name)
    world.wait_gone(name)
    assert world.kafka.in_flight([orders]) == before


def test_a_foreign_move_is_left_alone_without_supersede(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1], size=HELD_BYTES)
    world.hold(orders)
    move_with_the_stock_tool(world, {(orders, 0): [2, 3], (orders, 1): [2, 3]})
    before = world.wait_in_flight((orders, 0), (orders, 1))
    waits = world.move("waits", {(orders, 0): [1, 3]}, whenInFlight="Wait")
    fails = world.move("fails", {(orders, 1): [1, 3]}, whenInFlight="Fail")
    world.wait_for(waits, "Ready", "False", "InFlightElsewhere")
    world.wait_for(fails, "Failed", reason="InFlightElsewhere")
    world.wait_partition(fails, orders, 1, state="Failed", reason="InFlightElsewhere")
    foreign = (world.read("local", "kafkacluster") or {})["status"]["foreignInFlight"]
    assert {(p["topic"], p["partition"]) for p in foreign["partitions"]} >= {(orders, 0), (orders, 1)}
    assert world.kafka.in_flight([orders]) == before
    world.let_go(orders)
    world.wait_for(waits, "Succeeded")
    world.brokers_say({(orders, 0): [1, 3], (orders, 1): [2, 3]})
    assert world.condition(fails, "Failed")["reason"] == "InFlightElsewhere"


def test_a_foreign_move_is_superseded_with_its_originals_recorded(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    move_with_the_stock_tool(world, {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    name = world.move("ours", {(orders, 0): [1, 3]}, whenInFlight="Supersede")
    world.wait_partition(name, orders, state="InFlight", addingReplicas=[3], removingReplicas=[0])
    [record] = world.record(name)
    assert sorted(record["partitions"][0]["originalReplicas"]) == [0, 1]
    world.delete(name)
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [0, 1]})
    name = world.move("again", {(orders, 0): [1, 3]}, whenInFlight="Supersede")
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    eventually("nothing is left over", lambda: not world.kafka.in_flight([orders]))
    world.brokers_say({(orders, 0): [1, 3]})


def test_at_the_deadline_pending_partitions_fail_and_in_flight_continue(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1], size=HELD_BYTES)
    world.hold(orders)
    targets = {(orders, 0): [2, 3], (orders, 1): [2, 3]}
    name = world.move("deadline", targets, deadlineSeconds=15, concurrency={"partitions": 1})
    eventually("one is in flight", lambda: len(world.kafka.in_flight([orders])) == 1)
    [(_, begun)] = world.kafka.in_flight([orders])
    world.wait_partition(name, orders, 1 - begun, state="Failed", reason="DeadlineExceeded")
    assert set(world.kafka.in_flight([orders])) == {(orders, begun)}
    world.let_go(orders)
    world.wait_for(name, "Failed", reason="DeadlineExceeded")
    world.patch(name, {"deadlineSeconds": 3600})
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)
