"""Repair of what has to move: replicas that may not stay, replication factors, and rows that racks do not allow.

The greatest partitions go first. Each replica goes to the subtree with the fewest of its partition, from the top of the
tree down, and there to the broker that needs it most. A row that cannot be repaired for want of room stays as it was.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import KernelState, bars, fits, move, need, update_deficit, update_deficits
from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bools, Bytes


@inner
def legal(s: KernelState, p: int, held: Bytes, over: Bytes) -> bool:
    """Return whether the row counted in `held` is spread as evenly as it can be below every node.

    `over` (N,) is scratch space: zeros before and after.
    """
    n = 0
    for k in range(s.row.shape[1]):
        n += s.row[p, k] >= 0
    for d in range(s.path.shape[1]):
        right = True
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0:
                continue
            node, parent = s.path[b, d], s.path[b, d - 1] if d else 0
            first = True
            for j in range(k):
                first = first and (s.row[p, j] < 0 or s.path[s.row[p, j], d] != node)
            if first:
                level = s.level[parent, held[parent] if d else n]
                right = right and held[node] <= min(s.cap[node], level + 1)
                over[parent] += max(0, held[node] - min(s.cap[node], level))
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b >= 0:
                parent = s.path[b, d - 1] if d else 0
                right = right and over[parent] == s.extra[parent, held[parent] if d else n]
        for k in range(s.row.shape[1]):
            if s.row[p, k] >= 0:
                over[s.path[s.row[p, k], d - 1] if d else 0] = 0
        if not right:
            return False
    return True


@inner
def crowding(s: KernelState, held: Bytes, b: int) -> int:
    """Return how many replicas of the partition at hand lie beside a broker, the top level first, as one number to
    compare."""
    key = 0
    for d in range(s.path.shape[1]):
        key = key * 32 + held[s.path[b, d]]
    return key


@inner
def count_replica(s: KernelState, held: Bytes, b: int, change: int) -> None:
    """Add `change` to the number of replicas at each node above a broker."""
    for d in range(s.path.shape[1]):
        held[s.path[b, d]] += change


@inner
def preference(s: KernelState, weight: Bytes, size: int, b: int) -> float:
    """Return by how much a broker is preferred: by need where something is balanced, else the emptiest first, by
    weight."""
    if s.counts[0] + s.counts[1] > 0:
        return need(s, size, b)
    return float(-(s.load[0, b] + size) / weight[b])


@inner
def least_crowded(s: KernelState, p: int, held: Bytes, weight: Bytes) -> int:
    """Return the broker with room and no replica of this partition that has the fewest beside it; -1 for none."""
    best, fewest, most = -1, 0, 0.0
    for b in range(s.load.shape[1]):
        leaf = s.path[b, s.path.shape[1] - 1]
        if s.cap[leaf] == 0 or held[leaf] > 0 or s.load[0, b] + s.size[p] > s.room[b] or bars(s, p, b):
            continue
        key = crowding(s, held, b)
        if best >= 0 and key > fewest:
            continue
        wanted = preference(s, weight, s.size[p], b)
        if best < 0 or key < fewest or wanted > most:
            best, fewest, most = b, key, wanted
    return best


@inner
def add(s: KernelState, p: int, slot: int, b: int, held: Bytes) -> None:
    """Put a replica into a slot."""
    s.row[p, slot] = b
    s.load[0, b] += s.size[p]
    s.load[1, b] += 1
    update_deficit(s, b)
    count_replica(s, held, b, 1)


@inner
def remove(s: KernelState, p: int, slot: int, held: Bytes) -> None:
    """Empty a slot."""
    b = s.row[p, slot]
    s.row[p, slot] = -1
    s.load[0, b] -= s.size[p]
    s.load[1, b] -= 1
    update_deficit(s, b)
    count_replica(s, held, b, -1)


@inner
def remove_excess(s: KernelState, p: int, keep: Bools, rf: int, weight: Bytes, held: Bytes) -> None:
    """Remove replicas that may not stay, then excess ones: the most crowded first, then the least needed, then the
    last."""
    n = 0
    for k in range(s.row.shape[1]):
        if s.row[p, k] >= 0 and not keep[p, k]:
            remove(s, p, k, held)
        n += s.row[p, k] >= 0
    while n > rf:
        worst, crowd, least = -1, 0, 0.0
        for k in range(s.row.shape[1]):
            if s.row[p, k] < 0:
                continue
            key = crowding(s, held, s.row[p, k])
            wanted = preference(s, weight, s.size[p], s.row[p, k])
            if worst < 0 or key > crowd or (key == crowd and wanted <= least):
                worst, crowd, least = k, key, wanted
        remove(s, p, worst, held)
        n -= 1


@inner
def add_missing(s: KernelState, p: int, rf: int, weight: Bytes, held: Bytes) -> bool:
    """Add missing replicas, each in the first free slot. Return whether there was room for all."""
    n = 0
    for k in range(s.row.shape[1]):
        n += s.row[p, k] >= 0
    for k in range(s.row.shape[1]):
        if n < rf and s.row[p, k] < 0:
            b = least_crowded(s, p, held, weight)
            if b < 0:
                return False
            add(s, p, k, b, held)
            n += 1
    return True


@inner
def spread_row(s: KernelState, p: int, weight: Bytes, held: Bytes) -> None:
    """Move single replicas while that spreads the row better.

    The greatest gain goes first, then a replica that moves anyway, then one of the broker that needs it least.
    """
    for _ in range(4 * s.row.shape[1]):
        slot, to, gain, free, least = -1, -1, 0, False, 0.0
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0:
                continue
            remove(s, p, k, held)
            key = crowding(s, held, b)
            wanted = preference(s, weight, s.size[p], b)
            other = least_crowded(s, p, held, weight)
            gained = key - crowding(s, held, other) if other >= 0 else 0
            add(s, p, k, b, held)
            moves = b != s.home[p, k]
            better = gained > gain or (gained == gain and ((moves and not free) or (moves == free and wanted < least)))
            if gained > 0 and better:
                slot, to, gain, free, least = k, other, gained, moves, wanted
        if slot < 0:
            return
        remove(s, p, slot, held)
        add(s, p, slot, to, held)


@inner
def count_row(s: KernelState, p: int, held: Bytes, change: int) -> None:
    """Add `change` to the number of replicas at each node above each broker of a row."""
    for k in range(s.row.shape[1]):
        if s.row[p, k] >= 0:
            count_replica(s, held, s.row[p, k], change)


@entry
def repair(s: KernelState, keep: Bools, rf: Bytes, weight: Bytes, unrepaired: Bools) -> None:
    """Make all rows legal. `unrepaired` (P,) marks those without room for that, which stay as they were."""
    update_deficits(s)
    held, over = np.zeros(len(s.cap), np.int64), np.zeros(len(s.cap), np.int64)
    wrong = np.zeros(len(s.row), np.bool_)
    for p in range(len(s.row)):
        if s.still[p]:
            continue
        n, stays = 0, True
        for k in range(s.row.shape[1]):
            n += s.row[p, k] >= 0
            stays = stays and (s.row[p, k] < 0 or keep[p, k])
        count_row(s, p, held, 1)
        wrong[p] = not stays or n != rf[p] or not legal(s, p, held, over)
        if wrong[p]:
            remove_excess(s, p, keep, rf[p], weight, held)
        count_row(s, p, held, -1)
    for p in range(len(s.row)):
        if wrong[p]:
            count_row(s, p, held, 1)
            right = add_missing(s, p, rf[p], weight, held)
            if right and not legal(s, p, held, over):
                spread_row(s, p, weight, held)
                right = legal(s, p, held, over)
            if not right:
                unrepaired[p] = s.still[p] = True
                for k in range(s.row.shape[1]):
                    if s.row[p, k] >= 0:
                        remove(s, p, k, held)
                for k in range(s.row.shape[1]):
                    if s.home[p, k] >= 0:
                        add(s, p, k, s.home[p, k], held)
            count_row(s, p, held, -1)


@entry
def choose_removals(s: KernelState, keep: Bools, sweeps: int) -> None:
    """Choose what a lower replication factor removes so that it balances best. No bytes move either way."""
    update_deficits(s)
    for _ in range(sweeps):
        better = 0
        for p in range(len(s.row)):
            if s.still[p]:
                continue
            share = s.size[p] / s.mean
            worth = s.counts[0] * share * share + s.counts[1]  # what the move itself changes of the need
            for k in range(s.row.shape[1]):
                gone = s.home[p, k]
                if s.row[p, k] >= 0 or gone < 0 or not keep[p, k] or s.load[0, gone] + s.size[p] > s.room[gone]:
                    continue
                for j in range(s.row.shape[1]):
                    b = s.row[p, j]
                    if b < 0 or need(s, s.size[p], gone) - need(s, s.size[p], b) <= worth or not fits(s, p, j, gone):
                        continue
                    move(s, p, j, gone)
                    s.row[p, j], s.row[p, k] = -1, gone
                    better += 1
                    break
        if better == 0:
            break
