"""A move in flight that does not come nearer is Stalled, with the reason, and goes on by itself."""

from __future__ import annotations

import pytest

from reassign.core.model.snapshot import Broker, LogDir
from tests.unit.log_dirs import asking
from tests.unit.sim import Driver, SimKafka, drive, partitions, resource, states, true_conditions

P0, P1 = partitions(2)
TIMEOUT = 60


def moving(**sizes: int) -> Driver:
    """Partition 0 on its way from 0, 1 to 2, 1; `sizes` by broker, as b0=…"""
    by_broker = {int(name[1:]): size for name, size in sizes.items()}
    kafka = SimKafka({P0: (0, 1)}, sizes={P0: by_broker} if sizes else None)
    driver = drive(kafka, resource({P0: (2, 1)}, stallTimeoutSeconds=TIMEOUT))
    driver.ticks(3)
    assert states(driver) == {P0: "InFlight"}
    return driver


def grow(driver: Driver, broker: int, size: int) -> None:
    assert driver.kafka.sizes is not None
    driver.kafka.sizes[P0][broker] = driver.kafka.sizes[P0].get(broker, 0) + size


def reason(driver: Driver) -> str | None:
    return driver.resources["a"].status.partitions[0].reason


def dies(kafka: SimKafka) -> None:
    kafka.brokers[2] = Broker(2, fenced=True)


def goes_for_good(kafka: SimKafka) -> None:
    del kafka.brokers[2]


def loses_its_disk(kafka: SimKafka) -> None:
    kafka.offline[P0] = frozenset({2})
    kafka.log_dirs = {2: {"/data/a": LogDir(), "/data/b": LogDir(online=False)}}


def loses_its_leader(kafka: SimKafka) -> None:
    kafka.leader[P0] = None


def stands_still(kafka: SimKafka) -> None:
    pass


@pytest.mark.parametrize(
    ("what", "named", "says"),
    [
        (dies, "BrokerFenced", "broker 2"),
        (goes_for_good, "UnknownBroker", "broker 2"),
        (loses_its_disk, "LogDirOffline", "/data/b"),
        (loses_its_leader, "NoLeader", "in-sync replicas, 0, 1"),
        (stands_still, "MoveStalled", "broker 2 has copied nothing for 60 s"),
    ],
)
def test_a_move_without_progress_is_stalled_after_the_timeout(what: object, named: str, says: str) -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    what(driver.kafka)  # type: ignore[operator]
    driver.ticks(TIMEOUT - 5)
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(6)
    assert states(driver) == {P0: "InFlight"}
    assert true_conditions(driver) == {"Reconciling": "PartitionsInFlight", "Stalled": named}
    assert says in (driver.resources["a"].status.partitions[0].message or "")
    ready = next(c for c in driver.resources["a"].status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason) == ("False", named)
    assert "have not come nearer for 60 s: 1; orders-0" in ready.message


def test_a_dead_destination_is_reported_at_once() -> None:
    driver = moving(b0=1000, b1=1000)
    dies(driver.kafka)
    driver.tick()
    assert (states(driver)[P0], reason(driver)) == ("InFlight", "BrokerFenced")
    assert true_conditions(driver) == {"Reconciling": "PartitionsInFlight"}


def test_a_move_is_stalled_no_longer_once_the_destination_is_back() -> None:
    driver = moving(b0=1000, b1=1000)
    dies(driver.kafka)
    driver.ticks(TIMEOUT + 1)
    assert true_conditions(driver)["Stalled"] == "BrokerFenced"
    driver.kafka.brokers[2] = Broker(2)
    grow(driver, 2, 10)
    driver.tick()
    assert (true_conditions(driver), reason(driver)) == ({"Reconciling": "PartitionsInFlight"}, None)
    driver.kafka.copy(P0)
    driver.finish()
    assert true_conditions(driver) == {"Ready": "Completed", "Succeeded": "Completed"}
    assert len(driver.kafka.writes) <= 2


@pytest.mark.parametrize("produced", [10, 11])
def test_a_replica_no_faster_than_its_leaders_writes_is_stalled(produced: int) -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    for _ in range(TIMEOUT + 1):
        grow(driver, 2, 10)
        grow(driver, 0, produced)
        driver.tick()
    assert true_conditions(driver)["Stalled"] == "ThrottleBelowProduceRate"
    for _ in range(5):  # the producers stop: it catches up, and that is said long before it has
        grow(driver, 2, 10)
        driver.tick()
    assert "Stalled" not in true_conditions(driver)


@pytest.mark.parametrize("throttle", [None, {"interBroker": 2048}])
def test_a_replica_that_others_starve_under_the_throttle_is_reported(throttle: object) -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    driver.edit("a", {P0: (2, 1)}, stallTimeoutSeconds=TIMEOUT, throttle=throttle)
    for _ in range(TIMEOUT + 2):
        grow(driver, 0, 10)
        driver.tick()
    said = driver.resources["a"].status.partitions[0]
    assert said.reason == ("ThrottleBelowProduceRate" if throttle else "MoveStalled")
    assert ("uses up the throttle" in (said.message or "")) == bool(throttle)


def test_a_slow_move_that_comes_nearer_is_never_stalled() -> None:
    driver = moving(b0=1_000_000, b1=1_000_000, b2=0)
    for _ in range(3 * TIMEOUT):
        grow(driver, 2, 11)
        grow(driver, 0, 10)
        driver.tick()
        assert "Stalled" not in true_conditions(driver)


def test_a_move_of_days_keeps_one_status_from_start_to_end() -> None:
    driver = moving(b0=8 * 2**40, b1=8 * 2**40, b2=0)
    shown = [true_conditions(driver)]
    for hour in range(100):
        for _ in range(10):
            grow(driver, 2, 8 * 2**40 // 1000)
            driver.tick()
            shown.append(true_conditions(driver))
        driver.now += 3590
        if hour % 24 == 12:
            driver.restart()
    assert all(found.keys() == {"Reconciling"} for found in shown)
    driver.finish()
    assert true_conditions(driver).keys() == {"Ready", "Succeeded"}
    assert [type(step).__name__ for step in driver.kafka.writes] == ["Alter"]


def test_one_more_replica_in_sync_is_nearer() -> None:
    kafka = SimKafka({P0: (0, 1)})
    driver = drive(kafka, resource({P0: (2, 3)}, stallTimeoutSeconds=TIMEOUT))
    driver.ticks(TIMEOUT)
    kafka.isr[P0] = frozenset({0, 1, 2})
    driver.ticks(TIMEOUT - 5)
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(6)
    assert true_conditions(driver)["Stalled"] == "MoveStalled"


def test_retention_on_the_leader_does_not_stall_a_copying_move() -> None:
    driver = moving(b0=10_000, b1=10_000, b2=4_000)
    assert driver.kafka.sizes is not None
    driver.ticks(2)
    driver.kafka.sizes[P0] |= {0: 5_000, 2: 0}  # what it had copied is gone with the oldest segments
    for _ in range(2 * TIMEOUT):
        grow(driver, 2, 40)
        driver.tick()
        assert "Stalled" not in true_conditions(driver)


def test_time_without_observation_does_not_count() -> None:
    driver = moving(b0=1000, b1=1000)
    driver.ticks(5)
    driver.now += 10 * TIMEOUT
    driver.tick()
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(TIMEOUT)
    assert true_conditions(driver)["Stalled"] == "MoveStalled"


def test_another_process_begins_to_count_anew() -> None:
    driver = moving(b0=1000, b1=1000)
    driver.ticks(TIMEOUT)
    assert "Stalled" in true_conditions(driver)
    driver.restart()
    driver.tick()
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(TIMEOUT)
    assert "Stalled" in true_conditions(driver)


def test_without_sizes_only_in_sync_replicas_count_as_progress() -> None:
    driver = moving()
    driver.ticks(TIMEOUT)
    assert true_conditions(driver)["Stalled"] == "MoveStalled"


def test_only_the_move_that_stands_still_is_named() -> None:
    kafka = SimKafka({P0: (0, 1), P1: (0, 1)}, sizes={P0: {0: 1000, 1: 1000}, P1: {0: 1000, 1: 1000, 3: 0}})
    driver = drive(kafka, resource({P0: (2, 1), P1: (3, 1)}, stallTimeoutSeconds=TIMEOUT))
    assert kafka.sizes is not None
    for _ in range(TIMEOUT + 5):
        kafka.sizes[P1][3] += 1
        driver.tick()
    assert [(p.partition, p.reason) for p in driver.resources["a"].status.partitions] == [(0, "MoveStalled"), (1, None)]
    assert "1; orders-0" in next(c for c in driver.resources["a"].status.conditions if c.type == "Stalled").message


def names_the_reader(driver: Driver) -> bool:
    said = driver.resources["a"].status.partitions[0]
    return said.reason == "MoveStalled" and "broker 0, from which the operator reads metadata" in (said.message or "")


def test_a_reader_that_lags_is_named_and_not_the_broker_that_copied() -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    driver.stand_still(*driver.kafka.brokers)
    grow(driver, 2, 900)
    driver.kafka.copy(P0)
    driver.tick()
    assert not names_the_reader(driver), "that is no news yet"
    driver.ticks(5)
    assert names_the_reader(driver)
    assert "Stalled" not in true_conditions(driver)
    driver.ticks(TIMEOUT)
    assert names_the_reader(driver)
    assert true_conditions(driver) == {"Reconciling": "PartitionsInFlight", "Stalled": "MoveStalled"}
    driver.standing.clear()
    driver.ticks(5)
    assert true_conditions(driver).keys() == {"Ready", "Succeeded"}


def test_a_cancel_that_waits_for_a_reader_that_lags_names_it() -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    driver.stand_still(*driver.kafka.brokers)
    driver.delete("a")
    driver.ticks(TIMEOUT + 5)
    assert names_the_reader(driver)
    assert true_conditions(driver)["Stalled"] == "MoveStalled"
    driver.standing.clear()
    driver.ticks(10)
    assert driver.gone == {"a"}


def test_a_reader_that_lags_explains_nothing_while_the_move_is_listed() -> None:
    driver = moving(b0=1000, b1=1000, b2=100)
    driver.stand_still(*driver.kafka.brokers)
    driver.restart()
    driver.ticks(TIMEOUT + 5)
    assert "broker 2 has copied nothing" in (driver.resources["a"].status.partitions[0].message or "")


def directed_and_hidden() -> Driver:
    """Partition 0 has left the list on its way from 0, 1 to 0, 2, both in /b, and no metadata is fetched any more."""
    driver = asking((0, 2), ["/b", "/b"], stallTimeoutSeconds=TIMEOUT)
    driver.ticks(3)
    driver.stand_still(*driver.kafka.brokers)
    driver.kafka.copy(P0)
    return driver


def test_a_copy_between_directories_is_not_blamed_on_the_reader() -> None:
    driver = directed_and_hidden()
    driver.standing.clear()
    driver.tick()
    driver.stand_still(*driver.kafka.brokers)
    driver.restart()
    driver.ticks(TIMEOUT - 5)
    assert driver.recent.lagging(P0) == 0
    assert (states(driver), reason(driver)) == ({P0: "InFlight"}, None)
    driver.ticks(6)
    assert "broker 0 has copied nothing" in (driver.resources["a"].status.partitions[0].message or "")


def test_a_directory_that_is_gone_stalls_though_the_reader_lags() -> None:
    driver = directed_and_hidden()
    driver.kafka.log_dirs[2] = {"/a": LogDir(logs={P0: 100}, futures={})}
    driver.ticks(5)
    assert driver.recent.lagging(P0) == 0
    assert true_conditions(driver) == {"Reconciling": "PartitionsInFlight", "Stalled": "UnknownLogDir"}


def test_a_broker_that_the_reader_shows_fenced_explains_no_hidden_end() -> None:
    driver = directed_and_hidden()
    driver.kafka.copy_between_dirs(P0)
    dies(driver.kafka)
    driver.ticks(5)
    assert names_the_reader(driver)


def test_a_cancel_names_a_fenced_broker_though_the_reader_lags() -> None:
    driver = asking((0, 2), ["/b", "/b"], stallTimeoutSeconds=TIMEOUT)
    driver.ticks(3)
    driver.stand_still(*driver.kafka.brokers)
    driver.delete("a")
    driver.tick()
    driver.kafka.brokers[0] = Broker(0, fenced=True)
    driver.ticks(TIMEOUT + 5)
    said = driver.resources["a"].status.partitions[0]
    assert driver.recent.lagging(P0) is not None
    assert said.reason == "BrokerFenced"
    assert "deletionPolicy: Orphan" in (said.message or "")
