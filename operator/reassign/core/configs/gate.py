"""Gate: a move that copies replicas does not begin before it is throttled as it has to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reassign.core.configs.desired import LogDirMove, ThrottledMove, WantedConfigs
from reassign.core.configs.missing import configs_of, missing_configs
from reassign.core.model.configs import ConfigKey, ConfigResource, Observed
from reassign.core.model.log_dirs import placements
from reassign.core.model.problem import Problem
from reassign.core.model.recent_changes import RecentChanges
from reassign.core.model.row import Row, SayingKind
from reassign.core.model.snapshot import Snapshot, TopicPartition
from reassign.core.model.steps import AlterLogDirs, Step
from reassign.core.model.verdict import Verdict
from reassign.errors import Reason


class Unthrottled(NamedTuple):
    """A move that is not throttled as it has to be."""

    move: ThrottledMove
    problem: Problem | None
    """Why; None: its configurations are still to be read."""
    lasts: bool
    """Whether the move waits for more than a moment."""


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """How far the throttles are set."""

    moves: Sequence[ThrottledMove]
    """All moves that have to be throttled."""
    kept: Sequence[ThrottledMove]
    """The moves that the record has room for."""
    aim: WantedConfigs
    """What the kept moves need."""
    seen: Observed
    live: frozenset[int]
    """The brokers whose configurations can be changed now."""
    problems: Mapping[ConfigResource, Problem]
    """Why a resource's configurations could not be read or changed."""
    recent: RecentChanges
    """Knows what other clients change again and again."""

    @property
    def unthrottled(self) -> list[Unthrottled]:
        """Moves that are not throttled as they have to be."""
        kept = set(self.kept)
        missing = missing_configs(self.moves, self.aim, self.live, self.seen)
        problems = [
            (move, self._problem(move, key, fits=move in kept)) for move, key in zip(self.moves, missing, strict=True)
        ]
        return [Unthrottled(move, p, p.reason is not Reason.THROTTLE_NOT_SET) for move, p in problems if p]

    def _problem(self, move: ThrottledMove, key: ConfigKey | None, *, fits: bool) -> Problem | None:
        if not fits:
            return Problem(
                Reason.RESOURCE_TOO_LARGE,
                "the KafkaCluster's record of its throttles has no room for it; it starts when other moves are done",
            )
        if key is None:
            return self._unsteady(move)
        if problem := self.problems.get(key.resource):
            return Problem(problem.reason, "it does not begin before it is throttled: ", *problem.parts)
        return Problem(Reason.THROTTLE_NOT_SET, f"it does not begin before it is throttled: {key} is still to be set")

    def _unsteady(self, move: ThrottledMove) -> Problem | None:
        """Return why a move waits although its throttle is set: another client lifts it again and again."""
        if not self.recent.drifts:
            return None
        key = next((k for k in sorted(configs_of(move, self.aim)) if self.recent.unsteady(k)), None)
        if key is None:
            return None
        seconds = self.recent.drifts[key].wait()
        return Problem(
            Reason.THROTTLE_NOT_SET,
            f"it does not begin before it is throttled: another client changes {key}, which has to stand for "
            f"{seconds:.0f} s first; find that client",
        )


def hold_back(verdicts: Sequence[Verdict], unthrottled: Iterable[Unthrottled], snapshot: Snapshot) -> list[Verdict]:
    """Return the verdicts without the steps that would begin to copy what is not throttled."""
    by_partition = defaultdict(list)
    for one in unthrottled:
        by_partition[one.move.tp].append(one)
    if not by_partition:
        return list(verdicts)
    return [verdict.with_rows(_held_back(verdict, by_partition, snapshot)) for verdict in verdicts]


def _held_back(
    verdict: Verdict, unthrottled: Mapping[TopicPartition, Sequence[Unthrottled]], snapshot: Snapshot
) -> dict[TopicPartition, Row]:
    rows: dict[TopicPartition, Row] = {}
    for tp in unthrottled.keys() & verdict.rows.keys():
        row, moves = verdict.rows[tp], unthrottled[tp]
        if row.begins(verdict.resource.record.get(tp)):
            target = row.entry.target if row.entry and moves[0].lasts else ()
            rows[tp] = replace(row.withhold(row.steps, None, moves[0].problem), put_off=target)
        elif between_dirs := [one for one in moves if isinstance(one.move, LogDirMove)]:
            rows[tp] = _without_new_copies(row, between_dirs[0].problem, snapshot)
    return rows


def _without_new_copies(row: Row, problem: Problem | None, snapshot: Snapshot) -> Row:
    """Return the row whose brokers are told nothing that begins a copy between directories.

    What is left only says where a replica is to be, or ends a copy.
    """
    steps: list[Step] = []
    for step in row.steps:
        if not isinstance(step, AlterLogDirs):
            steps.append(step)
            continue
        beginning = {(p.broker, p.path) for p in placements(step.tp, step.dirs, snapshot) if p.copies}
        if left := tuple(item for item in step.dirs if item not in beginning):
            steps.append(AlterLogDirs(step.tp, left))
        if beginning and problem:
            row = row.stalled(problem, overdue=row.said(SayingKind.OVERDUE) is not None)
    return replace(row, steps=tuple(steps))
