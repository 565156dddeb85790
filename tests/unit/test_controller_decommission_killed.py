"""A BrokerDecommission ends the same wherever the process is killed, a write is refused, or its answer is lost."""

from __future__ import annotations

import pytest

from tests.unit.decommission_world import A, B, Decommissioning
from tests.unit.killed import failures, tried


def approved(monkeypatch: pytest.MonkeyPatch) -> Decommissioning:
    """A decommission that needs no approval."""
    return Decommissioning(monkeypatch, approval="NotRequired", unregister="WhenDown")


@failures
def test_a_life_is_the_same(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def live(world: Decommissioning) -> None:
        world.run(until=lambda: world.reason() == "Empty")
        world.down(1)
        world.run(until=lambda: world.reason() == "Unregistered")
        world.run(5)
        assert set(world.brokers.begun) == {A, B}
        assert world.brokers.unregistered == [1]
        assert [name for name in world.kube.made if name.startswith("ReassignmentPlan")] == ["ReassignmentPlan old-1"]
        assert (world.plans(), len(world.waves())) == (["old-1"], 2)
        assert world.record()["approval"]["begunBytes"] == 200
        assert [made["outcome"] for made in world.status()["plans"]] == ["Succeeded"]
        world.assert_nothing_left(unregistered=[1])

    assert tried(monkeypatch, approved, live, failure) > 60


@failures
def test_a_deletion_midway_leaves_nothing(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def delete(world: Decommissioning) -> None:
        world.copies = False
        world.run(until=lambda: bool(world.kafka.reassignments))
        world.delete()
        world.run(until=lambda: not world.obj("BrokerDecommission", "old"))
        world.run(15)
        world.assert_nothing_left()
        assert not world.plans()

    assert tried(monkeypatch, approved, delete, failure) > 40


@failures
def test_the_brake_and_run_again_end_the_same(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def brake(world: Decommissioning) -> None:
        world.copies = False
        world.run(until=lambda: bool(world.kafka.reassignments))
        world.pull("CancelOurs")
        world.run(until=lambda: not (world.cordons() or world.kafka.reassignments))
        world.run(3)
        world.pull("Run")
        world.copies = True
        world.run(until=lambda: world.reason() == "Empty")
        assert (world.on(1), world.cordons()) == ([], {1})
        assert world.record()["approval"]["begunBytes"] == 200

    assert tried(monkeypatch, approved, brake, failure) > 40


@failures
def test_a_wave_that_others_delete_gets_one_further_plan(monkeypatch: pytest.MonkeyPatch, failure: str) -> None:
    def plan_again(world: Decommissioning) -> None:
        world.run(until=lambda: len(world.kube.started) == 1)
        world.delete(world.waves()[-1]["metadata"]["name"], "PartitionReassignment")
        world.run(until=lambda: world.reason() == "Empty")
        assert (world.on(1), world.plans()) == ([], ["old-1", "old-2"])
        assert world.record()["approval"]["begunBytes"] == 200
        world.delete()
        world.run(20)
        world.assert_nothing_left()

    assert tried(monkeypatch, approved, plan_again, failure) > 60
