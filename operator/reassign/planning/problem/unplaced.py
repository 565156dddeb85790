"""Partitions that have to move and find no place: whether brokers that get no new replica are why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reassign.api.goal import GoalPart, Scope
from reassign.planning.problem.assignments import by_factor
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
    own = np.where((stays >= 0) & problem.closed[stays], stays, UNKNOWN)
    for rf, which in by_factor(problem.rf[some], np.ones(len(some), np.bool_)):
        barred[some[which]] = ~_have_place(problem, rf, own[which])
    return barred


def _have_place(problem: PlacementProblem, rf: int, own: Ints) -> Bools:
    """Return (S,): where racks allow a row of `rf` replicas on open brokers and its `own` (S, R) closed ones."""
    tree, children = problem.tree, problem.tree.children
    open_ = problem.allowed & ~problem.closed
    leaf = len(tree.parent) - len(open_)

    def take(node: int, replicas: int) -> Bools:
        """Return (S,): whether the brokers below a node can hold so many."""
        if replicas == 0 or node >= leaf:
            broker, all_ = node - leaf, np.ones(len(own), np.bool_)
            return all_ if replicas == 0 or open_[broker] else np.asarray((own == broker).any(axis=1))
        level, extra = int(tree.level[node, replicas]), int(tree.extra[node, replicas])
        right, forced, could = np.ones(len(own), np.bool_), *np.zeros((2, len(own)), np.int64)
        for child in children[node]:
            cap = int(tree.cap[child])
            fewer = take(child, min(cap, level))
            more = take(child, level + 1) if cap > level else np.zeros_like(fewer)
            right &= fewer | more
            forced += ~fewer
            could += more
        return right & (forced <= extra) & (extra <= could)

    return take(0, rf)
