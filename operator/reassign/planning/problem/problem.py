"""A cluster and a goal as dense arrays: what may move, where to, and how much each broker should hold in the end.

Every error of a goal is found here, before anything is computed. What the goal wants and no plan does becomes an
`UnmetGoal`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from reassign.api.goal import COUNTED, GoalPart, Scope
from reassign.errors import PlanningError, Reason
from reassign.planning.problem.assignments import loads
from reassign.planning.problem.directories import capacities, cordoned_brokers, volumes
from reassign.planning.problem.eviction import evicted
from reassign.planning.problem.held import held_back, held_goals
from reassign.planning.problem.measures import what_counts
from reassign.planning.problem.model import UNKNOWN, Bools, Bytes, Cause, Cluster, Ints, PlacementGoal, UnmetGoal
from reassign.planning.problem.names import partition_name
from reassign.planning.problem.racks import check_complete, levels
from reassign.planning.problem.selection import Selection, select
from reassign.planning.problem.shares import DISK
from reassign.planning.problem.targets import Placement, targets_of
from reassign.planning.problem.tree import Tree, grow
from reassign.planning.problem.unseen import unseen_goals
from reassign.planning.problem.volume import MOST_VOLUME_BYTES
from reassign.text import counted, listed, named_brokers

RESOURCES = tuple(COUNTED)
"""The rows of `Problem.target`, `low` and `high`."""

UNLIMITED = 1 << 62
"""Bytes that may lie on a broker that does not report the size of its volumes."""

MOST_BYTES, MOST_REPLICA_BYTES = 1 << 60, 1 << 50
"""Of all replicas together, and of one, in bytes or any other measure. Sums of them, of bands and of the kernel's
margins stay below 2^63 then."""


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """Letters as in `model`; K resources, in the order of RESOURCES; L levels of racks.

    Sizes that are not known are the mean of the topic's known ones, else of all known ones, else 1 byte. What is not
    movable counts as load and nothing else.
    """

    brokers: Ints  # (B,) ids
    racks: tuple[str, ...]  # (B,) as brokers report them
    scope: Scope
    current: Ints  # (P, R)
    keep: Bools  # (P, R) this replica may stay: its broker is allowed and its directory online, or the goal spares it
    rf: Ints  # (P,) wanted replication factor
    each: Bytes  # (K, P) what a replica counts
    movable: Bools  # (P,) selected, not in flight nor held, with a replica that is alive
    held: Bools  # (P,) selected, and held back by a broker that keeps a replica
    leaving: Bools  # (P,) of them those that only leave drained brokers: excluded by default
    evicted: Ints  # (P, R) `current`, with those that are leaving where they go
    alive: Bools  # (B,)
    allowed: Bools  # (B,) may hold movable replicas in the end
    drained: Bools  # (B,) hold nothing in the end
    weight: Bytes  # (B,) relative capacity, for all resources
    closed: Bools  # (B,) of those that are allowed, get no replica of a partition that has none there
    room: Bytes  # (B,) bytes that may lie on it in the end; nothing is added beyond, what is there may stay
    groups: Ints  # (L, B) the rack of each broker, level by level from the top
    tree: Tree
    balanced: Bools  # (K,) what is to be balanced
    load: Bytes  # (K, B) now
    target: Bytes  # (K, B) best reachable share
    low: Bytes  # (K, B) band around the target: tolerance, counts rounded inward
    high: Bytes  # (K, B)
    unmet: tuple[UnmetGoal, ...]  # known before planning

    @property
    def size(self) -> Bytes:
        """(P,) the bytes of a replica."""
        size: Bytes = self.each[DISK]
        return size

    @property
    def open(self) -> Bools:
        """(B,) the brokers that can get replicas; where none can, those that may hold some."""
        open_ = self.allowed & ~self.closed
        return open_ if open_.any() else self.allowed

    def loads(self, replicas: Ints, which: Bools | None = None) -> Bytes:
        """Return (K, B): what lies on each broker with these replicas (P, R'), of the partitions `which` (P,)."""
        return loads(replicas, self.each, len(self.brokers), which)


def pose(cluster: Cluster, goal: PlacementGoal, refused: Bools | None = None) -> PlacementProblem:
    """Return the problem of reaching the goal in this cluster.

    `refused` (P,) are partitions that are not moved, since they would keep a replica on a cordoned broker.

    Raises PlanningError: InvalidGoal, NothingSelected, NotEnoughBrokers, InvalidRacks, InvalidSnapshot.
    """
    allowed, drained = _allowed(cluster, goal)
    groups = levels(cluster.racks, goal.awareness, cluster.brokers, goal.words.flat)
    racks = [cluster.racks[b] for b in np.flatnonzero(allowed).tolist()]
    check_complete(racks, goal.awareness, cluster.brokers[allowed], goal.words.none)
    there: Bools = cluster.replicas >= 0
    online = online_replicas(cluster)
    selection = select(cluster, goal, drained)
    living = np.asarray(online.any(axis=1))
    settled = (selection.planned | selection.leaving) & ~cluster.in_flight
    refused = np.zeros_like(settled) if refused is None else refused
    held = settled & (refused | held_back(cluster, goal, drained))
    movable = settled & living & ~held
    leaving = movable & selection.leaving
    rf = there.sum(axis=1, dtype=np.int32)
    if goal.replication_factor is not None:
        rf[movable & ~leaving] = goal.replication_factor
    _check_enough(cluster, goal, allowed, rf, movable, leaving)
    cordoned = cordoned_brokers(cluster.directories, len(allowed))
    closed = allowed & (np.isin(cluster.brokers, sorted(goal.avoid)) | cordoned)
    may_hold, allowed = allowed, allowed & ~_spare(cluster, goal, closed, allowed, rf, movable)
    closed &= allowed
    each = what_counts(cluster)
    for of, kind in zip(each, COUNTED.values(), strict=True):
        if kind.measure:
            _check_sums(cluster, of, np.maximum(rf, there.sum(axis=1)), kind.what)
    load = loads(cluster.replicas, each, len(cluster.brokers))
    weight = weights(cluster, allowed)
    tree = grow(groups, allowed, max(cluster.replicas.shape[1], int(rf.max())))
    keep = there & (~movable[:, None] | (online & allowed[cluster.replicas]))
    room = np.where(closed, load[DISK], _room(cluster, goal, load[DISK]))
    others_stay = goal.scope is Scope.DRAINED
    if others_stay:
        keep |= there & ~drained[cluster.replicas]
    rows = evicted(cluster.replicas, leaving, keep, each, allowed, closed, weight, room, tree, others_stay=others_stay)
    free = movable & ~leaving
    targets = targets_of(
        Placement(rows, keep, rf, each, free, allowed, closed, weight, room, tree, goal.balance, goal.tolerance)
    )
    return PlacementProblem(
        brokers=cluster.brokers,
        racks=cluster.racks,
        scope=goal.scope,
        current=cluster.replicas,
        keep=keep,
        rf=rf,
        each=each,
        movable=movable,
        held=held,
        leaving=leaving,
        evicted=rows,
        alive=cluster.alive,
        allowed=allowed,
        drained=drained,
        weight=weight,
        closed=closed,
        room=room,
        groups=groups,
        tree=tree,
        balanced=np.array([by in goal.balance for by in RESOURCES]),
        load=load,
        target=targets.target,
        low=targets.low,
        high=targets.high,
        unmet=(
            *_left(
                cluster,
                selection,
                living | held,
                there & ~may_hold[cluster.replicas],
                there & drained[cluster.replicas],
            ),
            *held_goals(cluster, goal, drained, held, held & refused, cordoned & ~drained),
            *unseen_goals(cluster, goal),
        ),
    )


def around_evicted(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem that remains once the partitions that are leaving lie where they go."""
    if not problem.leaving.any():
        return problem
    return replace(
        problem,
        current=problem.evicted,
        movable=problem.movable & ~problem.leaving,
        load=problem.loads(problem.evicted),
    )


def online_replicas(cluster: Cluster) -> Bools:
    """Return (P, R): which replicas are on a live broker, and in a directory that is online."""
    online: Bools = (cluster.replicas >= 0) & cluster.alive[cluster.replicas]
    if cluster.directory.size and len(cluster.directories.online):
        online &= cluster.directories.online[cluster.directory] | (cluster.directory < 0)
    return online


def _allowed(cluster: Cluster, goal: PlacementGoal) -> tuple[Bools, Bools]:
    """Return, each (B,): the brokers that may hold replicas in the end, and those that the goal drains."""
    if not 0 < goal.tolerance <= 1:
        raise PlanningError(
            Reason.INVALID_GOAL, f"the tolerance is {goal.tolerance}: give a share above 0, and 1 at most, such as 0.1"
        )
    if not 0 <= goal.min_free < 1:
        raise PlanningError(
            Reason.INVALID_GOAL, f"the share to stay free is {goal.min_free}: give one from 0 to below 1, such as 0.1"
        )
    if goal.replication_factor is not None and goal.replication_factor < 1:
        raise PlanningError(Reason.INVALID_GOAL, f"the replication factor is {goal.replication_factor}: give 1 or more")
    named = goal.drain | (goal.brokers or frozenset()) | goal.avoid
    missing = sorted(named - set(cluster.brokers.tolist()))
    if missing:
        raise PlanningError(
            Reason.INVALID_GOAL, f"{named_brokers(missing, 'is')} not in the cluster: name brokers that are"
        )
    drained = np.isin(cluster.brokers, sorted(goal.drain))
    chosen = np.ones(len(drained), bool) if goal.brokers is None else np.isin(cluster.brokers, sorted(goal.brokers))
    if not (chosen & ~drained).any():
        raise PlanningError(
            Reason.INVALID_GOAL, "every broker is to be drained or left out: leave some to hold the replicas"
        )
    allowed: Bools = cluster.alive & chosen & ~drained
    if not allowed.any():
        raise PlanningError(
            Reason.NOT_ENOUGH_BROKERS,
            "none of the brokers that the goal leaves is alive "
            f"({listed(cluster.brokers[chosen & ~drained].tolist())}): bring one back, or allow others",
        )
    return allowed, ~chosen | drained


def _check_enough(
    cluster: Cluster, goal: PlacementGoal, allowed: Bools, rf: Ints, movable: Bools, leaving: Bools
) -> None:
    wanted = int(rf[movable].max(initial=0))
    if allowed.sum() >= wanted:
        return
    row = int(np.flatnonzero(movable & (rf == wanted))[0])
    dead = cluster.brokers[~cluster.alive].tolist()
    dead_ones = f" (not alive: {listed(dead)})" if dead else ""
    todo = "lower the replication factor"
    if leaving[row] and goal.scope is not Scope.DRAINED:
        todo = (
            "have the goal's replication factor count for it too: topics that are excluded by default keep theirs, "
            f"and {goal.words.all_topics} excludes none"
        )
    raise PlanningError(
        Reason.NOT_ENOUGH_BROKERS,
        f"{partition_name(cluster, row)} needs {wanted} brokers, and the goal leaves {int(allowed.sum())}: "
        f"{listed(cluster.brokers[allowed].tolist()) or 'none'}{dead_ones}; "
        f"allow more brokers, or {todo}",
    )


def _spare(cluster: Cluster, goal: PlacementGoal, closed: Bools, allowed: Bools, rf: Ints, movable: Bools) -> Bools:
    """Return (B,): the closed brokers that hold nothing either, so that racks count without them.

    There are none where the others are too few for a partition, or where the goal's scope leaves racks aside.
    """
    spare, holding = closed.copy(), cluster.replicas[movable]
    spare[holding[holding >= 0]] = False
    if goal.scope is Scope.DRAINED or (allowed & ~spare).sum() < rf[movable].max(initial=1):
        spare[:] = False
    return spare


def _check_sums(cluster: Cluster, each: Bytes, replicas: Ints, what: str) -> None:
    row = int(each.argmax())
    if each[row] > MOST_REPLICA_BYTES:
        error = f"{partition_name(cluster, row)} has {each[row]} {what}, more than the {MOST_REPLICA_BYTES} of 1 PiB"
    elif (total := float((each.astype(np.float64) * replicas).sum())) > MOST_BYTES:
        error = f"all replicas together have {total:.4g} {what}, more than the {MOST_BYTES} of 1 EiB"
    else:
        return
    raise PlanningError(
        Reason.INVALID_SNAPSHOT, f"{error}: that is an error; check what the brokers report of their log directories"
    )


def weights(cluster: Cluster, allowed: Bools) -> Bytes:
    """Return (B,): the capacity of each broker if every allowed one reports it, else 1 for all."""
    capacity, known = capacities(cluster.directories, len(allowed))
    return np.ones(len(allowed), np.int64) if (allowed & ~known).any() else capacity


def _room(cluster: Cluster, goal: PlacementGoal, lying: Bytes) -> Bytes:
    """Return (B,): the bytes there, and those usable beyond the share to stay free, of volumes that take replicas."""
    directories = cluster.directories
    takes = directories.online & ~directories.cordoned
    unreported = (directories.total == UNKNOWN) | (directories.usable == UNKNOWN)
    spared = np.array([ceil(goal.min_free * max(total, 0)) for total in directories.total.tolist()], np.int64)
    reporting = np.flatnonzero(takes & ~unreported)
    _, one = np.unique(volumes(directories)[reporting], return_index=True)
    room = lying.copy()
    left = np.clip(directories.usable - spared, 0, MOST_VOLUME_BYTES)
    np.add.at(room, directories.broker[reporting[one]], left[reporting[one]])
    room[directories.broker[takes & unreported]] = UNLIMITED
    room[np.setdiff1d(np.arange(len(room)), directories.broker)] = UNLIMITED
    return room


def _left(cluster: Cluster, selection: Selection, living: Bools, elsewhere: Bools, leaving: Bools) -> list[UnmetGoal]:
    """Return what the goal would have moved and no plan does; each (P, R): replicas `elsewhere` than where they may
    be in the end, and those `leaving` drained brokers."""
    unmet, selected = [], selection.planned | selection.leaving
    for row in np.flatnonzero(selected & ~living & ~cluster.in_flight).tolist():
        unmet.append(
            UnmetGoal(
                f"{partition_name(cluster, row)} has no replica on a live broker or directory",
                "it stays where it is; bring one of its brokers back, then plan again",
                part_of(leaving[row]),
                Cause.NO_LIVE_REPLICA,
            )
        )
    waiting = selected & cluster.in_flight & elsewhere.any(axis=1)
    if waiting.any():
        unmet.append(
            UnmetGoal(
                f"{counted(int(waiting.sum()), 'partition')} in flight to brokers that the goal does not allow",
                "they stay as they are; plan again when their reassignments are done",
                part_of(leaving[waiting]),
                Cause.IN_FLIGHT,
            )
        )
    guessed = int((selected & (cluster.sizes < 0)).sum())
    if guessed:
        unmet.append(
            UnmetGoal(
                f"sizes that the brokers have not reported, of {counted(guessed, 'partition')}",
                "each counts as the mean of its topic; plan again when the brokers answer",
            )
        )
    staying = leaving & selection.kept[:, None]
    if staying.any():
        topics = [cluster.topics[topic] for topic in np.unique(cluster.topic[staying.any(axis=1)])]
        unmet.append(
            UnmetGoal(
                f"{counted(int(staying.sum()), 'replica')} of excluded topics on brokers to be emptied: "
                f"{listed(cluster.brokers[np.unique(cluster.replicas[staying])].tolist())} "
                f"(topics: {listed(topics)})",
                "they stay; to move them too, exclude no topic",
                GoalPart.DRAIN,
                Cause.EXCLUDED,
            )
        )
    return unmet


def part_of(leaving: Bools) -> GoalPart | None:
    """Return the part of the goal that is not reached where any of these replicas was to leave a drained broker."""
    return GoalPart.DRAIN if leaving.any() else None
