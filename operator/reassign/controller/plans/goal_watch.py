"""Watches the goals of plans that were carried out, now and then, one reading for all plans of a KafkaCluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reassign.api.reassignment_plan import Goal
from reassign.controller.plans.job import CONNECT_SECONDS, Job
from reassign.core.cluster import check_identity
from reassign.core.model.layout import Layout
from reassign.core.model.problem import Problem
from reassign.core.model.progress import duration
from reassign.core.plans.goal import drained, is_watched, not_reached, unregistered
from reassign.core.plans.model import GoalSeen, GoalUnseen, PlanResource
from reassign.errors import ClusterError, Reason
from reassign.inspect.cluster import read_only
from reassign.kafka.connection import Connection

GOAL_SECONDS = 300.0
READING_SECONDS = 240.0
"""What one reading may take."""


@dataclass(frozen=True, slots=True)
class GoalReading:
    """Where all replicas are, or why that cannot be read."""

    found: Layout | Problem
    plans: Mapping[str, datetime | None]
    """The plans that it was made for, by uid, with `goal_observed_time` as it was when the reading began."""

    def of(self, plan: PlanResource, job: Job) -> GoalSeen | GoalUnseen | None:
        """Return what it says of the goal of a plan; None where that was observed later, or is not watched any more."""
        if not is_watched(plan) or self.plans.get(plan.uid) != plan.status.goal_observed_time:
            return None
        if isinstance(self.found, Problem):
            return GoalUnseen(self.found, GOAL_SECONDS)
        return GoalSeen(not_reached(plan, self.found, job.allowed), None, unregistered(plan, self.found))


@dataclass(slots=True)
class GoalWatch:
    """Reads beside the loop of one KafkaCluster, with a client of its own: a broker answers the requests of one
    connection in turn, and one that does not answer in time delays nothing else."""

    explain: Callable[[Exception], Problem]
    _at: float = float("-inf")
    _plans: Mapping[str, datetime | None] = field(default_factory=dict)
    _task: asyncio.Task[Layout] | None = None
    _failed: GoalReading | None = None

    def look(
        self, connection: Connection, pinned: str | None, plans: Sequence[PlanResource], wake: Callable[[], object]
    ) -> GoalReading | None:
        """Return what has been read since the last look; of a reading that failed, why, until the next one has ended.

        Begin with a reading where it is due; `wake` is called when it has ended. `pinned` is the recorded id of the
        Kafka cluster.
        """
        if self._task:
            return self._ended(self._task) if self._task.done() else self._failed
        if plans and time.monotonic() - self._at >= GOAL_SECONDS:
            self._at, self._plans = time.monotonic(), {plan.uid: plan.status.goal_observed_time for plan in plans}
            goals = {plan.spec.goal for plan in plans}
            self._task = asyncio.create_task(_read(connection, pinned, goals), name="goals")
            self._task.add_done_callback(lambda _: wake())
        return self._failed

    def _ended(self, task: asyncio.Task[Layout]) -> GoalReading | None:
        self._task = self._failed = None
        try:
            return GoalReading(task.result(), self._plans)
        except asyncio.CancelledError:
            return None
        except Exception as error:
            self._failed = GoalReading(self.explain(error), self._plans)
            return self._failed

    async def stop(self) -> None:
        """End the reading under way, with its connection closed."""
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])


async def _read(connection: Connection, pinned: str | None, goals: Collection[Goal]) -> Layout:
    try:
        async with asyncio.timeout(READING_SECONDS), read_only(connection, CONNECT_SECONDS) as client:
            layout = await client.observe_layout(lambda seen: {b for goal in goals for b in drained(goal, seen)})
    except TimeoutError:
        message = f"where all replicas are could not be read within {duration(READING_SECONDS)}"
        raise ClusterError(Reason.CLUSTER_UNREACHABLE, message) from None
    check_identity(pinned, layout.cluster_id)
    return layout
