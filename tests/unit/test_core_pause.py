"""pauseWhen: which partitions keep new moves from starting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reassign.api.kafka_cluster import Execution, Limits, PauseWhen
from reassign.core.checks.pause import our_own, pause_problem, shortages, waits_to_start
from reassign.core.model.cluster_rules import ClusterRules
from reassign.core.model.permission import Permission
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Partition, Reassignment, Topic, TopicPartition
from reassign.errors import Reason
from tests.unit.sim import SimKafka, drive, partitions, resource, states, true_conditions

P0, P1, P2 = partitions(3)
ONE_SHORT = {P1: frozenset({1})}
EVERYTHING = Permission({"kafka": ("*",)})
MIN_ISR, UNDER_REPLICATED = PauseWhen.UNDER_MIN_ISR, PauseWhen.UNDER_REPLICATED


def topics(replicas: Sequence[int], isr: Sequence[int], required: int, leader: int | None = 1) -> dict[str, Topic]:
    return {"orders": Topic("id", required, {0: Partition(tuple(replicas), frozenset(isr), leader)})}


@pytest.mark.parametrize(
    ("found", "when", "is_short"),
    [
        pytest.param(topics([1, 2, 3], [1], 2), MIN_ISR, True, id="below min.insync.replicas"),
        pytest.param(topics([1, 2, 3], [1, 2], 2), MIN_ISR, False, id="at min.insync.replicas"),
        pytest.param(topics([1, 2, 3], [1, 2], 2), UNDER_REPLICATED, True, id="one replica behind"),
        pytest.param(topics([1, 2, 3], [1, 2, 3], 2), UNDER_REPLICATED, False, id="all in sync"),
        pytest.param(topics([1], [1], 2), MIN_ISR, False, id="fewer replicas than min.insync.replicas"),
        pytest.param(topics([1, 2], [1], 3), MIN_ISR, True, id="fewer replicas, and not all in sync"),
        pytest.param(topics([1], [1], 1, leader=None), MIN_ISR, True, id="no leader"),
    ],
)
def test_which_partitions_are_short_of_replicas_in_sync(
    found: dict[str, Topic], when: PauseWhen, is_short: bool
) -> None:
    assert (TopicPartition("orders", 0) in shortages(when, found, {})) is is_short


def test_replicas_that_are_being_added_are_not_missed_yet() -> None:
    found = topics([4, 1, 2, 3], [1, 2, 3], 3)
    in_flight = {P0: Reassignment((4, 1, 2, 3), (4,), (1,))}
    assert shortages(UNDER_REPLICATED, found, {}) == {P0: {4}}
    assert shortages(UNDER_REPLICATED, found, in_flight) == {}


def test_what_we_move_or_still_want_to_move_is_ours() -> None:
    driver = drive(SimKafka({P0: (1, 2), P1: (1, 2), P2: (1, 2)}), resource({P0: (3, 2), P1: (3, 2)}))
    driver.ticks(3)
    driver.kafka.copy(P1)
    driver.ticks(4)
    assert states(driver) == {P0: "InFlight", P1: "Completed"}
    assert our_own(driver.resources.values(), EVERYTHING) == {P0}
    suspended = resource({P2: (3, 2)}, "b", suspend=True)
    assert our_own([suspended], EVERYTHING) == {P2}


@pytest.mark.parametrize("why", ["a dry run", "not supported", "not allowed"])
def test_a_partition_that_will_not_be_moved_is_not_ours_and_pauses(why: str) -> None:
    never = resource({P0: (3, 2)}, "b", **({"mode": "DryRun"} if why == "a dry run" else {}))
    permission = EVERYTHING
    if why == "not supported":
        never = replace(never, unsupported=Problem(Reason.RESOURCE_TOO_LARGE, "too large"))
    if why == "not allowed":
        permission = Permission({"kafka": ("payments",)})
    assert our_own([never], permission) == set()


def test_only_what_may_start_is_worth_a_survey() -> None:
    driver = drive(SimKafka({P0: (1, 2), P1: (1, 2)}), resource({P0: (3, 2)}))
    assert waits_to_start(driver.resources.values())
    driver.ticks(3)
    assert not waits_to_start(driver.resources.values())
    driver.edit("a", {P0: (3, 2), P1: (3, 2)})
    assert waits_to_start(driver.resources.values())
    assert not waits_to_start([resource({P1: (3, 2)}, "b", suspend=True)])
    assert not waits_to_start([resource({P1: (3, 2)}, "b", mode="DryRun")])
    driver.ticks(3)
    driver.execution = Execution.CANCEL_OURS
    driver.tick()
    assert waits_to_start(driver.resources.values())  # what is brought back starts at the same look as it is forgotten
    driver.execution = Execution.RUN
    driver.finish()
    driver.edit("a", {P0: (4, 2), P1: (3, 2)})
    assert waits_to_start(driver.resources.values())


def test_the_sentence_names_the_first_partitions_and_how_many_there_are() -> None:
    problem = pause_problem(MIN_ISR, dict.fromkeys(partitions(7), frozenset({1})), {P0})
    assert problem is not None
    assert problem.reason is Reason.CLUSTER_UNDER_MIN_ISR
    assert "6 have (orders-1, orders-2, orders-3, orders-4, orders-5 and 1 more)" in problem.message
    other = pause_problem(UNDER_REPLICATED, ONE_SHORT, set())
    assert other is not None
    assert other.reason is Reason.CLUSTER_UNDER_REPLICATED


def test_a_move_that_would_repair_a_partition_is_not_paused_by_it() -> None:
    short = {P0: frozenset({1})}
    assert pause_problem(MIN_ISR, short, our_own([resource({P0: (3, 2)})], EVERYTHING)) is None


@pytest.mark.parametrize(
    ("found", "when", "counts"),
    [
        pytest.param(topics([5], [5], 1, leader=None), MIN_ISR, False, id="its only replica is lost"),
        pytest.param(topics([5, 6], [5], 1, leader=None), MIN_ISR, False, id="all replicas are lost"),
        pytest.param(topics([5, 2], [2], 2), MIN_ISR, False, id="the other replica is in sync"),
        pytest.param(topics([5, 2, 3], [2, 3], 2), UNDER_REPLICATED, False, id="the others are in sync"),
        pytest.param(topics([5, 2, 3], [2], 2), MIN_ISR, True, id="another one is behind"),
        pytest.param(topics([5, 2], [5], 1, leader=None), MIN_ISR, True, id="another one was behind before"),
        pytest.param(topics([1, 2], [1, 2], 1, leader=None), MIN_ISR, True, id="no leader, and none is lost"),
    ],
)
def test_what_lacks_only_replicas_on_lost_brokers_does_not_count(
    found: dict[str, Topic], when: PauseWhen, counts: bool
) -> None:
    short = shortages(when, found, {})
    assert pause_problem(when, short, set()) is not None
    assert (pause_problem(when, short, set(), frozenset({5, 6})) is not None) is counts


def test_a_pause_leaves_out_the_waves_of_the_plan_that_is_excused() -> None:
    pause = pause_problem(MIN_ISR, ONE_SHORT, set())
    driver = drive(SimKafka({P0: (1, 2), P1: (1, 2)}), resource({P0: (3, 2)}, "wave"), resource({P1: (3, 2)}, "b"))
    driver.resources["wave"] = replace(driver.resources["wave"], plan_uid="uid-evacuates")
    driver.hold, driver.holds = pause, {"uid-evacuates": None}
    driver.ticks(4)
    assert {write.tp for write in driver.kafka.writes} == {P0}


def test_the_label_of_a_plan_counts_in_the_namespace_of_the_cluster_alone() -> None:
    pause = pause_problem(MIN_ISR, ONE_SHORT, set())
    wave = replace(resource({P0: (3, 2)}), plan_uid="uid-evacuates")
    rules = ClusterRules(Limits(), pause, permission=Permission({}, "kafka"), holds={"uid-evacuates": None})
    assert rules.hold_of(wave) is None
    assert rules.hold_of(replace(wave, namespace="team-a")) == pause
    assert rules.hold_of(replace(wave, plan_uid="uid-other")) == pause
    assert rules.hold_of(replace(wave, plan_uid=None)) == pause
    bug = Problem(Reason.INTERNAL_ERROR, "a bug")
    assert rules.held_by(bug).hold_of(wave) == bug


def test_new_moves_wait_and_report_why_while_paused() -> None:
    driver = drive(SimKafka({P0: (1, 2)}), resource({P0: (3, 2)}))
    driver.hold = pause_problem(MIN_ISR, ONE_SHORT, {P0})
    driver.ticks(6)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Reconciling": "ClusterUnderMinIsr"}
    driver.hold = None
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 2)
