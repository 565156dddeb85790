"""A partition that another client is moving: waited for, failed, or superseded; and starts on an idle cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.api.partition_reassignment import PartitionReassignmentStatus
from reassign.core.model.forwarding import OVERTAKEN_SECONDS, SETTLE_SECONDS
from reassign.core.model.record import Entry, recorded_problem
from reassign.core.model.snapshot import Broker, Reassignment
from reassign.core.model.steps import Alter, Cancel
from reassign.core.report.events import cancellations
from reassign.errors import Reason
from tests.unit.sim import SimKafka, detail, drive, partitions, resource, states, true_conditions, without_record

P0, P1, P2 = partitions(3)


def moved_by_another(*, min_insync: int = 1) -> SimKafka:
    """Return a cluster where another client moves P0 from [0,1,2] to [4,1,2]."""
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)}, min_insync=min_insync)
    kafka.move_as_another(P0, (4, 1, 2))
    return kafka


@pytest.mark.parametrize("mode", ["Wait", "Fail"])
def test_a_foreign_move_is_never_altered_without_supersede(mode: str) -> None:
    kafka = moved_by_another()
    theirs = kafka.reassignments[P0]
    driver = drive(kafka, resource({P0: (3, 1, 2)}, whenInFlight=mode))
    driver.ticks(20)
    assert kafka.writes == []
    assert kafka.reassignments == {P0: theirs}


def test_a_waiting_entry_moves_when_the_foreign_move_has_ended() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}))
    driver.ticks(3)
    assert true_conditions(driver) == {"Reconciling": "InFlightElsewhere"}
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)


def test_failing_gives_the_entry_up_for_good_and_the_others_go_on() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2), P1: (3, 1, 2)}, whenInFlight="Fail"))
    driver.ticks(3)
    assert states(driver) == {P0: "Failed", P1: "InFlight"}
    assert "Reconciling" in true_conditions(driver)
    driver.finish()
    assert driver.kafka.replicas == {P0: (4, 1, 2), P1: (3, 1, 2)}
    assert true_conditions(driver) == {"Failed": "InFlightElsewhere", "Stalled": "InFlightElsewhere"}
    entry = driver.resources["a"].record[P0]
    assert (entry.original, entry.target, entry.problem) == (
        (1, 2, 0),
        (3, 1, 2),
        recorded_problem(Reason.IN_FLIGHT_ELSEWHERE),
    )


@pytest.mark.parametrize(
    ("target", "fields"),
    [((5, 1, 2), {"whenInFlight": "Fail"}), ((3, 1, 2), {"whenInFlight": "Wait"})],
    ids=["another target", "no longer Fail"],
)
def test_a_failed_entry_is_judged_anew_when_what_failed_it_is_edited(
    target: tuple[int, ...], fields: dict[str, str]
) -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Fail"))
    driver.ticks(3)
    driver.kafka.copy(P0)
    driver.edit("a", {P0: target}, **fields)
    driver.finish()
    assert driver.kafka.replicas[P0] == target
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_an_edit_that_leaves_a_failed_entry_as_it_is_does_not_reopen_it() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Fail"))
    driver.ticks(3)
    driver.kafka.copy(P0)
    driver.edit("a", {P0: (3, 1, 2), P1: (3, 1, 2)}, whenInFlight="Fail")
    driver.finish()
    assert states(driver) == {P0: "Failed", P1: "Completed"}


def test_a_failed_entry_that_a_foreign_move_completes_succeeds() -> None:
    driver = drive(moved_by_another(), resource({P0: (4, 1, 2)}, whenInFlight="Fail"))
    driver.ticks(3)
    assert states(driver) == {P0: "Failed"}
    driver.finish()
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_an_entry_does_not_fail_while_its_resource_is_suspended() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Fail", suspend=True))
    driver.ticks(3)
    assert states(driver) == {P0: "Blocked"}
    driver.kafka.copy(P0)
    driver.edit("a", {P0: (3, 1, 2)}, whenInFlight="Fail")
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)


def test_a_foreign_move_after_our_completion_fails_nothing() -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, whenInFlight="Fail"))
    driver.ticks(2)
    driver.finish()
    driver.kafka.move_as_another(P0, (5, 1, 2))
    driver.ticks(5)
    assert states(driver) == {P0: "Completed"}


def test_superseding_records_originals_cancels_and_then_submits_ours() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    driver.ticks(8)
    assert driver.kafka.writes == [Cancel(P0, (1, 2, 4)), Alter(P0, (3, 1, 2))]
    assert set(driver.resources["a"].record[P0].original) == {0, 1, 2}
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_repeated_foreign_move_is_superseded_with_backoff() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    for _ in range(200):
        driver.tick()
        if P0 not in driver.kafka.reassignments:
            driver.kafka.move_as_another(P0, (4, 1, 2))
    cancels = [step for step in driver.kafka.writes if isinstance(step, Cancel)]
    assert 2 <= len(cancels) <= 5
    said = detail(driver, P0)
    assert (said.state, said.reason) == ("Blocked", "InFlightElsewhere")
    assert "begun the same move again" in (said.message or "")
    driver.kafka.copy(P0)
    driver.ticks(10)
    assert driver.kafka.reassignments[P0].target == {3, 1, 2}


@pytest.mark.parametrize("target", [(3, 4, 5), (5, 4, 3), (4, 3, 5)])
def test_superseding_starts_whatever_the_order_of_ours_beside_theirs(target: tuple[int, ...]) -> None:
    kafka = SimKafka({P0: (0, 1, 2)})
    kafka.move_as_another(P0, (5, 3, 4))
    driver = drive(kafka, resource({P0: target}, whenInFlight="Supersede"))
    driver.ticks(8)
    assert driver.kafka.reassignments[P0].final == target


def test_status_names_the_superseded_move_and_its_discarded_bytes() -> None:
    kafka = moved_by_another()
    kafka.sizes = {P0: {0: 1000, 1: 1000, 2: 1000, 4: 300}}
    driver = drive(kafka, resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    before = driver.resources["a"].status
    driver.tick()
    after = driver.resources["a"].status
    [tell] = cancellations(before, after)
    kafka.sizes = {}
    driver.tick()
    shown = detail(driver, P0)
    assert (shown.state, shown.reason) == ("Cancelling", "Superseding")
    assert "adding 4, removing 0" in (shown.message or "")
    assert "discards 300 B" in (shown.message or "")
    assert shown.message in tell.note
    assert cancellations(after, driver.resources["a"].status) == []
    assert "Stalled" not in true_conditions(driver)


@pytest.mark.parametrize(
    ("target", "fields", "reason"),
    [
        ((3, 1, 99), {}, "UnknownBroker"),
        ((5, 1, 2), {}, "BrokerFenced"),
        ((3, 1), {}, "ReplicationFactorChange"),
        ((3,), {"replicationFactorChange": "Allow"}, "BelowMinInSyncReplicas"),
    ],
)
def test_nothing_is_cancelled_for_a_move_that_is_blocked(
    target: tuple[int, ...], fields: dict[str, str], reason: str
) -> None:
    kafka = moved_by_another(min_insync=2)
    kafka.brokers[5] = Broker(5, fenced=True)
    driver = drive(kafka, resource({P0: target}, whenInFlight="Supersede", **fields))
    driver.ticks(10)
    assert kafka.writes == []
    kind = "Reconciling" if reason == "BrokerFenced" else "Stalled"
    assert true_conditions(driver) == {kind: reason}


def test_nothing_is_cancelled_while_going_back_is_unsafe() -> None:
    kafka = SimKafka({P0: (0, 1, 2)}, min_insync=2)
    kafka.move_as_another(P0, (3, 4, 2))
    kafka.isr[P0] = frozenset({2, 3, 4})
    kafka.brokers |= {0: Broker(0, fenced=True), 1: Broker(1, fenced=True)}
    driver = drive(kafka, resource({P0: (5, 4, 2)}, whenInFlight="Supersede"))
    driver.ticks(5)
    assert kafka.writes == []
    assert true_conditions(driver) == {"Reconciling": "CancelUnsafe"}
    kafka.isr[P0] = frozenset({0, 2, 3, 4})
    kafka.brokers[0] = Broker(0)
    driver.finish()
    assert kafka.replicas[P0] == (5, 4, 2)


def test_a_factor_change_of_a_foreign_move_counts_on_both_sides() -> None:
    kafka = SimKafka({P0: (0, 1, 2)})
    kafka.move_as_another(P0, (0, 1))
    driver = drive(kafka, resource({P0: (3, 1)}, whenInFlight="Supersede"), resource({P0: (3, 1, 4)}, "b"))
    driver.ticks(5)
    assert detail(driver, P0, "a").reason == "ReplicationFactorChange"
    assert "from 3 to 2" in (detail(driver, P0, "a").message or "")
    assert kafka.writes == []
    driver.delete("a")
    driver.ticks(3)
    assert "from 2 to 3" in (detail(driver, P0, "b").message or "")


def test_a_refused_cancel_of_a_foreign_move_blocks_the_partition() -> None:
    kafka = moved_by_another()
    kafka.unsafe = {P0}
    driver = drive(kafka, resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    driver.ticks(10)
    assert kafka.writes == [Cancel(P0, (1, 2, 4))]
    assert true_conditions(driver) == {"Reconciling": "CancelUnsafe"}
    assert "Start brokers 0, 1 and 2" in (detail(driver, P0).message or "")
    kafka.unsafe = set()
    driver.ticks(30)
    assert P0 in kafka.reassignments
    assert driver.kafka.reassignments[P0].target == {3, 1, 2}


def test_a_move_to_the_same_end_is_taken_over_as_it_is() -> None:
    driver = drive(moved_by_another(), resource({P0: (4, 1, 2)}, whenInFlight="Supersede"))
    driver.ticks(5)
    assert driver.kafka.writes == []
    assert (detail(driver, P0).state, detail(driver, P0).reason) == ("InFlight", "OrderUnknown")
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_hanging_foreign_move_is_reported_and_can_be_superseded() -> None:
    kafka = SimKafka({P0: (1, 2, 3, 4)})
    kafka.reassignments[P0] = Reassignment((1, 2, 3, 4), (4,), (4,))
    driver = drive(kafka, resource({P0: (1, 2, 3)}))
    driver.ticks(3)
    assert "that move hangs" in (detail(driver, P0).message or "")
    driver.edit("a", {P0: (1, 2, 3)}, whenInFlight="Supersede")
    driver.ticks(10)
    assert kafka.reassignments == {}
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("gone", ["deleted", "removed", "changed"])
def test_an_entry_removed_once_the_foreign_move_is_cancelled_ends_well(gone: str) -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2), P1: (0, 1, 2)}, whenInFlight="Supersede"))
    driver.tick()
    assert driver.kafka.writes == [Cancel(P0, (1, 2, 4))]
    if gone == "deleted":
        driver.delete("a")
    else:
        driver.edit("a", {P1: (0, 1, 2)} if gone == "removed" else {P0: (5, 1, 2), P1: (0, 1, 2)})
    driver.finish()
    assert driver.kafka.reassignments == {}
    assert set(driver.kafka.replicas[P0]) == ({5, 1, 2} if gone == "changed" else {0, 1, 2})
    assert driver.gone == ({"a"} if gone == "deleted" else set())


def test_a_deletion_before_the_cancel_leaves_the_foreign_move_alone() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    driver.tick(die_after=0)
    assert driver.resources["a"].record[P0] == Entry(
        "id-orders",
        (1, 2, 0),
        (3, 1, 2),
        driver.resources["a"].record[P0].state,
        recorded_problem(Reason.SUPERSEDING),
        via=0,
        sent_at=driver.time,
    )
    driver.delete("a")
    driver.ticks(int(OVERTAKEN_SECONDS + 2 * SETTLE_SECONDS))
    assert driver.gone == {"a"}
    assert driver.kafka.writes == []
    assert P0 in driver.kafka.reassignments


@pytest.mark.parametrize("lost", [{"lose_answers": True}, {"die_after": 1}], ids=["lost answer", "killed"])
def test_superseding_goes_on_after(lost: dict[str, int]) -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    driver.tick(**lost)  # type: ignore[arg-type]
    driver.ticks(15)
    assert driver.kafka.writes == [Cancel(P0, (1, 2, 4)), Alter(P0, (3, 1, 2))]


def test_a_partition_of_an_older_resource_is_claimed_and_not_superseded() -> None:
    driver = drive(
        SimKafka({P0: (0, 1, 2)}),
        resource({P0: (4, 1, 2)}, "a"),
        resource({P0: (3, 1, 2)}, "b", whenInFlight="Supersede"),
        resource({P0: (5, 1, 2)}, "c", whenInFlight="Fail"),
    )
    driver.ticks(6)
    assert detail(driver, P0, "b").reason == detail(driver, P0, "c").reason == "PartitionClaimed"
    assert driver.kafka.writes == [Alter(P0, (4, 1, 2))]


def test_a_partition_moved_by_another_resource_is_not_held_twice() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (0, 1, 2)}, "a"), resource({P0: (0, 1, 2)}, "b"))
    driver.tick()
    driver.edit("a", {P0: (0, 1, 3)})
    driver.kafka.copy(P0)
    driver.kafka.leader[P0] = 2
    driver.ticks(3)
    assert detail(driver, P0, "b").reason == "PartitionClaimed"
    driver.finish()
    assert driver.kafka.replicas[P0] == (0, 1, 2)
    assert true_conditions(driver, "a")["Drifted"] == "MovedAfterwards"


def test_a_superseding_partition_holds_it_against_a_younger_resource() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, "a", whenInFlight="Supersede"))
    driver.tick()
    driver.resources["b"] = resource({P0: (5, 1, 2)}, "b", whenInFlight="Supersede")
    driver.ticks(2)
    assert detail(driver, P0, "b").reason == "PartitionClaimed"


def test_when_idle_waits_for_all_foreign_moves_and_then_starts() -> None:
    kafka = moved_by_another()
    driver = drive(kafka, resource({P1: (3, 1, 2), P2: (3, 1, 2)}, admission="WhenIdle", concurrency={"partitions": 1}))
    kafka.replicas[P2], kafka.isr[P2], kafka.leader[P2] = (0, 1, 2), frozenset({0, 1, 2}), 0
    driver.ticks(5)
    assert kafka.writes == []
    assert true_conditions(driver) == {"Reconciling": "WaitingForIdle"}
    kafka.copy(P0)
    driver.ticks(2)
    assert [step.tp for step in kafka.writes] == [P1]
    kafka.move_as_another(P0, (0, 1, 2))
    driver.edit("a", {P1: (3, 1, 2), P2: (3, 1, 2)}, admission="WhenIdle")
    driver.ticks(2)
    assert set(kafka.reassignments) == {P0, P1, P2}


def test_of_two_idle_starts_one_goes_first_even_in_the_same_moment() -> None:
    kafka = SimKafka({P0: (0, 1, 2), P1: (0, 1, 2)})
    older, younger = (resource({tp: (3, 1, 2)}, uid, admission="WhenIdle") for tp, uid in ((P0, "a"), (P1, "b")))
    driver = drive(kafka, older, younger)
    driver.ticks(5)
    assert set(kafka.reassignments) == {P0}
    assert true_conditions(driver, "b") == {"Reconciling": "WaitingForIdle"}
    driver.finish()
    assert kafka.replicas == {P0: (3, 1, 2), P1: (3, 1, 2)}


@pytest.mark.parametrize("mode", ["Fail", "Supersede"])
def test_an_idle_start_comes_before_what_is_to_happen_to_others_moves(mode: str) -> None:
    kafka = moved_by_another()
    driver = drive(kafka, resource({P0: (3, 1, 2)}, admission="WhenIdle", whenInFlight=mode))
    driver.ticks(5)
    assert kafka.writes == []
    assert "Failed" not in states(driver).values()
    driver.finish()
    assert kafka.replicas[P0] == (3, 1, 2)


def test_a_record_lost_while_superseding_does_not_change_the_end() -> None:
    driver = drive(moved_by_another(), resource({P0: (3, 1, 2)}, whenInFlight="Supersede"))
    driver.tick()
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.finish()
    assert driver.kafka.replicas[P0] == (3, 1, 2)
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("mode", ["Wait", "Fail", "Supersede"])
def test_a_record_lost_in_flight_does_not_make_our_move_foreign(mode: str) -> None:
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, whenInFlight=mode))
    driver.ticks(3)
    driver.resources["a"] = without_record(driver.resources["a"])
    driver.finish()
    assert driver.kafka.writes == [Alter(P0, (3, 1, 2))]
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("mode", ["Wait", "Supersede"])
def test_a_forged_loss_takes_no_move_of_another_resource(mode: str, restarted: bool) -> None:
    thief = resource({P0: (3, 1, 2)}, "b", whenInFlight=mode)
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource({P0: (3, 1, 2)}, "a"), thief)
    driver.ticks(3)
    if restarted:
        driver.restart()
    for _ in range(3):
        driver.resources["b"] = without_record(driver.resources["b"])
        driver.tick()
        assert driver.resources["b"].record == {}
    assert detail(driver, P0, "b").reason == "PartitionClaimed"
    driver.delete("b")
    driver.ticks(5)
    assert driver.gone == {"b"}
    assert states(driver, "a") == {P0: "InFlight"}


def test_a_lost_record_takes_over_nothing_that_a_check_holds_back() -> None:
    driver = drive(moved_by_another(), without_record(resource({P0: (4, 1, 2)}, whenInFlight="Supersede")))
    driver.kafka.brokers[4] = Broker(4, fenced=True)
    driver.ticks(5)
    assert driver.resources["a"].record == {}
    assert detail(driver, P0).reason == "BrokerFenced"
    driver.kafka.brokers[4] = Broker(4)
    driver.ticks(2)
    assert states(driver) == {P0: "InFlight"}


@pytest.mark.parametrize("mode", ["Wait", "Fail"])
def test_a_copied_finalizer_does_not_make_a_foreign_move_ours(mode: str) -> None:
    copy = resource({P0: (4, 1, 2)}, whenInFlight=mode)
    copy = replace(copy, status=PartitionReassignmentStatus())
    driver = drive(moved_by_another(), copy)
    driver.ticks(5)
    kinds = ("Reconciling",) if mode == "Wait" else ("Failed", "Stalled")
    assert true_conditions(driver) == dict.fromkeys(kinds, "InFlightElsewhere")
    driver.delete("a")
    driver.ticks(5)
    assert driver.gone == {"a"}
    assert driver.kafka.writes == []


def test_a_lost_record_takes_no_move_on_a_topic_made_again() -> None:
    wanted = {P0: (3, 1, 2)}
    driver = drive(SimKafka({P0: (0, 1, 2)}), resource(wanted, "a", suspend=True), resource(wanted, "b"))
    driver.tick()
    driver.kafka.topic_ids["orders"] = "made again"
    driver.kafka.reassignments.clear()
    driver.kafka.add(P0, (0, 1, 2))
    driver.edit("a", wanted)
    while not driver.kafka.reassignments:
        driver.tick()
    driver.tick()
    assert driver.resources["a"].record[P0].active
    assert driver.resources["b"].record[P0].active, "of the topic before"
    driver.resources["b"] = without_record(driver.resources["b"])
    driver.tick()
    assert driver.resources["b"].record == {}
