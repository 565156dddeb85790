"""What becomes of a policy's plan where two things come together: windows, edits, cordons and older records."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from reassign.api.reassignment_record import RecordedDecommission, RecordedPolicy
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, UP, orders
from tests.unit.policy_sim import Policies, SimPolicy

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2), (3, 4), (4, 0), (0, 1))
LOST = {"name": "lost", "brokerLost": {"afterSeconds": 1800}, "approval": "NotRequired"}
CORDONED = {"name": "in", "brokersCordoned": {"afterSeconds": 300}, "approval": "NotRequired"}
CLOSED = [{"cron": "0 0 1 1 *", "durationSeconds": 300}]
MINUTE = 60

Record = TypeVar("Record", RecordedDecommission, RecordedPolicy)


def world(*triggers: dict[str, Any], **fields: Any) -> tuple[Policies, SimPolicy]:
    run = Policies(ROWS)
    it = run.policy(*triggers, **fields)
    run.rest(900)
    return run, it


def wait(run: Policies, minutes: int) -> None:
    run.tick(minutes, MINUTE)


def older(record: Record) -> Record:
    """Return a record as the version before this one wrote it."""
    wire: dict[str, Any] = record.wire()
    for plan in (wire.get("plan"), wire.get("waiting")):
        if plan:
            plan.pop("waves", None)
    for known in (wire, *wire.get("triggers", ())):
        known.pop("generation", None)
    return type(record).parse(wire)


@pytest.mark.parametrize("how", ["suspended", "withdrawn"])
def test_a_decommission_out_of_its_window_leaves_a_balance_alone(how: str) -> None:
    run, it = world({"name": "out", "brokersAdded": {"afterSeconds": 600}}, approval="Required")
    run.replicas.update({TopicPartition("big", n): (0, 1) for n in range(24)})
    run.brokers[6] = UP
    run.wait(lambda: it.status.digest)
    it.approve()
    run.wait(lambda: run.begun)
    old = run.apply(brokers=(5,), approval="NotRequired", windows=CLOSED)
    run.rest(60)
    digest = it.spec.approved_digest
    it.edit(**({"suspend": True} if how == "suspended" else {"approvedDigest": None}))
    run.rest(120)
    it.edit(**({"suspend": False} if how == "suspended" else {"approvedDigest": digest}))
    begun = len(run.begun)
    run.rest(600)
    assert len(run.begun) > begun
    assert [outcome for _, outcome in it.outcomes if outcome == "Retired"] == []
    assert old.reason != "Empty"


def test_a_night_that_gave_way_to_a_decommission_comes_all_the_same() -> None:
    nightly = {"cron": "0 4 * * *", "startingDeadlineSeconds": 86400}
    windows = [{"cron": "0 22 * * *", "durationSeconds": 3600}]
    run, it = world({"name": "nightly", "schedule": nightly, "approval": "NotRequired", "windows": windows})
    run.replicas.update(orders(*[(0, 1)] * 8))
    run.replicas.update({TopicPartition("old", n): (5, 4) for n in range(4)})
    run.wait(lambda: it.record.plan and it.record.plan.approved)
    old = run.apply(brokers=(5,), approval="NotRequired", cordon="Never")
    run.wait(lambda: old.reason == "Empty")
    wait(run, 180)
    assert it.outcomes[0] == ("main-nightly-1", "Retired")
    assert run.created == ["main-nightly-1", "old-1", "main-nightly-2"]


def test_a_lifted_cordon_of_a_broker_that_is_gone_says_nothing_for_long() -> None:
    run, it = world(CORDONED)
    run.replicas.update({TopicPartition("big", n): (5, 1) for n in range(20)})
    run.others = {5}
    run.wait(lambda: run.begun)
    run.others = set()
    wait(run, 2)
    assert "is not cordoned any more" in (it.trigger("in").message or "")
    run.brokers[5] = FENCED
    wait(run, 10)
    assert "is not cordoned any more" not in (it.trigger("in").message or "")


def test_cordons_are_set_again_while_a_window_is_closed() -> None:
    run, it = world({**LOST, "windows": [{"cron": "0 2 * * *", "durationSeconds": 300}]})
    run.replicas.update({TopicPartition("big", n): (5, 4) for n in range(24)})
    run.apply(brokers=(4,), approval="NotRequired", windows=CLOSED)
    run.wait(lambda: 4 in run.cordons)
    run.brokers[5] = FENCED
    run.wait(lambda: run.begun, most=4000)
    assert run.cordons == {}
    wait(run, 10)
    assert (set(run.cordons), it.record.lifts_cordons) == ({4}, False)


def test_a_plan_of_an_older_record_uses_up_what_was_approved() -> None:
    run = Policies(orders(*[(5, 1)] * 8))
    old = run.apply(cordon="Never", approval="Required")
    run.until("AwaitingApproval")
    old.approve()
    run.wait(lambda: run.begun)
    old.record = older(old.record)
    run.restart()
    run.wait(lambda: old.reason == "Empty")
    run.replicas.update({TopicPartition("new", n): (5, 2) for n in range(6)})
    run.wait(lambda: old.reason == "AwaitingApproval")
    assert len(run.on(5)) == 6


def test_an_edit_ends_a_wait_of_an_older_record() -> None:
    run, it = world(CORDONED)
    run.others = {5}
    for number in (1, 2, 3):
        run.wait(lambda number=number: it.record.plan and it.record.plan.number == number, most=6000)  # type: ignore[misc]
        run.plans[f"main-in-{number}"].deleted = True
        run.rest(60)
    it.record = older(it.record)
    run.restart()
    run.rest(60)
    assert it.reason == "PlanFailed"
    it.edit(settleSeconds=61)
    run.rest(120)
    assert run.created[-1] == "main-in-4"
