"""What becomes of one partition where a record, a deadline or another client leaves little to go by."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.memory import Recent
from reassign.core.model.record import Entry
from reassign.core.model.row import Row
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Outcome, Result
from reassign.core.model.verdict import Verdict
from reassign.core.partition.outcomes import settle_steps
from reassign.core.partition.undo import released
from reassign.errors import Reason
from tests.unit.log_dirs import asking
from tests.unit.sim import START, SimKafka, detail, drive, partitions, resource, without_record

(P0,) = partitions(1)
MOVE = Alter(P0, (4, 2, 3))


def test_a_cancel_goes_back_to_what_the_controller_lists() -> None:
    driver = drive(SimKafka({P0: (0, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    moving = driver.resources["a"]
    wrong = replace(moving.record[P0], original=(1, 2, 3))
    driver.resources["a"] = replace(moving, record={P0: wrong})
    driver.delete("a")
    driver.tick()
    assert set(detail(driver, P0).original_replicas or ()) == {0, 2, 3}
    driver.ticks(20)
    assert driver.gone == {"a"}
    assert set(driver.kafka.replicas[P0]) == {0, 2, 3}


def test_a_copy_of_ours_ends_where_another_client_cancelled_the_move() -> None:
    driver = asking((2, 1), ("any", "/b"))
    driver.ticks(8)
    assert P0 in driver.kafka.log_dirs[1]["/b"].futures
    driver.kafka.perform_as_another(P0)
    driver.ticks(40)
    assert P0 not in driver.kafka.log_dirs[1]["/b"].futures
    assert detail(driver, P0).state is PartitionState.CANCELLED


@pytest.mark.parametrize("reason", [Reason.TOPIC_RECREATED, Reason.IN_FLIGHT_ELSEWHERE])
def test_a_move_that_was_not_sent_is_judged_anew(reason: Reason) -> None:
    entry = Entry("id", (1, 2, 3), (4, 2, 3), State.SUBMITTING)
    verdict = Verdict(resource({P0: (4, 2, 3)}), {P0: Row(entry, (MOVE,))})
    settled, recent = settle_steps(verdict, {MOVE: Outcome(Result.REFUSED, reason, "it has changed")}, Recent(), 1.0)
    assert (settled.record, settled.rows[P0].shown()) == ({}, (PartitionState.PENDING, None))
    assert recent.refusal(P0, (4, 2, 3)) is None


@pytest.mark.parametrize(("seconds", "found"), [(59, None), (60, True)])
@pytest.mark.parametrize("lost", [False, True])
def test_a_deletion_is_given_up_at_its_deadline(seconds: int, found: bool | None, lost: bool) -> None:
    entry = Entry("id", (1, 2, 3), (4, 2, 3), State.CANCELLING)
    deleted = replace(resource({P0: (4, 2, 3)}, deletionDeadlineSeconds=60), deleted=START)
    deleted = without_record(deleted) if lost else replace(deleted, record={P0: entry})
    assert released(deleted, deleted.record, START + timedelta(seconds=seconds)) is found
