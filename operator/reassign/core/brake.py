"""CancelAll, the hardest position of the brake: what others have in flight goes back too, and what is undone is kept.

What a resource of ours has in flight is brought back as when its entry is removed (`partition.undo`). The originals of
other people's moves are known from the brokers alone, and so is not their first order: it is not restored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reassign.api.limits import MAX_DOCUMENT_BYTES
from reassign.core.checks.in_sync import cancel_problem
from reassign.core.model.memory import Fact, Recent, Refused, Touched
from reassign.core.model.problem import Problem
from reassign.core.model.record import active
from reassign.core.model.resource import Resource
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import Cancel, Outcome, Result, Step
from reassign.errors import Reason
from reassign.text import listed

CANCELS_MAY_LAND = Problem(
    Reason.CONNECTING,
    "an earlier process has cancelled moves of other clients (CancelAll), and brokers may hold such a cancel for up to "
    "75 seconds: nothing begins until it cannot land on a new move any more",
)


@dataclass(frozen=True, slots=True)
class Undo:
    """What to do about moves that are not ours: the cancels that are safe, and why the others are held back."""

    cancels: tuple[Cancel, ...] = ()
    held: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    not_kept: Problem | None = None
    """Why what is undone could not be kept, so that nothing of it is cancelled."""

    @property
    def problem(self) -> Problem | None:
        """All that is held back, in one sentence."""
        if self.not_kept:
            return self.not_kept
        if not self.held:
            return None
        named = (f"{tp}: {problem.message}" for tp, problem in sorted(self.held.items()))
        first = self.held[min(self.held)]
        return Problem(
            first.reason, f"moves of others not cancelled yet: {len(self.held)}; {listed(named, separator='; ')}"
        )


def foreign(ours: Collection[TopicPartition], snapshot: Snapshot) -> list[TopicPartition]:
    """Return the partitions in flight that are not ours."""
    return sorted(snapshot.reassignments.keys() - set(ours))


def partitions_held_by(resources: Iterable[Resource]) -> set[TopicPartition]:
    """Return the partitions that these resources hold."""
    return {tp for resource in resources for tp in active(resource.record)}


def undo_foreign(partitions: Iterable[TopicPartition], snapshot: Snapshot, recent: Recent) -> Undo:
    """Cancel the moves of these partitions that may safely go back. One not described yet waits."""
    cancels: list[Cancel] = []
    held: dict[TopicPartition, Problem] = {}
    for tp in partitions:
        in_flight, partition = snapshot.reassignments[tp], snapshot.partition(tp)
        if unread := snapshot.unread_topics.get(tp.topic):
            held[tp] = Problem(unread.reason, "whether a cancel is safe cannot be judged: ", *unread.parts)
        elif partition is not None:
            required = snapshot.topics[tp.topic].min_insync_replicas
            unsafe = cancel_problem(in_flight.original, partition, required, snapshot.brokers)
            if problem := unsafe or recent.refusal(tp, ()):
                held[tp] = problem
            else:
                cancels.append(Cancel.of(tp, in_flight))
    return Undo(tuple(cancels), held)


def met_by(undo: Undo, outcomes: Mapping[Step, Outcome]) -> list[Fact]:
    """Return what the cancels add to the memory. One that the brokers refused is sent again, each time after longer.

    No record has these cancels, so only the memory holds a partition until a cancel without an answer has landed.
    """
    facts: list[Fact] = []
    for step in undo.cancels:
        if (outcome := outcomes.get(step)) is None or outcome.result is Result.NOT_SENT:
            continue
        facts.append(Touched(step.tp, outcome.result is not Result.UNKNOWN))
        if outcome.result is Result.REFUSED and outcome.reason is not Reason.NO_REASSIGNMENT_IN_PROGRESS:
            facts.append(Refused(step.tp, (), outcome.problem))
    return facts


TargetReplicas = Mapping[TopicPartition, tuple[int, ...]]
"""Target replicas by partition, the preferred leader first."""


def undone_by(steps: Iterable[Step], snapshot: Snapshot) -> TargetReplicas:
    """Return the moves that these steps cancel, so that they could be begun again."""
    cancelled = (snapshot.reassignments.get(step.tp) and step.tp for step in steps if isinstance(step, Cancel))
    return {tp: snapshot.reassignments[tp].final for tp in cancelled if tp}


def documents(moves: TargetReplicas, limit: int = MAX_DOCUMENT_BYTES) -> Sequence[str]:
    """Write the moves as JSON for kafka-reassign-partitions (--reassignment-json-file), each document below `limit`."""
    lines = [
        json.dumps({"topic": tp.topic, "partition": tp.partition, "replicas": replicas}, separators=(",", ":"))
        for tp, replicas in sorted(moves.items())
    ]
    parts: list[list[str]] = []
    room = 0
    for line in lines:
        room -= len(line) + 2
        if room < 0:
            parts.append([])
            room = limit - 100 - len(line)
        parts[-1].append(line)
    return ['{"version":1,"partitions":[\n' + ",\n".join(part) + "\n]}\n" for part in parts]
