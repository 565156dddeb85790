"""Hold back: what copies replicas is not begun before it is throttled as it has to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reassign.core.changes import Observed, Place
from reassign.core.logdirs import placements
from reassign.core.model import AlterLogDirs, Problem, Snapshot, TopicPartition
from reassign.core.throttle import lacking
from reassign.core.throttled import Placing, Throttled, Wanted
from reassign.core.verdict import Stall, Verdict
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the throttles stand after the changes of a look.

    `moves` are all that have to be throttled, `kept` those that the record has room for, and `aim` what these need.
    `seen` are the configurations, `live` the brokers that can have any, `problems` what could not be read or changed.
    """

    moves: Sequence[Throttled]
    kept: Sequence[Throttled]
    aim: Wanted
    seen: Observed
    live: frozenset[int]
    problems: Mapping[Place, Problem]

    def by_partition(self) -> dict[TopicPartition, list[tuple[Throttled, Problem]]]:
        """What is not throttled as it has to be, and why."""
        kept, found = set(self.kept), defaultdict(list)
        for move in self.moves:
            if problem := self._problem(move, fits=move in kept):
                found[move.tp].append((move, problem))
        return found

    def _problem(self, move: Throttled, *, fits: bool) -> Problem | None:
        if not fits:
            return Problem(
                Reason.RESOURCE_TOO_LARGE,
                "the throttles in the status of the KafkaCluster have no room for it; it starts when other moves "
                "are done",
            )
        spot = lacking(move, self.aim, self.live, self.seen)
        if spot is None:
            return None
        if problem := self.problems.get(spot.place):
            return Problem(problem.reason, f"it is not begun before it is throttled: {problem.message}")
        return Problem(Reason.THROTTLE_NOT_SET, f"it is not begun before it is throttled: {spot} is still to be set")


def hold_back(verdicts: Sequence[Verdict], standing: Standing, snapshot: Snapshot) -> None:
    """Take back the steps that would begin to copy what is not throttled."""
    _take_back(verdicts, standing.by_partition(), snapshot, soon=Reason.THROTTLE_NOT_SET)


def hold_all_back(
    verdicts: Sequence[Verdict], moves: Sequence[Throttled], problem: Problem, snapshot: Snapshot
) -> None:
    """Take back all steps that would begin to copy what has to be throttled."""
    lacks: dict[TopicPartition, list[tuple[Throttled, Problem]]] = defaultdict(list)
    for move in moves:
        lacks[move.tp].append((move, problem))
    _take_back(verdicts, lacks, snapshot)


def _take_back(
    verdicts: Sequence[Verdict],
    lacks: Mapping[TopicPartition, Sequence[tuple[Throttled, Problem]]],
    snapshot: Snapshot,
    soon: Reason | None = None,
) -> None:
    """`soon` is the reason of what will be set before the next look."""
    for verdict in verdicts:
        for step in [step for step in verdict.steps if step.tp in lacks]:
            if step not in verdict.steps:
                continue  # taken back with another one of its partition
            placing = [problem for move, problem in lacks[step.tp] if isinstance(move, Placing)]
            if verdict.begins(step):
                problem = lacks[step.tp][0][1]
                verdict.hold_back(step.tp, problem, lasts=problem.reason is not soon)
            elif isinstance(step, AlterLogDirs) and placing and (beginning := _beginning(step, snapshot)):
                left = tuple(item for item in step.dirs if item not in beginning)
                place = verdict.steps.index(step)
                verdict.steps[place : place + 1] = [AlterLogDirs(step.tp, left)] if left else []
                stall = verdict.stalls.get(step.tp)
                verdict.stalls[step.tp] = Stall(placing[0], overdue=stall is not None and stall.overdue)


def _beginning(step: AlterLogDirs, snapshot: Snapshot) -> set[tuple[int, str]]:
    """Where a replica that is there would be copied; the rest only says where one is to be, or ends a copy."""
    return {(place.broker, place.path) for place in placements(step.tp, step.dirs, snapshot) if place.copies}
