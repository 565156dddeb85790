"""Outcomes: what becomes of each partition, and what is remembered, after what came of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reassign.api.partition_reassignment import PartitionState
from reassign.core.model.memory import (
    CancelConfirmed,
    Doubted,
    Elected,
    Fact,
    Instructed,
    Recent,
    Refused,
    Restored,
    Touched,
)
from reassign.core.model.problem import Problem
from reassign.core.model.record import Entry, recorded_problem
from reassign.core.model.resource import Resource
from reassign.core.model.row import BLOCKED, PENDING, Row, SayingKind, waiting
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason
from reassign.text import named_brokers

KNOWN = frozenset(Reason)
"""Reasons that this build knows: a status may be of a later one."""
CHANGED = (Reason.IN_FLIGHT_ELSEWHERE, Reason.TOPIC_RECREATED)
"""Why a step was not sent: the partition is not as it was judged, so that it is judged again."""
GIVE_UP = (Reason.INVALID_REPLICA_ASSIGNMENT, Reason.UNKNOWN_TOPIC_OR_PARTITION)
"""Refusals of a restore that no retry can change: an original broker is gone or cordoned, or the topic is gone."""
REPEATED = Problem(
    Reason.IN_FLIGHT_ELSEWHERE,
    "another client has begun the same move again after it was cancelled to make way; stop that client, or leave "
    "the partition to it. It is cancelled once more after a while",
)

Answered = tuple[Row, tuple[Fact, ...]]
"""The row after a step, and what is remembered."""


def sent_through(verdict: Verdict, recent: Recent, at: float) -> tuple[Verdict, Recent]:
    """Return the verdict with the broker that its steps go to, and the time, in its record; and the memory.

    Where an earlier write may still land through another broker, the record names no broker: only time ends that doubt.
    Where none may, a step that is not sent after all leaves no doubt.
    """
    rows, unanswered, answered = _ended(verdict, recent, at), dict(recent.unanswered), set(recent.answered)
    sent_at, waited_for = recent.clock.of(at), _last_reasons(verdict.resource) if verdict.steps else {}
    for tp, row in verdict.acting.items():
        if row.entry is None or not any(isinstance(step, Alter | Cancel) for step in row.steps):
            continue
        via, before = recent.forwarding.via, verdict.resource.record.get(tp)
        write = recent.in_doubt(tp, before)
        if write is None:
            answered.add(tp)
        else:
            answered.discard(tp)
            if write.via != via:
                via, unanswered[tp] = None, write
        entry = replace(row.entry, via=via, sent_at=sent_at)
        if entry.state is State.SUBMITTING:
            entry = replace(entry, began=sent_at, waited_for=waited_for.get(tp))
        rows[tp] = replace(row, entry=entry)
    return verdict.with_rows(rows), replace(recent, unanswered=unanswered, answered=frozenset(answered))


def _last_reasons(resource: Resource) -> dict[TopicPartition, str]:
    """Return what the last status said that partitions wait for."""
    return {
        TopicPartition(d.topic, d.partition): d.reason
        for d in resource.status.partitions
        if d.state in (PENDING, BLOCKED) and d.reason in KNOWN
    }


def _ended(verdict: Verdict, recent: Recent, at: float) -> dict[TopicPartition, Row]:
    """Return the rows that have ended since the record was written, with the time; of a lost record it is not known."""
    if verdict.resource.record_lost:
        return {}
    before, now = verdict.resource.record, recent.clock.of(at)
    return {
        tp: replace(row, entry=replace(row.entry, ended=now))
        for tp, row in verdict.rows.items()
        if row.entry
        and (known := before.get(tp)) is not row.entry
        and not (row.entry.active or (known is not None and known.state is row.entry.state))
    }


def settle_steps(
    verdict: Verdict, outcomes: Mapping[Step, Outcome], recent: Recent, at: float
) -> tuple[Verdict, Recent]:
    """Return the verdict and the memory after the steps, which ended at this moment.

    A step with no outcome was not taken.
    """
    rows: dict[TopicPartition, Row] = {}
    facts: list[Fact] = []
    for tp, row in verdict.rows.items():
        for step in row.steps:
            if row.entry and (outcome := outcomes.get(step)):
                row, met = _answered(verdict.resource, row, row.entry, step, outcome, recent)
                rows[tp] = row
                facts += met
        if row.put_off and (problem := row.said(SayingKind.PROBLEM)):
            rows[tp] = replace(row, waits=BLOCKED)
            facts.append(Refused(tp, row.put_off, problem))
    unrestored = {
        tp: step.replicas
        for tp, row in rows.items()
        if row.entry is None and verdict.rows[tp].state is State.RESTORING
        for step in row.steps
        if isinstance(step, Alter) and step in outcomes
        if outcomes[step].reason is Reason.INVALID_REPLICA_ASSIGNMENT
    }
    verdict = replace(verdict.with_rows(rows), unrestored=unrestored)
    return verdict.with_rows(_ended(verdict, recent, at)), recent.remember(facts, at)


def _answered(resource: Resource, row: Row, entry: Entry, step: Step, outcome: Outcome, recent: Recent) -> Answered:
    if isinstance(step, AlterLogDirs):
        stands = outcome.result is Result.APPLIED or row.said(SayingKind.STALL, SayingKind.OVERDUE)
        return row if stands else row.stalled(outcome.problem, overdue=False), _instructed(step, outcome)
    if outcome.result is Result.NOT_SENT:
        return row.with_saying(SayingKind.PROBLEM, outcome.problem), ()
    touched = Touched(step.tp, outcome.result is not Result.UNKNOWN)
    if outcome.result is Result.UNKNOWN:
        doubts = (Doubted(step.tp, step.replicas, outcome.problem),) if isinstance(step, Alter) else ()
        return row.with_saying(SayingKind.PROBLEM, outcome.problem), (touched, *doubts)
    match step:
        case Elect():
            after, facts = _elect_answered(row, entry, step, outcome)
        case Cancel() if row.state is State.SUPERSEDING:
            after, facts = _supersede_answered(row, entry, step, outcome)
        case Cancel():
            after, facts = _cancel_answered(resource, row, entry, step, outcome)
        case Alter() if row.state is State.RESTORING:
            after, facts = _restore_answered(resource, row, entry, step, outcome, recent)
        case Alter():
            after, facts = _alter_answered(row, entry, step, outcome)
    return after, (touched, *facts)


def _alter_answered(row: Row, entry: Entry, step: Alter, outcome: Outcome) -> Answered:
    """Follow a move that was accepted. A partition whose move was refused waits, and is judged anew."""
    if outcome.result is Result.APPLIED:
        return replace(row, entry=entry.to(State.IN_FLIGHT)), ()
    if outcome.reason in CHANGED:
        return _waits_again(row, PENDING), ()
    return _waits_again(row, BLOCKED, outcome.problem), (Refused(step.tp, step.replicas, outcome.problem),)


def _elect_answered(row: Row, entry: Entry, step: Elect, outcome: Outcome) -> Answered:
    """Complete a move, also where another replica stays the leader."""
    failed = None if outcome.result is Result.APPLIED else recorded_problem(Reason.ELECTION_FAILED)
    return replace(row, entry=entry.to(State.COMPLETED, failed or entry.problem)), (Elected(step.tp),)


def _supersede_answered(row: Row, entry: Entry, step: Cancel, outcome: Outcome) -> Answered:
    """Hold the partition. Another client that begins the same move again is not cancelled at once."""
    if outcome.result is Result.APPLIED:
        return row, (Refused(step.tp, frozenset(step.target), REPEATED),)
    if outcome.reason is Reason.NO_REASSIGNMENT_IN_PROGRESS:
        return row, ()
    problem = _cannot_go_back(outcome, entry.original)
    return _waits_again(row, BLOCKED, problem), (Refused(step.tp, (), problem),)


def _cancel_answered(resource: Resource, row: Row, entry: Entry, step: Cancel, outcome: Outcome) -> Answered:
    """Remember a confirmed cancel, so that the order is restored before metadata has settled."""
    if outcome.result is Result.APPLIED:
        return row, (CancelConfirmed(resource.uid, step.tp),)
    if outcome.reason is Reason.NO_REASSIGNMENT_IN_PROGRESS:
        return row, ()
    problem = _cannot_go_back(outcome, entry.original)
    return row.with_saying(SayingKind.PROBLEM, problem), (Refused(step.tp, (), problem),)


def _restore_answered(
    resource: Resource, row: Row, entry: Entry, step: Alter, outcome: Outcome, recent: Recent
) -> Answered:
    """Forget a partition that is back; while its resource is being deleted, its record keeps the entry.

    Controllers refuse an order that names a cordoned broker (Kafka 4.4). While that is being lifted, this passes.
    """
    refused = outcome.result is not Result.APPLIED
    if outcome.reason in CHANGED:
        return row, ()
    passes = outcome.reason is Reason.INVALID_REPLICA_ASSIGNMENT and not recent.lifting.isdisjoint(entry.original)
    if refused and (passes or outcome.reason not in GIVE_UP):
        return row.with_saying(SayingKind.PROBLEM, outcome.problem), (Refused(step.tp, step.replicas, outcome.problem),)
    facts = (Restored(resource.uid, step.tp),)
    if (entry.log_dirs and not refused) or step.tp in recent.unanswered:
        return row, facts  # it ends when copies between directories have ended, and an earlier cancel cannot land
    if not resource.deleted:
        return replace(row, entry=None), facts
    failed = recorded_problem(Reason.INVALID_REPLICA_ASSIGNMENT) if refused else None
    return replace(row, entry=entry.to(State.CANCELLED, failed or entry.problem)), facts


def _waits_again(row: Row, state: PartitionState, problem: Problem | None = None) -> Row:
    """Return the row of a partition whose step was refused; the steps that were taken stay in it."""
    return replace(waiting(state, problem), steps=row.steps)


def _instructed(step: AlterLogDirs, outcome: Outcome) -> tuple[Fact, ...]:
    """Remember what a broker was told: it is told again until the copy shows, after a refusal each time later."""
    told = Instructed(step, outcome.result is not Result.UNKNOWN)
    if outcome.result is not Result.REFUSED:
        return (told,)
    return (told, *(Refused(step.tp, (item,), outcome.problem) for item in step.dirs))


def _cannot_go_back(outcome: Outcome, original: tuple[int, ...]) -> Problem:
    """Return the brokers' refusal; where they find going back unsafe, with what is to be done."""
    if outcome.reason is not Reason.CANCEL_UNSAFE:
        return outcome.problem
    return Problem(
        Reason.CANCEL_UNSAFE,
        f"the brokers refuse the cancel: {outcome.message}. Start {named_brokers(original)}: the cancel is sent again "
        "as soon as one of these replicas is in sync; or leave the move to its end",
    )
