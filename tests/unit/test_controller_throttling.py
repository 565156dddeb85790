"""What is altered only when it is throttled, what a KafkaCluster waits for, and what its status says meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from reassign.api.config_keys import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.cluster.observer import Observer
from reassign.controller.metrics import Metrics
from reassign.controller.plans.planner import Planner
from reassign.controller.plans.plans import Plans
from reassign.core.configs import diff as throttle
from reassign.core.configs.desired import InterBrokerMove, LogDirMove, bounded, desired, rates_of
from reassign.core.configs.stage import left_in_flight
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.configs import ConfigKey, ConfigResource, ConfigResourceType
from reassign.core.model.memory import Instructed
from reassign.core.model.row import SayingKind
from reassign.core.model.snapshot import LogDir, LogDirs, Snapshot, Topic, TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs
from reassign.core.model.verdict import Verdict
from reassign.errors import ClusterError, ConflictError, Reason
from reassign.kafka.connection import Connection
from tests.unit.configs import broker, copy, topic
from tests.unit.sim import SimKafka, drive, resource, true_conditions
from tests.unit.throttled_brokers import MOVING, NEW, OLD, P0, P1, START, Client, snapshot
from tests.unit.throttling import KEY, Operator, ended, grow_up, show_changes, with_steps


def dirs(future: int | None = None, copied: bool = False) -> LogDirs:
    """Broker 0 and 1 have P0 in /a, broker 0 in /b when it is `copied`; `future` bytes of a copy to there."""
    futures = {} if future is None else {P0: future}
    here = LogDir(logs={} if copied else {P0: 100})
    there = LogDir(logs={P0: 100} if copied else {}, futures=futures)
    return {0: {"/a": here, "/b": there}, 1: {"/a": LogDir(logs={P0: 100}), "/b": LogDir()}}


def shown(log_dirs: LogDirs, **options: Any) -> Snapshot:
    return replace(snapshot(**options), log_dirs=log_dirs)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def operator(client: Client) -> Operator:
    """One whose process is not new any more."""
    found = Operator(client)
    found.grow_up()
    return found


def test_without_a_throttle_nothing_is_asked_and_nothing_written(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, None)
    assert not operator.tick(snapshot(), [verdict])
    assert (client.asked, operator.api.recorded) == (0, None)
    assert operator.after(verdict).steps == (Alter(P0, NEW),)


def test_a_move_is_altered_in_the_tick_that_throttles_it(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    assert operator.tick(snapshot(), [verdict])
    assert operator.after(verdict).steps == (Alter(P0, NEW),)
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"
    assert client.store[broker(2)][LEADER_RATE] == "5120"


def test_a_new_process_waits_before_it_starts_a_throttled_move(client: Client) -> None:
    operator = Operator(client)
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(), [verdict])
    left = operator.after(verdict)
    assert (left.steps, left.record, client.changes) == ((), {}, [])
    problem = left.rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert problem.reason is Reason.THROTTLE_NOT_SET


def test_nothing_is_changed_before_the_record_is_in_the_status(operator: Operator, client: Client) -> None:
    operator.api.refuses = True
    with pytest.raises(ConflictError):
        operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert client.changes == []


@pytest.mark.parametrize("resource", [topic(), broker(2)], ids=str)
@pytest.mark.parametrize("how", ["denied", "hidden"])
def test_a_move_that_cannot_be_throttled_is_blocked_with_the_reason(
    operator: Operator, client: Client, resource: ConfigResource, how: str
) -> None:
    getattr(client, how).add(resource)
    throttled = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    free = operator.verdict("b", {P1: (OLD, NEW)}, None)
    operator.tick(snapshot(), [throttled, free])
    assert operator.after(throttled).steps == ()
    problem = operator.after(throttled).rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED
    assert operator.after(free).steps == (Alter(P1, NEW),)
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert operator.api.recorded is not None
    assert operator.api.recorded.reason == "NotAuthorized"
    assert operator.api.told == []


def test_a_broker_that_is_down_holds_no_move_up(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(fenced=[0]), [verdict])
    assert operator.after(verdict).steps == (Alter(P0, NEW),)
    assert client.store[broker(0)] == {}


def test_what_the_record_has_no_room_for_waits(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_THROTTLE_RECORD_BYTES", 1)
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(), [verdict])
    problem = operator.after(verdict).rows[P0].said(SayingKind.PROBLEM)
    assert problem is not None
    assert (operator.after(verdict).steps, problem.reason) == ((), Reason.RESOURCE_TOO_LARGE)


def test_a_cluster_waits_until_its_throttles_are_restored(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.show_changes()
    brokers = snapshot().brokers
    assert operator.tick(snapshot())
    assert client.store == START
    assert operator.restores(brokers)
    operator.show_changes()
    assert not operator.tick(snapshot())
    assert not operator.restores(brokers)
    assert operator.api.recorded is None


async def _later(snapshot: Snapshot) -> Snapshot:
    return snapshot


def loop_of(operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch) -> ClusterLoop:
    """The loop of the same KafkaCluster, connected already."""
    api: Any = operator.api
    api.status |= {"observedGeneration": 1}
    unused: Any = None

    async def connected(observer: Any, _: object) -> Any:
        observer.client, observer.connection = client, Connection("b:9092")
        return client

    monkeypatch.setattr(Observer, "_connected", connected)
    return ClusterLoop(KEY, api, unused, api, Metrics(), unused, lambda: None, Plans(api, unused, api, Planner()))


def test_a_deleted_cluster_is_released_once_its_throttles_are_restored(
    operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.api.deleted = "2026-01-02T00:00:00Z"
    loop = loop_of(operator, client, monkeypatch)
    grow_up(loop)
    assert asyncio.run(loop._tick()) is not None
    assert (client.store, operator.api.released) == (START, False)
    show_changes(loop)
    assert asyncio.run(loop._tick()) is None
    assert operator.api.released


def test_a_dead_brokers_throttle_holds_a_deleted_cluster_until_orphaned(
    operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.api.deleted = "2026-01-02T00:00:00Z"
    fenced = {id: replace(found, fenced=found.fenced or id == 2) for id, found in snapshot().brokers.items()}
    monkeypatch.setattr(client, "observe", lambda *_: _later(replace(snapshot(), brokers=fenced)))
    loop = loop_of(operator, client, monkeypatch)
    grow_up(loop)
    for _ in range(3):
        assert asyncio.run(loop._tick()) is not None
        show_changes(loop)
    assert not operator.api.released
    [ready] = [c for c in operator.api.parsed.status.conditions if c.type == "Ready"]
    assert "broker 2" in ready.message
    assert "broker 1" not in ready.message
    assert "deletionPolicy: Orphan" in ready.message
    operator.api.spec["deletionPolicy"] = "Orphan"
    assert asyncio.run(loop._tick()) is None
    assert operator.api.released
    [event] = [event for event in operator.api.told if event.reason == "ThrottlesOrphaned"]
    assert "broker 2" in event.note


def test_an_orphaning_deletion_does_not_wait_for_a_cluster_that_is_gone(
    operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.api.deleted = "2026-01-02T00:00:00Z"
    operator.api.spec["deletionPolicy"] = "Orphan"

    async def unreachable(*_: object) -> Snapshot:
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, "no broker answers")

    monkeypatch.setattr(client, "observe", unreachable)
    assert asyncio.run(loop_of(operator, client, monkeypatch)._tick()) is None
    assert operator.api.released


def test_a_cluster_does_not_wait_for_an_unregistered_broker(operator: Operator) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    for _ in range(2):
        operator.show_changes()
        left = snapshot()
        left = replace(left, brokers={b: found for b, found in left.brokers.items() if b != 2})
        operator.tick(left)
    assert operator.api.recorded is not None
    assert [b.broker for b in operator.api.recorded.brokers] == [2]
    assert not operator.restores(left.brokers)
    assert operator.restores(snapshot().brokers)


def test_what_a_dead_process_recorded_is_restored_by_the_next_one(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.restart()
    assert operator.tick(snapshot())
    assert client.store == {**START, topic(): {LEADER_REPLICAS: "", FOLLOWER_REPLICAS: ""}}
    operator.grow_up()
    operator.show_changes()
    operator.tick(snapshot())
    assert client.store == START


def test_an_orphaned_move_stays_throttled_until_it_ends(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    set_by_us = copy(client.store)
    for _ in range(3):
        operator.show_changes()
        assert operator.tick(snapshot({P0: MOVING}))
        assert client.store == set_by_us
    operator.show_changes()
    operator.tick(snapshot())
    assert client.store == START


def test_the_moves_that_keep_a_throttle_without_a_resource_are_known(operator: Operator) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert left_in_flight(operator.api.recorded, snapshot({P0: MOVING})) == {P0}
    assert left_in_flight(operator.api.recorded, snapshot()) == set()


def test_drift_is_reported_with_the_config_and_its_resource(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)
    operator.tick(snapshot({P0: MOVING}), [verdict])
    operator.show_changes()
    del client.store[topic()][FOLLOWER_REPLICAS]
    operator.tick(snapshot({P0: MOVING}), [verdict])
    [tell] = operator.api.told
    assert tell.reason == "ThrottleDrift"
    assert f"{FOLLOWER_REPLICAS} of topic orders had lost 0:2" in tell.note
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"


def rules(**fields: object) -> ConfigRules:
    return ConfigRules.of(KafkaClusterSpec.parse({"bootstrapServers": "b:9092", **fields}))


@pytest.mark.parametrize(("field", "which"), [("interBroker", 0), ("logDir", 1)])
def test_the_clusters_rate_is_the_default_and_the_maximum_bounds_both(field: str, which: int) -> None:
    own, none = resource({P0: NEW}, throttle={field: "3Mi"}), resource({P0: NEW})
    default, tight = {"throttle": {field: "2Mi"}}, {"limits": {"maxThrottle": "1Mi"}}
    found = [rates_of(r.spec.throttle, rules(**default))[which] for r in (own, none)]
    assert found == [3 * 2**20, 2 * 2**20]
    assert rates_of(none.spec.throttle, rules()) == (None, None)
    assert [rates_of(r.spec.throttle, rules(**default, **tight))[which] for r in (own, none)] == [2**20, 2**20]


@pytest.mark.parametrize("field", ["interBroker", "logDir"])
def test_a_throttle_above_the_maximum_is_refused_by_name(field: str) -> None:
    asks = resource({P0: NEW}, throttle={field: "3Mi"})
    assert bounded(asks, rules(limits={"maxThrottle": "3Mi"})) is asks
    refused = bounded(asks, rules(limits={"maxThrottle": "2Mi"}))
    assert refused.unsupported is not None
    assert f"spec.throttle.{field}: 3Mi is above limits.maxThrottle: 2Mi" in refused.unsupported.message
    driver = drive(SimKafka({P0: OLD}), refused)
    driver.ticks(6)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Stalled": "ThrottleAboveMaximum"}


@pytest.mark.parametrize(("field", "which"), [("interBroker", 0), ("logDir", 1)])
def test_a_throttle_below_the_minimum_is_refused_and_raised_in_flight(field: str, which: int) -> None:
    asks = resource({P0: NEW}, throttle={field: "1Ki"})
    assert bounded(asks, rules(limits={"minThrottle": 1024})) is asks
    least = rules(limits={"minThrottle": "2Mi"})
    refused = bounded(asks, least)
    assert refused.unsupported is not None
    assert f"spec.throttle.{field}: 1Ki is below limits.minThrottle: 2Mi" in refused.unsupported.message
    driver = drive(SimKafka({P0: OLD}), refused)
    driver.ticks(6)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Stalled": "ThrottleBelowMinimum"}
    assert rates_of(asks.spec.throttle, least)[which] == 2**21
    assert rates_of(resource({P0: NEW}).spec.throttle, least) == (None, None)


def test_only_copying_partitions_of_a_resource_with_a_rate_are_throttled(operator: Operator) -> None:
    throttled = operator.verdict("a", {P0: (OLD, (1, 0)), P1: (OLD, (2, 1, 0))}, "5Ki")
    free = operator.verdict("b", {TopicPartition("orders", 2): (OLD, NEW)}, None)
    [move] = desired([throttled, free, ended(throttled)], snapshot(), rules(), operator.recent)
    assert isinstance(move, InterBrokerMove)
    assert (move.tp, move.sources, move.adding, move.rate) == (P1, {0, 1}, {2}, 5120)
    assert move.items()[ConfigKey(ConfigResource(ConfigResourceType.TOPIC, "orders"), FOLLOWER_REPLICAS)] == {"1:2"}


COPY = AlterLogDirs(P0, ((0, "/b"),))


def copies(operator: Operator, *steps: AlterLogDirs, rate: str | None = "7Ki") -> Verdict:
    """A resource that has P0 copied to /b of broker 0, and takes these steps now."""
    verdict = operator.verdict("a", {P0: (OLD, OLD)}, None, begun=True, log_dir=rate, dirs={0: "/b"})
    return with_steps(verdict, *steps)


def test_a_log_dir_copy_begins_in_the_tick_that_throttles_it(operator: Operator, client: Client) -> None:
    verdict = copies(operator, COPY)
    assert operator.tick(shown(dirs()), [verdict])
    left = operator.after(verdict)
    assert (left.steps, left.rows[P0].says) == ((COPY,), ())
    assert client.store == {**START, broker(0): {LOG_DIR_RATE: "7168"}}


def test_the_rate_is_removed_when_the_copy_ends_though_partition_is_held(operator: Operator, client: Client) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    operator.show_changes()
    operator.tick(shown(dirs(future=3)), [copies(operator)])
    assert client.store[broker(0)] == {LOG_DIR_RATE: "7168"}
    operator.show_changes()
    operator.tick(shown(dirs(copied=True)), [copies(operator)])
    assert client.store == START


def test_a_broker_move_into_a_named_log_dir_needs_no_log_dir_rate(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, None, log_dir="7Ki", dirs={2: "/b"})
    verdict = with_steps(verdict, AlterLogDirs(P0, ((2, "/b"),)), *verdict.steps)
    assert not operator.tick(shown({**dirs(), 2: {"/a": LogDir(), "/b": LogDir()}}), [verdict])
    assert (operator.after(verdict).steps, client.asked) == (verdict.steps, 0)


def test_a_copy_that_makes_good_what_a_broker_forgot_is_throttled_first(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, None, begun=True, log_dir="7Ki", dirs={2: "/b"})
    verdict = with_steps(verdict, AlterLogDirs(P0, ((2, "/b"),)))
    forgotten = {**dirs(), 2: {"/a": LogDir(logs={P0: 5}), "/b": LogDir()}}
    operator.tick(shown(forgotten, in_flight={P0: MOVING}), [verdict])
    assert operator.after(verdict).steps == (AlterLogDirs(P0, ((2, "/b"),)),)
    assert client.store == {**START, broker(2): {LOG_DIR_RATE: "7168"}}


def test_a_copy_that_cannot_be_throttled_is_blocked_with_the_reason(operator: Operator, client: Client) -> None:
    client.denied.add(broker(0))
    verdict = copies(operator, COPY)
    operator.tick(shown(dirs()), [verdict])
    assert operator.after(verdict).steps == ()
    assert operator.after(verdict).record[P0].state == "InFlight"
    stall = operator.after(verdict).rows[P0].said(SayingKind.STALL)
    assert stall is not None
    assert stall.reason is Reason.NOT_AUTHORIZED
    free = copies(operator, COPY, rate=None)
    operator.tick(shown(dirs()), [free])
    assert operator.after(free).steps == (COPY,)


def test_ending_a_copy_waits_for_no_throttle(operator: Operator, client: Client) -> None:
    client.denied.add(broker(0))
    end = AlterLogDirs(P0, ((0, "/a"),))
    verdict = copies(operator, end)
    operator.tick(shown(dirs(future=3)), [verdict])
    assert operator.after(verdict).steps == (end,)


def test_ending_a_copy_does_not_wait_for_another_brokers_throttle(operator: Operator, client: Client) -> None:
    client.denied.add(broker(0))
    verdict = copies(operator, AlterLogDirs(P0, ((0, "/b"), (1, "/a"))))
    ending = {1: {"/a": LogDir(logs={P0: 9}), "/b": LogDir(futures={P0: 3})}}
    operator.tick(shown({**dirs(), **ending}), [verdict])
    assert operator.after(verdict).steps == (AlterLogDirs(P0, ((1, "/a"),)),)
    stall = operator.after(verdict).rows[P0].said(SayingKind.STALL)
    assert stall is not None
    assert stall.reason is Reason.NOT_AUTHORIZED


def test_a_partition_that_cannot_be_throttled_is_not_altered(operator: Operator, client: Client) -> None:
    client.denied.add(broker(0))
    verdict = operator.verdict("a", {P0: (OLD, (0, 2))}, None, log_dir="7Ki", dirs={0: "/b", 2: "/b"})
    verdict = with_steps(verdict, AlterLogDirs(P0, ((2, "/b"),)), *verdict.steps)
    operator.tick(shown({**dirs(), 2: {"/a": LogDir(), "/b": LogDir()}}), [verdict])
    left = operator.after(verdict)
    assert (left.steps, left.record, left.must_record) == ((), {}, False)


def test_an_orphaned_copy_stays_throttled_until_log_dirs_show_its_end(operator: Operator, client: Client) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    assert operator.copied_between_dirs() == {P0}
    operator.restart()
    operator.grow_up()
    operator.recent = operator.recent.remember([Instructed(COPY, True)], 0.5)
    throttled = {**START, broker(0): {LOG_DIR_RATE: "7168"}}
    # no copy shows yet: it was begun a moment ago
    of_others: LogDirs = {0: {"/a": LogDir(), "/b": LogDir()}}
    for now, seen in ((0.0, dirs()), (4.0, dirs(future=3)), (5.0, {}), (6.0, of_others), (7.0, dirs(future=9))):
        operator.show_changes()
        operator.recent = replace(operator.recent, now=now)
        assert operator.tick(shown(seen))
        assert client.store == throttled
        assert operator.copied_between_dirs() == {P0}
    operator.show_changes()
    operator.tick(shown(dirs(copied=True)))
    assert client.store == START
    operator.show_changes()
    assert not operator.tick(shown(dirs(copied=True)))
    assert operator.copied_between_dirs() == set()


def test_a_rate_that_is_taken_out_of_the_spec_goes_while_the_copy_goes_on(operator: Operator, client: Client) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    operator.show_changes()
    operator.tick(shown(dirs(future=3)), [copies(operator, rate=None)])
    assert client.store == START


def test_log_dirs_of_an_orphan_are_described_until_its_copy_ends(
    operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    loop = loop_of(operator, client, monkeypatch)
    asyncio.run(loop._tick())
    assert client.observed[0][:2] == ({"orders"}, {P0})


def test_a_deleted_topic_is_copied_nowhere_despite_old_log_dirs(operator: Operator, client: Client) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    operator.show_changes()
    operator.tick(replace(shown(dirs(future=3)), topics={}))
    assert client.store == START


@pytest.mark.parametrize("topics", [{}, {"orders": Topic("another", 1, {})}], ids=["gone", "made again"])
def test_a_move_of_a_deleted_topic_is_throttled_no_more(
    operator: Operator, client: Client, topics: dict[str, Topic]
) -> None:
    moving = snapshot({P0: MOVING})
    operator.tick(moving, [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert client.store != START
    operator.show_changes()
    gone = replace(moving, topics=topics, reassignments={})
    client.store[topic()] = {}
    for _ in range(3):
        operator.tick(gone, [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
        operator.show_changes()
    assert client.store == {**START, topic(): {}}
    assert operator.api.recorded is None


def test_a_foreign_move_on_a_recreated_topic_gets_no_throttle_of_ours(operator: Operator, client: Client) -> None:
    moving = snapshot({P0: MOVING})
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)
    operator.tick(moving, [verdict])
    client.store[topic()] = {}
    operator.show_changes()
    theirs = replace(moving, topics={"orders": replace(moving.topics["orders"], id="another")})
    for _ in range(3):
        operator.tick(theirs, [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)])
        operator.show_changes()
    assert client.store[topic()] == {}


def test_the_rate_stays_on_a_broker_that_does_not_describe_its_log_dirs(operator: Operator, client: Client) -> None:
    operator.tick(shown(dirs()), [copies(operator, COPY)])
    operator.restart()
    operator.grow_up()
    operator.tick(shown({}), [copies(operator)])
    assert client.store[broker(0)] == {LOG_DIR_RATE: "7168"}


def test_one_partition_can_need_both_rates(operator: Operator) -> None:
    verdict = operator.verdict("a", {P0: (OLD, (0, 2))}, "5Ki", log_dir="7Ki", dirs={0: "/b", 2: "/b"})
    moves = desired([verdict], shown({**dirs(), 2: {}}), rules(), operator.recent)
    assert [(type(m), m.brokers, m.rate) for m in moves] == [
        (InterBrokerMove, {0, 1, 2}, 5120),
        (LogDirMove, {0}, 7168),
    ]
