"""After a cancel the order is restored, and nothing but the order: what others have moved since stays where it is."""

from __future__ import annotations

import pytest

from reassign.api.kafka_cluster import ReplicationFactorGuard
from reassign.core.model.steps import Alter, Cancel
from tests.unit.sim import Driver, SimKafka, detail, drive, partitions, resource

(P0,) = partitions(1)


def cancelled() -> Driver:
    """A resource that is being deleted, when its cancel has been confirmed and the order is not restored yet."""
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))
    driver.ticks(3)
    driver.delete("a")
    driver.tick()
    assert driver.kafka.writes[-1] == Cancel(P0, (2, 3, 4))
    return driver


@pytest.mark.parametrize("seconds", [0, 3600])
def test_what_others_have_moved_since_the_cancel_stays_where_it_is(seconds: int) -> None:
    driver = cancelled()
    driver.kafka.move_as_another(P0, (0, 5, 3))
    driver.kafka.copy(P0)
    driver.now += seconds
    driver.ticks(2)
    assert driver.kafka.reassignments == {}
    driver.ticks(3)
    assert driver.kafka.replicas[P0] == (0, 5, 3)
    assert driver.gone == {"a"}


def test_a_refused_restore_is_not_sent_again_after_a_foreign_move() -> None:
    driver = cancelled()
    driver.kafka.denied = {P0}
    driver.ticks(3)
    driver.kafka.denied = set()
    driver.kafka.move_as_another(P0, (0, 5, 3))
    driver.kafka.copy(P0)
    driver.ticks(3)
    assert driver.kafka.replicas[P0] == (0, 5, 3)
    assert driver.gone == {"a"}


def test_a_replica_removed_by_others_after_the_cancel_holds_no_deletion() -> None:
    driver = cancelled()
    driver.kafka.move_as_another(P0, (2, 3))
    driver.kafka.copy(P0)
    driver.ticks(5)
    assert driver.gone == {"a"}
    assert not driver.kafka.writes.count(Alter(P0, (1, 2, 3)))


def test_the_order_is_restored_once_metadata_shows_the_originals() -> None:
    driver = cancelled()
    driver.lag = 1
    driver.tick()
    assert detail(driver, P0).state == "Cancelling"
    assert isinstance(driver.kafka.writes[-1], Cancel)
    driver.ticks(2)
    assert driver.kafka.replicas[P0] == (1, 2, 3)


@pytest.mark.parametrize("guard", ReplicationFactorGuard)
def test_the_emulated_guard_does_not_judge_a_restore_by_stale_metadata(
    guard: ReplicationFactorGuard,
) -> None:
    driver = cancelled()
    driver.kafka.guard = guard
    driver.tick()
    ours = guard is ReplicationFactorGuard.EMULATED
    assert driver.kafka.writes[-1] == Alter(P0, (1, 2, 3), allow_replication_factor_change=ours)
