"""Throttling: reads and changes the throttle configurations of one cluster, as `core.throttle` plans it.

The record is in the KafkaCluster's status before the first change that needs it, and a partition's replicas are
throttled before they are copied: what cannot be throttled now is not begun, and nothing of
others is cancelled for it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from reassign.api.kafka_cluster import KafkaCluster, ThrottleStatus
from reassign.controller.memory import Memory
from reassign.controller.metrics import Metrics
from reassign.controller.reporter import Reporter
from reassign.controller.serving import duplicate_of, left_to_restore, younger_throttles
from reassign.controller.store import Store
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Broker, Snapshot, TopicPartition
from reassign.core.model.steps import Outcome, Result
from reassign.core.model.verdict import Verdict
from reassign.core.report.events import Event
from reassign.core.throttle.configs import Change, ConfigResource, ConfigResourceType, Configs, Observed, Op
from reassign.core.throttle.desired import ThrottledMove, copying, log_dir_moves_of, wanted
from reassign.core.throttle.diff import fit, read_record
from reassign.core.throttle.gate import ThrottleState, hold_back, hold_back_all
from reassign.core.throttle.recent import Lately
from reassign.core.throttle.unrecorded import unrecorded
from reassign.errors import ConflictError, Reason
from reassign.kafka.client import KafkaClient
from reassign.kube.client import ClusterKey

log = structlog.get_logger()


@dataclass(slots=True)
class Throttling:
    """The throttles of one KafkaCluster."""

    key: ClusterKey
    store: Store
    reporter: Reporter
    metrics: Metrics
    _lately: Lately = field(default_factory=lambda: Lately(started=time.monotonic()))
    _problems: Mapping[ConfigResource, Problem] = field(default_factory=dict)
    """What the last changes were refused for."""
    _memory: Memory = field(default_factory=Memory)

    async def write_back(self, cluster: KafkaCluster) -> bool:
        """Put the record back into a status that somebody else has taken it out of; whether that was so."""
        record = self._memory.lost(cluster)
        if record is None:
            return False
        await self.reporter.write_cluster(self.key, cluster.status.model_copy(update={"throttle": record}))
        message = (
            "somebody took the record of the throttles that are set out of the status; it is written back as it was. "
            "Find out who does it: while the operator does not run, nobody writes it back"
        )
        await self._warn(Problem(Reason.THROTTLE_RECORD_LOST, message))
        return True

    async def throttle(
        self,
        cluster: KafkaCluster,
        client: KafkaClient,
        verdicts: Sequence[Verdict],
        snapshot: Snapshot,
        recent: Recent,
    ) -> bool:
        """Bring the throttles to where the verdicts want them, and take back the steps that they are not ready for.

        Whether anything is set that has to be restored one day.
        """
        record = self._recorded()
        moves = copying(verdicts, snapshot, cluster.spec, record, recent.shown)
        duplicate = duplicate_of(cluster, snapshot.cluster_id, self.store)
        younger = younger_throttles(cluster, snapshot, self.store)
        if waits := duplicate or younger:
            hold_back_all(verdicts, moves, waits, snapshot)
        if younger:
            return self.restores(snapshot.brokers)
        if duplicate:  # what it has set stays until those moves are over
            moves = copying((), snapshot, cluster.spec, record, recent.shown)
        if not moves and record is None:
            self._memory.looked = True
            return False
        live = frozenset(b.id for b in snapshot.brokers.values() if not b.fenced)
        observed, problems = await self._read(client, record, moves, live)
        if not self._memory.looked and not problems:
            self._memory.looked = True
            if problem := unrecorded(moves, snapshot.reassignments.keys(), record, observed):
                await self._warn(problem)
        if duplicate_of(cluster, snapshot.cluster_id, self.store) != duplicate:
            raise ConflictError(
                f"an older KafkaCluster has just been seen to stand for the brokers of {cluster.metadata.name}"
            )
        planned, kept = fit(record, moves, observed, self._lately)
        await self._write(planned.record, {**self._problems, **problems})
        if planned.drift and not self._problems:  # what could not be set is not somebody else's doing
            await self._tell_drift(planned.drift)
        outcomes = await self._change(client, planned.changes)
        failed = {c.key.resource: o.problem for c, o in outcomes.items() if o.result is not Result.APPLIED}
        self._problems = {resource: problem for resource, problem in failed.items() if _lives(resource, live)}
        seen = self._lately.over(observed)
        standing = ThrottleState(moves, kept, wanted(kept, record), seen, live, {**problems, **failed})
        hold_back(verdicts, standing, snapshot)
        return self.restores(snapshot.brokers)

    def restores(self, brokers: Mapping[int, Broker]) -> bool:
        """Whether something is left to restore."""
        return left_to_restore(self._recorded(), brokers)

    def placing(self) -> set[TopicPartition]:
        """Partitions that are throttled while they are copied between log directories, held by a resource or not."""
        return {tp for tps in log_dir_moves_of(self._recorded()).values() for tp in tps}

    def _recorded(self) -> ThrottleStatus | None:
        obj = self.store.cluster(self.key)
        return self.store.parse_cluster(obj).status.throttle if obj else None

    async def _read(
        self, client: KafkaClient, record: ThrottleStatus | None, moves: Sequence[ThrottledMove], live: frozenset[int]
    ) -> tuple[Observed, dict[ConfigResource, Problem]]:
        aim = wanted(moves, record)
        keys = read_record(record).keys() | aim.values.keys() | aim.items.keys()
        began = time.monotonic()
        found = await client.configs(sorted({key.resource for key in keys if _lives(key.resource, live)}))
        self._lately.observe(began)
        observed: dict[ConfigResource, Configs | None] = {}
        problems: dict[ConfigResource, Problem] = {}
        for resource, configs in found.items():
            if isinstance(configs, Problem):
                problems[resource] = configs
            else:
                observed[resource] = configs
        return observed, problems

    async def _write(self, record: ThrottleStatus | None, problems: Mapping[ConfigResource, Problem]) -> None:
        """Raises ConflictError when the record could not be written to the KafkaCluster that it is about."""
        obj = self.store.cluster(self.key)
        if obj and record and problems:
            first = min(problems)
            update = {"reason": problems[first].reason, "message": problems[first].message[:1024]}
            record = record.model_copy(update=update)
        elif record:
            record = record.model_copy(update={"reason": None, "message": None})
        if record is None:
            self._memory.record = None
        if obj:
            status = self.store.parse_cluster(obj).status
            await self.reporter.write_cluster(self.key, status.model_copy(update={"throttle": record}))
        if self._recorded() != record:
            raise ConflictError(f"{'/'.join(self.key)} has changed meanwhile")
        self._memory.record = record

    async def _tell_drift(self, drift: Problem) -> None:
        self.metrics.throttle_drift.labels("/".join(self.key)).inc()
        await self._warn(drift)

    async def _warn(self, problem: Problem) -> None:
        log.warning("throttles", cluster=self.key, reason=problem.reason, message=problem.message)
        await self.reporter.tell_cluster(self.key, Event(True, problem.reason, problem.message))

    async def _change(self, client: KafkaClient, changes: Sequence[Change]) -> dict[Change, Outcome]:
        """What throttles first, then what is restored: no configuration is changed twice in one request."""
        outcomes: dict[Change, Outcome] = {}
        taking = [c for c in changes if c.op in (Op.DELETE, Op.SUBTRACT)]
        for group in ([c for c in changes if c not in taking], taking):
            if not group:
                continue
            met = await client.change(group)
            at = time.monotonic()
            for change, outcome in met.items():
                self.metrics.kafka_write("Config")
                if outcome.result is not Result.REFUSED:
                    self._lately.touch(change, at, answered=outcome.result is Result.APPLIED)
                log.info("config", change=str(change), result=outcome.result, message=outcome.message)
            outcomes |= met
        return outcomes


def _lives(resource: ConfigResource, live: frozenset[int]) -> bool:
    return resource.type is ConfigResourceType.TOPIC or int(resource.name) in live
