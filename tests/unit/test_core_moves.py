"""A move from its first alter to its end: submitted once, followed, completed, its leader elected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, TopicPartition
from reassign.core.model.steps import Alter, Cancel, Elect, Outcome, Result, Step
from reassign.errors import Reason
from tests.unit.sim import (
    Driver,
    SimKafka,
    detail,
    drive,
    partitions,
    resource,
    states,
    true_conditions,
    without_record,
)

P0, P1, P2 = partitions(3)


def test_an_unanswered_request_is_retried_with_backoff_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka, sent = SimKafka({P0: (0, 1)}), list[Step]()

    def no_answer(step: Step) -> Outcome:
        sent.append(step)
        return Outcome(Result.UNKNOWN, Reason.REQUEST_FAILED, "the controller met an error of its own")

    monkeypatch.setattr(kafka, "perform", no_answer)
    driver = drive(kafka, resource({P0: (2, 1)}))
    driver.ticks(1)
    for _ in range(200):
        driver.tick()
        assert detail(driver, P0).reason == "RequestFailed"
    assert 3 <= len(sent) <= 6


def test_a_partition_is_recorded_before_it_is_altered() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.tick(die_after=0)
    assert driver.kafka.writes == []
    assert driver.resources["a"].record[P0].original == (0, 1, 2)


def test_a_move_is_submitted_once_and_completed_with_its_leader() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(10)
    assert states(driver) == {P0: "InFlight"}
    assert "Reconciling" in true_conditions(driver)
    driver.kafka.copy(P0)
    driver.kafka.leader[P0] = 1
    driver.finish()
    assert driver.kafka.writes == [Alter(P0, (3, 1, 2)), Elect(P0)]
    assert driver.kafka.leader[P0] == 3
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_leader_that_is_to_be_kept_is_not_elected() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, preferredLeader="Keep"))
    driver.ticks(2)
    driver.kafka.copy(P0)
    driver.kafka.leader[P0] = 1
    driver.finish()
    assert driver.kafka.writes == [Alter(P0, (3, 1, 2))]


def test_a_partition_is_not_completed_before_all_of_its_target_is_in_sync() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(2)
    driver.kafka.copy(P0)
    driver.kafka.isr[P0] = frozenset({3, 1})
    driver.ticks(5)
    assert states(driver) == {P0: "InFlight"}
    driver.kafka.isr[P0] = frozenset({3, 1, 2})
    driver.tick()
    assert states(driver) == {P0: "Completed"}


def test_a_partition_already_at_its_target_is_settled_before_any_check() -> None:
    kafka = SimKafka({P0: (0, 1, 2)}, brokers={0: Broker(0), 1: Broker(1, fenced=True), 2: Broker(2)})
    driver = drive(kafka, resource({P0: (0, 1, 2)}))
    driver.tick()
    assert states(driver) == {P0: "Completed"}
    assert kafka.writes == []


def test_a_move_cancelled_by_another_client_is_not_submitted_again() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(5)
    driver.kafka._cancel(P0)
    driver.finish()
    assert driver.kafka.writes == [Alter(P0, (3, 1, 2))]
    assert states(driver) == {P0: "Cancelled"}
    assert true_conditions(driver) == {"Failed": "CancelledExternally", "Stalled": "CancelledExternally"}


def test_a_move_changed_by_another_client_is_reported_and_left_alone() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(5)
    driver.kafka._cancel(P0)
    driver.kafka._alter(Alter(P0, (4, 1, 2)))
    driver.ticks(2)
    driver.delete("a")
    driver.ticks(10)
    assert driver.gone == {"a"}
    assert P0 in driver.kafka.reassignments


def test_after_completion_a_resource_only_reports_drift() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(2)
    driver.finish()
    driver.kafka._alter(Alter(P0, (5, 1, 2)))
    driver.kafka.copy(P0)
    driver.finish()
    assert driver.kafka.writes == [Alter(P0, (3, 1, 2))]
    assert true_conditions(driver)["Drifted"] == "MovedAfterwards"


def test_drift_is_reported_where_another_partition_has_failed_too() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}), resource({P0: (3, 1, 2), P1: (3, 1, 2)}))
    driver.ticks(2)
    driver.kafka.perform_as_another(P1)
    driver.finish()
    driver.kafka.move_as_another(P0, (5, 1, 2))
    driver.finish()
    assert true_conditions(driver) == {
        "Failed": "CancelledExternally",
        "Stalled": "CancelledExternally",
        "Drifted": "MovedAfterwards",
    }


def test_what_cannot_be_done_does_not_hide_what_is_in_flight() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(2)
    driver.edit("a", {P0: (3, 1, 2), P1: (3, 1, 2)})
    driver.resources["a"] = replace(driver.resources["a"], unsupported=Problem(Reason.RESOURCE_TOO_LARGE, "too large"))
    driver.ticks(2)
    assert true_conditions(driver) == {"Reconciling": "PartitionsInFlight", "Stalled": "ResourceTooLarge"}
    driver.finish()
    assert true_conditions(driver) == {"Stalled": "ResourceTooLarge"}


def test_a_refused_alter_blocks_its_partition_and_is_retried_later() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}), resource({P0: (3, 1, 2), P1: (3, 1, 2)}))
    driver.kafka.denied = {P0}
    driver.ticks(10)
    assert states(driver) == {P0: "Blocked", P1: "InFlight"}
    assert [s.tp for s in driver.kafka.writes].count(P0) == 1
    driver.ticks(20)
    assert [s.tp for s in driver.kafka.writes].count(P0) == 2


def test_a_lost_record_is_rebuilt_from_what_is_in_flight() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(3)
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.tick()
    detail = driver.resources["a"].status.partitions[0]
    assert (detail.state, detail.reason) == ("InFlight", "OrderUnknown")
    assert set(detail.original_replicas or ()) == {0, 1, 2}
    driver.delete("a")
    driver.ticks(10)
    assert set(driver.kafka.replicas[P0]) == {0, 1, 2}
    assert driver.gone == {"a"}


@pytest.mark.parametrize("mode", ["Wait", "Supersede"])
def test_a_new_process_adopts_only_what_may_be_taken_over(mode: str) -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, whenInFlight=mode))
    driver.ticks(3)
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.restart()
    driver.ticks(5)
    ours = mode == "Supersede"
    assert detail(driver, P0).reason == ("OrderUnknown" if ours else "InFlightElsewhere")
    driver.delete("a")
    driver.ticks(10)
    assert driver.gone == {"a"}
    assert (P0 in driver.kafka.reassignments) is not ours


def test_nothing_moves_again_whose_record_was_lost_after_its_end() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}), resource({P0: (3, 1, 2), P1: (3, 1, 2)}))
    driver.finish()
    driver.kafka.replicas[P1] = (0, 1, 2)  # another client moved it back
    writes = len(driver.kafka.writes)
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.finish()
    assert len(driver.kafka.writes) == writes
    assert states(driver) == {P0: "Completed", P1: "Cancelled"}
    assert detail(driver, P1).reason == "CancelledExternally"


@pytest.mark.parametrize("stale", [1, 2])
def test_stale_metadata_of_a_completed_move_is_not_a_cancel(stale: int) -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}))
    driver.ticks(3)
    driver.kafka.copy(P0)
    driver.lag = stale
    driver.ticks(stale)
    driver.lag = 0
    driver.tick()
    assert states(driver) == {P0: "Completed"}


def test_two_resources_of_one_partition_run_in_turn_older_first() -> None:
    older, younger = resource({P0: (3, 1, 2)}, "a"), resource({P0: (4, 1, 2)}, "b")
    driver = drive(SimKafka({P0: (0, 1, 2)}), younger, older)
    driver.ticks(4)
    assert states(driver, "a") == {P0: "InFlight"}
    assert driver.resources["b"].status.partitions[0].reason == "PartitionClaimed"
    driver.kafka.copy(P0)
    driver.finish()
    assert driver.kafka.replicas[P0] == (4, 1, 2)
    assert not any(isinstance(step, Cancel) for step in driver.kafka.writes)


def test_a_suspended_resource_does_not_hold_partitions_not_yet_begun() -> None:
    asleep, younger = resource({P0: (3, 1, 2)}, "a", suspend=True), resource({P0: (4, 1, 2)}, "b")
    driver = drive(SimKafka({P0: (0, 1, 2)}), asleep, younger)
    driver.ticks(4)
    assert states(driver, "b") == {P0: "InFlight"}
    driver.edit("a", {P0: (3, 1, 2)}, suspend=False)
    driver.ticks(2)
    assert detail(driver, P0, "a").reason == "PartitionClaimed"
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)


def at_its_target_with_a_dead_broker() -> Driver:
    """A resource that names the replicas that are there; one of them is down, so that it is not completed."""
    kafka = SimKafka(
        {P0: (0, 3)}, isr={P0: frozenset({0})}, brokers={0: Broker(0), 2: Broker(2), 3: Broker(3, None, True)}
    )
    driver = drive(kafka, resource({P0: (0, 3)}, "b"))
    driver.ticks(4)
    assert states(driver, "b") == {P0: "InFlight"}
    return driver


def test_a_wait_for_in_sync_replicas_does_not_hold_off_an_older_resource() -> None:
    driver = at_its_target_with_a_dead_broker()
    driver.resources["a"] = resource({P0: (0, 2)}, "a")  # for example, an entry was added to it
    driver.ticks(2)
    assert states(driver, "a") == {P0: "InFlight"}
    assert driver.kafka.writes == [Alter(P0, (0, 2))]


def test_a_wait_for_in_sync_replicas_is_not_cancelled_by_a_foreign_move() -> None:
    driver = at_its_target_with_a_dead_broker()
    driver.kafka.move_as_another(P0, (0, 2))
    driver.ticks(5)
    assert detail(driver, P0, "b").reason == "BrokerFenced"
    driver.delete("b")
    driver.tick()
    assert driver.gone == {"b"}
    assert P0 in driver.kafka.reassignments


def test_an_unknown_partition_blocks_alone_and_the_others_go_on() -> None:
    missing = TopicPartition("nowhere", 0)
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2), missing: (1, 2), P2: (1, 2)}))
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight", missing: "Blocked", P2: "Blocked"}
    driver.finish()
    assert true_conditions(driver) == {"Stalled": "UnknownTopicOrPartition"}
