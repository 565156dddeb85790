"""Several BrokerDecommissions of one cluster, and what a plan under way meets: sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reassign.api.kafka_cluster import Execution
from reassign.core.model.snapshot import TopicPartition
from tests.unit.automation_sim import FENCED, GONE, UNREACHABLE, UP, Decommissions, SimDecommission, orders

ROWS = orders((5, 1), (2, 5), (5, 3), (1, 2))


def under_way(**fields: Any) -> tuple[Decommissions, SimDecommission]:
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired", **fields)
    while not run.moves:
        run.tick()
    return run, it


def test_a_broker_that_is_gone_is_not_avoided() -> None:
    run = Decommissions(ROWS)
    run.apply("first", [3, 4], approval="NotRequired")
    run.until("Empty", "first")
    run.brokers[4] = GONE
    run.apply("second", [5])
    run.until("AwaitingApproval", "second")
    assert run.plans["second-1"].spec.goal.avoid_brokers == (3,)


def test_a_plan_that_was_deleted_with_moves_in_flight_is_listed_so() -> None:
    run, it = under_way()
    plan = run.plans["old-1"]
    plan.deleted, plan.kept = True, True
    for _ in range(6):
        run.tick()
        assert it.status.plans[0].outcome == "Deleted"
    plan.kept = False
    run.until("Empty")
    assert [(made.name, made.outcome) for made in it.status.plans] == [("old-1", "Deleted"), ("old-2", "Succeeded")]


@pytest.mark.parametrize("ticks", [1, 5])
def test_a_plan_that_is_gone_at_once_is_not_created_again(ticks: int) -> None:
    run = Decommissions(ROWS)
    run.apply(approval="NotRequired")
    while not run.plans:
        run.tick()
    run.tick(ticks)
    run.moves.clear()
    del run.plans["old-1"]
    run.until("Empty", most=400)
    assert run.created == ["old-1", "old-2"]


def test_a_plan_outlives_an_outage_of_its_cluster() -> None:
    run, it = under_way()
    run.problem = UNREACHABLE
    run.tick(100)
    run.problem = None
    run.until("Empty")
    assert (run.created, it.record.failures) == (["old-1"], 0)


def test_a_broker_that_never_says_what_is_cordoned_is_waited_for_a_minute() -> None:
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired")
    run.reports_cordons = False
    while not run.wanted:
        run.tick()
    run.tick(3)
    assert (run.begun, it.message) == ([], "broker 5 is being cordoned")
    run.tick()
    assert run.begun == ["old-1-w1"]


def test_what_went_wrong_last_is_said_while_it_waits() -> None:
    run = Decommissions(ROWS)
    it = run.apply(approval="NotRequired")
    for _ in range(3):
        while not (it.record.plan and it.record.plan.approved and not it.record.plan.retired):
            run.tick()
        run.plans[it.record.plan.name].deleted = True
        run.tick()
    run.until("PlanFailed")
    assert "the plan old-3 was deleted" in it.message
    run.until("Empty", most=400)
    assert it.record.last_failure is None


def test_how_long_a_broker_is_down_is_counted_whoever_else_names_it() -> None:
    run = Decommissions(ROWS)
    run.lists_fenced = False
    run.apply("both", [4, 5], approval="NotRequired")
    run.apply("one", [5], approval="NotRequired")
    run.until("Empty", "both")
    run.until("Empty", "one")
    run.brokers[5] = FENCED
    run.until("Gone", "one")
    run.brokers[4] = FENCED
    run.brokers[5] = UP
    run.tick(10)
    run.brokers[5] = FENCED
    run.until("Gone", "both", most=50)


def test_a_wave_that_has_been_let_go_keeps_its_turn() -> None:
    run, _ = under_way()
    found = run.plan_seen(run.plans["old-1"])
    assert replace(found, waves=[replace(wave, record={}) for wave in found.waves]).moving
    assert not replace(found, waves=found.waves[1:]).moving


# --- Turns ---


def many(*rows: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("many", number): row for number, row in enumerate(rows)}


@pytest.mark.parametrize("held", ["suspend", "approval"])
def test_one_that_is_held_blocks_no_other_once_nothing_is_in_flight(held: str) -> None:
    run, it = under_way()
    run.replicas |= many(*[(4, 1)] * 4)
    run.apply("next", [4], approval="NotRequired")
    it.edit(**({"suspend": True} if held == "suspend" else {"approval": "Required"}))
    while run.moves:
        assert run.objects["next"].record.approval is None
        run.tick()
    while not run.moves:
        run.tick()
    it.edit(suspend=False, approval="NotRequired")
    for _ in range(200):
        run.tick()
        assert len(run.working) <= 1
    assert [found.reason for found in run.objects.values()] == ["Empty", "Empty"]
    assert not any({4, 5} & {*row} for row in run.replicas.values())


def test_a_plan_does_not_fill_brokers_that_are_emptied_since() -> None:
    run, it = under_way()
    assert run.plans["old-1"].waves[1].targets == {0}
    it.edit(suspend=True)
    run.apply("next", [0], approval="NotRequired")
    run.until("Empty", "next")
    assert "would fill broker 0" in (it.record.last_failure or "")
    it.edit(suspend=False)
    run.until("Empty")
    assert (run.on(0), run.begun[:1], "old-1-w2" in run.begun) == ([], ["old-1-w1"], False)


def test_a_broker_with_nothing_is_empty_once_its_cordon_is_in_force() -> None:
    run = Decommissions(orders((1, 2)))
    it = run.apply(approval="NotRequired")
    while it.reason != "Empty":
        run.tick()
    assert run.now.monotonic - run.cordoned[5] >= 10


def test_nothing_is_unregistered_while_the_voters_are_not_known() -> None:
    run, it = under_way(unregister="WhenDown")
    run.until("Empty")
    run.voters, run.brokers[5] = None, FENCED
    run.tick(20)
    assert (it.reason, it.true >= {"Ready", "Empty"}, run.unregistered) == ("NotObserved", True, [])
    assert "the voters of the controller quorum are not known" in it.message


# --- What brokers do meanwhile ---


def test_the_destination_of_a_move_dies_and_the_rest_is_planned_anew() -> None:
    run, it = under_way()
    run.brokers[0] = FENCED
    run.until("Empty", most=200)
    assert it.record.failures == 0
    assert (len(run.created), run.on(0), run.on(5)) == (2, [], [])


def test_a_broker_that_is_down_meanwhile_keeps_its_replicas() -> None:
    run = Decommissions(ROWS)
    run.brokers[1] = FENCED
    run.apply(approval="NotRequired")
    run.until("DrainIncomplete")
    assert run.created == []
    run.brokers[1] = UP
    run.until("Empty")
    assert run.on(1) == [TopicPartition("orders", 0), TopicPartition("orders", 3)]


def test_a_broker_that_starts_with_an_empty_disk_is_emptied_by_metadata() -> None:
    run, it = under_way()
    run.brokers[5] = FENCED
    run.tick(2)
    run.brokers[5] = UP
    run.blank.add(5)
    while run.on(5):
        run.tick()
        assert it.reason != "Empty"
    run.until("Empty")


def test_a_cordon_that_others_remove_holds_nothing_up() -> None:
    run, it = under_way()
    run.supports_cordons = False
    run.cordons.clear()
    run.until("Empty")
    assert it.true == {"Ready", "Empty"}


def edited(**fields: Any) -> Callable[[Decommissions, SimDecommission], object]:
    return lambda run, it: it.edit(**fields)


WAITS: dict[str, Callable[[Decommissions, SimDecommission], object]] = {
    "AwaitingApproval": lambda run, it: None,
    "ApprovedDigestMismatch": edited(approvedDigest=f"sha256:{'f' * 64}"),
    "Suspended": edited(approval="NotRequired", suspend=True),
    "InvalidSchedule": edited(approval="NotRequired", windows=[{"cron": "0 0 30 2 *", "durationSeconds": 300}]),
    "Planning": lambda run, it: [it.edit(approval="NotRequired"), setattr(run.plans["old-1"], "stale", True)],
}


@pytest.mark.parametrize("reason", WAITS)
def test_one_that_waits_for_its_user_blocks_no_other(reason: str) -> None:
    run = Decommissions(ROWS)
    it = run.apply()
    run.until("AwaitingApproval")
    WAITS[reason](run, it)
    run.tick(2)
    assert (it.reason, it.record.approval) == (reason, None)
    run.apply("next", [4], approval="NotRequired")
    run.replicas |= many((4, 1), (4, 2))
    for _ in range(25):
        run.tick()
        assert run.objects["next"].reason != "PlanInProgress"
    assert run.objects["next"].reason == "Empty"


@pytest.mark.parametrize(("wish", "down"), [("Never", True), ("WhenDown", False)])
def test_what_keeps_one_registered_is_said_only_where_it_matters(wish: str, down: bool) -> None:
    run, it = under_way(unregister=wish)
    run.until("Empty")
    run.voters, run.lists_fenced = frozenset({5}), down
    run.brokers[5] = FENCED if down else UP
    run.tick(3)
    assert it.reason == "Empty"


def test_that_a_broker_is_being_unregistered_is_said_until_it_is_known() -> None:
    run, it = under_way(unregister="WhenDown")
    run.until("Empty")
    run.loses_unregister, run.brokers[5] = True, FENCED
    while not run.unregistered:
        run.tick()
    for _ in range(4):
        assert "is being unregistered" in it.message
        run.tick()


@pytest.mark.parametrize("crash", [None, 1, 2])
@pytest.mark.parametrize("ticks", range(12))
def test_one_that_is_deleted_in_any_step_leaves_nothing(ticks: int, crash: int | None) -> None:
    run = Decommissions(ROWS)
    run.apply(approval="NotRequired", unregister="WhenDown")
    run.tick(ticks)
    run.crash_after = crash
    run.tick()
    run.delete()
    run.tick(8)
    assert (run.objects, run.plans, run.moves, run.cordons) == ({}, {}, {}, {})


def test_what_the_brake_does_to_a_plan_is_no_failure() -> None:
    run, it = under_way()
    run.execution, run.plans["old-1"].stale = Execution.CANCEL_ALL, True
    run.tick()
    assert (it.reason, it.record.failures) == ("Suspended", 0)
