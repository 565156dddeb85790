"""What the throttles of the operator work on besides Kafka: a KafkaCluster, kept as the API server would keep it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reassign.api.kafka_cluster import KafkaCluster, KafkaClusterStatus, ThrottleStatus
from reassign.api.partition_reassignment import RecordState
from reassign.controller.metrics import Metrics
from reassign.controller.throttling import Throttling
from reassign.core.model.memory import Recent
from reassign.core.model.record import Entry
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import Alter
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import Event
from reassign.core.throttle.desired import bounded
from tests.unit.sim import resource

KEY = ("kafka", "main")


@dataclass
class ApiServer:
    """Both the store and the reporter of one KafkaCluster."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    told: list[Event] = field(default_factory=list)
    refuses: bool = False
    deleted: str | None = None
    released: bool = False

    def cluster(self, _: tuple[str, str]) -> dict[str, Any]:
        metadata = {"name": "main", "namespace": "kafka", "uid": "uid", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if self.deleted:
            metadata["deletionTimestamp"] = self.deleted
        return {"metadata": metadata, "spec": {"bootstrapServers": "b:9092", **self.spec}, "status": self.status}

    async def restore(self, key: object) -> None:
        """Nobody else writes here."""

    async def answer_for_unreadable(self, key: object) -> None:
        """Everything can be read."""

    async def write_cluster(self, key: tuple[str, str], status: KafkaClusterStatus) -> None:
        if not self.refuses:
            self.status = status.wire()

    async def tell_cluster(self, key: tuple[str, str], tell: Event) -> None:
        self.told.append(tell)

    def plans(self, key: object) -> list[Any]:
        return []

    def uids(self) -> frozenset[str]:
        return frozenset()

    def clusters(self) -> list[Any]:
        return [self.cluster(KEY)]

    def resources(self, _: tuple[str, str]) -> list[Any]:
        return []

    def overwritten(self, _: tuple[str, str]) -> list[Any]:
        return []

    def unreadable(self, _: tuple[str, str]) -> list[Any]:
        return []

    async def keep_cluster(self, obj: Any) -> None:
        pass

    async def release_cluster(self, obj: Any) -> None:
        self.released = True

    def parse_cluster(self, obj: dict[str, Any]) -> KafkaCluster:
        return KafkaCluster.parse(obj)

    @property
    def parsed(self) -> KafkaCluster:
        return KafkaCluster.parse(self.cluster(KEY))

    @property
    def throttle(self) -> ThrottleStatus | None:
        return self.parsed.status.throttle


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
        self.throttling = Throttling(KEY, self.api, self.api, Metrics())  # type: ignore[arg-type]
        self.recent = Recent(started=-100.0)

    def tick(self, snapshot: Snapshot, verdicts: Sequence[Verdict] = ()) -> bool:
        self.recent.answers.observe(self.recent.now, snapshot.log_dirs)
        return asyncio.run(self.throttling.throttle(self.api.parsed, self.client, verdicts, snapshot, self.recent))

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
        judged = bounded(resource({tp: to for tp, (_, to) in moves.items()}, uid, **fields), self.api.parsed.spec)
        state = RecordState.IN_FLIGHT if begun else RecordState.SUBMITTING
        named = tuple(sorted((dirs or {}).items()))
        ids = {tp: self.topic_ids.get(tp.topic, f"id-{tp.topic}") for tp in moves}
        record = {tp: Entry(ids[tp], tuple(old), tuple(to), state, log_dirs=named) for tp, (old, to) in moves.items()}
        steps = [] if begun else [Alter(tp, tuple(to)) for tp, (_, to) in moves.items()]
        return Verdict(judged, record, list(steps))


def ended(verdict: Verdict) -> Verdict:
    """The same resource, its moves over."""
    over = {tp: entry.to(RecordState.COMPLETED) for tp, entry in verdict.record.items()}
    return replace(verdict, record=over, steps=[])
