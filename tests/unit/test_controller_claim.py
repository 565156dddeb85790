"""Another installation of the operator on the same Kafka: nothing new starts here, and undoing goes on."""

from __future__ import annotations

import pytest

from reassign.core.claim import ClaimState
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from tests.unit.claimed import FREE, Claimed, Throttled
from tests.unit.configs import broker, copy, topic
from tests.unit.throttled_brokers import NOTHING_SET
from tests.unit.world import LATER, OURS, THEIRS


@pytest.fixture
def world() -> Claimed:
    return Claimed()


def test_nothing_new_starts_where_another_installation_has_the_claim(world: Claimed) -> None:
    world.lose()
    world.add("next", LATER, (4, 2, 3))
    world.tick(4)
    assert set(world.kafka.reassignments) == {OURS, THEIRS}
    assert world.ready("main")["reason"] == world.ready("next")["reason"] == "ClusterClaimed"
    assert "It is at 10.0.0.1 since 2026-01-01" in world.ready("main")["message"]
    assert "10.0.0.1" not in world.ready("next")["message"]
    assert world.conditions("main") == {"Reconciling": "ClusterClaimed"}
    assert "ClusterClaimed" in world.kube.events
    world.state = FREE
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.conditions("main") == {"Ready": "Connected"}


def test_moves_in_flight_go_on_beside_another_installations_claim(world: Claimed) -> None:
    world.lose()
    world.tick(3)
    assert OURS in world.kafka.reassignments
    world.kafka.copy(OURS)
    world.tick(until=lambda: world.conditions("move").get("Succeeded") == "Completed")


def test_a_deletion_undoes_beside_another_installations_claim(world: Claimed) -> None:
    world.lose()
    world.delete("move")
    world.tick(until=lambda: world.kafka.replicas[OURS] == (1, 2, 3))
    assert set(world.kafka.reassignments) == {THEIRS}


def test_cancel_all_beside_another_installations_claim_undoes_only_ours(world: Claimed) -> None:
    world.lose()
    world.pull("CancelAll")
    world.tick(3)
    assert set(world.kafka.reassignments) == {THEIRS}


def test_nothing_starts_before_the_claim_is_known(world: Claimed) -> None:
    world.state = ClaimState(float("inf"))
    world.add("next", LATER, (4, 2, 3))
    world.tick(4)
    assert LATER not in world.kafka.reassignments
    assert world.conditions("main") == {"Ready": "Connected"}
    world.state = FREE
    world.tick(until=lambda: LATER in world.kafka.reassignments)


def test_without_the_right_to_the_group_service_goes_on_with_a_warning(world: Claimed) -> None:
    world.state = FREE.failed(Problem(Reason.NOT_AUTHORIZED, "grant READ"), 0.0, lasts=True)
    world.add("next", LATER, (4, 2, 3))
    world.tick(until=lambda: LATER in world.kafka.reassignments)
    assert world.conditions("main") == {"Ready": "Connected", "Unclaimed": "NotAuthorized"}
    assert world.kube.events.count("ClusterUnclaimed") == 1


@pytest.fixture
def throttled() -> Throttled:
    return Throttled()


def test_rates_are_not_set_back_and_forth_with_the_one_that_has_the_claim(throttled: Throttled) -> None:
    throttled.lose()
    throttled.set_rates("512")
    throttled.seconds(5)
    assert set(throttled.rates.values()) == {"512"}


def test_throttles_of_ended_moves_are_restored_beside_anothers_claim(throttled: Throttled) -> None:
    throttled.lose()
    throttled.seconds(2)
    assert throttled.rates[4] == "1048576"
    throttled.kafka.copy(OURS)
    throttled.seconds(8)
    assert throttled.client.store == NOTHING_SET


def test_throttles_stay_with_their_cluster_beside_anothers_claim(throttled: Throttled) -> None:
    """Another KafkaCluster for the same brokers does not take them over."""
    throttled.lose()
    throttled.set_rates("512")
    throttled.kafka.copy(OURS)
    throttled.seconds(8)
    [peer] = throttled.store.peers()
    assert (peer.unready, peer.keeps, peer.throttle is None) == ("ClusterClaimed", True, False)
    throttled.state = FREE
    throttled.seconds(1)
    assert not throttled.store.peers()[0].keeps


def test_rates_that_the_one_with_the_claim_restores_are_not_left_behind(throttled: Throttled) -> None:
    before = copy(throttled.client.store)
    throttled.lose()
    throttled.set_rates("512")
    throttled.kafka.copy(OURS)
    throttled.seconds(8)
    assert throttled.client.store[topic(OURS.topic)] == {}
    assert set(throttled.rates.values()) == {"512"}
    assert throttled.loop.actor.config_record.recorded
    for number in range(6):  # it has found ours, and restores that
        throttled.client.store[broker(number)] = dict(before[broker(number)])
    throttled.seconds(8)
    assert throttled.client.store == NOTHING_SET
    assert throttled.loop.actor.config_record.recorded is None
