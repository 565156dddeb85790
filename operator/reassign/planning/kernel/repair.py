"""What has to move: replicas that may not stay, replication factors, rows that racks do not allow.

Greatest partitions first, each replica to where fewest of its partition are, from the top of the tree down, and there
to the broker that needs it most. A row that cannot be made right for want of room stays as it was.
"""

from __future__ import annotations

import numpy as np

from reassign.planning.kernel.state import State, fits, measure, move, need, weigh
from reassign.planning.machine_code import entry, inner
from reassign.planning.problem.model import Bools, Bytes


@inner
def legal(s: State, p: int, held: Bytes, over: Bytes) -> bool:
    """Whether the row noted in `held` lies as evenly as it can below every node; `over` is zeros, and is again."""
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
def crowding(s: State, held: Bytes, b: int) -> int:
    """How many replicas of the partition in hand lie beside a broker: at the top first, as one number to compare."""
    key = 0
    for d in range(s.path.shape[1]):
        key = key * 32 + held[s.path[b, d]]
    return key


@inner
def note(s: State, held: Bytes, b: int, change: int) -> None:
    for d in range(s.path.shape[1]):
        held[s.path[b, d]] += change


@inner
def wants(s: State, weight: Bytes, size: int, b: int) -> float:
    """By need where something is balanced, else the emptiest first, by weight."""
    if s.counts[0] + s.counts[1] > 0:
        return need(s, size, b)
    return float(-(s.load[0, b] + size) / weight[b])


@inner
def loneliest(s: State, p: int, held: Bytes, weight: Bytes) -> int:
    """The broker with room and without a replica of this partition that has fewest beside it; -1 for none."""
    best, fewest, most = -1, 0, 0.0
    for b in range(s.load.shape[1]):
        leaf = s.path[b, s.path.shape[1] - 1]
        if s.cap[leaf] == 0 or held[leaf] > 0 or s.load[0, b] + s.size[p] > s.room[b]:
            continue
        key = crowding(s, held, b)
        if best >= 0 and key > fewest:
            continue
        wanted = wants(s, weight, s.size[p], b)
        if best < 0 or key < fewest or wanted > most:
            best, fewest, most = b, key, wanted
    return best


@inner
def put(s: State, p: int, slot: int, b: int, held: Bytes) -> None:
    s.row[p, slot] = b
    s.load[0, b] += s.size[p]
    s.load[1, b] += 1
    weigh(s, b)
    note(s, held, b, 1)


@inner
def take(s: State, p: int, slot: int, held: Bytes) -> None:
    b = s.row[p, slot]
    s.row[p, slot] = -1
    s.load[0, b] -= s.size[p]
    s.load[1, b] -= 1
    weigh(s, b)
    note(s, held, b, -1)


@inner
def drop(s: State, p: int, keep: Bools, rf: int, weight: Bytes, held: Bytes) -> None:
    """Removes what may not stay, then what is too much: the most crowded, of these the least needed, the last."""
    n = 0
    for k in range(s.row.shape[1]):
        if s.row[p, k] >= 0 and not keep[p, k]:
            take(s, p, k, held)
        n += s.row[p, k] >= 0
    while n > rf:
        worst, crowd, least = -1, 0, 0.0
        for k in range(s.row.shape[1]):
            if s.row[p, k] < 0:
                continue
            key = crowding(s, held, s.row[p, k])
            wanted = wants(s, weight, s.size[p], s.row[p, k])
            if worst < 0 or key > crowd or (key == crowd and wanted <= least):
                worst, crowd, least = k, key, wanted
        take(s, p, worst, held)
        n -= 1


@inner
def fill(s: State, p: int, rf: int, weight: Bytes, held: Bytes) -> bool:
    """Adds what lacks, each in the first free place."""
    n = 0
    for k in range(s.row.shape[1]):
        n += s.row[p, k] >= 0
    for k in range(s.row.shape[1]):
        if n < rf and s.row[p, k] < 0:
            b = loneliest(s, p, held, weight)
            if b < 0:
                return False
            put(s, p, k, b, held)
            n += 1
    return True


@inner
def unravel(s: State, p: int, weight: Bytes, held: Bytes) -> None:
    """Moves single replicas while that spreads the row better: the greatest gain, then one that moves anyway, then
    from the broker that needs it least."""
    for _ in range(4 * s.row.shape[1]):
        slot, to, gain, free, least = -1, -1, 0, False, 0.0
        for k in range(s.row.shape[1]):
            b = s.row[p, k]
            if b < 0:
                continue
            take(s, p, k, held)
            key = crowding(s, held, b)
            wanted = wants(s, weight, s.size[p], b)
            other = loneliest(s, p, held, weight)
            gained = key - crowding(s, held, other) if other >= 0 else 0
            put(s, p, k, b, held)
            moves = b != s.home[p, k]
            better = gained > gain or (gained == gain and ((moves and not free) or (moves == free and wanted < least)))
            if gained > 0 and better:
                slot, to, gain, free, least = k, other, gained, moves, wanted
        if slot < 0:
            return
        take(s, p, slot, held)
        put(s, p, slot, to, held)


@inner
def note_row(s: State, p: int, held: Bytes, change: int) -> None:
    for k in range(s.row.shape[1]):
        if s.row[p, k] >= 0:
            note(s, held, s.row[p, k], change)


@entry
def repair(s: State, keep: Bools, rf: Bytes, weight: Bytes, left: Bools) -> None:
    """Makes all rows right; `left` marks those that cannot be for want of room, which stay as they were."""
    measure(s)
    held, over = np.zeros(len(s.cap), np.int64), np.zeros(len(s.cap), np.int64)
    wrong = np.zeros(len(s.row), np.bool_)
    for p in range(len(s.row)):
        if s.still[p]:
            continue
        n, stays = 0, True
        for k in range(s.row.shape[1]):
            n += s.row[p, k] >= 0
            stays = stays and (s.row[p, k] < 0 or keep[p, k])
        note_row(s, p, held, 1)
        wrong[p] = not stays or n != rf[p] or not legal(s, p, held, over)
        if wrong[p]:
            drop(s, p, keep, rf[p], weight, held)
        note_row(s, p, held, -1)
    for p in range(len(s.row)):
        if wrong[p]:
            note_row(s, p, held, 1)
            right = fill(s, p, rf[p], weight, held)
            if right and not legal(s, p, held, over):
                unravel(s, p, weight, held)
                right = legal(s, p, held, over)
            if not right:
                left[p] = s.still[p] = True
                for k in range(s.row.shape[1]):
                    if s.row[p, k] >= 0:
                        take(s, p, k, held)
                for k in range(s.row.shape[1]):
                    if s.home[p, k] >= 0:
                        put(s, p, k, s.home[p, k], held)
            note_row(s, p, held, -1)


@entry
def reconsider(s: State, keep: Bools, sweeps: int) -> None:
    """Of what a lower replication factor removes, the choice that balances best: no bytes move whichever stays."""
    measure(s)
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
