"""The core's tick against real brokers, with records kept as the API server would keep them; and nodes that stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from localplatform.brokers import Brokers
from reassign.api.kafka_cluster import Limits
from reassign.api.reassignment_record import RecordedConfigs
from reassign.core.configs.stage import ConfigRead, readable
from reassign.core.model.cluster_rules import ClusterRules, ConfigRules
from reassign.core.model.configs import ConfigResource, ConfigResourceType
from reassign.core.model.record import active, read_record, write_record
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.steps import Result
from reassign.core.tick import Memory, decide, doubts, gate, kept, recorded, settle
from reassign.errors import ClusterError
from reassign.kafka.client import KafkaClient
from tests.kafka.harness import Kafka, eventually


@dataclass
class LiveOperator:
    """An operator without Kubernetes."""

    client: KafkaClient
    resources: dict[str, Resource] = field(default_factory=dict)
    throttle: RecordedConfigs | None = None
    unanswered: int = 0
    memory: Memory = field(default_factory=lambda: Memory.begin(time.monotonic()))
    stage: str = ""
    """What is being written now: changes of configurations, or steps."""
    reads: frozenset[Any] = frozenset()

    def add(self, *resources: Resource) -> None:
        self.resources |= {resource.uid: resource for resource in resources}

    def delete(self, uid: str) -> None:
        self.resources[uid] = replace(self.resources[uid], deleted=datetime.now(UTC))

    def kill(self) -> None:
        """The process is new: what it knew is lost."""
        self.memory = Memory.begin(time.monotonic())

    @property
    def idle(self) -> bool:
        """Whether nothing is left to undo."""
        return not self.resources and self.throttle is None

    def tick(self) -> bool:
        """One reconciliation; whether the cluster could be seen."""
        return asyncio.run(self._tick())

    async def _tick(self) -> bool:
        resources, client = list(self.resources.values()), self.client
        topics = {tp.topic for resource in resources for tp in resource.named}
        began = time.monotonic()
        try:
            snapshot = await client.observe(topics, None, (), doubts(resources, self.throttle, self.memory))
        except ClusterError:
            return False
        recent = self.memory.recent.observe(
            began, time.monotonic(), snapshot.reassignments, snapshot.brokers, snapshot.forwarded
        )
        self.memory = replace(self.memory, recent=recent)
        wanted = readable(self.throttle, self.reads, snapshot.brokers)
        read = ConfigRead(time.monotonic(), await client.configs(sorted(wanted)) if wanted else {})
        rules = ClusterRules(Limits(), throttle=ConfigRules(record=self.throttle))
        decision = decide(resources, snapshot, read, self.memory, rules, datetime.now(UTC))
        assert not decision.errors, decision.errors
        self.reads = decision.throttle.reads
        record = decision.throttle.record
        self.throttle = record and RecordedConfigs.parse(record.wire())
        self.stage = "changes"
        changed = await client.change(decision.throttle.changes) if decision.throttle.changes else {}
        decision = gate(decision, changed, time.monotonic())
        for verdict in decision.verdicts:
            if verdict.release:
                del self.resources[verdict.resource.uid]
            elif verdict.must_record:
                self._keep(verdict.resource, verdict.record)
        decision = kept(recorded(decision, self.resources), None)
        self.stage = "steps"
        outcomes = await client.perform(decision.steps) if decision.steps else {}
        met = [*changed.values(), *outcomes.values()]
        self.unanswered += sum(outcome.result is Result.UNKNOWN for outcome in met)
        decision = settle(decision, outcomes, time.monotonic())
        self.memory = decision.memory
        for verdict in decision.verdicts:
            if verdict.resource.uid in self.resources:
                self._keep(verdict.resource, verdict.record)
        return True

    def _keep(self, resource: Resource, record: Any) -> None:
        self.resources[resource.uid] = replace(resource, record=read_record(write_record(record)))

    def run(self, until: Callable[[], bool], seconds: float) -> None:
        """Tick each half second until the condition holds."""
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, f"it did not come true: {self.left()}"
            self.tick()
            time.sleep(0.5)

    def left(self) -> list[object]:
        """What is left to undo."""
        return [*(active(resource.record) for resource in self.resources.values()), self.throttle]


class Stopping:
    """Stops nodes right before the next write of a stage, when the request goes to a connection that stands."""

    def __init__(self, brokers: Brokers) -> None:
        self.kafka = Kafka(brokers, before_write=self._before_write)
        self.operator = LiveOperator(self.kafka.client)
        self._nodes: tuple[int, ...] = ()
        self._stage: str | None = None
        self._stopped = ExitStack()

    def at(self, stage: str, *nodes: int) -> None:
        """Stop these nodes at that stage; if none is named, the broker that the write goes to."""
        self._stage, self._nodes = stage, nodes

    def _before_write(self) -> None:
        if self.operator.stage == self._stage:
            via = self.operator.memory.recent.forwarding.via
            nodes = self._nodes or (() if via is None else (via,))
            self._stopped.enter_context(self.kafka.brokers.frozen(*nodes))
            self._stage = None

    def go_on(self) -> None:
        """Let the nodes that live go on."""
        self._stopped.close()

    def leaves_nothing(self, *partitions: TopicPartition) -> None:
        """It comes to rest with the resource gone, and nothing comes after that."""
        self.operator.run(lambda: self.operator.idle, 150)
        time.sleep(2)
        assert not self.kafka.observe().reassignments
        topics = {tp.topic for tp in partitions}
        places = [ConfigResource(ConfigResourceType.BROKER, str(broker)) for broker in self.kafka.brokers.ids]
        read = self.kafka.configs(*places, *(ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics))
        assert not any(read.values()), read
        for tp in partitions:
            eventually(lambda tp=tp: self.kafka.settled(tp, [0, 1]))  # type: ignore[misc]
