"""Writes without an answer that a broker holds, and that land when a controller is back: nothing is orphaned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reassign.api.config_keys import FOLLOWER_RATE
from reassign.api.kafka_cluster import Execution
from reassign.api.reassignment_record import BrokerConfigs, RecordedConfig, RecordedConfigs
from reassign.core.configs.diff import Diff
from reassign.core.configs.stage import ConfigMemory, ConfigRead, _recent_changes, _sent, decide_configs
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Op
from reassign.core.model.forwarding import (
    LANDING_SECONDS,
    OVERTAKEN_SECONDS,
    SETTLE_SECONDS,
    Clock,
    Forwarded,
    Forwarding,
    MetadataOffsets,
    Write,
)
from reassign.core.model.memory import Recent
from reassign.core.model.recent_changes import RecentChanges, SentChange
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import APPLIED, Alter, Cancel, Outcome, Result
from reassign.core.partition.outcomes import settle_steps
from reassign.core.tick import doubts
from reassign.errors import Reason
from tests.unit.configs import Throttler, broker, move, store
from tests.unit.sim import Driver, SimKafka, detail, drive, resource, states

P0 = TopicPartition("orders", 0)
SETTLED = int(SETTLE_SECONDS) + 1


def moving() -> Driver:
    """A partition that is about to be moved."""
    return drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}))


def is_undone(driver: Driver) -> bool:
    """Whether the resource is gone, with nothing of it left."""
    return driver.gone == {"a"} and not driver.kafka.reassignments and driver.kafka.replicas[P0] == (1, 2, 3)


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
@pytest.mark.parametrize("seconds", [12, 50])
def test_an_alter_that_is_held_is_undone_by_a_deletion(seconds: int, killed: bool) -> None:
    driver = moving()
    driver.tick(lands_after=seconds)
    driver.delete("a")
    driver.ticks(2)
    if killed:
        driver.restart()
    driver.ticks(seconds - 4)
    assert driver.gone == set()
    driver.ticks(4 * SETTLED)
    assert is_undone(driver)


@pytest.mark.parametrize("seconds", [12, 50])
def test_an_alter_of_a_killed_process_is_undone_though_its_broker_is_gone(seconds: int) -> None:
    driver = moving()
    driver.tick(lands_after=seconds)
    driver.silent.add(driver.limbo[0][1])
    driver.restart()
    driver.delete("a")
    driver.ticks(int(LANDING_SECONDS) + 2 * SETTLED)
    assert is_undone(driver)


def is_deleted_once_nothing_can_land(driver: Driver) -> None:
    driver.delete("a")
    driver.ticks(int(LANDING_SECONDS) - 1)
    assert driver.gone == set()
    driver.ticks(2 * SETTLED)
    assert is_undone(driver)


def test_a_lost_alter_is_waited_for_while_its_broker_may_hold_it() -> None:
    driver = moving()
    driver.tick(lands_after=1000)
    driver.silent.add(driver.limbo.pop()[1])
    driver.restart()
    is_deleted_once_nothing_can_land(driver)


def test_an_alter_sent_long_after_its_record_is_waited_for() -> None:
    driver = moving()
    driver.tick(lands_after=25 + 60)  # all records of the tick took 25 s, and the broker holds it for 60 s
    driver.silent.add(driver.limbo[0][1])
    driver.now += 25
    driver.restart()
    driver.delete("a")
    driver.ticks(int(LANDING_SECONDS) + 4 * SETTLED)
    assert is_undone(driver)


def test_a_record_that_says_no_broker_is_doubted_since_the_process_began() -> None:
    driver = moving()
    driver.tick(lands_after=50)
    before = driver.resources["a"]
    [entry] = before.record.values()
    driver.resources["a"] = replace(before, record={P0: replace(entry, via=None, sent_at=None)})
    driver.restart()
    driver.delete("a")
    driver.ticks(int(LANDING_SECONDS) - 30)
    assert driver.gone == set()
    driver.ticks(30 + 2 * SETTLED)
    assert is_undone(driver)


def test_a_doubt_ends_soon_after_the_same_broker_has_listed_again() -> None:
    driver = moving()
    driver.tick(lands_after=1000)
    driver.delete("a")
    driver.tick()
    driver.limbo.clear()  # the broker had not passed it on, and lists again
    driver.ticks(int(OVERTAKEN_SECONDS) + 2 * SETTLED)
    assert is_undone(driver)


def test_a_held_cancel_does_not_land_on_the_next_move() -> None:
    driver = moving()
    driver.ticks(3)
    driver.edit("a", {P0: (5, 2, 3)})
    driver.tick(lands_after=12)
    assert isinstance(driver.limbo[0][2], Cancel)
    driver.restart()
    driver.ticks(int(LANDING_SECONDS) + 4 * SETTLED)
    assert driver.kafka.reassignments[P0].adding == (5,)


THEIRS = (5, 2, 3)


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
@pytest.mark.parametrize("seconds", [12, 50])
@pytest.mark.parametrize("deleted", [False, True])
def test_an_alter_that_lands_on_anothers_move_is_recorded(seconds: int, killed: bool, deleted: bool) -> None:
    driver = moving()
    driver.tick(lands_after=seconds)
    driver.kafka.move_as_another(P0, THEIRS)
    if killed:
        driver.restart()
    driver.tick()
    if deleted:
        driver.delete("a")
    for _ in range(seconds - 2):
        driver.tick()
        assert driver.resources["a"].record[P0].active
        assert driver.kafka.reassignments[P0].target == set(THEIRS), "another client's move is left alone"
    driver.ticks(2)
    if not deleted:
        assert states(driver) == {P0: "InFlight"}
        driver.delete("a")
    driver.ticks(2 * SETTLED)
    assert driver.gone == {"a"}
    assert not driver.kafka.reassignments


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_an_alter_that_cannot_land_any_more_leaves_anothers_move_alone(killed: bool) -> None:
    driver = moving()
    driver.tick(lands_after=1000)
    driver.kafka.move_as_another(P0, THEIRS)
    if killed:
        driver.restart()
    driver.tick()
    assert detail(driver, P0).message.startswith("another client is moving it (adding 5, removing 1), and a request")
    driver.limbo.clear()  # the broker had not passed it on, and lists again
    driver.ticks(int(OVERTAKEN_SECONDS) + SETTLED)
    assert driver.resources["a"].record == {}
    assert detail(driver, P0).reason == "InFlightElsewhere"
    assert driver.kafka.reassignments[P0].target == set(THEIRS)


@pytest.mark.parametrize("theirs", [None, THEIRS])
@pytest.mark.parametrize("deleted", [False, True])
def test_an_alter_that_lands_on_a_topic_made_again_is_recorded(deleted: bool, theirs: tuple[int, ...] | None) -> None:
    driver = moving()
    driver.tick(lands_after=20)
    driver.kafka.topic_ids["orders"] = "made again"
    if theirs:
        driver.kafka.move_as_another(P0, theirs)
    if deleted:
        driver.delete("a")
    for _ in range(19):
        driver.tick()
        assert driver.resources["a"].record[P0].active
    driver.tick()
    assert driver.resources["a"].record[P0].topic_id == "made again"
    driver.delete("a")
    driver.ticks(2 * SETTLED)
    assert driver.gone == {"a"}
    assert not driver.kafka.reassignments


def test_what_landed_on_a_topic_made_again_is_found_after_a_long_pause() -> None:
    driver = moving()
    driver.tick(lands_after=20)
    driver.kafka.topic_ids["orders"] = "made again"
    driver.tick()
    driver.now += 2 * LANDING_SECONDS  # no observation until it can land no more
    driver.tick()
    entry = driver.resources["a"].record[P0]
    assert (states(driver), entry.topic_id) == ({P0: "InFlight"}, "made again")


def test_a_held_restoration_that_lands_on_a_topic_made_again_is_undone() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 5, 3)}))
    driver.tick()
    driver.edit("a", {P0: (1, 2, 3)}, suspend=True)
    driver.tick()  # the cancel
    driver.tick(lands_after=20)
    assert isinstance(driver.limbo[0][2], Alter)
    driver.kafka.topic_ids["orders"] = "made again"
    driver.kafka.add(P0, (0, 4, 5))
    driver.ticks(20 + 2 * SETTLED)
    assert Cancel(P0, (1, 2, 3)) in driver.kafka.writes
    assert not driver.kafka.reassignments
    assert set(driver.kafka.replicas[P0]) == {0, 4, 5}


def test_anothers_move_on_a_topic_made_again_is_no_restoration() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (1, 2, 4)}))
    driver.ticks(2)
    driver.edit("a", {TopicPartition("orders", 9): (1, 2, 3)})
    driver.tick(die_after=1)  # the cancel is sent
    driver.kafka.topic_ids["orders"] = "made again"
    driver.kafka.reassignments.clear()
    driver.kafka.add(P0, (1, 4, 5))
    driver.kafka.move_as_another(P0, (3, 1, 2))
    driver.ticks(int(LANDING_SECONDS))
    assert driver.kafka.reassignments[P0].final == (3, 1, 2)


def test_no_other_resource_takes_a_partition_where_an_alter_may_land() -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}, "a"), resource({P0: (5, 2, 3)}, "b"))
    driver.tick(lands_after=20)
    driver.kafka.topic_ids["orders"] = "made again"
    for _ in range(19):
        driver.tick()
        assert driver.resources["b"].record == {}
        assert detail(driver, P0, "b").reason == "PartitionClaimed"
    driver.tick()
    assert states(driver, "a") == {P0: "InFlight"}


@pytest.mark.parametrize("deleted", [False, True])
def test_a_held_cancel_that_makes_way_stays_recorded_until_it_has_landed(deleted: bool) -> None:
    driver = drive(SimKafka({P0: (1, 2, 3)}), resource({P0: (4, 2, 3)}, whenInFlight="Supersede"))
    driver.kafka.move_as_another(P0, THEIRS)
    driver.tick(lands_after=20)
    assert isinstance(driver.limbo[0][2], Cancel)
    if deleted:
        driver.delete("a")
    else:
        driver.edit("a", {P0: (4, 2, 3)}, suspend=True)
    for _ in range(19):
        driver.tick()
        assert driver.resources["a"].record[P0].state is State.SUPERSEDING
    driver.ticks(2 * SETTLED)
    assert "a" in driver.gone or driver.resources["a"].record == {}
    assert [step for step in driver.kafka.writes if isinstance(step, Cancel)] == [Cancel(P0, (2, 3, 5))]


def test_a_partition_that_is_back_stays_recorded_while_a_cancel_may_land() -> None:
    driver = moving()
    driver.ticks(3)
    driver.edit("a", {P0: (5, 2, 3)})
    driver.tick(lands_after=50)  # the cancel
    driver.kafka.brokers[0] = replace(driver.kafka.brokers[0], fenced=True)  # another broker passes the next one on
    while driver.limbo:
        driver.tick()
        assert driver.resources["a"].record[P0].target == (4, 2, 3)
    driver.kafka.brokers[0] = replace(driver.kafka.brokers[0], fenced=False)
    driver.ticks(int(LANDING_SECONDS))
    assert driver.kafka.reassignments[P0].adding == (5,)


def test_the_broker_and_the_time_are_recorded_before_the_alter() -> None:
    driver = moving()
    driver.tick(die_after=0)
    entry = driver.resources["a"].record[P0]
    assert (entry.state, entry.via, entry.sent_at) == (State.SUBMITTING, 0, driver.time)
    assert driver.kafka.writes == []


def test_a_new_process_asks_the_broker_that_a_record_leaves_open() -> None:
    driver = moving()
    driver.tick(lands_after=12)
    driver.restart()
    assert doubts(list(driver.resources.values()), None, driver.memory).brokers == (0,)


def test_a_request_that_was_not_sent_leaves_no_doubt() -> None:
    driver = moving()
    driver.tick()
    verdict = driver.verdicts["a"]
    outcomes = {Alter(P0, (4, 2, 3)): Outcome(Result.NOT_SENT, Reason.REQUEST_FAILED, "refused")}
    _, recent = settle_steps(verdict, outcomes, driver.recent, driver.now)
    assert recent.unanswered == {}
    assert recent.forwarding == driver.recent.forwarding


@pytest.mark.parametrize("seconds", [12, 50])
def test_a_held_cancel_of_a_foreign_move_does_not_land_on_ours(seconds: int) -> None:
    driver = moving()
    driver.kafka.move_as_another(P0, (5, 2, 3))
    driver.execution = Execution.CANCEL_ALL
    driver.tick(lands_after=seconds)
    assert isinstance(driver.limbo[0][2], Cancel)
    driver.execution = Execution.RUN
    driver.kafka.perform_as_another(P0)
    driver.ticks(seconds + 4 * SETTLED)
    assert driver.kafka.reassignments[P0].adding == (4,)
    assert driver.kafka.writes[-1] == Alter(P0, (4, 2, 3))


def test_a_restart_forgets_a_held_cancel_of_a_foreign_move() -> None:
    driver = moving()
    driver.kafka.move_as_another(P0, (5, 2, 3))
    driver.execution = Execution.CANCEL_ALL
    driver.tick(lands_after=12)
    driver.execution = Execution.RUN
    driver.kafka.perform_as_another(P0)
    driver.restart()
    driver.ticks(12 + 2 * SETTLED)
    assert detail(driver, P0).reason == "CancelledExternally"


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
@pytest.mark.parametrize("seconds", [12, 50])
def test_a_throttle_that_is_held_is_removed(seconds: int, killed: bool) -> None:
    throttler = Throttler(store())
    throttler.tick([move()], lands_after=seconds)
    assert throttler.store == store()
    if killed:
        throttler.restart()
    throttler.ticks(seconds + 4 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_a_throttle_is_removed_though_its_broker_lists_nothing() -> None:
    throttler = Throttler(store())
    throttler.tick([move()], lands_after=50)
    throttler.silent = {1, 2}
    throttler.restart()
    throttler.ticks(int(LANDING_SECONDS) + 2 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_a_throttle_is_not_believed_gone_by_a_broker_whose_metadata_lags() -> None:
    throttler = Throttler(store(), lag=20)
    throttler.tick([move()], lands_after=1)
    throttler.restart()
    throttler.ticks(15)
    assert throttler.status is not None
    throttler.ticks(20 + 4 * SETTLED)
    throttler.lag = 0
    throttler.ticks(10 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_metadata_shows_a_change_when_its_broker_has_all_that_came_before() -> None:
    change = Write(via=2, at=5.0)
    listed = Forwarding().observe(10.0, Forwarded(2, {2}, MetadataOffsets(100, {2: 100})))
    landed = 10.0 + OVERTAKEN_SECONDS
    assert (listed.landed(change), listed.shown(change, 2)) == (landed, 5.0 + LANDING_SECONDS)
    behind = listed.observe(landed, Forwarded(2, {2}, MetadataOffsets(120, {2: 119})))
    assert behind.shown(change, 2) == 5.0 + LANDING_SECONDS
    caught_up = behind.observe(20.0, Forwarded(2, {2}, MetadataOffsets(140, {2: 120})))
    assert caught_up.shown(change, 2) == 20.0
    assert caught_up.shown(change, 3) == 5.0 + LANDING_SECONDS


def test_what_a_broker_answered_before_says_nothing_of_a_later_write() -> None:
    listed = Forwarding().observe(10.0, Forwarded(2, {1, 2}))
    lost = listed.lost([2])
    assert lost.landed(Write(2, 11.0)) == 11.0 + LANDING_SECONDS
    assert lost.observe(12.0, Forwarded(2, {2})).landed(Write(2, 11.0)) == 12.0 + OVERTAKEN_SECONDS


def test_a_change_of_an_earlier_process_was_made_before_this_one_began() -> None:
    record = RecordedConfigs(via=1, sent_at=datetime(2026, 1, 1, 1, tzinfo=UTC))
    recent = Recent(clock=Clock(100.0, datetime(2026, 1, 1, tzinfo=UTC)))
    assert _recent_changes(RecentChanges(started=90.0), ConfigRead(100.0), recent, record).earlier == Write(1, 90.0)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def throttles_left(said: timedelta, process: float) -> bool:
    """Whether a rate that was restored is still recorded: by its time it was set so long ago, by an earlier process.

    This process is so many seconds old.
    """
    rate = RecordedConfig(name=FOLLOWER_RATE, value="5")
    record = RecordedConfigs(sent_at=NOW - said, brokers=(BrokerConfigs(broker=1, configs=(rate,)),))
    memory, recent = ConfigMemory(RecentChanges(started=5000 - process)), Recent(clock=Clock(5000, NOW))
    read, snapshot = ConfigRead(5000, {broker(1): {}}), SimKafka({P0: (1, 2, 3)}).snapshot()
    _, decision, _ = decide_configs([], snapshot, read, memory, recent, ConfigRules(record=record))
    return decision.record is not None


@pytest.mark.parametrize(
    ("said", "process", "left"),
    [
        (timedelta(minutes=10), SETTLE_SECONDS, True),  # the clock may have been set by so much
        (timedelta(minutes=-10), SETTLE_SECONDS, True),
        (timedelta(minutes=10), LANDING_SECONDS + SETTLE_SECONDS, False),
        (timedelta(minutes=-10), LANDING_SECONDS + SETTLE_SECONDS, False),
        (timedelta(hours=2), SETTLE_SECONDS, True),
        (timedelta(hours=-2), SETTLE_SECONDS, True),
        (timedelta(hours=2), LANDING_SECONDS + SETTLE_SECONDS, False),
    ],
)
def test_a_clock_that_was_set_makes_no_record_of_a_throttle_go_early(
    said: timedelta, process: float, left: bool
) -> None:
    assert throttles_left(said, process) is left


def test_a_resource_settles_at_once_where_its_alter_was_answered() -> None:
    driver = moving()
    driver.tick()
    assert driver.kafka.perform(Cancel(P0, (2, 3, 4))) is APPLIED
    driver.delete("a")
    driver.ticks(2 * SETTLED)
    assert driver.gone == {"a"}


def test_the_broker_of_a_throttle_is_asked_by_a_new_process() -> None:
    throttler = Throttler(store())
    throttler.tick([move()])
    throttler.restart()
    asked = {write.via for write in throttler.lately.in_doubt(throttler.status)}
    assert asked == {0, 1, 2}
    assert broker(0) in throttler.store


@pytest.mark.parametrize(
    ("via", "seconds_ago", "named"),
    [(2, 1.0, 2), (1, 1.0, None), (None, 1.0, None), (1, LANDING_SECONDS, 2), (None, LANDING_SECONDS, 2)],
)
def test_a_record_names_no_broker_while_another_may_hold_a_change(
    via: int | None, seconds_ago: float, named: int | None
) -> None:
    clock, forwarding = Clock(1000.0, datetime(2026, 1, 1, tzinfo=UTC)), Forwarding(via=2)
    recent = Recent(started=0.0, clock=clock, forwarding=forwarding)
    before = RecordedConfigs(via=via, sent_at=clock.of(0.0))
    change = Change(ConfigKey(ConfigResource(ConfigResourceType.TOPIC, "orders"), "rate"), Op.SET, "1")
    write = Write(via, 1000.0 - seconds_ago)
    changes = RecentChanges(0.0, 1000.0, forwarding=forwarding)
    for known in (replace(changes, earlier=write), replace(changes, sent=(SentChange(write, change, False),))):
        sent = _sent(Diff(RecordedConfigs(), (change,)), before, known, recent)
        assert sent
        assert (sent.via, sent.sent_at) == (named, clock.time)
        assert _sent(Diff(RecordedConfigs(), ()), before, known, recent) == before, "nothing is sent"


@pytest.mark.parametrize("seconds", [-3600.0, -600.0, 600.0])
@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed"])
def test_a_doubt_ends_in_time_whatever_the_api_servers_clock_is_set_to(seconds: float, killed: bool) -> None:
    driver = moving()
    driver.tick(lands_after=1000)
    driver.silent.add(driver.limbo.pop()[1])
    driver.ahead = seconds
    if killed:
        driver.restart()
    is_deleted_once_nothing_can_land(driver)


def test_a_new_process_goes_on_at_the_broker_that_topics_changed_through() -> None:
    """Metadata of that broker shows when the doubt ends; of any other only time does."""
    topics, one, another = Write(2, 0.0), Write(0, 0.0), Write(1, 0.0)
    assert Forwarding().doubts(1.0, [], [topics, one, another]).brokers == (2, 0, 1)
    assert Forwarding().doubts(1.0, [another], [topics, one]).brokers == (1, 2, 0)
