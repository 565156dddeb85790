"""Has plans made, one at a time, each in a process of its own; what comes of it is kept until its waves are written."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

import structlog

from reassign.controller.plans.job import Job, work_out
from reassign.controller.plans.subprocess import run_in_subprocess
from reassign.core.model.problem import Problem, error_problem
from reassign.core.plans.model import GoalSeen, Planned
from reassign.errors import PlanningError, Reason

log = structlog.get_logger()

SECONDS = 300.0
"""What a plan may take, with the observation of the whole cluster."""
RETRY_SECONDS = 60.0
"""How long after a failure it is tried again, at the soonest: its cause may have been removed."""
WAIT_SECONDS = 60.0
"""How long others wait for the turn of one that has asked: a healthy loop ticks, and asks, again sooner."""


class _Outcome(NamedTuple):
    terms: tuple[object, ...]
    made: Planned | GoalSeen | Problem
    at: float


class Planner:
    """One process at a time, for all clusters: a plan needs memory, and the loops need a processor."""

    def __init__(self, work: Callable[[Job], Awaitable[Planned | GoalSeen]] | None = None) -> None:
        self._work = work or (lambda job: run_in_subprocess(work_out, job, seconds=SECONDS))
        self._outcomes: dict[str, _Outcome] = {}
        self._waiting: dict[str, tuple[float, Callable[[], object]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._under_way: Job | None = None

    def made(self, job: Job) -> Planned | GoalSeen | Problem | None:
        """Return what planning came to on the terms as they are."""
        outcome = self._outcomes.get(job.plan.uid)
        return outcome.made if outcome and outcome.terms == job.terms else None

    def ask(self, job: Job, wake: Callable[[], object]) -> None:
        """Begin with a plan if it is due and its turn; `wake` is called when it has ended, or when others have and it
        may ask again. One under way on the terms that were before ends.

        Of those that wait one that was never tried goes first, then the one whose last try ended longest ago: those
        that fail again and again keep no other from being made.
        """
        uid = job.plan.uid
        if self._under_way and self._under_way.plan.uid == uid:
            if self._under_way.terms != job.terms:
                self.forget(uid)
            return
        if not self._due(job):
            return
        now = time.monotonic()
        self._waiting[uid] = now, wake
        waiting = [other for other, (asked_at, _) in self._waiting.items() if now - asked_at < WAIT_SECONDS]
        if self._under_way is None and all(self._tried_at(uid) <= self._tried_at(other) for other in waiting):
            del self._waiting[uid]
            self._start(job, wake)

    def _due(self, job: Job) -> bool:
        """Whether a plan is to be tried. One that needed more memory than there is waits for other terms, or for a new
        process of ours."""
        outcome = self._outcomes.get(job.plan.uid)
        if outcome is None or outcome.terms != job.terms:
            return True
        hopeless = isinstance(outcome.made, Problem) and outcome.made.reason is Reason.INSUFFICIENT_MEMORY
        return not hopeless and time.monotonic() - outcome.at >= RETRY_SECONDS

    def _tried_at(self, uid: str) -> float:
        outcome = self._outcomes.get(uid)
        return outcome.at if outcome else -math.inf

    def _start(self, job: Job, wake: Callable[[], object]) -> None:
        self._under_way = job
        self._task = asyncio.create_task(self._run(job), name=f"plan {job.plan.namespace}/{job.plan.name}")
        self._task.add_done_callback(lambda _: self._end(wake))

    def _end(self, wake: Callable[[], object]) -> None:
        self._under_way = None
        for each in (wake, *(other for _, other in self._waiting.values())):
            each()

    def keep(self, uids: Collection[str]) -> None:
        """Forget the plans that are not among these any more."""
        under_way = {self._under_way.plan.uid} if self._under_way else set()
        for uid in (self._outcomes.keys() | self._waiting.keys() | under_way) - set(uids):
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Forget a plan that is written, or gone."""
        self._outcomes.pop(uid, None)
        self._waiting.pop(uid, None)
        if self._task and self._under_way and self._under_way.plan.uid == uid:
            self._task.cancel()

    async def _run(self, job: Job) -> None:
        plan = job.plan
        began = time.monotonic()
        made: Planned | GoalSeen | Problem
        try:
            made = await self._work(job)
            what = {"waves": len(made.waves)} if isinstance(made, Planned) else {"unmet": len(made.unmet)}
            log.info("planned", **what, seconds=round(time.monotonic() - began, 1))
        except PlanningError as error:
            log.warning("not planned", reason=error.reason, error=error.message)
            made = error_problem(error)
        except Exception as error:
            log.exception("planning failed unexpectedly")
            message = f"a bug of the operator ({type(error).__name__}) keeps it from planning; its log has more"
            made = Problem(Reason.INTERNAL_ERROR, message)
        self._outcomes[plan.uid] = _Outcome(job.terms, made, time.monotonic())
