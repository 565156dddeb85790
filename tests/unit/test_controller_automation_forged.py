"""What others write into statuses gets no plan of automation made or carried out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.decommission_world import A, B, Decommissioning
from tests.unit.policy_world import LOST, Policing
from tests.unit.world import Object


def saying(copied: int) -> Callable[[Object], None]:
    """Return what makes the status of a plan say that each wave copies so many bytes."""

    def forge(status: Object) -> None:
        for wave in status.get("waves", ()):
            wave["bytes"] = copied

    return forge


def test_forged_bytes_do_not_get_a_plan_below_max_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.decommission_world.BYTES", 2048)
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired", maxBytes="1Ki")
    world.down(1)
    world.tick(until=lambda: world.ready_of() == "AwaitingApproval")
    for _ in range(10):
        world.change_status("main-lost-1", saying(1))
        world.tick()
    assert (world.ready_of(), world.kube.started) == ("AwaitingApproval", [])
    world.restart()
    world.change_status("main-lost-1", saying(1))
    world.tick(10)
    assert (world.ready_of(), world.kube.started) == ("AwaitingApproval", [])
    world.approve_policy()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.policy_record()["approval"]["begunBytes"] == 2 * 2048


@pytest.mark.parametrize("copied", [0, 10**12])
def test_forged_bytes_get_no_further_plan_under_an_approval(monkeypatch: pytest.MonkeyPatch, copied: int) -> None:
    world = Decommissioning(monkeypatch)
    world.until("AwaitingApproval")
    world.change_status("old-1", saying(copied))
    world.approve()
    world.until("Empty")
    approval = world.record()["approval"]
    assert (approval["bytes"], approval["begunBytes"]) == (200, 200)
    world.kafka.replicas[A], world.kafka.replicas[B] = (1, 2), (3, 1)
    world.until("AwaitingApproval", seconds=20)
    for _ in range(10):
        world.change_status("old-2", saying(0))
        world.tick()
    assert (world.reason(), len(world.kube.started)) == ("AwaitingApproval", 2)


def test_a_plan_made_by_another_process_is_as_it_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired", maxBytes="1Mi")
    world.down(1)
    world.tick(until=lambda: bool(world.policy_record().get("waiting")))
    world.restart()
    world.tick(until=lambda: world.outcomes() == [("main-lost-1", "Succeeded")])
    assert world.policy_record()["approval"]["begunBytes"] == 200


def test_a_forged_generation_has_no_plan_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Policing(monkeypatch, triggers=[LOST], approval="NotRequired")
    world.copies = False
    world.down(1)
    world.tick(until=lambda: bool(world.kafka.reassignments))
    world.delete("main-lost-1", "ReassignmentPlan")
    world.tick(until=lambda: world.trigger("lost") == ("Held", "Backoff"))
    for _ in range(20):
        world.change_status("policy-main", lambda status: status.update(observedGeneration=0))
        world.tick()
    assert (world.plans(), world.trigger("lost")) == ([], ("Held", "Backoff"))
    world.edit_policy(settleSeconds=61)
    world.tick(until=lambda: world.plans() == ["main-lost-2"])
