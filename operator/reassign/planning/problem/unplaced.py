"""Partitions that have to move and find no place: whether brokers that get no new replica are why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reassign.api.goal import GoalPart, Scope
from reassign.planning.problem.model import UNKNOWN, Bools, Ints, UnmetGoal
from reassign.planning.problem.problem import PlacementProblem, part_of
from reassign.text import counted, listed

NARROW = "`scope: Drained`, on the command line `--scope drained`"


def unplaced_goals(problem: PlacementProblem, unplaced: Bools) -> Iterator[UnmetGoal]:
    """Yield what is not planned of the partitions `unplaced` (P,)."""
    barred = _barred(problem, unplaced)
    if barred.any():
        ids = np.flatnonzero(problem.closed).tolist()
        named = listed(f"{problem.brokers[b]}{f' of rack {rack!r}' if (rack := problem.racks[b]) else ''}" for b in ids)
        part = _part(problem, barred)
        narrow = f"; a drain that leaves racks aside moves them ({NARROW})"
        yield UnmetGoal(
            f"no place that racks allow for {counted(int(barred.sum()), 'partition')} but on brokers that are avoided "
            f"or cordoned: {named}",
            "they stay as they are; drain these brokers too, let them take replicas, or allow others in their racks"
            f"{narrow if part and problem.scope is Scope.ALL else ''}",
            part,
        )
    if (crowded := unplaced & ~barred).any():
        yield UnmetGoal(
            f"no place with room on disk that racks allow for {counted(int(crowded.sum()), 'partition')}",
            "they stay as they are; allow more brokers, free some disk, or lower the share to stay free",
            _part(problem, crowded),
        )


def _part(problem: PlacementProblem, which: Bools) -> GoalPart | None:
    current = problem.current[which]
    return part_of((current >= 0) & problem.drained[current])


def _barred(problem: PlacementProblem, unplaced: Bools) -> Bools:
    """Return (P,): which of the `unplaced` (P,) have no place, however much room there is, for lack of brokers that get
    new replicas."""
    barred = np.zeros_like(unplaced)
    some = np.flatnonzero(unplaced)
    if not len(some) or not problem.closed.any():
        return barred
    rows = problem.current[some]
    stays = np.where((rows >= 0) & problem.allowed[rows], rows, UNKNOWN)
    if problem.scope is Scope.DRAINED:
        free = (problem.allowed & ~problem.closed).sum() - ((stays >= 0) & ~problem.closed[stays]).sum(axis=1)
        barred[some] = free < ((rows >= 0) & problem.drained[rows]).sum(axis=1)
        return barred
    own = np.sort(np.where((stays >= 0) & problem.closed[stays], stays, UNKNOWN), axis=1)
    kinds, kind = np.unique(np.column_stack((problem.rf[some], own)), axis=0, return_inverse=True)
    barred[some] = np.array([not _has_place(problem, int(row[0]), row[1:]) for row in kinds])[kind.ravel()]
    return barred


def _has_place(problem: PlacementProblem, rf: int, own: Ints) -> bool:
    """Return whether racks allow a row of `rf` replicas on open brokers and its `own` (·,) closed ones."""
    tree, children = problem.tree, problem.tree.children
    takes = problem.allowed & ~problem.closed
    takes[own[own >= 0]] = True
    leaf = len(tree.parent) - len(takes)

    def takes_below(node: int, replicas: int) -> bool:
        if node >= leaf:
            return replicas <= int(takes[node - leaf])
        level, extra = int(tree.level[node, replicas]), int(tree.extra[node, replicas])
        fewer = [takes_below(c, min(int(tree.cap[c]), level)) for c in children[node]]
        more = [int(tree.cap[c]) > level and takes_below(c, level + 1) for c in children[node]]
        either = all(a or b for a, b in zip(fewer, more, strict=True))
        return either and fewer.count(False) <= extra <= more.count(True)

    return takes_below(0, rf)
