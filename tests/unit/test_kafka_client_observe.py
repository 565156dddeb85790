"""A snapshot of a whole cluster, whose brokers do not describe their log directories."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.protocol.admin import DescribeConfigsRequest, DescribeQuorumRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from reassign.controller.plans.planner import SECONDS
from reassign.core.model.configs import Change, ConfigKey, ConfigResource, ConfigResourceType, Op
from reassign.core.model.forwarding import NO_DOUBTS, Doubts, MetadataOffsets
from reassign.core.model.layout import Layout, layout_seen
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Alter, AlterLogDirs, Result
from reassign.kafka import requests
from reassign.kafka.client import SIZES_SECONDS, TOGETHER_SECONDS, KafkaClient
from reassign.kafka.connection import Connection
from reassign.kafka.throttles import BROKER_SECONDS
from reassign.kafka.wire import READ_SECONDS, Wire


class Silent:
    """A wire to brokers that do not describe their directories; each request takes all the time it is given."""

    def __init__(self, brokers: int) -> None:
        self.brokers = [SimpleNamespace(broker_id=id, rack=None, is_fenced=False) for id in range(brokers)]
        self.now = 1000.0
        self.asked: list[int] = []

    def newest_version(self, api: object) -> int:
        return 1

    def read(self, make: Any) -> Any:
        return SimpleNamespace(error_code=0, error_message=None, topics=[], cluster_id="id", brokers=self.brokers)

    def read_by(self, make: Any, first: Sequence[int]) -> tuple[Any, int | None]:
        return self.read(make), next(iter(first), None)

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        self.asked.append(broker)
        self.now += seconds
        raise KafkaTimeoutError


class Together(Silent):
    """Brokers that fail once all of them have been asked: one that is asked alone waits in vain."""

    def __init__(self, brokers: int) -> None:
        super().__init__(brokers)
        self.all = threading.Barrier(brokers)
        self.side_by_side: list[bool] = []

    def _fail(self) -> Any:
        try:
            self.all.wait(10)
            self.side_by_side.append(True)
        except threading.BrokenBarrierError:
            self.side_by_side.append(False)
        raise KafkaTimeoutError

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        return self._fail()

    def write(self, request: object, before_write: object, broker: int | None = None) -> Any:
        return self._fail()


MOVE = {"replicas": [4, 1], "adding_replicas": [4], "removing_replicas": [1]}
Ask = Callable[[KafkaClient], Coroutine[Any, Any, object]]
DEAD = 12
RATES = [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in range(DEAD)]
NAMED = AlterLogDirs(TopicPartition("orders", 0), tuple((broker, "/a") for broker in range(DEAD)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.observe_everything(),
        lambda client: client.observe_cordons(),
        lambda client: client.configs(RATES),
        lambda client: client.change([Change(ConfigKey(rates, "rate"), Op.SET, "1") for rates in RATES]),
        lambda client: client.perform([NAMED]),
        lambda client: client.observe((), doubts=Doubts(tuple(range(DEAD)))),
    ],
    ids=[
        "log directories",
        "cordons",
        "configurations",
        "changes of configurations",
        "named log directories",
        "in doubt",
    ],
)
def test_brokers_that_are_down_are_asked_side_by_side(
    ask: Callable[[KafkaClient], Coroutine[Any, Any, object]],
) -> None:
    wire: Any = Together(DEAD)
    with ThreadPoolExecutor(1) as executor:
        asyncio.run(ask(KafkaClient(Connection("b:9092"), wire, executor, lambda: None)))
    assert wire.side_by_side == [True] * DEAD


def test_an_alter_whose_directory_no_broker_took_is_not_sent() -> None:
    wire: Any = Together(1)
    named = AlterLogDirs(TopicPartition("orders", 0), ((0, "/a"),))
    alter = Alter(named.tp, (0, 1), directed=named)
    with ThreadPoolExecutor(1) as executor:
        client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
        outcomes = asyncio.run(client.perform([alter, named]))
    assert {step: outcome.result for step, outcome in outcomes.items()} == {
        named: Result.UNKNOWN,
        alter: Result.NOT_SENT,
    }
    assert len(wire.side_by_side) == 1, "only the directory was written"


class Listing(Silent):
    """Brokers that list what is in flight; broker 2 is the one that any request goes to."""

    def __init__(self) -> None:
        super().__init__(3)
        self.in_flight: set[TopicPartition] = set()

    def read_by(self, make: Any, first: Sequence[int]) -> tuple[Any, int | None]:
        return self.read(make), 2

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        self.asked.append(broker)
        partitions = [SimpleNamespace(partition_index=tp.partition, **MOVE) for tp in self.in_flight]
        return SimpleNamespace(
            error_code=0, error_message=None, topics=[SimpleNamespace(name="orders", partitions=partitions)]
        )


def test_the_end_of_a_move_is_asked_of_the_broker_that_listed_it() -> None:
    wire: Any = Listing()
    tps = {TopicPartition("orders", number) for number in range(3)}
    wire.in_flight = set(tps)
    asked: list[bool] = []

    async def ask() -> None:
        with ThreadPoolExecutor(1) as executor:
            client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
            asked.append(await client.has_ended(tps))  # nothing has been observed
            await client.observe(())
            asked.append(await client.has_ended(tps))
            wire.in_flight.pop()
            asked.append(await client.has_ended(tps))

    asyncio.run(ask())
    assert asked == [False, False, True]
    assert wire.asked == [2, 2]


class Manager:
    """kafka-python's side of two brokers. Broker 2 alone lists what is in flight, broker 1 alone names coordinators."""

    def __init__(self) -> None:
        brokers = [SimpleNamespace(node_id=id, host="b", port=9092) for id in (1, 2)]
        self.cluster = SimpleNamespace(
            brokers=lambda: brokers,
            bootstrap_brokers=list,
            broker_metadata=lambda _: brokers[0],
            add_coordinator=lambda *_: "coordinator-1",
        )
        self.meanwhile: Callable[[], object] = lambda: None
        """What another thread does right after a list."""

    def connection_delay(self, node: int) -> int:
        return 0

    def get_connection(self, node: int, **_: object) -> Any:
        async def send(request: Any, request_timeout_ms: int) -> Any:
            if isinstance(request, ListPartitionReassignmentsRequest) is (node == 2):
                return SimpleNamespace(error_code=0, error_message=None, topics=[], coordinators=[])
            raise KafkaTimeoutError

        return SimpleNamespace(init_future=None, send_request=send)

    async def wait_for(self, *_: object) -> None:
        pass

    def run(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        result = asyncio.run(function(*arguments))
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return result


def test_writes_go_to_the_broker_that_listed_whatever_the_claim_asks() -> None:
    wire = Wire(Connection("b:9092"))
    manager = wire._manager = Manager()
    manager.meanwhile = lambda: wire.coordinator("a group")
    with ThreadPoolExecutor(1) as executor:
        client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
        _, forwarded = asyncio.run(client._list(NO_DOUBTS))
    wire.close()
    assert forwarded.via == client._via == 2
    assert forwarded.brokers == {2}


class Offsets(Silent):
    """Broker 1 lists orders-0 as in flight. Metadata is answered by the broker that is asked first, or 2 for it."""

    def __init__(self) -> None:
        super().__init__(3)
        self.requests: list[tuple[type, int | None]] = []
        self.down: set[int] = set()
        self.denied = False

    def read(self, make: Any) -> Any:
        return self.read_by(make, ())[0]

    def read_by(self, make: Any, first: Sequence[int]) -> tuple[Any, int | None]:
        request, asked = make(), next(iter(first), None)
        self.requests.append((type(request), asked))
        if isinstance(request, ListPartitionReassignmentsRequest):
            moves = [SimpleNamespace(name="orders", partitions=[SimpleNamespace(partition_index=0, **MOVE)])]
            return SimpleNamespace(error_code=0, error_message=None, topics=moves), 1
        if isinstance(request, DescribeQuorumRequest):
            return SimpleNamespace(error_code=31 if self.denied else 0, topics=[self._quorum()]), 1
        return super().read(make), 2 if asked in self.down else asked

    @staticmethod
    def _quorum() -> SimpleNamespace:
        voters, observers = ([SimpleNamespace(replica_id=id, log_end_offset=end) for id, end in ids] for ids in QUORUM)
        partition = SimpleNamespace(error_code=0, high_watermark=90, current_voters=voters, observers=observers)
        return SimpleNamespace(partitions=[partition])

    def observe(self, doubts: Doubts) -> Any:
        wire: Any = self
        with ThreadPoolExecutor(1) as executor:
            client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
            return asyncio.run(client.observe(("orders",), doubts=doubts)).forwarded

    @property
    def asked_for_offsets(self) -> int:
        return sum(request is DescribeQuorumRequest for request, _ in self.requests)


QUORUM = [(0, 95), (100, 95)], [(1, 90), (2, 40)]
"""Voters, of which one is a broker too, and observers, with the end of each one's log."""
LISTED, ENDED = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    ("doubts", "needed"),
    [
        (NO_DOUBTS, 0),
        (Doubts(reader=1), 0),
        (Doubts(reader=1, lately={LISTED}), 0),
        (Doubts(reader=1, lately={LISTED, ENDED}), 1),
        (Doubts(reader=2), 1),
        (Doubts(reader=2, lately={ENDED}), 1),
        (Doubts(offsets=True), 1),
    ],
    ids=["none", "same broker", "in flight", "ended", "another broker", "both", "asked"],
)
def test_offsets_are_one_request_where_metadata_may_be_stale(doubts: Doubts, needed: int) -> None:
    wire = Offsets()
    forwarded = wire.observe(doubts)
    assert wire.asked_for_offsets == needed
    assert forwarded.fetched == (90 if needed else None)


def test_metadata_is_read_from_the_broker_that_listed_behind_the_offsets() -> None:
    wire = Offsets()
    forwarded = wire.observe(Doubts(offsets=True))
    read = [request for request, _ in wire.requests]
    assert read.index(ListPartitionReassignmentsRequest) < read.index(DescribeQuorumRequest)
    assert read.index(DescribeQuorumRequest) < read.index(MetadataRequest)
    assert (MetadataRequest, 1) in wire.requests
    assert (forwarded.via, forwarded.reader) == (1, 1)
    assert forwarded.offsets == MetadataOffsets(90, {0: 95, 100: 95, 1: 90, 2: 40})


def test_the_offset_counts_of_the_broker_that_answered_for_metadata() -> None:
    wire = Offsets()
    wire.down = {1}
    forwarded = wire.observe(Doubts(offsets=True))
    assert (forwarded.via, forwarded.reader, forwarded.fetched) == (1, 2, 40)


def test_offsets_that_may_not_be_read_are_not_known() -> None:
    wire = Offsets()
    wire.denied = True
    forwarded = wire.observe(Doubts(offsets=True))
    assert (wire.asked_for_offsets, forwarded.offsets, forwarded.fetched) == (1, None, None)


@pytest.mark.parametrize(
    ("doubts", "expected"),
    [
        (Doubts(first=(2, 1)), [2, 1]),
        (Doubts((0,), first=(2, 1)), [2, 1, 0]),
        (Doubts((0,)), [0]),
        (Doubts((0, 3), first=(3, 1)), [1, 0]),
    ],
    ids=["no doubt", "of another", "new process", "one does not answer"],
)
def test_the_brokers_that_are_named_first_list_before_those_in_doubt(doubts: Doubts, expected: list[int]) -> None:
    wire: Any = Offsets()
    order: list[Sequence[int]] = []

    def read_by(make: Any, first: Sequence[int]) -> tuple[Any, int | None]:
        order.append(first)
        return Offsets.read_by(wire, make, first)

    def read_from(broker: int, request: object, seconds: float) -> Any:
        if broker == 3:
            raise KafkaTimeoutError
        return SimpleNamespace(error_code=0, error_message=None)

    wire.read_by, wire.read_from = read_by, read_from
    wire.observe(doubts)
    assert [*order[0]] == expected


@pytest.mark.parametrize(("first", "asked"), [((), [1, 2]), ((100, 2, 1), [2, 1]), ((1,), [1, 2])])
def test_brokers_are_asked_one_after_another_in_an_order(first: tuple[int, ...], asked: list[int]) -> None:
    wire = Wire(Connection("b:9092"))
    wire._manager, wire._last = Manager(), 1
    met: list[object] = []

    async def attempt(node: object) -> None:
        met.append(node)
        raise KafkaTimeoutError

    with pytest.raises(KafkaTimeoutError):
        asyncio.run(wire._any(attempt, first))
    wire.close()
    assert met == asked


class MadeMeanwhile(Silent):
    """Brokers with logs of topics that the metadata of all topics does not show: `hidden`, and some made since then."""

    def __init__(self) -> None:
        super().__init__(1)
        self.named: list[str] = []

    def read(self, make: Any) -> Any:
        request = make()
        if isinstance(request, DescribeConfigsRequest):
            config = SimpleNamespace(name="min.insync.replicas", value="2")
            names = [resource.resource_name for resource in request.resources]
            return SimpleNamespace(
                results=[
                    SimpleNamespace(error_code=0, error_message=None, resource_name=name, configs=[config])
                    for name in names
                ]
            )
        if not isinstance(request, MetadataRequest):
            return super().read(make)
        named = sorted(topic.name for topic in request.topics or ())
        self.named += named
        return SimpleNamespace(topics=[self._topic(name) for name in named or ["orders"]])

    @staticmethod
    def _topic(name: str) -> SimpleNamespace:
        row = {"replica_nodes": [0], "isr_nodes": [0], "leader_id": 0, "offline_replicas": []}
        partition = SimpleNamespace(partition_index=0, **row)
        code = {"hidden": 29, "deleted": 3}.get(name, 0)
        return SimpleNamespace(error_code=code, name=name, topic_id=UUID(int=1), partitions=[partition])

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        log = SimpleNamespace(partition_index=0, partition_size=100, is_future_key=False)
        logs = [SimpleNamespace(name=n, partitions=[log]) for n in ("orders", "made", "hidden", "deleted")]
        described = {"error_code": 0, "log_dir": "/data", "is_cordoned": False, "total_bytes": -1, "usable_bytes": -1}
        return SimpleNamespace(error_code=0, results=[SimpleNamespace(topics=logs, **described)])


def unseen_topics(ask: Callable[[KafkaClient], Coroutine[Any, Any, Layout]]) -> list[str]:
    """The topics that have logs and no metadata; those that a layout shows have their replicas in it."""
    wire: Any = MadeMeanwhile()
    with ThreadPoolExecutor(1) as executor:
        found = asyncio.run(ask(KafkaClient(Connection("b:9092"), wire, executor, lambda: None)))
    assert wire.named == ["deleted", "hidden", "made"], "asked once, and only for what was not shown"
    assert found.replicas == {0: {"orders": 1, "made": 1}}
    return [logs.topic for logs in found.unseen({0}).logs]


def test_a_topic_made_during_an_observation_is_not_hidden() -> None:
    async def everything(client: KafkaClient) -> Layout:
        return layout_seen(await client.observe_everything())

    assert unseen_topics(lambda client: client.observe_layout(lambda _: [0])) == ["deleted", "hidden"]
    assert unseen_topics(everything) == ["deleted", "hidden"]


class OneHangs(Silent):
    """Three brokers, of which the last one hangs."""

    def read_by(self, make: Any, first: Sequence[int]) -> tuple[Any, int | None]:
        assert [*first] == [0]
        return super().read_by(make, first)

    def read_from(self, broker: int, request: object, seconds: float) -> Any:
        if broker == 2:
            return super().read_from(broker, request, seconds)
        return SimpleNamespace(error_code=0, error_message=None, results=[])


def test_a_broker_that_hangs_costs_each_kind_of_request_one_time_out() -> None:
    wire: Any = OneHangs(3)
    moving = [TopicPartition("orders", number) for number in range(3)]

    async def reconcile() -> None:
        with ThreadPoolExecutor(1) as executor:
            client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
            await client.observe((), moving, [0, 1, 2], Doubts((2, 0)))
            await client.configs(RATES[:3])

    asyncio.run(reconcile())
    assert wire.asked == [2, 2, 2]
    assert wire.now - 1000 == READ_SECONDS + SIZES_SECONDS + BROKER_SECONDS


def test_silent_brokers_delay_a_whole_snapshot_by_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire: Any = Silent(25)
    monkeypatch.setattr("reassign.kafka.client.time", SimpleNamespace(monotonic=lambda: wire.now))
    monkeypatch.setattr("reassign.kafka.client.BROKERS_AT_ONCE", 1)  # one after another, so that their times add up
    executor = ThreadPoolExecutor(1)
    client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
    snapshot = asyncio.run(client.observe_everything())
    executor.shutdown()
    assert wire.now - 1000 <= TOGETHER_SECONDS
    assert 0 < len(wire.asked) < 25
    assert (len(snapshot.brokers), snapshot.log_dirs) == (25, {})
    assert TOGETHER_SECONDS < SECONDS / 2, "a plan has time left after it"


@pytest.mark.parametrize(("version", "cordoned"), [(4, None), (5, True)])
def test_a_broker_says_what_is_cordoned_from_version_5_on(version: int, cordoned: bool | None) -> None:
    described = {"error_code": 0, "log_dir": "/data", "topics": [], "total_bytes": -1, "usable_bytes": -1}

    def answer(broker: int, request: Any, seconds: float) -> SimpleNamespace:
        request.API_VERSION = version
        return SimpleNamespace(error_code=0, results=[SimpleNamespace(is_cordoned=version == 5, **described)])

    wire: Any = SimpleNamespace(read_from=answer)
    assert requests.log_dirs(wire, 0, [], 1.0)["/data"].cordoned is cordoned
