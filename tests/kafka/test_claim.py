"""Two installations of the operator on the same brokers: one has the claim, the other sees that."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer

import reassign.kafka.claim as claims
from reassign.api.config_keys import FOLLOWER_RATE
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.plans.planner import Planner
from reassign.core.claim import Claim, ClaimState
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import TopicPartition
from reassign.errors import Reason
from reassign.kafka.claim import Membership
from reassign.kafka.wire import Node, Wire
from tests.kafka.harness import Kafka, eventually
from tests.unit.world import Kube, World, api_object

SESSION = 6.0  # the least that brokers allow

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("SESSION", SESSION), ("HEARTBEAT", 0.3), ("RETRY", 0.2), ("REFUSED", 0.3)):
        monkeypatch.setattr(claims, f"{name}_SECONDS", seconds)


@dataclass
class Installations:
    """Memberships of one group, each process with a connection of its own."""

    kafka: Kafka
    cluster_id: str = field(default_factory=lambda: f"made-{next(_numbers)}")
    started: list[tuple[Membership, Kafka]] = field(default_factory=list)

    def start(self, installation: str, kind: type[Membership] = Membership, cluster: str = "uid") -> Membership:
        """One more process of this installation."""
        client = Kafka(self.kafka.brokers)
        membership = kind(installation, cluster, self.cluster_id, lambda: None)
        self.started.append((membership, client))
        client.client.keep(membership)
        return membership

    def kill(self, membership: Membership) -> None:
        """The process is gone, and says nothing more."""
        membership.stop()
        next(client for started, client in self.started if started is membership).close()
        self.started = [pair for pair in self.started if pair[0] is not membership]


@pytest.fixture
def installations(kafka: Kafka) -> Iterator[Installations]:
    made = Installations(kafka)
    yield made
    for membership, client in made.started:
        membership.leave()
        client.close()


def has(membership: Membership) -> bool:
    """Whether it is known that it has the claim."""
    return membership.state.decided and membership.state.other is None and membership.state.problem is None


def sees(membership: Membership, installation: str) -> bool:
    other = membership.state.other
    return other is not None and other.installation == installation


def lasts(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not condition():
            return False
        time.sleep(0.05)
    return True


def first_and_second(installations: Installations) -> tuple[Membership, Membership]:
    """The first has the claim, and the second sees that."""
    first = installations.start("first")
    eventually(lambda: has(first))
    second = installations.start("second")
    eventually(lambda: sees(second, "first"))
    return first, second


def test_the_second_installation_sees_the_claim_of_the_first(installations: Installations) -> None:
    first, second = first_and_second(installations)
    problem = second.state.claimed
    assert problem
    assert problem.reason is Reason.CLUSTER_CLAIMED
    assert "It is at 127.0.0.1 since" in second.state.holder
    assert lasts(lambda: has(first) and sees(second, "first"), 2 * SESSION)


def test_a_crashed_installations_claim_ends_with_its_session(installations: Installations) -> None:
    first, second = first_and_second(installations)
    installations.kill(first)
    assert lasts(lambda: sees(second, "first"), SESSION / 2)
    eventually(lambda: has(second))


def test_the_next_process_of_an_installation_keeps_its_claim(installations: Installations) -> None:
    first = installations.start("first")
    eventually(lambda: has(first))
    second = installations.start("second")
    installations.kill(first)
    after = installations.start("first")
    eventually(lambda: has(after))
    assert after._claim == first._claim
    assert lasts(lambda: has(after) and sees(second, "first"), 2 * SESSION)


def test_a_claim_that_is_given_up_is_free_at_once(installations: Installations) -> None:
    first, second = first_and_second(installations)
    began = time.monotonic()
    first.leave()
    eventually(lambda: has(second))
    assert time.monotonic() - began < SESSION / 2


def test_the_claim_survives_its_coordinators_death(installations: Installations) -> None:
    first, second = first_and_second(installations)
    coordinator = int(str(first._coordinator).removeprefix("coordinator-"))
    installations.kafka.brokers.kill(coordinator)
    try:
        eventually(lambda: first._coordinator not in (None, f"coordinator-{coordinator}"))
        assert lasts(lambda: has(first) and sees(second, "first"), 2 * SESSION)
    finally:
        installations.kafka.brokers.restart(coordinator)


class Blind(Membership):
    """Sees nobody before it has joined, as one does that joins at the same moment as another."""

    __slots__ = ()

    def _described(self, wire: Wire, coordinator: Node) -> tuple[Claim, ...]:
        return Membership._described(self, wire, coordinator) if self._member else ()


def test_of_two_that_join_at_once_the_older_claim_wins(installations: Installations) -> None:
    first = installations.start("first")
    eventually(lambda: has(first))
    second = installations.start("second", Blind)
    eventually(lambda: sees(second, "first"))
    assert second._member is None
    eventually(lambda: has(first))


def test_two_kafka_clusters_of_one_installation_share_its_claim(installations: Installations) -> None:
    main, double = installations.start("first", cluster="main"), installations.start("first", cluster="double")
    eventually(lambda: has(main) and has(double))
    other = installations.start("second")
    eventually(lambda: sees(other, "first"))
    main.leave()
    assert lasts(lambda: has(double) and sees(other, "first"), SESSION)


def test_a_group_of_another_application_is_left_alone(installations: Installations) -> None:
    topic = installations.kafka.topic([0, 1])
    group = f"{claims.GROUP_PREFIX}{installations.cluster_id}"
    consumer = Consumer(
        {"bootstrap.servers": installations.kafka.brokers.bootstrap_servers, "group.id": group, "log_level": 0}
    )
    consumer.subscribe([topic])

    def assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    eventually(assigned)
    first = installations.start("first")
    eventually(lambda: first.state.problem is not None)
    assert first.state.problem
    assert "is another application's" in first.state.problem.message
    assert first.state.claimed is None
    assert assigned()
    consumer.close()
    eventually(lambda: has(first))


def test_a_join_that_waits_holds_up_no_observation(installations: Installations) -> None:
    first = installations.start("first")
    eventually(lambda: has(first))
    first.stop()  # it is still a member, and joins no more
    second = installations.start("second", Blind)
    eventually(lambda: second._coordinator is not None)
    client = installations.started[-1][1]
    began = time.monotonic()
    client.observe()
    assert time.monotonic() - began < 1
    assert second.state == ClaimState(second.state.seen)


class Operator(World):
    """One installation as it is, with an API server in memory; it moves one partition, throttled."""

    def __init__(self, kafka: Kafka, installation: str, tp: TopicPartition, replicas: list[int], rate: str) -> None:
        self.store, self.kube, self.metrics, self.planner = Store(), Kube(), Metrics(), Planner()
        self.brokers: Any = None
        cluster = api_object("KafkaCluster", "main", {"bootstrapServers": kafka.brokers.bootstrap_servers})
        self.put(cluster | {"status": {}})
        self.loop = self.new_loop()
        self.loop.observer._connected_to, self.loop.observer.installation = None, installation
        self.add("move", tp, replicas)
        self.change("move", lambda obj: obj["spec"].update(throttle={"interBroker": rate}))

    def reason(self, name: str) -> str:
        conditions = (self.store.get(f"uid-{name}") or {})["status"].get("conditions", [])
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), "")


def serve(*operators: Operator, until: Callable[[], bool]) -> None:
    """Have them reconcile side by side until it has come true."""

    async def reconcile() -> None:
        deadline = time.monotonic() + 90
        while not await asyncio.to_thread(until):
            assert time.monotonic() < deadline, [operator.reason("move") for operator in operators]
            for operator in operators:
                await operator.loop._safe_tick()
            await asyncio.sleep(0.2)

    asyncio.run(reconcile())


def test_two_operators_on_one_kafka_leave_no_rate_behind(kafka: Kafka) -> None:
    tps = [TopicPartition(kafka.topic([0, 1], megabytes=2), 0) for _ in range(2)]
    places = [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in range(4)]
    eventually(lambda: not any(isinstance(read, Problem) for read in kafka.configs(*places).values()))
    before = kafka.configs(*places)
    first = Operator(kafka, "first", tps[0], [2, 1], "200Ki")
    second = Operator(kafka, "second", tps[1], [3, 1], "500Ki")
    rates = set()

    def done() -> bool:
        configs: Any = kafka.configs(*places)
        rates.update(rate for place in places if (rate := configs[place].get(FOLLOWER_RATE)))
        return first.reason("move") == "Completed" and kafka.configs(*places) == before

    try:
        serve(first, until=lambda: kafka.in_flight(tps[0]))
        serve(first, second, until=done)
        assert rates == {"204800"}
        assert (second.reason("main"), second.reason("move")) == ("ClusterClaimed", "ClusterClaimed")
        assert kafka.settled(tps[1], [0, 1])
        asyncio.run(first.loop.observer.give_up_claim())
        serve(second, until=lambda: second.reason("move") == "Completed" and kafka.configs(*places) == before)
        assert kafka.settled(tps[1], [3, 1])
    finally:
        for operator in (first, second):
            asyncio.run(operator.loop.observer.give_up_claim())
            asyncio.run(operator.loop.observer.close())
