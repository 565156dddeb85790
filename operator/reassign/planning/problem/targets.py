"""What each broker should have in the end, and the band around it: the best that is known to be reachable.

A share is by weight, and no more than racks, disk or the replicas that a broker can have allow. A band is never so
narrow that no plan could meet it, where that is simple to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reassign.api.goal import By
from reassign.planning.problem import shares
from reassign.planning.problem.assignments import OF_LEADERS, by_factor, loads
from reassign.planning.problem.legality import done
from reassign.planning.problem.model import Bools, Bytes, Floats, Ints
from reassign.planning.problem.shares import DISK, LEADERS, OPEN, REPLICAS
from reassign.planning.problem.tree import Tree

VARIANTS = 20
"""Large replicas, the greatest ones, of which it is tried whether they have counted as fixed."""


class Placement(NamedTuple):
    """What there is to place, and where. Letters and fields are those of `Problem`."""

    current: Ints  # (P, R)
    keep: Bools  # (P, R)
    rf: Ints  # (P,)
    each: Bytes  # (K, P)
    movable: Bools  # (P,)
    allowed: Bools  # (B,)
    closed: Bools  # (B,)
    weight: Bytes  # (B,)
    room: Bytes  # (B,)
    tree: Tree
    balance: frozenset[By]
    tolerance: float

    @property
    def size(self) -> Bytes:
        """(P,) the bytes of a replica."""
        size: Bytes = self.each[DISK]
        return size

    def loads(self, which: Bools | None = None) -> Bytes:
        """Return (K, B): what lies on each broker of the partitions `which` (P,)."""
        return loads(self.current, self.each, len(self.allowed), which)


class Targets(NamedTuple):
    """Each (K, B), or each (B,): one row of them."""

    target: Bytes
    low: Bytes
    high: Bytes


def targets_of(of: Placement) -> Targets:
    """Return the shares and bands of all resources."""
    fixed = of.loads(~of.movable)
    free = np.zeros_like(of.room), np.full_like(of.room, OPEN)
    most = np.where(of.closed, of.loads(), OPEN)
    replicas = _counted(of, REPLICAS, fixed, free[0], most[REPLICAS])
    if (fitting := _fitting(of, fixed, replicas.high)) is not None:
        replicas = _counted(of, REPLICAS, fixed, free[0], np.minimum(most[REPLICAS], fitting))
    least, greatest = _leadable(of, fixed, replicas.target) if By.LEADERS in of.balance else free
    leaders = _counted(of, LEADERS, fixed, least, np.minimum(greatest, most[REPLICAS]))
    if By.REPLICAS in of.balance:
        fewest = fixed[LEADERS] + np.maximum(replicas.low - fixed[REPLICAS], 0)
        leaders = leaders._replace(low=np.minimum(leaders.low, fewest))
    disk = _disk(of, fixed[DISK], replicas.low if By.REPLICAS in of.balance else free[0])
    others = (_counted(of, row, fixed, free[0], most[row]) for row in range(LEADERS + 1, len(fixed)))
    return Targets(*(np.stack(rows) for rows in zip(disk, replicas, leaders, *others, strict=True)))


def _counted(of: Placement, row: int, all_fixed: Bytes, atleast: Bytes, atmost: Bytes) -> Targets:
    """Return the share and band of one resource. No band is narrower than the largest replica."""
    each, fixed, leaders = of.each[row], all_fixed[row], bool(OF_LEADERS[row])
    amounts = {r: int(each[which].sum()) for r, which in by_factor(of.rf, of.movable)}
    share, down = shares.shares(of.tree, of.weight, fixed, amounts, atleast, atmost, leaders=leaders)
    low, high = shares.band(share, share, of.tolerance)
    largest = int(each[of.movable].max(initial=1))
    low = np.minimum(low, np.maximum(down + 1 - largest, 0))
    most = np.maximum(share, down + largest) if leaders else share + largest  # narrow bands of leaders cost no bytes
    return _targets(of, fixed, share, low, np.maximum(high, most))


def _fitting(of: Placement, fixed: Bytes, high: Bytes) -> Bytes | None:
    """Return how many of the smallest replicas brokers have room for; None where there is room for all that they should
    have."""
    sizes, room = of.size[of.movable], np.maximum(of.room - fixed[DISK], 0)
    mean = float(sizes.sum()) / max(1, len(sizes))
    if not (of.allowed & (room < (high - fixed[REPLICAS]) * mean)).any():
        return None
    fitting: Bytes = fixed[REPLICAS] + np.searchsorted(np.cumsum(np.sort(sizes)), room, side="right")
    return fitting


def _disk(of: Placement, fixed: Bytes, few: Bytes) -> Targets:
    """Return the share and band of bytes; brokers have at least `few` (B,) replicas in the end.

    A replica that is larger than a broker's share, and may stay, counts as fixed: the other brokers share the rest.
    Where nothing has to move, a plan may have brought the replicas here, and fewer of them counted as fixed then. If
    the bands of that plan are met, they hold: a second plan moves nothing.
    """
    stays: list[int] = []
    found = _around(of, fixed, few, stays)
    while By.DISK in of.balance:
        oversized = _oversized(of, found.target.astype(np.float64) * (1 + of.tolerance), stays)
        if not oversized or len(stays) + len(oversized) == of.movable.sum():
            break
        stays = [*stays, *oversized]
        found = _around(of, fixed, few, stays)
    else:
        return found
    if not (stays or oversized) or not _settled(of, np.flatnonzero(of.movable)).all():
        return found
    load = of.loads()[DISK]
    wide = found
    for fewer in _fewer(sorted([*stays, *oversized], key=lambda p: (-of.size[p], p))):
        if _inside(wide, load):
            return wide
        other = _around(of, fixed, few, fewer)
        wide = wide._replace(low=np.minimum(wide.low, other.low), high=np.maximum(wide.high, other.high))
    return wide if _inside(wide, load) else found


def _around(of: Placement, fixed: Bytes, few: Bytes, stays: list[int]) -> Targets:
    """Return the share and band of bytes where these partitions count as fixed.

    Brokers have at least `few` replicas in the end, so some small ones lie beside a large one.
    """
    moves, atleast = of.movable.copy(), np.zeros_like(fixed)
    moves[stays] = False
    lies, has = of.loads(~moves)[[DISK, REPLICAS]]
    sizes = {r: of.size[which] for r, which in by_factor(of.rf, moves)}
    amounts = {r: int(size.sum()) for r, size in sizes.items()}
    if stays:
        small = _smallest(of.size[moves], few - has)
        enough = small[of.allowed].sum() <= (of.size * of.rf)[moves].sum()
        atleast = lies + small if enough else lies
    share, _ = shares.shares(of.tree, of.weight, lies, amounts, atleast, of.room, leaders=False)
    largest, beside = int(of.size[moves].max(initial=0)), np.zeros_like(fixed)
    if largest > of.tolerance * int(share[of.allowed].min()):
        beside = _smallest(of.size[moves], few - has - 1)
    reach = shares.coverable(of.tree, share, lies, atleast, sizes, beside)
    low, high = shares.band(reach, np.maximum(share, fixed + largest + beside), of.tolerance)
    return _targets(of, fixed, share, low, high)


def _fewer(stays: list[int]) -> Iterator[list[int]]:
    """Return what may have counted as fixed of these, the greatest first: some of the greatest, or all but one."""
    for number in range(min(len(stays), VARIANTS)):
        yield stays[:number]
        yield [*stays[:number], *stays[number + 1 :]]


def _inside(targets: Targets, load: Bytes) -> bool:
    return bool(((targets.low <= load) & (load <= targets.high)).all())


def _targets(of: Placement, fixed: Bytes, share: Bytes, low: Bytes, high: Bytes) -> Targets:
    """Return the share and band; a broker that gets no new replica cannot be filled, so its band begins at 0."""
    return Targets(share, np.where(of.allowed & ~of.closed, low, 0), np.where(of.allowed, high, fixed))


def _smallest(sizes: Bytes, count: Bytes) -> Bytes:
    """Return (B,): the bytes of that many smallest replicas."""
    sums = np.concatenate(([0], np.cumsum(np.sort(sizes))))
    return sums[np.clip(count, 0, len(sizes))]


def _oversized(of: Placement, most: Floats, stays: list[int]) -> list[int]:
    """Return partitions with a replica of more than `most` (B,) on a broker, which may stay.

    Of each broker it is the largest one. There is none where a broker has a replica of one that `stays`.
    """
    some = np.flatnonzero(of.movable & (of.size > most[of.allowed].min()))
    some = np.setdiff1d(some, stays)
    some = some[_settled(of, some)]
    oversized: list[int] = []
    taken = {b for row in of.current[stays].tolist() for b in row if b >= 0}
    for p in some[np.argsort(-of.size[some], kind="stable")].tolist():
        brokers = {b for b in of.current[p].tolist() if b >= 0}
        if not brokers & taken and any(of.size[p] > most[b] for b in brokers):
            oversized.append(p)
        taken |= brokers
    return oversized


def _leadable(of: Placement, fixed: Bytes, replicas: Bytes) -> tuple[Bytes, Bytes]:
    """Return the fewest and the most leaders that brokers can have with the replicas that they should have.

    Leaders alone move no bytes. Where nothing else is balanced, it is by the replicas that brokers have, and those that
    have to move anyway.
    """
    least, most = np.zeros_like(of.room), np.full_like(of.room, OPEN)
    if By.REPLICAS in of.balance:
        most = fixed[LEADERS] + np.maximum(replicas - fixed[REPLICAS], 0)
    elif By.DISK not in of.balance:
        stay, some = np.zeros(len(of.rf), np.bool_), np.flatnonzero(of.movable)
        stay[some[_settled(of, some)]] = True
        has = of.loads(stay)[REPLICAS]
        most = fixed[LEADERS] + has + int((of.movable & ~stay).sum())
        only = stay & (of.rf == 1)
        least = fixed[LEADERS] + of.loads(only)[REPLICAS]
    return least, most


def _settled(of: Placement, some: Ints | Bytes) -> Bools:
    """Return which of these partitions need no move: number of replicas, spread and brokers are as wanted."""
    tree, held = of.tree, of.current[some] >= 0
    legal = done(of.current[some], of.rf[some], of.allowed, tree.path, tree.level, tree.extra)
    settled: Bools = legal & (of.keep[some] | ~held).all(axis=1)
    return settled
