"""Hold back: what copies replicas is not begun before it is throttled as it has to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reassign.core.model.log_dirs import placements
from reassign.core.model.problem import Problem
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import AlterLogDirs
from reassign.core.model.verdict import Stall, Verdict
from reassign.core.throttle.configs import ConfigResource, Observed
from reassign.core.throttle.desired import LogDirMove, ThrottledMove, Wanted
from reassign.core.throttle.diff import lacking
from reassign.errors import Reason


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """Where the throttles stand after the changes of a look.

    `moves` are all that have to be throttled, `kept` those that the record has room for, and `aim` what these need.
    `seen` are the configurations, `live` the brokers that can have any, `problems` what could not be read or changed.
    """

    moves: Sequence[ThrottledMove]
    kept: Sequence[ThrottledMove]
    aim: Wanted
    seen: Observed
    live: frozenset[int]
    problems: Mapping[ConfigResource, Problem]

    def by_partition(self) -> dict[TopicPartition, list[tuple[ThrottledMove, Problem]]]:
        """What is not throttled as it has to be, and why."""
        kept, found = set(self.kept), defaultdict(list)
        for move in self.moves:
            if problem := self._problem(move, fits=move in kept):
                found[move.tp].append((move, problem))
        return found

    def _problem(self, move: ThrottledMove, *, fits: bool) -> Problem | None:
        if not fits:
            return Problem(
                Reason.RESOURCE_TOO_LARGE,
                "the throttles in the status of the KafkaCluster have no room for it; it starts when other moves "
                "are done",
            )
        key = lacking(move, self.aim, self.live, self.seen)
        if key is None:
            return None
        if problem := self.problems.get(key.resource):
            return Problem(problem.reason, f"it is not begun before it is throttled: {problem.message}")
        return Problem(Reason.THROTTLE_NOT_SET, f"it is not begun before it is throttled: {key} is still to be set")


def hold_back(verdicts: Sequence[Verdict], standing: ThrottleState, snapshot: Snapshot) -> None:
    """Take back the steps that would begin to copy what is not throttled."""
    _take_back(verdicts, standing.by_partition(), snapshot, soon=Reason.THROTTLE_NOT_SET)


def hold_back_all(
    verdicts: Sequence[Verdict], moves: Sequence[ThrottledMove], problem: Problem, snapshot: Snapshot
) -> None:
    """Take back all steps that would begin to copy what has to be throttled."""
    lacks: dict[TopicPartition, list[tuple[ThrottledMove, Problem]]] = defaultdict(list)
    for move in moves:
        lacks[move.tp].append((move, problem))
    _take_back(verdicts, lacks, snapshot)


def _take_back(
    verdicts: Sequence[Verdict],
    lacks: Mapping[TopicPartition, Sequence[tuple[ThrottledMove, Problem]]],
    snapshot: Snapshot,
    soon: Reason | None = None,
) -> None:
    """`soon` is the reason of what will be set before the next look."""
    for verdict in verdicts:
        for step in [step for step in verdict.steps if step.tp in lacks]:
            if step not in verdict.steps:
                continue  # taken back with another one of its partition
            placing = [problem for move, problem in lacks[step.tp] if isinstance(move, LogDirMove)]
            if verdict.begins(step):
                problem = lacks[step.tp][0][1]
                verdict.hold_back(step.tp, problem, lasts=problem.reason is not soon)
            elif isinstance(step, AlterLogDirs) and placing and (beginning := _beginning(step, snapshot)):
                left = tuple(item for item in step.dirs if item not in beginning)
                resource = verdict.steps.index(step)
                verdict.steps[resource : resource + 1] = [AlterLogDirs(step.tp, left)] if left else []
                stall = verdict.stalls.get(step.tp)
                verdict.stalls[step.tp] = Stall(placing[0], overdue=stall is not None and stall.overdue)


def _beginning(step: AlterLogDirs, snapshot: Snapshot) -> set[tuple[int, str]]:
    """Where a replica that is there would be copied; the rest only says where one is to be, or ends a copy."""
    return {
        (resource.broker, resource.path) for resource in placements(step.tp, step.dirs, snapshot) if resource.copies
    }
