"""The record of throttles in the status of a KafkaCluster: written before the changes that need it, and written back.

Without a record, what is set looks like another client's, and stays for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from reassign.api.kafka_cluster import KafkaCluster, ThrottleStatus
from reassign.controller.metrics import Metrics
from reassign.controller.reporter import Reporter
from reassign.controller.store import Store
from reassign.core.model.problem import Problem
from reassign.core.report.events import Event
from reassign.core.throttle.stage import ThrottleDecision
from reassign.errors import ConflictError, Reason
from reassign.kube.client import ClusterKey

log = structlog.get_logger()


@dataclass(slots=True)
class ThrottleRecord:
    """The record of one KafkaCluster as this process knows it; one made anew under its name is another."""

    key: ClusterKey
    store: Store
    reporter: Reporter
    metrics: Metrics
    _known: ThrottleStatus | None = None
    """Cleared before the status is: an answer that was lost is no loss."""
    _uid: str = ""

    def made_anew(self, cluster: KafkaCluster) -> bool:
        """Whether this is another KafkaCluster than the last one of its name: nothing is known of its throttles."""
        if cluster.metadata.uid == self._uid:
            return False
        self._known, self._uid = None, cluster.metadata.uid
        return True

    async def write_back(self, cluster: KafkaCluster) -> bool:
        """Put the record back into a status that another client has removed it from; whether that was so."""
        if recorded := cluster.status.throttle:
            self._known = recorded
        if recorded or self._known is None:
            return False
        await self.reporter.write_cluster(self.key, cluster.status.model_copy(update={"throttle": self._known}))
        message = (
            "another client removed the record of the throttles that are set from the status; it is written back as "
            "it was. Find out which one: while the operator does not run, it is not written back"
        )
        await self._warn(Problem(Reason.THROTTLE_RECORD_LOST, message))
        return True

    async def write(self, decision: ThrottleDecision) -> None:
        """Raises ConflictError when the record could not be written to the KafkaCluster that it is about."""
        if decision.untouched:
            return
        for problem in decision.warnings:
            await self._warn(problem)
        if decision.record is None:
            self._known = None
        if obj := self.store.cluster(self.key):
            status = self.store.parse_cluster(obj).status
            await self.reporter.write_cluster(self.key, status.model_copy(update={"throttle": decision.record}))
        if self.recorded != decision.record:
            raise ConflictError(f"{'/'.join(self.key)} has changed meanwhile")
        self._known = decision.record
        if decision.drift:
            self.metrics.throttle_drift.labels("/".join(self.key)).inc()
            await self._warn(decision.drift)

    @property
    def recorded(self) -> ThrottleStatus | None:
        obj = self.store.cluster(self.key)
        return self.store.parse_cluster(obj).status.throttle if obj else None

    async def _warn(self, problem: Problem) -> None:
        log.warning("throttles", cluster=self.key, reason=problem.reason, message=problem.message)
        await self.reporter.record_cluster_event(self.key, Event(True, problem.reason, problem.message))
