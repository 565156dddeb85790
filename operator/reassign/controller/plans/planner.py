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
from reassign.core.automation.model import WorkedOut
from reassign.core.model.problem import Problem, error_problem
from reassign.core.plans.model import GoalSeen, GoalUnseen, Planned
from reassign.errors import PlanningError, Reason

log = structlog.get_logger()

SECONDS = 300.0
"""What a plan may take, with the observation of the whole cluster."""
RETRY_SECONDS = 60.0
"""How long after a failure it is tried again, at the soonest: its cause may have been removed. An observation that
fails again waits twice as long each time."""
MOST_RETRY_SECONDS = 3600.0
"""How long an observation waits at most."""
WAIT_SECONDS = 60.0
"""How long others wait for the turn of one that has asked: a healthy loop ticks, and asks, again sooner."""


Made = Planned | WorkedOut | GoalSeen | GoalUnseen | Problem
"""What a plan came to, or the observation of its goal."""


class _Outcome(NamedTuple):
    terms: tuple[object, ...]
    made: Made
    at: float


class _Asked(NamedTuple):
    job: Job
    at: float
    wake: Callable[[], object]


class Planner:
    """One process at a time, for all clusters: a plan needs memory, and the loops need a processor."""

    def __init__(self, work: Callable[[Job], Awaitable[Planned | WorkedOut | GoalSeen]] | None = None) -> None:
        self._work = work or (lambda job: run_in_subprocess(work_out, job, seconds=SECONDS))
        self._outcomes: dict[str, _Outcome] = {}
        self._waiting: dict[str, _Asked] = {}
        self._task: asyncio.Task[None] | None = None
        self._under_way: Job | None = None
        self._observed_last = False

    def made(self, job: Job) -> Made | None:
        """Return what planning came to on the terms as they are."""
        outcome = self._outcomes.get(job.uid)
        return outcome.made if outcome and outcome.terms == job.terms else None

    def ask(self, job: Job, wake: Callable[[], object]) -> bool:
        """Begin with a plan if it is due and its turn, and return whether it has begun now.

        `wake` is called when it has ended, or when others have and it may ask again. One under way on the terms that
        were before ends.

        Of those that wait a plan that was never tried goes first. Then plans that failed and observations take turns,
        and of each that goes first whose last try ended longest ago: those that fail again and again keep no other from
        being made.
        """
        uid = job.uid
        if self._under_way and self._under_way.uid == uid:
            if self._under_way.terms != job.terms:
                self.forget(uid)
            return False
        if not self._due(job):
            return False
        now = time.monotonic()
        self._waiting[uid] = _Asked(job, now, wake)
        waiting = [other.job for other in self._waiting.values() if now - other.at < WAIT_SECONDS]
        if self._under_way is None and all(self._turn(job) <= self._turn(other) for other in waiting):
            del self._waiting[uid]
            self._start(job, wake)
            return True
        return False

    def hand_over(self, job: Job, made: Planned) -> None:
        """Take what was worked out without an object as what its plan came to."""
        self._outcomes[job.uid] = _Outcome(job.terms, made, time.monotonic())

    def _due(self, job: Job) -> bool:
        """Whether a plan is to be tried. One that needed more memory than there is waits for other terms, or for a new
        process of ours."""
        outcome = self._outcomes.get(job.uid)
        if outcome is None or outcome.terms != job.terms:
            return True
        pause = outcome.made.retry_seconds if isinstance(outcome.made, GoalUnseen) else _pause(outcome.made)
        return pause is not None and time.monotonic() - outcome.at >= pause

    def _turn(self, job: Job) -> tuple[int, float]:
        """Return what those that wait are ordered by; the least goes first."""
        outcome, observes = self._outcomes.get(job.uid), job.plan.planned
        tried_at = outcome.at if outcome else -math.inf
        if not (observes or outcome):
            return 0, tried_at
        return (2 if observes is self._observed_last else 1), tried_at

    def _start(self, job: Job, wake: Callable[[], object]) -> None:
        self._under_way, self._observed_last = job, job.plan.planned
        self._task = asyncio.create_task(self._run(job), name=f"plan {job.plan.namespace}/{job.plan.name}")
        self._task.add_done_callback(lambda _: self._end(wake))

    def _end(self, wake: Callable[[], object]) -> None:
        self._under_way = None
        for each in (wake, *(other.wake for other in self._waiting.values())):
            each()

    def keep(self, uids: Collection[str]) -> None:
        """Forget the plans that are not among these any more."""
        under_way = {self._under_way.uid} if self._under_way else set()
        for uid in (self._outcomes.keys() | self._waiting.keys() | under_way) - set(uids):
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Forget a plan that is written, or gone."""
        self._outcomes.pop(uid, None)
        self._waiting.pop(uid, None)
        if self._task and self._under_way and self._under_way.uid == uid:
            self._task.cancel()

    async def _run(self, job: Job) -> None:
        plan = job.plan
        began = time.monotonic()
        made: Made
        try:
            made = await self._work(job)
            log.info("planned", **_content(made), seconds=round(time.monotonic() - began, 1))
        except PlanningError as error:
            log.warning("not planned", reason=error.reason, error=error.message)
            made = error_problem(error)
        except Exception as error:
            log.exception("planning failed unexpectedly")
            message = f"a bug of the operator ({type(error).__name__}) keeps it from planning; its log has more"
            made = Problem(Reason.INTERNAL_ERROR, message)
        if plan.planned and isinstance(made, Problem):
            made = self._unseen(job, made)
        self._outcomes[job.uid] = _Outcome(job.terms, made, time.monotonic())

    def _unseen(self, job: Job, problem: Problem) -> GoalUnseen:
        outcome, pause = self._outcomes.get(job.uid), _pause(problem)
        before = outcome.made if outcome and outcome.terms == job.terms else None
        if pause is not None and isinstance(before, GoalUnseen) and before.retry_seconds is not None:
            pause = min(2 * before.retry_seconds, MOST_RETRY_SECONDS)
        return GoalUnseen(problem, pause)


def _content(made: Planned | WorkedOut | GoalSeen) -> dict[str, int]:
    """Return what the log says of it."""
    if isinstance(made, GoalSeen):
        return {"unmet": len(made.unmet)}
    planned = made.planned if isinstance(made, WorkedOut) else made
    return {"waves": len(planned.waves)}


def _pause(made: Made) -> float | None:
    """Return how many seconds after a try there is another one, at first; None where something has to change."""
    hopeless = isinstance(made, Problem) and made.reason is Reason.INSUFFICIENT_MEMORY
    return None if hopeless else RETRY_SECONDS
