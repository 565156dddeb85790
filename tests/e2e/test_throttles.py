"""Throttles that are set for moves, and gone without a trace when the last of them has ended, however it ended."""

from __future__ import annotations

import re

from tests.e2e.world import HELD_BYTES, World, eventually

SLOW, FAST = {"interBroker": "64Ki"}, {"interBroker": "1Gi"}


def described(world: World, *topics: str) -> dict[str, str]:
    """The dynamic configurations of all brokers and of these topics, word for word as the stock tool prints them."""
    entities = [("brokers", str(broker)) for broker in world.brokers.ids] + [("topics", topic) for topic in topics]
    return {
        name: world.brokers.tool("configs", "--describe", "--entity-type", kind, "--entity-name", name)
        for kind, name in entities
    }


def add(world: World, kind: str, name: str, config: str) -> None:
    world.brokers.tool("configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", config)


def test_moves_that_end_in_every_way_and_a_kill_leave_every_config_as_it_was(world: World) -> None:
    cancelled, done = (world.topic(name, [0, 1], size=HELD_BYTES) for name in ("cancelled", "done"))
    failed = world.topic("failed", [1, 0], [1, 0], size=HELD_BYTES)  # no broker may send more than five replicas
    add(world, "brokers", "0", "leader.replication.throttled.rate=5000000")
    add(world, "topics", done, "follower.replication.throttled.replicas=*")
    before = described(world, cancelled, failed, done)
    to_cancel = world.move("cancel", {(cancelled, 0): [2, 3]}, throttle=SLOW)
    one_by_one = {"concurrency": {"partitions": 1}, "deadlineSeconds": 10}
    to_fail = world.move("fail", {(failed, 0): [2, 3], (failed, 1): [2, 3]}, throttle=SLOW, **one_by_one)
    to_finish = world.move("finish", {(done, 0): [2, 3]}, throttle=SLOW)
    world.wait_in_flight((cancelled, 0), (done, 0))
    eventually("one of the others is in flight", lambda: len(world.kafka.in_flight([failed])) == 1)
    during = described(world, cancelled, failed, done)
    assert "leader.replication.throttled.rate=65536" in during["0"]
    assert re.search(r"follower\.replication\.throttled\.replicas=0:[23],0:[23]\b", during[cancelled])
    assert "follower.replication.throttled.replicas=*" in during[done]
    world.operator.kill()
    world.delete(to_cancel)
    world.wait_gone(to_cancel)
    eventually(
        "one partition came too late",
        lambda: any(world.partition(to_fail, failed, p).get("reason") == "DeadlineExceeded" for p in (0, 1)),
    )
    for name in (to_fail, to_finish):
        world.patch(name, {"throttle": FAST})
    world.wait_for(to_finish, "Succeeded")
    world.wait_for(to_fail, "Failed")
    eventually("every config is as it was", lambda: described(world, cancelled, failed, done) == before)
    local = world.read(world.cluster, kind="kafkacluster")
    assert local is not None
    assert "throttle" not in local["status"]
