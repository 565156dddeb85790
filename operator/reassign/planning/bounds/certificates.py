"""Certificates: what a plan costs, and what every plan costs that reaches as much.

The bounds hold for every legal assignment inside the bands: replication factors, allowed brokers, replicas spread over
the tree of racks. Where the plan itself misses a band, they hold for every plan that misses it no further.

Proof: let v be brokers for which the tree dictates how many replicas of each partition lie on them. All allowed brokers
are such a set. So is each rack where there are as many racks as replicas, and each broker to be emptied. The net change
of v is then known, Δ. What comes to v is at least each of
- the deficits of its brokers: Σ max(bytes under the band, the smallest replicas that the count under the band calls
  for),
- Δ and the excesses of some of its brokers, and on the others what illegal partitions must give up. An excess is
  max(bytes over the band, the smallest replicas that the count over it drives out),
- what partitions must add in it, since no legal assignment keeps enough of their replicas,
- what it takes at any prices of bytes and replicas (`joint_bound`), which sees both at once. Disjoint sets of brokers
  add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from reassign.planning.bounds import counting, joint_bound
from reassign.planning.problem.assignments import OF_LEADERS, added, by_factor
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import Balance, Bools, Bytes, Certificate, Ints, UnmetGoal
from reassign.planning.problem.problem import RESOURCES, PlacementProblem
from reassign.planning.problem.shares import DISK, LEADERS, OPEN, REPLICAS

SHARES = (0, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Which brokers count for their excess: where it is more than this share of what illegal partitions have on them. The
others count for these partitions. Each choice gives a bound; the greatest is taken."""

MANY = 500
"""The largest replicas whose numbers are tried for a bound of the balance."""

NEAR = 2_000
"""A plan within one part in so many of the other bounds needs no bound by prices, which takes longest."""

ROUNDING = 1e-12
"""How far two numbers may be apart that are the same but for rounding."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a plan."""

    bytes: int
    """Of all replicas that are added somewhere."""
    moves: int
    """Replicas that are added somewhere."""


def certify(
    problem: PlacementProblem,
    target: Ints,
    *,
    waves: int = 0,
    waves_bound: int = 0,
    makespan: float | None = None,
    makespan_bound: float | None = None,
    unmet: tuple[UnmetGoal, ...] = (),
) -> Certificate:
    """Return the certificate of a plan with these replicas (P, R'), -1 fills rows. The other arguments are passed on.

    Partitions that the plan leaves as no legal plan may have them count as if they were not to be moved.
    """
    legal = problem.movable & _done(problem, target)
    whole = bool((legal == problem.movable).all())
    problem = replace(problem, movable=legal)
    after = problem.loads(target)
    paid = cost(problem, target)
    least = bound(problem, after, paid.bytes)
    balance = balances(problem, after)
    return Certificate(
        bytes=paid.bytes,
        bytes_bound=least.bytes,
        moves=paid.moves,
        moves_bound=least.moves,
        leaders=int((target[:, 0] != problem.current[:, 0]).sum()),
        balance=balance,
        waves=waves,
        waves_bound=waves_bound,
        makespan=makespan,
        makespan_bound=makespan_bound,
        unmet=unmet,
        unbeaten=tuple(one.by for one in balance if whole and _unbeaten(one)),
    )


def cost(problem: PlacementProblem, target: Ints) -> Cost:
    """Return what this plan copies."""
    copies = added(problem.current, target).sum(axis=1)
    return Cost(int((copies * problem.size).sum()), int(copies.sum()))


def bound(problem: PlacementProblem, after: Bytes | None = None, paid: int | None = None) -> Cost:
    """Return what every plan copies at least that balances as well as one with the loads `after` (K, B).

    Without `after` it is for plans inside all bands. `paid` are the bytes of a plan, where it suffices to show how near
    to the optimum that plan is.
    """
    low, high = limits(problem, after)
    tree, load = problem.tree, problem.load
    excess, deficit = np.maximum(load - high, 0), np.maximum(low - load, 0)
    order = np.argsort(problem.size, kind="stable")
    order = order[problem.movable[order]]
    driven, covering = counting.leaving(problem.current, problem.size, order, excess[DISK], excess[REPLICAS])
    size = problem.size[order]
    by_count = np.minimum(deficit[REPLICAS], len(size))
    called = np.concatenate(([0], np.cumsum(size)))[by_count]
    filling = np.searchsorted(np.cumsum(size[::-1]), deficit[DISK], side="left") + (deficit[DISK] > 0)

    forced = _forced(problem)
    above = _above(tree.parent, forced)
    place = np.where(forced[tree.path[:, -1]], tree.path[:, -1], above[tree.path[:, -1]])
    nodes = len(tree.parent)
    need = np.maximum(excess[:LEADERS], (driven, covering))
    come = _sum(nodes, place, np.maximum(deficit[DISK], called), np.maximum(deficit[REPLICAS], filling))
    wrong = problem.movable & ~_done(problem, problem.current)
    illegal, lies = np.flatnonzero(wrong), problem.loads(problem.current, wrong)[DISK]

    def must(stays: Bools) -> Bytes:
        return counting.forced(
            problem.current, problem.rf, problem.size, illegal, stays, tree.path, tree.cap, tree.level, tree.extra,
            tree.least, np.flatnonzero(forced & (tree.cap > 0)), _depth(tree.path, nodes), above,
        )  # fmt: skip

    add, give = must(problem.allowed)
    out = np.zeros_like(come)
    for share in SHARES if give.any() else SHARES[:1]:
        over = need[DISK] > share * lies if share else need.any(axis=0)
        given = must(problem.allowed & ~over)[1]
        out = np.maximum(out, _sum(nodes, place, *np.where(over, need, 0)) + given)
    least = np.maximum(np.maximum(come, out + _change(problem, forced, above, place)), add)
    cells = np.unique(place)
    if paid is None or (paid - int(least[DISK, cells].sum())) * NEAR > paid:
        own = _own(problem, forced, above)
        rows, rf = problem.current[order], problem.rf[order]
        fixed = problem.loads(problem.current, ~problem.movable)
        free = (low - fixed)[:LEADERS], (high - fixed)[:LEADERS]
        for cell in cells.tolist():
            brokers = np.flatnonzero((place == cell) & problem.allowed)
            least[DISK, cell] = max(least[DISK, cell], joint_bound.least(rows, size, brokers, own[cell][rf], *free))
    return Cost(*least[:, cells].sum(axis=1).tolist())


def limits(problem: PlacementProblem, after: Bytes | None = None) -> tuple[Bytes, Bytes]:
    """Return (low, high), each (K, B): the bands of what is balanced. Brokers not allowed keep what is fixed."""
    asked = problem.balanced[:, None]
    low = np.where(asked & problem.allowed, problem.low, 0)
    high = np.where(asked | ~problem.allowed, problem.high, OPEN)
    if after is None:
        return low, high
    return np.minimum(low, after), np.maximum(high, after)


def balances(problem: PlacementProblem, after: Bytes) -> tuple[Balance, ...]:
    """Return the balance of each resource that is to be balanced, over the allowed brokers.

    Least shares are those of the brokers that can get more.
    """
    of, least = problem.allowed, reachable(problem)
    open_ = problem.open[of]
    shares = []
    for row in np.flatnonzero(problem.balanced).tolist():
        share, before, low, high = (
            values[row, of] / np.maximum(problem.target[row, of], 1)
            for values in (after, problem.load, problem.low, problem.high)
        )
        shares.append(
            Balance(
                RESOURCES[row],
                before=(float(before[open_].min()), float(before.max())),
                after=(float(share[open_].min()), float(share.max())),
                reachable=float(least[row]),
                band=(float(low[open_].min()), float(high.max())),
            )
        )
    return tuple(shares)


def _unbeaten(balance: Balance) -> bool:
    """Return whether the greatest share is above the band, and equals its bound."""
    greatest = balance.after[1]
    return greatest > balance.band[1] and greatest <= balance.reachable * (1 + ROUNDING)


def reachable(problem: PlacementProblem) -> list[Fraction]:
    """Return (K,): no assignment has a smaller greatest share of a target than this.

    What the tree puts below a node lies on its brokers, and in whole replicas. Each replica of the largest partition
    lies on some broker. Of more large replicas than brokers, two lie on one, and so on.
    """
    tree, of, movable = problem.tree, np.flatnonzero(problem.allowed), problem.movable
    aim = np.where(problem.allowed, np.maximum(problem.target, 1), 0)
    fixed = problem.loads(problem.current, ~movable)
    kinds = by_factor(problem.rf, movable)
    greatest = []
    for row in range(len(RESOURCES)):
        lies, holds = _up(problem, np.where(problem.allowed, fixed[row], 0)), _up(problem, aim[row])
        for r, which in kinds:
            amount = int(problem.each[row, which].sum())
            least = tree.least[:, r] == r if OF_LEADERS[row] else tree.least[:, r]
            lies += amount * least.astype(np.int64)
        share = Fraction(0)
        if row != DISK and lies[0]:  # what there is lies on some broker, whole
            share = Fraction(1, int(aim[row].max()))
        for node in np.flatnonzero(holds).tolist():
            share = max(share, Fraction(int(lies[node]), int(holds[node])))
            left = int(lies[node] - holds[node])
            if row != DISK and left > 0:  # as many brokers take one more than their target, or one takes even more
                below = of[(tree.path[of] == node).any(axis=1)] if node else of
                share = max(share, Fraction(1, int(np.sort(aim[row, below])[-min(left, len(below))])) + 1)
        greatest.append(share)
    if movable.any():
        largest = int(np.where(movable, problem.size, -1).argmax())
        over = [Fraction(int(fixed[DISK, b] + problem.size[largest]), int(aim[DISK, b])) for b in of.tolist()]
        greatest[DISK] = max(greatest[DISK], sorted(over)[problem.rf[largest] - 1])
        greatest[DISK] = max(greatest[DISK], _by_number(problem, fixed[DISK, of], aim[DISK, of]))
    return greatest


def _by_number(problem: PlacementProblem, fixed: Bytes, aim: Bytes) -> Fraction:
    """Return the greatest share of bytes that the numbers of the largest replicas force on some broker.

    Of the k largest replicas, n on a broker have at least the bytes of the n smallest of them. Within a share each
    broker has room for so many; the bound is the least share at which these are k together. `fixed` and `aim` are of
    the allowed brokers (A,).
    """
    sizes = np.repeat(problem.size[problem.movable], problem.rf[problem.movable])
    most = min(len(sizes), MANY)
    sizes = -np.sort(-sizes)[:most]
    found = Fraction(0)
    for k in range(len(aim) + 1, most + 1, len(aim)):
        full = fixed[:, None] + np.cumsum(sizes[:k][::-1])  # (A, k): with 1 to k of them
        share = full / aim[:, None]
        at = np.argpartition(share, k - 1, axis=None)[k - 1]
        broker = int(at) // k
        found = max(found, Fraction(int(full.flat[at]), int(aim[broker])))
    return found


def _done(problem: PlacementProblem, replicas: Ints) -> Bools:
    """Return (P,): which partitions have the wanted number of replicas, all on allowed brokers, legally spread."""
    tree = problem.tree
    return done(replicas, problem.rf, problem.allowed, tree.path, tree.level, tree.extra)


def _forced(problem: PlacementProblem) -> Bools:
    """Return (N,): nodes below which each partition has a number of replicas that the tree dictates."""
    kinds = np.flatnonzero(np.bincount(problem.rf[problem.movable]))
    forced: Bools = (problem.tree.least[:, kinds] == problem.tree.most[:, kinds]).all(axis=1)
    return forced


def _depth(path: Ints, nodes: int) -> Ints:
    """Return (N,): how many nodes lie above each."""
    depth = np.zeros(nodes, np.int32)
    depth[path] = np.arange(1, path.shape[1] + 1)
    return depth


def _above(parent: Ints, forced: Bools) -> Ints:
    """Return (N,): the nearest forced node above each; the root is its own."""
    above = parent.copy()
    for node in range(1, len(parent)):
        if not forced[parent[node]]:
            above[node] = above[parent[node]]
    return above


def _sum(nodes: int, place: Ints, *of: Bytes) -> Bytes:
    """Return (len(of), N): sums per node that brokers count for."""
    sums = np.zeros((len(of), nodes), np.int64)
    for row, values in enumerate(of):
        np.add.at(sums[row], place, values)
    return sums


def _own(problem: PlacementProblem, forced: Bools, above: Ints) -> Bytes:
    """Return (N, R + 1): replicas of a partition on the brokers of each forced node, without those of forced nodes
    below."""
    own = np.where(forced[:, None], problem.tree.least, 0).astype(np.int64)
    below = own.copy()
    np.subtract.at(own, above[1:], below[1:])
    return own


def _change(problem: PlacementProblem, forced: Bools, above: Ints, place: Ints) -> Bytes:
    """Return (2, N): the bytes and replicas that the brokers of each forced node gain, without those of forced nodes
    below."""
    movable, own = problem.movable, _own(problem, forced, above)
    lying = problem.loads(problem.current, movable)
    change = -_sum(len(above), place, lying[DISK], lying[REPLICAS])
    for r, of in by_factor(problem.rf, movable):
        change += own[:, r] * np.array([[problem.size[of].sum()], [of.sum()]])
    return change


def _up(problem: PlacementProblem, leaves: Bytes) -> Bytes:
    """Return (N,): sums below each node."""
    sums = np.zeros(len(problem.tree.parent), np.int64)
    sums[0] = leaves.sum()
    for column in problem.tree.path.T:
        np.add.at(sums, column, leaves)
    return sums
