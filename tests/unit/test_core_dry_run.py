"""A dry run makes every check, says what would be copied where, and writes nothing to Kafka."""

from __future__ import annotations

import pytest

from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, LogDir
from reassign.errors import Reason
from reassign.text import amount
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, states, true_conditions

P0, P1, P2 = partitions(3)
GIB = 2**30


def kafka() -> SimKafka:
    return SimKafka(
        {P0: (0, 1), P1: (1, 0), P2: (0, 1)},
        sizes={P0: {0: GIB, 1: GIB}, P1: {0: 2 * GIB, 1: 2 * GIB}, P2: {0: 5, 1: 5}},
    )


def condition(driver: Driver, kind: str, uid: str = "a") -> tuple[str, str, str]:
    found = next(c for c in driver.resources[uid].status.conditions if c.type == kind)
    return str(found.status), found.reason, found.message


def test_a_dry_run_reports_moves_by_partition_and_broker_without_writes() -> None:
    driver = drive(kafka(), resource({P0: (2, 3), P1: (1, 3), P2: (0, 1)}, mode="DryRun"))
    driver.ticks(10)
    assert driver.kafka.writes == []
    status = driver.resources["a"].status
    assert [(p.partition, p.state, p.reason, p.message) for p in status.partitions] == [
        (0, "Pending", "WouldMove", "would copy 1.0 GiB to each of brokers 2 and 3"),
        (1, "Pending", "WouldMove", "would copy 2.0 GiB to broker 3"),
        (2, "Completed", None, None),
    ]
    assert true_conditions(driver) == {"Ready": "ChecksPassed", "Checked": "ChecksPassed"}
    assert condition(driver, "Checked")[2] == (
        "2 of 3 partitions would move, 1 is at its target; to broker 2: 1.0 GiB, to broker 3: 3.0 GiB"
    )
    assert (driver.resources["a"].record, status.completion_time, status.start_time) == ({}, None, None)
    assert status.progress is not None
    assert status.progress.bytes_total == 4 * GIB
    assert not driver.verdicts["a"].unsettled


def test_a_blocked_partition_fails_the_dry_run_until_it_is_fixed() -> None:
    driver = drive(kafka(), resource({P0: (2, 3), P1: (4, 0)}, mode="DryRun"))
    driver.kafka.brokers[4] = Broker(4, fenced=True)
    driver.ticks(3)
    assert states(driver) == {P0: "Pending", P1: "Blocked"}
    assert true_conditions(driver) == {"Reconciling": "BrokerFenced"}
    status, reason, message = condition(driver, "Checked")
    assert (status, reason) == ("False", "BrokerFenced")
    assert "orders-1: broker 4 is fenced" in message
    driver.kafka.brokers[4] = Broker(4)
    driver.tick()
    assert true_conditions(driver) == {"Ready": "ChecksPassed", "Checked": "ChecksPassed"}


@pytest.mark.parametrize(("grown", "changes"), [(GIB + 10**6, False), (3 * GIB, True)])
def test_topics_that_grow_change_the_status_only_where_two_digits_do(grown: int, changes: bool) -> None:
    driver = drive(kafka(), resource({P0: (2, 3)}, mode="DryRun"))
    driver.ticks(3)
    before = driver.resources["a"].status
    assert driver.kafka.sizes is not None
    driver.kafka.sizes[P0][0] = grown
    driver.ticks(3)
    after = driver.resources["a"].status
    assert (after != before) is changes
    assert after.progress is not None
    assert after.progress.bytes_total == (2 * grown if changes else 2 * GIB)


def test_a_dry_run_neither_claims_nor_holds_a_partition() -> None:
    driver = drive(kafka(), resource({P0: (2, 3)}, "a", mode="DryRun"), resource({P0: (3, 2)}, "b"))
    driver.ticks(4)
    assert states(driver, "b") == {P0: "InFlight"}
    assert driver.resources["a"].status.partitions[0].reason in ("PartitionClaimed", "InFlightElsewhere")
    driver.kafka.copy(P0)
    driver.ticks(10)
    assert states(driver, "a") == {P0: "Pending"}


def test_a_dry_run_is_judged_though_it_is_suspended_and_nothing_may_start() -> None:
    hold = Problem(Reason.SUSPENDED, "nothing starts")
    driver = drive(kafka(), resource({P0: (2, 3)}, mode="DryRun", suspend=True), hold=hold)
    driver.ticks(2)
    assert true_conditions(driver) == {"Ready": "ChecksPassed", "Checked": "ChecksPassed"}


def test_a_dry_run_that_becomes_execute_moves() -> None:
    driver = drive(kafka(), resource({P0: (2, 3)}, mode="DryRun"))
    driver.ticks(3)
    driver.edit("a", {P0: (2, 3)})
    driver.ticks(3)
    assert P0 in driver.kafka.reassignments
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}


def test_a_dry_run_is_judged_as_a_whole_against_the_disks() -> None:
    driver = drive(kafka(), resource({P0: (2, 0), P1: (2, 0)}, mode="DryRun"))
    driver.kafka.log_dirs = {2: {"/data": LogDir(total=10 * GIB, usable=int(3.5 * GIB))}}
    driver.ticks(3)
    assert states(driver) == {P0: "Pending", P1: "Blocked"}
    assert true_conditions(driver) == {"Stalled": "InsufficientDisk"}


def test_a_dry_run_without_sizes_reports_no_bytes() -> None:
    driver = drive(SimKafka({P0: (0, 1), P1: (0, 1)}), resource({P0: (2, 3), P1: (1, 0)}, mode="DryRun"))
    driver.ticks(2)
    assert [p.message for p in driver.resources["a"].status.partitions] == [
        "would be copied to brokers 2 and 3",
        "would change without copying anything",
    ]
    assert condition(driver, "Checked")[2] == "2 of 2 partitions would move"


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (996, "1000 B"), (1024, "1.0 KiB"), (10_180, "9.9 KiB"), (10_200, "10 KiB"), (355 * GIB, "360 GiB")],
)
def test_amounts_have_two_digits(size: int, said: str) -> None:
    assert amount(size) == said
