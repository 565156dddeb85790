"""A manifest moves replicas, and an edited manifest changes what moves."""

from __future__ import annotations

import json

from tests.e2e.world import HELD_BYTES, MB, World, entries, eventually


def test_applying_a_manifest_moves_the_replicas(world: World) -> None:
    orders = world.topic("orders", [0, 1], [1, 2], [2, 0], size=MB)
    targets = {(orders, 0): [2, 3], (orders, 1): [3, 1], (orders, 2): [2, 1]}
    name = world.move("move", targets)
    world.wait_for(name, "Succeeded")
    world.stock_tool_says(targets)
    assert world.kafka.leaders(orders) == {0: 2, 1: 3, 2: 2}
    assert world.condition(name, "Ready")["status"] == "True"
    progress = world.read(name)["status"]["progress"]  # type: ignore[index]
    assert (progress["partitionsTotal"], progress["partitionsCompleted"], progress["percent"]) == (3, 3, 100)
    assert [reason for _, reason in world.events(name)][-1] == "ReassignmentCompleted"


def test_a_manifest_that_changes_nothing_succeeds_without_touching_kafka(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    name = world.move("stay", {(orders, 0): [0, 1]})
    world.wait_for(name, "Succeeded")


def test_only_the_order_can_change_and_the_leader_with_it(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    name = world.move("reorder", {(orders, 0): [1, 0]})
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [1, 0]})
    assert world.kafka.leaders(orders) == {0: 1}


def test_the_operator_writes_nothing_into_what_was_applied(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    name = world.move("applied", {(orders, 0): [1, 0]})
    world.wait_for(name, "Succeeded")
    shown = json.loads(world.kubectl("get", "partitionreassignment", name, "--show-managed-fields", "-o", "json"))
    ours = [m["fieldsV1"] for m in shown["metadata"]["managedFields"] if not m["manager"].startswith("kubectl")]
    assert any("f:status" in fields for fields in ours)
    assert all(fields.keys() <= {"f:metadata", "f:status"} for fields in ours)
    assert all(fields.get("f:metadata", {}).keys() <= {"f:finalizers"} for fields in ours)


def test_the_replication_factor_changes_only_where_that_is_allowed(world: World) -> None:
    orders = world.topic("orders", [0, 1], [1, 2])
    targets = {(orders, 0): [0, 1, 2], (orders, 1): [2, 3]}
    name = world.move("grow", targets)
    world.wait_for(name, "Stalled", reason="ReplicationFactorChange")
    world.brokers_say({(orders, 0): [0, 1], (orders, 1): [2, 3]})
    world.patch(name, {"replicationFactorChange": "Allow"})
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)


def test_status_shows_what_is_moving(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("watched", {(orders, 0): [2, 3]})
    world.wait_partition(name, orders, state="InFlight", originalReplicas=[0, 1], targetReplicas=[2, 3])
    world.wait_partition(name, orders, state="InFlight", addingReplicas=[2, 3], removingReplicas=[0, 1])
    assert (world.read(name) or {})["status"]["adding"] == 2
    eventually(
        "bytes are counted",
        lambda: ((world.read(name) or {})["status"]["progress"].get("bytesTotal") or 0) >= 2 * HELD_BYTES,
    )
    assert world.condition(name, "Reconciling")["status"] == "True"
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    assert world.condition(name, "Reconciling") == {}


def test_an_entry_that_is_added_is_moved_too(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("edit", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    targets = {(orders, 0): [2, 3], (orders, 1): [1, 3]}
    world.patch(name, {"partitions": entries(targets)})
    world.wait_in_flight((orders, 0), (orders, 1))
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)


def test_an_entry_that_is_removed_in_flight_is_cancelled_alone(world: World) -> None:
    orders = world.topic("orders", [0, 1], [1, 0], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("edit", {(orders, 0): [2, 3], (orders, 1): [3, 2]})
    world.wait_in_flight((orders, 0), (orders, 1))
    world.patch(name, {"partitions": entries({(orders, 1): [3, 2]})})
    eventually("only the other one is in flight", lambda: set(world.kafka.in_flight([orders])) == {(orders, 1)})
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [0, 1], (orders, 1): [3, 2]})


def test_an_entry_whose_replicas_change_in_flight_ends_where_it_says_now(world: World) -> None:
    orders = world.topic("orders", [0, 1, 2], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("edit", {(orders, 0): [3, 1, 2]})
    assert world.wait_in_flight((orders, 0))[orders, 0].adding == [3]
    # back to where it was but for the order: as an override this would never complete on 4.3
    world.patch(name, {"partitions": entries({(orders, 0): [1, 0, 2]})})
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [1, 0, 2]})


def test_an_edit_after_completion_moves_only_what_changed(world: World) -> None:
    orders = world.topic("orders", [0, 1], [0, 1])
    name = world.move("edit", {(orders, 0): [2, 3], (orders, 1): [2, 3]})
    world.wait_for(name, "Succeeded")
    world.patch(name, {"partitions": entries({(orders, 0): [2, 3], (orders, 1): [1, 2]})})
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [2, 3], (orders, 1): [1, 2]})


def test_a_suspended_resource_starts_nothing_until_resumed(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    name = world.move("later", {(orders, 0): [2, 3]}, suspend=True)
    eventually("status says why", lambda: "Suspended" in str(world.condition(name, "Ready")))
    world.brokers_say({(orders, 0): [0, 1]})
    world.patch(name, {"suspend": False})
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [2, 3]})


def test_of_two_that_want_one_partition_the_older_goes_first(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    older = world.move("older", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    younger = world.move("younger", {(orders, 0): [1, 3]})
    world.wait_partition(younger, orders, reason="PartitionClaimed")
    world.let_go(orders)
    world.wait_for(older, "Succeeded")
    world.wait_for(younger, "Succeeded")
    world.brokers_say({(orders, 0): [1, 3]})
    world.wait_for(older, "Drifted")
    world.brokers_say({(orders, 0): [1, 3]})


def test_a_foreign_move_is_waited_for(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    theirs = {"version": 1, "partitions": [{"topic": orders, "partition": 0, "replicas": [2, 3]}]}
    plan = world.brokers.directory / "theirs.json"
    plan.write_text(json.dumps(theirs))
    world.brokers.tool("reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    name = world.move("ours", {(orders, 0): [1, 3]})
    world.wait_partition(name, orders, reason="InFlightElsewhere")
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.brokers_say({(orders, 0): [1, 3]})


def test_limits_bound_what_is_in_flight(world: World) -> None:
    orders = world.topic("orders", *[[0, 1]] * 6, size=4 * MB)
    world.hold(orders)
    targets = {(orders, p): [2, 3] for p in range(6)}
    name = world.move("bounded", targets, concurrency={"partitions": 2})
    eventually("two are in flight", lambda: len(world.kafka.in_flight([orders])) == 2)
    eventually("status says so", lambda: (world.read(name) or {})["status"]["progress"]["partitionsInFlight"] == 2)
    assert len(world.kafka.in_flight([orders])) == 2
    world.let_go(orders)
    world.wait_for(name, "Succeeded")
    world.brokers_say(targets)
