"""The record of the throttles and cordons of one KafkaCluster: written before the changes that need it.

Without a record, what is set looks like another client's, and stays for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.reassignment_record import RecordedConfigs
from reassign.controller.metrics import Metrics
from reassign.controller.objects.store import Store
from reassign.controller.writing.writer import Writer
from reassign.core.configs.stage import ConfigDecision
from reassign.core.model.problem import Problem
from reassign.core.report.events import Event, cordon_events
from reassign.errors import ConflictError
from reassign.kube.client import ClusterKey

log = structlog.get_logger()


@dataclass(slots=True)
class ConfigRecord:
    """The record of one KafkaCluster as this process knows it; one made anew under its name is another."""

    key: ClusterKey
    store: Store
    writer: Writer
    metrics: Metrics
    _uid: str = ""

    def made_anew(self, cluster: KafkaCluster) -> bool:
        """Note the KafkaCluster; return whether it was made anew, so that nothing is known of its throttles."""
        if cluster.metadata.uid == self._uid:
            return False
        self._uid = cluster.metadata.uid
        return True

    async def write(self, decision: ConfigDecision) -> None:
        """Write the record, and report drift.

        Raises ConflictError when the KafkaCluster was made anew meanwhile, or another one has taken its throttles over.
        """
        if decision.untouched:
            return
        for problem in decision.warnings:
            await self._warn(problem)
        obj = self.store.cluster(self.key)
        if obj is None or obj["metadata"]["uid"] != self._uid or self.recorded != decision.before:
            raise ConflictError(f"{'/'.join(self.key)} has changed meanwhile")
        await self.writer.records.write_throttle(self.store.parse_cluster(obj), decision.record)
        for event in cordon_events(decision.news):
            log.info("cordons", event_reason=event.reason, message=event.note)
            await self.writer.record_cluster_event(self.key, event)
        if decision.drift:
            self.metrics.throttle_drift.labels("/".join(self.key)).inc()
            await self._warn(decision.drift)

    @property
    def recorded(self) -> RecordedConfigs | None:
        return self.store.throttle(self._uid)

    async def _warn(self, problem: Problem) -> None:
        log.warning("throttles", reason=problem.reason, message=problem.message)
        await self.writer.record_cluster_event(self.key, Event(True, problem.reason, problem.message))
