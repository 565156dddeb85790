"""An answer that is an error or makes no sense hides what it is about; what brings moves back goes on."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka import errors
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)

from reassign.api.limits import MAX_BROKERS, MAX_SHORT_TEXT_CHARACTERS
from reassign.controller.cluster import actor, loop, observer
from reassign.controller.plans.plans import Plans
from reassign.controller.writing.brake_copies import BrakeCopies
from reassign.core import tick
from reassign.core.model.forwarding import Doubts
from reassign.core.model.log_dir_reports import LogDirReports
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from reassign.core.model.steps import Alter, Cancel, Judged, Outcome, Result, Step
from reassign.errors import Reason
from reassign.kafka.client import KafkaClient, StillValid
from reassign.kafka.connection import Connection
from reassign.kafka.steps import StepWriter, batches
from tests.unit.records import record
from tests.unit.world import LATER, OURS, THEIRS, Object, World, forget

pytestmark = pytest.mark.usefixtures("logged")

TOPICS = {tp.topic: tp for tp in (OURS, LATER, THEIRS)}
NAMES = {OURS: "move", LATER: "later"}
GONE = {errors.UnknownTopicOrPartitionError.errno, errors.InvalidTopicError.errno}
"""What says that a topic is not there is no odd answer."""
KNOWN = {error.errno for error in vars(errors).values() if isinstance(getattr(error, "errno", None), int)}
CODES = sorted(KNOWN - {0, *GONE} | {9999})
TEXTS = st.none() | st.sampled_from(["", "-1", "1.5", "ten", "9" * 30, "\x00", "r" * 2000])
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Odd:
    """An answer that is replaced: about what, and by an error's code, or by other content."""

    about: str
    what: Any = None
    """The topic or the broker that it is about."""
    code: int = 0
    content: Any = None

    def is_about(self, about: str, what: Any = None) -> bool:
        return (self.about, self.what) == (about, what)


def either(about: str, what: st.SearchStrategy[Any], content: st.SearchStrategy[Any]) -> st.SearchStrategy[Odd]:
    """An error, or content that makes no sense."""
    failed = st.builds(Odd, st.just(about), what, st.sampled_from(CODES))
    return failed | st.builds(Odd, st.just(about), what, st.just(0), content)


topics, ids = st.sampled_from(sorted(TOPICS)), st.integers(0, 5)
odd_answers = st.one_of(
    st.builds(Odd, st.just("metadata"), topics, st.sampled_from(CODES)),
    either("configuration", topics, TEXTS.filter(lambda text: text is None or not text.isdecimal())),
    either("log directories", ids, st.tuples(NUMBERS, NUMBERS, NUMBERS)),
    either("list", ids, st.none()),
    either("offsets", st.none(), st.tuples(NUMBERS, st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3)) | st.none()),
    either("shortages", st.none(), st.none()),
    st.builds(Odd, st.just("rack"), ids, content=TEXTS),
)


class Wire:
    """SimKafka's answers as brokers send them, some replaced."""

    def __init__(self, world: Wired) -> None:
        self.world = world

    def newest_version(self, _: object) -> int:
        return 1

    def read(self, make: Callable[[], Any]) -> Any:
        return self.answer(make(), None)

    def read_by(self, make: Callable[[], Any], first: Sequence[int]) -> tuple[Any, int | None]:
        return self.answer(make(), None), next(iter(first), 0)

    def read_from(self, broker: int, request: Any, _: float) -> Any:
        return self.answer(request, broker)

    def answer(self, request: Any, broker: int | None) -> Any:
        """What a broker, or any, answers."""
        match request:
            case DescribeClusterRequest():
                return SimpleNamespace(error_code=0, error_message=None, cluster_id="sim", brokers=self._brokers())
            case ListPartitionReassignmentsRequest():
                return self._list(broker)
            case DescribeQuorumRequest():
                return self._offsets()
            case DescribeLogDirsRequest():
                assert broker is not None
                return self._log_dirs(broker)
            case DescribeConfigsRequest():
                return SimpleNamespace(results=[self._config(r.resource_name) for r in request.resources])
        named = [topic.name for topic in request.topics] if request.topics is not None else None
        return SimpleNamespace(topics=self._topics(named))

    def _odd(self, about: str, what: Any = None) -> Odd | None:
        return odd if (odd := self.world.odd) and odd.is_about(about, what) else None

    def _brokers(self) -> list[Any]:
        brokers = self.world.kafka.brokers.values()
        odd = {b.id: odd for b in brokers if (odd := self._odd("rack", b.id))}
        racks = {b.id: odd[b.id].content if b.id in odd else b.rack for b in brokers}
        return [SimpleNamespace(broker_id=b.id, rack=racks[b.id], is_fenced=b.fenced) for b in brokers]

    def _list(self, broker: int | None) -> Any:
        odd = self._odd("list", broker) if broker is not None else None
        if odd and not odd.code:
            return None
        found = [
            SimpleNamespace(
                name=tp.topic,
                partitions=[
                    SimpleNamespace(
                        partition_index=tp.partition,
                        replicas=move.replicas,
                        adding_replicas=move.adding,
                        removing_replicas=move.removing,
                    )
                ],
            )
            for tp, move in self.world.kafka.reassignments.items()
        ]
        return SimpleNamespace(error_code=odd.code if odd else 0, error_message=None, topics=found)

    def _offsets(self) -> Any:
        odd = self._odd("offsets")
        end, fetched = odd.content if odd and odd.content else (1, [(broker, 1) for broker in self.world.kafka.brokers])
        observers = [SimpleNamespace(replica_id=id, log_end_offset=offset) for id, offset in fetched]
        described = SimpleNamespace(error_code=0, high_watermark=end, current_voters=[], observers=observers)
        topics = [] if odd and not odd.content else [SimpleNamespace(partitions=[described])]
        return SimpleNamespace(error_code=odd.code if odd else 0, topics=topics)

    def _log_dirs(self, broker: int) -> Any:
        odd = self._odd("log directories", broker)
        size, total, usable = odd.content if odd and odd.content else (100, -1, -1)
        held = [tp for tp, replicas in self.world.kafka.replicas.items() if broker in replicas]
        logs = [
            SimpleNamespace(
                name=tp.topic,
                partitions=[SimpleNamespace(partition_index=tp.partition, partition_size=size, is_future_key=False)],
            )
            for tp in held
        ]
        described = SimpleNamespace(
            error_code=0, log_dir="/data", topics=logs, is_cordoned=False, total_bytes=total, usable_bytes=usable
        )
        return SimpleNamespace(error_code=odd.code if odd else 0, results=[described])

    def _config(self, topic: str) -> Any:
        odd = self._odd("configuration", topic)
        config = SimpleNamespace(name="min.insync.replicas", value=odd.content if odd else "2", config_source=5)
        code = odd.code if odd else 0
        return SimpleNamespace(error_code=code, error_message=None, resource_name=topic, configs=[config])

    def _topics(self, named: Collection[str] | None) -> list[Any]:
        if named is None and (odd := self._odd("shortages")):
            if odd.code:
                raise errors.for_code(odd.code)
            return [None]
        metadata = self.world.kafka.metadata()
        return [
            SimpleNamespace(
                name=tp.topic,
                error_code=odd.code if (odd := self._odd("metadata", tp.topic)) else 0,
                topic_id=self.world.topic_uuids[tp.topic],
                partitions=[
                    SimpleNamespace(
                        partition_index=tp.partition,
                        replica_nodes=partition.replicas,
                        isr_nodes=sorted(partition.isr),
                        leader_id=partition.leader,
                        offline_replicas=(),
                    )
                ],
            )
            for tp, partition in metadata.items()
            if named is None or tp.topic in named
        ]


class Wired(World):
    """OURS and LATER are moved, and brokers are asked as the operator asks them."""

    def __init__(self) -> None:
        self.odd: Odd | None = None
        self.recorded_at_cancel: dict[TopicPartition, str] = {}
        self.topic_uuids = {topic: UUID(int=n) for n, topic in enumerate(TOPICS, 1)}
        super().__init__()
        self.add("later", LATER, (4, 2, 3))
        self.tick(until=lambda: set(self.kafka.reassignments) == {OURS, LATER, THEIRS})

    def new_loop(self) -> Any:
        self.kafka.topic_ids = {
            topic: urlsafe_b64encode(id.bytes).decode().rstrip("=") for topic, id in self.topic_uuids.items()
        }
        perform, wire = self.brokers.perform, Wire(self)

        async def observe(*asked: Any) -> Snapshot:
            return await self._ask(wire, lambda client: client.observe(*asked))

        async def observe_shortages() -> Any:
            return await self._ask(wire, lambda client: client.observe_shortages())

        async def performed(steps: Sequence[Step], still_valid: StillValid | None = None) -> dict[Step, Outcome]:
            for tp in (step.tp for step in steps if isinstance(step, Cancel) and step.tp in NAMES):
                self.recorded_at_cancel[tp] = record(self, NAMES[tp])[tp.topic]["state"]
            return await perform(steps, still_valid)

        self.brokers.observe = observe  # type: ignore[method-assign]
        self.brokers.observe_shortages = observe_shortages  # type: ignore[method-assign]
        self.brokers.perform = performed  # type: ignore[method-assign]
        return super().new_loop()

    async def _ask(self, wire: Any, ask: Callable[[KafkaClient], Any]) -> Any:
        """A client that has asked nothing before."""
        with ThreadPoolExecutor(4) as executor:
            client = KafkaClient(Connection("b:9092"), wire, executor, lambda: None)
            try:
                return await ask(client)
            finally:
                client._side_by_side.shutdown()

    def reconcile(self) -> None:
        """Tick as the loop does by itself, with brokers in doubt, all partitions due, and sizes too."""
        self.loop.observer._survey._at = self.loop.observer._sized_at = float("-inf")
        asyncio.run(self.loop._safe_tick())  # type: ignore[arg-type]


@pytest.fixture
def doubting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "doubts", lambda *_: Doubts((0, 1, 2, 3, 4, 5), offsets=True))


@pytest.mark.usefixtures("doubting")
@given(odd=odd_answers)
@example(odd=Odd("rack", 5, content="r" * 2000))
@example(odd=Odd("configuration", "theirs", errors.PolicyViolationError.errno))
@example(odd=Odd("metadata", "later", errors.LeaderNotAvailableError.errno))
@example(odd=Odd("offsets"))
def test_an_odd_answer_hides_its_subject_and_stops_no_other_undo(odd: Odd) -> None:
    world = Wired()
    world.add("waits", THEIRS, (4, 2, 3))
    world.odd = odd
    world.delete("move")
    world.delete("later")
    world.reconcile()
    hidden = {TOPICS[odd.what]} if odd.about in ("metadata", "configuration") else set()
    assert set(world.kafka.reassignments) == {THEIRS} | hidden
    assert world.recorded_at_cancel == dict.fromkeys(NAMES.keys() - hidden, "Cancelling")
    for tp in hidden & NAMES.keys():
        details = (world.store.get(f"uid-{NAMES[tp]}") or {})["status"]["partitions"]
        assert f"the topic {tp.topic}" in details[0]["message"]
    world.odd = None
    for _ in range(3):
        world.reconcile()
    assert set(world.kafka.reassignments) == {THEIRS}


def wrong(*_: object, **__: object) -> Any:
    raise ZeroDivisionError


async def wrong_later(*_: object, **__: object) -> Any:
    raise ZeroDivisionError


STAGES: list[tuple[Any, str, Callable[..., Any]]] = [
    (tick, "follow", wrong),
    (tick, "stalls", wrong),
    (tick, "admit", wrong),
    (tick, "decide_configs", wrong),
    (tick, "gate_throttles", wrong),
    (tick, "sent_through", wrong),
    (tick.Pacer, "admitted", wrong),
    (tick.Recent, "remember_changes", wrong),
    (loop, "take_sample", wrong),
    (loop, "hold_now", wrong),
    (loop, "abandoned", wrong),
    (actor, "cluster_status", wrong),
    (actor, "report", wrong),
    (actor.ConfigRecord, "write", wrong_later),
    (observer, "shortages", wrong),
    (observer, "pause_problem", wrong),
    (observer.Observer, "_claim", wrong),
    (Plans, "serve_cluster", wrong_later),
]


@pytest.mark.parametrize(("where", "function", "wrongly"), STAGES, ids=[f"{f}" for _, f, _ in STAGES])
def test_a_bug_in_any_other_stage_leaves_the_undo(
    monkeypatch: pytest.MonkeyPatch, where: Any, function: str, wrongly: Callable[..., Any]
) -> None:
    world = Wired()
    world.add("waits", THEIRS, (4, 2, 3))
    monkeypatch.setattr(where, function, wrongly)
    world.delete("move")
    world.reconcile()
    assert set(world.kafka.reassignments) == {THEIRS, LATER}
    assert world.recorded_at_cancel == {OURS: "Cancelling"}
    world.pull("CancelOurs")
    world.reconcile()
    assert set(world.kafka.reassignments) == {THEIRS}
    monkeypatch.undo()
    for _ in range(3):
        world.reconcile()
    assert world.kafka.replicas[OURS] == world.kafka.replicas[LATER] == (1, 2, 3)
    assert world.store.get("uid-move") is None


def test_cancel_all_takes_back_ours_whatever_fails_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Wired()
    monkeypatch.setattr(tick, "undo_foreign", wrong)
    world.pull("CancelAll")
    world.reconcile()
    assert set(world.kafka.reassignments) == {THEIRS}
    monkeypatch.undo()
    monkeypatch.setattr(BrakeCopies, "keep", wrong_later)
    world.reconcile()
    assert set(world.kafka.reassignments) == {THEIRS}
    monkeypatch.undo()
    world.reconcile()
    assert world.kafka.reassignments == {}


@pytest.mark.parametrize(("where", "function"), [(tick, "settle_steps"), (actor.Actor, "act")])
def test_a_step_whose_outcome_a_bug_hides_counts_as_unanswered(
    monkeypatch: pytest.MonkeyPatch, where: Any, function: str
) -> None:
    world = Wired()
    monkeypatch.setattr(where, function, wrong if where is tick else wrong_later)
    world.delete("move")
    world.reconcile()
    assert OURS in world.loop.memory.recent.unanswered


def test_nothing_begins_while_a_bug_hides_how_a_cluster_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Wired()
    world.kafka.copy(THEIRS)
    world.add("waits", THEIRS, (4, 2, 3))
    monkeypatch.setattr(loop, "hold_now", wrong)
    for _ in range(3):
        world.reconcile()
    assert THEIRS not in world.kafka.reassignments
    assert world.conditions("main") == {"Stalled": "InternalError"}
    assert [peer.unready for peer in world.store.peers()] == ["InternalError"], "another one may serve its brokers"
    monkeypatch.undo()
    for _ in range(3):
        forget(world.loop, busy={})
        world.reconcile()
    assert THEIRS in world.kafka.reassignments


def brokers_shown(world: World) -> list[Object]:
    found: list[Object] = (world.store.get("uid-main") or {})["status"]["brokers"]
    return found


def test_a_status_has_as_much_of_the_brokers_as_it_has_room_for() -> None:
    world = World()
    world.kafka.brokers |= {id: Broker(id, "r" * 2000) for id in range(6, MAX_BROKERS + 100)}
    world.tick()
    assert len(brokers_shown(world)) == MAX_BROKERS
    assert brokers_shown(world)[-1]["rack"] == "r" * MAX_SHORT_TEXT_CHARACTERS


def test_a_broker_whose_log_directories_are_unread_is_named_with_why() -> None:
    world = Wired()
    world.kafka.copy(LATER)
    world.tick(3)
    world.odd = Odd("log directories", 5, errors.ClusterAuthorizationFailedError.errno)
    world.change("later", lambda obj: obj["spec"]["partitions"][0].update(replicas=[5, 2, 3]))
    forget(world.loop, busy={}, reports=LogDirReports())
    for _ in range(2):
        world.reconcile()
    [detail] = world.kube.objects["uid-later"]["status"]["partitions"]
    assert "broker 5 has not reported yet" in detail["message"]
    assert "the Kafka user needs DESCRIBE" in detail["message"]


def test_a_move_is_not_sent_while_its_topic_cannot_be_read() -> None:
    world = Wired()
    world.kafka.copy(THEIRS)
    world.odd = Odd("metadata", "theirs", errors.LeaderNotAvailableError.errno)
    steps = StepWriter(cast(Any, Wire(world)), lambda: None)
    alter, cancel = Alter(THEIRS, (4, 2, 3), False, Judged("", frozenset())), Cancel(THEIRS, (5, 2, 3))
    [outcome] = steps.carry_out([alter], 0).values()
    assert (outcome.result, outcome.reason) == (Result.NOT_SENT, Reason.REQUEST_FAILED)
    assert [list(batch) for batch in batches([cancel, alter])] == [[cancel], [alter]]
