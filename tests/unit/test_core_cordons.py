"""Cordons of brokers: set where they are wanted and do something, and what others have set is theirs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from reassign.api.config_keys import CORDONED_LOG_DIRS, LEADER_RATE
from reassign.api.kafka_cluster import Execution
from reassign.core.configs.cordons import (
    EFFECT_SECONDS,
    GIVEN_UP_SECONDS,
    MOST_REMOVALS,
    CordonReason,
    recorded_cordons,
)
from reassign.core.configs.stage import left_to_restore
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, LogDir
from reassign.core.model.steps import Outcome
from reassign.errors import Reason
from tests.unit.configs import SETTLED, broker
from tests.unit.sim import LOST, Driver, SimKafka, drive, partitions, pull, refused, resource

P0, P1 = partitions(2)
FIVE = broker(5)
OLDER = Problem(Reason.DUPLICATE_CLUSTER, "the older one is served")


def idle(text: str | None = None) -> Driver:
    """A process that is not new any more, and nothing to move; broker 5 has two directories, and this is cordoned."""
    driver = drive(SimKafka({}), configs={broker(b): {} for b in range(6)})
    driver.kafka.log_dirs[5] = {"/a": LogDir(), "/b": LogDir()}
    if text is not None:
        driver.configs[FIVE][CORDONED_LOG_DIRS] = text
    driver.ticks(SETTLED)
    return driver


def cordoning(text: str | None = None) -> Driver:
    """The same, with broker 5 to be cordoned, some seconds later."""
    driver = idle(text)
    driver.cordons = frozenset({5})
    driver.ticks(SETTLED)
    return driver


def state(driver: Driver) -> CordonReason:
    return driver.states[5].reason


def text(driver: Driver) -> str | None:
    return driver.configs[FIVE].get(CORDONED_LOG_DIRS)


def ours(driver: Driver) -> frozenset[int]:
    return recorded_cordons(driver.throttle.record)


def news(driver: Driver) -> list[str]:
    found = [str(what) for what, _ in driver.cordon_news]
    driver.cordon_news.clear()
    return found


def others_set(driver: Driver, value: str | None) -> None:
    driver.configs[FIVE].pop(CORDONED_LOG_DIRS, None)
    if value is not None:
        driver.configs[FIVE][CORDONED_LOG_DIRS] = value


def fence(driver: Driver, fenced: bool) -> None:
    driver.kafka.brokers[5] = Broker(5, fenced=fenced)


def test_a_broker_is_cordoned_and_uncordoned() -> None:
    driver = idle()
    driver.cordons = frozenset({5})
    driver.tick()
    assert (state(driver), text(driver)) == (CordonReason.NOT_YET, "*")
    driver.tick()
    assert (state(driver), ours(driver)) == (CordonReason.IN_FORCE, {5})
    assert news(driver) == ["BrokerCordoned"]
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert (text(driver), driver.throttle.record, driver.states) == (None, None, {})
    assert news(driver) == ["BrokerUncordoned"]


@pytest.mark.parametrize("prior", ["", "/a", "/b, /a ,/c", "/c"])
def test_a_partial_cordon_is_the_prior_value_and_restored(prior: str) -> None:
    driver = cordoning("/a" if prior == "/b, /a ,/c" else prior)
    assert (state(driver), text(driver), ours(driver)) == (CordonReason.IN_FORCE, "*", {5})
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert text(driver) == ("/a" if prior == "/b, /a ,/c" else prior)
    assert driver.throttle.record is None


@pytest.mark.parametrize("theirs", ["*", "/a,/b"])
def test_a_cordon_that_is_there_is_theirs_until_it_goes(theirs: str) -> None:
    driver = cordoning(theirs)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.IN_FORCE, theirs, None)
    assert "by another client" in driver.states[5].message
    assert not driver.states[5].held
    others_set(driver, None)
    driver.ticks(SETTLED)
    assert (state(driver), text(driver), ours(driver)) == (CordonReason.IN_FORCE, "*", {5})
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert text(driver) is None


def test_a_static_cordon_is_theirs() -> None:
    driver = idle()
    driver.kafka.log_dirs[5] = {"/a": LogDir(cordoned=True)}
    driver.cordons = frozenset({5})
    driver.ticks(SETTLED)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.IN_FORCE, None, None)


def test_a_full_cordon_that_replaces_ours_is_theirs_and_no_removal() -> None:
    driver = cordoning()
    others_set(driver, "/a,/b")
    driver.ticks(2 * SETTLED)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.IN_FORCE, "/a,/b", None)
    assert news(driver) == ["BrokerCordoned"]
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert text(driver) == "/a,/b"


def test_a_cordon_without_effect_is_taken_back_in_time() -> None:
    driver = idle("/a")
    driver.kafka.without_effect = {5}
    driver.cordons = frozenset({5})
    driver.ticks(int(EFFECT_SECONDS))
    assert (state(driver), text(driver)) == (CordonReason.NOT_YET, "*")
    driver.ticks(2 * SETTLED)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.NOT_EFFECTIVE, "/a", None)
    assert news(driver) == ["BrokerUncordoned"]
    driver.ticks(2 * int(EFFECT_SECONDS))
    assert (state(driver), text(driver)) == (CordonReason.NOT_EFFECTIVE, "/a")


def test_a_cordon_without_effect_is_tried_again_after_a_restart() -> None:
    driver = idle()
    driver.kafka.without_effect = {5}
    driver.cordons = frozenset({5})
    driver.ticks(int(EFFECT_SECONDS) + 2 * SETTLED)
    assert state(driver) is CordonReason.NOT_EFFECTIVE
    fence(driver, True)
    driver.tick()
    driver.kafka.without_effect = set()
    fence(driver, False)
    driver.ticks(SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_waiting_for_a_broker_that_is_down_does_not_count() -> None:
    driver = idle()
    driver.kafka.without_effect = {5}
    driver.cordons = frozenset({5})
    driver.ticks(int(EFFECT_SECONDS) - 5)
    fence(driver, True)
    driver.ticks(int(EFFECT_SECONDS))
    assert (state(driver), ours(driver)) == (CordonReason.BROKER_FENCED, {5})
    fence(driver, False)
    driver.kafka.without_effect = set()
    driver.ticks(2)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_a_cordon_whose_answers_are_lost_is_given_up_in_time() -> None:
    driver = idle()
    driver.refuses_cordons = {5: LOST}
    driver.cordons = frozenset({5})
    driver.ticks(int(EFFECT_SECONDS))
    assert state(driver) is CordonReason.NOT_YET
    driver.ticks(3 * int(EFFECT_SECONDS))
    assert (state(driver), driver.throttle.record) == (CordonReason.NOT_EFFECTIVE, None)


def test_a_cordon_that_its_broker_has_not_reported_on_since_stays() -> None:
    driver = idle()
    driver.cordons = frozenset({5})
    driver.tick()
    driver.kafka.silent = {5}
    driver.ticks(2 * int(EFFECT_SECONDS))
    assert (state(driver), text(driver)) == (CordonReason.NOT_YET, "*")
    driver.kafka.silent = set()
    driver.ticks(2)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_a_new_process_gives_a_cordon_as_long_again() -> None:
    driver = idle()
    driver.kafka.without_effect = {5}
    driver.cordons = frozenset({5})
    driver.ticks(int(EFFECT_SECONDS) - 5)
    driver.restart()
    driver.ticks(int(EFFECT_SECONDS) - 5)
    assert (state(driver), text(driver)) == (CordonReason.NOT_YET, "*")
    driver.ticks(2 * SETTLED + 5)
    assert (state(driver), text(driver)) == (CordonReason.NOT_EFFECTIVE, None)


def test_brokers_that_do_not_say_what_is_cordoned_are_not() -> None:
    driver = idle()
    driver.kafka.reports_no_cordons = {5}
    driver.cordons = frozenset({5})
    driver.ticks(SETTLED)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.NOT_SUPPORTED, None, None)


def test_a_broker_that_reports_nothing_is_not_cordoned_yet() -> None:
    driver = drive(SimKafka({}, silent={5}), configs={FIVE: {}}, cordons=frozenset({5}))
    driver.ticks(2 * SETTLED)
    assert (state(driver), text(driver), driver.throttle.record) == (CordonReason.NOT_YET, None, None)


def test_a_broker_that_is_down_is_cordoned_when_it_is_back() -> None:
    driver = idle()
    fence(driver, True)
    driver.cordons = frozenset({5})
    driver.ticks(SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.BROKER_FENCED, None)
    fence(driver, False)
    driver.ticks(SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.NOT_AUTHORIZED, CordonReason.NOT_AUTHORIZED),
        (Reason.REQUEST_REFUSED, CordonReason.NOT_SUPPORTED),
        (Reason.REQUEST_FAILED, CordonReason.NOT_YET),
    ],
)
def test_a_refused_cordon_is_asked_for_again_ever_later(reason: Reason, expected: CordonReason) -> None:
    driver = idle()
    asked: list[float] = []

    class Refusing(dict[int, Outcome]):
        def get(self, key: int, default: object = None) -> Outcome | None:  # type: ignore[override]
            asked.append(driver.now)
            return refused(reason)

    driver.refuses_cordons = Refusing()
    driver.cordons = frozenset({5})
    driver.ticks(500)
    assert (state(driver), driver.throttle.record) == (expected, None)
    waits = [later - earlier for earlier, later in pairwise(asked)]
    assert waits == sorted(waits)
    assert 4 <= len(asked) <= 7
    driver.refuses_cordons = {}
    driver.ticks(301)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_a_cordon_that_others_remove_is_set_again_twice() -> None:
    driver = cordoning()
    news(driver)
    for removals in (1, 2):
        others_set(driver, None)
        driver.ticks(2 * SETTLED)
        assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")
        assert driver.throttle.record is not None
        assert driver.throttle.record.brokers[0].cordon_removals == removals
        assert news(driver) == ["CordonDrift", "BrokerCordoned"]
        driver.restart()
        driver.ticks(5 * SETTLED)
    others_set(driver, "/a")
    driver.ticks(2 * SETTLED)
    assert (state(driver), text(driver), ours(driver)) == (CordonReason.CORDON_DRIFT, "/a", set())
    assert "3 times" in driver.states[5].message
    assert news(driver) == ["CordonDrift"]
    driver.restart()
    driver.ticks(100)
    assert (state(driver), text(driver), news(driver)) == (CordonReason.CORDON_DRIFT, "/a", [])
    assert not left_to_restore(driver.throttle.record, driver.kafka.brokers)
    driver.cordons = frozenset()
    driver.ticks(2)
    assert (driver.throttle.record, text(driver)) == (None, "/a")


def test_removals_count_as_long_as_the_cordon_is_wanted() -> None:
    """So the brake is also the way to have a cordon set again that was given up."""
    driver = cordoning()
    for _ in range(MOST_REMOVALS):
        others_set(driver, None)
        driver.ticks(2 * SETTLED)
    assert state(driver) is CordonReason.CORDON_DRIFT
    pull(driver, Execution.CANCEL_OURS)
    driver.ticks(2)
    assert driver.throttle.record is None
    pull(driver, Execution.RUN)
    driver.ticks(SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_what_others_set_over_a_cordon_is_restored() -> None:
    driver = cordoning()
    others_set(driver, "/b")
    driver.ticks(2 * SETTLED)
    assert text(driver) == "*"
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert (text(driver), driver.throttle.record) == ("/b", None)


def test_a_kill_between_record_and_change_is_no_removal() -> None:
    driver = idle()
    driver.cordons = frozenset({5})
    driver.tick()
    driver.configs[FIVE].clear()  # as if the change had not been made
    driver.restart()
    driver.ticks(3 * SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")
    assert driver.throttle.record is not None
    assert driver.throttle.record.brokers[0].cordon_removals is None
    assert "CordonDrift" not in news(driver)


@pytest.mark.parametrize("brake", [Execution.CANCEL_OURS, Execution.CANCEL_ALL])
def test_the_brake_lifts_cordons_and_run_sets_them_again(brake: Execution) -> None:
    driver = cordoning("/a")
    pull(driver, brake)
    driver.ticks(2 * SETTLED)
    assert (text(driver), driver.throttle.record) == ("/a", None)
    pull(driver, Execution.RUN)
    driver.ticks(SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


def test_a_pause_keeps_cordons() -> None:
    driver = cordoning()
    pull(driver, Execution.PAUSE)
    driver.ticks(2 * SETTLED)
    assert (state(driver), text(driver)) == (CordonReason.IN_FORCE, "*")


@pytest.mark.parametrize("held", ["older", "yields"])
def test_beside_another_cluster_or_claim_cordons_are_lifted(held: str) -> None:
    driver = cordoning("/a")
    driver.throttle = replace(driver.throttle, **{held: OLDER})
    driver.ticks(2 * SETTLED)
    assert (text(driver), driver.throttle.record) == ("/a", None)


def test_nothing_is_touched_while_a_younger_cluster_restores() -> None:
    driver = cordoning()
    driver.throttle = replace(driver.throttle, younger=OLDER)
    driver.cordons = frozenset()
    driver.ticks(2 * SETTLED)
    assert (text(driver), ours(driver)) == ("*", {5})


def test_a_cordon_that_is_wanted_is_not_left_to_restore() -> None:
    driver = cordoning()
    record, brokers = driver.throttle.record, driver.kafka.brokers
    assert not left_to_restore(record, brokers, {5})
    assert left_to_restore(record, brokers)
    del brokers[5]
    assert not left_to_restore(record, brokers)


def test_a_rate_beside_a_wanted_cordon_is_left_to_restore() -> None:
    driver = cordoning()
    record = driver.throttle.record
    assert record is not None
    [five] = record.brokers
    rate = five.configs[0].model_copy(update={"name": LEADER_RATE, "value": "5"})
    five = five.model_copy(update={"configs": (*five.configs, rate)})
    assert left_to_restore(record.model_copy(update={"brokers": (five,)}), driver.kafka.brokers, {5})


def test_a_cordon_left_on_an_unregistered_id_goes_when_it_registers() -> None:
    driver = cordoning("/a")
    del driver.kafka.brokers[5]
    driver.cordons = frozenset()
    driver.ticks(20)
    assert (text(driver), ours(driver)) == ("*", {5})
    driver.restart()
    driver.ticks(2 * SETTLED)
    driver.kafka.brokers[5] = Broker(5)
    driver.ticks(5 * SETTLED)
    assert (text(driver), driver.throttle.record) == ("/a", None)


def test_a_broker_that_is_fenced_for_long_is_given_up() -> None:
    driver = cordoning()
    fence(driver, True)
    driver.cordons = frozenset()
    driver.tick()
    since = driver.now
    assert driver.memory.throttle.cordons.given_up(since + GIVEN_UP_SECONDS - 1) == set()
    assert driver.memory.throttle.cordons.given_up(since + GIVEN_UP_SECONDS) == {5}
    fence(driver, False)
    driver.tick()
    assert driver.memory.throttle.cordons.given_up(since + GIVEN_UP_SECONDS) == set()


def undone(driver: Driver) -> Driver:
    """A move of (5, 2, 3) that was cancelled, since its resource is being deleted; the order is to be restored."""
    driver.kafka.add(P0, (5, 2, 3))
    driver.resources = {"a": resource({P0: (4, 2, 3)})}
    driver.ticks(SETTLED + 2)
    assert P0 in driver.kafka.reassignments
    driver.delete("a")
    return driver


def test_a_refused_order_is_restored_once_the_cordon_is_lifted() -> None:
    driver = undone(cordoning())
    driver.cordons = frozenset()
    driver.ticks(30)
    assert (driver.kafka.replicas[P0], driver.gone, text(driver)) == ((5, 2, 3), {"a"}, None)


@pytest.mark.parametrize("theirs", [False, True])
def test_an_order_refused_by_a_cordon_that_stays_is_given_up(theirs: bool) -> None:
    driver = undone(cordoning("*" if theirs else None))
    driver.ticks(4)
    assert (driver.kafka.replicas[P0], driver.gone) == ((2, 3, 5), {"a"})
    assert driver.verdicts["a"].record[P0].problem is not None


def test_an_order_is_not_repeated_for_a_cordon_that_cannot_be_lifted() -> None:
    driver = undone(cordoning())
    fence(driver, True)
    driver.cordons = frozenset()
    driver.ticks(30)
    assert (driver.kafka.replicas[P0], driver.gone) == ((2, 3, 5), {"a"})


@pytest.mark.parametrize("reason", [Reason.NOT_AUTHORIZED, Reason.REQUEST_REFUSED])
def test_why_a_cordon_cannot_be_lifted_is_known_until_it_is(reason: Reason) -> None:
    driver = cordoning()
    driver.refuses_cordons = {5: refused(reason)}
    driver.cordons = frozenset()
    driver.ticks(SETTLED)
    assert {b: problem.reason for b, problem in driver.memory.throttle.cordons.unlifted.items()} == {5: reason}
    driver.refuses_cordons = {}
    driver.ticks(3 * SETTLED)
    assert (driver.memory.throttle.cordons.unlifted, text(driver)) == ({}, None)


def test_an_edited_entry_says_the_order_that_was_refused() -> None:
    driver = cordoning()
    driver.kafka.add(P0, (5, 2, 3))
    driver.kafka.add(P1, (0, 1, 2))
    driver.resources = {"a": resource({P0: (4, 2, 3)})}
    driver.ticks(SETTLED + 2)
    driver.edit("a", {P1: (0, 1, 2)})
    said = []
    for _ in range(SETTLED + 2):
        driver.tick()
        said += [driver.verdicts["a"].unrestored]
    assert {P0: (5, 2, 3)} in said
    assert driver.kafka.replicas[P0] == (2, 3, 5)
