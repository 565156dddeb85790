"""Brokers that answer for throttle configurations, and partition 0 on its way from OLD to NEW."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from reassign.core.model.configs import Change, ConfigResource, put
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, Reassignment, Snapshot, TopicPartition
from reassign.core.model.steps import APPLIED, Outcome, Result
from reassign.errors import Reason
from reassign.kafka.throttles import Read
from tests.unit.configs import Store, broker, copy, topic
from tests.unit.sim import SimKafka, partitions
from tests.unit.world import LATER, OURS

P0, P1 = partitions(2)
OLD, NEW = (0, 1), (2, 1)
START: Store = {**{broker(b): {} for b in range(4)}, topic(): {}}
NOTHING_SET: Store = {**{broker(b): {} for b in range(6)}, topic(OURS.topic): {}, topic(LATER.topic): {}}
"""The brokers and topics of a `World`."""
NOT_ALLOWED = Problem(Reason.NOT_AUTHORIZED, "not allowed")


@dataclass
class Client:
    """Answers for the brokers; `denied` are resources that may be read and not changed, `hidden` not even read."""

    store: Store = field(default_factory=lambda: copy(START))
    denied: set[ConfigResource] = field(default_factory=set)
    hidden: set[ConfigResource] = field(default_factory=set)
    asked: int = 0
    changes: list[Change] = field(default_factory=list)
    observed: list[tuple[object, ...]] = field(default_factory=list)

    async def observe(self, *asked: object) -> Snapshot:
        self.observed.append(asked)
        return snapshot()

    async def configs(self, resources: Collection[ConfigResource]) -> Read:
        self.asked += 1
        return {p: NOT_ALLOWED if p in self.hidden else dict(self.store[p]) for p in resources}

    async def change(self, changes: Collection[Change]) -> dict[Change, Outcome]:
        outcomes = {}
        for change in changes:
            if change.key.resource in self.denied:
                outcomes[change] = Outcome(Result.REFUSED, NOT_ALLOWED.reason, NOT_ALLOWED.message)
            else:
                put(self.store[change.key.resource], change)
                self.changes.append(change)
                outcomes[change] = APPLIED
        return outcomes


def snapshot(in_flight: dict[TopicPartition, Reassignment] | None = None, fenced: Collection[int] = ()) -> Snapshot:
    kafka = SimKafka({P0: OLD, P1: OLD}, brokers={b: Broker(b, fenced=b in fenced) for b in range(4)})
    kafka.reassignments = in_flight or {}
    return kafka.snapshot()


MOVING = Reassignment((2, 1, 0), (2,), (0,))
