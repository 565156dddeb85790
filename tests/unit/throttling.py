"""What the throttles of the operator work on besides Kafka: a KafkaCluster, kept as the API server would keep it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterStatus
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller.cluster.actor import Actor
from reassign.controller.cluster.loop import ClusterLoop
from reassign.controller.metrics import Metrics
from reassign.controller.writing.config_record import ConfigRecord
from reassign.core.configs.cordons import CordonState
from reassign.core.configs.desired import bounded, log_dir_moves_of
from reassign.core.configs.stage import (
    ConfigMemory,
    ConfigRead,
    decide_configs,
    gate_throttles,
    left_to_restore,
    readable,
    remember_configs,
)
from reassign.core.duplicates import Peer
from reassign.core.model.cluster_rules import ConfigRules
from reassign.core.model.forwarding import Clock, Doubts
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Name
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.record import Entry
from reassign.core.model.row import Row
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, Step
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import Event
from reassign.errors import ConflictError
from tests.unit.sim import resource

KEY = ("kafka", "main")


@dataclass
class ApiServer:
    """Both the store and the writer of one KafkaCluster."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    told: list[Event] = field(default_factory=list)
    recorded: RecordedConfigs | None = None
    refuses: bool = False
    deleted: str | None = None
    released: bool = False
    unlisted: set[str] = field(default_factory=set)
    unreadable_namespaces: set[str] = field(default_factory=set)

    def cluster(self, _: tuple[str, str]) -> dict[str, Any]:
        metadata = {"name": "main", "namespace": "kafka", "uid": "uid", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if self.deleted:
            metadata["deletionTimestamp"] = self.deleted
        spec = {"bootstrapServers": "b:9092", **self.spec}
        return {"kind": "KafkaCluster", "metadata": metadata, "spec": spec, "status": self.status}

    def now(self) -> datetime:
        return datetime.now(UTC)

    def unowned(self, key: object) -> set[object]:
        """Every owner of a record is known."""
        return set()

    async def write_cluster(self, key: tuple[str, str], status: KafkaClusterStatus) -> None:
        self.status = status.wire()

    async def write_throttle(self, cluster: KafkaCluster, throttle: RecordedConfigs | None) -> None:
        if self.refuses:
            raise ConflictError("another version")
        self.recorded = throttle and RecordedConfigs.parse(throttle.wire())

    @property
    def records(self) -> ApiServer:
        return self

    def parts(self, uid: str) -> list[Any]:
        return [SimpleNamespace()]

    def cluster_id(self, uid: str) -> str:
        return "sim"

    async def mark_foreign_cancels(self, cluster: object, sent: bool) -> None:
        """None is sent."""

    def foreign_cancels(self, uid: str) -> bool:
        return False

    def note_served(self, uid: str, problem: object, *, keeps: bool = False, cordons: object = ()) -> None:
        """There is no other KafkaCluster."""

    def has_record(self, uid: str) -> bool:
        return True

    async def look_for_owners(self, key: tuple[str, str], now: object) -> None:
        """Every resource is there."""

    def throttle(self, uid: str) -> RecordedConfigs | None:
        return self.recorded

    async def record_cluster_event(self, key: tuple[str, str], tell: Event) -> None:
        self.told.append(tell)

    def decommissions(self, key: object) -> list[Any]:
        return []

    def policies(self, key: object) -> list[Any]:
        return []

    def plans(self, key: object) -> list[Any]:
        return []

    def uids(self) -> frozenset[str]:
        return frozenset()

    def peers(self) -> list[Peer]:
        meta = self.parsed.metadata
        assert meta.creation_timestamp
        return [Peer(meta.uid, Name(meta.name), (meta.creation_timestamp, meta.uid), "sim", "", 0.0)]

    def clock(self) -> float:
        return 0.0

    def settled(self, key: object) -> list[Any]:
        return []

    def resources(self, _: tuple[str, str]) -> list[Any]:
        return []

    def unreadable(self, _: tuple[str, str]) -> list[Any]:
        return []

    async def keep_cluster(self, obj: Any) -> None:
        pass

    async def refresh(self, resource: object) -> None:
        """What is known is what there is."""

    async def release_object(self, obj: Any) -> None:
        self.released = True

    def parse_cluster(self, obj: dict[str, Any]) -> KafkaCluster:
        return KafkaCluster.parse(obj)

    @property
    def parsed(self) -> KafkaCluster:
        return KafkaCluster.parse(self.cluster(KEY))


class Operator:
    """Ticks the throttles alone; which moves there are is said by the test."""

    def __init__(self, client: Any, spec: Mapping[str, Any] | None = None) -> None:
        self.client = client
        self.api = ApiServer(dict(spec or {}))
        self.topic_ids: dict[str, str] = {}
        self.restart()

    def know(self, snapshot: Snapshot) -> None:
        """Topics have the ids that they have here; `id-NAME` as long as nothing else is known."""
        self.topic_ids |= {name: topic.id for name, topic in snapshot.topics.items()}

    def restart(self) -> None:
        """The process is new: what it knew is lost."""
        api: Any = self.api
        unused: Any = None
        record = ConfigRecord(KEY, api, api, Metrics())
        record.made_anew(self.api.parsed)
        self.actor = Actor(KEY, api, unused, api, Metrics(), record)
        self.memory = ConfigMemory(RecentChanges(started=time.monotonic()))
        self.recent = Recent(started=-100.0, clock=Clock(time.monotonic(), datetime.now(UTC)))
        self.gated: dict[str, Verdict] = {}
        self.cordons: Mapping[int, CordonState] = {}
        """The states of those that were wanted at the last tick."""

    def grow_up(self) -> None:
        """The process is not new any more."""
        self.memory = grown_up(self.memory)

    def show_changes(self) -> None:
        """Some seconds pass: all brokers show what was changed."""
        self.memory = without_changes(self.memory)

    def tick(self, snapshot: Snapshot, verdicts: Sequence[Verdict] = (), cordons: frozenset[int] = frozenset()) -> bool:
        """Decide once to learn what to read, then decide by that, change and gate; whether any throttle is left."""
        return asyncio.run(self._tick(snapshot, verdicts, cordons))

    @property
    def doubts(self) -> Doubts:
        """What the next observation is to settle."""
        in_doubt = self.memory.recent.in_doubt(self.api.recorded)
        return self.recent.forwarding.doubts(time.monotonic(), (), in_doubt)

    async def _tick(self, snapshot: Snapshot, verdicts: Sequence[Verdict], cordons: frozenset[int]) -> bool:
        self.recent = replace(
            self.recent,
            reports=self.recent.reports.observe(self.recent.now, snapshot.log_dirs),
            forwarding=self.recent.forwarding.observe(time.monotonic(), snapshot.forwarded),
        )
        rules = replace(ConfigRules.of(self.api.parsed.spec, self.api.recorded), cordons=cordons)
        _, first, _ = decide_configs(verdicts, snapshot, ConfigRead(), self.memory, self.recent, rules)
        wanted = readable(self.api.recorded, first.reads, snapshot.brokers)
        began = time.monotonic()
        read = ConfigRead(began, await self.client.configs(sorted(wanted)) if wanted else {})
        decided, decision, memory = decide_configs(verdicts, snapshot, read, self.memory, self.recent, rules)
        assert not decision.awaited
        self.memory, self.cordons = memory, decision.cordons
        await self.actor.config_record.write(decision)
        outcomes = await self.actor._change(self.client, decision.changes)
        self.memory = remember_configs(memory, decision, outcomes, time.monotonic())
        gated = gate_throttles(decided, snapshot, read, decision, self.memory.recent, outcomes)
        self.gated = {verdict.resource.uid: verdict for verdict in gated}
        return self.restores(snapshot.brokers)

    def after(self, verdict: Verdict) -> Verdict:
        """What the last tick left of a verdict."""
        return self.gated[verdict.resource.uid]

    def restores(self, brokers: Mapping[int, Broker]) -> bool:
        """Whether any throttle is left to restore."""
        return left_to_restore(self.api.recorded, brokers)

    def copied_between_dirs(self) -> set[TopicPartition]:
        """The partitions that are recorded as copied between directories."""
        return {tp for tps in log_dir_moves_of(self.api.recorded).values() for tp in tps}

    def verdict(
        self,
        uid: str,
        moves: Mapping[TopicPartition, Sequence[Sequence[int]]],
        rate: str | None,
        *,
        begun: bool = False,
        log_dir: str | None = None,
        dirs: Mapping[int, str] | None = None,
    ) -> Verdict:
        """A resource that moves partitions from and to these replicas; what is not `begun` is to be altered now.

        `log_dir` is the rate between directories, `dirs` those named for each of the partitions, by broker.
        """
        throttle = {name: value for name, value in (("interBroker", rate), ("logDir", log_dir)) if value}
        fields = {"throttle": throttle} if throttle else {}
        rules = ConfigRules.of(self.api.parsed.spec)
        judged = bounded(resource({tp: to for tp, (_, to) in moves.items()}, uid, **fields), rules)
        state = State.IN_FLIGHT if begun else State.SUBMITTING
        named = tuple(sorted((dirs or {}).items()))
        ids = {tp: self.topic_ids.get(tp.topic, f"id-{tp.topic}") for tp in moves}
        record = {tp: Entry(ids[tp], tuple(old), tuple(to), state, log_dirs=named) for tp, (old, to) in moves.items()}
        return Verdict(judged, {tp: Row(e, () if begun else (Alter(tp, e.target),)) for tp, e in record.items()})


def with_steps(verdict: Verdict, *steps: Step) -> Verdict:
    """The verdict with these steps in place of its own."""
    rows = verdict.rows.items()
    return verdict.with_rows({tp: replace(row, steps=tuple(s for s in steps if s.tp == tp)) for tp, row in rows})


def ended(verdict: Verdict) -> Verdict:
    """The same resource, its moves over."""
    return verdict.with_rows({tp: Row(entry.to(State.COMPLETED)) for tp, entry in verdict.record.items()})


def grown_up(memory: ConfigMemory) -> ConfigMemory:
    """The memory of a process that is not new any more."""
    recent = memory.recent
    earlier = recent.earlier and recent.earlier._replace(at=recent.earlier.at - 100)
    return replace(memory, recent=replace(recent, started=recent.started - 100, earlier=earlier))


def without_changes(memory: ConfigMemory) -> ConfigMemory:
    """The memory some seconds later: all brokers show what was changed."""
    return replace(memory, recent=replace(memory.recent, sent=()))


def throttle_its_move(world: Any, client: Any) -> None:
    """A world of an operator that has been running for long, whose resource `move` is throttled to 1 MiB/s."""
    world.brokers.configs, world.brokers.change = client.configs, client.change
    grow_up(world.loop)
    world.change("move", lambda obj: obj["spec"].update(throttle={"interBroker": "1Mi"}))


def grow_up(loop: ClusterLoop) -> None:
    loop.memory = replace(loop.memory, throttle=grown_up(loop.memory.throttle))


def show_changes(loop: ClusterLoop) -> None:
    loop.memory = replace(loop.memory, throttle=without_changes(loop.memory.throttle))
