"""Another installation of the operator on the same Kafka: nothing new starts here, and undoing goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from reassign.api.throttle_configs import FOLLOWER_RATE, RATES
from reassign.core.claim import Claim, ClaimState
from reassign.core.model.configs import Change, ConfigKey, Op, put
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from reassign.kafka.claim import Membership
from tests.unit.configs import Store, broker, copy, topic
from tests.unit.test_controller_loop import LATER, OURS, THEIRS, World
from tests.unit.test_controller_throttling import Client
from tests.unit.throttling import show_changes, throttle_its_move

OTHER = Claim("other", datetime(2026, 1, 1, tzinfo=UTC), "10.0.0.1")
START: Store = {**{broker(b): {} for b in range(6)}, topic(OURS.topic): {}, topic(LATER.topic): {}}
FREE = ClaimState(0.0, True)


class Claimed(World):
    """`main` moves OURS; `state` is what is known of the claim."""

    def __init__(self) -> None:
        self.state = FREE
        super().__init__()

    def new_loop(self) -> Any:
        loop, brokers = super().new_loop(), self.brokers

        def keep(membership: Membership) -> None:
            membership.state = self.state

        brokers.keep = keep  # type: ignore[attr-defined]
        loop.observer.installation = "ours"
        return loop

    def lose(self) -> None:
        """Another installation has the claim."""
        self.state = FREE.read(OTHER, 0.0)


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


class Throttled(Claimed):
    """The same, at 1 MiB/s."""

    def __init__(self) -> None:
        super().__init__()
        self.client = Client(copy(START))
        throttle_its_move(self, self.client)
        self.seconds(3)

    def seconds(self, times: int) -> None:
        """Reconcile, some seconds apart."""
        for _ in range(times):
            show_changes(self.loop)
            self.tick()

    def set_rates(self, rate: str) -> None:
        """The other installation sets a rate on all brokers."""
        for number in range(6):
            for config in RATES:
                put(self.client.store[broker(number)], Change(ConfigKey(broker(number), config), Op.SET, rate))

    @property
    def rates(self) -> dict[int, str | None]:
        return {b: self.client.store[broker(b)].get(FOLLOWER_RATE) for b in range(6)}


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
    assert throttled.client.store == START


def test_rates_that_the_one_with_the_claim_restores_are_not_left_behind(throttled: Throttled) -> None:
    before = copy(throttled.client.store)
    throttled.lose()
    throttled.set_rates("512")
    throttled.kafka.copy(OURS)
    throttled.seconds(8)
    assert throttled.client.store[topic(OURS.topic)] == {}
    assert set(throttled.rates.values()) == {"512"}
    assert throttled.loop.actor.throttle_record.recorded
    for number in range(6):  # it has found ours, and restores that
        throttled.client.store[broker(number)] = dict(before[broker(number)])
    throttled.seconds(8)
    assert throttled.client.store == START
    assert throttled.loop.actor.throttle_record.recorded is None
