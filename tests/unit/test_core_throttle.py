"""Throttles: set before anything moves, asserted again, restored byte for byte, and nothing of others' is touched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reassign.api.config_keys import FOLLOWER_RATE, LEADER_RATE, LISTS, LOG_DIR_RATE, RATES
from reassign.api.kafka_cluster import ThrottleUser
from reassign.api.limits import MAX_CONFIG_CHARACTERS
from reassign.core.configs import diff as throttle
from reassign.core.configs.desired import (
    InterBrokerMove,
    LogDirMove,
    ThrottledMove,
    WantedConfigs,
    log_dir_moves_of,
    wanted_configs,
)
from reassign.core.configs.diff import from_record
from reassign.core.configs.missing import missing_configs
from reassign.core.model.configs import Change, ConfigKey, Op, items
from reassign.core.model.recent_changes import LONGEST_STRICTER_SECONDS
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from tests.unit.configs import FOLLOWERS, LEADERS, SETTLED, Throttler, broker, copy, move, rates, store, topic
from tests.unit.examples import examples


def copy_between_dirs(
    partition: int = 0, brokers: Sequence[int] = (0,), rate: int | None = 700, user: str = "a"
) -> LogDirMove:
    user_ = ThrottleUser(namespace="kafka", name=user, uid=user) if rate else None
    return LogDirMove(TopicPartition("orders", partition), frozenset(brokers), user_, rate)


def log_dir_rates(throttler: Throttler) -> dict[int, str]:
    """The rate between directories, of the brokers that have one."""
    keys = {b: ConfigKey(broker(b), LOG_DIR_RATE) for b in range(4)}
    return {b: rate for b, key in keys.items() if (rate := throttler.at(key)) is not None}


def unthrottled(throttler: Throttler, *moves: ThrottledMove, live: Sequence[int] = range(4)) -> list[ConfigKey]:
    """What these moves lack of all that they need together."""
    found = missing_configs(moves, wanted_configs(moves, None), frozenset(live), throttler.store)
    return [key for key in found if key]


def test_moving_replicas_are_listed_and_their_brokers_have_the_rate() -> None:
    throttler = Throttler(store())
    throttler.tick([move()])
    assert (throttler.at(LEADERS), throttler.at(FOLLOWERS)) == ("0:0,0:1", "0:2")
    assert rates(throttler) == {0: "5000", 1: "5000", 2: "5000", 3: None}
    assert unthrottled(throttler, move()) == []


def test_the_lowest_requested_rate_counts_and_its_users_are_named() -> None:
    throttler = Throttler(store())
    moves = [move(), move(1, adding=(3,), rate=2000, user="b")]
    throttler.tick(moves)
    assert rates(throttler) == dict.fromkeys(range(4), "2000")
    assert throttler.status is not None
    assert throttler.status.inter_broker == 2000
    assert [user.name for user in throttler.status.users] == ["a", "b"]
    throttler.ticks(2 * SETTLED, moves[:1])
    assert rates(throttler) == {0: "5000", 1: "5000", 2: "5000", 3: None}
    assert [user.name for user in throttler.status.users] == ["a"]


def test_a_log_dir_copy_needs_only_the_rate_on_its_broker() -> None:
    before = store()
    throttler = Throttler(copy(before))
    throttler.ticks(SETTLED, [copy_between_dirs(brokers=[0, 2])])
    expected = copy(before)
    expected[broker(0)] = expected[broker(2)] = {LOG_DIR_RATE: "700"}
    assert throttler.store == expected
    assert throttler.status is not None
    assert (throttler.status.inter_broker, throttler.status.log_dir) == (None, 700)
    assert log_dir_moves_of(throttler.status) == {b: {TopicPartition("orders", 0)} for b in (0, 2)}
    throttler.ticks(2 * SETTLED, [copy_between_dirs(brokers=[2])])
    assert log_dir_rates(throttler) == {2: "700"}
    throttler.ticks(2 * SETTLED)
    assert (throttler.store, throttler.status) == (before, None)


def test_the_lowest_log_dir_rate_counts_alone_and_changes_in_flight() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move(), copy_between_dirs(), copy_between_dirs(1, [1], rate=300, user="b")])
    assert (rates(throttler)[0], log_dir_rates(throttler)) == ("5000", {0: "300", 1: "300"})
    assert throttler.status is not None
    assert [user.name for user in throttler.status.users] == ["a", "b"]
    throttler.ticks(SETTLED, [copy_between_dirs(rate=900)])
    assert (rates(throttler)[0], log_dir_rates(throttler)) == (None, {0: "900"})


def test_a_copy_that_no_resource_holds_keeps_the_rate_that_was_set_last() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [copy_between_dirs(rate=300)])
    throttler.ticks(2 * SETTLED, [copy_between_dirs(rate=None)])
    assert (throttler.status and throttler.status.log_dir, log_dir_rates(throttler)) == (300, {0: "300"})
    throttler.ticks(2 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_a_log_dir_rate_set_by_another_client_is_drift_and_restored() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [copy_between_dirs()])
    throttler.another_client(Change(ConfigKey(broker(0), LOG_DIR_RATE), Op.SET, "123"))
    drift = throttler.tick([copy_between_dirs()]).drift
    assert drift is not None
    assert f"{LOG_DIR_RATE} of broker 0 was 123 instead of 700" in drift.message
    assert log_dir_rates(throttler) == {0: "700"}
    throttler.ticks(2 * SETTLED)
    assert log_dir_rates(throttler) == {0: "123"}


@pytest.mark.parametrize("prior", [None, "", "7:1", "7:1, 8:2", "7:1,,8:2", "*", "7:1,7:1"])
def test_a_list_is_restored_byte_for_byte(prior: str | None) -> None:
    before = store() if prior is None else store(leaders=prior, followers=prior)
    throttler = Throttler(copy(before))
    throttler.ticks(SETTLED, [move()])
    assert throttler.at(FOLLOWERS) == ("*" if prior == "*" else Change(FOLLOWERS, Op.APPEND, "0:2").of(prior))
    throttler.ticks(2 * SETTLED)
    assert throttler.store == before
    assert throttler.status is None


def test_prior_rates_are_restored_and_others_are_removed() -> None:
    before = store()
    before[broker(1)] = {LEADER_RATE: "77", FOLLOWER_RATE: "88", LOG_DIR_RATE: "99"}
    throttler = Throttler(copy(before))
    throttler.ticks(SETTLED, [move(), copy_between_dirs(1, [0, 1])])
    assert (rates(throttler)[1], log_dir_rates(throttler)[1]) == ("5000", "700")
    throttler.ticks(2 * SETTLED)
    assert throttler.store == before
    assert throttler.status is None


def test_a_list_item_of_another_client_is_not_removed() -> None:
    throttler = Throttler(store(followers="0:2"))
    throttler.ticks(SETTLED, [move()])
    throttler.ticks(2 * SETTLED)
    assert throttler.at(FOLLOWERS) == "0:2"


def test_removed_list_items_are_set_again_and_reported() -> None:
    throttler = Throttler(store(followers="9:9"))
    throttler.ticks(SETTLED, [move()])
    throttler.another_client(Change(FOLLOWERS, Op.DELETE))
    throttler.another_client(Change(LEADERS, Op.DELETE))
    drift = throttler.tick([move()]).drift
    assert (throttler.at(LEADERS), throttler.at(FOLLOWERS)) == ("0:0,0:1", "0:2")
    assert drift is not None
    assert drift.reason is Reason.THROTTLE_DRIFT
    assert "follower.replication.throttled.replicas of topic orders had lost 0:2" in drift.message
    throttler.ticks(2 * SETTLED)
    assert throttler.at(FOLLOWERS) is None


def test_a_rate_that_another_client_sets_meanwhile_is_restored() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move()])
    throttler.another_client(Change(ConfigKey(broker(2), FOLLOWER_RATE), Op.SET, "123"))
    drift = throttler.tick([move()]).drift
    assert drift is not None
    assert "follower.replication.throttled.rate of broker 2 was 123 instead of 5000" in drift.message
    assert rates(throttler)[2] == "5000"
    throttler.ticks(2 * SETTLED)
    assert rates(throttler) == {0: None, 1: None, 2: "123", 3: None}


def test_a_rate_that_another_client_sets_before_the_restore_stays() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move()])
    throttler.another_client(Change(ConfigKey(broker(2), FOLLOWER_RATE), Op.SET, "123"))
    throttler.ticks(2 * SETTLED)
    assert rates(throttler)[2] == "123"


def test_a_rate_that_another_client_sets_right_after_us_stays() -> None:
    throttler = Throttler(store())
    throttler.tick([move()])
    throttler.another_client(Change(ConfigKey(broker(2), FOLLOWER_RATE), Op.SET, "123"))
    throttler.ticks(2 * SETTLED)
    assert rates(throttler) == {0: None, 1: None, 2: "123", 3: None}


def test_stale_reads_are_neither_drift_nor_a_reason_to_write_again() -> None:
    throttler = Throttler(store(), lag=2)
    throttler.tick()
    throttler.tick([move()])
    planned = [throttler.tick(moves) for moves in ([move()], [move()], [], [], [])]
    assert [plan.drift for plan in planned] == [None] * 5
    assert [bool(plan.changes) for plan in planned] == [False, False, True, False, False]


def test_a_throttle_that_lands_after_its_move_ended_is_removed() -> None:
    throttler = Throttler(store())
    throttler.tick([move()], lands_after=5)
    assert throttler.store == store()
    throttler.ticks(6 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_an_item_that_another_client_adds_between_two_moves_stays() -> None:
    throttler = Throttler(store())
    for moves in ([move()], [], [move(1)]):
        throttler.tick(moves)
    throttler.another_client(Change(LEADERS, Op.APPEND, "9:9"))
    throttler.ticks(2 * SETTLED)
    assert items(throttler.at(LEADERS)) == ("9:9",)


def test_a_rate_change_interrupted_by_a_crash_is_still_ours() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move()])
    throttler.tick([move(rate=2000)], die_after=1)
    assert rates(throttler)[2] == "5000"
    throttler.ticks(2 * SETTLED, [move(rate=2000)])
    assert rates(throttler)[2] == "2000"
    throttler.ticks(2 * SETTLED)
    assert throttler.store == store()


def test_a_process_that_has_just_started_reads_no_prior_value() -> None:
    throttler = Throttler(store())
    throttler.restart()
    assert throttler.tick([move()]).record is None
    throttler.ticks(SETTLED, [move()])
    assert throttler.at(FOLLOWERS) == "0:2"


def test_a_broker_that_is_down_delays_no_other_and_gets_the_rate_later() -> None:
    throttler = Throttler(store(), down={broker(2)})
    throttler.ticks(SETTLED, [move()])
    assert rates(throttler) == {0: "5000", 1: "5000", 2: None, 3: None}
    assert unthrottled(throttler, move(), live=[0, 1]) == []
    assert unthrottled(throttler, move()) == [ConfigKey(broker(2), LEADER_RATE)]
    throttler.down.clear()
    throttler.tick([move()])
    assert rates(throttler)[2] == "5000"
    throttler.ticks(1, [move()])
    throttler.down.add(broker(2))
    throttler.ticks(2 * SETTLED)
    assert throttler.status is not None
    assert [b.broker for b in throttler.status.brokers] == [2]
    throttler.down.clear()
    throttler.ticks(2 * SETTLED)
    assert (throttler.store, throttler.status) == (store(), None)


def test_a_topic_that_is_gone_needs_no_restoring() -> None:
    throttler = Throttler(store())
    throttler.ticks(SETTLED, [move()])
    read = {**throttler.store, topic(): None}
    throttler.lately = throttler.lately.observe(throttler.now + SETTLED)
    planned = throttle.diff(throttler.status, WantedConfigs(), read, throttler.lately)
    assert planned.record is not None
    assert planned.record.topics == ()


def test_moves_without_room_in_the_record_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(throttle, "MAX_THROTTLE_RECORD_BYTES", 1500)
    moves = [move(number) for number in range(200)]
    throttler = Throttler(store())
    throttler.lately = throttler.lately.observe(throttler.now)
    planned, kept = throttle.fit(None, moves, throttler.store, throttler.lately)
    assert kept == moves[: len(kept)]
    assert 0 < len(kept) < 200
    assert planned.record is not None
    [listed] = planned.record.topics
    assert len(items(listed.configs[0].value)) == len(kept)


def test_log_dir_copies_without_room_in_the_record_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    throttler = Throttler(store())
    recorded = [copy_between_dirs(number) for number in range(20)]
    throttler.ticks(SETTLED, recorded)
    monkeypatch.setattr(throttle, "MAX_THROTTLE_RECORD_BYTES", 200)
    moves = [*recorded, *(copy_between_dirs(number, [1]) for number in range(50))]
    _, kept = throttle.fit(throttler.status, moves, throttler.store, throttler.lately)
    assert kept == recorded


def test_no_list_grows_past_what_a_broker_takes() -> None:
    others = ",".join(f"{number}:1" for number in range(4500))
    throttler = Throttler(store(followers=others))
    throttler.tick([move(number + 5000) for number in range(400)])
    text = throttler.at(FOLLOWERS)
    assert text is not None
    assert len(others) < len(text) <= MAX_CONFIG_CHARACTERS


TOPICS = (LEADERS, FOLLOWERS)
BROKER_RATES = (*RATES, LOG_DIR_RATE)
RATE_SPOTS = tuple(ConfigKey(broker(b), config) for b in range(3) for config in BROKER_RATES)
THEIRS = st.sampled_from(["90:1", "91:2", "92:3"])
TEXTS = st.one_of(st.none(), st.just(""), st.just("90:1, 91:2"), st.just("*"), THEIRS)
MOVES = st.builds(
    move,
    st.integers(0, 2),
    st.just((0,)),
    st.sampled_from([(1,), (2,), (1, 2)]),
    st.sampled_from([5000, 2000, 9000]),
    st.sampled_from("ab"),
) | st.builds(
    copy_between_dirs,
    st.integers(0, 2),
    st.sampled_from([(0,), (1,), (0, 1)]),
    st.sampled_from([5000, 700]),
    st.sampled_from("ab"),
)


class Throttles(RuleBasedStateMachine):
    """Moves come and go, others edit the same configurations, processes die; at the end nothing of ours is left."""

    @initialize(leaders=TEXTS, followers=TEXTS, rates=st.dictionaries(st.sampled_from(BROKER_RATES), st.just("77")))
    def begin(self, leaders: str | None, followers: str | None, rates: dict[str, str]) -> None:
        lists = {name: text for name, text in (("leaders", leaders), ("followers", followers)) if text is not None}
        start = store(**lists)
        start[broker(1)] = rates
        self.throttler = Throttler(copy(start))
        self.without_us = copy(start)
        """What there would be, had only the others done anything."""
        self.edited: set[ConfigKey] = set()
        self.moves: dict[tuple[type, TopicPartition], ThrottledMove] = {}

    def edit(self, change: Change) -> None:
        self.throttler.another_client(change)
        text = change.of(self.without_us[change.key.resource].get(change.key.config))
        self.without_us[change.key.resource].pop(change.key.config, None)
        if text is not None:
            self.without_us[change.key.resource][change.key.config] = text
        self.edited.add(change.key)

    @rule(wanted=MOVES)
    def begins_to_move(self, wanted: ThrottledMove) -> None:
        self.moves[type(wanted), wanted.tp] = wanted

    @rule(kind=st.sampled_from([InterBrokerMove, LogDirMove]), partition=st.integers(0, 2))
    def is_done(self, kind: type, partition: int) -> None:
        self.moves.pop((kind, TopicPartition("orders", partition)), None)

    @rule(count=st.integers(1, 5))
    def goes_on(self, count: int) -> None:
        self.throttler.ticks(count, list(self.moves.values()))

    @rule(dies=st.integers(0, 6))
    def is_killed(self, dies: int) -> None:
        self.throttler.tick(list(self.moves.values()), die_after=dies)

    @rule(seconds=st.integers(0, 6))
    def loses_answers(self, seconds: int) -> None:
        self.throttler.tick(list(self.moves.values()), lands_after=seconds)

    @rule(ticks=st.integers(0, 2))
    def reads_lag(self, ticks: int) -> None:
        self.throttler.lag = ticks

    @rule(number=st.integers(0, 2), down=st.booleans())
    def a_broker_goes_or_comes(self, number: int, down: bool) -> None:
        (self.throttler.down.add if down else self.throttler.down.discard)(broker(number))

    @rule(key=st.sampled_from(TOPICS), op=st.sampled_from([Op.APPEND, Op.SUBTRACT]), item=THEIRS)
    def others_add_and_take_items(self, key: ConfigKey, op: Op, item: str) -> None:
        self.edit(Change(key, op, item))

    @rule(key=st.sampled_from(TOPICS), text=TEXTS)
    def others_replace_a_list(self, key: ConfigKey, text: str | None) -> None:
        self.edit(Change(key, Op.DELETE) if text is None else Change(key, Op.SET, text))

    @rule(key=st.sampled_from(RATE_SPOTS), text=st.sampled_from([None, "123", "456"]))
    def others_set_a_rate(self, key: ConfigKey, text: str | None) -> None:
        self.edit(Change(key, Op.DELETE) if text is None else Change(key, Op.SET, text))

    @invariant()
    def what_is_ours_is_recorded(self) -> None:
        if not hasattr(self, "throttler"):
            return
        record = from_record(self.throttler.status)
        for key in TOPICS:
            ours = {item for item in items(self.throttler.at(key)) if not item.startswith("9") and item != "*"}
            assert ours <= set(items(record[key].value) if key in record else ())

    def teardown(self) -> None:
        if not hasattr(self, "throttler"):
            return
        throttler = self.throttler
        throttler.lag = 0
        throttler.down.clear()
        throttler.now += LONGEST_STRICTER_SECONDS  # others change nothing any more
        moves = list(self.moves.values())
        throttler.ticks(6 * SETTLED, moves)
        assert unthrottled(throttler, *moves) == []
        throttler.ticks(6 * SETTLED)
        assert throttler.status is None
        for resource, configs in self.without_us.items():
            for config in (*BROKER_RATES, *LISTS):
                key, expected = ConfigKey(resource, config), configs.get(config)
                found = throttler.at(key)
                if key in self.edited and key in TOPICS:
                    assert sorted(set(items(found))) == sorted(set(items(expected)))
                else:
                    assert found == expected, key


TestThrottles = Throttles.TestCase
TestThrottles.settings = examples(150, stateful_step_count=25)


@pytest.mark.parametrize(
    ("op", "value", "before", "after"),
    [
        (Op.APPEND, "0:3,0:1,0:2", "0:1", "0:1,0:3,0:2"),
        (Op.APPEND, "0:3", None, "0:3"),
        (Op.APPEND, "0:3", "*", "*"),
        (Op.SUBTRACT, "0:1,9:9", "0:2,0:1,0:3", "0:2,0:3"),
        (Op.SUBTRACT, "0:1", "0:1,0:2,0:1", "0:2,0:1"),
        (Op.SUBTRACT, "0:1", "0:1", ""),
    ],
)
def test_items_are_added_once_and_taken_out_once_in_order(op: Op, value: str, before: str | None, after: str) -> None:
    assert Change(FOLLOWERS, op, value).of(before) == after
