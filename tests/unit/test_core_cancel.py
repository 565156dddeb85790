"""Bringing a move back: by deletion, by removing an entry, by changing one; and when that is held back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, Reassignment
from reassign.core.model.steps import Alter, Cancel
from reassign.errors import Reason
from tests.unit.sim import SimKafka, detail, drive, partitions, ready_reason, resource, states, true_conditions

P0, P1, P2 = partitions(3)


def test_deletion_cancels_what_is_in_flight_and_restores_the_order() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.delete("a")
    driver.ticks(5)
    assert driver.kafka.writes == [Alter(P0, (4, 2, 3)), Cancel(P0, (2, 3, 4)), Alter(P0, (1, 2, 3))]
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert driver.kafka.reassignments == {}
    assert driver.gone == {"a"}


def test_deletion_leaves_what_has_completed() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3), P1: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.copy(P0)
    driver.ticks(2)
    driver.delete("a")
    driver.ticks(6)
    assert driver.kafka.replicas == {P0: (4, 2, 3), P1: (1, 2, 3)}
    assert driver.gone == {"a"}


def test_what_completes_while_its_cancel_is_on_the_way_stays() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.delete("a")
    cancel = driver.kafka._cancel

    def completes_first(tp: object) -> object:
        driver.kafka.copy(P0)
        return cancel(P0)

    driver.kafka._cancel = completes_first  # type: ignore[method-assign, assignment]
    driver.tick()
    driver.kafka._cancel = cancel  # type: ignore[method-assign]
    driver.ticks(8)
    assert driver.kafka.replicas[P0] == (4, 2, 3)
    assert driver.kafka.reassignments == {}
    assert driver.gone == {"a"}


def test_a_cancel_without_an_answer_is_observed_before_anything_else() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.delete("a")
    driver.tick(lose_answers=True)
    driver.ticks(13)
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert driver.kafka.writes.count(Cancel(P0, (2, 3, 4))) == 1
    assert driver.gone == {"a"}


def test_an_alter_whose_answer_was_lost_is_not_sent_again_when_it_landed() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lose_answers=True)
    driver.ticks(8)
    assert driver.kafka.writes == [Alter(P0, (4, 2, 3))]
    assert states(driver) == {P0: "InFlight"}


def test_an_entry_removed_in_flight_is_cancelled_alone() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3), P1: (4, 2, 3)}))
    driver.ticks(3)
    driver.edit("a", {P1: (4, 2, 3)})
    driver.ticks(3)
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert P1 in driver.kafka.reassignments
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_an_entry_added_later_is_moved_too() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.edit("a", {P0: (4, 2, 3), P1: (4, 2, 3)})
    driver.finish()
    assert driver.kafka.replicas == {P0: (4, 2, 3), P1: (4, 2, 3)}
    assert driver.kafka.writes.count(Alter(P0, (4, 2, 3))) == 1


def test_an_entry_changed_in_flight_is_cancelled_and_then_submitted() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 5, 0)}))
    driver.ticks(3)
    driver.edit("a", {P0: (4, 2, 3)})
    driver.ticks(8)
    assert driver.kafka.writes == [
        Alter(P0, (4, 5, 0)),
        Cancel(P0, (0, 4, 5)),
        Alter(P0, (1, 2, 3)),
        Alter(P0, (4, 2, 3)),
    ]
    driver.finish()
    assert driver.kafka.replicas[P0] == (4, 2, 3)


def test_an_entry_changed_after_completion_is_reopened_as_it_is_then() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3), P1: (4, 2, 3)}))
    driver.ticks(2)
    driver.finish()
    driver.edit("a", {P0: (5, 2, 3), P1: (4, 2, 3)})
    driver.ticks(6)
    detail = driver.resources["a"].status.partitions[0]
    assert (detail.state, detail.original_replicas) == ("InFlight", (4, 2, 3))
    driver.finish()
    assert driver.kafka.replicas == {P0: (5, 2, 3), P1: (4, 2, 3)}


def test_a_cancel_below_min_isr_is_held_back_until_it_is_safe() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=2), resource({P0: (4, 5, 3)}))
    driver.ticks(3)
    kafka = driver.kafka
    kafka.isr[P0] = frozenset({3, 4, 5})
    kafka.brokers |= {1: Broker(1, fenced=True), 2: Broker(2, fenced=True)}
    driver.delete("a")
    driver.ticks(5)
    assert not any(isinstance(step, Cancel) for step in kafka.writes)
    assert (true_conditions(driver).keys(), ready_reason(driver)) == ({"Reconciling"}, "CancelUnsafe")
    kafka.isr[P0] = frozenset({2, 3, 4, 5})
    kafka.brokers |= {2: Broker(2)}
    driver.ticks(5)
    assert kafka.replicas[P0] == (1, 2, 3)
    assert driver.gone == {"a"}


def test_orphan_set_during_deletion_releases_the_move_in_flight() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=3), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.isr[P0] = frozenset({2, 3})
    driver.delete("a")
    driver.ticks(3)
    assert driver.gone == set()
    deleting = driver.resources["a"]
    orphan = deleting.spec.model_copy(update={"deletion_policy": type(deleting.spec.deletion_policy).ORPHAN})
    driver.resources["a"] = replace(deleting, spec=orphan, generation=2)
    driver.tick()
    assert driver.gone == {"a"}
    assert P0 in driver.kafka.reassignments


def test_the_deletion_deadline_orphans_what_cannot_be_cancelled() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}, min_insync=3), resource({P0: (4, 2, 3)}, deletionDeadlineSeconds=10))
    driver.ticks(3)
    driver.kafka.isr[P0] = frozenset({2, 3})
    driver.delete("a")
    driver.ticks(9)
    assert driver.gone == set()
    driver.ticks(3)
    assert driver.gone == {"a"}
    assert driver.verdicts["a"].abandoned


def test_orphan_comes_before_the_deletion_deadline() -> None:
    asked = resource({P0: (4, 2, 3)}, deletionPolicy="Orphan", deletionDeadlineSeconds=10)
    driver = drive(SimKafka({P0: (1, 2, 3)}), asked)
    driver.ticks(3)
    driver.delete("a")
    driver.tick()
    assert driver.gone == {"a"}
    assert not driver.verdicts["a"].abandoned
    assert P0 in driver.kafka.reassignments


def test_a_topic_deleted_in_flight_blocks_its_partitions_not_a_deletion() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.replicas.clear()
    driver.kafka.reassignments.clear()
    driver.ticks(3)
    assert true_conditions(driver)["Stalled"] == "UnknownTopicOrPartition"
    driver.delete("a")
    driver.ticks(6)
    assert driver.gone == {"a"}


def test_a_topic_made_again_under_its_name_is_another_topic() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.reassignments.clear()
    driver.kafka.replicas[P0] = (1, 2, 3)
    driver.kafka.topic_ids["orders"] = "another"
    writes = list(driver.kafka.writes)
    driver.ticks(6)
    assert true_conditions(driver)["Stalled"] == "TopicRecreated"
    assert driver.kafka.writes == writes


def test_a_topic_made_again_is_not_held_by_the_move_of_the_one_before() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.reassignments.clear()
    driver.kafka.replicas[P0] = (1, 2, 3)
    driver.kafka.topic_ids["orders"] = "another"
    driver.resources["b"] = resource({P0: (5, 2, 3)}, "b")
    driver.ticks(6)
    assert states(driver, "b") == {P0: "InFlight"}
    assert true_conditions(driver, "a")["Stalled"] == "TopicRecreated"


def test_missing_partitions_of_a_moved_topic_are_reported_with_a_remedy() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3), P1: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.reassignments.clear()
    driver.kafka.topic_ids["orders"] = "another"
    del driver.kafka.replicas[P1]
    driver.ticks(6)
    assert detail(driver, P1).reason == "TopicRecreated"
    driver.kafka.replicas.clear()
    driver.ticks(6)
    assert detail(driver, P0).message == "the topic orders was deleted while it was moved; remove the entry"


def test_what_others_move_on_a_topic_made_again_holds_no_deletion() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.reassignments.clear()
    driver.kafka.replicas[P0] = (1, 2, 3)
    driver.kafka.topic_ids["orders"] = "another"
    driver.kafka.move_as_another(P0, (5, 2, 3))
    driver.tick()
    driver.delete("a")
    driver.tick()
    assert driver.gone == {"a"}
    assert P0 in driver.kafka.reassignments


def test_a_topic_deleted_before_its_alter_frees_its_slot() -> None:
    kafka = SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)})
    driver = drive(kafka, resource({P0: (4, 2, 3), P1: (4, 2, 3)}, concurrency={"partitions": 1}))
    driver.tick(die_after=0)
    assert driver.resources["a"].record[P0].state == "Submitting"
    del kafka.replicas[P0]
    driver.ticks(15)
    assert states(driver) == {P0: "Blocked", P1: "InFlight"}
    kafka.copy(P1)
    driver.finish()
    assert true_conditions(driver) == {"Stalled": "UnknownTopicOrPartition"}


def test_a_suspended_resource_starts_nothing_and_follows_its_moves() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.edit("a", {P0: (4, 2, 3), P1: (4, 2, 3)}, suspend=True)
    driver.ticks(3)
    assert states(driver) == {P0: "InFlight", P1: "Pending"}
    driver.kafka.copy(P0)
    driver.ticks(3)
    assert states(driver) == {P0: "Completed", P1: "Pending"}
    assert (true_conditions(driver), ready_reason(driver)) == ({}, "Suspended")


def test_what_is_pending_when_a_resource_is_deleted_is_never_started() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}, suspend=True))
    driver.ticks(2)
    driver.delete("a")
    driver.tick()
    assert driver.gone == {"a"}
    assert driver.kafka.writes == []


def test_a_cancel_is_recorded_before_it_is_sent() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.edit("a", {P0: (5, 2, 3)})
    driver.tick(die_after=1)
    driver.edit("a", {P0: (4, 2, 3)})
    driver.ticks(16)
    assert states(driver) == {P0: "InFlight"}
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_refused_restore_is_retried_before_the_resource_is_deleted() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.delete("a")
    driver.tick()
    driver.kafka.denied = {P0}
    driver.ticks(5)
    assert driver.gone == set()
    assert true_conditions(driver)["Stalled"] == "NotAuthorized"
    driver.kafka.denied = set()
    driver.ticks(30)
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert driver.gone == {"a"}


def test_a_confirmed_cancel_does_not_undo_another_resources_move() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}, "a"))
    driver.ticks(3)
    driver.delete("a")
    driver.tick()
    deleting = driver.resources["a"]
    orphan = deleting.spec.model_copy(update={"deletion_policy": type(deleting.spec.deletion_policy).ORPHAN})
    driver.resources["a"] = replace(deleting, spec=orphan, generation=2)
    driver.tick()
    assert driver.gone == {"a"}
    driver.resources["b"] = resource({P0: (5, 2, 3)}, "b")
    driver.ticks(8)
    driver.kafka.copy(P0)
    driver.delete("b")
    driver.ticks(10)
    assert driver.kafka.replicas[P0] == (5, 2, 3)
    assert driver.kafka.reassignments == {}


def test_a_delayed_cancel_of_a_removed_entry_is_in_the_conditions() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3), P1: (1, 2, 3)}, min_insync=3), resource({P0: (4, 2, 3), P1: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.isr[P0] = frozenset({2, 3})
    driver.edit("a", {P1: (4, 2, 3)})
    driver.ticks(2)
    assert (true_conditions(driver).keys(), ready_reason(driver)) == ({"Reconciling"}, "CancelUnsafe")


def test_a_hanging_foreign_override_is_cancelled_by_deletion() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.kafka.reassignments[P0] = Reassignment((1, 2, 3, 4), (4,), (4,))
    driver.kafka.replicas[P0] = (1, 2, 3, 4)
    driver.delete("a")
    driver.ticks(8)
    assert driver.kafka.reassignments == {}
    assert driver.gone == {"a"}


def test_what_cannot_be_carried_out_claims_no_partition() -> None:
    unsupported = replace(resource({P0: (5, 2, 3)}, "a"), unsupported=Problem(Reason.RESOURCE_TOO_LARGE, "too large"))
    driver = drive(SimKafka({P0: (1, 2, 3)}), unsupported, resource({P0: (4, 2, 3)}, "b"))
    driver.ticks(3)
    assert states(driver, "b") == {P0: "InFlight"}
    assert true_conditions(driver, "a") == {"Stalled": "ResourceTooLarge"}


def test_a_suspended_idle_resource_keeps_its_status_while_its_topic_grows() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}, suspend=True))
    driver.kafka.sizes = {P0: {1: 100, 2: 100, 3: 100}}
    driver.ticks(2)
    before = driver.resources["a"].status
    driver.kafka.sizes = {P0: {1: 200, 2: 200, 3: 200}}
    driver.ticks(2)
    assert driver.resources["a"].status == before


def test_an_alter_that_lands_late_is_not_overridden_by_an_edit() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lands_after=6)
    driver.edit("a", {P0: (5, 2, 3)})
    driver.ticks(20)
    driver.finish()
    assert driver.kafka.replicas[P0] == (5, 2, 3)


def test_an_alter_that_lands_late_is_undone_by_a_deletion() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lands_after=6)
    driver.delete("a")
    driver.ticks(20)
    assert driver.gone == {"a"}
    assert driver.kafka.reassignments == {}
    assert driver.kafka.replicas[P0] == (1, 2, 3)


@pytest.mark.parametrize("state", ["Submitting", "Cancelling"])
def test_an_alter_that_lands_after_a_kill_is_undone_by_a_deletion(
    state: str,
) -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.tick(lands_after=6)
    if state == "Cancelling":
        driver.delete("a")
        driver.tick()
    assert driver.resources["a"].record[P0].state == state
    driver.restart()
    driver.delete("a")
    driver.ticks(5)
    assert driver.gone == set()
    driver.ticks(15)
    assert driver.kafka.replicas[P0] == (1, 2, 3)
    assert driver.gone == {"a"}
    assert driver.kafka.reassignments == {}


def test_a_restore_that_is_still_on_its_way_never_lands_on_the_next_move() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.edit("a", {P0: (5, 2, 3)})
    while not (driver.kafka.writes and isinstance(driver.kafka.writes[-1], Cancel)):
        driver.tick()
    driver.tick(lands_after=5)  # the restore is lost; the next one is answered before this one lands
    driver.ticks(20)  # the simulation asserts that nothing is overridden in flight
    assert driver.kafka.reassignments[P0].adding == (5,)
