"""Solves a problem: what has to move, then balance at the fewest bytes, then leaders, each by a part of the kernel.

It uses no clock and no chance. The work is bounded in place of a time limit, so that the same problem gives the same
plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reassign.api.goal import GoalPart
from reassign.planning.bounds.exchange import Exchange, cheapest_exchange
from reassign.planning.kernel.apply_exchange import apply_exchange
from reassign.planning.kernel.further import Loads, exchange_leaders, exchange_replicas
from reassign.planning.kernel.leaders import keep_leaders, lead
from reassign.planning.kernel.local_search import approach, local_search, outside, plan_cost
from reassign.planning.kernel.offload import level, offload, smallest
from reassign.planning.kernel.repair import choose_removals, repair
from reassign.planning.kernel.rows import close_up, greatest_first
from reassign.planning.kernel.state import KernelState, lists
from reassign.planning.kernel.trim import perturb, shrink, tidy, undo
from reassign.planning.problem.assignments import OF_LEADERS, loads
from reassign.planning.problem.model import Bools, Bytes, Ints, UnmetGoal
from reassign.planning.problem.problem import RESOURCES, PlacementProblem, around_evicted
from reassign.planning.problem.shares import LEADERS, OPEN
from reassign.planning.problem.unplaced import unplaced_goals
from reassign.text import counted, listed

ROUNDS = 12
CHAINS = 200
PERTURBATIONS = 8
EVERY = 1 << 60
WORTH = 2_000
"""Another try has to gain more than one part in so many of the bytes that move."""
SWEEPS = 8
SHARES = (1.0, 0.0)
"""How much bytes count beside replicas when an exchange is applied; small clusters come out better by either."""
SMALL = 10_000
"""Partitions up to which several ways are tried: they cost milliseconds, and single replicas count."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Where the replicas go, in the order of the problem's partitions."""

    target: Ints  # (P, R'), R' being the greatest replication factor
    unmet: tuple[UnmetGoal, ...]
    """What could not be placed; bands are left to `outside_bands`."""


def solve(problem: PlacementProblem) -> Solution:
    """Return the replicas' brokers, in their order. What stays keeps its slot, and what replaces a replica takes over
    its slot."""
    unplaced = problem.leaving & (problem.evicted == problem.current).all(axis=1)
    problem = around_evicted(problem)
    order = greatest_first(problem.size)
    partitions, width = len(order), max(problem.current.shape[1], int(problem.rf.max(initial=0)))
    row = np.full((partitions, width), -1, np.int32)
    row[:, : problem.current.shape[1]] = np.take(problem.current, order, axis=0)
    keep = np.zeros((partitions, width), np.bool_)
    keep[:, : problem.current.shape[1]] = np.take(problem.keep, order, axis=0)
    state = _state(problem, row, ~problem.movable[order], problem.size[order])
    unrepaired = np.zeros(partitions, np.bool_)
    weight = np.maximum(problem.weight, 1)
    repair(state, keep, problem.rf[order].astype(np.int64), weight, unrepaired)
    if state.counts.any():
        choose_removals(state, keep, SWEEPS)
        _balance(problem, state, keep)
    if problem.balanced[~OF_LEADERS][LEADERS:].any():
        exchange_replicas(state, _loads(problem, state, order, ~OF_LEADERS), LEADERS)
    tidy(state)
    widest = _order(problem, state, keep, order, weight)
    position = np.empty_like(order)
    position[order] = np.arange(partitions)
    target = np.take(state.row[:, : max(1, widest)], position, axis=0)
    unplaced[order[unrepaired]] = True
    return Solution(target, (*problem.unmet, *unplaced_goals(problem, unplaced)))


def _state(problem: PlacementProblem, row: Ints, still: Bools, size: Bytes) -> KernelState:
    low, high = np.zeros((2, len(problem.brokers)), np.int64), np.full((2, len(problem.brokers)), OPEN, np.int64)
    low[problem.balanced[:2]] = problem.low[:2][problem.balanced[:2]]
    high[problem.balanced[:2]] = problem.high[:2][problem.balanced[:2]]
    replicas = int(problem.load[1].sum())
    path = problem.tree.path.astype(np.int64)
    nodes = [np.zeros(len(path), np.int64), *path.T]  # the root, then level by level, as nodes are numbered
    return KernelState(
        row=row,
        home=row.copy(),
        still=still,
        size=size,
        load=problem.load[:2].copy(),
        room=problem.room.copy(),
        closed=problem.closed,
        low=low,
        high=high,
        floor=problem.target[:2].copy(),
        ceiling=high.copy(),
        counts=problem.balanced[:2].astype(np.float64),
        mean=max(1.0, int(problem.load[0].sum()) / max(1, replicas)),
        deficit=np.empty((2, len(path))),
        path=path,
        cap=problem.tree.cap.astype(np.int64),
        level=problem.tree.level.astype(np.int64),
        extra=problem.tree.extra.astype(np.int64),
        begin=np.cumsum(np.bincount(np.concatenate(nodes) + 1)),
        under=np.concatenate([np.argsort(of, kind="stable") for of in nodes]),
    )


def _balance(problem: PlacementProblem, state: KernelState, keep: Bools) -> None:
    """Balance bytes and replicas. The best of several ways stays: nearest to its bands, then fewest bytes, then fewest
    moves.

    First brokers give in their order. Where that costs more than the bound, the cheapest exchange is applied. For small
    clusters, and where a band is missed, other orders follow.
    """
    start, item = (of[0] for of in lists(state))
    _aim(problem, state, start, item)
    excess = np.argsort(state.ceiling[0] - state.load[0], kind="stable")
    other = np.arange(len(excess))[::-1].copy()
    ways: list[Bytes | float] = [np.arange(len(excess)), *SHARES, excess, excess[::-1].copy(), other]
    needed = plan_cost(state)[1] + _needed(problem, state)
    begun = state.row.copy(), state.load.copy()
    flows: list[tuple[Exchange, Bytes]] | None = None
    best, kept = plan_cost(state), begun
    for number, way in enumerate(ways):
        state.row[:], state.load[:] = begun
        if isinstance(way, float):
            flows = _exchanges(problem, state) if flows is None else flows
            for flow, kind in flows:
                apply_exchange(state, flow.place, kind, flow.size, flow.out, flow.come, way)
        else:
            offload(state, start, item, way)
        if outside(state):
            _search(state)
        _trim(state, keep)
        now = _iterate(state, keep)
        if now < best:
            best, kept = now, (state.row.copy(), state.load.copy())
        tried = number >= len(SHARES) or (best[1] - needed) * WORTH <= best[1]
        if best[0] == 0 and tried and len(problem.current) > SMALL:
            break
    state.row[:], state.load[:] = kept
    if best[0] > 0 and state.counts.all():
        _settle_replicas(state)
    if best[0] > 0 and state.counts[0]:
        approach(state)


def _search(state: KernelState) -> None:
    local_search(state, ROUNDS, 2 * len(state.row) + 1000)


def _settle_replicas(state: KernelState) -> None:
    """Balance replicas where bytes cannot be balanced: no broker's bytes go further from its band than now."""
    low, high = state.low[0].copy(), state.high[0].copy()
    state.low[0], state.high[0] = np.minimum(low, state.load[0]), np.maximum(high, state.load[0])
    _search(state)
    state.low[0], state.high[0] = low, high


def _iterate(state: KernelState, keep: Bools) -> tuple[float, int, int]:
    """Undo some moves and search again, as long as that improves the plan (iterated local search). Return the plan's
    cost."""
    best, here = plan_cost(state), (state.row.copy(), state.load.copy())
    every = [(0, EVERY), *((n, 1) for n in range(PERTURBATIONS))]
    tries = every.copy()
    while tries and perturb(state, keep, *tries.pop(0)) * WORTH > best[1]:
        _search(state)
        _trim(state, keep)
        again = plan_cost(state)
        if again < best:
            best, here, tries = again, (state.row.copy(), state.load.copy()), every.copy()
        state.row[:], state.load[:] = here
    state.row[:], state.load[:] = here
    return best


def _needed(problem: PlacementProblem, state: KernelState) -> int:
    """Return the bytes that balancing takes at least, by bytes alone."""
    group = _groups(problem)
    over = np.bincount(group, np.maximum(state.load[0] - state.high[0], 0))
    under = np.bincount(group, np.maximum(state.low[0] - state.load[0], 0))
    return int(np.maximum(over, under).sum())


def _exchanges(problem: PlacementProblem, state: KernelState) -> list[tuple[Exchange, Bytes]]:
    """Return the cheapest exchange in each group of brokers that exchange with no others, and the class of each
    partition."""
    flows = []
    order = np.flatnonzero(~state.still)[::-1]
    now, size = state.row[order], state.size[order]
    stays = np.where(now == state.home[order], now, -1).astype(np.int32)
    lies = state.size[state.still]
    fixed = loads(state.row[state.still], np.stack((lies, np.ones_like(lies))), len(problem.brokers))
    group = _groups(problem)
    for number in range(int(group.max()) + 1):
        brokers = np.flatnonzero((group == number) & problem.allowed)
        wanted = ((now >= 0) & np.isin(now, brokers)).sum(axis=1)
        cheapest = cheapest_exchange(stays, size, brokers, wanted, state.low - fixed, state.high - fixed)
        if cheapest is not None:
            kind = np.full(len(state.row), -1, np.int64)
            kind[order] = cheapest.kind
            flows.append((cheapest, kind))
    return flows


def _trim(state: KernelState, keep: Bools) -> None:
    tidy(state)
    undo(state, keep)
    if state.counts[0]:
        shrink(state)


def _aim(problem: PlacementProblem, state: KernelState, start: Bytes, item: Bytes) -> None:
    group = _groups(problem)
    forced = np.zeros(len(group), np.int64)
    if state.counts[1]:
        state.floor[1], state.ceiling[1] = level(state.load[1], state.low[1], state.high[1], group, forced)
        forced = smallest(state, start, item)
    if state.counts[0]:
        state.floor[0], state.ceiling[0] = level(state.load[0], state.low[0], state.high[0], group, forced)


def _groups(problem: PlacementProblem) -> Bytes:
    """Return (B,) the group of each broker: racks force a number of replicas on it, so it exchanges with no others."""
    tree, kinds = problem.tree, np.unique(problem.rf[problem.movable])
    forced = (tree.least[:, kinds] == tree.most[:, kinds]).all(axis=1)
    group = np.zeros(len(problem.brokers), np.int64)
    open_ = np.ones(len(problem.brokers), bool)
    for depth in range(tree.path.shape[1] - 1):
        open_ &= forced[tree.path[:, depth]]
        group[open_] = tree.path[open_, depth]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _loads(problem: PlacementProblem, state: KernelState, order: Bytes, rows: Bools) -> Loads:
    """Return the loads of these rows (K,); the bands of what is not balanced are open."""
    low, high = (
        np.where(problem.balanced[:, None], band, unbound) for band, unbound in ((problem.low, 0), (problem.high, OPEN))
    )
    each = np.take(problem.each, order, axis=1)
    return Loads(each[rows], loads(state.row, each, len(problem.brokers))[rows], low[rows], high[rows])


def _order(problem: PlacementProblem, state: KernelState, keep: Bools, order: Bytes, weight: Bytes) -> int:
    """Close the rows up and balance leaders; return the number of replicas in the longest row.

    First followers leave in place of preferred leaders, whatever the bands of leaders are. Where leaders are further
    from their bands then, only those return that the bands allow.
    """
    row, load = state.row.copy(), state.load.copy()
    of, led = (_loads(problem, state, order, rows) for rows in (~OF_LEADERS, OF_LEADERS))
    led.low[:], led.high[:] = 0, OPEN
    returned = keep_leaders(state, keep, weight, of, led, SWEEPS)
    widest = close_up(state.row)
    missed = _balance_leaders(problem, state, order)
    if returned and missed:
        kept = state.row.copy()
        state.row[:], state.load[:] = row, load
        close_up(state.row)
        if _balance_leaders(problem, state, order) < missed:
            of, led = (_loads(problem, state, order, rows) for rows in (~OF_LEADERS, OF_LEADERS))
            keep_leaders(state, keep, weight, of, led, SWEEPS)
        else:
            state.row[:] = kept
    return int(widest)


def _balance_leaders(problem: PlacementProblem, state: KernelState, order: Bytes) -> int:
    """Reorder replicas; return how far leaders are outside their bands then."""
    if problem.balanced[LEADERS]:
        _lead(problem, state)
    led = _loads(problem, state, order, OF_LEADERS)
    if problem.balanced[OF_LEADERS][1:].any():
        exchange_leaders(state.row, state.still, led, 1)
    return int((np.maximum(led.load - led.high, 0) + np.maximum(led.low - led.load, 0)).sum())


def _lead(problem: PlacementProblem, state: KernelState) -> None:
    leaders = state.row[:, 0]
    leads = np.bincount(leaders[leaders >= 0], minlength=len(problem.brokers))
    band = np.stack((problem.low[LEADERS], problem.high[LEADERS]))
    whole = np.zeros(len(leads), np.int64)
    aim = np.stack(level(leads, band[0], band[1], whole, np.zeros(len(leads), np.int64)))
    lead(state.row, state.still, np.ascontiguousarray(state.home[:, 0]), leads, band, aim, CHAINS)


def outside_bands(problem: PlacementProblem, target: Ints) -> list[UnmetGoal]:
    """Return what is to be balanced and is not, with these replicas (P, R')."""
    unmet = []
    after = problem.loads(target)
    for row, by in enumerate(RESOURCES):
        outside = (after[row] < problem.low[row]) | (after[row] > problem.high[row])
        if problem.balanced[row] and outside.any():
            share = after[row] / np.maximum(1, problem.target[row])
            least, most = share[problem.open].min(), share[problem.allowed].max()
            unmet.append(
                UnmetGoal(
                    f"{by} is not within the tolerance on {counted(int(outside.sum()), 'broker')}: "
                    f"{listed(problem.brokers[outside].tolist(), most=10)}",
                    f"from {least:.1%} to {most:.1%} of a broker's share",
                    GoalPart.BALANCE,
                )
            )
    return unmet
