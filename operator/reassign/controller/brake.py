"""The brake of one KafkaCluster, and the pause that it takes by itself: what stands in the way of new moves now."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import structlog

from reassign.api.common import GROUP
from reassign.api.kafka_cluster import Execution, KafkaCluster, Pacing, PauseWhen
from reassign.core.checks.pause import our_own, pause_problem, shortages, waits_to_start
from reassign.core.cluster import permission_of
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, Topic, TopicPartition
from reassign.core.model.steps import Cancel, Step
from reassign.core.moves.brake import Undo, documents, foreign, undo_foreign, undone_by
from reassign.errors import Reason, ReassignError
from reassign.kafka.client import KafkaClient
from reassign.kube.client import ClusterKey, KubeClient

log = structlog.get_logger()

SURVEY_SECONDS = 15.0
LABEL = f"{GROUP}/cluster"
DOCUMENT = "reassignment.json"
LABEL_CHARACTERS, NAME_CHARACTERS = 63, 253


def brake_of(execution: Execution) -> Problem | None:
    """Why nothing new starts, by the brake that people pull."""
    if execution is Execution.RUN:
        return None
    if execution is Execution.PAUSE:
        return Problem(
            Reason.PAUSED, "spec.execution of the KafkaCluster is Pause: nothing new starts until it is Run again"
        )
    return Problem(
        Reason.CANCELLED_BY_BRAKE,
        f"spec.execution of the KafkaCluster is {execution}: what is in flight goes back to its original replicas, "
        "and nothing starts until it is Run again",
    )


class Finding(NamedTuple):
    """Why nothing new starts, by spec.pauseWhen; and what lacks replicas in sync, where all partitions were looked at
    just now."""

    pause: Problem | None = None
    topics: Mapping[str, Topic] | None = None


@dataclass(slots=True)
class Survey:
    """Looks at all partitions of a cluster for pauseWhen and limits.pacing, at a slow pace, and only while something
    waits to start."""

    _at: float = float("-inf")
    _asked: tuple[PauseWhen, Pacing] | None = None
    _short: tuple[TopicPartition, ...] = ()

    async def look(
        self, client: KafkaClient, cluster: KafkaCluster, resources: Sequence[Resource], snapshot: Snapshot
    ) -> Finding:
        """What is found now; between two looks the last one stands for pauseWhen."""
        when = cluster.spec.pause_when
        asked = when, cluster.spec.limits.pacing
        if asked == (PauseWhen.NEVER, Pacing.FIXED) or not waits_to_start(resources):
            return Finding()
        ours, topics = our_own(resources, permission_of(cluster)), None
        if asked != self._asked or time.monotonic() - self._at >= SURVEY_SECONDS:
            topics = await client.observe_shortages()
            # what our own move has mended since would count until the next survey
            self._short = tuple(tp for tp in shortages(when, topics, snapshot.reassignments) if tp not in ours)
            self._asked, self._at = asked, time.monotonic()
        return Finding(pause_problem(when, self._short, ours), topics)


@dataclass(slots=True)
class BrakeRecord:
    """Keeps in ConfigMaps what CancelAll undoes, each move once for this process, before it is cancelled.

    A process that was killed in between may keep a move twice, and never cancels one that is not kept.
    """

    key: ClusterKey
    kube: KubeClient
    stuck: Problem | None = None
    """Why the brake has not undone everything at the last look."""
    _kept: set[tuple[TopicPartition, tuple[int, ...]]] = field(default_factory=set)

    def undo(
        self, execution: Execution, resources: Sequence[Resource], snapshot: Snapshot, recent: Recent
    ) -> Undo | None:
        """What CancelAll does about moves that none of these resources holds; None with another position."""
        self.stuck = None
        if execution is Execution.CANCEL_ALL:
            undo = undo_foreign(foreign(resources, snapshot), snapshot, recent)
            self.stuck = undo.problem
            return undo
        self._kept.clear()
        return None

    async def keep(self, steps: Sequence[Step], snapshot: Snapshot, now: datetime) -> list[Step]:
        """The steps that may be taken: all, or none of the cancels where what they undo could not be kept."""
        moves = undone_by(steps, snapshot)
        new = {tp: replicas for tp, replicas in moves.items() if (tp, replicas) not in self._kept}
        try:
            for number, document in enumerate(parts := documents(new), 1):
                await self._create(document, now, number if len(parts) > 1 else None)
        except ReassignError as error:
            log.warning("not kept, so not cancelled", cluster=self.key, error=error.message)
            message = (
                f"nothing is cancelled, since what it undoes could not be kept in a ConfigMap: {error.message}; "
                "mend that, or set execution: CancelOurs, which needs none"
            )
            self.stuck = Problem(error.reason, message)
            return [step for step in steps if not isinstance(step, Cancel)]
        self._kept |= new.items()
        return list(steps)

    async def _create(self, document: str, now: datetime, part: int | None) -> None:
        namespace, cluster = self.key
        suffix = f"-cancelled-{now:%Y%m%d-%H%M%S-%f}" + (f"-{part}" if part else "")
        name = cluster[: NAME_CHARACTERS - len(suffix)].rstrip(".-") + suffix
        labels = {LABEL: cluster[:LABEL_CHARACTERS].rstrip(".-")}
        await self.kube.create_config_map(namespace, name, {DOCUMENT: document}, labels)
        log.info("kept what is cancelled", cluster=self.key, config_map=name)
