"""Settle: from what the steps met to the record, what is said of each partition, and the memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

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
from reassign.core.model.problem import Problem, ids
from reassign.core.model.record import Entry, Record, recorded
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import TopicPartition
from reassign.core.model.states import State
from reassign.core.model.steps import Alter, AlterLogDirs, Cancel, Elect, Outcome, Result, Step
from reassign.core.model.verdict import Stall, Verdict, Waiting
from reassign.errors import Reason

KNOWN = frozenset(Reason)
CHANGED = (Reason.IN_FLIGHT_ELSEWHERE, Reason.TOPIC_RECREATED)
"""Why a step was not sent: the partition is not as it was judged, so that it is judged again."""
GIVE_UP = (Reason.INVALID_REPLICA_ASSIGNMENT, Reason.UNKNOWN_TOPIC_OR_PARTITION)
"""Refusals of a restore that no retry can change: a broker of the original ones, or the topic, is gone."""
REPEATED = Problem(
    Reason.IN_FLIGHT_ELSEWHERE,
    "another client has begun the same move again after it was cancelled to make way; stop that client, or leave "
    "the partition to it. It is cancelled once more after a while",
)


class Settled(NamedTuple):
    """The entry after a step (None: forget it), what is said of the partition, and what is remembered."""

    entry: Entry | None
    facts: tuple[Fact, ...] = ()
    problem: Problem | None = None
    waiting: Waiting | None = None


def sent_through(verdict: Verdict, recent: Recent, at: float) -> tuple[Verdict, Recent]:
    """The verdict with the broker that its steps go to, and the time, in its record; and the memory.

    Where an earlier write may still land through another broker, the record says none: then only time ends the doubt.
    """
    record, unanswered = _ended(verdict, verdict.record, recent, at), dict(recent.unanswered)
    sent_at, waits = recent.clock.of(at), _waits(verdict.resource) if verdict.steps else {}
    for tp in (step.tp for step in verdict.steps if isinstance(step, Alter | Cancel) and step.tp in record):
        via, before = recent.forwarding.via, verdict.resource.record.get(tp)
        if (write := recent.in_doubt(tp, before)) and write.via != via:
            via, unanswered[tp] = None, write
        record[tp] = replace(record[tp], via=via, sent_at=sent_at)
        if record[tp].state is State.SUBMITTING:
            record[tp] = replace(record[tp], began=sent_at, waited_for=waits.get(tp))
    answered = recent.answered.difference(step.tp for step in verdict.steps)
    return replace(verdict, record=record), replace(recent, unanswered=unanswered, answered=answered)


def _waits(resource: Resource) -> dict[TopicPartition, str]:
    """What the last status said that partitions wait for."""
    return {
        TopicPartition(d.topic, d.partition): d.reason
        for d in resource.status.partitions
        if d.state in (PartitionState.PENDING, PartitionState.BLOCKED) and d.reason in KNOWN
    }


def _ended(verdict: Verdict, record: Record, recent: Recent, at: float) -> dict[TopicPartition, Entry]:
    """The record, with the time in the entries that are settled since it was written. Of a lost one it is not known."""
    if verdict.resource.record_lost:
        return dict(record)
    before, now = verdict.resource.record, recent.clock.of(at)
    ended = {
        tp: replace(entry, ended=now)
        for tp, entry in record.items()
        if (known := before.get(tp)) is not entry
        and not (entry.active or (known is not None and known.state is entry.state))
    }
    return {**record, **ended}


def settle_steps(
    verdict: Verdict, outcomes: Mapping[Step, Outcome], recent: Recent, at: float
) -> tuple[Verdict, Recent]:
    """The verdict and the memory after the steps, which ended at this moment.

    A step with no outcome was not taken.
    """
    record, problems = dict(verdict.record), dict(verdict.problems)
    waiting, stalls = dict(verdict.waiting), dict(verdict.stalls)
    facts: list[Fact] = []
    for step in verdict.steps:
        if (outcome := outcomes.get(step)) is None:
            continue
        if isinstance(step, AlterLogDirs):
            facts += _instructed(step, outcome)
            if outcome.result is not Result.APPLIED:
                stalls.setdefault(step.tp, Stall(outcome.problem, False))
            continue
        if outcome.result is not Result.NOT_SENT:
            facts.append(Touched(step.tp, outcome.result is not Result.UNKNOWN))
        settled = _settled(verdict.resource, step, record[step.tp], outcome)
        facts += settled.facts
        if settled.entry is None:
            del record[step.tp]
        else:
            record[step.tp] = settled.entry
        if settled.problem:
            problems[step.tp] = settled.problem
        if settled.waiting:
            waiting[step.tp] = settled.waiting
    for tp, replicas in verdict.withheld.items():
        waiting[tp], refused = _withheld(tp, replicas, waiting[tp])
        facts += refused
    record = _ended(verdict, record, recent, at)
    verdict = replace(verdict, record=record, problems=problems, waiting=waiting, stalls=stalls)
    return verdict, recent.remember(facts, at)


def _settled(resource: Resource, step: Alter | Cancel | Elect, entry: Entry, outcome: Outcome) -> Settled:
    if outcome.result is Result.UNKNOWN:
        doubt = (Doubted(step.tp, step.replicas, outcome.problem),) if isinstance(step, Alter) else ()
        return Settled(entry, doubt, outcome.problem)
    if outcome.result is Result.NOT_SENT:
        return Settled(entry, (), outcome.problem)
    if isinstance(step, Elect):
        failed = None if outcome.result is Result.APPLIED else recorded(Reason.ELECTION_FAILED)
        return Settled(entry.to(State.COMPLETED, failed or entry.problem), (Elected(step.tp),))
    if isinstance(step, Cancel):
        return _cancelled(resource, step, entry, outcome)
    if entry.state is State.CANCELLING:
        return _restored(resource, step, entry, outcome)
    if outcome.result is Result.APPLIED:
        return Settled(entry.under_way())
    if outcome.reason in CHANGED:
        return Settled(None, waiting=Waiting(PartitionState.PENDING))
    refused = Refused(step.tp, step.replicas, outcome.problem)
    return Settled(None, (refused,), waiting=Waiting(PartitionState.BLOCKED, outcome.problem))


def _instructed(step: AlterLogDirs, outcome: Outcome) -> list[Fact]:
    """It is sent again until it shows, after a refusal each time later."""
    facts: list[Fact] = [Instructed(step, outcome.result is not Result.UNKNOWN)]
    if outcome.result is Result.REFUSED:
        facts += [Refused(step.tp, (item,), outcome.problem) for item in step.dirs]
    return facts


def _cancelled(resource: Resource, step: Cancel, entry: Entry, outcome: Outcome) -> Settled:
    if outcome.result is Result.APPLIED:
        if entry.state is State.SUPERSEDING:
            return Settled(entry, (Refused(step.tp, frozenset(step.target), REPEATED),))
        return Settled(entry, (CancelConfirmed(resource.uid, step.tp),))
    if outcome.reason is Reason.NO_REASSIGNMENT_IN_PROGRESS:
        return Settled(entry)
    problem = _cannot_go_back(outcome, entry.original)
    refused = (Refused(step.tp, (), problem),)
    if entry.state is State.SUPERSEDING:
        return Settled(None, refused, waiting=Waiting(PartitionState.BLOCKED, problem))
    return Settled(entry, refused, problem)


def _cannot_go_back(outcome: Outcome, original: tuple[int, ...]) -> Problem:
    """The brokers' words, and where they find going back unsafe, what remains to be done."""
    if outcome.reason is not Reason.CANCEL_UNSAFE:
        return outcome.problem
    return Problem(
        Reason.CANCEL_UNSAFE,
        f"the brokers will not go back: {outcome.message}. Start broker {ids(original)}: as soon as one of them is in "
        "sync again, it is asked once more; or leave the move to its end",
    )


def _restored(resource: Resource, step: Alter, entry: Entry, outcome: Outcome) -> Settled:
    refused = outcome.result is not Result.APPLIED
    if outcome.reason in CHANGED:
        return Settled(entry)
    if refused and outcome.reason not in GIVE_UP:
        return Settled(entry, (Refused(step.tp, step.replicas, outcome.problem),), outcome.problem)
    facts = (Restored(resource.uid, step.tp),)
    if entry.log_dirs and not refused:
        return Settled(entry, facts)  # it ends when copies between directories have ended, too
    if not resource.deleted:
        return Settled(None, facts)
    failed = recorded(Reason.INVALID_REPLICA_ASSIGNMENT) if refused else None
    return Settled(entry.to(State.CANCELLED, failed or entry.problem), facts)


def _withheld(tp: TopicPartition, replicas: tuple[int, ...], waits: Waiting) -> tuple[Waiting, tuple[Fact, ...]]:
    """Asked for later, as after any refusal: meanwhile it takes no place from others."""
    if waits.problem is None:
        return waits, ()
    return Waiting(PartitionState.BLOCKED, waits.problem), (Refused(tp, replicas, waits.problem),)
