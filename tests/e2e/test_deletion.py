"""Deleting a resource cancels what it has in flight: original replicas, in their original order."""

from __future__ import annotations

from tests.e2e.world import HELD_BYTES, MB, World


def test_deleting_in_flight_brings_the_originals_back_in_their_order(world: World) -> None:
    orders = world.topic("orders", [2, 0, 1], [0, 1, 2], [1, 2, 0], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("undo", {(orders, 0): [3, 0, 1], (orders, 1): [0, 3, 2], (orders, 2): [2, 0, 3]})
    world.wait_in_flight((orders, 0), (orders, 1), (orders, 2))
    world.delete(name)
    world.wait_gone(name)
    world.stock_tool_says({(orders, 0): [2, 0, 1], (orders, 1): [0, 1, 2], (orders, 2): [1, 2, 0]})
    assert ("Normal", "CancelStarted") in world.events(name)


def test_what_has_completed_stays_where_it_is(world: World) -> None:
    small = world.topic("small", [0, 1], size=MB)
    large = world.topic("large", [0, 1], size=HELD_BYTES)
    world.hold(large)
    name = world.move("half", {(small, 0): [2, 3], (large, 0): [2, 3]})
    world.wait_partition(name, small, state="Completed")
    world.wait_partition(name, large, state="InFlight")
    world.delete(name)
    world.wait_gone(name)
    world.brokers_say({(small, 0): [2, 3], (large, 0): [0, 1]})


def test_deleting_after_the_end_moves_nothing(world: World) -> None:
    orders = world.topic("orders", [0, 1])
    name = world.move("done", {(orders, 0): [2, 3]})
    world.wait_for(name, "Succeeded")
    world.delete(name)
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [2, 3]})


def test_adding_only_and_removing_only_are_undone_too(world: World) -> None:
    orders = world.topic("orders", [0, 1], [2, 3], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("grow", {(orders, 0): [2, 0, 1], (orders, 1): [3, 2, 1, 0]}, replicationFactorChange="Allow")
    world.wait_in_flight((orders, 0), (orders, 1))
    world.delete(name)
    world.wait_gone(name)
    world.brokers_say({(orders, 0): [0, 1], (orders, 1): [2, 3]})


def test_orphaned_moves_go_on_without_the_resource(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("orphan", {(orders, 0): [2, 3]}, deletionPolicy="Orphan")
    world.wait_in_flight((orders, 0))
    world.delete(name)
    world.wait_gone(name)
    assert set(world.kafka.in_flight([orders])) == {(orders, 0)}
    assert ("Normal", "ReassignmentOrphaned") in world.events(name)
    world.let_go(orders)
    world.wait_idle(orders)
    world.brokers_say({(orders, 0): [2, 3]})


def test_deletions_wait_while_kafka_is_unreachable_and_then_continue(world: World) -> None:
    places = {"waits": ([1, 0], [3, 2]), "way-out": ([0, 1], [2, 3]), "deadline": ([2, 3], [0, 1])}
    topics = [world.topic(name, before, size=HELD_BYTES // 2) for name, (before, _) in places.items()]
    world.hold(*topics)
    waits, way_out, deadline = (
        world.move(name, {(topic, 0): target})
        for topic, (name, (_, target)) in zip(topics, places.items(), strict=True)
    )
    world.patch(deadline, {"deletionDeadlineSeconds": 5})
    world.wait_in_flight(*((topic, 0) for topic in topics))
    with world.brokers_frozen():
        for name in (waits, way_out, deadline):
            world.delete(name)
        world.wait_gone(deadline)
        assert ("Warning", "CancelAbandoned") in world.events(deadline)
        assert "Orphan" in world.wait_for(waits, "Ready", "False", "ClusterUnreachable")["message"]
        world.wait_for("local", "Ready", "False", "ClusterUnreachable", kind="kafkacluster")
        world.patch(way_out, {"deletionPolicy": "Orphan"})
        world.wait_gone(way_out)
        assert ("Normal", "ReassignmentOrphaned") in world.events(way_out)
        world.operator.kill()
        world.patch(waits, {"stallTimeoutSeconds": 601})  # a new generation, which the next operator has to judge
        world.wait_for(waits, "Ready", "False", "ClusterUnreachable")
    world.wait_for("local", "Ready", kind="kafkacluster")
    world.wait_gone(waits)
    world.brokers_say({(topics[0], 0): [1, 0]})
    assert set(world.kafka.in_flight(topics)) == {(topic, 0) for topic in topics[1:]}
    world.let_go(*topics)
    world.wait_idle(*topics)
    world.brokers_say({(topics[1], 0): [2, 3], (topics[2], 0): [0, 1]})


def test_a_kafka_cluster_stays_until_unreferenced_and_its_moves_undone(world: World) -> None:
    orders = world.topic("orders", [0, 1], size=HELD_BYTES)
    world.hold(orders)
    name = world.move("first", {(orders, 0): [2, 3]})
    world.wait_in_flight((orders, 0))
    spec = (world.read("local", "kafkacluster") or {})["spec"]
    try:
        world.delete("local", "kafkacluster")
        world.wait_for("local", "Ready", "False", "ClusterDeleted", kind="kafkacluster")
        later = world.move("later", {(orders, 0): [1, 3]})
        world.wait_for(later, "Ready", "False")
        world.delete(later)
        world.delete(name)
        world.wait_gone(later)
        world.wait_gone(name)
        world.wait_gone("local", kind="kafkacluster")
        world.brokers_say({(orders, 0): [0, 1]})
    finally:
        world.wait_gone("local", kind="kafkacluster")
        metadata = {"name": "local", "namespace": world.namespace}
        cluster = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "KafkaCluster", "metadata": metadata}
        world.apply(cluster | {"spec": spec})
        world.wait_for("local", "Ready", kind="kafkacluster")
