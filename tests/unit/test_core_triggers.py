"""Triggers: levels by what was watched of brokers, in sentences and in random histories beside the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reassign.api.limits import MAX_PLAN_BROKERS
from reassign.api.reassignment_policy import PlanTemplate, Trigger
from reassign.api.reassignment_record import RecordedPolicy
from reassign.core.automation.model import BrokerSeen, BrokersSeen
from reassign.core.automation.schedule import ScheduleState
from reassign.core.automation.timers import Timer
from reassign.core.automation.triggers import (
    Level,
    broker_lost,
    brokers_added,
    brokers_cordoned,
    down_now,
    few_of,
    level_of,
    lost_racks,
    on_schedule,
    problem_of,
    too_many,
)
from reassign.core.automation.watch import Few, Watched, added_brokers, read_watched, recorded_watch, watch
from reassign.core.model.forwarding import Clock
from reassign.core.model.problem import Problem
from reassign.errors import Reason
from tests.unit.examples import examples

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GAP = 120.0
NONE: frozenset[int] = frozenset()


def at(seconds: float, monotonic: float | None = None) -> Clock:
    return Clock(seconds if monotonic is None else monotonic, START + timedelta(seconds=seconds))


def up(replicas: int = 9, **changes: Any) -> BrokerSeen:
    return BrokerSeen(replicas={"t": replicas} if replicas else {}, **changes)


def fenced(replicas: int = 9, **changes: Any) -> BrokerSeen:
    return up(replicas, fenced=True, **changes)


def gone(replicas: int = 9) -> BrokerSeen:
    return up(replicas, registered=False)


def cluster(*brokers: BrokerSeen, **changes: Any) -> BrokersSeen:
    return BrokersSeen(dict(enumerate(brokers)), frozenset({"t"}), **changes)


def watched(*seen: BrokersSeen, every: float = 60, **options: Any) -> Watched:
    found = Watched()
    for number, each in enumerate(seen):
        found = watch(
            found,
            each,
            options.get("ours", NONE),
            options.get("ignored", NONE),
            options.get("few"),
            at(number * every),
        )
    return found


def lasting(timers: Mapping[int, Timer]) -> dict[int, float]:
    return {broker: timer.seconds for broker, timer in timers.items()}


# --- What is watched ---


@pytest.mark.parametrize("down", [fenced(), gone(), fenced(0, in_flight={"t": 1})])
def test_a_broker_that_has_replicas_and_is_down_has_a_timer(down: BrokerSeen) -> None:
    assert lasting(watched(*[cluster(up(), down)] * 3).down) == {1: 120}


@pytest.mark.parametrize("other", [up(), fenced(0), gone(0)])
def test_no_other_broker_has_one(other: BrokerSeen) -> None:
    assert watched(*[cluster(up(), other)] * 3).down == {}


def test_a_broker_that_is_to_be_emptied_counts_in_no_trigger() -> None:
    both = cluster(up(100), fenced(), up(cordoned=True), up(0))
    few = Few(20)
    assert watched(both, ignored=NONE, few=few).down.keys() == {1}
    found = watched(both, ignored=frozenset({1, 2, 3}), few=few)
    assert (found.down, found.cordoned, found.added) == ({}, {}, NONE)


def test_a_cordon_counts_that_others_have_set_on_a_broker_that_is_up() -> None:
    seen = cluster(up(cordoned=True), up(cordoned=True), fenced(cordoned=True), up(0, cordoned=True), up())
    assert lasting(watched(seen, seen, ours=frozenset({1})).cordoned) == {0: 60}


def test_a_cordon_that_is_not_known_for_a_while_changes_nothing() -> None:
    known, unknown = cluster(up(cordoned=True)), cluster(up(cordoned=None))
    assert lasting(watched(known, unknown, known).cordoned) == {0: 120}
    assert watched(unknown, unknown).cordoned == {}


@pytest.mark.parametrize(("age", "counts"), [(120, True), (121, False), (None, True)])
def test_a_cordon_that_was_asked_for_long_ago_is_not_known(age: float | None, counts: bool) -> None:
    asked = cluster(up(cordoned=True), cordons_at=None if age is None else 60 - age)
    assert bool(watch(Watched(), asked, NONE, NONE, None, at(60)).cordoned) is counts


def test_a_cordon_counts_from_one_reading_to_the_next() -> None:
    read, again = (cluster(up(cordoned=True), cordons_at=when) for when in (0.0, 61.0))
    assert lasting(watched(read, read, read, every=40).cordoned) == {0: 0}
    assert lasting(watched(read, read, read, again, every=40).cordoned) == {0: 61}


def test_a_cordon_of_ours_that_was_lifted_is_not_one_of_others() -> None:
    read, lifted = cluster(up(cordoned=True), cordons_at=0.0), cluster(up(cordoned=False), cordons_at=61.0)
    ours = watch(Watched(), read, {0}, NONE, None, at(0))
    stale = watch(ours, read, NONE, NONE, None, at(62))
    stale = watch(stale, read, NONE, NONE, None, at(118))
    assert lasting(stale.cordoned) == {0: 0}
    assert watch(stale, lifted, NONE, NONE, None, at(121)).cordoned == {}


def test_what_reached_no_controller_counts_for_nothing() -> None:
    before = watched(cluster(up(), fenced()))
    unheard = cluster(up(), up(), forwarded=False)
    assert watch(before, unheard, NONE, NONE, None, at(60)) is before


@pytest.mark.parametrize(("age", "counts"), [(600, True), (601, False), (-1, False)])
def test_a_count_of_replicas_holds_for_ten_minutes(age: float, counts: bool) -> None:
    before = watched(cluster(up()))
    after = watch(before, cluster(fenced(), counted_at=1000 - age), NONE, NONE, None, at(60, 1000))
    assert bool(after.down) is counts


def test_few_replicas_are_below_a_share_of_the_mean() -> None:
    hosts = {0: up(100), 1: up(100), 2: up(10), 3: up(9)}
    assert added_brokers(hosts, Few(20)) == {2, 3}
    assert added_brokers(hosts, Few(19)) == {2, 3}
    assert added_brokers(hosts, Few(18)) == {3}
    assert added_brokers({0: up(0), 1: up(0)}, Few(80)) == NONE


def test_brokers_that_get_no_replicas_do_not_count_as_added() -> None:
    hosts = {0: up(100), 1: up(0), 2: fenced(0), 3: up(0, cordoned=True), 4: up(0), 5: up(0)}
    assert added_brokers(hosts, Few(20, frozenset({0, 1, 2, 3, 5}), frozenset({5}))) == {1}


def test_another_set_of_added_brokers_begins_anew() -> None:
    one, two = cluster(up(), up(), up(0)), cluster(up(), up(), up(0), up(0))
    found = watched(one, one, two, few=Few(20))
    assert found.added == {2, 3}
    assert found.added_for
    assert found.added_for.seconds == 0
    again = watched(one, one, two, two, few=Few(20)).added_for
    assert again
    assert again.seconds == 60


UNSETTLING: dict[str, tuple[BrokerSeen, BrokerSeen | None]] = {
    "is fenced": (up(), fenced()),
    "comes back": (fenced(), up()),
    "is unregistered": (fenced(0), None),
    "is unregistered while replicas name it": (fenced(), gone()),
}


@pytest.mark.parametrize(("before", "after"), UNSETTLING.values(), ids=UNSETTLING.keys())
def test_a_broker_that_comes_or_goes_unsettles(before: BrokerSeen, after: BrokerSeen | None) -> None:
    first, then = cluster(up(), before), cluster(up(), *([after] if after else []))
    assert _settled(first, first) == 60
    assert _settled(first, first, then) == 0
    assert _settled(first, then, then) == 60


def test_a_broker_that_registers_unsettles() -> None:
    assert _settled(cluster(up()), cluster(up()), cluster(up(), up(0))) == 0


@pytest.mark.parametrize("way", [(up(0), fenced(0)), (fenced(0), up(0)), (up(), up(0)), (up(0), up())])
def test_what_moves_no_broker_with_replicas_unsettles_nothing(way: tuple[BrokerSeen, BrokerSeen]) -> None:
    assert _settled(cluster(up(), way[0]), cluster(up(), way[1])) == 60


def _settled(*seen: BrokersSeen) -> float:
    timer = watched(*seen).settled
    assert timer
    return timer.seconds


def test_an_outage_begins_all_timers_anew() -> None:
    seen = cluster(up(), fenced(), up(cordoned=True), up(0))
    found = watched(*[seen] * 40, few=Few(20))
    later = watch(found, seen, NONE, NONE, Few(20), at(39 * 60 + 3600))
    assert found.settled
    assert later.settled
    assert later.added_for
    assert (lasting(later.down), lasting(later.cordoned)) == ({1: 0}, {2: 0})
    assert (found.settled.seconds, later.settled.seconds, later.added_for.seconds) == (39 * 60, 0, 0)


def test_timers_that_began_apart_are_written_together() -> None:
    record, writes, found = RecordedPolicy(), list[float](), Watched()
    for tick in range(60):
        states = [up(), *(fenced() if tick >= begun else up() for begun in (20, 21, 22))]
        found = watch(found, cluster(*states), NONE, NONE, None, at(15 * tick))
        after = record.model_copy(update=recorded_watch(record, found, 60))
        writes, record = [*writes, 15.0 * tick] if after != record else writes, after
    assert [second for second in writes if second < 300] == [0, 60]
    assert [second for second in writes if second >= 330] == [330 + 60 * minute for minute in range(10)]


def test_what_is_recorded_is_read_back_the_same() -> None:
    found = watched(*[cluster(up(), fenced(), up(cordoned=True), up(0))] * 3, few=Few(20))
    record = RecordedPolicy().model_copy(update=recorded_watch(RecordedPolicy(), found, 600))
    read = read_watched(RecordedPolicy.parse(record.wire()))
    assert (read.added, read.up, read.fenced) == (frozenset({3}), frozenset({0, 2, 3}), frozenset({1}))
    assert (lasting(read.down), lasting(read.cordoned)) == ({1: 120}, {2: 120})
    assert read.settled
    assert read.added_for
    assert (read.settled.seconds, read.added_for.seconds) == (120, 120)


def test_a_record_is_written_each_minute_and_when_something_changes() -> None:
    seen, record, writes = cluster(up(), fenced(), up(0)), RecordedPolicy(), 0
    found = Watched()
    for tick in range(40):
        found = watch(found, seen, NONE, NONE, Few(20), at(15 * tick))
        after = record.model_copy(update=recorded_watch(record, found, 600))
        writes, record = writes + (after != record), after
    assert writes == 10
    found = watch(found, cluster(up(), up(), up(0)), NONE, NONE, Few(20), at(600))
    assert record.model_copy(update=recorded_watch(record, found, 600)).brokers == ()


# --- Levels ---


def timers(**seconds: float) -> dict[int, Timer]:
    return {int(broker[1:]): Timer(number, START, 0) for broker, number in seconds.items()}


def test_brokers_are_lost_that_have_been_down_for_long_enough() -> None:
    level = broker_lost(60, cluster(up()), Watched(down=timers(b1=60, b2=59.9)))
    assert (level.true, level.brokers) == (True, frozenset({1}))
    waits = broker_lost(60, cluster(up()), Watched(down=timers(b2=59.9)))
    assert (waits.true, waits.waits, waits.brokers) == (False, True, frozenset({2}))
    assert broker_lost(60, cluster(up()), Watched()) == Level(message="no broker that has replicas is down")


def test_lost_brokers_are_not_told_from_others_before_kafka_4() -> None:
    level = broker_lost(60, cluster(up(), lists_fenced=False), Watched(down=timers(b1=3600)))
    assert (level.true, level.reason) == (False, "NotSupported")


def test_cordoned_brokers_count_after_their_time() -> None:
    assert brokers_cordoned(300, Watched(cordoned=timers(b4=300))).brokers == {4}
    assert not brokers_cordoned(300, Watched(cordoned=timers(b4=299))).true


def test_of_more_cordoned_brokers_than_a_plan_may_name_the_first_count() -> None:
    many = {broker: Timer(300, START, 0) for broker in range(MAX_PLAN_BROKERS + 1)}
    level = brokers_cordoned(300, Watched(cordoned=many))
    assert level.brokers == frozenset(range(MAX_PLAN_BROKERS))
    assert level.message.endswith("280 more have been cordoned for 300 s; a plan empties 300 at most")


def test_added_brokers_count_after_their_time() -> None:
    found = Watched(added=frozenset({7}), added_for=Timer(600, START, 0))
    assert brokers_added(600, found).brokers == {7}
    assert brokers_added(601, found).waits
    assert not brokers_added(600, Watched()).true


def test_a_schedule_is_true_while_a_moment_is_due() -> None:
    assert on_schedule(ScheduleState(None, due=START)).moment == START
    assert not on_schedule(ScheduleState(None, following=START)).true
    bad = on_schedule(ScheduleState(None, problem=Problem(Reason.INVALID_SCHEDULE, "no")))
    assert (bad.true, bad.reason) == (False, "InvalidSchedule")


def test_a_trigger_has_the_level_of_its_kind() -> None:
    found = Watched(timers(b1=60), timers(b2=60), frozenset({3}), Timer(60, START, 0))
    kinds = {"brokerLost": {1}, "brokersCordoned": {2}, "brokersAdded": {3}}
    for kind, brokers in kinds.items():
        trigger = Trigger.parse({"name": "t", kind: {"afterSeconds": 60}})
        assert level_of(trigger, cluster(up()), found, None).brokers == brokers
    schedule = Trigger.parse({"name": "t", "schedule": {"cron": "0 2 * * 6"}})
    assert level_of(schedule, cluster(up()), found, ScheduleState(None, due=START)).true


def test_a_message_does_not_change_by_the_time_alone() -> None:
    def said(after: float) -> list[str]:
        found = Watched(timers(b1=after), timers(b2=after), frozenset({3}), Timer(after, START, 0))
        levels = broker_lost(600, cluster(up()), found), brokers_cordoned(600, found), brokers_added(600, found)
        return [level.message for level in levels]

    assert said(1) == said(599)
    assert said(600) == said(6000)


def test_the_goal_says_which_brokers_may_have_few_replicas() -> None:
    trigger = Trigger.parse({"name": "t", "brokersAdded": {"belowPercent": 30}})
    template = PlanTemplate.parse({"goal": {"balance": {}, "brokers": [1, 2], "avoidBrokers": [2]}})
    assert few_of(trigger, template) == Few(30, frozenset({1, 2}), frozenset({2}))
    assert few_of(trigger, PlanTemplate.parse({"goal": {"balance": {}}})) == Few(30)
    assert few_of(Trigger.parse({"name": "t", "brokerLost": {}}), template) is None
    assert few_of(None, template) is None


def test_more_brokers_than_may_be_replaced_are_down_now() -> None:
    seen = cluster(fenced(), gone(), fenced(0), up(), fenced())
    assert down_now(seen, frozenset({4})) == {0, 1}
    assert too_many({0, 1}, 2) is None
    assert too_many({0, 1}, 1) == "brokers 0 and 1 are down, and maxBrokers is 1: a user decides what becomes of them"


def test_a_rack_is_lost_with_all_of_its_brokers_but_not_with_its_only_one() -> None:
    racks = [up(rack="a"), fenced(rack="a"), fenced(rack="b"), fenced(rack="c"), fenced(rack="c"), fenced(0, rack="b")]
    assert lost_racks(cluster(*racks), {1, 2, 3}) == {"c": frozenset({3, 4})}
    assert lost_racks(cluster(fenced(), fenced()), {0, 1}) == {}


def test_of_brokers_that_are_gone_no_rack_is_known() -> None:
    rack = [up(rack="a"), gone(), gone()]
    assert lost_racks(cluster(*rack), {1, 2}) == {}
    assert lost_racks(cluster(*rack, fenced(rack="b")), {1, 2, 3}) == {}
    others = [fenced(rack="b"), fenced(rack="b")]
    assert lost_racks(cluster(*rack, *others), {1, 2, 3}) == {"b": frozenset({3, 4})}


def test_schedules_that_cannot_be_read_are_named() -> None:
    bad = ScheduleState(None, problem=Problem(Reason.INVALID_SCHEDULE, "spec.triggers[a]: no"))
    assert problem_of({"a": ScheduleState(None)}) is None
    found = problem_of({"a": bad, "b": bad, "c": ScheduleState(None)})
    assert found == Problem(Reason.INVALID_SCHEDULE, "spec.triggers[a]: no; so it is with 1 other trigger")


# --- Random histories, and a model that knows the truth ---

AFTER = 600.0
STATE = {"up": up(), "down": fenced(), "gone": gone(), "cordoned": up(), "new": up(0)}


@dataclass
class History:
    """One broker of three, whose state changes; it is watched, by one process after the other."""

    now: float = 0
    state: str = "up"
    changes: list[tuple[float, str]] = field(default_factory=lambda: [(0.0, "up")])
    offset: float = 0
    process: int = 0
    seen: list[tuple[float, int, str]] = field(default_factory=list)
    watched: Watched = field(default_factory=Watched)
    record: RecordedPolicy = field(default_factory=RecordedPolicy)
    clock_set: bool = False

    def change(self, state: str) -> None:
        is_new = state == "new" and self.seen and self.seen[-1][2] == "down"
        self.state = "up" if is_new else state  # it was seen down with replicas, and comes back with them
        self.changes.append((self.now, self.state))

    def restart(self) -> None:
        self.process += 1
        self.watched = read_watched(self.record)

    def observe(self, counts: bool) -> None:
        known = replace(STATE[self.state], cordoned=self.state == "cordoned")
        of = known if counts else fenced()  # what brokers say that reach no controller may be long ago
        seen = cluster(up(cordoned=False), up(cordoned=False), of, forwarded=counts)
        clock = at(self.now + self.offset, self.now + 7919.0 * self.process)
        self.watched = watch(self.watched, seen, NONE, NONE, Few(20), clock)
        self.record = self.record.model_copy(update=recorded_watch(self.record, self.watched, AFTER))
        if counts:
            self.seen.append((self.now, self.process, self.state))
            self.check()

    def check(self) -> None:
        down, cordoned = {"down", "gone"}, {"cordoned"}
        self.compare(broker_lost(int(AFTER), cluster(up()), self.watched).true, down.__contains__)
        self.compare(brokers_cordoned(int(AFTER), self.watched).true, cordoned.__contains__)
        self.compare(brokers_added(int(AFTER), self.watched).true, {"new"}.__contains__)
        settled = self.watched.settled
        assert settled
        self.compare(settled.seconds >= AFTER, None)

    def compare(self, true: bool, holds: Callable[[str], bool] | None) -> None:
        """Where it is true, it has held for so long but for short flaps; where it was watched so long, it is true.

        `holds` is None where nothing may have changed at all.
        """
        if true:
            assert self.held(holds) >= AFTER - 1e-6, "early"
        if self.watched_for(holds) >= AFTER:
            assert true, "missed"

    def held(self, holds: Callable[[str], bool] | None) -> float:
        """For how long it has held in truth, but for what changed and changed back in a gap, and could not be seen."""
        states = [*self.changes, (self.now, self.state)]
        since = self.now
        for number in range(len(states) - 2, -1, -1):
            (begin, state), end = states[number], states[number + 1][0]
            same = _ups(state) == _ups(self.state) if holds is None else holds(state)
            if not same and not self.unseen(begin, end):
                return self.now - since
            since = begin if same else since
        return float("inf") if holds is None or holds(states[0][1]) else self.now - since

    def unseen(self, begin: float, end: float) -> bool:
        """Whether nobody has looked between, for no longer than a gap; or the clock hides how long."""
        if any(begin <= when < end for when, _, _ in self.seen):
            return False
        before = [when for when, _, _ in self.seen if when < begin]
        after = [when for when, _, _ in self.seen if when >= end]
        return bool(before and after) and (after[0] - before[-1] <= GAP + 61 or self.clock_set)

    def watched_for(self, holds: Callable[[str], bool] | None) -> float:
        """For how long the last process has seen it hold without a long gap; what began it does not count."""
        total, (last, process, state) = 0.0, self.seen[-1]
        if holds and not holds(state):
            return -1.0
        for when, of, was in reversed(self.seen[:-1]):
            same = was == state if holds is None else holds(was)
            if of != process or last - when > GAP or not same:
                break
            total, last = total + last - when, when
        return total


def _ups(state: str) -> str:
    return {"cordoned": "up", "new": "up"}.get(state, state)


STATES = st.sampled_from(["up", "down", "gone", "cordoned", "new"])
WATCH = st.tuples(st.just("watch"), st.integers(5, 60), st.integers(1, 30))
LOOK = st.tuples(st.just("watch"), st.integers(60, 300), st.just(1))
CHANGE = st.tuples(st.just("change"), st.integers(0, 150), STATES)
OUTAGE = st.tuples(st.just("outage"), st.integers(5, 60), st.integers(1, 100))
RESTART = st.tuples(st.just("restart"), st.integers(1, 300), st.just(0))
CLOCK = st.tuples(st.just("clock"), st.integers(0, 5), st.integers(-4000, 4000))
Step = tuple[str, int, Any]


def live(steps: Sequence[Step]) -> None:
    history = History()
    history.observe(True)
    for what, after, value in [*steps, ("watch", 30, 25)]:
        for _ in range(value if what in ("watch", "outage") else 1):
            history.now += after
            match what:
                case "watch":
                    history.observe(True)
                case "outage":
                    history.observe(False)
                case "change":
                    history.change(value)
                case "restart":
                    history.restart()
                case "clock":
                    history.offset += value
                    history.clock_set = True


@examples(400)
@given(st.lists(WATCH | LOOK | CHANGE | OUTAGE | RESTART, max_size=30))
def test_no_trigger_is_early_and_none_is_missed(steps: list[Step]) -> None:
    live(steps)


@examples(400)
@given(st.lists(WATCH | LOOK | CHANGE | OUTAGE | RESTART | CLOCK, max_size=30))
def test_no_clock_makes_a_trigger_early_within_a_process(steps: list[Step]) -> None:
    live(steps)


def test_a_broker_that_flaps_every_five_minutes_is_never_lost() -> None:
    history, true = History(), list[bool]()
    for tick in range(4 * 60 * 24):
        history.now = 15.0 * tick
        if tick % 20 == 0:
            history.change("down" if tick % 40 else "up")
        history.observe(True)
        true.append(broker_lost(int(AFTER), cluster(up()), history.watched).true)
    assert not any(true)


def test_a_rolling_restart_leaves_nothing_lost_and_nothing_settled() -> None:
    found, second = Watched(), 0.0
    for broker in range(3):
        for down in (True, False):
            for _ in range(6):
                states = [up(), up(), up()]
                states[broker] = fenced() if down else up()
                second += 15
                found = watch(found, cluster(*states), NONE, NONE, None, at(second))
                assert not broker_lost(600, cluster(up()), found).true
                assert found.settled
                assert found.settled.seconds < 600


def test_a_replaced_broker_that_stays_registered_is_nothing_for_a_month() -> None:
    seen = cluster(up(), up(), fenced(0))
    found = watched(*[seen] * 100)
    late = replace(found, settled=Timer(30 * 24 * 3600, START, 99 * 60))
    after = watch(late, seen, NONE, NONE, None, at(100 * 60))
    assert (after.down, down_now(seen, NONE)) == ({}, NONE)
    assert after.settled
    assert after.settled.seconds == 30 * 24 * 3600 + 60
