"""A plan of a policy ends the same wherever the process is killed, a write is refused, or its answer is lost."""

from __future__ import annotations

import pytest

from tests.unit.decommission_world import A, B
from tests.unit.killed import failures, tried
from tests.unit.policy_world import LOST, NIGHTLY, Policing


@failures
def test_a_lost_broker_is_replaced_once(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def begin(patch: pytest.MonkeyPatch) -> Policing:
        return Policing(patch, triggers=[LOST], approval="NotRequired")

    def replace(world: Policing) -> None:
        world.down(1)
        world.run(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
        world.run(20)
        assert sorted(world.brokers.begun) == [A, B]
        assert (world.on(1), world.plans(), len(world.waves())) == ([], ["main-lost-1"], 2)
        assert world.policy_record()["approval"]["begunBytes"] == 200
        world.assert_nothing_left()

    assert tried(monkeypatch, begin, replace, failure) > 25


@failures
def test_a_schedule_is_served_once(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def begin(patch: pytest.MonkeyPatch) -> Policing:
        world = Policing(patch, triggers=[NIGHTLY], approval="Required")
        world.tick(20)
        world.clock.seconds = 2 * 3600 - 120
        return world

    def serve(world: Policing) -> None:
        world.run(until=lambda: world.ready_of() == "AwaitingApproval")
        world.approve_policy()
        world.run(until=lambda: [outcome for _, outcome in world.outcomes()] == ["Succeeded"])
        world.run(20)
        assert [len(world.on(number)) for number in range(6)] == [1] * 6
        assert len(world.brokers.begun) == 3
        assert world.policy()["lastScheduleTime"] == "2026-01-01T02:00:00Z"
        assert world.plans() == ["main-nightly-1"]
        world.assert_nothing_left()

    assert tried(monkeypatch, begin, serve, failure) > 25


@failures
def test_a_policy_that_is_deleted_midway_leaves_nothing(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def begin(patch: pytest.MonkeyPatch) -> Policing:
        return Policing(patch, triggers=[LOST], approval="NotRequired")

    def delete(world: Policing) -> None:
        world.copies = False
        world.down(1)
        world.run(until=lambda: bool(world.kafka.reassignments))
        world.delete("main", "ReassignmentPolicy")
        world.run(20)
        assert world.plans() == []
        world.assert_nothing_left()

    assert tried(monkeypatch, begin, delete, failure) > 20
