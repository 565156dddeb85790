"""Throttles that are set for moves, and gone without a trace when the last of them has ended, however it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.world import HELD_BYTES, Object, World, eventually

SLOW, FAST = {"interBroker": "64Ki"}, {"interBroker": "1Gi"}


def described(world: World) -> dict[str, str]:
    """The dynamic configurations of each broker and topic, word for word as the stock tool prints them."""
    found: dict[str, str] = {}
    for kind in ("brokers", "topics"):
        said = world.brokers.tool("configs", "--describe", "--entity-type", kind)
        _, *parts = re.split(r"^Dynamic configs for \w+ (\S+) are:$", said, flags=re.MULTILINE)
        found |= dict(zip(parts[::2], parts[1::2], strict=True))
    return found


def status(world: World) -> Object:
    return dict((world.read(world.cluster, kind="kafkacluster") or {})["status"])


def add(world: World, kind: str, name: str, config: str) -> None:
    world.brokers.tool("configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", config)


@pytest.fixture
def throttled_before(world: World) -> Iterator[World]:
    """A cluster in which somebody has set a rate, which is gone afterwards."""
    add(world, "brokers", "0", "leader.replication.throttled.rate=5000000")
    yield world
    world.let_go()


def test_every_config_is_restored_after_every_end_of_a_move_and_a_kill(throttled_before: World) -> None:
    world = throttled_before
    cancelled, done = (world.topic(name, [0, 1], size=HELD_BYTES) for name in ("cancelled", "done"))
    failed = world.topic("failed", [1, 0], [1, 0], size=HELD_BYTES)  # no broker may send more than five replicas
    add(world, "topics", done, "follower.replication.throttled.replicas=*")
    before = described(world)
    to_cancel = world.move("cancel", {(cancelled, 0): [2, 3]}, throttle=SLOW)
    one_by_one = {"concurrency": {"partitions": 1}, "deadlineSeconds": 10}
    to_fail = world.move("fail", {(failed, 0): [2, 3], (failed, 1): [2, 3]}, throttle=SLOW, **one_by_one)
    to_finish = world.move("finish", {(done, 0): [2, 3]}, throttle=SLOW)
    world.wait_in_flight((cancelled, 0), (done, 0))
    eventually("one of the others is in flight", lambda: len(world.kafka.in_flight([failed])) == 1)
    during = described(world)
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
    eventually("nothing is left to restore", lambda: "throttle" not in status(world))
    eventually("every config is as it was", lambda: described(world) == before)
