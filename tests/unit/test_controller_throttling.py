"""What is altered only when it is throttled, what a KafkaCluster waits for, and what its status says meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reassign.api.kafka_cluster import KafkaClusterSpec
from reassign.controller.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.core import throttle
from reassign.core.changes import Change, Kind, Place, Spot, put
from reassign.core.model import APPLIED, Alter, Broker, Outcome, Problem, Reassignment, Result, Snapshot, TopicPartition
from reassign.core.throttled import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, bounded, copying, rate_of
from reassign.errors import ConflictError, Reason
from reassign.kafka.throttles import Read
from tests.unit.configs import Store, broker, copy, topic
from tests.unit.sim import SimKafka, drive, partitions, resource, true_conditions
from tests.unit.throttling import KEY, Operator, ended

P0, P1 = partitions(2)
OLD, NEW = (0, 1), (2, 1)
START: Store = {**{broker(b): {} for b in range(4)}, topic(): {}}
NOT_ALLOWED = Problem(Reason.NOT_AUTHORIZED, "not allowed")


@dataclass
class Client:
    """Answers for the brokers; `denied` are places that may be read and not changed, `hidden` not even read."""

    store: Store = field(default_factory=lambda: copy(START))
    denied: set[Place] = field(default_factory=set)
    hidden: set[Place] = field(default_factory=set)
    asked: int = 0
    changes: list[Change] = field(default_factory=list)

    async def observe(self, *_: object) -> Snapshot:
        return snapshot()

    async def configs(self, places: Collection[Place]) -> Read:
        self.asked += 1
        return {p: NOT_ALLOWED if p in self.hidden else dict(self.store[p]) for p in places}

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        outcomes = {}
        for change in changes:
            if change.spot.place in self.denied:
                outcomes[change] = Outcome(Result.REFUSED, NOT_ALLOWED.reason, NOT_ALLOWED.message)
            else:
                put(self.store[change.spot.place], change)
                self.changes.append(change)
                outcomes[change] = APPLIED
        return outcomes


def snapshot(in_flight: dict[TopicPartition, Reassignment] | None = None, fenced: Collection[int] = ()) -> Snapshot:
    kafka = SimKafka({P0: OLD, P1: OLD}, brokers={b: Broker(b, fenced=b in fenced) for b in range(4)})
    kafka.reassignments = in_flight or {}
    return kafka.snapshot()


MOVING = Reassignment((2, 1, 0), (2,), (0,))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def operator(client: Client) -> Operator:
    """One whose process is not new any more."""
    found = Operator(client)
    found.throttling._lately.started -= 100
    return found


def later(operator: Operator) -> None:
    """Some seconds pass: what was written is seen by all."""
    operator.throttling._lately._sent.clear()


def test_without_a_throttle_nothing_is_asked_and_nothing_written(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, None)
    assert not operator.tick(snapshot(), [verdict])
    assert (client.asked, operator.api.status) == (0, {})
    assert verdict.steps == [Alter(P0, NEW)]


def test_a_move_is_altered_in_the_tick_that_throttles_it(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    assert operator.tick(snapshot(), [verdict])
    assert verdict.steps == [Alter(P0, NEW)]
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"
    assert client.store[broker(2)][LEADER_RATE] == "5120"


def test_a_process_that_has_just_started_waits_before_it_begins_a_throttled_move(client: Client) -> None:
    operator = Operator(client)
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(), [verdict])
    assert (verdict.steps, verdict.record, client.changes) == ([], {}, [])
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert problem.reason is Reason.THROTTLE_NOT_SET


def test_nothing_is_changed_before_the_record_is_in_the_status(operator: Operator, client: Client) -> None:
    operator.api.refuses = True
    with pytest.raises(ConflictError):
        operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert client.changes == []


@pytest.mark.parametrize("place", [topic(), broker(2)], ids=str)
@pytest.mark.parametrize("how", ["denied", "hidden"])
def test_what_cannot_be_throttled_is_not_begun_and_says_why(
    operator: Operator, client: Client, place: Place, how: str
) -> None:
    getattr(client, how).add(place)
    throttled = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    free = operator.verdict("b", {P1: (OLD, NEW)}, None)
    operator.tick(snapshot(), [throttled, free])
    assert throttled.steps == []
    problem = throttled.waiting[P0][1]
    assert problem is not None
    assert problem.reason is Reason.NOT_AUTHORIZED
    assert free.steps == [Alter(P1, NEW)]
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    assert operator.api.throttle is not None
    assert operator.api.throttle.reason == "NotAuthorized"
    assert operator.api.told == []


def test_a_broker_that_is_down_holds_no_move_up(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(fenced=[0]), [verdict])
    assert verdict.steps == [Alter(P0, NEW)]
    assert client.store[broker(0)] == {}


def test_what_the_record_has_no_room_for_waits(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MAX_RECORD_BYTES", 1)
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")
    operator.tick(snapshot(), [verdict])
    problem = verdict.waiting[P0][1]
    assert problem is not None
    assert (verdict.steps, problem.reason) == ([], Reason.RESOURCE_TOO_LARGE)


def test_a_cluster_waits_until_its_throttles_are_restored(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    later(operator)
    brokers = snapshot().brokers
    assert operator.tick(snapshot())
    assert client.store == START
    assert operator.throttling.restores(brokers)
    later(operator)
    assert not operator.tick(snapshot())
    assert not operator.throttling.restores(brokers)
    assert operator.api.throttle is None


def test_a_deleted_cluster_that_nothing_refers_to_is_released_when_its_throttles_are_restored(
    operator: Operator, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    api: Any = operator.api
    api.status |= {"clusterId": "sim", "observedGeneration": 1}
    api.deleted = "2026-01-02T00:00:00Z"
    unused: Any = None
    loop = ClusterLoop(KEY, api, unused, api, Metrics(), unused, lambda: None)

    async def connected(loop: Any, _: object) -> Any:
        loop._client = client
        return client

    monkeypatch.setattr(ClusterLoop, "_connected", connected)
    loop._throttling._lately.started -= 100
    assert asyncio.run(loop._tick()) is not None
    assert (client.store, api.released) == (START, False)
    loop._throttling._lately._sent.clear()
    assert asyncio.run(loop._tick()) is None
    assert api.released


def test_a_cluster_does_not_wait_for_a_broker_that_is_not_registered_any_more(operator: Operator) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    for _ in range(2):
        later(operator)
        left = snapshot()
        left = replace(left, brokers={b: found for b, found in left.brokers.items() if b != 2})
        operator.tick(left)
    assert operator.api.throttle is not None
    assert [b.broker for b in operator.api.throttle.brokers] == [2]
    assert not operator.throttling.restores(left.brokers)
    assert operator.throttling.restores(snapshot().brokers)


def test_what_a_dead_process_recorded_is_restored_by_the_next_one(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    operator.restart()
    assert operator.tick(snapshot())
    assert client.store == {**START, topic(): {LEADER_REPLICAS: "", FOLLOWER_REPLICAS: ""}}
    operator.throttling._lately.started -= 100
    later(operator)
    operator.tick(snapshot())
    assert client.store == START


def test_a_move_that_nobody_holds_any_more_stays_throttled_until_it_ends(operator: Operator, client: Client) -> None:
    operator.tick(snapshot(), [operator.verdict("a", {P0: (OLD, NEW)}, "5Ki")])
    set_by_us = copy(client.store)
    for _ in range(3):
        later(operator)
        assert operator.tick(snapshot({P0: MOVING}))
        assert client.store == set_by_us
    later(operator)
    operator.tick(snapshot())
    assert client.store == START


def test_drift_is_told_with_the_config_and_the_place(operator: Operator, client: Client) -> None:
    verdict = operator.verdict("a", {P0: (OLD, NEW)}, "5Ki", begun=True)
    operator.tick(snapshot({P0: MOVING}), [verdict])
    later(operator)
    del client.store[topic()][FOLLOWER_REPLICAS]
    operator.tick(snapshot({P0: MOVING}), [verdict])
    [tell] = operator.api.told
    assert tell.reason == "ThrottleDrift"
    assert f"{FOLLOWER_REPLICAS} of topic orders had lost 0:2" in tell.note
    assert client.store[topic()][FOLLOWER_REPLICAS] == "0:2"


def spec(**fields: object) -> KafkaClusterSpec:
    return KafkaClusterSpec.parse({"bootstrapServers": "b:9092", **fields})


def test_the_clusters_rate_counts_where_the_resource_names_none_and_the_maximum_bounds_both() -> None:
    own, none = resource({P0: NEW}, throttle={"interBroker": "3Mi"}), resource({P0: NEW})
    default = spec(throttle={"interBroker": "2Mi"})
    assert (rate_of(own, default), rate_of(none, default), rate_of(none, spec())) == (3 * 2**20, 2 * 2**20, None)
    tight = spec(throttle={"interBroker": "2Mi"}, limits={"maxThrottle": "1Mi"})
    assert (rate_of(own, tight), rate_of(none, tight)) == (2**20, 2**20)


def test_a_resource_that_asks_for_more_than_the_maximum_is_refused_by_name() -> None:
    asks = resource({P0: NEW}, throttle={"interBroker": "3Mi"})
    assert bounded(asks, spec(limits={"maxThrottle": "3Mi"})) is asks
    driver = drive(SimKafka({P0: OLD}), bounded(asks, spec(limits={"maxThrottle": "2Mi"})))
    driver.ticks(6)
    assert driver.kafka.writes == []
    assert true_conditions(driver) == {"Stalled": "ThrottleAboveMaximum"}


def test_only_partitions_that_copy_for_a_resource_with_a_rate_are_throttled(operator: Operator) -> None:
    throttled = operator.verdict("a", {P0: (OLD, (1, 0)), P1: (OLD, (2, 1, 0))}, "5Ki")
    free = operator.verdict("b", {TopicPartition("orders", 2): (OLD, NEW)}, None)
    [move] = copying([throttled, free, ended(throttled)], snapshot(), spec(), None)
    assert (move.tp, move.sources, move.adding, move.rate) == (P1, {0, 1}, {2}, 5120)
    assert move.items()[Spot(Place(Kind.TOPIC, "orders"), FOLLOWER_REPLICAS)] == {"1:2"}
