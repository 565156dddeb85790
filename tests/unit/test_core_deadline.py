"""deadlineSeconds: from when it counts, what it ends, and which edits give what it ended another time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded_problem, spread, write_record
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.model.states import State
from reassign.core.report.statuses import blind
from reassign.errors import Reason
from tests.unit.sim import START, Driver, SimKafka, detail, drive, partitions, resource, states, true_conditions

P0, P1, P2 = partitions(3)
FAILED, LATE = State.FAILED, recorded_problem(Reason.DEADLINE_EXCEEDED)
NOWHERE = TopicPartition("nowhere", 0)


def started(driver: Driver) -> float | None:
    """status.startTime, by the driver's clock."""
    at = driver.resources["a"].status.start_time
    return (at - START).total_seconds() if at else None


def test_at_the_deadline_pending_partitions_fail_and_in_flight_complete() -> None:
    kafka = SimKafka(dict.fromkeys((P0, P1, P2), (0, 1, 2)))
    kafka.brokers[5] = Broker(5, fenced=True)
    asked = {P0: (3, 1, 2), P1: (3, 1, 2), P2: (5, 1, 2), NOWHERE: (1, 2)}
    driver = drive(kafka, resource(asked, deadlineSeconds=30, concurrency={"partitions": 1}))
    driver.ticks(20)
    assert states(driver) == {P0: "InFlight", P1: "Pending", P2: "Blocked", NOWHERE: "Blocked"}
    driver.ticks(12)
    assert states(driver) == {P0: "InFlight", P1: "Failed", P2: "Failed", NOWHERE: "Failed"}
    assert true_conditions(driver)["Reconciling"] == "PartitionsInFlight"
    driver.finish()
    assert kafka.replicas == {P0: (3, 1, 2), P1: (0, 1, 2), P2: (0, 1, 2)}
    assert true_conditions(driver) == {"Failed": "DeadlineExceeded", "Stalled": "DeadlineExceeded"}
    assert driver.resources["a"].record[P1].original == (0, 1, 2)


def test_what_failed_at_the_deadline_says_what_it_waited_for() -> None:
    driver = failed_at_the_deadline()
    driver.ticks(10)
    cause = f"{LATE.message}; until then: broker 5 is fenced"
    assert (detail(driver, P1).message or "").startswith(cause)
    assert (detail(driver, P1).message or "").count("until then") == 1
    [ready] = [c for c in driver.resources["a"].status.conditions if c.type == "Ready"]
    assert ready.reason == "DeadlineExceeded"
    assert cause in ready.message


def test_what_is_at_its_target_by_then_has_not_failed() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.move_as_another(P1, (3, 1, 2))
    driver = drive(kafka, resource({P0: (3, 1, 2), P1: (3, 1, 2)}, deadlineSeconds=10, concurrency={"partitions": 1}))
    driver.ticks(5)
    kafka.copy(P1)
    driver.ticks(10)
    assert states(driver) == {P0: "InFlight", P1: "Completed"}


def test_the_deadline_counts_from_the_first_tick_and_not_while_suspended() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, suspend=True, deadlineSeconds=10))
    driver.ticks(20)
    assert started(driver) is None
    driver.edit("a", {P0: (3, 1, 2)}, deadlineSeconds=10)
    driver.tick()
    assert started(driver) == driver.now
    assert states(driver) == {P0: "InFlight"}


def test_suspending_stops_the_clock_and_it_starts_anew_afterwards() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    asked = {P0: (3, 1, 2), P1: (3, 1, 2)}
    driver = drive(kafka, resource(asked, deadlineSeconds=10, concurrency={"partitions": 1}))
    driver.ticks(5)
    driver.edit("a", asked, deadlineSeconds=10, suspend=True)
    driver.ticks(20)
    assert states(driver) == {P0: "InFlight", P1: "Pending"}
    driver.edit("a", asked, deadlineSeconds=10)
    driver.finish()
    assert kafka.replicas == {P0: (3, 1, 2), P1: (3, 1, 2)}


def test_what_is_not_supported_does_not_start_the_clock() -> None:
    refused = Problem(Reason.RESOURCE_TOO_LARGE, "too large")
    driver = drive(SimKafka({P0: (0, 1, 2)}), replace(resource({P0: (3, 1, 2)}), unsupported=refused))
    driver.ticks(3)
    assert started(driver) is None


def test_no_part_of_a_record_of_2000_partitions_is_large() -> None:
    asked = {TopicPartition("t" * 70, number): (1001, 1002, 1003) for number in range(2000)}
    driver = drive(SimKafka({}), resource(asked, deadlineSeconds=1))
    driver.ticks(3)
    status = driver.resources["a"].status
    assert (status.progress and status.progress.partitions_failed) == 2000
    found = dict.fromkeys(asked, Entry("id-of-a-topic-22-chars", (2001, 2002, 2003), (1001, 1002, 1003), FAILED, LATE))
    parts = [[topic.wire() for topic in write_record(part)] for part in spread(found, {}).values()]
    assert len(parts) == 20
    assert max(len(json.dumps(part, separators=(",", ":"))) for part in parts) <= 20_000


def failed_at_the_deadline() -> Driver:
    """P0 is completed, P1 failed: a broker of its target was down for too long. It is up now."""
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    kafka.brokers[5] = Broker(5, fenced=True)
    driver = drive(kafka, resource({P0: (3, 1, 2), P1: (5, 1, 2)}, deadlineSeconds=60))
    driver.ticks(5)
    kafka.copy(P0)
    driver.ticks(60)
    assert states(driver) == {P0: "Completed", P1: "Failed"}
    kafka.brokers[5] = Broker(5)
    return driver


def test_a_deadline_raised_past_now_gives_what_it_failed_another_time() -> None:
    driver = failed_at_the_deadline()
    before = started(driver)
    driver.edit("a", {P0: (3, 1, 2), P1: (5, 1, 2)}, deadlineSeconds=600)
    driver.ticks(3)
    assert started(driver) == before
    driver.finish()
    assert driver.kafka.replicas[P1] == (5, 1, 2)
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_deadline_changed_to_another_past_one_changes_nothing() -> None:
    driver = failed_at_the_deadline()
    driver.edit("a", {P0: (3, 1, 2), P1: (5, 1, 2)}, deadlineSeconds=61)
    driver.finish()
    assert states(driver) == {P0: "Completed", P1: "Failed"}


def test_an_entry_added_or_changed_after_the_end_starts_the_clock_anew() -> None:
    driver = failed_at_the_deadline()
    driver.ticks(100)
    driver.edit("a", {P0: (4, 1, 2), P1: (5, 1, 2)}, deadlineSeconds=60)
    driver.tick()
    assert started(driver) == driver.now
    driver.finish()
    assert driver.kafka.replicas == {P0: (4, 1, 2), P1: (5, 1, 2)}
    status = driver.resources["a"].status
    assert status.completion_time
    assert status.start_time
    assert status.completion_time > status.start_time


def test_an_edit_restarts_the_clock_even_with_an_unreachable_cluster() -> None:
    driver = failed_at_the_deadline()
    driver.edit("a", {P0: (4, 1, 2), P1: (5, 1, 2)}, deadlineSeconds=60)
    edited = driver.resources["a"]
    status = blind(edited, Problem(Reason.CLUSTER_UNREACHABLE, "it does not answer"), driver.time)
    driver.resources["a"] = replace(edited, status=status)
    driver.now += timedelta(hours=1).total_seconds()
    driver.ticks(5)
    assert states(driver) == {P0: "InFlight", P1: "InFlight"}


def test_an_entry_changed_in_flight_after_the_deadline_is_cancelled() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, deadlineSeconds=10))
    driver.ticks(15)
    assert states(driver) == {P0: "InFlight"}
    driver.edit("a", {P0: (4, 1, 2)}, deadlineSeconds=10)
    driver.ticks(8)
    assert driver.kafka.replicas[P0] == (0, 1, 2)
    assert (detail(driver, P0).state, detail(driver, P0).reason) == ("Failed", "DeadlineExceeded")
