"""While another client changes throttles again and again, nothing throttled begins, and what is in flight goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.api.config_keys import FOLLOWER_REPLICAS
from reassign.core.model.configs import ConfigKey
from reassign.core.model.recent_changes import REPEATED
from reassign.core.model.row import SayingKind
from reassign.errors import Reason
from tests.unit.configs import topic
from tests.unit.throttled_brokers import MOVING, NEW, OLD, P0, P1, Client, snapshot
from tests.unit.throttling import Operator
from tests.unit.world import OURS, World

KEY = ConfigKey(topic(), FOLLOWER_REPLICAS)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def operator(client: Client) -> Operator:
    operator = Operator(client)
    operator.grow_up()
    return operator


def some_time_passes(operator: Operator) -> None:
    """As long as the throttle has to stand."""
    recent = operator.memory.recent
    drifts = {key: drift._replace(at=drift.at - drift.wait()) for key, drift in recent.drifts.items()}
    operator.memory = replace(operator.memory, recent=replace(recent, drifts=drifts))


def test_a_move_begins_only_when_its_throttle_has_stood_for_a_while(operator: Operator, client: Client) -> None:
    begun = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)
    operator.tick(snapshot({P0: MOVING}), [begun])
    operator.show_changes()
    del client.store[topic()][FOLLOWER_REPLICAS]
    begins = operator.verdict("b", {P1: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot({P0: MOVING}), [begun, begins])
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2,1:2"
    after = operator.after(begins)
    assert after.steps == ()
    problem = after.rows[P1].said(SayingKind.PROBLEM)
    assert problem
    assert problem.reason is Reason.THROTTLE_NOT_SET
    assert f"another client changes {KEY}, which has to stand for 5 s first" in problem.message
    assert operator.after(begun).record == begun.record
    some_time_passes(operator)
    operator.tick(snapshot({P0: MOVING}), [begun, begins])
    assert operator.after(begins).steps == begins.steps


def test_drift_that_repeats_is_a_condition_and_one_event() -> None:
    world = World()
    assert world.conditions("main") == {"Ready": "Connected"}
    throttle = world.loop.memory.throttle
    recent = throttle.recent
    for _ in range(REPEATED):
        recent = recent.drifted([KEY], recent.now)
    world.loop.memory = replace(world.loop.memory, throttle=replace(throttle, recent=recent))
    world.tick(3)
    assert world.conditions("main") == {"Ready": "Connected", "ThrottleDrift": "Repeated"}
    assert world.kube.events.count("ThrottleDriftRepeated") == 1
    assert OURS in world.kafka.reassignments
