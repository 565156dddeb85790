"""The note in a KafkaCluster's record that cancels of other clients' moves may land: it outlives the process."""

from __future__ import annotations

from dataclasses import dataclass

from reassign.api.kafka_cluster import Execution, KafkaCluster
from reassign.controller.cluster.parts import Parts
from reassign.controller.objects.store import Store
from reassign.core.model.forwarding import LANDING_SECONDS
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem


@dataclass(frozen=True, slots=True)
class ForeignCancels:
    """Whether cancels of other clients' moves were sent for a KafkaCluster, and may land."""

    store: Store
    parts: Parts

    async def mark(self, cluster: KafkaCluster) -> Problem | None:
        """Record that other clients' moves are about to be cancelled; return why that cannot be written."""
        unwritten: list[Problem] = []
        if not self.store.foreign_cancels(cluster.metadata.uid):
            await self.parts.write(self.parts.writer.records.mark_foreign_cancels(cluster, True), unwritten)
        return unwritten[0] if unwritten else None

    async def forget(self, cluster: KafkaCluster, recent: Recent) -> None:
        """Record that no cancel of another client's move can land any more, once that is so."""
        in_doubt = self.may_land(cluster, recent) or recent.unanswered
        sent = self.store.foreign_cancels(cluster.metadata.uid)
        if sent and not in_doubt and cluster.spec.execution is not Execution.CANCEL_ALL:
            await self.parts.write(self.parts.writer.records.mark_foreign_cancels(cluster, False), [])

    def may_land(self, cluster: KafkaCluster, recent: Recent) -> bool:
        """Whether an earlier process may have a cancel of another client's move under way.

        This one remembers its own (`Recent.unanswered`), partition by partition.
        """
        return self.store.foreign_cancels(cluster.metadata.uid) and recent.now - recent.started < LANDING_SECONDS
