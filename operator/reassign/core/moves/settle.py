"""Fold what the steps met into the record, and into what is said of each partition."""

from __future__ import annotations

from collections.abc import Mapping

from reassign.api.partition_reassignment import PartitionState, RecordState
from reassign.core.model.memory import Recent
from reassign.core.model.problem import Problem, ids
from reassign.core.model.record import recorded
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.core.model.verdict import Stall, Verdict
from reassign.errors import Reason


def fold(verdict: Verdict, outcomes: Mapping[Step, Outcome], recent: Recent, at: float) -> None:
    """Write what the steps met into the record, the problems and `recent`; `at` is when they were over.

    A step with no outcome was not taken.
    """
    for step in verdict.steps:
        outcome = outcomes.get(step)
        if outcome is None:
            continue
        if isinstance(step, AlterLogDirs):
            _fold_log_dirs(verdict, step, outcome, recent, at)
            continue
        recent.touch(step.tp, at, answered=outcome.result is not Result.UNKNOWN)
        if outcome.result is Result.UNKNOWN:
            verdict.problems[step.tp] = outcome.problem
            if isinstance(step, Alter):
                recent.doubt(step.tp, step.replicas, outcome.problem, at)
        elif isinstance(step, Elect):
            _fold_elect(verdict, step, outcome, recent)
        elif isinstance(step, Cancel):
            _fold_cancel(verdict, step, outcome, recent, at)
        elif verdict.record[step.tp].state is RecordState.CANCELLING:
            _fold_restore(verdict, step, outcome, recent, at)
        elif outcome.result is Result.APPLIED:
            verdict.record[step.tp] = verdict.record[step.tp].to(RecordState.IN_FLIGHT)
        else:
            del verdict.record[step.tp]
            if outcome.reason in CHANGED:
                verdict.waiting[step.tp] = (PartitionState.PENDING, None)
            else:
                problem = recent.refuse(step.tp, step.replicas, outcome.problem, at)
                verdict.waiting[step.tp] = (PartitionState.BLOCKED, problem)


def put_off(verdict: Verdict, recent: Recent, at: float) -> None:
    """Ask later, as after any refusal, for what is held back for long: meanwhile it takes no place from others."""
    for tp, replicas in verdict.held_back.items():
        _, problem = verdict.waiting[tp]
        if problem:
            verdict.waiting[tp] = (PartitionState.BLOCKED, recent.refuse(tp, replicas, problem, at))


def _fold_log_dirs(verdict: Verdict, step: AlterLogDirs, outcome: Outcome, recent: Recent, at: float) -> None:
    """It is sent again until it shows, after a refusal each time later."""
    recent.tell(step, at, answered=outcome.result is not Result.UNKNOWN)
    if outcome.result is Result.REFUSED:
        for item in step.dirs:
            recent.refuse(step.tp, (item,), outcome.problem, at)
    if outcome.result is not Result.APPLIED:
        verdict.stalls.setdefault(step.tp, Stall(outcome.problem, False))


def _fold_elect(verdict: Verdict, step: Elect, outcome: Outcome, recent: Recent) -> None:
    failed = None if outcome.result is Result.APPLIED else recorded(Reason.ELECTION_FAILED)
    entry = verdict.record[step.tp]
    verdict.record[step.tp] = entry.to(RecordState.COMPLETED, failed or entry.problem)
    recent.busy.pop(step.tp, None)


INSISTS = Problem(
    Reason.IN_FLIGHT_ELSEWHERE,
    "somebody else has begun the same move again after it was cancelled to make way; stop whoever does, or leave "
    "the partition to them. It is cancelled once more after a while",
)


def _fold_cancel(verdict: Verdict, step: Cancel, outcome: Outcome, recent: Recent, at: float) -> None:
    superseding = verdict.record[step.tp].superseding
    if outcome.result is Result.APPLIED:
        if superseding:
            recent.refuse(step.tp, frozenset(step.target), INSISTS, at)
        else:
            recent.cancelled.add((verdict.resource.uid, step.tp))
    elif outcome.reason is not Reason.NO_REASSIGNMENT_IN_PROGRESS:
        problem = recent.refuse(step.tp, (), _cannot_go_back(outcome, verdict.record[step.tp].original), at)
        if superseding:
            del verdict.record[step.tp]
            verdict.waiting[step.tp] = (PartitionState.BLOCKED, problem)
        else:
            verdict.problems[step.tp] = problem


def _cannot_go_back(outcome: Outcome, original: tuple[int, ...]) -> Problem:
    """The brokers' words, and where they find going back unsafe, what remains to be done."""
    if outcome.reason is not Reason.CANCEL_UNSAFE:
        return outcome.problem
    return Problem(
        Reason.CANCEL_UNSAFE,
        f"the brokers will not go back: {outcome.message}. Start broker {ids(original)}: as soon as one of them is in "
        "sync again, it is asked once more; or leave the move to its end",
    )


CHANGED = (Reason.IN_FLIGHT_ELSEWHERE, Reason.TOPIC_RECREATED)
"""Why a step was not sent: the partition is not as it was judged, so that the next look judges it again."""
GIVE_UP = (Reason.INVALID_REPLICA_ASSIGNMENT, Reason.UNKNOWN_TOPIC_OR_PARTITION)
"""Refusals of a restore that no retry mends: a broker of the original ones, or the topic, is gone."""


def _fold_restore(verdict: Verdict, step: Alter, outcome: Outcome, recent: Recent, at: float) -> None:
    refused = outcome.result is not Result.APPLIED
    if outcome.reason in CHANGED:
        return
    if refused and outcome.reason not in GIVE_UP:
        verdict.problems[step.tp] = recent.refuse(step.tp, step.replicas, outcome.problem, at)
        return
    recent.cancelled.discard((verdict.resource.uid, step.tp))
    entry = verdict.record[step.tp]
    if entry.log_dirs and not refused:
        return  # it is over when copies between directories have ended, too
    if verdict.resource.deleted:
        failed = recorded(Reason.INVALID_REPLICA_ASSIGNMENT) if refused else None
        verdict.record[step.tp] = entry.to(RecordState.CANCELLED, failed or entry.problem)
    else:
        del verdict.record[step.tp]
