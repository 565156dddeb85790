"""The record of throttles is no status: nothing of ours is left behind, or it is named."""

from __future__ import annotations

from typing import Any

import pytest

from reassign.api.config_keys import FOLLOWER_REPLICAS, LEADER_REPLICAS
from tests.unit.configs import Store, broker, copy, topic
from tests.unit.sim import partitions
from tests.unit.throttled_brokers import MOVING, NEW, OLD, Client, snapshot
from tests.unit.throttling import Operator, ended, show_changes, throttle_its_move
from tests.unit.world import OURS, World

[P0] = partitions(1)
START: Store = {**{broker(b): {} for b in range(6)}, topic(OURS.topic): {}}


@pytest.fixture
def client() -> Client:
    return Client(copy(START))


@pytest.fixture
def world(client: Client) -> World:
    """OURS is in flight, throttled."""
    world = World()
    throttle_its_move(world, client)
    world.tick(2)  # the first asks for configurations
    assert client.store != START
    return world


def pass_seconds(world: World) -> None:
    """What was written is seen by all."""
    show_changes(world.loop)


def throttle_of(world: World) -> Any:
    """The record that the API server has."""
    record = world.kube.objects["uid-uid-main-0"]
    return record["spec"].get("throttle")


@pytest.mark.parametrize("deleted", [False, True])
def test_a_status_wiped_changes_nothing_and_all_is_restored(world: World, client: Client, deleted: bool) -> None:
    before = throttle_of(world)
    assert before
    world.change("main", lambda obj: obj.update(status={}))
    world.tick()
    assert throttle_of(world) == before
    if deleted:
        for name in ("main", "move"):
            world.delete(name)
    else:
        world.kafka.copy(OURS)
    for _ in range(20):
        pass_seconds(world)
        world.tick()
        if world.store.get("uid-main") is None:
            break
    assert (client.store, throttle_of(world)) == (START, None)


def test_a_status_says_what_is_set_and_for_whom_alone(world: World) -> None:
    world.tick()
    throttle = (world.store.get("uid-main") or {})["status"]["throttle"]
    assert throttle["interBroker"] == 1024 * 1024
    assert [user["name"] for user in throttle["users"]] == ["move"]
    assert not throttle.get("topics")
    assert not throttle.get("brokers")
    assert throttle_of(world)["topics"]


def test_the_record_of_a_cluster_made_anew_under_the_same_name_is_its_own(world: World) -> None:
    obj = world.store.get("uid-main") or {}
    world.store.drop("uid-main")
    world.put({**obj, "metadata": {**obj["metadata"], "uid": "uid-new"}, "status": {}})
    world.tick()
    assert "ThrottleRecordLost" not in world.kube.events


@pytest.fixture
def operator() -> Operator:
    """P0 is in flight, throttled."""
    found = Operator(Client())
    found.grow_up()
    found.tick(snapshot(), [found.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    found.show_changes()
    return found


def starts_anew(operator: Operator) -> list[str]:
    """The warnings of a new process that finds P0 in flight."""
    operator.restart()
    operator.grow_up()
    for _ in range(3):
        operator.tick(snapshot({P0: MOVING}), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)])
    return [tell.note for tell in operator.api.told]


def test_a_new_process_names_unrecorded_throttles_and_deletes_nothing(
    operator: Operator,
) -> None:
    operator.api.recorded = None
    before = copy(operator.client.store)
    [note] = starts_anew(operator)
    assert f"{FOLLOWER_REPLICAS} of topic orders has 0:2; {LEADER_REPLICAS} of topic orders has 0:0,0:1" in note
    operator.tick(snapshot(), [ended(operator.verdict("a", {P0: (OLD, NEW)}, "5Ki"))])
    assert operator.client.store == before


def test_a_new_process_with_its_record_reports_nothing(operator: Operator) -> None:
    assert starts_anew(operator) == []


def test_items_of_another_client_before_a_move_are_not_reported() -> None:
    operator = Operator(Client())
    operator.grow_up()
    operator.tick(snapshot())
    operator.client.store[topic()][FOLLOWER_REPLICAS] = "0:2"
    for state in (snapshot(), snapshot({P0: MOVING})):
        operator.tick(state, [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert operator.api.told == []
